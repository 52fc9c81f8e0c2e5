//! Requests to a disk that were seen elsewhere, counted by layer as a server counts its own.

use super::provider_registry::ProviderRegistry;
use super::{LayerCounts, layer};
use crate::layer::counted::LayerOnDisk;
use trueline_geom::audit::io::{IoAudit, IoKind, JudgedRequest, Tally};
use trueline_geom::graph::{Graph, Id};

/// A request that was counted, with the layer that it begins in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedRequest {
    /// The verdict on the request.
    pub judged: JudgedRequest,
    /// Number of the layer's provider in what is counted.
    pub layer: usize,
    /// First byte of the layer, in the bytes of the provider whose requests are seen.
    pub start: u64,
}

/// Counters of one provider whose requests are seen by another than a server.
pub struct ObservedProvider {
    audit: IoAudit,
    registry: ProviderRegistry,
    /// A tally a cell of the audit; `None` without requests.
    cells: Vec<Option<Tally>>,
}

impl ObservedProvider {
    /// Counters for requests to provider `id` of `graph`, without any yet.
    pub fn new(graph: &Graph, id: Id) -> ObservedProvider {
        let mut registry = ProviderRegistry::default();
        // The first tasting has limits of its own.
        let numbers = registry.number(graph).unwrap_or_default();
        let audit = IoAudit::new(graph, id).numbered(&numbers);
        let cells = vec![None; audit.cells()];
        ObservedProvider { audit, registry, cells }
    }

    /// The verdict on a request, which is not counted; `None` if it begins outside the provider.
    pub fn judge(&self, kind: IoKind, offset: u64, length: u64) -> Option<JudgedRequest> {
        let mut judged = None;
        self.audit.judge(kind, offset, length, &mut |_, seen| judged = judged.or(seen.request));
        judged
    }

    /// Counts a request, and returns its verdict and its layer; `None` if it begins outside the
    /// provider.
    pub fn count(&mut self, kind: IoKind, offset: u64, length: u64) -> Option<CountedRequest> {
        let (cells, mut counted) = (&mut self.cells, None);
        self.audit.judge(kind, offset, length, &mut |cell, seen| {
            counted = counted.or(seen.request.map(|judged| (cell, judged)));
            cells[cell].get_or_insert_default().add(seen);
        });
        let (cell, judged) = counted?;
        let layer = &self.audit.layers()[self.audit.cell(cell).0];
        Some(CountedRequest { judged, layer: layer.provider, start: layer.start })
    }

    /// The first byte of every part of the provider, ascending, and the first byte of the layer
    /// that requests there begin in.
    pub fn parts(&self) -> Vec<(u64, u64)> {
        self.audit.parts().map(|(start, layer)| (start, layer.start)).collect()
    }

    /// Counts so far, of each layer on each disk that requests reached.
    pub fn layers(&self) -> Vec<LayerCounts> {
        let counted = self.cells.iter().enumerate();
        counted
            .filter_map(|(cell, tally)| {
                let (nth_layer, nth) = self.audit.cell(cell);
                let medium = self.audit.media()[nth].clone();
                let place =
                    LayerOnDisk { layer: self.audit.layers()[nth_layer].clone(), nth, medium };
                Some(layer(&self.registry, &place, tally.clone()?))
            })
            .collect()
    }
}
