//! Sizes of the window that a terminal has.
//!
//! A size that the terminal does not know is 0, the one of them without the other: a serial line,
//! `stty cols 80`, a new pseudo-terminal. The crate terminal_size takes such a terminal for none.

use rustix::termios::tcgetwinsize;
use std::os::fd::AsFd;

/// Columns of the terminal that the stream is; `None` if it is none, or does not know them.
pub fn columns(stream: impl AsFd) -> Option<usize> {
    let size = tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|&columns| columns > 0)
}

/// Lines of the terminal that the stream is; `None` if it is none, or does not know them.
pub fn lines(stream: impl AsFd) -> Option<usize> {
    let size = tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_row)).filter(|&lines| lines > 0)
}
