//! What must come out even, in debug builds: every command once, every byte somewhere.

use std::collections::BTreeSet;

/// The books.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    open: BTreeSet<u64>,
    /// Bytes that came from the host.
    pub(super) written: u64,
    /// Bytes that were put on the medium.
    pub(super) destaged: u64,
    /// Bytes that newer ones took the place of before they were.
    pub(super) overwritten: u64,
}

impl Ledger {
    pub(super) fn submit(&mut self, tag: u64) {
        if cfg!(debug_assertions) {
            let new = self.open.insert(tag);
            debug_assert!(new, "two commands are called {tag}");
        }
    }

    pub(super) fn complete(&mut self, tag: u64) {
        if cfg!(debug_assertions) {
            let open = self.open.remove(&tag);
            debug_assert!(open, "command {tag} is done twice, or was never given");
        }
    }

    /// What is neither destaged nor overwritten is dirty.
    pub(super) fn balance(&self, dirty: u64) {
        let known = self.destaged + self.overwritten + dirty;
        debug_assert_eq!(self.written, known, "destaged {}, overwritten {}, dirty {dirty}", self.destaged, self.overwritten);
    }
}
