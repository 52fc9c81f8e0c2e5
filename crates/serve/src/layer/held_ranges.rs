//! Ranges held by writes in flight: a read-modify-write excludes every other write that overlaps
//! it.
//!
//! # Limits
//! A write waits for earlier ones that overlap it, so none waits for ever.

use std::sync::{Condvar, Mutex, MutexGuard};
use trueline_host::lock::{lock, wait};

/// The writes in flight on one store.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    writes: Mutex<Writes>,
    ended: Condvar,
}

/// Writes in the order of their arrival.
#[derive(Debug, Default)]
struct Writes {
    held: Vec<Held>,
    next: u64,
}

/// One write's range, in bytes.
#[derive(Clone, Copy, Debug)]
struct Held {
    number: u64,
    start: u64,
    end: u64,
    /// True if bytes around it are read and written back.
    partial: bool,
}

impl Held {
    /// True if the writes must not overlap. Two of whole units may, as on every disk; a
    /// read-modify-write may not.
    fn conflicts(&self, other: &Held) -> bool {
        (self.partial || other.partial) && self.start < other.end && other.start < self.end
    }
}

/// A held range, released when dropped.
pub(crate) struct Hold<'a> {
    ranges: &'a Ranges,
    number: u64,
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.ranges.writes().held.retain(|held| held.number != self.number);
        self.ranges.ended.notify_all();
    }
}

impl Ranges {
    fn writes(&self) -> MutexGuard<'_, Writes> {
        lock(&self.writes)
    }

    /// Waits for earlier conflicting writes of bytes `start..end`, and holds the range. `partial`:
    /// bytes around the data are read and written back.
    pub(crate) fn hold(&self, start: u64, end: u64, partial: bool) -> Hold<'_> {
        let mut writes = self.writes();
        let number = writes.next;
        let own = Held { number, start, end, partial };
        writes.next += 1;
        writes.held.push(own);
        while writes.held.iter().any(|held| held.number < number && held.conflicts(&own)) {
            writes = wait(&self.ended, writes);
        }
        Hold { ranges: self, number }
    }

    /// Ranges that are held or waited for.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.writes().held.len()
    }
}
