//! A connection of which a whole message has its time, however it comes in pieces.

use crate::nbd::stream::Stream;
use std::io;
use std::time::{Duration, Instant};

/// Bytes that are sent between two looks at the clock.
const PIECE: usize = 256 << 10;

/// A connection, and until when what is being done must be done.
///
/// The clock is looked at between two pieces; for each of them the connection's own patience holds.
pub(super) struct Timed {
    stream: Box<dyn Stream>,
    end: Instant,
}

impl Timed {
    pub(super) fn new(stream: Box<dyn Stream>, end: Instant) -> Timed {
        Timed { stream, end }
    }

    /// The same through what `wrap` makes of the stream.
    pub(super) fn through<S: Stream + 'static>(self, wrap: impl FnOnce(Box<dyn Stream>) -> io::Result<S>) -> io::Result<Timed> {
        Ok(Timed { stream: Box::new(wrap(self.stream)?), end: self.end })
    }

    /// What comes now is to be done `within` a time.
    pub(super) fn restart(&mut self, within: Duration) {
        self.end = Instant::now() + within;
    }

    /// How long a piece may take.
    pub(super) fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.stream.set_patience(Some(patience))
    }

    /// A goodbye where there is one.
    pub(super) fn end(&self) {
        self.stream.end();
    }

    fn is_in_time(&self) -> io::Result<()> {
        if Instant::now() > self.end { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }

    pub(super) fn send(&self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(PIECE) {
            self.is_in_time()?;
            self.stream.send(piece)?;
        }
        Ok(())
    }

    /// Fills `into`.
    pub(super) fn receive(&self, into: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < into.len() {
            match self.stream.receive(&mut into[done..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                got => done += got,
            }
            self.is_in_time()?;
        }
        Ok(())
    }

    pub(super) fn fixed<const N: usize>(&self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.receive(&mut bytes)?;
        Ok(bytes)
    }
}
