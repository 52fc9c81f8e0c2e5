//! Work on all processors, whose results are taken in the order of what they are of.

use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

/// Results that are ready or under way, and not taken yet: those before them take longer.
const WINDOW: u64 = 1024;

/// Things that are still to be worked on, and how far their results are taken.
struct Queue<I> {
    state: Mutex<QueueState<I>>,
    moved: Condvar,
}

struct QueueState<I> {
    things: I,
    begun: u64,
    taken: u64,
    /// True once no more things are wanted.
    ended: bool,
}

impl<I: Iterator> Queue<I> {
    /// The next thing and its number; waits while too many are ahead of what is taken.
    fn next(&self) -> Option<(u64, I::Item)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.ended && state.begun >= state.taken + WINDOW {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let next = if state.ended { None } else { state.things.next() };
        state.ended |= next.is_none();
        let number = state.begun;
        state.begun += 1;
        next.map(|thing| (number, thing))
    }

    fn change(&self, change: impl FnOnce(&mut QueueState<I>)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.moved.notify_all();
    }
}

/// End of a worker. One that panics leaves a gap that nothing fills: the others must not wait.
struct Leaves<'a, I: Iterator>(&'a Queue<I>);

impl<I: Iterator> Drop for Leaves<'_, I> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.change(|state| state.ended = true);
        }
    }
}

/// Number of processors of this host.
pub(crate) fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Does `work` with every one of `things`, in so many threads, and gives `take` the results in
/// their order, with whether more are ready behind it, until that says no more are wanted. At most
/// [`WINDOW`] results wait. A panic of the work is one of the caller.
pub(crate) fn in_order<T: Send, R: Send>(
    threads: usize,
    things: impl Iterator<Item = T> + Send,
    work: impl Fn(T) -> R + Sync,
    mut take: impl FnMut(R, bool) -> bool,
) {
    let state = QueueState { things, begun: 0, taken: 0, ended: false };
    let queue = Queue { state: Mutex::new(state), moved: Condvar::new() };
    let (send, receive) = channel();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (send, queue, work) = (send.clone(), &queue, &work);
            scope.spawn(move || {
                let _leaves = Leaves(queue);
                while let Some((number, thing)) = queue.next() {
                    if send.send((number, work(thing))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        let (mut waiting, mut next, mut wanted) = (BTreeMap::new(), 0, true);
        for (number, result) in receive {
            waiting.insert(number, result);
            while let Some(result) = waiting.remove(&next) {
                next += 1;
                wanted = wanted && take(result, waiting.contains_key(&next));
                queue.change(|state| {
                    state.taken = next;
                    state.ended |= !wanted;
                });
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    #[test]
    fn results_come_in_order_and_few_wait() {
        let (begun, mut taken) = (AtomicU64::new(0), 0);
        let work = |n: u64| {
            begun.fetch_add(1, Ordering::Relaxed);
            // The first is the slowest.
            thread::sleep(Duration::from_millis(if n == 0 { 50 } else { 0 }));
            n
        };
        in_order(2, 0..5000, work, |n, _| {
            assert_eq!(n, taken);
            taken += 1;
            assert!(begun.load(Ordering::Relaxed) <= taken + WINDOW);
            true
        });
        assert_eq!((taken, begun.load(Ordering::Relaxed)), (5000, 5000));
    }

    #[test]
    fn no_more_is_begun_than_is_wanted() {
        let begun = AtomicU64::new(0);
        let work = |_| begun.fetch_add(1, Ordering::Relaxed);
        let mut taken = 0;
        in_order(2, 0..1_000_000, work, |_, _| {
            taken += 1;
            taken < 10
        });
        assert_eq!(taken, 10);
        assert!(begun.load(Ordering::Relaxed) <= 10 + WINDOW + 64);
    }

    /// A gap in the results ends the run instead of waiting for ever.
    #[test]
    fn a_panic_ends_all() {
        let work = |n: u64| assert_ne!(n, 3, "the third");
        let ended = catch_unwind(AssertUnwindSafe(|| in_order(2, 0..100_000, work, |(), _| true)));
        assert!(ended.is_err());
    }
}
