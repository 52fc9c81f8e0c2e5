//! The connections to one server: which are in use, and which carry unflushed writes.
//!
//! A flush on one connection covers writes on another only if both are with the same server, and a
//! restarted server is not the same. So every connection with writes is flushed itself, and one
//! that broke before has lost its writes.

use crate::lock::{lock, wait};
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard};
use trueline_geom::base::error::Errno;

/// Connections, each with its number.
pub(super) struct Pool<C> {
    /// The most connections at a time.
    most: usize,
    state: Mutex<State<C>>,
    freed: Condvar,
}

struct State<C> {
    idle: Vec<(u64, C)>,
    /// The number of connections, idle or in use.
    made: usize,
    next: u64,
    /// Connections with answered writes since their last flush.
    unflushed: BTreeSet<u64>,
    /// The number of flushes that wait for a connection.
    waiting: usize,
    /// Broken connections that had unflushed writes; and the number of those that a flush has
    /// reported.
    lost: u64,
    told: u64,
}

/// A flush of all writes before it.
pub(super) struct Flush {
    /// The connections that are still to be flushed.
    due: BTreeSet<u64>,
    /// The losses reported by the time it began.
    told: u64,
}

impl<C> Pool<C> {
    /// A pool of at most `most` connections, with a first one.
    pub(super) fn new(first: C, most: usize) -> Pool<C> {
        let state = State {
            idle: vec![(0, first)],
            made: 1,
            next: 1,
            unflushed: BTreeSet::new(),
            waiting: 0,
            lost: 0,
            told: 0,
        };
        Pool { most, state: Mutex::new(state), freed: Condvar::new() }
    }

    /// The most connections at a time.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    fn state(&self) -> MutexGuard<'_, State<C>> {
        lock(&self.state)
    }

    /// An idle connection, or a new one that `make` makes. Waits if all are in use and there are
    /// `most`.
    pub(super) fn take(&self, make: impl FnOnce() -> Result<C, Errno>) -> Result<(u64, C), Errno> {
        let mut state = self.state();
        loop {
            // A flush has priority: otherwise writers could keep a connection from it for ever.
            let free = state
                .idle
                .iter()
                .rposition(|(number, _)| state.waiting == 0 || !state.unflushed.contains(number));
            if let Some(at) = free {
                return Ok(state.idle.swap_remove(at));
            }
            if state.made < self.most {
                break;
            }
            state = wait(&self.freed, state);
        }
        (state.made, state.next) = (state.made + 1, state.next + 1);
        let number = state.next - 1;
        drop(state);
        make().map(|made| (number, made)).inspect_err(|_| self.put(number, None, false))
    }

    /// Returns a connection to the pool; `None` if it broke. `wrote`: a write was answered on it.
    pub(super) fn put(&self, number: u64, connection: Option<C>, wrote: bool) {
        let mut state = self.state();
        if wrote {
            state.unflushed.insert(number);
        }
        match connection {
            Some(connection) => state.idle.push((number, connection)),
            None => {
                state.made -= 1;
                state.lost += u64::from(state.unflushed.remove(&number));
            }
        }
        self.freed.notify_all();
    }

    /// Begins a flush of all writes so far.
    pub(super) fn flush(&self) -> Flush {
        let state = self.state();
        Flush { due: state.unflushed.clone(), told: state.told }
    }

    /// The idle connections that are still to be flushed; waits for some. Empty if all are flushed
    /// or broken.
    pub(super) fn take_due(&self, flush: &mut Flush) -> Vec<(u64, C)> {
        let mut state = self.state();
        loop {
            flush.due.retain(|number| state.unflushed.contains(number));
            let (due, idle) = std::mem::take(&mut state.idle)
                .into_iter()
                .partition(|(number, _)| flush.due.contains(number));
            state.idle = idle;
            if flush.due.is_empty() || !due.is_empty() {
                due.iter().for_each(|(number, _)| {
                    flush.due.remove(number);
                });
                return due;
            }
            state.waiting += 1;
            state = wait(&self.freed, state);
            state.waiting -= 1;
        }
    }

    /// Returns a flushed connection to the pool.
    pub(super) fn put_flushed(&self, number: u64, connection: C) {
        let mut state = self.state();
        state.unflushed.remove(&number);
        state.idle.push((number, connection));
        self.freed.notify_all();
    }

    /// An error if a write was lost since the last flush that reported a loss.
    pub(super) fn end(&self, flush: &Flush) -> Result<(), Errno> {
        let mut state = self.state();
        if state.lost == flush.told {
            return Ok(());
        }
        state.told = state.lost;
        Err(Errno::Io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_told_once_and_to_every_flush_that_it_concerns() {
        let pool = Pool::new('a', 2);
        let (first, a) = pool.take(|| Err(Errno::NoDevice)).unwrap();
        let (second, b) = pool.take(|| Ok('b')).unwrap();
        pool.put(second, Some(b), true);
        pool.put(first, Some(a), true);
        let (mut one, mut other) = (pool.flush(), pool.flush());
        let mut due = pool.take_due(&mut one);
        due.sort_unstable();
        assert_eq!(due, [(first, 'a'), (second, 'b')]);
        // One is flushed, and the other breaks.
        pool.put_flushed(first, 'a');
        pool.put(second, None, false);
        for flush in [&mut one, &mut other] {
            assert!(pool.take_due(flush).is_empty());
            assert_eq!(pool.end(flush), Err(Errno::Io));
        }
        assert_eq!(pool.end(&pool.flush()), Ok(()));
        // What breaks with nothing on it loses nothing, and there is room for another.
        let (first, _) = pool.take(|| Err(Errno::NoDevice)).unwrap();
        pool.put(first, None, false);
        assert_eq!(pool.end(&pool.flush()), Ok(()));
        assert_eq!(pool.take(|| Err(Errno::Io)), Err(Errno::Io));
        assert_eq!(pool.take(|| Ok('c')).map(|(_, made)| made), Ok('c'));
    }
}
