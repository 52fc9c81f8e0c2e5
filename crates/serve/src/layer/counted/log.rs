//! What a thread has done and nobody has judged yet.
//!
//! One thread notes, without waiting for anything. Whoever takes the notes out does so alone; the one who notes does it in time.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use trueline_geom::audit::io::IoKind;

/// Requests in a log: a power of two, so that numbers may begin again at 0 when they have reached the largest.
const NOTES: usize = 32;

/// The last requests of a thread, in lines of memory of its own: in pairs, as processors fetch them.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Log {
    /// Requests that were ever noted.
    noted: AtomicUsize,
    /// The last of them, in turn.
    notes: [Note; NOTES],
    /// How many of them were taken out, at most [`NOTES`] less. Whoever has locked it takes out.
    taken: Mutex<usize>,
}

/// A request.
#[derive(Default)]
struct Note {
    offset: AtomicU64,
    length: AtomicU64,
    /// Its place in [`IoKind::ALL`].
    deed: AtomicU8,
}

impl Log {
    /// Notes a request; `false` if [`Log::take`] must follow, before there is no room. One thread at a time calls it.
    #[must_use]
    pub(super) fn note(&self, deed: IoKind, offset: u64, length: u64) -> bool {
        let noted = self.noted.load(Ordering::Relaxed);
        let note = &self.notes[noted % NOTES];
        note.offset.store(offset, Ordering::Relaxed);
        note.length.store(length, Ordering::Relaxed);
        note.deed.store(deed as u8, Ordering::Relaxed);
        // Whoever sees the number sees the note.
        let noted = noted.wrapping_add(1);
        self.noted.store(noted, Ordering::Release);
        !noted.is_multiple_of(NOTES)
    }

    /// Takes out all requests that were noted, in their order. Those who do it wait for each other.
    pub(super) fn take(&self, mut each: impl FnMut(IoKind, u64, u64)) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let noted = self.noted.load(Ordering::Acquire);
        while *taken != noted {
            let note = &self.notes[*taken % NOTES];
            let deed = IoKind::ALL[usize::from(note.deed.load(Ordering::Relaxed))];
            // First, so that nothing is seen twice, should `each` panic.
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
        // How many were noted before, and how often the four fill the log. The numbers of the last one begin again.
        for (first, full) in [(0, 0), (NOTES - 4, 1), (NOTES - 1, 1), (usize::MAX - 2, 1)] {
            let log = Log { noted: AtomicUsize::new(first), taken: Mutex::new(first), ..Log::default() };
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
    fn who_takes_out_sees_whole_requests() {
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
