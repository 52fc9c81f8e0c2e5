//! The monotonic clock of all measurements, and a precise wait.

use rustix::thread;
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The time of CLOCK_MONOTONIC in nanoseconds, without steps of the wall clock.
#[inline]
pub fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let whole = |n: i64| u64::try_from(n).unwrap_or(0);
    whole(now.tv_sec) * 1_000_000_000 + whole(now.tv_nsec)
}

/// The interval in which a thread that waits for a call without an end looks whether it shall end:
/// short for a user at the keyboard, and no load.
pub const TICK: Duration = Duration::from_millis(20);

/// The delay of a timer and of the wake-up of a processor in ns: a thread wakes this early and then
/// polls the clock.
const EARLY_NS: u64 = 60_000;

/// Returns when [`now`] reaches `until`, to the microsecond if a processor is free; earlier if the
/// thread is unparked, or spuriously. Another thread may change `until` meanwhile.
pub fn wait(until: &AtomicU64) {
    punctual();
    let left = until.load(Ordering::Relaxed).saturating_sub(now());
    if left > EARLY_NS {
        std::thread::park_timeout(Duration::from_nanos(left - EARLY_NS));
        return;
    }
    while now() < until.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
}

/// Makes timers of this thread fire without coalescing (`PR_SET_TIMERSLACK`, 50 µs by default).
fn punctual() {
    thread_local!(static SAID: Cell<bool> = const { Cell::new(false) });
    if !SAID.replace(true) {
        // Failure only makes a timer late.
        let _ = thread::set_current_timer_slack(NonZeroU64::new(1));
    }
}
