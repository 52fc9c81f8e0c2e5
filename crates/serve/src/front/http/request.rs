//! The request of a client, and the host that it names.
//!
//! A hostile page can make its own name resolve to an address of this network ("DNS rebinding"): to
//! a browser this server is then part of that page, for its scripts to read. But the browser's
//! `Host` field has the name it used. An address is no name that can be made to resolve elsewhere,
//! and `localhost` is reserved (RFC 6761, section 6.3).
//!
//! # Sources
//! RFC 9112, section 3.2 (Host); RFC 9110, sections 9.3.2 (HEAD) and 15.5.20 (421); RFC 3986,
//! section 3.2.2 (hosts).

use std::net::{Ipv4Addr, Ipv6Addr};

/// The most header fields of a request.
pub(super) const FIELDS: usize = 64;

/// A request for an answer.
pub(super) struct HttpRequest {
    /// The requested path without its query, or the answer that refuses it.
    pub path: Result<String, ErrorResponse>,
    /// True if the answer is its head alone.
    pub bare: bool,
}

/// The answer to a request that is refused: its status line and what follows.
pub(super) struct ErrorResponse {
    pub status: &'static str,
    /// A further header field, with its line end.
    pub field: &'static str,
    /// Advice for the user; empty if there is none.
    pub advice: &'static str,
}

pub(super) const BUSY: ErrorResponse = ErrorResponse::new("503 Service Unavailable");
pub(super) const LATE: ErrorResponse = ErrorResponse::new("408 Request Timeout");
pub(super) const LONG: ErrorResponse = ErrorResponse::new("431 Request Header Fields Too Large");
pub(super) const MISSING: ErrorResponse = ErrorResponse::new("404 Not Found");
const BAD: ErrorResponse = ErrorResponse::new("400 Bad Request");
const METHOD: ErrorResponse =
    ErrorResponse { field: "Allow: GET, HEAD\r\n", ..ErrorResponse::new("405 Method Not Allowed") };
const MISDIRECTED: ErrorResponse = ErrorResponse {
    advice: ": ask by address, as localhost, or by the name that this server was told to listen on",
    ..ErrorResponse::new("421 Misdirected Request")
};

impl ErrorResponse {
    const fn new(status: &'static str) -> ErrorResponse {
        ErrorResponse { status, field: "", advice: "" }
    }
}

impl From<ErrorResponse> for HttpRequest {
    fn from(refusal: ErrorResponse) -> HttpRequest {
        HttpRequest { path: Err(refusal), bare: false }
    }
}

/// Parses a request to the server named `name`; [`None`] if it is incomplete.
pub(super) fn parse(bytes: &[u8], name: &str) -> Option<HttpRequest> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) => None,
        Ok(httparse::Status::Complete(_)) => Some(understand(&request, name)),
        Err(httparse::Error::TooManyHeaders) => Some(LONG.into()),
        Err(_) => Some(BAD.into()),
    }
}

fn understand(request: &httparse::Request<'_, '_>, name: &str) -> HttpRequest {
    let bare = request.method == Some("HEAD");
    let refused = |refusal| HttpRequest { path: Err(refusal), bare };
    let hosts: Vec<&[u8]> = request
        .headers
        .iter()
        .filter(|field| field.name.eq_ignore_ascii_case("host"))
        .map(|f| f.value)
        .collect();
    let Some(path) = request.path else { return refused(BAD) };
    match (hosts.as_slice(), request.version) {
        // HTTP/1.0 has no `Host`, and no scripts that could misuse it.
        ([], Some(0)) => {}
        ([host], _) if !is_own(host, name) => return refused(MISDIRECTED),
        ([_], _) => {}
        _ => return refused(BAD),
    }
    if !matches!(request.method, Some("GET" | "HEAD")) {
        return refused(METHOD);
    }
    HttpRequest { path: Ok(path.split('?').next().unwrap_or_default().to_owned()), bare }
}

/// True if a `Host` is an address, `localhost` or `name`, on any port: a port may be forwarded.
fn is_own(host: &[u8], name: &str) -> bool {
    let Ok(host) = str::from_utf8(host) else { return false };
    let is_port = |text: &str| {
        text.is_empty()
            || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
    };
    if let Some((address, port)) = host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        return is_port(port) && address.parse::<Ipv6Addr>().is_ok();
    }
    let (host, port) = host.find(':').map_or((host, ""), |at| host.split_at(at));
    let is_name = host.eq_ignore_ascii_case("localhost")
        || (!name.is_empty() && host.eq_ignore_ascii_case(name));
    is_port(port) && (is_name || host.parse::<Ipv4Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_localhost_and_the_own_name_are_asked() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:9100",
            "10.0.0.5:80",
            "[::1]",
            "[fe80::1]:9100",
            "localhost",
            "LocalHost:1",
            "Disks.example:9",
            "1.2.3.4:",
        ] {
            assert!(is_own(host.as_bytes(), "disks.EXAMPLE"), "{host}");
        }
    }

    #[test]
    fn whatever_a_stranger_may_own_is_not() {
        let names = [
            "",
            "evil.example",
            "evil.example:9100",
            "localhost.evil.example",
            "localhost.",
            "127.0.0.1.evil.example",
            "127.0.0.1:80.evil.example",
            "127.1",
            "0x7f000001",
            "2130706433",
            "[::1",
            "[::1]x",
            "[::1]:8x",
            "[localhost]",
            "::1",
            "disks.example.org",
            "user@127.0.0.1",
            "a b",
            " ",
        ];
        for host in names {
            assert!(!is_own(host.as_bytes(), "disks.example"), "{host}");
            assert!(!is_own(host.as_bytes(), ""), "{host}");
        }
        assert!(!is_own(b"\xff", ""));
    }
}
