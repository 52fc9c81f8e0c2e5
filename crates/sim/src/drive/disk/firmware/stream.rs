//! `stream`: adjacent extents are written together. Cuts are made between physical sectors, and the
//! ragged tail of a live stream waits for its other half, so a stream loses a revolution only at
//! its ends.

use super::{Extent, Firmware, Geometry, LIVE, Reason, Taken, Target, WriteCache};
use trueline_geom::base::topology::{is_whole, round_down};

/// The personality `stream` with its bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    pub(super) sector: u64,
    /// The most bytes of one destage.
    pub(super) most: u64,
    /// Bytes after which a stream is closed and its tail written as it is; 0: never.
    pub(super) segment: u64,
}

impl Stream {
    /// True if the stream has reached its segment's length.
    fn closed(&self, extent: &Extent) -> bool {
        self.segment > 0 && extent.streamed >= self.segment
    }

    /// True if the tail of an extent may wait for its other half.
    fn lives(&self, extent: &Extent) -> bool {
        extent.streak >= LIVE && !is_whole(extent.end, self.sector) && !self.closed(extent)
    }
}

impl Firmware for Stream {
    fn merges(&self, before: &Extent) -> bool {
        !self.closed(before)
    }

    fn waits(&self, start: u64, extent: &Extent) -> bool {
        self.lives(extent) && round_down(extent.end, self.sector) <= start
    }

    fn gather(
        &self,
        writes: &mut WriteCache,
        start: u64,
        reason: Reason,
        geometry: &Geometry,
        taken: &mut Vec<Taken>,
    ) -> Target {
        let limit = round_down(start.saturating_add(self.most), self.sector);
        let mut at = start;
        while let Some(&extent) = writes.get(at) {
            if extent.end > limit {
                if limit > at {
                    writes.take(at, limit, geometry, taken);
                }
                break;
            }
            let whole = round_down(extent.end, self.sector);
            if !reason.forced
                && self.lives(&extent)
                && whole > at
                && writes.get(extent.end).is_none()
            {
                writes.take(at, whole, geometry, taken);
                break;
            }
            writes.take(at, extent.end, geometry, taken);
            at = extent.end;
            if self.closed(&extent) {
                break;
            }
        }
        Target::Home
    }
}
