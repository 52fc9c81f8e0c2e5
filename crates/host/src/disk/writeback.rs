//! Writeback of a file's dirty pages before a flush asks for it.
//!
//! # Sources
//! sync_file_range(2).

#![allow(unsafe_code, reason = "a call that no safe wrapper has")]

use std::os::fd::{AsFd, AsRawFd};

/// Starts to write what is dirty of `length` bytes of `file` from `offset`, which stay cached. A
/// hint, so errors are ignored.
pub(super) fn start(file: impl AsFd, offset: u64, length: u64) {
    let (Ok(offset), Ok(length)) = (i64::try_from(offset), i64::try_from(length)) else { return };
    // A length of 0 means to the end.
    if length > 0 {
        let file = file.as_fd().as_raw_fd();
        // SAFETY: the descriptor is borrowed, so it is open; nothing but numbers is passed.
        unsafe { libc::sync_file_range(file, offset, length, libc::SYNC_FILE_RANGE_WRITE) };
    }
}
