//! The clock that measurements are made with.

use rustix::thread;
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// ns of CLOCK_MONOTONIC: no step of the wall clock is in it.
#[inline]
pub fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let whole = |n: i64| u64::try_from(n).unwrap_or(0);
    whole(now.tv_sec) * 1_000_000_000 + whole(now.tv_nsec)
}

/// What a timer and the waking of a processor take: so long before its time a thread is awake and asks the clock.
const EARLY_NS: u64 = 60_000;

/// Returns when it is `until` ([`now`]), to the microsecond as far as there is a processor; before it, if the thread is unparked or for no
/// reason. `until` may change meanwhile.
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

/// Timers of this thread are not gathered with later ones (`PR_SET_TIMERSLACK`, 50 µs where nobody says otherwise).
fn punctual() {
    thread_local!(static SAID: Cell<bool> = const { Cell::new(false) });
    if !SAID.replace(true) {
        // Without it a timer is late, and nothing worse.
        let _ = thread::set_current_timer_slack(NonZeroU64::new(1));
    }
}
