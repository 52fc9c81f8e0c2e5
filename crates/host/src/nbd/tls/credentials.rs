//! The credentials of a client: the authorities it trusts, and its own certificate.

use super::{certificates, not, private_key, revoked, roots};
use crate::error::Error;
use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;

/// The file of the client's certificate and its chain; it is optional.
const CERTIFICATE: &str = "client-cert.pem";
/// The file of the client's private key.
const KEY: &str = "client-key.pem";
/// The place in messages if no directory is named.
const SYSTEM: &str = "the certificates of this machine";

/// The authorities that a client trusts, the server's expected name, and the client's own
/// certificate.
#[derive(Clone, Debug)]
pub struct Credentials {
    pub(super) config: Arc<ClientConfig>,
    /// The name that the server's certificate must have.
    pub(super) name: ServerName<'static>,
}

impl Credentials {
    /// Loads the files of `directory`: `ca-cert.pem`, the authority for the server named `name`;
    /// and, if they exist, `client-cert.pem` with `client-key.pem`, and `ca-crl.pem`. `None`: the
    /// authorities that this machine trusts.
    pub fn load(directory: Option<&Path>, name: &str) -> Result<Credentials, Error> {
        let not_a_name = |_| {
            Error::not(
                "use",
                name,
                "no certificate can be for this name",
                "say tls-hostname=NAME in the URI",
            )
        };
        let server = ServerName::try_from(name.to_owned()).map_err(not_a_name)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let place = directory.unwrap_or(Path::new(SYSTEM));
        let failed =
            |e: &dyn std::fmt::Display| not(place, e, "check that its files belong together");
        let roots = directory.map_or_else(of_this_machine, roots)?;
        let revoked = directory.map_or(Ok(Vec::new()), revoked)?;
        let verifier =
            WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).with_crls(revoked);
        let verifier = verifier.build().map_err(|e| failed(&e))?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| failed(&e))?;
        let config = config.with_webpki_verifier(verifier);
        let own = directory.filter(|directory| directory.join(CERTIFICATE).exists());
        let config = if let Some(directory) = own {
            let key = private_key(&directory.join(KEY))?;
            config
                .with_client_auth_cert(certificates(&directory.join(CERTIFICATE))?, key)
                .map_err(|e| failed(&e))?
        } else {
            config.with_no_client_auth()
        };
        Ok(Credentials { config: Arc::new(config), name: server })
    }
}

/// The authorities that this machine trusts: its distribution's list, or those of `SSL_CERT_FILE`
/// and `SSL_CERT_DIR`.
fn of_this_machine() -> Result<Arc<RootCertStore>, Error> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // An authority that rustls cannot parse is left out.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map_or_else(|| "there are none".into(), ToString::to_string);
        return Err(Error::not(
            "use",
            SYSTEM,
            why,
            "say tls-certificates=DIR, with ca-cert.pem in it",
        ));
    }
    Ok(Arc::new(roots))
}
