//! Invariants checked in debug builds: every command completes once, and every byte is accounted
//! for.

use std::collections::BTreeSet;

/// The account of commands and bytes.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    open: BTreeSet<u64>,
    /// Bytes written by the host.
    pub(super) written: u64,
    /// Bytes written to the medium.
    pub(super) destaged: u64,
    /// Bytes overwritten in the cache by newer ones.
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

    /// Checks that all bytes neither destaged nor overwritten are dirty.
    pub(super) fn balance(&self, dirty: u64) {
        let known = self.destaged + self.overwritten + dirty;
        debug_assert_eq!(
            self.written, known,
            "destaged {}, overwritten {}, dirty {dirty}",
            self.destaged, self.overwritten
        );
    }
}
