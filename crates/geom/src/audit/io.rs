//! Audit of a workload: every request to a provider, piece by piece, judged on the disk that the
//! piece is on.
//!
//! A [`IoAudit`] is compiled once for a provider. It finds the layer that a request belongs to, the
//! deepest provider that was tasted where the request begins, and calls back with a [`JudgedPiece`]
//! for every piece on a disk. A [`Tally`] adds pieces and requests up; so may any other [`SLOTS`]
//! numbers, such as atomics shared by threads.
//!
//! # Pieces and requests
//! Each piece has its verdict, and the request the worst of them. A request is judged by the range
//! it asks for: one of a unit or more is never too small, however the stack cuts it, and it needs
//! the units that its own bytes fill.
//!
//! # Blame
//! Blame is static: for each layer and disk, the layer at which the stack leaves the grain. That is
//! the lowest one, from the disk up, from which on every layer begins off the grain: one that is
//! off beneath one that is on again is harmless. Where all begin on it, it is the lowest set whose
//! chunks are no whole units. A misaligned request is blamed on that layer if it would be aligned
//! were its own layer to begin on the grain; otherwise the client is to blame.

use crate::base::topology::{DeviceOps, Fact, Grain, Placement, largest_grain};
use crate::graph::{Graph, Id};
use crate::mapping::geom::Op;
use crate::mapping::route::{Piece, Route};

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IoKind {
    /// Read of bytes from the medium.
    Read,
    /// Write of bytes to the medium.
    Write,
    /// Discard of bytes that are not needed any more.
    Trim,
    /// Zeroing of bytes without sending them.
    Zero,
}

impl IoKind {
    /// All kinds of requests, in the order of their indices.
    pub const ALL: [IoKind; 4] = [IoKind::Read, IoKind::Write, IoKind::Trim, IoKind::Zero];

    /// Name used in JSON and metrics.
    pub fn name(self) -> &'static str {
        match self {
            IoKind::Read => "read",
            IoKind::Write => "write",
            IoKind::Trim => "trim",
            IoKind::Zero => "zero",
        }
    }

    /// Index of this kind in [`IoKind::ALL`].
    pub fn index(self) -> usize {
        match self {
            IoKind::Read => 0,
            IoKind::Write => 1,
            IoKind::Trim => 2,
            IoKind::Zero => 3,
        }
    }

    fn op(self) -> Op {
        if self == IoKind::Read { Op::Read } else { Op::Write }
    }
}

/// Provider whose requests are judged.
pub struct IoAudit {
    route: Route,
    media: Vec<Medium>,
    layers: Vec<Layer>,
    /// Starts of segments in the provider's bytes, ascending, the first at 0; `segments` has the
    /// layer of each.
    starts: Vec<u64>,
    segments: Vec<usize>,
}

/// Disk beneath the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Medium {
    /// Index among the graph's stores.
    pub store: usize,
    /// Id of the disk's provider; `None` if the graph has none for it.
    pub provider: Option<Id>,
    /// Boundary by which pieces on it are judged, in its own bytes; `None` if no unit is known.
    pub unit: Option<Fact>,
}

/// Provider in which requests may begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Id of the provider in the graph.
    pub provider: Id,
    /// First byte, in the bytes of the provider that is audited.
    pub start: u64,
    /// For each of [`IoAudit::media`], the provider at which the stack up to here leaves the grain;
    /// `None` where it does not.
    pub blamed: Vec<Option<Id>>,
    /// For each of [`IoAudit::media`], the providers beneath the topmost set on the way, from that
    /// set's member to the disk.
    pub members: Vec<Vec<Id>>,
}

/// One piece of a request, on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JudgedPiece {
    /// Kind of the request.
    pub kind: IoKind,
    /// Index of the store it is on.
    pub store: usize,
    /// Verdict against the disk's unit.
    pub fit: Placement,
    /// First byte on the disk.
    pub offset: u64,
    /// Length of the piece in bytes.
    pub length: u64,
    /// Device operations; none where no unit is known, and for requests that move no bytes.
    pub work: DeviceOps,
    /// True if it is misaligned because of the start of its layer, or of a set that cuts it.
    pub blamed: bool,
}

/// One request as a whole, after its pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JudgedRequest {
    /// Kind of the request.
    pub kind: IoKind,
    /// Worst verdict of its pieces.
    pub fit: Placement,
    /// Bytes that were asked for, however many copies of them there are.
    pub length: u64,
    /// True if it is misaligned because of the start of its layer, or of a set that cuts it.
    pub blamed: bool,
}

/// One call of an [`IoAudit`]: a piece of a request, the request after all its pieces, or both at
/// once where one piece is all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Piece of a request, if this call has one.
    pub piece: Option<JudgedPiece>,
    /// Request, if this call completes one; it counts for the disk of its first piece.
    pub request: Option<JudgedRequest>,
}

/// Number of classes of sizes and of alignments: below 512 bytes, from each power of two up to
/// below the next, from 1 MiB on.
pub const CLASSES: usize = 13;

/// The class of `bytes`, from 0.
pub fn class_of(bytes: u64) -> usize {
    let log = bytes.checked_ilog2().unwrap_or(0);
    usize::try_from(log).map_or(0, |log| log.saturating_sub(8).min(CLASSES - 1))
}

/// The least bytes of a class.
pub fn class_start(class: usize) -> u64 {
    if class == 0 { 0 } else { 256 << class.min(CLASSES - 1) }
}

/// The class of the largest power of two that divides `byte`; for 0 the last class.
pub fn alignment_of(byte: u64) -> usize {
    largest_grain(byte).map_or(CLASSES - 1, class_of)
}

impl IoAudit {
    /// An audit of requests to provider `id` of `graph`.
    pub fn new(graph: &Graph, id: Id) -> IoAudit {
        let route = graph.providers[id].route().clone();
        let mut stores = Vec::new();
        route.stores(&mut stores);
        let media: Vec<Medium> = stores.into_iter().map(|store| medium(graph, store)).collect();
        let parts = parts(graph, id);
        let mut edges: Vec<u64> = parts.iter().flat_map(|part| [part.start, part.end]).collect();
        edges.sort_unstable();
        edges.dedup();
        let (mut layers, mut starts, mut segments): (Vec<Layer>, _, _) =
            (Vec::new(), vec![], vec![]);
        for at in edges {
            // Of several that overlap at the same depth, the first in the table.
            let here = parts.iter().rev().filter(|part| (part.start..part.end).contains(&at));
            let Some(part) = here.max_by_key(|part| part.depth) else { continue };
            let known = layers.iter().position(|layer| layer.provider == part.provider);
            let layer = known.unwrap_or(layers.len());
            if known.is_none() {
                let blamed =
                    media.iter().map(|medium| blame(graph, part.provider, medium)).collect();
                let members = media
                    .iter()
                    .map(|medium| members(graph, part.provider, medium.store))
                    .collect();
                layers.push(Layer { provider: part.provider, start: part.start, blamed, members });
            }
            if segments.last() != Some(&layer) {
                starts.push(at);
                segments.push(layer);
            }
        }
        IoAudit { route, media, layers, starts, segments }
    }

    /// This audit with other ids for providers: `numbers` has the new id of each of the graph's.
    #[must_use]
    pub fn numbered(mut self, numbers: &[Id]) -> IoAudit {
        let number = |id: Id| numbers.get(id).copied().unwrap_or(id);
        for layer in &mut self.layers {
            layer.provider = number(layer.provider);
            layer.blamed.iter_mut().flatten().for_each(|blamed| *blamed = number(*blamed));
            layer.members.iter_mut().flatten().for_each(|member| *member = number(*member));
        }
        self.media
            .iter_mut()
            .filter_map(|medium| medium.provider.as_mut())
            .for_each(|id| *id = number(*id));
        self
    }

    /// True if both judge every request alike, provided that equal ids mean equal providers.
    pub fn agrees(&self, other: &IoAudit) -> bool {
        let parts = |watch: &IoAudit| {
            (watch.route.length(), watch.media.clone(), watch.layers.clone(), watch.starts.clone())
        };
        parts(self) == parts(other) && self.segments == other.segments
    }

    /// Disks beneath the provider.
    pub fn media(&self) -> &[Medium] {
        &self.media
    }

    /// Providers in which requests begin.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The first byte of every part of the provider, ascending, and the layer that it belongs to.
    pub fn parts(&self) -> impl Iterator<Item = (u64, &Layer)> {
        let layers = self.segments.iter().filter_map(|&nth| self.layers.get(nth));
        self.starts.iter().copied().zip(layers)
    }

    /// Number of cells: layers times disks.
    pub fn cells(&self) -> usize {
        self.layers.len() * self.media.len()
    }

    /// The indices in [`IoAudit::layers`] and [`IoAudit::media`] of a cell.
    pub fn cell(&self, cell: usize) -> (usize, usize) {
        let media = self.media.len().max(1);
        (cell / media, cell % media)
    }

    /// Calls `see` with every piece of a request and the cell it belongs to, then with the request.
    /// A range outside the provider has no pieces and no request.
    pub fn judge(&self, kind: IoKind, offset: u64, length: u64, see: &mut dyn FnMut(usize, &Seen)) {
        let segment = self.starts.partition_point(|&start| start <= offset).checked_sub(1);
        let Some(nth) = segment.and_then(|segment| self.segments.get(segment)).copied() else {
            return;
        };
        let Some(layer) = self.layers.get(nth) else { return };
        let mut whole: Option<(usize, JudgedRequest)> = None;
        // A plain range of a disk has no copies: a piece as long as the request is all of it.
        let plain = self.route.medium().is_some();
        // The callback never fails. A request that fails has no pieces to judge.
        let _ = self.route.extents(offset, length, kind.op(), &mut |before, piece| {
            let Piece::Store { store, offset: byte, length: bytes } = piece else { return Ok(()) };
            if let Some(medium) = self.media.iter().position(|medium| medium.store == store) {
                let mark = self.mark(kind, layer, medium, (byte, bytes), (before, offset, length));
                let cell = nth * self.media.len() + medium;
                let request = JudgedRequest { kind, fit: mark.fit, length, blamed: mark.blamed };
                if plain && bytes == length {
                    see(cell, &Seen { piece: Some(mark), request: Some(request) });
                    return Ok(());
                }
                see(cell, &Seen { piece: Some(mark), request: None });
                let (_, request) = whole.get_or_insert((cell, request));
                request.fit = request.fit.worse(mark.fit);
                request.blamed |= mark.blamed;
            }
            Ok(())
        });
        if let Some((cell, request)) = whole {
            see(cell, &Seen { piece: None, request: Some(request) });
        }
    }

    /// The judged form of a piece: (first byte, bytes) on a disk, of a request: (bytes before the
    /// piece, first byte, bytes).
    fn mark(
        &self,
        kind: IoKind,
        layer: &Layer,
        medium: usize,
        piece: (u64, u64),
        request: (u64, u64, u64),
    ) -> JudgedPiece {
        let ((offset, length), (before, from, bytes)) = (piece, request);
        let store = self.media[medium].store;
        let mark =
            |fit, work, blamed| JudgedPiece { kind, store, fit, offset, length, work, blamed };
        let Some(grain) = self.media[medium].unit.map(|unit| unit.grain) else {
            return mark(Placement::Unknown, DeviceOps::default(), false);
        };
        let fit = grain.fit_piece(offset, length, bytes);
        let moves = matches!(kind, IoKind::Read | IoKind::Write);
        let work = if moves {
            grain.work_piece(offset, length, before, kind == IoKind::Write)
        } else {
            DeviceOps::default()
        };
        let own = Grain::new(grain.size(), layer.start)
            .filter(|_| fit == Placement::Misaligned && layer.blamed[medium].is_some());
        mark(fit, work, own.is_some_and(|own| own.fit(from, bytes) == Placement::Aligned))
    }
}

/// The disk of the store with index `store`, as far as the graph knows it.
fn medium(graph: &Graph, store: usize) -> Medium {
    let whole = |id: &Id| {
        graph.providers[*id].parents.is_empty()
            && graph.providers[*id].route().medium() == Some(store)
    };
    let provider = (0..graph.providers.len()).find(whole);
    Medium {
        store,
        provider,
        unit: provider.and_then(|id| graph.providers[id].topology.unit().copied()),
    }
}

/// Provider on the audited one, in whose bytes it is `start..end`.
struct Part {
    provider: Id,
    start: u64,
    end: u64,
    /// Number of layers beneath it, and false for an extended partition: logical partitions, which
    /// stand beside it, win.
    depth: (usize, bool),
}

/// Parts of provider `id`: itself, and every provider that is a plain range of it.
fn parts(graph: &Graph, id: Id) -> Vec<Part> {
    let whole = &graph.providers[id];
    let mut parts = vec![Part {
        provider: id,
        start: 0,
        end: whole.topology.length,
        depth: (whole.depth, true),
    }];
    for next in id + 1..graph.providers.len() {
        let p = &graph.providers[next];
        let under = p
            .parents
            .first()
            .filter(|_| !p.is_set)
            .and_then(|parent| parts.iter().find(|part| part.provider == *parent));
        if let Some(under) = under {
            // A provider that claims to reach past the one beneath it ends with that.
            let start = p.base().saturating_sub(whole.base()).clamp(under.start, under.end);
            let end = start.saturating_add(p.topology.length).min(under.end);
            parts.push(Part { provider: next, start, end, depth: (p.depth, !p.is_extended()) });
        }
    }
    parts
}

/// The provider at which the stack up to `id` leaves the grain of `medium`; `None` if it does not.
/// A disk whose units begin behind its first byte is not to blame for a partition, which could
/// begin on one.
fn blame(graph: &Graph, id: Id, medium: &Medium) -> Option<Id> {
    let unit = medium.unit?;
    let is_off = |&id: &Id| graph.providers[id].topology.begins_on(unit.why) == Some(false);
    let mut blamed = None;
    let mut at = Some(id).filter(is_off);
    while let Some(off) = at {
        blamed = Some(off);
        let moves =
            |&id: &Id| graph.providers[off].is_set || !graph.providers[id].parents.is_empty();
        at = under(graph, off, medium.store).filter(moves).filter(is_off);
    }
    let cuts = |&id: &Id| {
        graph.providers[id].is_set && graph.providers[id].topology.cut(unit.grain.size()).is_some()
    };
    blamed.or_else(|| path(graph, id, medium.store).into_iter().rev().find(cuts))
}

/// Provider `id` and all providers beneath it on the way to `store`, the disk last.
fn path(graph: &Graph, id: Id, store: usize) -> Vec<Id> {
    std::iter::successors(Some(id), |&id| under(graph, id, store)).collect()
}

/// The part of [`path`] beneath the topmost set: its member, and so on down to the disk.
fn members(graph: &Graph, id: Id, store: usize) -> Vec<Id> {
    let path = path(graph, id, store);
    let set = path.iter().position(|&id| graph.providers[id].is_set);
    set.map_or(Vec::new(), |set| path[set + 1..].to_vec())
}

/// The provider beneath `id` that leads to `store`; of a set, the member on it.
fn under(graph: &Graph, id: Id, store: usize) -> Option<Id> {
    graph.providers[id].parents.iter().copied().find(|&parent| {
        let mut stores = Vec::new();
        graph.providers[parent].route().stores(&mut stores);
        stores.contains(&store)
    })
}

mod tally;

pub use tally::{Bucket, SLOTS, Tally};

#[cfg(test)]
#[path = "io/tests.rs"]
mod tests;
