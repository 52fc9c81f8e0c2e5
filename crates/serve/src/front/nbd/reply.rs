//! Replies, as they are sent: several at once.

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
use trueline_host::nbd::scatter::{self, Place};
use trueline_host::nbd::stream::Stream;
use trueline_host::nbd::wire::{self, Headers, chunk, flag};

/// Bytes of replies that are sent at once.
pub(super) const BATCH: usize = 256 << 10;
/// The least read whose bytes are sent from where they are: to copy fewer takes less time than to name one more place.
pub(super) const LENT: u64 = 2048;
/// The largest buffer that is kept for the next replies by who reads requests, and by each of those who wait for a device.
const KEPT: usize = OWN + BATCH;
const KEPT_WAITING: usize = 16 << 10;
/// What a socket holds on request, from the first batch on that is a full one: with what it holds otherwise, one side waits for the other
/// several times in every large reply. Many small ones are better off in the cache.
const HELD: usize = 1 << 20;
/// The most descriptors in an answer to `BLOCK_STATUS`.
const DESCRIPTORS: usize = 4096;
/// The most runs that are looked at for it: those of one kind, one after another, are one descriptor.
const RUNS: usize = 1 << 16;

/// Replies that are to be sent together.
pub(super) struct Replies<'a> {
    /// Heads, and what was copied: the first `end` bytes. The buffer stays, so that it need not be made anew for every reply.
    buffer: Buffer,
    end: usize,
    /// How large it is at least, and at most when it has nothing in it.
    least: usize,
    kept: usize,
    /// The room that it takes, if that is more than every client has.
    share: Option<Reservation<'a>>,
    /// What is sent from where it is, each after so many bytes of the buffer.
    lent: Vec<(usize, &'a [AtomicU8])>,
    /// Bytes of all that.
    bytes: usize,
    headers: Headers,
    /// Whether the socket was told to hold more.
    wide: bool,
}

impl<'a> Replies<'a> {
    /// Of the thread that reads requests.
    pub(super) fn new(headers: Headers) -> Replies<'a> {
        let buffer = Buffer::none();
        Replies { buffer, end: 0, least: BATCH, kept: KEPT, share: None, lent: Vec::new(), bytes: 0, headers, wide: false }
    }

    /// Of a thread that waits for a device, of which there are several.
    pub(super) fn of_one_who_waits(headers: Headers) -> Replies<'a> {
        Replies { least: 1024, kept: KEPT_WAITING, ..Replies::new(headers) }
    }

    /// The room that the next reply takes, until it is sent.
    pub(super) fn hold(&mut self, share: Reservation<'a>) {
        self.share = Some(share);
    }

    /// Gives it away again, if there is any.
    pub(super) fn release(&mut self) -> Option<Reservation<'a>> {
        self.share.take()
    }

    /// Whether nothing is to be added: they are many, or others may wait for the room that they take.
    pub(super) fn are_due(&self) -> bool {
        self.bytes >= BATCH || self.share.is_some()
    }

    /// Sends them, what takes room from others `in_time`.
    pub(super) fn send(&mut self, stream: &dyn Stream, in_time: InTime<'_>) -> io::Result<()> {
        if self.bytes >= BATCH && !self.wide {
            self.wide = true;
            // It may hold less: the system has a limit.
            let _ = stream.socket().map(|socket| sockopt::set_socket_send_buffer_size(socket, HELD));
        }
        let sent = match stream.socket() {
            _ if self.bytes == 0 => Ok(()),
            Some(socket) if !self.lent.is_empty() => scatter::send(socket, &mut self.places()).map_err(io::Error::from),
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

    /// Sends what is in the buffer, a piece at a time.
    fn send_in_time(&self, stream: &dyn Stream, in_time: InTime<'_>) -> io::Result<()> {
        let mut progress = Progress::new(self.end, Instant::now());
        self.buffer[..self.end].chunks(BATCH).try_for_each(|piece| {
            stream.send(piece)?;
            progress.add(piece.len(), Instant::now());
            // Who takes a little of it every now and then would keep it for ever.
            in_time(&progress)
        })
    }

    /// Where everything is, in the order in which it is sent.
    fn places(&self) -> Vec<Place<'_>> {
        let mut places = Vec::with_capacity(2 * self.lent.len() + 1);
        let mut from = 0;
        for &(to, lent) in &self.lent {
            places.push(Place::own(&self.buffer[from..to]));
            places.push(Place::shared(lent));
            from = to;
        }
        places.push(Place::own(&self.buffer[from..self.end]));
        places
    }

    /// Room for `length` bytes behind what there is.
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

    /// Forgets what came after so many bytes of the buffer, of which nothing is lent.
    fn truncate(&mut self, end: usize) {
        self.bytes -= self.end - end;
        self.end = end;
    }

    /// The answer to what was `done`.
    pub(super) fn done(&mut self, request: &Request, done: Result<(), Errno>) {
        match done {
            Err(errno) => self.error(request, wire::errno(errno)),
            Ok(()) if self.headers == Headers::Extended => self.chunk(request, chunk::NONE, true, 0),
            Ok(()) => self.push(&wire::simple_reply(0, request.cookie)),
        }
    }

    /// The answer that it was not done.
    pub(super) fn error(&mut self, request: &Request, errno: u32) {
        if self.headers.are_chunks() {
            self.chunk(request, chunk::ERROR, true, 6);
            self.push(&errno.to_be_bytes());
            self.push(&[0; 2]);
        } else {
            self.push(&wire::simple_reply(errno, request.cookie));
        }
    }

    /// What stands before the `length` bytes of a chunk. `last`: nothing follows it.
    fn chunk(&mut self, request: &Request, kind: u16, last: bool, length: u64) {
        let flags = if last { chunk::DONE } else { 0 };
        if self.headers == Headers::Extended {
            self.push(&wire::extended_chunk(flags, kind, request.cookie, request.offset, length));
        } else {
            // What is asked for with 32 bits is answered with them: a status has a bounded number of descriptors, a read of bytes.
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            self.push(&wire::structured_chunk(flags, kind, request.cookie, length));
        }
    }

    /// What stands before the bytes of a read.
    fn read_head(&mut self, request: &Request) {
        if self.headers.are_chunks() {
            self.chunk(request, chunk::OFFSET_DATA, true, request.length.saturating_add(8));
            self.push(&request.offset.to_be_bytes());
        } else {
            self.push(&wire::simple_reply(0, request.cookie));
        }
    }

    /// The answer to a read, whose bytes `fill` puts where they are sent from; `false`, and nothing is answered, if it does not.
    pub(super) fn read(&mut self, request: &Request, fill: impl FnOnce(&mut [u8]) -> Result<bool, Errno>) -> bool {
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

    /// The answer to a read of `bytes`, which are sent from where they are.
    pub(super) fn lend(&mut self, request: &Request, bytes: &'a [AtomicU8]) {
        self.read_head(request);
        self.lent.push((self.end, bytes));
        self.bytes += bytes.len();
    }

    /// The answer to `BLOCK_STATUS`: a chunk for each context.
    pub(super) fn status(&mut self, request: &Request, contexts: &[u32], export: &Export) {
        let start = self.end;
        for (place, &context) in contexts.iter().enumerate() {
            let most = if request.has(flag::REQ_ONE) { 1 } else { DESCRIPTORS };
            let found = match (contexts::told_by(context), &export.overlay) {
                (Some(why), _) => units(request, export, why, most),
                (None, Some(overlay)) if context == contexts::OVERLAY => runs(request, &**overlay, most, overlaid),
                (None, _) => runs(request, &*export.store, most, allocated),
            };
            match found {
                Ok(found) => self.descriptors(request, context, place + 1 == contexts.len(), &found),
                Err(errno) => {
                    self.truncate(start);
                    return self.error(request, wire::errno(errno));
                }
            }
        }
    }

    /// A chunk of the answer to `BLOCK_STATUS`.
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
                // All of them together are no longer than what was asked for.
                self.push(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
                self.push(&flags.to_be_bytes());
            }
        }
    }
}

/// Lengths and flags, one after another.
type Descriptors = Vec<(u64, u32)>;

/// `base:allocation` (section "Metadata querying"): 1 is a hole, 2 reads as zeros.
fn allocated(content: Content) -> u32 {
    match content {
        Content::Data => 0,
        Content::Zero => 2,
        Content::Hole => 3,
    }
}

/// `trueline:overlay`: 1 is what the overlay holds, 2 what it holds as zeros.
fn overlaid(content: Content) -> u32 {
    match content {
        Content::Data => 1,
        Content::Zero => 3,
        Content::Hole => 0,
    }
}

/// Runs of a store's content, as `flags` tells them.
fn runs(request: &Request, store: &dyn Store, most: usize, flags: fn(Content) -> u32) -> Result<Descriptors, Errno> {
    let mut found: Descriptors = Vec::new();
    let (mut at, end) = (request.offset, request.offset + request.length);
    for _ in 0..RUNS {
        if at == end {
            break;
        }
        let run = store.run(at, end - at)?;
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

/// `trueline:grain` and the like: bytes of the unit where units are whole; 0 where the export has only a part of one, and where members
/// cannot agree on any.
fn units(request: &Request, export: &Export, why: Why, most: usize) -> Result<Descriptors, Errno> {
    let told = export.boundaries.iter().find(|boundary| boundary.why == why).ok_or(Errno::Unsupported)?;
    let (start, end) = (request.offset, request.offset + request.length);
    let length = export.store.length();
    let size = told.grain.map_or(Ok(0), |grain| u32::try_from(grain.size())).map_err(|_| Errno::Unsupported)?;
    let first = told.grain.and_then(|grain| grain.next(0)).unwrap_or(length).min(length);
    let last = told.grain.and_then(|grain| grain.previous(length)).unwrap_or(length).max(first);
    // A unit that the request cuts is whole all the same.
    let part = |from: u64, to: u64| to.clamp(start, end) - from.clamp(start, end);
    let parts = [(part(0, first), 0), (part(first, last), size), (part(last, end), 0)];
    Ok(parts.into_iter().filter(|&(length, _)| length > 0).take(most).collect())
}
