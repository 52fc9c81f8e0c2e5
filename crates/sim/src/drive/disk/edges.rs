//! A cache of physical sectors whose whole content the firmware knows from a read-modify-write:
//! they need no second read.

use std::collections::BTreeMap;

/// The known sectors; the least recently used is replaced.
#[derive(Debug)]
pub(super) struct EdgeCache {
    most: usize,
    clock: u64,
    by_sector: BTreeMap<u64, u64>,
    by_use: BTreeMap<u64, u64>,
}

impl EdgeCache {
    pub(super) fn new(most: usize) -> EdgeCache {
        EdgeCache { most, clock: 0, by_sector: BTreeMap::new(), by_use: BTreeMap::new() }
    }

    /// True if the content of a sector is known.
    pub(super) fn knows(&self, sector: u64) -> bool {
        self.by_sector.contains_key(&sector)
    }

    /// Adds a sector, now the most recently used.
    pub(super) fn learn(&mut self, sector: u64) {
        if self.most == 0 {
            return;
        }
        self.clock += 1;
        if let Some(used) = self.by_sector.insert(sector, self.clock) {
            self.by_use.remove(&used);
        }
        self.by_use.insert(self.clock, sector);
        if self.by_sector.len() > self.most
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.by_sector.remove(&oldest);
        }
    }
}
