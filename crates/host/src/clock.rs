//! The clock that measurements are made with.

use rustix::time::{ClockId, clock_gettime};

/// ns of CLOCK_MONOTONIC: no step of the wall clock is in it.
#[inline]
pub fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let whole = |n: i64| u64::try_from(n).unwrap_or(0);
    whole(now.tv_sec) * 1_000_000_000 + whole(now.tv_nsec)
}
