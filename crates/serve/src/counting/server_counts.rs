//! Counts of a server, as one value: exports, and in each the providers that requests began in.

use crate::layer::counted::Waits;
use std::time::Duration;
use trueline_geom::audit::io::{IoKind, Tally};
use trueline_geom::base::finding::Rule;
use trueline_geom::base::topology::{Fact, Placement};
use trueline_geom::graph::Recognised;

/// Counts of all exports until some moment.
#[derive(Clone, Debug, Default)]
pub struct ServerCounts {
    /// Time since counting began.
    pub duration: Duration,
    /// The number of times that tasting again has found something else than before.
    pub generation: u64,
    /// Exports, in the order of the providers that were found first.
    pub exports: Vec<ExportCounts>,
}

/// Counts of one provider as it is exported, under however many names.
#[derive(Clone, Debug, Default)]
pub struct ExportCounts {
    /// The name of the provider.
    pub provider: String,
    /// Providers in which requests began, on each disk that they reached.
    pub layers: Vec<LayerCounts>,
    /// Flushes that were done.
    pub flushes: u64,
    /// Requests that waited for a device at one time, at most.
    pub most_waiting: u64,
    /// Requests that failed or were refused, in the order of [`IoKind::ALL`]. No other number has
    /// them.
    pub failed: [u64; IoKind::ALL.len()],
    /// The number of failed flushes.
    pub failed_flushes: u64,
    /// Latencies of requests that waited for a device, in the order of [`IoKind::ALL`], then of
    /// flushes.
    pub latencies: [Waits; IoKind::ALL.len() + 1],
}

/// Counts of requests to one export that began in one provider, as pieces on one disk.
#[derive(Clone, Debug)]
pub struct LayerCounts {
    /// The name of the deepest provider, as far as it was tasted, where the requests begin.
    pub provider: String,
    /// The provider's number: its place in the first graph, or a later one for what was found
    /// since.
    pub number: usize,
    /// False of a provider that the last tasting did not find.
    pub is_here: bool,
    /// The provider's content as it was found last.
    pub recognised: Recognised,
    /// The name of the disk that the pieces are on; empty where the disk has none.
    pub disk: String,
    /// The boundary of that disk by which pieces are judged.
    pub unit: Option<Fact>,
    /// Numbers of the providers beneath the uppermost set on the way to the disk: the member first,
    /// the disk last.
    pub members: Vec<usize>,
    /// The provider that leaves the grain; [`None`] where each begins on it.
    pub blame: Option<Blame>,
    /// Requests and pieces, by kind, verdict, size and alignment.
    pub tally: Tally,
}

/// A provider at which a stack leaves the grain.
#[derive(Clone, Debug, PartialEq)]
pub struct Blame {
    /// The name of the provider.
    pub provider: String,
    /// Bytes from the last boundary to the provider's first byte.
    pub remainder: u64,
    /// Bytes of its chunks, where it begins on a boundary and its chunks are no whole units.
    pub chunk: Option<u64>,
    /// The rule that it breaks.
    pub rule: &'static Rule,
}

impl ServerCounts {
    /// Counts of all layers of all exports.
    pub fn layers(&self) -> impl Iterator<Item = &LayerCounts> {
        self.exports.iter().flat_map(|export| &export.layers)
    }
}

impl LayerCounts {
    /// Requests of all kinds with a verdict.
    pub fn requests(&self, verdict: Placement) -> u64 {
        IoKind::ALL.iter().map(|&kind| self.tally.requests(kind, verdict)).sum()
    }
}
