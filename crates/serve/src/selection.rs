//! The choice of exports: the provider that was named, as the default, and all that stands on it,
//! each by its own name.

use crate::error::Error;
use crate::export::{BlockSizes, Export, Exports, Outside, Range};
use crate::layer::offset::Offset;
use crate::layer::overlay::Overlays;
use crate::layer_stack::LayerStack;
use std::sync::Arc;
use trueline_geom::base::escape;
use trueline_geom::base::store::Store;
use trueline_geom::base::topology::Topology;
use trueline_geom::base::topology::announced::boundaries;
use trueline_geom::graph::{Graph, Id};

/// Exports that are wanted of a graph.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The target as its user names it, for descriptions.
    pub target: String,
    /// The name of the default export; mostly none.
    pub name: String,
    /// Bytes of the default export that are served instead of everything.
    pub range: Option<Range>,
    /// Refusal of all writes.
    pub read_only: bool,
}

impl Selection {
    /// The exports of `graph`, of which `id` is the default one, through `layers` and `overlays`.
    /// Of a range, that alone.
    pub fn exports(
        &self,
        graph: &Graph,
        id: Id,
        layers: &LayerStack,
        overlays: Option<&Overlays>,
    ) -> Result<Exports, Error> {
        let export = |id, name: &str| Export {
            overlay: overlays.map(|overlays| overlays.part(graph, id)),
            ..self.export(graph, id, name, layers)
        };
        let default = export(id, &self.name);
        if let Some(range) = self.range {
            return Ok(Exports(vec![cut(range, default, &graph.providers[id].topology)?]));
        }
        let mut kept = vec![id];
        for next in id + 1..graph.providers.len() {
            if graph.providers[next].parents.iter().any(|parent| kept.contains(parent)) {
                kept.push(next);
            }
        }
        // The default export has its own name, too.
        let name = |id: Id| &graph.providers[id].name;
        let named = kept.iter().filter(|&&id| !name(id).is_empty() && *name(id) != self.name);
        let named = named.map(|&id| export(id, name(id)));
        Ok(Exports(std::iter::once(default).chain(named).collect()))
    }

    /// Provider `id` as an export called `name`.
    fn export(&self, graph: &Graph, id: Id, name: &str, layers: &LayerStack) -> Export {
        let provider = &graph.providers[id];
        let signs: Vec<&str> = provider.in_use().map(|sign| sign.kind.name).collect();
        let content =
            if signs.is_empty() { provider.class.to_owned() } else { signs.join(" and ") };
        let own = escape::name(&provider.name);
        let store = layers.over(graph, id);
        Export {
            name: name.into(),
            description: format!("{own} of {}: {content}", self.target),
            sizes: BlockSizes::from_topology(&provider.topology, &*store),
            store,
            // Zeroes stand on no disk that could be written, and of some sets nothing is written.
            read_only: self.read_only
                || !provider.route().has_stores()
                || provider.route().read_only().is_some(),
            rotational: layers.rotational(),
            boundaries: boundaries(&provider.topology),
            errors: layers.errors(),
            overlay: None,
            refusals: layers.refusals(graph, id),
        }
    }
}

/// A range of an export, whose boundaries are `topology`.
fn cut(range: Range, export: Export, topology: &Topology) -> Result<Export, Outside> {
    let whole = export.store.length();
    let length = range.within(whole)?;
    let part = |store: Arc<dyn Store>| {
        Offset::new(store, range.start, length).map(|part| Arc::new(part) as Arc<dyn Store>)
    };
    let store = part(export.store).ok_or(Outside { range, length: whole })?;
    let topology = topology.shift(range.start, length);
    Ok(Export {
        description: format!("{length} bytes from byte {} of {}", range.start, export.description),
        sizes: BlockSizes::from_topology(&topology, &*store),
        boundaries: boundaries(&topology),
        overlay: export.overlay.and_then(part),
        store,
        ..export
    })
}
