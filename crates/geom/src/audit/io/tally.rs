//! Numbers of a workload, added up: by kind, verdict, size and alignment.

use super::{CLASSES, Deed, Mark, RequestMark, Seen, alignment_of, class_of};
use crate::base::topology::{Fit, Work};
const HISTOGRAM: usize = 2 * Fit::ALL.len() * CLASSES * CLASSES;
const MOVED: usize = HISTOGRAM + 2 * Fit::ALL.len();
const NEEDED: usize = MOVED + Deed::ALL.len();
/// Operations above those needed: none for what is aligned.
const EXTRA: usize = NEEDED + 2;
const BLAMED: usize = EXTRA + 2;
const REQUESTS: usize = BLAMED + Deed::ALL.len();
const REQUESTS_BLAMED: usize = REQUESTS + Deed::ALL.len() * Fit::ALL.len();
const ASKED: usize = REQUESTS_BLAMED + Deed::ALL.len();
/// Numbers in a [`Tally`].
pub const SLOTS: usize = ASKED + Deed::ALL.len();

/// The slot of the histogram.
fn place(deed: Deed, fit: Fit, size: usize, alignment: usize) -> usize {
    ((deed.index() * Fit::ALL.len() + fit.index()) * CLASSES + size) * CLASSES + alignment
}

impl Seen {
    /// Calls `add` with every slot of a [`Tally`] that this adds to, and how much.
    pub fn each(&self, mut add: impl FnMut(usize, u64)) {
        if let Some(piece) = &self.piece {
            piece.each(&mut add);
        }
        if let Some(request) = &self.request {
            request.each(&mut add);
        }
    }
}

impl RequestMark {
    fn each(&self, mut add: impl FnMut(usize, u64)) {
        add(REQUESTS + self.deed.index() * Fit::ALL.len() + self.fit.index(), 1);
        add(ASKED + self.deed.index(), self.length);
        if self.blamed {
            add(REQUESTS_BLAMED + self.deed.index(), 1);
        }
    }
}

impl Mark {
    fn each(&self, mut add: impl FnMut(usize, u64)) {
        let deed = self.deed.index();
        if matches!(self.deed, Deed::Read | Deed::Write) {
            add(place(self.deed, self.fit, class_of(self.length), alignment_of(self.offset)), 1);
            add(NEEDED + deed, self.work.needed);
            if self.work.done > self.work.needed {
                add(EXTRA + deed, self.work.done - self.work.needed);
            }
        } else {
            add(HISTOGRAM + (deed - 2) * Fit::ALL.len() + self.fit.index(), 1);
        }
        add(MOVED + deed, self.length);
        if self.blamed {
            add(BLAMED + deed, 1);
        }
    }
}

/// Marks, added up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally(Vec<u64>);

impl Default for Tally {
    fn default() -> Tally {
        Tally(vec![0; SLOTS])
    }
}

/// Requests of one kind, by size and alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// What they do.
    pub deed: Deed,
    /// How they lie.
    pub fit: Fit,
    /// Class of their size.
    pub size: usize,
    /// Class of the largest power of two that divides their first byte on the disk.
    pub alignment: usize,
    /// How many.
    pub count: u64,
}

impl Tally {
    /// One more piece, or request.
    pub fn add(&mut self, seen: &Seen) {
        seen.each(|slot, by| self.put(slot, by));
    }

    /// `by` more in a slot.
    pub fn put(&mut self, slot: usize, by: u64) {
        self.0[slot] = self.0[slot].saturating_add(by);
    }

    /// All marks of another.
    pub fn merge(&mut self, other: &Tally) {
        other.0.iter().enumerate().for_each(|(slot, &by)| self.put(slot, by));
    }

    /// How many pieces there were with that verdict.
    pub fn count(&self, deed: Deed, fit: Fit) -> u64 {
        match deed {
            Deed::Read | Deed::Write => self.0[place(deed, fit, 0, 0)..][..CLASSES * CLASSES].iter().sum(),
            Deed::Trim | Deed::Zero => self.0[HISTOGRAM + (deed.index() - 2) * Fit::ALL.len() + fit.index()],
        }
    }

    /// How many pieces there were.
    pub fn pieces(&self, deed: Deed) -> u64 {
        Fit::ALL.into_iter().map(|fit| self.count(deed, fit)).sum()
    }

    /// Bytes.
    pub fn bytes(&self, deed: Deed) -> u64 {
        self.0[MOVED + deed.index()]
    }

    /// What reads, or writes, came to on devices that read and write whole units; nothing for the others.
    pub fn work(&self, deed: Deed) -> Work {
        match deed {
            Deed::Read | Deed::Write => {
                let (needed, extra) = (self.0[NEEDED + deed.index()], self.0[EXTRA + deed.index()]);
                Work { done: needed.saturating_add(extra), needed }
            }
            Deed::Trim | Deed::Zero => Work::default(),
        }
    }

    /// The number of requests of a kind with that verdict.
    pub fn requests(&self, deed: Deed, fit: Fit) -> u64 {
        self.0[REQUESTS + deed.index() * Fit::ALL.len() + fit.index()]
    }

    /// The bytes that requests of a kind asked for; of a mirror's copies each byte once.
    pub fn requested(&self, deed: Deed) -> u64 {
        self.0[ASKED + deed.index()]
    }

    /// The number of misaligned requests of a kind that are the stack's doing.
    pub fn requests_blamed(&self, deed: Deed) -> u64 {
        self.0[REQUESTS_BLAMED + deed.index()]
    }

    /// How many pieces were misaligned because of where their layer begins.
    pub fn blamed(&self, deed: Deed) -> u64 {
        self.0[BLAMED + deed.index()]
    }

    /// Reads and writes by size and alignment, those there are.
    pub fn histogram(&self) -> impl Iterator<Item = Bucket> {
        [Deed::Read, Deed::Write].into_iter().flat_map(move |deed| {
            Fit::ALL.into_iter().flat_map(move |fit| {
                let counts = &self.0[place(deed, fit, 0, 0)..][..CLASSES * CLASSES];
                let bucket = move |(nth, &count)| Bucket { deed, fit, size: nth / CLASSES, alignment: nth % CLASSES, count };
                counts.iter().enumerate().map(bucket).filter(|bucket| bucket.count > 0)
            })
        })
    }
}
