//! The trigger of another tasting: writes to ranges that tasting has read.

use crate::generations::Generations;
use std::sync::atomic::{AtomicBool, Ordering};
use trueline_geom::probe::read_set::ReadSet;

/// The most ranges under watch: more than any disk needs that was not crafted to need many.
const RANGES: usize = 8192;

/// The ranges that tasting has read, and a flag for writes to them, shared by all exports of a
/// graph.
pub struct RetasteTrigger {
    looked: Generations<ReadSet>,
    written: AtomicBool,
    /// True while tasting runs again.
    busy: AtomicBool,
}

impl RetasteTrigger {
    /// A trigger for writes to `looked`, the ranges just read.
    pub fn new(looked: ReadSet) -> RetasteTrigger {
        RetasteTrigger {
            looked: Generations::new(looked),
            written: AtomicBool::new(false),
            busy: AtomicBool::new(false),
        }
    }

    /// Notes a write of `length` bytes at byte `offset` of a store.
    #[inline]
    pub fn wrote(&self, store: usize, offset: u64, length: u64) {
        if self.looked.get().is_at(store, offset, length) {
            self.stale();
        }
    }

    /// Marks the ranges as possibly written.
    pub fn stale(&self) {
        self.written.store(true, Ordering::SeqCst);
    }

    /// True if the disks must be tasted again.
    pub fn is_stale(&self) -> bool {
        self.written.load(Ordering::SeqCst)
    }

    /// True if they must be tasted again, or are being tasted.
    pub fn is_unsettled(&self) -> bool {
        // Read in this order, the two flags are never both out of date.
        self.written.load(Ordering::SeqCst) || self.busy.load(Ordering::SeqCst)
    }

    /// Calls `taste`, which tastes the disks again; writes meanwhile count as later. One thread at
    /// a time may call it.
    pub fn again(&self, taste: impl FnOnce()) {
        self.busy.store(true, Ordering::SeqCst);
        self.written.store(false, Ordering::SeqCst);
        taste();
        self.busy.store(false, Ordering::SeqCst);
    }

    /// Adds the ranges read by tasting. False if there is no room for them.
    pub fn looked(&self, looked: &ReadSet) -> bool {
        let known = self.looked.get();
        // Ranges once read stay in the set: a table that comes and goes takes room once.
        let all = known.union(looked);
        if all == *known {
            return true;
        }
        let put = all.count() <= RANGES && self.looked.put(all);
        if put {
            // A write to a new range, after it was read and before now, went unnoticed.
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

    /// Between the read of a new range and the watch of it, a write may go unnoticed.
    #[test]
    fn a_new_place_is_looked_at_twice() {
        let graph = |table: &[u8]| {
            let memory = Memory::new(1 << 20).unwrap();
            memory.write_at(table, 0).unwrap();
            Graph::taste(
                vec![Disk::new("", Box::new(memory), Topology::new(512, 1 << 20))],
                Limits::default(),
            )
        };
        let (blank, mut table) = (graph(&[]), [0; 512]);
        table[450] = 0x83;
        table[454..462].copy_from_slice(&[0, 4, 0, 0, 0, 2, 0, 0]);
        table[510..].copy_from_slice(&[0x55, 0xaa]);
        let tasted = RetasteTrigger::new(blank.read_set());
        tasted.again(|| assert!(tasted.looked(&blank.read_set())));
        assert!(!tasted.is_stale());
        let made = graph(&table);
        tasted.again(|| assert!(tasted.looked(&made.read_set())));
        assert!(tasted.is_stale());
        tasted.again(|| assert!(tasted.looked(&made.read_set())));
        assert!(!tasted.is_stale());
    }
}
