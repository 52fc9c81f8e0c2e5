//! TLS under the protocol (section "TLS support"): a server's certificates. [`Credentials`] are a client's, `Encrypted` is the stream.
//!
//! # Limits
//! TLS 1.2 and 1.3 with certificates. rustls has no pre-shared keys from outside (RFC 8446, section 4.2.11), so there are none here.
//!
//! # Sources
//! The files' names are those of GnuTLS's tools as nbdkit(1), nbd-client and QEMU use them: nbdkit-tls(1).

use crate::error::Error;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

mod credentials;
mod encrypted;

pub use credentials::Credentials;
pub use encrypted::Encrypted;

/// The server's certificate, and those on the way to who is trusted.
const CERTIFICATE: &str = "server-cert.pem";
/// Its private key.
const KEY: &str = "server-key.pem";
/// Who vouches for the other side.
const AUTHORITY: &str = "ca-cert.pem";
/// Which certificates are no longer good; it need not be there.
const REVOKED: &str = "ca-crl.pem";
/// The longest file of certificates.
const LONGEST: u64 = 1 << 20;

/// What a server proves itself with, and what it asks of clients.
#[derive(Clone, Debug)]
pub struct Certificates(Arc<ServerConfig>);

/// Whether clients are served through TLS.
#[derive(Clone, Debug, Default)]
pub enum Encryption {
    /// Never.
    #[default]
    Off,
    /// If they ask for it.
    Offered(Certificates),
    /// Or not at all.
    Required(Certificates),
}

/// Whether a connection may, or must, become TLS first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tls {
    /// There is none.
    #[default]
    None,
    /// The client may ask for it.
    Offered,
    /// Nothing else is answered before.
    Required,
    /// It is.
    Established,
}

impl Encryption {
    /// As haggling needs it.
    pub fn tls(&self) -> Tls {
        match self {
            Encryption::Off => Tls::None,
            Encryption::Offered(_) => Tls::Offered,
            Encryption::Required(_) => Tls::Required,
        }
    }

    /// The server's certificates, if clients may use TLS.
    pub fn certificates(&self) -> Option<&Certificates> {
        match self {
            Encryption::Off => None,
            Encryption::Offered(certificates) | Encryption::Required(certificates) => Some(certificates),
        }
    }
}

impl Certificates {
    /// From the files of `directory`: `server-cert.pem` and `server-key.pem`. `verify_clients`: who has no certificate that
    /// `ca-cert.pem` vouches for is not served, nor is whose certificate `ca-crl.pem`, if it is there, revokes.
    pub fn load(directory: &Path, verify_clients: bool) -> Result<Certificates, Error> {
        let path = directory.join(CERTIFICATE);
        let chain = certificates(&path)?;
        let key = private_key(&directory.join(KEY))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
        let builder = builder.map_err(|e| not(&path, &e, ""))?;
        let builder =
            if verify_clients { builder.with_client_cert_verifier(verifier(directory, provider)?) } else { builder.with_no_client_auth() };
        let config = builder.with_single_cert(chain, key);
        Ok(Certificates(Arc::new(config.map_err(|e| not(&path, &e, "see that server-key.pem is the key of server-cert.pem"))?)))
    }
}

/// Who looks at clients' certificates.
fn verifier(directory: &Path, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    let builder = WebPkiClientVerifier::builder_with_provider(roots(directory)?, provider).with_crls(revoked(directory)?);
    builder.build().map_err(|e| not(&directory.join(AUTHORITY), &e, VOUCHES))
}

const VOUCHES: &str = "write the authority's certificate there";

/// Who vouches for the other side.
fn roots(directory: &Path) -> Result<Arc<RootCertStore>, Error> {
    let path = directory.join(AUTHORITY);
    let mut roots = RootCertStore::empty();
    for authority in certificates(&path)? {
        roots.add(authority).map_err(|e| not(&path, &e, VOUCHES))?;
    }
    Ok(Arc::new(roots))
}

/// Lists of certificates that are no longer good.
fn revoked(directory: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, Error> {
    let path = directory.join(REVOKED);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let lists: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(&text(&path)?).collect();
    lists.map_err(|e| not(&path, &e, "write a revocation list in PEM form there"))
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_slice(&text(path)?).map_err(|e| not(path, &e, "write a private key in PEM form there"))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let advice = "write a certificate in PEM form there";
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text(path)?).collect();
    let found = found.map_err(|e| not(path, &e, advice))?;
    if found.is_empty() { Err(not(path, &"there is no certificate in it", advice)) } else { Ok(found) }
}

fn text(path: &Path) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST).read_to_end(&mut text));
    read.map_err(|e| Error::os("read", path, e))?;
    Ok(text)
}

fn not(path: &Path, found: &dyn std::fmt::Display, advice: &'static str) -> Error {
    Error::not("use", &path.display().to_string(), found.to_string(), advice)
}
