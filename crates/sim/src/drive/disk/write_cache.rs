//! The write cache: dirty data as disjoint extents of bytes, with the order of their arrival.

use super::geometry::{Geometry, SectorPosition};
use super::mechanism::Mechanism;
use crate::model::disk::Order;
use crate::time::Ps;
use sorted::{Part, Sorted};

mod sorted;

/// A dirty extent; its key in the map is its first byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) end: u64,
    /// The arrival of the oldest data that it stands for, as a count of writes: its own, or that of
    /// data it overwrote.
    pub(super) seq: u64,
    /// The number of sequential commands that it grew from.
    pub(super) streak: u32,
    /// The bytes of that stream so far, including those already on the medium.
    pub(super) streamed: u64,
    /// The place of its first byte on the medium: at home, or in the log.
    pub(super) at: u64,
    /// The place of the first physical sector it belongs to.
    place: SectorPosition,
}

/// A part of the cache on its way to the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) seq: u64,
    /// The place of its first byte on the medium: at home, or in the log.
    pub(super) at: u64,
}

/// Sequential commands that make a stream live: no personality holds back what grew from fewer. A
/// single write whose tail waited would become two read-modify-writes.
pub(super) const LIVE: u32 = 2;

/// The map of dirty extents.
#[derive(Debug)]
pub(super) struct WriteCache {
    sector: u64,
    extents: Sorted<Extent>,
    bytes: u64,
    /// The number of extents that are live streams.
    live: usize,
    /// The last write covered by a flush: extents as old are counted in `covered`. 0: none.
    barrier: u64,
    covered: usize,
}

impl WriteCache {
    pub(super) fn new(sector: u64) -> WriteCache {
        WriteCache { sector, extents: Sorted::new(), bytes: 0, live: 0, barrier: 0, covered: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.extents.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.extents.len() == 0
    }

    /// The number of dirty bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of extents that a personality may hold back.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Starts counting the extents that arrived up to write `seq`; 0 for none.
    pub(super) fn cover(&mut self, seq: u64) {
        self.barrier = seq;
        self.covered = self.extents.from(0).filter(|(_, extent)| extent.seq <= seq).count();
    }

    /// The number of counted extents that are still dirty.
    pub(super) fn left(&self) -> usize {
        self.covered
    }

    /// The extent that begins at `start`, if there is one.
    pub(super) fn get(&self, start: u64) -> Option<&Extent> {
        self.extents.get(start)
    }

    /// The extent that ends at `end`, if there is one.
    pub(super) fn ends_at(&self, end: u64) -> Option<&Extent> {
        self.extents.last_before(end).map(|(_, extent)| extent).filter(|extent| extent.end == end)
    }

    /// The extents that begin in `from..to`, in order.
    pub(super) fn within(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, &Extent)> {
        self.extents.from(from).take_while(move |(start, _)| *start < to)
    }

    /// The oldest extent that `accept` allows.
    pub(super) fn oldest(&self, accept: &dyn Fn(u64, &Extent) -> bool) -> Option<(u64, &Extent)> {
        let accepted = self.extents.from(0).filter(|(start, extent)| accept(*start, extent));
        accepted.min_by_key(|(_, extent)| extent.seq)
    }

    /// The extent that contains byte `at`, with its first byte.
    fn holds(&self, at: u64) -> Option<(u64, &Extent)> {
        self.extents.last_before(at.saturating_add(1)).filter(|(_, extent)| at < extent.end)
    }

    /// The end of the dirty data that contain `at`; `at` if none do.
    pub(super) fn covered(&self, mut at: u64) -> u64 {
        while let Some(extent) = self.holds(at).map(|(_, extent)| extent) {
            at = extent.end;
        }
        at
    }

    fn put(&mut self, start: u64, extent: Extent) {
        self.bytes += extent.end - start;
        self.live += usize::from(extent.streak >= LIVE);
        self.covered += usize::from(extent.seq <= self.barrier);
        self.extents.insert(start, extent);
    }

    fn remove(&mut self, start: u64) -> Option<Extent> {
        let extent = self.extents.remove(start)?;
        self.covered -= usize::from(extent.seq <= self.barrier);
        self.live -= usize::from(extent.streak >= LIVE);
        self.bytes -= extent.end - start;
        Some(extent)
    }

    /// Drops all data in `start..end`. Returns their bytes, and the oldest arrival among them.
    pub(super) fn cut(&mut self, start: u64, end: u64, geometry: &Geometry) -> (u64, u64) {
        let (mut dropped, mut oldest) = (0, u64::MAX);
        // Backwards from the last extent that begins before `end` to the first that reaches past
        // `start`.
        while let Some((own, extent)) =
            self.extents.last_before(end).map(|(own, &extent)| (own, extent))
        {
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

    /// Adds `start..end` of write `seq`, and returns the dirty bytes it overwrote. If an extent
    /// ends at `start` and `merge` allows it, that one grows.
    pub(super) fn insert(
        &mut self,
        start: u64,
        end: u64,
        seq: u64,
        merge: &dyn Fn(&Extent) -> bool,
        geometry: &Geometry,
    ) -> u64 {
        let last = |writes: &WriteCache, end| {
            writes.extents.last_before(end).map(|(own, &extent)| (own, extent))
        };
        // Usually nothing is overwritten, and the last extent before `end` is the one before
        // `start`.
        let (mut before, mut overwritten, mut seq) = (last(self, end), 0, seq);
        if before.is_some_and(|(_, extent)| extent.end > start) {
            let (dropped, oldest) = self.cut(start, end, geometry);
            // A flush that waits for overwritten data waits for the data in their place: otherwise
            // neither would be on the medium.
            (before, overwritten, seq) = (last(self, start), dropped, seq.min(oldest));
        }
        match before.filter(|(_, extent)| extent.end == start && merge(extent)) {
            Some((own, extent)) => {
                let length = end - start;
                let (seq, before) = (seq.min(extent.seq), extent.seq);
                // The extent keeps its key. It is counted if its age, before or now, is within the
                // barrier.
                self.bytes += length;
                self.covered += usize::from(seq <= self.barrier && before > self.barrier);
                if let Some(grown) = self.extents.get_mut(own) {
                    let (streak, streamed) =
                        (extent.streak.saturating_add(1), extent.streamed + length);
                    self.live += usize::from(streak >= LIVE && extent.streak < LIVE);
                    *grown = Extent { end, seq, streak, streamed, ..extent };
                }
            }
            None => {
                let place = geometry.locate(start / self.sector);
                self.put(
                    start,
                    Extent { end, seq, streak: 1, streamed: end - start, at: start, place },
                );
            }
        }
        self.check();
        overwritten
    }

    /// Adds data that were written to the log, in place of older ones.
    pub(super) fn log(&mut self, taken: &Taken, geometry: &Geometry) {
        let Taken { start, end, seq, at } = *taken;
        self.cut(start, end, geometry);
        self.put(
            start,
            Extent {
                end,
                seq,
                streak: 1,
                streamed: end - start,
                at,
                place: geometry.locate(start / self.sector),
            },
        );
        self.check();
    }

    /// The contiguous data from `at` up to `end`: the place of the first byte, if it is here, and
    /// their end.
    pub(super) fn lies(&self, at: u64, end: u64) -> (Option<u64>, u64) {
        match self.holds(at) {
            Some((start, extent)) => (Some(extent.at + (at - start)), extent.end.min(end)),
            None => (None, self.extents.first_from(at).map_or(end, |(start, _)| start.min(end))),
        }
    }

    /// Removes the extent at `start` up to `end`, and appends what was removed to `taken`.
    pub(super) fn take(
        &mut self,
        start: u64,
        end: u64,
        geometry: &Geometry,
        taken: &mut Vec<Taken>,
    ) {
        let Some(extent) = self.remove(start) else { return };
        if extent.end > end {
            self.put(end, self.rest(start, end, &extent, geometry));
        }
        taken.push(Taken { start, end: extent.end.min(end), seq: extent.seq, at: extent.at });
    }

    /// The rest of the extent at `start`, from byte `from` on.
    fn rest(&self, start: u64, from: u64, extent: &Extent, geometry: &Geometry) -> Extent {
        Extent {
            at: extent.at + (from - start),
            place: geometry.locate(from / self.sector),
            ..*extent
        }
    }

    /// The extent to destage first, of those that `accept` allows.
    pub(super) fn choose(
        &self,
        order: Order,
        now: Ps,
        mechanism: &Mechanism,
        accept: &dyn Fn(u64, &Extent) -> bool,
    ) -> Option<u64> {
        let head = mechanism.next_sector().saturating_mul(self.sector);
        let accepted = |(start, extent): &(u64, &Extent)| accept(*start, extent);
        match order {
            Order::Fifo => self.oldest(accept).map(|(start, _)| start),
            Order::CLook => {
                let again =
                    || self.extents.from(0).take_while(|(start, _)| *start < head).find(accepted);
                self.extents.from(head).find(accepted).or_else(again).map(|(start, _)| start)
            }
            Order::Sptf => self.nearest(now, head, mechanism, accept),
        }
    }

    /// The extent whose first sector comes under the head first. The search goes outwards from the
    /// head, and ends where the seek alone takes longer than the best so far.
    fn nearest(
        &self,
        now: Ps,
        head: u64,
        mechanism: &Mechanism,
        accept: &dyn Fn(u64, &Extent) -> bool,
    ) -> Option<u64> {
        let (mut best, mut chosen, mut far) = (Ps::MAX, None, u32::MAX);
        let (angle, cylinder) = (mechanism.angle(now), mechanism.cylinder());
        let goes_on = mechanism.continues(mechanism.next_sector(), true);
        let mut look = |start: u64, extent: &Extent| {
            if best == 0 || extent.place.cylinder.abs_diff(cylinder) > far {
                return false;
            }
            // Rotation alone bounds the time from below, which spares most extents the rest.
            let round = mechanism.round(angle, &extent.place);
            if round < best {
                let continues = goes_on && start >= head && start - head < self.sector;
                let cost = mechanism.first(round, mechanism.ready(&extent.place, continues, true));
                if cost < best && accept(start, extent) {
                    (best, chosen, far) = (cost, Some(start), mechanism.beyond(cost));
                }
            }
            true
        };
        let (mut before, mut from) = self.extents.around(head);
        let up = |(starts, extents): Part<'_, Extent>| {
            starts.iter().zip(extents).all(|(&start, extent)| look(start, extent))
        };
        from.all(up);
        let down = |(starts, extents): Part<'_, Extent>| {
            starts.iter().zip(extents).rev().all(|(&start, extent)| look(start, extent))
        };
        before.all(down);
        chosen
    }

    /// Checks the invariants of the map in debug builds.
    fn check(&self) {
        if !cfg!(debug_assertions) || self.extents.len() > 64 {
            return;
        }
        let mut end = 0;
        for (start, extent) in self.extents.from(0) {
            debug_assert!(end <= start && start < extent.end, "extents overlap at {start}");
            end = extent.end;
        }
        debug_assert_eq!(
            self.covered,
            self.extents.from(0).filter(|(_, extent)| extent.seq <= self.barrier).count()
        );
        debug_assert_eq!(
            self.live,
            self.extents.from(0).filter(|(_, extent)| extent.streak >= LIVE).count()
        );
        debug_assert_eq!(
            self.bytes,
            self.extents.from(0).map(|(start, extent)| extent.end - start).sum::<u64>()
        );
    }
}
