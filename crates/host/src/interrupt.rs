//! Ctrl-C and kill(1) as a question that long work asks, instead of an end.
//!
//! The first SIGINT or SIGTERM is remembered; the second of its kind ends the program as it would have without this.

#![allow(unsafe_code, reason = "a signal handler, which no safe wrapper without further dependencies has")]

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// signal(7): the same on every architecture that Linux runs on.
const SIGINT: c_int = 2;
const SIGTERM: c_int = 15;
/// `SIG_DFL`.
const DEFAULT: usize = 0;

unsafe extern "C" {
    /// signal(2) of the C library, which restarts system calls.
    fn signal(number: c_int, handler: usize) -> usize;
}

extern "C" fn remember(number: c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
    // SAFETY: signal(2) may be called in a handler (signal-safety(7)), and the default needs no code of ours.
    unsafe { signal(number, DEFAULT) };
}

/// From now on the first Ctrl-C, and the first SIGTERM, is only remembered.
pub fn remember_first() {
    let handler: extern "C" fn(c_int) = remember;
    for number in [SIGINT, SIGTERM] {
        // SAFETY: the handler touches nothing but an atomic and signal(2) itself.
        unsafe { signal(number, handler as usize) };
    }
}

/// Whether there was one.
pub fn happened() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
