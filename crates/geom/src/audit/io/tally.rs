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
fn place(kind: IoKind, fit: Placement, size: usize, alignment: usize) -> usize {
    ((kind.index() * Placement::ALL.len() + fit.index()) * CLASSES + size) * CLASSES + alignment
}

impl Seen {
    /// Calls `add` with every slot of a [`Tally`] that this call adds to, and the amount.
    pub fn visit_counts(&self, mut add: impl FnMut(usize, u64)) {
        if let Some(piece) = &self.piece {
            piece.visit_counts(&mut add);
        }
        if let Some(request) = &self.request {
            request.visit_counts(&mut add);
        }
    }
}

impl JudgedRequest {
    fn visit_counts(&self, mut add: impl FnMut(usize, u64)) {
        add(REQUESTS + self.kind.index() * Placement::ALL.len() + self.fit.index(), 1);
        add(ASKED + self.kind.index(), self.length);
        if self.blamed {
            add(REQUESTS_BLAMED + self.kind.index(), 1);
        }
    }
}

impl JudgedPiece {
    fn visit_counts(&self, mut add: impl FnMut(usize, u64)) {
        let kind = self.kind.index();
        if matches!(self.kind, IoKind::Read | IoKind::Write) {
            add(place(self.kind, self.fit, class_of(self.length), alignment_of(self.offset)), 1);
            add(NEEDED + kind, self.work.needed);
            if self.work.done > self.work.needed {
                add(EXTRA + kind, self.work.done - self.work.needed);
            }
        } else {
            add(HISTOGRAM + (kind - 2) * Placement::ALL.len() + self.fit.index(), 1);
        }
        add(MOVED + kind, self.length);
        if self.blamed {
            add(BLAMED + kind, 1);
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
    pub kind: IoKind,
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
        seen.visit_counts(|slot, by| self.put(slot, by));
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
    pub fn count(&self, kind: IoKind, fit: Placement) -> u64 {
        match kind {
            IoKind::Read | IoKind::Write => {
                self.0[place(kind, fit, 0, 0)..][..CLASSES * CLASSES].iter().sum()
            }
            IoKind::Trim | IoKind::Zero => {
                self.0[HISTOGRAM + (kind.index() - 2) * Placement::ALL.len() + fit.index()]
            }
        }
    }

    /// Number of pieces of a kind.
    pub fn pieces(&self, kind: IoKind) -> u64 {
        Placement::ALL.into_iter().map(|fit| self.count(kind, fit)).sum()
    }

    /// Bytes that pieces of a kind moved or concerned, every copy counted.
    pub fn bytes(&self, kind: IoKind) -> u64 {
        self.0[MOVED + kind.index()]
    }

    /// Operations of reads, or writes, on devices that read and write whole units; none for the
    /// other kinds.
    pub fn work(&self, kind: IoKind) -> DeviceOps {
        match kind {
            IoKind::Read | IoKind::Write => {
                let (needed, extra) = (self.0[NEEDED + kind.index()], self.0[EXTRA + kind.index()]);
                DeviceOps { done: needed.saturating_add(extra), needed }
            }
            IoKind::Trim | IoKind::Zero => DeviceOps::default(),
        }
    }

    /// The number of requests of a kind with that verdict.
    pub fn requests(&self, kind: IoKind, fit: Placement) -> u64 {
        self.0[REQUESTS + kind.index() * Placement::ALL.len() + fit.index()]
    }

    /// The bytes that requests of a kind asked for; of a mirror's copies each byte once.
    pub fn requested(&self, kind: IoKind) -> u64 {
        self.0[ASKED + kind.index()]
    }

    /// The number of misaligned requests of a kind that are the stack's doing.
    pub fn requests_blamed(&self, kind: IoKind) -> u64 {
        self.0[REQUESTS_BLAMED + kind.index()]
    }

    /// Number of misaligned pieces of a kind that the stack is to blame for.
    pub fn blamed(&self, kind: IoKind) -> u64 {
        self.0[BLAMED + kind.index()]
    }

    /// Reads and writes by verdict, size and alignment; empty buckets are left out.
    pub fn histogram(&self) -> impl Iterator<Item = Bucket> {
        [IoKind::Read, IoKind::Write].into_iter().flat_map(move |kind| {
            Placement::ALL.into_iter().flat_map(move |fit| {
                let counts = &self.0[place(kind, fit, 0, 0)..][..CLASSES * CLASSES];
                let bucket = move |(nth, &count)| Bucket {
                    kind,
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
