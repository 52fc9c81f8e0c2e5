//! What a client knows a server by, and proves itself with.

use super::{certificates, not, private_key, revoked, roots};
use crate::error::Error;
use rustls::ClientConfig;
use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::ServerName;
use std::path::Path;
use std::sync::Arc;

/// The client's certificate, and those on the way to who is trusted; it need not be there.
const CERTIFICATE: &str = "client-cert.pem";
/// Its private key.
const KEY: &str = "client-key.pem";

/// What a client knows a server by, and proves itself with.
#[derive(Clone, Debug)]
pub struct Credentials {
    pub(super) config: Arc<ClientConfig>,
    /// Whose certificate it must be.
    pub(super) name: ServerName<'static>,
}

impl Credentials {
    /// From the files of `directory`: `ca-cert.pem`, which vouches for the server called `name`; `client-cert.pem` with `client-key.pem`
    /// and `ca-crl.pem`, if they are there.
    pub fn load(directory: &Path, name: &str) -> Result<Credentials, Error> {
        let not_a_name = |_| Error::not("use", name, "a certificate is for no such name", "say tls-hostname=NAME in the URI");
        let server = ServerName::try_from(name.to_owned()).map_err(not_a_name)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let failed = |e: &dyn std::fmt::Display| not(directory, e, "see that its files belong together");
        let verifier = WebPkiServerVerifier::builder_with_provider(roots(directory)?, provider.clone()).with_crls(revoked(directory)?);
        let verifier = verifier.build().map_err(|e| failed(&e))?;
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(|e| failed(&e))?;
        let config = config.with_webpki_verifier(verifier);
        let own = directory.join(CERTIFICATE);
        let config = if own.exists() {
            let key = private_key(&directory.join(KEY))?;
            config.with_client_auth_cert(certificates(&own)?, key).map_err(|e| failed(&e))?
        } else {
            config.with_no_client_auth()
        };
        Ok(Credentials { config: Arc::new(config), name: server })
    }
}
