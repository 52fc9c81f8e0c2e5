//! The ways in that were asked for.

use super::child::Socket;
use super::live::Live;
use super::notices::Notices;
use super::telemetry::Telemetry;
use crate::command::serve::args::Serve;
use crate::command::serve::args::nbd::{Network, Tls, Where};
use crate::failure::{Failure, complain};
use std::path::PathBuf;
use std::sync::Arc;
use trueline_host::nbd::activation;
use trueline_host::nbd::listener::Listener;
use trueline_host::nbd::tls::{Certificates, Encryption};
use trueline_serve::export::Exports;
use trueline_serve::front::http::Http;
use trueline_serve::front::nbd::limits::Limits;
use trueline_serve::front::nbd::memory_budget::MemoryBudget;
use trueline_serve::front::{Front, Nbd, fuse, ublk};

/// The ways in, the one that `$uri` names first, and the page of what is counted last. `own`: a socket for the command alone. `notices`:
/// takes what is to be said of clients.
pub(super) fn of(
    args: &Serve,
    exports: &Arc<Exports>,
    telemetry: Option<&Arc<Telemetry>>,
    own: Option<&Socket>,
    notices: &Arc<Notices>,
) -> Result<Vec<Box<dyn Front>>, Failure> {
    let mut fronts: Vec<Box<dyn Front>> = Vec::new();
    let encryption = encryption(&args.network)?;
    let limits = Limits { connections: args.network.connections, ..Limits::default() };
    let room = Arc::new(MemoryBudget::new(usize::try_from(args.network.memory).unwrap_or(usize::MAX)));
    for listener in listeners(&args.network, own)? {
        if listener.is_reachable() && !matches!(encryption, Encryption::Required(_)) {
            let place = listener.place();
            complain(&format!("{place}: whoever reaches this address reads and writes without TLS: --tls-certificates DIR"));
        }
        let (exports, encryption, certificates) = (exports.clone(), encryption.clone(), authority(&args.network));
        let (notices, room) = (notices.clone(), room.clone());
        let tell = Box::new(move |line: &str| notices.say(line));
        fronts.push(Box::new(Nbd { listener, exports, encryption, certificates, limits, room, tell }));
    }
    if let Some(point) = &args.fuse {
        fronts.push(Box::new(fuse::mount(point, exports).map_err(|e| e.to_string())?));
    }
    if args.ublk {
        fronts.push(Box::new(ublk::attach(exports).map_err(|e| e.to_string())?));
    }
    if fronts.is_empty() {
        let places = "--nbd unix:PATH, --nbd tcp:HOST:PORT, --fuse MOUNTPOINT, --ublk";
        return Err(Failure::Message(format!("serve: where? write {places} or --run CMD")));
    }
    if let Some(((host, port), telemetry)) = args.metrics.as_ref().zip(telemetry) {
        let site = Arc::new(Live::new(telemetry.clone()));
        fronts.push(Box::new(Http::bind(host, *port, site).map_err(|e| e.to_string())?));
    }
    Ok(fronts)
}

/// Sockets that a service manager passed, the one that was named, or the command's own.
fn listeners(network: &Network, own: Option<&Socket>) -> Result<Vec<Listener>, Failure> {
    let passed = activation::sockets().map_err(|e| e.to_string())?;
    if !passed.is_empty() {
        return match &network.nbd {
            None => Ok(passed),
            Some(_) => Err(Failure::Message("serve: the service manager passed sockets: leave out --nbd, or write it in the unit".into())),
        };
    }
    let Some(place) = network.nbd.clone().or_else(|| own.map(|socket| Where::Unix(socket.path()))) else { return Ok(Vec::new()) };
    let listener = match place {
        Where::Unix(path) => Listener::unix(&path),
        Where::Tcp(host, port) => Listener::tcp(&host, port),
    };
    Ok(vec![listener.map_err(|e| e.to_string())?])
}

fn encryption(network: &Network) -> Result<Encryption, Failure> {
    let missing = "--tls-certificates DIR with server-cert.pem and server-key.pem; pre-shared keys are not supported";
    let load = || match &network.tls_certificates {
        Some(directory) => Certificates::load(directory, network.tls_verify_peer).map_err(|e| Failure::Message(e.to_string())),
        None => Err(Failure::Message(format!("serve: TLS needs {missing}"))),
    };
    match (network.tls, &network.tls_certificates) {
        (Some(Tls::Off), _) | (None, None) => Ok(Encryption::Off),
        (Some(Tls::On), _) => Ok(Encryption::Offered(load()?)),
        (Some(Tls::Require), _) | (None, Some(_)) => Ok(Encryption::Required(load()?)),
    }
}

/// Where a client on this machine finds the certificate that it knows the server by.
fn authority(network: &Network) -> Option<PathBuf> {
    let directory = std::path::absolute(network.tls_certificates.as_ref()?).ok()?;
    directory.join("ca-cert.pem").exists().then_some(directory)
}
