//! The byte stream of a connection: a socket, or TLS over one.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// A stream that a connection sends and receives through.
pub trait Stream: Send + Sync {
    /// Receives at least one byte; 0 at the end of the stream.
    fn receive(&self, into: &mut [u8]) -> io::Result<usize>;

    /// Sends all bytes. At most one thread sends at a time.
    fn send(&self, bytes: &[u8]) -> io::Result<()>;

    /// Sets the timeout of [`Stream::receive`]; [`None`]: no timeout.
    fn set_patience(&self, patience: Option<Duration>) -> io::Result<()>;

    /// Bytes that have arrived and were not received, as far as known.
    fn waiting(&self) -> usize {
        0
    }

    /// The socket, if bytes pass through it unchanged: the kernel then copies directly from and to
    /// their memory.
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// True if nothing sent can arrive any more, as far as known.
    fn is_gone(&self) -> bool {
        false
    }

    /// Ends the stream: says goodbye, if there is one.
    fn end(&self) {}

    /// Closes the stream at once; blocked sends and receives end.
    fn hang_up(&self);
}
