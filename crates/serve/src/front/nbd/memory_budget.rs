//! Memory that the clients of a server have together for large requests. Who finds none waits for his turn.
//!
//! Nobody waits for it who holds some that only he can give back, so whoever holds some goes on: it comes back when a device has
//! answered, when a payload has come or a reply has gone, and both have their time ([`crate::front::nbd::limits`]).
//!
//! # Limits
//! Who goes while he waits is noticed within a quarter of a second where his socket says so: a TCP that was closed, and to which nothing is sent, looks
//! as one that will only send nothing more, and is noticed when it is its turn.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What every client has for itself: a payload that is received, a reply, and requests that wait for a device, of so many bytes each.
pub const OWN: usize = 1 << 20;
/// How often it is looked whether those who wait are there.
pub(super) const LOOK: Duration = Duration::from_millis(250);

/// Memory, as a number of bytes that are held at most.
pub struct MemoryBudget {
    size: usize,
    state: Mutex<State>,
    /// Something was given back, or it is another one's turn.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    held: usize,
    /// The number of the next one who comes.
    next: u64,
    /// Who waits, the first one first.
    waiting: VecDeque<u64>,
    /// Since when somebody does, without a break.
    crowded: Option<Instant>,
}

/// So many bytes, until this goes.
pub struct Reservation<'a> {
    room: &'a MemoryBudget,
    bytes: usize,
}

impl MemoryBudget {
    /// For `size` bytes; one request that is larger has all of it, and more.
    pub fn new(size: usize) -> MemoryBudget {
        MemoryBudget { size, state: Mutex::default(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, state: &State, bytes: usize) -> bool {
        state.held == 0 || state.held.checked_add(bytes).is_some_and(|held| held <= self.size)
    }

    /// `bytes`, after those who waited before; [`None`] if who wants them is `gone` before it is his turn.
    pub(super) fn share(&self, bytes: usize, gone: &dyn Fn() -> bool) -> Option<Reservation<'_>> {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.waiting.push_back(number);
        state.crowded.get_or_insert_with(Instant::now);
        let mut there = true;
        while there && (state.waiting.front() != Some(&number) || !self.has(&state, bytes)) {
            state = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
            there = !gone();
        }
        state.waiting.retain(|&other| other != number);
        if state.waiting.is_empty() {
            state.crowded = None;
        }
        if there {
            state.held = state.held.saturating_add(bytes);
        }
        // There may be enough for the next one as well.
        self.changed.notify_all();
        there.then(|| Reservation { room: self, bytes })
    }

    /// Since when somebody waits, without a break.
    pub(super) fn crowded(&self) -> Option<Instant> {
        self.state().crowded
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.room.state().held -= self.bytes;
        self.room.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    const HERE: &dyn Fn() -> bool = &|| false;

    /// What is there at once, and nobody waits for.
    fn at_once(room: &MemoryBudget, bytes: usize) -> Option<Reservation<'_>> {
        let first = AtomicBool::new(true);
        room.share(bytes, &|| first.swap(false, Ordering::Relaxed))
    }

    fn await_waiting(room: &MemoryBudget, count: usize) {
        let begun = Instant::now();
        while room.state().waiting.len() < count {
            assert!(begun.elapsed() < Duration::from_secs(600), "nobody waits");
            std::thread::yield_now();
        }
    }

    #[test]
    fn no_more_is_held_than_there_is() {
        let room = MemoryBudget::new(100);
        let (one, other) = (room.share(60, HERE).unwrap(), room.share(40, HERE).unwrap());
        assert!(at_once(&room, 1).is_none());
        drop(one);
        assert!(at_once(&room, 61).is_none());
        let again = room.share(60, HERE);
        drop((other, again));
        // More than there is has all of it, and nobody else has any.
        let all = room.share(usize::MAX, HERE).unwrap();
        assert!(at_once(&room, 1).is_none());
        drop(all);
        assert!(room.share(100, HERE).is_some());
    }

    /// Threads that want more together than there is, some of them more than there is at all, and some of which go.
    #[test]
    fn everybody_has_his_turn() {
        let (room, held) = (MemoryBudget::new(100), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (room, held) = (&room, &held);
                scope.spawn(move || {
                    for round in 0..500 {
                        let bytes = (thread * 31 + round * 17) % 120 + 1;
                        let Some(share) = room.share(bytes, &|| round % 5 == 0) else { continue };
                        let before = held.fetch_add(bytes, Ordering::SeqCst);
                        assert!(before == 0 || before + bytes <= 100, "{bytes} beside {before}");
                        held.fetch_sub(bytes, Ordering::SeqCst);
                        drop(share);
                    }
                });
            }
        });
        let state = room.state();
        assert_eq!((state.held, state.waiting.len()), (0, 0));
    }

    /// Who wants little does not pass by who waits for much, and those who hold some can see that somebody waits.
    #[test]
    fn who_waits_is_the_next() {
        let room = MemoryBudget::new(100);
        std::thread::scope(|scope| {
            let held = room.share(60, HERE);
            assert_eq!(room.crowded(), None);
            let waits = scope.spawn(|| room.share(50, HERE).is_some());
            await_waiting(&room, 1);
            assert!(at_once(&room, 10).is_none());
            let since = room.crowded();
            assert!(since.is_some());
            assert!(at_once(&room, 10).is_none());
            assert_eq!(room.crowded(), since, "the first one still waits");
            drop(held);
            assert!(waits.join().unwrap());
            assert_eq!(room.crowded(), None);
        });
        assert!(room.share(100, HERE).is_some());
    }

    /// Who wants much, and goes, keeps nothing from who wants little and came after him.
    #[test]
    fn who_goes_makes_way() {
        let (room, gone) = (MemoryBudget::new(100), AtomicBool::new(false));
        let held = room.share(60, HERE);
        std::thread::scope(|scope| {
            let goes = scope.spawn(|| room.share(50, &|| gone.load(Ordering::Relaxed)).is_none());
            await_waiting(&room, 1);
            let stays = scope.spawn(|| room.share(40, HERE).is_some());
            await_waiting(&room, 2);
            gone.store(true, Ordering::Relaxed);
            assert!(goes.join().unwrap() && stays.join().unwrap());
        });
        drop(held);
        assert_eq!(room.state().held, 0);
    }
}
