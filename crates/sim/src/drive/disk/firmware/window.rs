//! `window`: what is dirty near a ragged extent is rewritten with it: one pass reads all edges in the window, the next writes all.
//! A stream is cut into windows between physical sectors, so that it loses a revolution only where it begins and ends.

use super::{Firmware, Geometry, Reason, Taken, Target, WriteCache};
use trueline_geom::base::topology::{is_whole, round_down};

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
        let (until, mut end) = (start.saturating_add(self.window), first.end);
        loop {
            let next = writes.within(start, until).map(|(next, extent)| (next, extent.end)).next();
            let Some((next, whole)) = next else { break };
            let cut = round_down(until, self.sector);
            if whole <= until {
                writes.take(next, whole, geometry, taken);
                end = whole;
            } else if next == end && cut > next {
                // What goes on from the window is cut between sectors: the sector that two commands share is not rewritten twice.
                writes.take(next, cut, geometry, taken);
                break;
            } else {
                break;
            }
        }
        Target::Home
    }
}
