//! The socket of a connected client.

use super::stream::Stream;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A client's connection, without TLS.
pub enum Client {
    /// A connection through a Unix socket.
    Unix(UnixStream),
    /// A connection through TCP.
    Tcp(TcpStream),
}

impl Client {
    /// Receives nothing beyond what has arrived; requests that have are still answered.
    pub fn hear_out(&self) {
        self.shut(Shutdown::Read);
    }

    /// The name of the client for messages, with the address of a TCP client.
    pub fn peer_name(&self) -> String {
        let from = match self {
            Client::Unix(_) => None,
            Client::Tcp(stream) => stream.peer_addr().ok(),
        };
        from.map_or_else(|| "a client".into(), |address| format!("client {address}"))
    }

    /// Sets the timeout of a send: the longest time without progress.
    pub fn set_patience_to_send(&self, patience: Duration) -> io::Result<()> {
        match self {
            Client::Unix(stream) => stream.set_write_timeout(Some(patience)),
            Client::Tcp(stream) => stream.set_write_timeout(Some(patience)),
        }
    }

    fn shut(&self, how: Shutdown) {
        // A client that has gone cannot be disconnected.
        let _ = match self {
            Client::Unix(stream) => stream.shutdown(how),
            Client::Tcp(stream) => stream.shutdown(how),
        };
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Client::Unix(stream) => stream.as_fd(),
            Client::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl Stream for Client {
    fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let got = match self {
                Client::Unix(stream) => (&mut &*stream).read(into),
                Client::Tcp(stream) => (&mut &*stream).read(into),
            };
            match got {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                got => return got,
            }
        }
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Client::Unix(stream) => (&mut &*stream).write_all(bytes),
            Client::Tcp(stream) => (&mut &*stream).write_all(bytes),
        }
    }

    fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        match self {
            Client::Unix(stream) => stream.set_read_timeout(patience),
            Client::Tcp(stream) => stream.set_read_timeout(patience),
        }
    }

    fn waiting(&self) -> usize {
        rustix::io::ioctl_fionread(self.fd())
            .ok()
            .and_then(|bytes| usize::try_from(bytes).ok())
            .unwrap_or(0)
    }

    fn is_gone(&self) -> bool {
        // Both directions closed, or an error: poll(2) reports either unasked.
        let socket = self.fd();
        let mut poll = [PollFd::new(&socket, PollFlags::empty())];
        rustix::event::poll(&mut poll, Some(&Timespec::default())).is_ok()
            && !poll[0].revents().is_empty()
    }

    fn hang_up(&self) {
        self.shut(Shutdown::Both);
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd())
    }
}
