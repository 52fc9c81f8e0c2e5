//! A connection with a deadline for a whole message, however it arrives in pieces.

use crate::nbd::stream::Stream;
use std::io;
use std::time::{Duration, Instant};

/// The most bytes sent between two checks of the clock.
const PIECE: usize = 256 << 10;

/// A connection, with the deadline of its current operation.
///
/// The clock is checked between two pieces; each piece has the stream's own timeout.
pub(super) struct Timed {
    stream: Box<dyn Stream>,
    end: Instant,
    /// A question whose yes ends a wait.
    ended: Option<fn() -> bool>,
}

impl Timed {
    pub(super) fn new(stream: Box<dyn Stream>, end: Instant) -> Timed {
        Timed { stream, end, ended: None }
    }

    /// The connection over the stream that `wrap` makes of this one.
    pub(super) fn through<S: Stream + 'static>(
        self,
        wrap: impl FnOnce(Box<dyn Stream>) -> io::Result<S>,
    ) -> io::Result<Timed> {
        let Timed { stream, end, ended } = self;
        Ok(Timed { stream: Box::new(wrap(stream)?), end, ended })
    }

    /// Sets the deadline of the next operation to `within` from now.
    pub(super) fn restart(&mut self, within: Duration) {
        self.end = Instant::now() + within;
    }

    /// Sets the timeout of a single piece.
    pub(super) fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.stream.set_patience(Some(patience))
    }

    /// Ends a wait once `ended` is true, which is asked after each `every`.
    pub(super) fn heed(&mut self, every: Duration, ended: fn() -> bool) -> io::Result<()> {
        self.ended = Some(ended);
        self.set_patience(every)
    }

    /// Bytes that have arrived and were not received, as far as known.
    pub(super) fn waiting(&self) -> usize {
        self.stream.waiting()
    }

    /// Says goodbye, if the stream has one.
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

    /// Fills `into` completely, within the deadline.
    pub(super) fn receive(&self, into: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < into.len() {
            match self.piece(&mut into[done..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                got => done += got,
            }
            self.is_in_time()?;
        }
        Ok(())
    }

    /// Receives what there is, at least one byte.
    pub(super) fn receive_some(&self, into: &mut [u8]) -> io::Result<usize> {
        self.is_in_time()?;
        match self.piece(into)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            got => Ok(got),
        }
    }

    /// Receives at least one byte; 0 at the end of the stream.
    fn piece(&self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.receive(into) {
                Err(e) if is_timeout(&e) => match self.ended {
                    Some(ended) if ended() => return Err(io::ErrorKind::Interrupted.into()),
                    Some(_) => self.is_in_time()?,
                    None => return Err(e),
                },
                got => return got,
            }
        }
    }

    pub(super) fn fixed<const N: usize>(&self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.receive(&mut bytes)?;
        Ok(bytes)
    }
}

/// True for the timeout of a piece.
fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
