//! What was written and is not yet on the medium: disjoint extents of bytes with the order in which they came.

use super::geometry::{Geometry, Place};
use super::mechanism::Mechanism;
use crate::model::disk::Order;
use crate::time::Ps;
use std::collections::BTreeMap;

/// Dirty bytes, from the key under which they are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) end: u64,
    /// When the oldest data that it stands for came, as a count of writes: it, or what it overwrote.
    pub(super) seq: u64,
    /// How many commands that each went on where the last ended it grew from.
    pub(super) streak: u32,
    /// Bytes of that stream so far, on the medium or not.
    pub(super) streamed: u64,
    /// Where its first byte lies: where it belongs, or in the log.
    pub(super) at: u64,
    /// Where the first physical sector is that it belongs to.
    place: Place,
}

/// A part of the cache on its way to the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) seq: u64,
    /// Where its first byte lies: where it belongs, or in the log.
    pub(super) at: u64,
}

/// The interval map.
#[derive(Debug)]
pub(super) struct WriteCache {
    sector: u64,
    extents: BTreeMap<u64, Extent>,
    bytes: u64,
    /// Extents that are at least as old as this are counted: a flush waits for them.
    barrier: u64,
    covered: usize,
}

impl WriteCache {
    pub(super) fn new(sector: u64) -> WriteCache {
        WriteCache { sector, extents: BTreeMap::new(), bytes: 0, barrier: 0, covered: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.extents.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// Dirty bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts from now on the extents that came up to the `seq`th write: 0 for none.
    pub(super) fn cover(&mut self, seq: u64) {
        self.barrier = seq;
        self.covered = self.extents.values().filter(|extent| extent.seq <= seq).count();
    }

    /// How many of those that are counted there still are.
    pub(super) fn left(&self) -> usize {
        self.covered
    }

    /// The extent that begins at `start`.
    pub(super) fn get(&self, start: u64) -> Option<&Extent> {
        self.extents.get(&start)
    }

    /// The extent that ends at `end`.
    pub(super) fn ends_at(&self, end: u64) -> Option<&Extent> {
        self.extents.range(..end).next_back().map(|(_, extent)| extent).filter(|extent| extent.end == end)
    }

    /// Extents that begin in `from..to`, in order.
    pub(super) fn within(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, &Extent)> {
        self.extents.range(from..to.max(from)).map(|(&start, extent)| (start, extent))
    }

    /// The oldest extent that `accept` lets through.
    pub(super) fn oldest(&self, accept: &dyn Fn(u64, &Extent) -> bool) -> Option<(u64, &Extent)> {
        let accepted = self.extents.iter().map(|(&start, extent)| (start, extent)).filter(|(start, extent)| accept(*start, extent));
        accepted.min_by_key(|(_, extent)| extent.seq)
    }

    /// As far as it holds everything from `at` on.
    pub(super) fn covered(&self, mut at: u64) -> u64 {
        while let Some((_, extent)) = self.extents.range(..=at).next_back().filter(|(_, extent)| at < extent.end) {
            at = extent.end;
        }
        at
    }

    fn put(&mut self, start: u64, extent: Extent) {
        self.bytes += extent.end - start;
        self.covered += usize::from(extent.seq <= self.barrier);
        self.extents.insert(start, extent);
    }

    fn remove(&mut self, start: u64) -> Option<Extent> {
        let extent = self.extents.remove(&start)?;
        self.covered -= usize::from(extent.seq <= self.barrier);
        self.bytes -= extent.end - start;
        Some(extent)
    }

    /// Drops whatever is in `start..end`: how many bytes, and the oldest arrival among them.
    pub(super) fn cut(&mut self, start: u64, end: u64, geometry: &Geometry) -> (u64, u64) {
        let (mut dropped, mut oldest) = (0, u64::MAX);
        // From the last that begins before `end` back to the first that reaches over `start`.
        while let Some((own, extent)) = self.extents.range(..end).next_back().map(|(&own, &extent)| (own, extent)) {
            if extent.end <= start {
                break;
            }
            self.remove(own);
            if own < start {
                self.put(own, Extent { end: start, ..extent });
            }
            if extent.end > end {
                self.put(end, self.rest(own, end, &extent, geometry));
            }
            dropped += extent.end.min(end) - own.max(start);
            oldest = oldest.min(extent.seq);
            if own < start {
                break;
            }
        }
        (dropped, oldest)
    }

    /// Takes in `start..end`, the `seq`th write, and says how many dirty bytes it overwrote. With an extent that ends where it begins it
    /// becomes one if `merge` says so.
    pub(super) fn insert(&mut self, start: u64, end: u64, seq: u64, merge: &dyn Fn(&Extent) -> bool, geometry: &Geometry) -> u64 {
        let last = |writes: &WriteCache, end| writes.extents.range(..end).next_back().map(|(&own, &extent)| (own, extent));
        // Mostly nothing is overwritten, and what ends last before `end` is what ends before `start`.
        let (mut before, mut overwritten, mut seq) = (last(self, end), 0, seq);
        if before.is_some_and(|(_, extent)| extent.end > start) {
            let (dropped, oldest) = self.cut(start, end, geometry);
            // A flush that waits for what was overwritten waits for what took its place: else neither would be on the medium.
            (before, overwritten, seq) = (last(self, start), dropped, seq.min(oldest));
        }
        match before.filter(|(_, extent)| extent.end == start && merge(extent)) {
            Some((own, extent)) => {
                self.remove(own);
                let streamed = extent.streamed + (end - start);
                self.put(own, Extent { end, seq: seq.min(extent.seq), streak: extent.streak.saturating_add(1), streamed, ..extent });
            }
            None => {
                let place = geometry.locate(start / self.sector);
                self.put(start, Extent { end, seq, streak: 1, streamed: end - start, at: start, place });
            }
        }
        self.check();
        overwritten
    }

    /// Takes in what was written to the log, in place of what was there of it before.
    pub(super) fn log(&mut self, taken: &Taken, geometry: &Geometry) {
        let Taken { start, end, seq, at } = *taken;
        self.cut(start, end, geometry);
        self.put(start, Extent { end, seq, streak: 1, streamed: end - start, at, place: geometry.locate(start / self.sector) });
        self.check();
    }

    /// From `at` to `end`, what lies together: where its first byte lies, if here, and where it ends.
    pub(super) fn lies(&self, at: u64, end: u64) -> (Option<u64>, u64) {
        let before = self.extents.range(..=at).next_back().filter(|(_, extent)| at < extent.end);
        match before {
            Some((start, extent)) => (Some(extent.at + (at - start)), extent.end.min(end)),
            None => (None, self.extents.range(at..end.max(at)).next().map_or(end, |(&start, _)| start)),
        }
    }

    /// Takes the beginning of the extent at `start` out, up to `end`.
    pub(super) fn take(&mut self, start: u64, end: u64, geometry: &Geometry, taken: &mut Vec<Taken>) {
        let Some(extent) = self.remove(start) else { return };
        if extent.end > end {
            self.put(end, self.rest(start, end, &extent, geometry));
        }
        taken.push(Taken { start, end: extent.end.min(end), seq: extent.seq, at: extent.at });
    }

    /// What is left from `from` on of the extent at `start`.
    fn rest(&self, start: u64, from: u64, extent: &Extent, geometry: &Geometry) -> Extent {
        Extent { at: extent.at + (from - start), place: geometry.locate(from / self.sector), ..*extent }
    }

    /// The extent to destage first, of those that `accept` lets through.
    pub(super) fn choose(&self, order: Order, now: Ps, mechanism: &Mechanism, accept: &dyn Fn(u64, &Extent) -> bool) -> Option<u64> {
        let head = mechanism.next_sector().saturating_mul(self.sector);
        let accepted = |(start, extent): &(&u64, &Extent)| accept(**start, extent);
        match order {
            Order::Fifo => self.oldest(accept).map(|(start, _)| start),
            Order::CLook => {
                let up = self.extents.range(head..).find(accepted);
                up.or_else(|| self.extents.range(..head).find(accepted)).map(|(&start, _)| start)
            }
            Order::Sptf => self.nearest(now, head, mechanism, accept),
        }
    }

    /// The extent whose first sector comes under the head first. From where the head is outwards; where the seek alone takes longer
    /// than the best so far, nothing farther can be better.
    fn nearest(&self, now: Ps, head: u64, mechanism: &Mechanism, accept: &dyn Fn(u64, &Extent) -> bool) -> Option<u64> {
        let (mut best, mut chosen) = (Ps::MAX, None);
        let angle = mechanism.angle(now);
        let goes_on = mechanism.continues(mechanism.next_sector(), true);
        let mut look = |start: u64, extent: &Extent| {
            if best == 0 {
                return false;
            }
            let continues = goes_on && start >= head && start - head < self.sector;
            let ready = mechanism.ready(&extent.place, continues, true);
            if ready >= best {
                // On the arm's own cylinder another head is not farther than this one.
                return extent.place.cylinder == mechanism.cylinder();
            }
            let cost = ready + mechanism.turn(angle, ready, &extent.place);
            if cost < best && accept(start, extent) {
                (best, chosen) = (cost, Some(start));
            }
            true
        };
        for (&start, extent) in self.extents.range(head..) {
            if !look(start, extent) {
                break;
            }
        }
        for (&start, extent) in self.extents.range(..head).rev() {
            if !look(start, extent) {
                break;
            }
        }
        chosen
    }

    /// What must be so of the map; looked at in debug builds.
    fn check(&self) {
        if !cfg!(debug_assertions) || self.extents.len() > 64 {
            return;
        }
        let mut end = 0;
        for (&start, extent) in &self.extents {
            debug_assert!(end <= start && start < extent.end, "extents overlap at {start}");
            end = extent.end;
        }
        debug_assert_eq!(self.covered, self.extents.values().filter(|extent| extent.seq <= self.barrier).count());
        debug_assert_eq!(self.bytes, self.extents.iter().map(|(start, extent)| extent.end - start).sum::<u64>());
    }
}
