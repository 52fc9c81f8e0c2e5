//! TLS under the protocol (section "TLS support"): a server's certificates. [`Credentials`] are a
//! client's, `Encrypted` is the stream.
//!
//! # Limits
//! TLS 1.2 and 1.3 with certificates. rustls has no external pre-shared keys (RFC 8446, section
//! 4.2.11), so there are none here.
//!
//! # Sources
//! The file names are those of GnuTLS's tools as nbdkit(1), nbd-client and QEMU use them:
//! nbdkit-tls(1).

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

/// The file of the server's certificate and its chain.
const CERTIFICATE: &str = "server-cert.pem";
/// The file of the server's private key.
const KEY: &str = "server-key.pem";
/// The file of the authorities that the other side's certificate must come from.
const AUTHORITY: &str = "ca-cert.pem";
/// The file of revoked certificates; it is optional.
const REVOKED: &str = "ca-crl.pem";
/// The longest certificate file in bytes.
const LONGEST: u64 = 1 << 20;

/// The certificates of a server, and its requirements on clients.
#[derive(Clone, Debug)]
pub struct Certificates(Arc<ServerConfig>);

/// The use of TLS for clients.
#[derive(Clone, Debug, Default)]
pub enum Encryption {
    /// TLS is not available.
    #[default]
    Off,
    /// TLS is used if a client asks for it.
    Offered(Certificates),
    /// TLS is required of every client.
    Required(Certificates),
}

/// The TLS state of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tls {
    /// TLS is not available.
    #[default]
    None,
    /// TLS may be started by the client.
    Offered,
    /// TLS must be started before any other option.
    Required,
    /// TLS has been established.
    Established,
}

impl Encryption {
    /// The state in which a connection begins.
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
            Encryption::Offered(certificates) | Encryption::Required(certificates) => {
                Some(certificates)
            }
        }
    }
}

impl Certificates {
    /// Loads the files of `directory`: `server-cert.pem` and `server-key.pem`. `verify_clients`: a
    /// client needs a certificate issued by an authority in `ca-cert.pem` and not revoked by
    /// `ca-crl.pem`, if that exists.
    pub fn load(directory: &Path, verify_clients: bool) -> Result<Certificates, Error> {
        let path = directory.join(CERTIFICATE);
        let chain = certificates(&path)?;
        let key = private_key(&directory.join(KEY))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions();
        let builder = builder.map_err(|e| not(&path, &e, ""))?;
        let builder = if verify_clients {
            builder.with_client_cert_verifier(verifier(directory, provider)?)
        } else {
            builder.with_no_client_auth()
        };
        let config = builder.with_single_cert(chain, key);
        Ok(Certificates(Arc::new(config.map_err(|e| {
            not(&path, &e, "check that server-key.pem is the key of server-cert.pem")
        })?)))
    }
}

/// The verifier of clients' certificates.
fn verifier(
    directory: &Path,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    let builder = WebPkiClientVerifier::builder_with_provider(roots(directory)?, provider)
        .with_crls(revoked(directory)?);
    builder.build().map_err(|e| not(&directory.join(AUTHORITY), &e, VOUCHES))
}

const VOUCHES: &str = "put the authority's certificate there";

/// The authorities that the other side's certificate must come from.
fn roots(directory: &Path) -> Result<Arc<RootCertStore>, Error> {
    let path = directory.join(AUTHORITY);
    let mut roots = RootCertStore::empty();
    for authority in certificates(&path)? {
        roots.add(authority).map_err(|e| not(&path, &e, VOUCHES))?;
    }
    Ok(Arc::new(roots))
}

/// The revocation lists of `directory`; empty if there is no such file.
fn revoked(directory: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, Error> {
    let path = directory.join(REVOKED);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let lists: Result<Vec<_>, _> =
        CertificateRevocationListDer::pem_slice_iter(&text(&path)?).collect();
    lists.map_err(|e| not(&path, &e, "put a revocation list in PEM form there"))
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_slice(&text(path)?)
        .map_err(|e| not(path, &e, "put a private key in PEM form there"))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let advice = "put a certificate in PEM form there";
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text(path)?).collect();
    let found = found.map_err(|e| not(path, &e, advice))?;
    if found.is_empty() {
        Err(not(path, &"there is no certificate in it", advice))
    } else {
        Ok(found)
    }
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
