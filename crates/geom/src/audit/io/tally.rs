//! Numbers of a workload, added up: by kind, verdict, size and alignment.

use super::{CLASSES, IoKind, JudgedPiece, JudgedRequest, Seen, alignment_of, class_of};
use crate::base::topology::{DeviceOps, Placement};
const HISTOGRAM: usize = 2 * Placement::ALL.len() * CLASSES * CLASSES;
const MOVED: usize = HISTOGRAM + 2 * Placement::ALL.len();
const NEEDED: usize = MOVED + IoKind::ALL.len();
/// First slot of the operations above those needed; aligned I/O adds none.
const EXTRA: usize = NEEDED + 2;
const BLAMED: usize = EXTRA + 2;
const REQUESTS: usize = BLAMED + IoKind::ALL.len();
const REQUESTS_BLAMED: usize = REQUESTS + IoKind::ALL.len() * Placement::ALL.len();
const ASKED: usize = REQUESTS_BLAMED + IoKind::ALL.len();
/// Number of slots in a [`Tally`].
pub const SLOTS: usize = ASKED + IoKind::ALL.len();

/// The slot of the histogram for these classes.
fn place(deed: IoKind, fit: Placement, size: usize, alignment: usize) -> usize {
    ((deed.index() * Placement::ALL.len() + fit.index()) * CLASSES + size) * CLASSES + alignment
}

impl Seen {
    /// Calls `add` with every slot of a [`Tally`] that this call adds to, and the amount.
    pub fn each(&self, mut add: impl FnMut(usize, u64)) {
        if let Some(piece) = &self.piece {
            piece.each(&mut add);
        }
        if let Some(request) = &self.request {
            request.each(&mut add);
        }
    }
}

impl JudgedRequest {
    fn each(&self, mut add: impl FnMut(usize, u64)) {
        add(REQUESTS + self.deed.index() * Placement::ALL.len() + self.fit.index(), 1);
        add(ASKED + self.deed.index(), self.length);
        if self.blamed {
            add(REQUESTS_BLAMED + self.deed.index(), 1);
        }
    }
}

impl JudgedPiece {
    fn each(&self, mut add: impl FnMut(usize, u64)) {
        let deed = self.deed.index();
        if matches!(self.deed, IoKind::Read | IoKind::Write) {
            add(place(self.deed, self.fit, class_of(self.length), alignment_of(self.offset)), 1);
            add(NEEDED + deed, self.work.needed);
            if self.work.done > self.work.needed {
                add(EXTRA + deed, self.work.done - self.work.needed);
            }
        } else {
            add(HISTOGRAM + (deed - 2) * Placement::ALL.len() + self.fit.index(), 1);
        }
        add(MOVED + deed, self.length);
        if self.blamed {
            add(BLAMED + deed, 1);
        }
    }
}

/// Sum of pieces and requests, in [`SLOTS`] numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally(Vec<u64>);

impl Default for Tally {
    fn default() -> Tally {
        Tally(vec![0; SLOTS])
    }
}

/// Number of pieces of one kind, verdict, size and alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Kind of the requests, reads or writes.
    pub deed: IoKind,
    /// Verdict of the pieces.
    pub fit: Placement,
    /// Class of their size, as [`class_of`].
    pub size: usize,
    /// Class of the largest power of two that divides their first byte on the disk.
    pub alignment: usize,
    /// Number of pieces in the bucket.
    pub count: u64,
}

impl Tally {
    /// Adds one piece, one request, or both.
    pub fn add(&mut self, seen: &Seen) {
        seen.each(|slot, by| self.put(slot, by));
    }

    /// Adds `by` to a slot; it saturates at 2^64.
    pub fn put(&mut self, slot: usize, by: u64) {
        self.0[slot] = self.0[slot].saturating_add(by);
    }

    /// Adds all numbers of another tally.
    pub fn merge(&mut self, other: &Tally) {
        other.0.iter().enumerate().for_each(|(slot, &by)| self.put(slot, by));
    }

    /// Number of pieces of a kind with that verdict.
    pub fn count(&self, deed: IoKind, fit: Placement) -> u64 {
        match deed {
            IoKind::Read | IoKind::Write => {
                self.0[place(deed, fit, 0, 0)..][..CLASSES * CLASSES].iter().sum()
            }
            IoKind::Trim | IoKind::Zero => {
                self.0[HISTOGRAM + (deed.index() - 2) * Placement::ALL.len() + fit.index()]
            }
        }
    }

    /// Number of pieces of a kind.
    pub fn pieces(&self, deed: IoKind) -> u64 {
        Placement::ALL.into_iter().map(|fit| self.count(deed, fit)).sum()
    }

    /// Bytes that pieces of a kind moved or concerned, every copy counted.
    pub fn bytes(&self, deed: IoKind) -> u64 {
        self.0[MOVED + deed.index()]
    }

    /// Operations of reads, or writes, on devices that read and write whole units; none for the
    /// other kinds.
    pub fn work(&self, deed: IoKind) -> DeviceOps {
        match deed {
            IoKind::Read | IoKind::Write => {
                let (needed, extra) = (self.0[NEEDED + deed.index()], self.0[EXTRA + deed.index()]);
                DeviceOps { done: needed.saturating_add(extra), needed }
            }
            IoKind::Trim | IoKind::Zero => DeviceOps::default(),
        }
    }

    /// The number of requests of a kind with that verdict.
    pub fn requests(&self, deed: IoKind, fit: Placement) -> u64 {
        self.0[REQUESTS + deed.index() * Placement::ALL.len() + fit.index()]
    }

    /// The bytes that requests of a kind asked for; of a mirror's copies each byte once.
    pub fn requested(&self, deed: IoKind) -> u64 {
        self.0[ASKED + deed.index()]
    }

    /// The number of misaligned requests of a kind that are the stack's doing.
    pub fn requests_blamed(&self, deed: IoKind) -> u64 {
        self.0[REQUESTS_BLAMED + deed.index()]
    }

    /// Number of misaligned pieces of a kind that the stack is to blame for.
    pub fn blamed(&self, deed: IoKind) -> u64 {
        self.0[BLAMED + deed.index()]
    }

    /// Reads and writes by verdict, size and alignment; empty buckets are left out.
    pub fn histogram(&self) -> impl Iterator<Item = Bucket> {
        [IoKind::Read, IoKind::Write].into_iter().flat_map(move |deed| {
            Placement::ALL.into_iter().flat_map(move |fit| {
                let counts = &self.0[place(deed, fit, 0, 0)..][..CLASSES * CLASSES];
                let bucket = move |(nth, &count)| Bucket {
                    deed,
                    fit,
                    size: nth / CLASSES,
                    alignment: nth % CLASSES,
                    count,
                };
                counts.iter().enumerate().map(bucket).filter(|bucket| bucket.count > 0)
            })
        })
    }
}
