//! The configuration of a server, out of the arguments of `serve`.

use super::child::Socket;
use crate::command::serve::args::nbd::Tls;
use crate::command::serve::args::{Serve, Strict};
use trueline_serve::front::config::{FrontConfig, TlsUse};
use trueline_serve::front::nbd::limits::Limits;
use trueline_serve::layer_stack::{LayerConfig, Strictness};
use trueline_serve::selection::Selection;
use trueline_sim::model::Model;

/// The layers that were asked for. `models`: of the disks, if they are simulated drives.
pub(super) fn layers(args: &Serve, models: &[Model]) -> LayerConfig {
    LayerConfig {
        target: args.target.to_string(),
        count: !args.no_counters,
        sector: args.disk.logical,
        strict: args.strict.map(|strict| match strict {
            Strict::Writes => Strictness::Writes,
            Strict::All => Strictness::All,
        }),
        models: models.to_vec(),
        emulate: args.emulate.then_some(args.speed),
        faults: args.fault.clone(),
        seed: args.seed,
        record: args.record.clone(),
    }
}

/// The exports that were asked for.
pub(super) fn selection(args: &Serve) -> Selection {
    Selection {
        target: args.target.to_string(),
        name: args.network.export.clone(),
        range: args.offset,
        read_only: args.read_only,
    }
}

/// The ways in that were asked for. `own`: a socket for the command alone.
pub(super) fn fronts(args: &Serve, own: Option<&Socket>) -> FrontConfig {
    let network = &args.network;
    FrontConfig {
        nbd: network.nbd.clone(),
        fallback: own.map(Socket::path),
        activation: true,
        tls: network.tls.map(|tls| match tls {
            Tls::Off => TlsUse::Off,
            Tls::On => TlsUse::Offered,
            Tls::Require => TlsUse::Required,
        }),
        certificates: network.tls_certificates.clone(),
        verify_peer: network.tls_verify_peer,
        limits: Limits { connections: network.connections, ..Limits::default() },
        memory: usize::try_from(network.memory).unwrap_or(usize::MAX),
        fuse: args.fuse.clone(),
        ublk: args.ublk,
    }
}
