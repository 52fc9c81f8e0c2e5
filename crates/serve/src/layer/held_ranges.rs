//! Ranges that writes hold while they are in flight: a write that reads bytes and writes them back stands against every other on them.
//!
//! # Limits
//! A write waits for those that came before it and overlap, so none waits for ever.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Writes in flight on one store.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    writes: Mutex<Writes>,
    ended: Condvar,
}

/// Writes in the order in which they came.
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
    /// Set where bytes around it are read and written back.
    partial: bool,
}

impl Held {
    /// Two writes of whole units may overlap as on every disk; one that writes back what it has read may overlap none.
    fn conflicts(&self, other: &Held) -> bool {
        (self.partial || other.partial) && self.start < other.end && other.start < self.end
    }
}

/// A held range: dropping it lets the range go.
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
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no write that came before stands against bytes `start..end`, and holds them. `partial`: bytes around what is written
    /// are read and written back.
    pub(crate) fn hold(&self, start: u64, end: u64, partial: bool) -> Hold<'_> {
        let mut writes = self.writes();
        let number = writes.next;
        let own = Held { number, start, end, partial };
        writes.next += 1;
        writes.held.push(own);
        while writes.held.iter().any(|held| held.number < number && held.conflicts(&own)) {
            writes = self.ended.wait(writes).unwrap_or_else(PoisonError::into_inner);
        }
        Hold { ranges: self, number }
    }

    /// Ranges that are held or waited for.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.writes().held.len()
    }
}
