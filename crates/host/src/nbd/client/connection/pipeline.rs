//! Several requests in flight on one connection, which the server answers in any order.
//!
//! Requests are sent together when the caller waits. The bytes that are read are dropped, once each
//! of them has come; those that are written are a pattern without zeros.
//!
//! # Limits
//! A server may read no more requests until its answers are read. So that neither side waits for
//! the other, a write is sent only when no read is in flight.

use super::super::Door;
use super::filled::Filled;
use super::head::{Answered, Head, Input, PendingRequest, next_head};
use super::timed::Timed;
use super::{ExportInfo, Session, error_number, fill, put_request};
use crate::error::Error;
use crate::nbd::client::exported_read_only;
use crate::nbd::client::patience::Patience;
use crate::nbd::request::Request;
use crate::nbd::wire::{self, Headers, chunk, command, flag, transmission};
use std::io;
use std::time::Duration;
use trueline_geom::base::error::Errno;
use trueline_geom::base::topology::is_whole;

/// The bytes received ahead of what is read of them.
const AHEAD: usize = 256 << 10;

/// The bytes of requests from which on they are sent before the caller waits.
const UNSENT: usize = 256 << 10;

/// The time between two questions whether a wait is to end.
const HEEDED: Duration = Duration::from_secs(1);

/// The most requests in flight.
pub const DEEPEST: usize = 4096;

/// A connection with several requests in flight.
pub struct Pipeline<Tag> {
    session: Session,
    writes: bool,
    /// Requests in flight, each in a slot; `free` lists the unused slots.
    slots: Vec<Slot<Tag>>,
    free: Vec<usize>,
    /// The number of requests so far, which makes every cookie another.
    asked: u64,
    /// Requests that were not sent yet, as bytes.
    unsent: Vec<u8>,
    ahead: Ahead,
    /// Memory for the bytes of reads, and the bytes of writes.
    sink: Vec<u8>,
    pattern: Vec<u8>,
    /// Completions that were not taken yet.
    done: Vec<(Tag, Option<Errno>)>,
    /// The number of reads in flight, and the bytes of everything in flight.
    reads: usize,
    carried: usize,
    held_back: bool,
}

/// A request in flight.
#[derive(Default)]
struct Slot<Tag> {
    tag: Tag,
    /// The request; `None` of an unused slot.
    asked: Option<PendingRequest>,
    command: u16,
    length: usize,
    /// True if a flush follows: the write must be on the medium, and the server has no FUA.
    flushes: bool,
    filled: Filled,
    /// The server's error number so far, and the chunks of its answer.
    error: u32,
    chunks: u32,
}

/// The bytes received ahead.
struct Ahead {
    bytes: Vec<u8>,
    from: usize,
    to: usize,
}

/// A connection, read through the bytes received ahead.
struct Buffered<'a> {
    line: &'a Timed,
    ahead: &'a mut Ahead,
}

impl Input for Buffered<'_> {
    fn fill(&mut self, mut into: &mut [u8]) -> io::Result<()> {
        loop {
            let Ahead { bytes, from, to } = &mut *self.ahead;
            let count = into.len().min(*to - *from);
            let (now, rest) = into.split_at_mut(count);
            now.copy_from_slice(&bytes[*from..*from + count]);
            *from += count;
            match rest.len() {
                0 => return Ok(()),
                long if long >= AHEAD => return self.line.receive(rest),
                _ => (*from, *to) = (0, self.line.receive_some(bytes)?),
            }
            into = rest;
        }
    }
}

impl<Tag: Copy + Default> Pipeline<Tag> {
    /// Connects to the export of the URI `text`, for as many requests as `depth` in flight, each of
    /// up to `largest` bytes, or what the server takes at once. `writes`: it will be written.
    /// `length`: the length of the export when it was looked at; an export of another length is
    /// another disk, even under the same name, and is refused. `ended` ends a wait for the server
    /// once it is true.
    pub fn open(
        text: &str,
        writes: bool,
        depth: usize,
        largest: u64,
        length: u64,
        ended: fn() -> bool,
    ) -> Result<Pipeline<Tag>, Error> {
        let (_, mut session) = Door::open(text, Patience::default())?;
        let told = session.told();
        if told.length != length {
            let found =
                format!("it has {} bytes now, and had {length}: it is another disk", told.length);
            return Err(Error::not("open", text, found, ""));
        }
        let heeded = session.line.heed(HEEDED, ended);
        heeded.map_err(|e| Error::not("open", text, e.to_string(), ""))?;
        if writes && told.has(transmission::READ_ONLY) {
            return Err(exported_read_only(text));
        }
        let depth = depth.clamp(1, DEEPEST);
        let largest = largest.clamp(told.unit(), told.most());
        let largest = usize::try_from(largest).unwrap_or(usize::MAX);
        let pattern = if writes { largest } else { 0 };
        Ok(Pipeline {
            session,
            writes,
            slots: (0..depth).map(|_| Slot::default()).collect(),
            free: (0..depth).rev().collect(),
            asked: 0,
            unsent: Vec::new(),
            ahead: Ahead { bytes: vec![0; AHEAD], from: 0, to: 0 },
            sink: vec![0; largest],
            // Writes of zeros may be cheaper.
            pattern: (0..pattern).map(|n| n.to_le_bytes()[0] | 1).collect(),
            done: Vec::new(),
            reads: 0,
            carried: 0,
            held_back: false,
        })
    }

    /// The properties of the export.
    pub fn told(&self) -> ExportInfo {
        self.session.told()
    }

    /// The longest request in bytes.
    pub fn longest(&self) -> u64 {
        self.sink.len() as u64
    }

    /// The most requests in flight.
    pub fn depth(&self) -> usize {
        self.slots.len()
    }

    /// True if no request can be submitted before one completes.
    pub fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// True if a write had to wait until reads were answered.
    pub fn is_held_back(&self) -> bool {
        self.held_back
    }

    /// Submits a read, write or flush, whose cookie is replaced; it is sent at the next
    /// [`Pipeline::wait`] at the latest. An error concerns this request alone.
    pub fn push(&mut self, tag: Tag, request: Request) -> Result<(), Errno> {
        let Request { command, offset, length, flags, .. } = request;
        let told = self.session.told();
        if offset.checked_add(length).is_none_or(|end| end > told.length) || length > self.longest()
        {
            return Err(Errno::Range);
        }
        if !is_whole(offset, told.unit()) || !is_whole(length, told.unit()) {
            return Err(Errno::Unaligned);
        }
        if command == command::WRITE && !self.writes {
            return Err(Errno::ReadOnly);
        }
        if command == command::FLUSH && !told.has(transmission::SEND_FLUSH) {
            self.done.push((tag, None));
            return Ok(());
        }
        if command == command::WRITE && self.reads > 0 {
            self.held_back = true;
            let answered = self.finish_reads();
            self.checked(answered)?;
        }
        let slot = self.free.pop().ok_or(Errno::Io)?;
        let fua = flags & flag::FUA != 0;
        let flushes = fua && !told.has(transmission::SEND_FUA);
        self.slots[slot] = Slot {
            tag,
            length: usize::try_from(length).map_err(|_| Errno::Range)?,
            flushes: flushes && told.has(transmission::SEND_FLUSH),
            ..Slot::default()
        };
        self.reads += usize::from(command == command::READ);
        let flags = if flushes { flags & !flag::FUA } else { flags };
        let queued = self.queue(slot, Request { flags, ..request });
        self.checked(queued)
    }

    /// Sends what was submitted, and waits until [`Pipeline::take`] has at least `least`
    /// completions, or all there will be. An error ends the connection.
    pub fn wait(&mut self, least: usize) -> Result<(), Errno> {
        let answered = self.answers(least.min(self.in_flight() + self.done.len()));
        self.checked(answered)
    }

    /// Calls `answer` for every completion, with its error.
    pub fn take(&mut self, mut answer: impl FnMut(Tag, Option<Errno>)) {
        self.done.drain(..).for_each(|(tag, error)| answer(tag, error));
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// An error of the connection, after which it cannot be used.
    fn checked<T>(&mut self, done: io::Result<T>) -> Result<T, Errno> {
        done.map_err(|_| {
            self.session.broken = true;
            Errno::NoDevice
        })
    }

    /// Puts a request of `slot` among those to send.
    fn queue(&mut self, slot: usize, request: Request) -> io::Result<()> {
        self.asked += 1;
        let cookie = self.asked * self.slots.len() as u64 + slot as u64;
        let own = &mut self.slots[slot];
        own.asked = Some(PendingRequest { cookie, offset: request.offset });
        own.command = request.command;
        self.carried = self.carried.saturating_add(own.length);
        let payload =
            if request.command == command::WRITE { &self.pattern[..own.length] } else { &[] };
        let request = Request { cookie, ..request };
        put_request(request, self.session.headers, payload, &mut self.unsent)?;
        if self.unsent.len() >= UNSENT {
            self.restart();
            self.send()?;
        }
        Ok(())
    }

    /// Begins the time that the server has for everything in flight.
    fn restart(&mut self) {
        let within = self.session.patience.carries(self.carried);
        self.session.line.restart(within);
    }

    fn send(&mut self) -> io::Result<()> {
        if !self.unsent.is_empty() {
            self.session.line.send(&self.unsent)?;
            self.unsent.clear();
        }
        Ok(())
    }

    /// Reads answers until there are `least` completions, and those that have arrived besides.
    fn answers(&mut self, least: usize) -> io::Result<()> {
        if self.done.len() < least || !self.unsent.is_empty() {
            self.restart();
        }
        self.send()?;
        while self.done.len() < least || self.has_an_answer(least == 0)? {
            self.answer()?;
            self.send()?;
        }
        Ok(())
    }

    /// True if another answer, or chunk of one, can be read without waiting for its bytes.
    /// `looks`: those that arrived since the last wait count too, which takes a system call.
    fn has_an_answer(&mut self, looks: bool) -> io::Result<bool> {
        if self.in_flight() == 0 {
            return Ok(false);
        }
        if looks && !self.is_whole() && self.session.line.waiting() > 0 {
            self.restart();
            self.ahead.extend(&self.session.line)?;
        }
        Ok(self.is_whole())
    }

    /// True if all bytes of the next answer, or chunk, have arrived. A header that is wrong counts
    /// as one: it is refused when it is read.
    fn is_whole(&self) -> bool {
        let mut peek = Peek(&self.ahead.bytes[self.ahead.from..self.ahead.to]);
        let (answered, head) = match next_head(&mut peek, self.session.headers) {
            Ok(read) => read,
            Err(e) => return e.kind() != io::ErrorKind::WouldBlock,
        };
        let payload = self.payload(answered, &head);
        let missing = payload.saturating_sub(peek.0.len());
        // What is longer than can be received ahead waits in the socket.
        missing == 0 || (payload > AHEAD / 2 && self.session.line.waiting() >= missing)
    }

    /// The bytes behind a header.
    fn payload(&self, answered: Answered, head: &Head) -> usize {
        match *head {
            Head::Chunk { length, .. } => usize::try_from(length).unwrap_or(usize::MAX),
            Head::Simple(0) if self.session.headers == Headers::Simple => {
                let slot = usize::try_from(answered.cookie % self.slots.len() as u64);
                let own = slot.ok().and_then(|slot| self.slots.get(slot));
                own.filter(|own| own.command == command::READ).map_or(0, |own| own.length)
            }
            Head::Simple(_) => 0,
        }
    }

    fn finish_reads(&mut self) -> io::Result<()> {
        self.restart();
        while self.reads > 0 {
            self.send()?;
            self.answer()?;
        }
        Ok(())
    }

    /// Reads the next answer, or chunk of one.
    fn answer(&mut self) -> io::Result<()> {
        let unexpected = || io::Error::from(io::ErrorKind::InvalidData);
        let headers = self.session.headers;
        let mut input = Buffered { line: &self.session.line, ahead: &mut self.ahead };
        let (answered, head) = next_head(&mut input, headers)?;
        let place = usize::try_from(answered.cookie % self.slots.len() as u64);
        let slot = place.map_err(|_| unexpected())?;
        let own = &mut self.slots[slot];
        let asked = own.asked.filter(|&asked| answered.is_of(asked)).ok_or_else(unexpected)?;
        let is_read = own.command == command::READ;
        let mut take = |kind, length, filled: &mut Filled| {
            let bytes = &mut self.sink[..own.length];
            fill(&mut input, kind, length, bytes, asked.offset, filled)
        };
        match head {
            Head::Simple(0) if is_read && headers.are_chunks() => return Err(unexpected()),
            Head::Simple(0) if is_read => take(chunk::NONE, 0, &mut own.filled)?,
            Head::Simple(error) => own.error = error,
            Head::Chunk { kind, last, length } => {
                own.chunks += 1;
                if kind & 1 << 15 != 0 {
                    own.error = error_number(&mut input, length)?;
                } else if kind != chunk::NONE && is_read {
                    take(kind, length, &mut own.filled)?;
                } else if kind != chunk::NONE || length != 0 {
                    return Err(unexpected());
                }
                // A chunk for every sector, and those that end it.
                if own.chunks as usize > own.length / 512 + 2 {
                    return Err(unexpected());
                }
                if !last {
                    return Ok(());
                }
            }
        }
        if is_read && own.error == 0 && !own.filled.is_all_of(own.length) {
            return Err(unexpected());
        }
        self.finish(slot)
    }

    /// Completes the request of `slot`, or goes on with the flush after it.
    fn finish(&mut self, slot: usize) -> io::Result<()> {
        let own = &mut self.slots[slot];
        self.carried = self.carried.saturating_sub(own.length);
        if own.error == 0 && std::mem::take(&mut own.flushes) {
            (own.chunks, own.asked) = (0, None);
            let flush =
                Request { flags: 0, command: command::FLUSH, cookie: 0, offset: 0, length: 0 };
            return self.queue(slot, flush);
        }
        own.asked = None;
        let error = (own.error != 0).then(|| wire::from_errno(own.error));
        self.done.push((own.tag, error));
        self.reads -= usize::from(own.command == command::READ);
        self.free.push(slot);
        Ok(())
    }
}

impl Ahead {
    /// Receives what has arrived, as far as there is room.
    fn extend(&mut self, line: &Timed) -> io::Result<()> {
        self.bytes.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        if self.to < self.bytes.len() {
            self.to += line.receive_some(&mut self.bytes[self.to..])?;
        }
        Ok(())
    }
}

/// Bytes that have arrived, read without taking them.
struct Peek<'a>(&'a [u8]);

impl Input for Peek<'_> {
    fn fill(&mut self, into: &mut [u8]) -> io::Result<()> {
        let (now, rest) = self.0.split_at_checked(into.len()).ok_or(io::ErrorKind::WouldBlock)?;
        into.copy_from_slice(now);
        self.0 = rest;
        Ok(())
    }
}

impl<Tag> Drop for Pipeline<Tag> {
    fn drop(&mut self) {
        // A goodbye would be out of place.
        self.session.broken |= self.free.len() < self.slots.len();
    }
}
