//! `log`: small writes are appended to a log on the medium, are safe there, and are read from
//! there. They are rewritten at home, with read-modify-writes if necessary, while the host is idle.
//! Large writes go home as with `stream`, and all do while the log is full.

use super::stream::Stream;
use super::{Extent, Firmware, Geometry, Reason, Taken, Target, WriteCache};

/// The personality `log`, with `stream` for writes at home.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) home: Stream,
    /// Bytes from which on a write goes home instead of to the log.
    pub(super) threshold: u64,
}

impl Firmware for Log {
    fn merges(&self, before: &Extent) -> bool {
        self.home.merges(before)
    }

    fn waits(&self, start: u64, extent: &Extent) -> bool {
        extent.end - start >= self.threshold && self.home.waits(start, extent)
    }

    fn gather(
        &self,
        writes: &mut WriteCache,
        start: u64,
        reason: Reason,
        geometry: &Geometry,
        taken: &mut Vec<Taken>,
    ) -> Target {
        let small = |start: u64, extent: &Extent| extent.end - start < self.threshold;
        if reason.idle || writes.get(start).is_none_or(|extent| !small(start, extent)) {
            return self.home.gather(writes, start, reason, geometry, taken);
        }
        let mut room = reason.log_room.min(self.home.most);
        loop {
            let next = writes.oldest(&small).map(|(start, extent)| (start, extent.end));
            let Some((next, end)) = next else { break };
            if end - next > room {
                break;
            }
            room -= end - next;
            writes.take(next, end, geometry, taken);
        }
        if taken.is_empty() {
            return self.home.gather(writes, start, reason, geometry, taken);
        }
        taken.sort_unstable_by_key(|taken| taken.start);
        Target::Log
    }
}
