//! Connections to one server: who uses them, and on which of them is what no flush has reached.
//!
//! A flush on one connection says something of what was written on another only if both are with one server, and who has restarted is not
//! the one that was: every connection on which something was written is flushed itself, and one that broke before that has lost it.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use trueline_geom::base::error::Errno;

/// Connections, each with its number.
pub(super) struct Pool<C> {
    /// How many there may be.
    most: usize,
    state: Mutex<State<C>>,
    freed: Condvar,
}

struct State<C> {
    idle: Vec<(u64, C)>,
    /// Those that there are.
    made: usize,
    next: u64,
    /// Those on which writes were answered since they were flushed.
    unflushed: BTreeSet<u64>,
    /// Flushes that wait for one of those.
    waiting: usize,
    /// How many of those broke, and of how many of them a flush has told.
    lost: u64,
    told: u64,
}

/// A flush of all that was written before it began.
pub(super) struct Flush {
    /// Connections that are to be flushed.
    due: BTreeSet<u64>,
    /// Losses that others were told of.
    told: u64,
}

impl<C> Pool<C> {
    /// With a first one, of `most`.
    pub(super) fn new(first: C, most: usize) -> Pool<C> {
        let state = State { idle: vec![(0, first)], made: 1, next: 1, unflushed: BTreeSet::new(), waiting: 0, lost: 0, told: 0 };
        Pool { most, state: Mutex::new(state), freed: Condvar::new() }
    }

    /// How many there may be.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    fn state(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that nobody else uses, perhaps a new one.
    pub(super) fn take(&self, make: impl FnOnce() -> Result<C, Errno>) -> Result<(u64, C), Errno> {
        let mut state = self.state();
        loop {
            // A flush goes before: else those that write could keep a connection from it for ever.
            let free = state.idle.iter().rposition(|(number, _)| state.waiting == 0 || !state.unflushed.contains(number));
            if let Some(at) = free {
                return Ok(state.idle.swap_remove(at));
            }
            if state.made < self.most {
                break;
            }
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        (state.made, state.next) = (state.made + 1, state.next + 1);
        let number = state.next - 1;
        drop(state);
        make().map(|made| (number, made)).inspect_err(|_| self.put(number, None, false))
    }

    /// Gives one back, unless it is broken. `wrote`: a write was answered on it.
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

    /// Begins a flush.
    pub(super) fn flush(&self) -> Flush {
        let state = self.state();
        Flush { due: state.unflushed.clone(), told: state.told }
    }

    /// Connections that are to be flushed, as soon as there are some that nobody uses; none if all are flushed, or broken.
    pub(super) fn take_due(&self, flush: &mut Flush) -> Vec<(u64, C)> {
        let mut state = self.state();
        loop {
            flush.due.retain(|number| state.unflushed.contains(number));
            let (due, idle) = std::mem::take(&mut state.idle).into_iter().partition(|(number, _)| flush.due.contains(number));
            state.idle = idle;
            if flush.due.is_empty() || !due.is_empty() {
                due.iter().for_each(|(number, _)| {
                    flush.due.remove(number);
                });
                return due;
            }
            state.waiting += 1;
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }

    /// Gives one back that was flushed.
    pub(super) fn put_flushed(&self, number: u64, connection: C) {
        let mut state = self.state();
        state.unflushed.remove(&number);
        state.idle.push((number, connection));
        self.freed.notify_all();
    }

    /// Whether nothing is lost of what was written since a flush said the last time that something was.
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
