//! Errors of a medium, reported once to every client.
//!
//! Data that were written and did not reach the medium are lost, and the kernel says so once for
//! every open file: to the next flush, whichever client asked for it. Here many clients share one
//! open file, so an error reported to one of them is kept until it has been reported to each of the
//! others.
//!
//! # Limits
//! A successful flush waits for flushes that began before it ended: the kernel may have reported an
//! error to one of those, which has not returned yet. A write through the cache (forced unit
//! access) does not wait; an error missed by that is reported to the next request.
//!
//! # Sources
//! Linux `include/linux/errseq.h`, `lib/errseq.c`, and `Documentation/filesystems/vfs.rst`,
//! "Handling errors during writeback". Here a counter of 64 bits needs no flag for errors that were
//! seen: the request that meets an error is told of it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use trueline_geom::base::error::Errno;
use trueline_host::lock::{lock, wait};

/// The sequence of errors of a medium, in the order in which they happened.
#[derive(Debug, Default)]
pub struct ErrorSequence {
    state: Mutex<State>,
    /// Signals that a request has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The number of errors, and the last one.
    count: u64,
    last: Option<Errno>,
    /// Requests that an error may be reported to, by numbers in the order in which they began.
    running: BTreeSet<u64>,
    next: u64,
}

/// The number of errors that a client knows of: those before it came, and those reported to it.
#[derive(Debug, Default)]
pub struct Since(AtomicU64);

/// A request that an error may be reported to, until this is dropped.
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
    /// The last error, if any were not reported to this client; they count as reported from now on.
    fn advance(&self, since: &Since) -> Result<(), Errno> {
        let known = since.0.swap(self.count, Ordering::Relaxed);
        self.last.filter(|_| known != self.count).map_or(Ok(()), Err)
    }
}

/// True if the error of a write through the cache means a loss of data, rather than an invalid
/// request.
fn is_of_medium(errno: Errno) -> bool {
    matches!(errno, Errno::Io | Errno::NoDevice | Errno::NoSpace)
}

impl ErrorSequence {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The state of a new client, which knows of all errors so far.
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

    /// Ends a request, with an error of the medium or without. Returns the number of the next
    /// request.
    fn end(&self, own: Running<'_>, errno: Option<Errno>) -> u64 {
        let mut state = self.state();
        if errno.is_some() {
            (state.count, state.last) = (state.count + 1, errno);
        }
        let next = state.next;
        drop(state);
        // The requests that wait for this one see its error.
        drop(own);
        next
    }

    /// Calls `flush`, and reports its error, or any other since the last report to `since`.
    pub fn flush(
        &self,
        since: &Since,
        flush: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let own = self.begin();
        let done = flush();
        let next = self.end(own, done.err());
        let mut state = self.state();
        while done.is_ok() && state.running.first().is_some_and(|&other| other < next) {
            state = wait(&self.ended, state);
        }
        done.and(state.advance(since))
    }

    /// Calls `write`, which writes through the cache, and reports its error, or any other since the
    /// last report to `since`.
    pub fn write(
        &self,
        since: &Since,
        write: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let own = self.begin();
        let done = write();
        let of_medium = done.err().filter(|&errno| is_of_medium(errno));
        self.end(own, of_medium);
        // An error of the request itself leaves errors of the medium to the next report.
        if done.is_err() && of_medium.is_none() {
            done
        } else {
            done.and(self.state().advance(since))
        }
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
        // A client that comes after the error has lost nothing by it.
        let late = sequence.sample();
        assert_eq!(flush(&sequence, &one), Ok(()));
        assert_eq!(
            (flush(&sequence, &other), flush(&sequence, &other)),
            (Err(Errno::NoSpace), Ok(()))
        );
        assert_eq!(flush(&sequence, &late), Ok(()));
        // Several errors are one to a client that did not ask meanwhile, and its own counts too.
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
        assert_eq!(
            (sequence.write(&other, || Ok(())), sequence.write(&other, || Ok(()))),
            (FAILED, Ok(()))
        );
    }

    /// The kernel has reported the error to the other flush, which has not returned: a flush that
    /// ends before it must not succeed.
    #[test]
    fn a_flush_that_was_told_in_our_place_is_waited_for() {
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
