//! `window`: dirty data near a ragged extent are rewritten with it. One pass reads all edges in the
//! window, the next writes all of it. A stream is cut into windows between physical sectors, so it
//! loses a revolution only at its ends.

use super::{Firmware, Geometry, Reason, Taken, Target, WriteCache};
use trueline_geom::base::topology::{is_whole, round_down};

/// The personality `window` with its size.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) sector: u64,
    /// The size of a window in bytes, from its first byte to its last.
    pub(super) window: u64,
}

impl Firmware for Window {
    fn gather(
        &self,
        writes: &mut WriteCache,
        start: u64,
        _: Reason,
        geometry: &Geometry,
        taken: &mut Vec<Taken>,
    ) -> Target {
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
            let adjoins = next == end;
            // A stream's command that ends with the window shares its last sector with the next.
            let shares = adjoins
                && whole == until
                && !is_whole(whole, self.sector)
                && writes.get(whole).is_some();
            if whole <= until && !shares {
                writes.take(next, whole, geometry, taken);
                end = whole;
            } else if adjoins && cut > next {
                // A continuation past the window is cut between sectors, so that a sector shared by
                // two commands is rewritten once.
                writes.take(next, cut, geometry, taken);
                break;
            } else {
                break;
            }
        }
        Target::Home
    }
}
