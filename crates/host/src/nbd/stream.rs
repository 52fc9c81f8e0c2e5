//! What a connection goes through: a socket, or TLS over one.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// What a connection sends and receives through.
pub trait Stream: Send + Sync {
    /// Receives at least a byte; 0 if nothing comes any more.
    fn receive(&self, into: &mut [u8]) -> io::Result<usize>;

    /// Sends everything. Two threads do not send at once.
    fn send(&self, bytes: &[u8]) -> io::Result<()>;

    /// How long [`Stream::receive`] may take; [`None`]: for ever.
    fn set_patience(&self, patience: Option<Duration>) -> io::Result<()>;

    /// Bytes that have come and are not received, as far as it is known.
    fn waiting(&self) -> usize {
        0
    }

    /// The socket, if what is sent is what goes through it: the kernel then copies from and to where the bytes are.
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Whether nothing that is sent can arrive any more, as far as it is known.
    fn is_gone(&self) -> bool {
        false
    }

    /// Nothing more will be sent: a goodbye where there is one.
    fn end(&self) {}

    /// Ends it at once for whoever receives or sends.
    fn hang_up(&self);
}
