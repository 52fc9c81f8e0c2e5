//! Errors of a medium, told to everybody once.
//!
//! What was written and did not reach the medium is lost for whoever wrote it, and the kernel says so once for every open file: to the
//! flush that comes next, whoever asked for it. Here the open file is one and those who ask are several, so what one of them was told
//! is kept until each of the others has been told.
//!
//! # Limits
//! A flush that ended well waits for those that began before it ended: one of them may have been told in its place, and not have said so
//! yet. A write through the cache (forced unit access) does not wait for them, and what it misses by that is told to the next request.
//!
//! # Sources
//! Linux `include/linux/errseq.h`, `lib/errseq.c`, and `Documentation/filesystems/vfs.rst`, "Handling errors during writeback". Here is a
//! counter of 64 bits, which needs no flag that says whether anybody has seen an error: whoever causes one is told of it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use trueline_geom::base::error::Errno;

/// The errors of a medium, in the order in which they happened.
#[derive(Debug, Default)]
pub struct ErrorSequence {
    state: Mutex<State>,
    /// A request has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// How many errors there were, and the last.
    count: u64,
    last: Option<Errno>,
    /// Requests that may be told of an error, by numbers in the order in which they began.
    running: BTreeSet<u64>,
    next: u64,
}

/// How many errors somebody knows of: those before he came, and those he was told of.
#[derive(Debug, Default)]
pub struct Since(AtomicU64);

/// A request that may be told of an error, until this goes.
struct Running<'a> {
    sequence: &'a ErrorSequence,
    number: u64,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.sequence.state().running.remove(&self.number);
        self.sequence.ended.notify_all();
    }
}

impl State {
    /// The last error, if there were any that he is not told of; now he is.
    fn advance(&self, since: &Since) -> Result<(), Errno> {
        let known = since.0.swap(self.count, Ordering::Relaxed);
        self.last.filter(|_| known != self.count).map_or(Ok(()), Err)
    }
}

/// Whether a failed write through the cache says that something is lost, and not that it was wrong to ask.
fn is_of_medium(errno: Errno) -> bool {
    matches!(errno, Errno::Io | Errno::NoDevice | Errno::NoSpace)
}

impl ErrorSequence {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For somebody who comes now.
    pub fn sample(&self) -> Since {
        Since(AtomicU64::new(self.state().count))
    }

    fn begin(&self) -> Running<'_> {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.running.insert(number);
        Running { sequence: self, number }
    }

    /// A request has ended, with an error of the medium or without; gives the number of the next.
    fn end(&self, own: Running<'_>, errno: Option<Errno>) -> u64 {
        let mut state = self.state();
        if errno.is_some() {
            (state.count, state.last) = (state.count + 1, errno);
        }
        let next = state.next;
        drop(state);
        // Whoever waits for it is told of its error.
        drop(own);
        next
    }

    /// Does `flush`, and says what became of everything that was written since `since` was told last.
    pub fn flush(&self, since: &Since, flush: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
        let own = self.begin();
        let done = flush();
        let next = self.end(own, done.err());
        let mut state = self.state();
        while done.is_ok() && state.running.first().is_some_and(|&other| other < next) {
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        done.and(state.advance(since))
    }

    /// Does `write`, which writes through the cache, and says what became of it and of everything else since `since` was told last.
    pub fn write(&self, since: &Since, write: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
        let own = self.begin();
        let done = write();
        let of_medium = done.err().filter(|&errno| is_of_medium(errno));
        self.end(own, of_medium);
        // An answer that says something else leaves what is to be told to the next one.
        if done.is_err() && of_medium.is_none() { done } else { done.and(self.state().advance(since)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const FAILED: Result<(), Errno> = Err(Errno::Io);

    fn flush(sequence: &ErrorSequence, since: &Since) -> Result<(), Errno> {
        sequence.flush(since, || Ok(()))
    }

    #[test]
    fn everybody_is_told_once() {
        let sequence = ErrorSequence::default();
        let (one, other) = (sequence.sample(), sequence.sample());
        assert_eq!((flush(&sequence, &one), flush(&sequence, &other)), (Ok(()), Ok(())));
        assert_eq!(sequence.flush(&one, || Err(Errno::NoSpace)), Err(Errno::NoSpace));
        // Who comes after it has lost nothing by it.
        let late = sequence.sample();
        assert_eq!(flush(&sequence, &one), Ok(()));
        assert_eq!((flush(&sequence, &other), flush(&sequence, &other)), (Err(Errno::NoSpace), Ok(())));
        assert_eq!(flush(&sequence, &late), Ok(()));
        // Several are one for who did not ask meanwhile, and his own counts too.
        assert_eq!([1, 2].map(|_| sequence.flush(&one, || FAILED)), [FAILED; 2]);
        assert_eq!((sequence.flush(&other, || FAILED), flush(&sequence, &other)), (FAILED, Ok(())));
        assert_eq!((flush(&sequence, &one), flush(&sequence, &one)), (FAILED, Ok(())));
        assert_eq!((flush(&sequence, &late), flush(&sequence, &late)), (FAILED, Ok(())));
    }

    #[test]
    fn a_write_through_the_cache_tells_and_is_told() {
        let sequence = ErrorSequence::default();
        let (one, other) = (sequence.sample(), sequence.sample());
        assert_eq!(sequence.write(&one, || FAILED), FAILED);
        // What was wrong to ask is no loss, and hides none.
        assert_eq!(sequence.write(&other, || Err(Errno::Range)), Err(Errno::Range));
        assert_eq!(sequence.write(&one, || Ok(())), Ok(()));
        assert_eq!((sequence.write(&other, || Ok(())), sequence.write(&other, || Ok(()))), (FAILED, Ok(())));
    }

    /// The kernel has told the other flush, which has not come back: who ends before it must not say that all is well.
    #[test]
    fn who_was_told_in_our_place_is_waited_for() {
        let sequence = ErrorSequence::default();
        let (one, other) = (sequence.sample(), sequence.sample());
        let (begun, has_begun) = mpsc::channel();
        let (end, may_end) = mpsc::channel();
        std::thread::scope(|scope| {
            let slow = scope.spawn(|| {
                sequence.flush(&one, move || {
                    begun.send(()).unwrap();
                    may_end.recv().unwrap();
                    FAILED
                })
            });
            has_begun.recv().unwrap();
            // Ends at once, and lets the other go on only then.
            let told = sequence.flush(&other, || {
                end.send(()).unwrap();
                Ok(())
            });
            assert_eq!((slow.join().unwrap(), told), (FAILED, FAILED));
        });
    }
}
