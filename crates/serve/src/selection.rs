//! What is served under which name: the provider that was named, by no name, and everything that stands on it, by its own.

use super::layers::Layers;
use super::overlay::Overlays;
use crate::command::serve::args::Serve;
use crate::command::serve::args::range::Range;
use crate::failure::Failure;
use crate::words;
use std::sync::Arc;
use trueline_geom::base::finding;
use trueline_geom::base::store::Store;
use trueline_geom::base::topology::Topology;
use trueline_geom::base::topology::boundaries::boundaries;
use trueline_geom::format::Inside;
use trueline_geom::graph::{Graph, Id};
use trueline_serve::export::{BlockSizes, Export, Exports};
use trueline_serve::layer::offset::Offset;

/// The exports of `graph`, of which `id` is the default one; of a range of it, that alone.
pub(super) fn of(graph: &Graph, id: Id, layers: &Layers, overlays: Option<&Overlays>, args: &Serve) -> Result<Exports, Failure> {
    let over = |id: Id, export: Export| Export { overlay: overlays.map(|overlays| overlays.of(graph, id)), ..export };
    let default = over(id, one(graph, id, &args.network.export, layers, args));
    if let Some(range) = args.offset {
        return cut(range, default, &graph.providers[id].topology).map(|export| Exports(vec![export]));
    }
    let mut kept = vec![id];
    for next in id + 1..graph.providers.len() {
        if graph.providers[next].parents.iter().any(|parent| kept.contains(parent)) {
            kept.push(next);
        }
    }
    // Its own name finds the default export too.
    let name = |id: Id| &graph.providers[id].name;
    let named = kept.iter().filter(|&&id| !name(id).is_empty() && *name(id) != args.network.export);
    let named = named.map(|&id| over(id, one(graph, id, name(id), layers, args)));
    Ok(Exports(std::iter::once(default).chain(named).collect()))
}

/// A range of an export, whose boundaries are `topology`.
fn cut(range: Range, export: Export, topology: &Topology) -> Result<Export, Failure> {
    let length = range.of(export.store.length())?;
    let part = |store: Arc<dyn Store>| Offset::new(store, range.start, length).map(|part| Arc::new(part) as Arc<dyn Store>);
    let outside = || Failure::Message(format!("--offset {}+{length}: outside the target", range.start));
    let (store, topology) = (part(export.store).ok_or_else(outside)?, topology.shift(range.start, length));
    Ok(Export {
        description: format!("{length} bytes from byte {} of {}", range.start, export.description),
        sizes: BlockSizes::of(&topology, &*store),
        boundaries: boundaries(&topology),
        overlay: export.overlay.and_then(part),
        store,
        ..export
    })
}

/// Exports whose units begin where the protocol cannot say: a line for each.
pub(super) fn unsaid(exports: &Exports) -> impl Iterator<Item = String> {
    let named = exports.0.len() > 1;
    let odd = exports.0.iter().filter_map(|export| export.unit().filter(|grain| !grain.contains(0)).map(|grain| (export, grain)));
    // The default export is told under its own name, if it has one.
    let odd = odd.filter(move |(export, _)| !named || !export.name.is_empty());
    odd.map(|(export, grain)| {
        let (rule, name) = (finding::UNSAID.id, words::name(&export.name));
        let found = format!("{}-byte units begin at byte {} of it, which NBD cannot say", grain.size(), grain.phase());
        format!("note {rule} {name}: {found}: no size is preferred; see trueline explain {rule}")
    })
}

/// What is served that is not what it looks like: the bytes of an image file of a disk, not those of the disk.
pub(super) fn containers(graph: &Graph) -> impl Iterator<Item = String> {
    let signs = graph.providers.iter().flat_map(|provider| provider.in_use().map(move |sign| (provider, sign)));
    signs.filter(|(_, sign)| sign.inside == Inside::CONTAINER).map(|(provider, sign)| {
        let name = words::name(&provider.name);
        format!(
            "note {} {name}: {} container: its own bytes are served, not the disk in it; qemu-nbd serves that",
            finding::OPAQUE.id,
            sign.kind
        )
    })
}

/// Providers that are served as they are because members of their set are missing.
pub(super) fn members(graph: &Graph) -> impl Iterator<Item = String> {
    let missed = graph.incomplete.iter().filter(|set| graph.find(&set.provider).is_none());
    missed.map(|set| {
        let name = set.here.first().map_or_else(String::new, |(id, _)| words::name(&graph.providers[*id].name));
        format!("note {} {name}: {set}: what is here is served by itself", finding::INCOMPLETE.id)
    })
}

fn one(graph: &Graph, id: Id, name: &str, layers: &Layers, args: &Serve) -> Export {
    let provider = &graph.providers[id];
    let signs: Vec<&str> = provider.in_use().map(|sign| sign.kind.name).collect();
    let what = if signs.is_empty() { provider.class.to_owned() } else { signs.join(" and ") };
    let store = layers.over(graph, id);
    Export {
        name: name.into(),
        description: format!("{} of {}: {what}", words::name(&provider.name), args.target),
        sizes: BlockSizes::of(&provider.topology, &*store),
        store,
        // Zeroes stand on no disk that could be written.
        read_only: args.read_only || !provider.route().has_stores(),
        rotational: layers.rotational(),
        boundaries: boundaries(&provider.topology),
        errors: layers.errors(),
        overlay: None,
        refusals: layers.refusals(graph, id),
    }
}
