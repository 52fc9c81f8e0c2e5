//! The log of a thread's finished requests that are not judged yet.
//!
//! One thread writes notes, without waiting. Any thread may take them out, one at a time; the
//! writer does so before the log overflows.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use trueline_geom::audit::io::IoKind;
use trueline_host::lock::lock;

/// The capacity of a log: a power of two, so that counts may wrap around.
const NOTES: usize = 32;

/// The latest requests of a thread, aligned to pairs of cache lines, which processors fetch
/// together.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Log {
    /// The number of requests ever noted.
    noted: AtomicUsize,
    /// The notes, as a ring.
    notes: [Note; NOTES],
    /// The number of notes taken out, at most [`NOTES`] less. Its lock allows one thread at a time
    /// to take.
    taken: Mutex<usize>,
}

/// A finished request, to be judged.
#[derive(Default)]
struct Note {
    offset: AtomicU64,
    length: AtomicU64,
    /// The index in [`IoKind::ALL`].
    deed: AtomicU8,
}

impl Log {
    /// Notes a request. False if [`Log::take`] must follow, before the log overflows. Only one
    /// thread may call it.
    #[must_use]
    pub(super) fn note(&self, deed: IoKind, offset: u64, length: u64) -> bool {
        let noted = self.noted.load(Ordering::Relaxed);
        let note = &self.notes[noted % NOTES];
        note.offset.store(offset, Ordering::Relaxed);
        note.length.store(length, Ordering::Relaxed);
        note.deed.store(deed as u8, Ordering::Relaxed);
        // Release: a thread that sees the count sees the note.
        let noted = noted.wrapping_add(1);
        self.noted.store(noted, Ordering::Release);
        !noted.is_multiple_of(NOTES)
    }

    /// Takes out all notes, in order, and calls `each` for them. Concurrent calls wait for each
    /// other.
    pub(super) fn take(&self, mut each: impl FnMut(IoKind, u64, u64)) {
        let mut taken = lock(&self.taken);
        let noted = self.noted.load(Ordering::Acquire);
        while *taken != noted {
            let note = &self.notes[*taken % NOTES];
            let deed = IoKind::ALL[usize::from(note.deed.load(Ordering::Relaxed))];
            // Counted first, so that no note is taken twice if `each` panics.
            *taken = taken.wrapping_add(1);
            each(deed, note.offset.load(Ordering::Relaxed), note.length.load(Ordering::Relaxed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn taken(log: &Log) -> Vec<(IoKind, u64, u64)> {
        let mut all = Vec::new();
        log.take(|deed, offset, length| all.push((deed, offset, length)));
        all
    }

    #[test]
    fn each_request_is_taken_out_once_in_its_order() {
        // How many were noted before, and how often the four fill the log. The numbers of the last
        // one begin again.
        for (first, full) in [(0, 0), (NOTES - 4, 1), (NOTES - 1, 1), (usize::MAX - 2, 1)] {
            let log =
                Log { noted: AtomicUsize::new(first), taken: Mutex::new(first), ..Log::default() };
            assert_eq!(taken(&log), []);
            let requests = IoKind::ALL.map(|deed| (deed, u64::MAX, u64::MAX - 1));
            let more = requests.map(|(deed, offset, length)| log.note(deed, offset, length));
            assert_eq!(more.iter().filter(|&&more| !more).count(), full, "{first}");
            assert_eq!((taken(&log), taken(&log)), (requests.to_vec(), vec![]), "{first}");
        }
    }

    #[test]
    fn no_request_is_lost_that_was_not_taken_out() {
        let log = Log::default();
        let mut all = Vec::new();
        for nth in 0..10 * NOTES as u64 {
            // As it is asked for, and at times of others' own.
            if !log.note(IoKind::Write, nth, 1) || nth.is_multiple_of(7) {
                all.append(&mut taken(&log));
            }
        }
        all.append(&mut taken(&log));
        assert!(all.iter().map(|&(_, offset, _)| offset).eq(0..10 * NOTES as u64));
    }

    /// One takes out while another notes: each request once, and none of which a part is another's.
    #[test]
    fn a_taker_sees_whole_requests() {
        const REQUESTS: u64 = 100_000;
        let (log, ended, seen) = (Log::default(), AtomicBool::new(false), AtomicU64::new(0));
        let deed = |nth: u64| IoKind::ALL[usize::from(nth.to_le_bytes()[0]) % 4];
        let take = || {
            log.take(|did, offset, length| {
                let nth = seen.fetch_add(1, Ordering::Relaxed);
                assert_eq!((did, offset, length), (deed(nth), nth, u64::MAX - nth));
            });
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    take();
                }
            });
            for nth in 0..REQUESTS {
                if !log.note(deed(nth), nth, u64::MAX - nth) {
                    take();
                }
            }
            ended.store(true, Ordering::Relaxed);
        });
        take();
        assert_eq!(seen.into_inner(), REQUESTS);
    }
}
