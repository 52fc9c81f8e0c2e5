//! What a client knows a server by, and proves itself with.

use super::{certificates, not, private_key, revoked, roots};
use crate::error::Error;
use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;

/// The client's certificate, and those on the way to who is trusted; it need not be there.
const CERTIFICATE: &str = "client-cert.pem";
/// Its private key.
const KEY: &str = "client-key.pem";
/// What stands for a directory where none is named.
const SYSTEM: &str = "the certificates of this machine";

/// What a client knows a server by, and proves itself with.
#[derive(Clone, Debug)]
pub struct Credentials {
    pub(super) config: Arc<ClientConfig>,
    /// Whose certificate it must be.
    pub(super) name: ServerName<'static>,
}

impl Credentials {
    /// From the files of `directory`: `ca-cert.pem`, which vouches for the server called `name`; `client-cert.pem` with `client-key.pem`
    /// and `ca-crl.pem`, if they are there. Without one whoever this machine trusts vouches for it.
    pub fn load(directory: Option<&Path>, name: &str) -> Result<Credentials, Error> {
        let not_a_name = |_| Error::not("use", name, "a certificate is for no such name", "say tls-hostname=NAME in the URI");
        let server = ServerName::try_from(name.to_owned()).map_err(not_a_name)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let place = directory.unwrap_or(Path::new(SYSTEM));
        let failed = |e: &dyn std::fmt::Display| not(place, e, "see that its files belong together");
        let roots = directory.map_or_else(of_this_machine, roots)?;
        let revoked = directory.map_or(Ok(Vec::new()), revoked)?;
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).with_crls(revoked);
        let verifier = verifier.build().map_err(|e| failed(&e))?;
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(|e| failed(&e))?;
        let config = config.with_webpki_verifier(verifier);
        let own = directory.filter(|directory| directory.join(CERTIFICATE).exists());
        let config = if let Some(directory) = own {
            let key = private_key(&directory.join(KEY))?;
            config.with_client_auth_cert(certificates(&directory.join(CERTIFICATE))?, key).map_err(|e| failed(&e))?
        } else {
            config.with_no_client_auth()
        };
        Ok(Credentials { config: Arc::new(config), name: server })
    }
}

/// Who vouches for servers on this machine: its distribution's list, or what `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
fn of_this_machine() -> Result<Arc<RootCertStore>, Error> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // One that rustls cannot use vouches for nobody, and the others do.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map_or_else(|| "there are none".into(), ToString::to_string);
        return Err(Error::not("use", SYSTEM, why, "say tls-certificates=DIR, with ca-cert.pem in it"));
    }
    Ok(Arc::new(roots))
}
