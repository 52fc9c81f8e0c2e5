//! Notes on exports that are not what they look like, a line each.

use crate::words;
use trueline_geom::base::finding;
use trueline_geom::format::Inside;
use trueline_geom::graph::{Graph, Id};
use trueline_serve::export::Exports;

/// Exports whose units begin where the protocol cannot say.
pub(super) fn unsaid(exports: &Exports) -> impl Iterator<Item = String> {
    let named = exports.0.len() > 1;
    let odd = exports.0.iter().filter_map(|export| {
        export.unit().filter(|grain| !grain.contains(0)).map(|grain| (export, grain))
    });
    // The default export is told under its own name, if it has one.
    let odd = odd.filter(move |(export, _)| !named || !export.name.is_empty());
    odd.map(|(export, grain)| {
        let (rule, name) = (finding::UNSAID.id, words::name(&export.name));
        let found = format!(
            "{}-byte units begin at byte {} of it, which NBD cannot say",
            grain.size(),
            grain.phase()
        );
        format!("note {rule} {name}: {found}: no size is preferred; see trueline explain {rule}")
    })
}

/// Image files of which the bytes are served, not those of the disk in them.
pub(super) fn containers(graph: &Graph) -> impl Iterator<Item = String> {
    let signs = graph
        .providers
        .iter()
        .flat_map(|provider| provider.in_use().map(move |sign| (provider, sign)));
    signs.filter(|(_, sign)| sign.inside == Inside::CONTAINER).map(|(provider, sign)| {
        let (rule, name, kind) = (finding::OPAQUE.id, words::name(&provider.name), sign.kind);
        format!(
            "note {rule} {name}: {kind} container: its own bytes are served, not the disk in \
            it; qemu-nbd serves that"
        )
    })
}

/// The target, if some or nothing of it can be written.
pub(super) fn read_only(graph: &Graph, id: Id) -> impl Iterator<Item = String> {
    let provider = &graph.providers[id];
    let name = words::name(&provider.name);
    let route = provider.route();
    let whole =
        route.read_only().map(|reason| format!("note: {name} is served read-only: {reason}"));
    let part = || route.read_only_in_part().map(|reason| format!("note: {name}: {reason}"));
    whole.or_else(part).into_iter()
}

/// Providers that are served as they are because members of their set are missing.
pub(super) fn members(graph: &Graph) -> impl Iterator<Item = String> {
    let missed = graph.incomplete.iter().filter(|set| graph.find(&set.provider).is_none());
    missed.map(|set| {
        let name = set
            .here
            .first()
            .map_or_else(String::new, |(id, _)| words::name(&graph.providers[*id].name));
        format!("note {} {name}: {set}: what is here is served by itself", finding::INCOMPLETE.id)
    })
}
