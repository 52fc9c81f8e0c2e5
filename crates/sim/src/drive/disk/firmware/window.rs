//! `window`: what is dirty near a ragged extent is rewritten with it: one pass reads all edges in the window, the next writes all.

use super::{Firmware, Geometry, Reason, Taken, Target, WriteCache};
use trueline_geom::topology::is_whole;

/// The personality.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) sector: u64,
    /// Bytes from the first to the last byte of a window.
    pub(super) window: u64,
}

impl Firmware for Window {
    fn gather(&self, writes: &mut WriteCache, start: u64, _: Reason, geometry: &Geometry, taken: &mut Vec<Taken>) -> Target {
        let Some(&first) = writes.get(start) else { return Target::Home };
        let whole = |start, end| is_whole(start, self.sector) && is_whole(end, self.sector);
        writes.take(start, first.end, geometry, taken);
        if whole(start, first.end) {
            return Target::Home;
        }
        let until = start.saturating_add(self.window);
        loop {
            let next = writes.within(start, until).map(|(next, extent)| (next, extent.end)).next();
            let Some((next, end)) = next else { break };
            if end > until {
                break;
            }
            writes.take(next, end, geometry, taken);
        }
        Target::Home
    }
}
