//! Replies, gathered and sent several at once.

use super::buffer::Buffer;
use super::progress::{InTime, Progress};
use crate::export::Export;
use crate::front::nbd::memory_budget::{OWN, Reservation};
use rustix::net::sockopt;
use std::io;
use std::sync::atomic::AtomicU8;
use std::time::Instant;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::{Content, Store};
use trueline_geom::base::topology::Why;
use trueline_host::nbd::contexts;
use trueline_host::nbd::request::Request;
use trueline_host::nbd::scatter::{self, IoVec};
use trueline_host::nbd::stream::Stream;
use trueline_host::nbd::wire::{self, Headers, chunk, flag};

/// The bytes of replies that are sent at once.
pub(super) const BATCH: usize = 256 << 10;
/// The least read in bytes that is sent from the store's memory: to copy fewer is faster than to
/// name another place.
pub(super) const LENT: u64 = 2048;
/// The largest buffers kept for further replies, by the thread that reads requests and by each that
/// waits for a device, in bytes.
const KEPT: usize = OWN + BATCH;
const KEPT_WAITING: usize = 16 << 10;
/// The socket's send buffer in bytes, set with the first full batch. With the default, each side
/// waits for the other several times in every large reply. Small replies are faster with the
/// default, in the processor's cache.
const HELD: usize = 1 << 20;
/// The most descriptors in an answer to `BLOCK_STATUS`.
const DESCRIPTORS: usize = 4096;
/// The most runs that are queried for it: adjacent ones of one kind are one descriptor.
const RUNS: usize = 1 << 16;

/// Replies to be sent together.
pub(super) struct Replies<'a> {
    /// Headers and copied bytes: the first `end` bytes. The buffer is kept, rather than made anew
    /// for every reply.
    buffer: Buffer,
    end: usize,
    /// The least size of the buffer, and the largest that is kept when it is empty.
    least: usize,
    kept: usize,
    /// The reservation for its memory, if that is more than every client's own.
    share: Option<Reservation<'a>>,
    /// Borrowed bytes, each with the number of buffered bytes before them.
    lent: Vec<(usize, &'a [AtomicU8])>,
    /// The total number of bytes.
    bytes: usize,
    headers: Headers,
    /// True if the socket's send buffer was enlarged.
    wide: bool,
}

impl<'a> Replies<'a> {
    /// The replies of the thread that reads requests.
    pub(super) fn new(headers: Headers) -> Replies<'a> {
        let buffer = Buffer::none();
        Replies {
            buffer,
            end: 0,
            least: BATCH,
            kept: KEPT,
            share: None,
            lent: Vec::new(),
            bytes: 0,
            headers,
            wide: false,
        }
    }

    /// The replies of a thread that waits for a device, of which there are several.
    pub(super) fn of_one_that_waits(headers: Headers) -> Replies<'a> {
        Replies { least: 1024, kept: KEPT_WAITING, ..Replies::new(headers) }
    }

    /// Keeps a reservation until the next reply is sent.
    pub(super) fn hold(&mut self, share: Reservation<'a>) {
        self.share = Some(share);
    }

    /// Takes the reservation back, if there is one.
    pub(super) fn release(&mut self) -> Option<Reservation<'a>> {
        self.share.take()
    }

    /// True if the replies must be sent: there are many, or other clients may wait for their
    /// memory.
    pub(super) fn are_due(&self) -> bool {
        self.bytes >= BATCH || self.share.is_some()
    }

    /// Sends the replies; those with a reservation must go `in_time`.
    pub(super) fn send(&mut self, stream: &dyn Stream, in_time: InTime<'_>) -> io::Result<()> {
        if self.bytes >= BATCH && !self.wide {
            self.wide = true;
            // The system may grant less.
            let _ =
                stream.socket().map(|socket| sockopt::set_socket_send_buffer_size(socket, HELD));
        }
        let sent = match stream.socket() {
            _ if self.bytes == 0 => Ok(()),
            Some(socket) if !self.lent.is_empty() => {
                scatter::send(socket, &mut self.places()).map_err(io::Error::from)
            }
            _ if self.share.is_some() => self.send_in_time(stream, in_time),
            _ => stream.send(&self.buffer[..self.end]),
        };
        self.lent.clear();
        (self.end, self.bytes) = (0, 0);
        if self.buffer.len() > self.kept {
            self.buffer = Buffer::none();
        }
        self.share = None;
        sent
    }

    /// Sends the buffer in pieces, `in_time`.
    fn send_in_time(&self, stream: &dyn Stream, in_time: InTime<'_>) -> io::Result<()> {
        let mut progress = Progress::new(self.end, Instant::now());
        self.buffer[..self.end].chunks(BATCH).try_for_each(|piece| {
            stream.send(piece)?;
            progress.add(piece.len(), Instant::now());
            // A client that takes a little now and then would otherwise keep the memory for ever.
            in_time(&progress)
        })
    }

    /// The places of all bytes, in the order in which they are sent.
    fn places(&self) -> Vec<IoVec<'_>> {
        let mut places = Vec::with_capacity(2 * self.lent.len() + 1);
        let mut from = 0;
        for &(to, lent) in &self.lent {
            places.push(IoVec::own(&self.buffer[from..to]));
            places.push(IoVec::shared(lent));
            from = to;
        }
        places.push(IoVec::own(&self.buffer[from..self.end]));
        places
    }

    /// Space for `length` bytes after those in the buffer.
    fn room(&mut self, length: usize) -> &mut [u8] {
        let end = self.end + length;
        if self.buffer.len() < end {
            let mut larger = Buffer::new(end.max(self.buffer.len() * 2).max(self.least));
            larger[..self.end].copy_from_slice(&self.buffer[..self.end]);
            self.buffer = larger;
        }
        let room = &mut self.buffer[self.end..end];
        (self.end, self.bytes) = (end, self.bytes + length);
        room
    }

    fn push(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }

    /// Drops the bytes from `end` on, none of them borrowed.
    fn truncate(&mut self, end: usize) {
        self.bytes -= self.end - end;
        self.end = end;
    }

    /// Adds the reply to a finished request without data.
    pub(super) fn done(&mut self, request: &Request, done: Result<(), Errno>) {
        match done {
            Err(errno) => self.error(request, wire::errno(errno)),
            Ok(()) if self.headers == Headers::Extended => {
                self.chunk(request, chunk::NONE, true, 0)
            }
            Ok(()) => self.push(&wire::simple_reply(0, request.cookie)),
        }
    }

    /// Adds an error reply.
    pub(super) fn error(&mut self, request: &Request, errno: u32) {
        if self.headers.are_chunks() {
            self.chunk(request, chunk::ERROR, true, 6);
            self.push(&errno.to_be_bytes());
            self.push(&[0; 2]);
        } else {
            self.push(&wire::simple_reply(errno, request.cookie));
        }
    }

    /// Adds the header of a chunk of `length` bytes. `last`: no further chunk follows.
    fn chunk(&mut self, request: &Request, kind: u16, last: bool, length: u64) {
        let flags = if last { chunk::DONE } else { 0 };
        if self.headers == Headers::Extended {
            self.push(&wire::extended_chunk(flags, kind, request.cookie, request.offset, length));
        } else {
            // A 32-bit request has a 32-bit answer: a status has a bounded number of descriptors,
            // and a read of bytes.
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            self.push(&wire::structured_chunk(flags, kind, request.cookie, length));
        }
    }

    /// Adds the header of a read's data.
    fn read_head(&mut self, request: &Request) {
        if self.headers.are_chunks() {
            self.chunk(request, chunk::OFFSET_DATA, true, request.length.saturating_add(8));
            self.push(&request.offset.to_be_bytes());
        } else {
            self.push(&wire::simple_reply(0, request.cookie));
        }
    }

    /// Adds the reply to a read, whose bytes `fill` stores in the buffer. False, without a reply,
    /// if it does not.
    pub(super) fn read(
        &mut self,
        request: &Request,
        fill: impl FnOnce(&mut [u8]) -> Result<bool, Errno>,
    ) -> bool {
        if self.headers.are_chunks() && request.length == 0 {
            // A chunk of data has at least a byte (section "Structured reply types").
            self.chunk(request, chunk::NONE, true, 0);
            return true;
        }
        let start = self.end;
        self.read_head(request);
        let filled = fill(self.room(usize::try_from(request.length).unwrap_or(usize::MAX)));
        if filled != Ok(true) {
            self.truncate(start);
        }
        if let Err(errno) = filled {
            self.error(request, wire::errno(errno));
        }
        filled != Ok(false)
    }

    /// Adds the reply to a read with borrowed bytes.
    pub(super) fn borrowed(&mut self, request: &Request, bytes: &'a [AtomicU8]) {
        self.read_head(request);
        self.lent.push((self.end, bytes));
        self.bytes += bytes.len();
    }

    /// Adds the reply to `BLOCK_STATUS`: a chunk for each context.
    pub(super) fn status(&mut self, request: &Request, contexts: &[u32], export: &Export) {
        let start = self.end;
        for (place, &context) in contexts.iter().enumerate() {
            let most = if request.has(flag::REQ_ONE) { 1 } else { DESCRIPTORS };
            let found = match (contexts::told_by(context), &export.overlay) {
                (Some(why), _) => units(request, export, why, most),
                (None, Some(overlay)) if context == contexts::OVERLAY => {
                    runs(request, &**overlay, most, overlaid)
                }
                (None, _) => runs(request, &*export.store, most, allocated),
            };
            match found {
                Ok(found) => {
                    self.descriptors(request, context, place + 1 == contexts.len(), &found)
                }
                Err(errno) => {
                    self.truncate(start);
                    return self.error(request, wire::errno(errno));
                }
            }
        }
    }

    /// Adds a chunk of the reply to `BLOCK_STATUS`.
    fn descriptors(&mut self, request: &Request, context: u32, last: bool, found: &[(u64, u32)]) {
        let count = found.len() as u64;
        if self.headers == Headers::Extended {
            self.chunk(request, chunk::BLOCK_STATUS_EXT, last, 8 + 16 * count);
            self.push(&context.to_be_bytes());
            self.push(&u32::try_from(count).unwrap_or(0).to_be_bytes());
        } else {
            self.chunk(request, chunk::BLOCK_STATUS, last, 4 + 8 * count);
            self.push(&context.to_be_bytes());
        }
        for &(length, flags) in found {
            if self.headers == Headers::Extended {
                self.push(&length.to_be_bytes());
                self.push(&u64::from(flags).to_be_bytes());
            } else {
                // The sum of the lengths is at most that of the request.
                self.push(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
                self.push(&flags.to_be_bytes());
            }
        }
    }
}

/// Descriptors of a status: (length, flags), in order.
type Descriptors = Vec<(u64, u32)>;

/// The flags of `base:allocation` (section "Metadata querying"): 1 is a hole, 2 reads as zeros.
fn allocated(content: Content) -> u32 {
    match content {
        Content::Data => 0,
        Content::Zero => 2,
        Content::Hole => 3,
    }
}

/// The flags of `trueline:overlay`: 1 is held by the overlay, 2 is zero.
fn overlaid(content: Content) -> u32 {
    match content {
        Content::Data => 1,
        Content::Zero => 3,
        Content::Hole => 0,
    }
}

/// The runs of a store's content, with their `flags`.
fn runs(
    request: &Request,
    store: &dyn Store,
    most: usize,
    flags: fn(Content) -> u32,
) -> Result<Descriptors, Errno> {
    let mut found: Descriptors = Vec::new();
    let (mut at, end) = (request.offset, request.offset + request.length);
    for _ in 0..RUNS {
        if at == end {
            break;
        }
        let run = store.extent(at, end - at)?;
        let length = run.length.clamp(1, end - at);
        let flags = flags(run.content);
        let full = found.len() == most;
        match found.last_mut() {
            Some((before, same)) if *same == flags => *before += length,
            _ if full => break,
            _ => found.push((length, flags)),
        }
        at += length;
    }
    Ok(found)
}

/// The descriptors of `trueline:grain` and the like: the unit in bytes where units are whole; 0
/// where the export has only part of one, and where members have none in common.
fn units(request: &Request, export: &Export, why: Why, most: usize) -> Result<Descriptors, Errno> {
    let told =
        export.boundaries.iter().find(|boundary| boundary.why == why).ok_or(Errno::Unsupported)?;
    let (start, end) = (request.offset, request.offset + request.length);
    let length = export.store.length();
    let size = told
        .grain
        .map_or(Ok(0), |grain| u32::try_from(grain.size()))
        .map_err(|_| Errno::Unsupported)?;
    let first = told.grain.and_then(|grain| grain.next(0)).unwrap_or(length).min(length);
    let last = told.grain.and_then(|grain| grain.previous(length)).unwrap_or(length).max(first);
    // A unit that the request cuts is a whole one of the export.
    let part = |from: u64, to: u64| to.clamp(start, end) - from.clamp(start, end);
    let parts = [(part(0, first), 0), (part(first, last), size), (part(last, end), 0)];
    Ok(parts.into_iter().filter(|&(length, _)| length > 0).take(most).collect())
}
