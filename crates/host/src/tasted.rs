//! Whether what was tasted has been written since.

use crate::latest::Latest;
use std::sync::atomic::{AtomicBool, Ordering};
use trueline_geom::looked::Looked;

/// Ranges that are kept in mind at one time: more than any disk needs that nobody made to need many.
const RANGES: usize = 8192;

/// Where tasting has looked, and whether somebody has written there; of all exports of a graph.
pub struct Tasted {
    looked: Latest<Looked>,
    written: AtomicBool,
    /// Somebody looks again.
    busy: AtomicBool,
}

impl Tasted {
    /// It has looked there.
    pub fn new(looked: Looked) -> Tasted {
        Tasted { looked: Latest::new(looked), written: AtomicBool::new(false), busy: AtomicBool::new(false) }
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
    pub fn looked(&self, looked: &Looked) -> bool {
        let known = self.looked.get();
        // With what was looked at before: what is written in turns at a few places is kept in mind once.
        let all = known.and(looked);
        all == *known || all.count() <= RANGES && self.looked.put(all)
    }
}
