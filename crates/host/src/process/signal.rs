//! Ctrl-C, kill(1) and a closed terminal as a condition that long work polls, instead of an
//! immediate end.
//!
//! The first SIGINT, SIGTERM or SIGHUP is remembered; a SIGHUP that was ignored before, as by
//! nohup(1), still is. Another one a second later or more ends the program as it would without a
//! handler. An earlier one counts as the same: timeout(1) signals its child and then the process
//! group of the child.

#![allow(unsafe_code, reason = "a signal handler, which rustix does not have")]

use libc::{SIG_DFL, SIG_IGN, SIGHUP, SIGINT, SIGTERM, sighandler_t};
use rustix::time::{ClockId, clock_gettime};
use std::ffi::c_int;
use std::sync::atomic::{AtomicI64, Ordering};

/// The time of the first signal, in ms of the monotonic clock plus 1, so that it is never 0; 0:
/// none so far.
static FIRST: AtomicI64 = AtomicI64::new(0);
/// The time in ms after the first signal in which another one counts as the same.
const SAME: i64 = 1000;

extern "C" fn remember(number: c_int) {
    // clock_gettime(2) may be called in a handler (signal-safety(7)).
    let time = clock_gettime(ClockId::Monotonic);
    let now =
        time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000).saturating_add(1);
    let first = FIRST.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    if first.is_err_and(|first| now.saturating_sub(first) >= SAME) {
        // SAFETY: signal(2) and raise(3) may be called in a handler (signal-safety(7)), and the
        // default needs no code of ours.
        unsafe {
            libc::signal(number, SIG_DFL);
            libc::raise(number);
        }
    }
}

/// Installs the handler: the first Ctrl-C, SIGTERM, or SIGHUP unless it is ignored, is only
/// remembered from now on.
pub fn remember_first() {
    let handler: extern "C" fn(c_int) = remember;
    for number in [SIGINT, SIGTERM, SIGHUP] {
        // SAFETY: the handler touches nothing but an atomic, and calls what may be called in one.
        let before = unsafe { libc::signal(number, handler as sighandler_t) };
        if number == SIGHUP && before == SIG_IGN {
            // SAFETY: to ignore a signal needs no code of ours.
            unsafe { libc::signal(number, SIG_IGN) };
        }
    }
}

/// True if a signal was remembered.
pub fn happened() -> bool {
    FIRST.load(Ordering::Relaxed) != 0
}
