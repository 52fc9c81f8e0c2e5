//! The received bytes of a client that were not consumed yet.

use super::buffer::Buffer;
use super::progress::{InTime, Progress};
use crate::front::nbd::memory_budget::OWN;
use std::io;
use std::time::Instant;
use trueline_host::nbd::stream::Stream;
use trueline_host::nbd::wire::REQUEST;

/// The most bytes received at once.
pub(super) const BATCH: usize = 256 << 10;

/// The least payload in bytes whose rest is received by itself, not together with what surrounds
/// it.
pub(super) const LARGE: usize = 32 << 10;

/// A buffer of received bytes that were not consumed yet.
pub(super) struct Input {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// The bytes received so far.
    received: u64,
    /// The size of a request's header in bytes.
    head: usize,
    /// True if the last payload exceeded this buffer, as the next one may: only its header is
    /// received first.
    shy: bool,
    /// The buffer of large payloads.
    large: Buffer,
}

impl Input {
    pub(super) fn new() -> Input {
        Input {
            buffer: vec![0; BATCH].into(),
            start: 0,
            end: 0,
            received: 0,
            head: REQUEST,
            shy: false,
            large: Buffer::none(),
        }
    }

    /// Sets the size of a request's header in bytes.
    pub(super) fn expect(&mut self, head: usize) {
        self.head = head;
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The bytes received so far, consumed or not.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(super) fn take(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Receives more. False at the end of the stream, or if the buffer is full: no expected message
    /// is that long.
    pub(super) fn fill(&mut self, stream: &dyn Stream) -> io::Result<bool> {
        self.fill_some(stream).map(|got| got > 0)
    }

    fn fill_some(&mut self, stream: &dyn Stream) -> io::Result<usize> {
        if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let head = self.head.saturating_sub(self.bytes().len());
        let room = self.buffer.len() - self.end;
        let room = if self.shy && head > 0 { head.min(room) } else { room };
        let got = stream.receive(&mut self.buffer[self.end..self.end + room])?;
        self.end += got;
        self.received += got as u64;
        self.shy = false;
        Ok(got)
    }

    /// Consumes the next `length` bytes, part of which may be here, `in_time`. Missing bytes take
    /// no memory before they arrive: a client that only announces them holds none.
    pub(super) fn read(
        &mut self,
        length: usize,
        stream: &dyn Stream,
        in_time: InTime<'_>,
    ) -> io::Result<&[u8]> {
        let mut progress = Progress::new(length, Instant::now());
        let mut done = length.min(self.bytes().len());
        if self.large.len() < length {
            self.large = Buffer::new(length);
        }
        self.large[..done].copy_from_slice(&self.buffer[self.start..self.start + done]);
        self.take(done);
        progress.add(done, Instant::now());
        while done < length {
            let got =
                received(stream.receive(&mut self.large[done..length]), &mut progress, in_time)?;
            done += got;
            self.received += got as u64;
        }
        // A payload longer than this buffer would only be copied from it.
        self.shy = length > BATCH;
        Ok(&self.large[..length])
    }

    /// The bytes of the last [`Input::read`], to be kept.
    pub(super) fn keep(&mut self, length: usize) -> Buffer {
        if length < self.large.len() / 2 {
            // A small payload must not keep a large buffer alive.
            return Buffer::Heap(self.large[..length].to_vec());
        }
        let mut taken = std::mem::replace(&mut self.large, Buffer::none());
        taken.truncate(length);
        taken
    }

    /// Frees a buffer larger than every client's own.
    pub(super) fn shrink(&mut self) {
        if self.large.len() > OWN {
            self.large = Buffer::none();
        }
    }

    /// Discards the next `length` bytes, `in_time`.
    pub(super) fn skip(
        &mut self,
        mut length: usize,
        stream: &dyn Stream,
        in_time: InTime<'_>,
    ) -> io::Result<()> {
        let mut progress = Progress::new(length, Instant::now());
        loop {
            let here = length.min(self.bytes().len());
            self.take(here);
            length -= here;
            if length == 0 {
                return Ok(());
            }
            received(self.fill_some(stream), &mut progress, in_time)?;
        }
    }
}

/// Notes the bytes received of an incomplete message. The end of the stream is an error, and so is
/// a missed deadline, but not silence for a while.
fn received(
    came: io::Result<usize>,
    progress: &mut Progress,
    in_time: InTime<'_>,
) -> io::Result<usize> {
    let count = match came {
        Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => 0,
        came => came?,
    };
    progress.add(count, Instant::now());
    in_time(progress).map(|()| count)
}
