//! Whether what was tasted has been written since.

use crate::generations::Generations;
use std::sync::atomic::{AtomicBool, Ordering};
use trueline_geom::probe::read_set::ReadSet;

/// Ranges that are kept in mind at one time: more than any disk needs that nobody made to need many.
const RANGES: usize = 8192;

/// Where tasting has looked, and whether somebody has written there; of all exports of a graph.
pub struct RetasteTrigger {
    looked: Generations<ReadSet>,
    written: AtomicBool,
    /// Somebody looks again.
    busy: AtomicBool,
}

impl RetasteTrigger {
    /// It has looked there.
    pub fn new(looked: ReadSet) -> RetasteTrigger {
        RetasteTrigger { looked: Generations::new(looked), written: AtomicBool::new(false), busy: AtomicBool::new(false) }
    }

    /// Something was written there: `length` bytes at byte `offset` of a store.
    #[inline]
    pub fn wrote(&self, store: usize, offset: u64, length: u64) {
        if self.looked.get().is_at(store, offset, length) {
            self.stale();
        }
    }

    /// It may have been written.
    pub fn stale(&self) {
        self.written.store(true, Ordering::SeqCst);
    }

    /// Whether it is to be tasted again.
    pub fn is_stale(&self) -> bool {
        self.written.load(Ordering::SeqCst)
    }

    /// Whether that is done already, or is to be.
    pub fn is_unsettled(&self) -> bool {
        // In the order in which they are not both wrong.
        self.written.load(Ordering::SeqCst) || self.busy.load(Ordering::SeqCst)
    }

    /// Runs `taste`, which tastes it again: what is written meanwhile is written since. One thread at a time.
    pub fn again(&self, taste: impl FnOnce()) {
        self.busy.store(true, Ordering::SeqCst);
        self.written.store(false, Ordering::SeqCst);
        taste();
        self.busy.store(false, Ordering::SeqCst);
    }

    /// It has looked there now. `false` where there is no room to keep that in mind.
    pub fn looked(&self, looked: &ReadSet) -> bool {
        let known = self.looked.get();
        // With what was looked at before: what is written in turns at a few places is kept in mind once.
        let all = known.and(looked);
        if all == *known {
            return true;
        }
        let put = all.count() <= RANGES && self.looked.put(all);
        if put {
            // What was written at a new place between the look at it and now was not noticed.
            self.stale();
        }
        put
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueline_geom::base::store::Store;
    use trueline_geom::base::topology::Topology;
    use trueline_geom::graph::{Disk, Graph};
    use trueline_geom::probe::Limits;
    use trueline_host::disk::memory::Memory;

    /// Between the look at a new place and the moment from which writes there are noticed, somebody may have written.
    #[test]
    fn a_new_place_is_looked_at_twice() {
        let graph = |table: &[u8]| {
            let memory = Memory::new(1 << 20).unwrap();
            memory.write_at(table, 0).unwrap();
            Graph::taste(vec![Disk::new("", Box::new(memory), Topology::new(512, 1 << 20))], Limits::default())
        };
        let (blank, mut table) = (graph(&[]), [0; 512]);
        table[450] = 0x83;
        table[454..462].copy_from_slice(&[0, 4, 0, 0, 0, 2, 0, 0]);
        table[510..].copy_from_slice(&[0x55, 0xaa]);
        let tasted = RetasteTrigger::new(blank.looked());
        tasted.again(|| assert!(tasted.looked(&blank.looked())));
        assert!(!tasted.is_stale());
        let made = graph(&table);
        tasted.again(|| assert!(tasted.looked(&made.looked())));
        assert!(tasted.is_stale());
        tasted.again(|| assert!(tasted.looked(&made.looked())));
        assert!(!tasted.is_stale());
    }
}
