//! Memory that the clients of a server share for large requests. A client that finds none waits for
//! its turn.
//!
//! A client never waits while it holds memory that only it can release, so holders always progress.
//! Memory returns when a device has answered, when a payload has arrived or a reply was sent, and
//! the latter have deadlines ([`crate::front::nbd::limits`]).
//!
//! # Limits
//! A client that leaves while it waits is noticed within a quarter of a second if its socket
//! reports it. A closed TCP connection to which nothing is sent looks like one that only sends no
//! more; it is noticed at its turn.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use trueline_host::lock::lock;

/// The memory of every client itself in bytes: for a payload, for replies, and for requests that
/// wait for a device, each.
pub const OWN: usize = 1 << 20;
/// The interval between two checks whether waiting clients are still there.
pub(super) const LOOK: Duration = Duration::from_millis(250);

/// A budget of memory in bytes.
pub struct MemoryBudget {
    size: usize,
    state: Mutex<State>,
    /// Signals that memory was returned, or that another client has its turn.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    held: usize,
    /// The number of the next client that comes.
    next: u64,
    /// The numbers of the waiting clients, the first one first.
    waiting: VecDeque<u64>,
    /// The time since which some client has been waiting, without a break.
    crowded: Option<Instant>,
}

/// A reservation of memory, returned when dropped.
pub struct Reservation<'a> {
    room: &'a MemoryBudget,
    bytes: usize,
}

impl MemoryBudget {
    /// A budget of `size` bytes; one request that is larger gets all of it, and more.
    pub fn new(size: usize) -> MemoryBudget {
        MemoryBudget { size, state: Mutex::default(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn has(&self, state: &State, bytes: usize) -> bool {
        state.held == 0 || state.held.checked_add(bytes).is_some_and(|held| held <= self.size)
    }

    /// Reserves `bytes`, after the clients that waited before; [`None`] if the client is `gone`
    /// before its turn.
    pub(super) fn share(&self, bytes: usize, gone: &dyn Fn() -> bool) -> Option<Reservation<'_>> {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.waiting.push_back(number);
        state.crowded.get_or_insert_with(Instant::now);
        let mut there = true;
        while there && (state.waiting.front() != Some(&number) || !self.has(&state, bytes)) {
            state =
                self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
            there = !gone();
        }
        state.waiting.retain(|&other| other != number);
        if state.waiting.is_empty() {
            state.crowded = None;
        }
        if there {
            state.held = state.held.saturating_add(bytes);
        }
        // There may be enough for the next client too.
        self.changed.notify_all();
        there.then(|| Reservation { room: self, bytes })
    }

    /// The time since which some client has been waiting, without a break.
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

    /// A reservation granted without a wait, if there is one.
    fn at_once(room: &MemoryBudget, bytes: usize) -> Option<Reservation<'_>> {
        let first = AtomicBool::new(true);
        room.share(bytes, &|| first.swap(false, Ordering::Relaxed))
    }

    fn await_waiting(room: &MemoryBudget, count: usize) {
        let begun = Instant::now();
        while room.state().waiting.len() < count {
            assert!(begun.elapsed() < Duration::from_secs(600), "no client waits");
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
        // A request above the budget gets all of it, and no other gets any.
        let all = room.share(usize::MAX, HERE).unwrap();
        assert!(at_once(&room, 1).is_none());
        drop(all);
        assert!(room.share(100, HERE).is_some());
    }

    /// Threads that want more together than there is, some of them more than the whole budget, and
    /// some of which leave.
    #[test]
    fn every_client_has_its_turn() {
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

    /// A small request does not overtake a large one, and holders can see that a client waits.
    #[test]
    fn a_waiting_client_is_the_next() {
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

    /// A client that wants much, and leaves, keeps nothing from a smaller one behind it.
    #[test]
    fn a_client_that_leaves_makes_way() {
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
