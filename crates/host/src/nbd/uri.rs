//! NBD URIs (`doc/uri.md` of the protocol): `nbd://HOST[:PORT]/EXPORT`,
//! `nbd+unix:///EXPORT?socket=PATH`; `nbds` and `nbds+unix` through TLS.
//!
//! # Sources
//! `doc/uri.md` for `tls-hostname`, `tls-type` and `tls-verify-peer`; nbd_connect_uri(3) of libnbd
//! for `tls-certificates`.

use std::fmt;
use std::path::PathBuf;

/// The port that IANA assigned to NBD.
pub const PORT: u16 = 10809;

/// The parts of an NBD URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    /// The address of the server.
    pub server: Server,
    /// The name of the export.
    pub export: String,
    /// The TLS parameters; [`None`] without TLS.
    pub tls: Option<Tls>,
}

/// The TLS parameters of a URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The directory of certificates; [`None`]: those of this machine.
    pub certificates: Option<PathBuf>,
    /// The name that the server's certificate must have.
    pub hostname: String,
}

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// A TCP host and port.
    Tcp(String, u16),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// A text that is not an NBD URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UriError {
    /// There is no `://`.
    NoScheme,
    /// The scheme is not one of NBD.
    Scheme(String),
    /// The URI of a Unix socket has no `socket=PATH`.
    NoSocket,
    /// The brackets around an IPv6 address are not closed.
    OpenBracket,
    /// The port is not a number below 65536.
    Port(String),
    /// A `%` is not followed by two hexadecimal digits.
    Escape(String),
    /// The decoded text is not UTF-8.
    NotUtf8(String),
    /// TLS with pre-shared keys, or without certificates.
    NoX509,
    /// TLS without verification of the server.
    Unverified,
    /// The value of `tls-certificates` is empty.
    NoCertificates,
}

impl fmt::Display for UriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UriError::NoScheme => {
                f.write_str("it has no scheme")
            }
            UriError::Scheme(scheme) => {
                write!(f, "'{scheme}' is not a scheme of NBD: nbd, nbds, nbd+unix, nbds+unix")
            }
            UriError::NoSocket => f.write_str("?socket=PATH is missing"),
            UriError::OpenBracket => f.write_str("the ] after an IPv6 address is missing"),
            UriError::Port(port) => write!(f, "'{port}' is not a port: 0 to 65535"),
            UriError::Escape(text) => write!(f, "'{text}': two hexadecimal digits follow a %"),
            UriError::NotUtf8(text) => write!(f, "'{text}' is not UTF-8"),
            UriError::NoX509 => f.write_str(
                "this client supports TLS with X.509 certificates only, not pre-shared keys or anonymous TLS",
            ),
            UriError::Unverified => {
                f.write_str("this client always verifies the server: leave out tls-verify-peer")
            }
            UriError::NoCertificates => f.write_str(
                "tls-certificates= names no directory: leave it out to use the certificates of this machine",
            ),
        }
    }
}

impl std::error::Error for UriError {}

impl Uri {
    /// True if `text` has a scheme of NBD.
    pub fn is_meant(text: &str) -> bool {
        ["nbd://", "nbd+unix://", "nbds://", "nbds+unix://"]
            .iter()
            .any(|scheme| text.starts_with(scheme))
    }

    /// Parses a URI. The error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Uri, UriError> {
        let (scheme, rest) = text.split_once("://").ok_or(UriError::NoScheme)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, export) = rest.split_once('/').unwrap_or((rest, ""));
        let export = decoded(export)?;
        let encrypted = scheme.starts_with("nbds");
        let server = match scheme {
            "nbd" | "nbds" => host(authority)?,
            "nbd+unix" | "nbds+unix" => {
                Server::Unix(value(query, "socket")?.ok_or(UriError::NoSocket)?.into())
            }
            _ => return Err(UriError::Scheme(scheme.to_owned())),
        };
        let tls = if encrypted { Some(Tls::parse(query, &server)?) } else { None };
        Ok(Uri { server, export, tls })
    }
}

impl Tls {
    /// The TLS parameters in `query`. The server behind a Unix socket is `localhost`.
    fn parse(query: &str, server: &Server) -> Result<Tls, UriError> {
        if value(query, "tls-psk-file")?.is_some()
            || value(query, "tls-type")?.is_some_and(|kind| kind != "x509")
        {
            return Err(UriError::NoX509);
        }
        if value(query, "tls-verify-peer")?
            .is_some_and(|verify| !["1", "true"].contains(&verify.as_str()))
        {
            return Err(UriError::Unverified);
        }
        let own = match server {
            Server::Tcp(host, _) => host,
            Server::Unix(_) => "localhost",
        };
        let hostname = value(query, "tls-hostname")?.unwrap_or_else(|| own.into());
        let certificates = value(query, "tls-certificates")?.map(PathBuf::from);
        if certificates.is_none() && query.split('&').any(|pair| pair == "tls-certificates=") {
            return Err(UriError::NoCertificates);
        }
        Ok(Tls { certificates, hostname })
    }
}

/// The decoded value of `key` in a query, if it has one.
fn value(query: &str, key: &str) -> Result<Option<String>, UriError> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let value = pairs
        .filter(|(name, _)| *name == key)
        .map(|(_, value)| value)
        .find(|value| !value.is_empty());
    value.map(decoded).transpose()
}

/// The host and port of `HOST[:PORT]`; an IPv6 address is in brackets.
fn host(authority: &str) -> Result<Server, UriError> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or(UriError::OpenBracket)?,
        None => authority.rfind(':').map_or((authority, ""), |at| authority.split_at(at)),
    };
    let port = match port.strip_prefix(':') {
        Some(port) => port.parse().map_err(|_| UriError::Port(port.to_owned()))?,
        None => PORT,
    };
    Ok(Server::Tcp(if host.is_empty() { "localhost".into() } else { decoded(host)? }, port))
}

/// Decodes `%41` to `A` (RFC 3986, section 2.1); [`None`] if a `%` is not followed by two
/// hexadecimal digits.
pub fn unescaped(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        let (byte, after) = match first {
            b'%' => {
                let (&[high, low], after) = after.split_first_chunk()?;
                (u8::try_from(digit(high)? << 4 | digit(low)?).ok()?, after)
            }
            plain => (plain, after),
        };
        bytes.push(byte);
        rest = after;
    }
    Some(bytes)
}

fn digit(byte: u8) -> Option<u32> {
    char::from(byte).to_digit(16)
}

fn decoded(text: &str) -> Result<String, UriError> {
    let bytes = unescaped(text).ok_or_else(|| UriError::Escape(text.to_owned()))?;
    String::from_utf8(bytes).map_err(|_| UriError::NotUtf8(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_taken_apart() {
        let tcp = |host: &str, port, export: &str| Uri {
            server: Server::Tcp(host.into(), port),
            export: export.into(),
            tls: None,
        };
        let unix = |path: &str, export: &str| Uri {
            server: Server::Unix(path.into()),
            export: export.into(),
            tls: None,
        };
        let tls = |uri: Uri, certificates: &str, hostname: &str| {
            let certificates =
                Some(certificates).filter(|path| !path.is_empty()).map(PathBuf::from);
            Uri { tls: Some(Tls { certificates, hostname: hostname.into() }), ..uri }
        };
        for (text, want) in [
            ("nbd://localhost", tcp("localhost", 10809, "")),
            ("nbd://10.0.0.1:9/s1a", tcp("10.0.0.1", 9, "s1a")),
            ("nbd://[::1]:9/a%20b", tcp("::1", 9, "a b")),
            ("nbd://[::1]/stripe/data", tcp("::1", 10809, "stripe/data")),
            ("nbd+unix:///?socket=/run/x", unix("/run/x", "")),
            ("nbd+unix://?socket=/run/x", unix("/run/x", "")),
            ("nbd+unix:///p1?a=b&socket=x%3fy", unix("x?y", "p1")),
            ("nbds://host/x?tls-certificates=/pki", tls(tcp("host", 10809, "x"), "/pki", "host")),
            (
                "nbds://[::1]:9?tls-hostname=a.b&tls-certificates=p%20i&tls-type=x509",
                tls(tcp("::1", 9, ""), "p i", "a.b"),
            ),
            ("nbds://a", tls(tcp("a", 10809, ""), "", "a")),
            ("nbds+unix:///?socket=/s&tls-hostname=a.b", tls(unix("/s", ""), "", "a.b")),
            (
                "nbds+unix:///p1?socket=/s&tls-certificates=.&tls-verify-peer=1",
                tls(unix("/s", "p1"), ".", "localhost"),
            ),
        ] {
            assert_eq!(Uri::parse(text), Ok(want), "{text}");
            assert!(Uri::is_meant(text));
        }
        for bad in [
            "nbd://a:b/",
            "nbd+unix:///x",
            "nbd+unix:///?socket=",
            "http://a",
            "nbd://[::1",
            "nbd://a/%4",
            "nbd://a/%+4",
            "nbd://a/%4\u{e9}",
            "nbd://a/%ff",
            "nbds://a/?tls-certificates=",
            "nbds://a/?tls-certificates=x&tls-verify-peer=0",
            "nbds://a/?tls-certificates=x&tls-type=psk",
            "nbds://a/?tls-psk-file=x",
            "nbds+unix:///?tls-certificates=x",
        ] {
            assert!(Uri::parse(bad).is_err(), "{bad}");
        }
    }
}
