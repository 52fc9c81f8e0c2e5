//! Ctrl-C, kill(1) and a terminal that goes away as a question that long work asks, instead of an end.
//!
//! The first SIGINT, SIGTERM or SIGHUP is remembered; a SIGHUP that was ignored before, as by nohup(1), still is. One that comes a second
//! later or more ends the program as it would have without this; sooner it is the same once more: timeout(1) signals its child and then
//! the group that the child is in.

#![allow(unsafe_code, reason = "a signal handler, which no safe wrapper without further dependencies has")]

use rustix::time::{ClockId, clock_gettime};
use std::ffi::c_int;
use std::sync::atomic::{AtomicI64, Ordering};

/// When the first one came, in ms of the monotonic clock, and one more, so that it is never 0; 0: none has.
static FIRST: AtomicI64 = AtomicI64::new(0);
/// What comes this soon after the first is the same one, in ms.
const SAME: i64 = 1000;

/// signal(7): the same on every architecture that Linux runs on.
const SIGHUP: c_int = 1;
const SIGINT: c_int = 2;
const SIGTERM: c_int = 15;
/// `SIG_DFL`.
const DEFAULT: usize = 0;
/// `SIG_IGN`.
const IGNORED: usize = 1;

unsafe extern "C" {
    /// signal(2) of the C library, which restarts system calls.
    fn signal(number: c_int, handler: usize) -> usize;
    /// raise(3): to this thread, as soon as the handler returns.
    fn raise(number: c_int) -> c_int;
}

extern "C" fn remember(number: c_int) {
    // clock_gettime(2) may be called in a handler (signal-safety(7)).
    let time = clock_gettime(ClockId::Monotonic);
    let now = time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000).saturating_add(1);
    let first = FIRST.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    if first.is_err_and(|first| now.saturating_sub(first) >= SAME) {
        // SAFETY: signal(2) and raise(3) may be called in a handler (signal-safety(7)), and the default needs no code of ours.
        unsafe {
            signal(number, DEFAULT);
            raise(number);
        }
    }
}

/// From now on the first Ctrl-C, the first SIGTERM, and the first SIGHUP unless it is ignored, is only remembered.
pub fn remember_first() {
    let handler: extern "C" fn(c_int) = remember;
    for number in [SIGINT, SIGTERM, SIGHUP] {
        // SAFETY: the handler touches nothing but an atomic, and calls what may be called in one.
        let before = unsafe { signal(number, handler as usize) };
        if number == SIGHUP && before == IGNORED {
            // SAFETY: to ignore a signal needs no code of ours.
            unsafe { signal(number, IGNORED) };
        }
    }
}

/// Whether there was one.
pub fn happened() -> bool {
    FIRST.load(Ordering::Relaxed) != 0
}
