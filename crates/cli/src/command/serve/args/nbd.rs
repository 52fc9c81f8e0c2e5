//! The options of `serve` for network block devices.

use crate::disk_options::parse_size;
use crate::failure::Reason;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use trueline_host::nbd::listener::PORT;
use trueline_serve::front::config::Address;
use trueline_serve::front::nbd::limits::Limits;

/// Options for connections of clients.
#[derive(Args)]
pub(crate) struct Network {
    /// Serve network block devices at unix:PATH, tcp:PORT (this machine alone) or tcp:HOST:PORT
    /// (10809 without PORT)
    #[arg(long, value_name = "WHERE", value_parser = address)]
    pub nbd: Option<Address>,
    /// Name of the target's export [default: the empty name]
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true,
        value_parser = export,
    )]
    pub export: String,
    /// Use of TLS [default: require with --tls-certificates, else off]
    #[arg(long, value_name = "WHEN", value_enum)]
    pub tls: Option<Tls>,
    /// Directory of server-cert.pem and server-key.pem
    #[arg(long, value_name = "DIR")]
    pub tls_certificates: Option<PathBuf>,
    /// Require a client certificate signed by ca-cert.pem of the same directory
    #[arg(long, requires = "tls_certificates")]
    pub tls_verify_peer: bool,
    /// Most clients of a socket at one time; further ones wait
    #[arg(
        long,
        value_name = "N",
        default_value_t = Limits::default().connections,
        value_parser = connections,
    )]
    pub connections: usize,
    /// Most memory for large requests of all clients together; further requests wait. Every client
    /// has up to 4 MiB besides
    #[arg(long, value_name = "SIZE", default_value = "1g", value_parser = parse_size)]
    pub memory: u64,
}

/// Use of TLS by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tls {
    /// TLS is not offered
    Off,
    /// If the client asks for it
    On,
    /// Clients without TLS get an error and nothing else
    Require,
}

/// `unix:PATH`, `tcp:PORT`, `tcp:HOST` or `tcp:HOST:PORT`.
fn address(text: &str) -> Result<Address, Reason> {
    match text.split_once(':') {
        Some(("unix", path)) if !path.is_empty() => Ok(Address::Unix(path.into())),
        Some(("tcp", address)) if !address.is_empty() => {
            let (host, port) = address_and_port(address);
            let wrong = || {
                Reason(format!(
                    "'{address}' is not PORT, HOST:PORT or HOST: 127.0.0.1:{PORT}, [::1]:{PORT}"
                ))
            };
            let port = port.map_or(Ok(PORT), |port| port.parse().map_err(|_| wrong()))?;
            if host.is_empty() || host.contains(['[', ']', '/']) {
                Err(wrong())
            } else {
                Ok(Address::Tcp(host.into(), port))
            }
        }
        _ => Err(Reason("write unix:PATH, tcp:PORT or tcp:HOST:PORT".into())),
    }
}

/// Splits an address and its port. A port alone stands for this machine alone; an address with
/// colons is in brackets if a port follows.
pub(super) fn address_and_port(text: &str) -> (&str, Option<&str>) {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return ("127.0.0.1", Some(text));
    }
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        return match rest.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if rest.is_empty() => (host, None),
            None => ("", None),
        };
    }
    match text.split_once(':') {
        Some((_, port)) if port.contains(':') => (text, None),
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    }
}

/// Parses an export's name: 4096 bytes at most (doc/proto.md, "String").
fn export(text: &str) -> Result<String, Reason> {
    let good = text.len() <= 4096 && !text.contains(char::is_control);
    if good {
        Ok(text.to_owned())
    } else {
        Err(Reason("a name has at most 4096 bytes, and no control characters".into()))
    }
}

fn connections(text: &str) -> Result<usize, Reason> {
    text.parse()
        .ok()
        .filter(|count| (1..=65_536).contains(count))
        .ok_or_else(|| "write a number from 1 to 65536".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        let tcp = |host: &str, port| Ok(Address::Tcp(host.into(), port));
        let places = [
            ("unix:s", Ok(Address::Unix("s".into()))),
            ("unix:/a:b", Ok(Address::Unix("/a:b".into()))),
            ("tcp:10810", tcp("127.0.0.1", 10810)),
            ("tcp:localhost", tcp("localhost", 10809)),
            ("tcp:0.0.0.0:0", tcp("0.0.0.0", 0)),
            ("tcp:[::1]:10810", tcp("::1", 10810)),
            ("tcp:[::]", tcp("::", 10809)),
            ("tcp:::1", tcp("::1", 10809)),
        ];
        for (text, wanted) in places {
            assert_eq!(address(text), wanted, "{text}");
        }
        for wrong in [
            "",
            "unix:",
            "tcp:",
            "tcp:70000",
            "tcp:host:",
            "tcp::1",
            "tcp:[::1]10809",
            "tcp:[::1",
            "udp:1",
            "/run/s",
            "tcp:a:-1",
        ] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }
}
