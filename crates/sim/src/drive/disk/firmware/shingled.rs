//! `shingled`: drive-managed shingled tracks. Whole bands are written where they belong. All other
//! data go to the media cache, where tracks do not overlap, and are merged into their bands later.

use super::{Extent, Firmware, Geometry, LIVE, Reason, Taken, Target, WriteCache};
use trueline_geom::base::topology::round_down;

/// Bands of overlapping tracks, of one size: the ranges of the medium that are only written whole.
#[derive(Clone, Copy, Debug)]
pub(in crate::drive::disk) struct Bands {
    /// The first byte of the first band, behind the media cache.
    pub(in crate::drive::disk) first: u64,
    /// The size of a band in bytes.
    pub(in crate::drive::disk) bytes: u64,
    /// The end of the last band, which may be shorter.
    pub(in crate::drive::disk) end: u64,
}

impl Bands {
    /// The first byte of the band that contains `at`.
    pub(in crate::drive::disk) fn begin(&self, at: u64) -> u64 {
        self.first + round_down(at.saturating_sub(self.first), self.bytes)
    }

    /// The end of the band that contains `at`.
    pub(in crate::drive::disk) fn end(&self, at: u64) -> u64 {
        (self.begin(at) + self.bytes).min(self.end)
    }

    /// True if all of a band lies in `start..end`.
    fn holds_one(&self, start: u64, end: u64) -> bool {
        let next = if self.begin(start) == start { start } else { self.end(start) };
        next < end && self.end(next) <= end
    }
}

/// The personality `shingled` with its bands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shingled {
    pub(super) bands: Bands,
    /// The most bytes of one write to the media cache.
    pub(super) most: u64,
}

impl Firmware for Shingled {
    fn merges(&self, _before: &Extent) -> bool {
        true
    }

    fn waits(&self, start: u64, extent: &Extent) -> bool {
        extent.streak >= LIVE && !self.bands.holds_one(start, extent.end)
    }

    fn gather(
        &self,
        writes: &mut WriteCache,
        start: u64,
        reason: Reason,
        geometry: &Geometry,
        taken: &mut Vec<Taken>,
    ) -> Target {
        let extent_end = |writes: &WriteCache| writes.get(start).map(|extent| extent.end);
        let band_end = self.bands.end(start);
        if self.bands.begin(start) == start && extent_end(writes) >= Some(band_end) {
            writes.take(start, band_end, geometry, taken);
            return Target::Home;
        }
        let small = |start: u64, extent: &Extent| {
            !self.bands.holds_one(start, extent.end)
                && (reason.forced || !self.waits(start, extent))
        };
        let mut room = reason.log_room.min(self.most);
        let mut next = extent_end(writes).map(|end| (start, end));
        while let Some((from, end)) = next.filter(|_| room > 0) {
            // What is in the media cache belongs to one band, with which it is merged.
            let to = end.min(self.bands.end(from)).min(from + room);
            room -= to - from;
            writes.take(from, to, geometry, taken);
            next = writes.oldest(&small).map(|(start, extent)| (start, extent.end));
        }
        taken.sort_unstable_by_key(|taken| taken.start);
        Target::Log
    }
}
