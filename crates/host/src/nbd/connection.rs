//! One client's connection, from its greeting to its end.
//!
//! What can be answered from memory is answered by the thread that reads requests: many requests are read at once and their replies
//! sent at once. What must wait for a device is done by threads of this connection alone, in any order, so that a client that is
//! slow, or whose requests are, keeps no other one waiting.
//!
//! # Limits
//! [`IN_FLIGHT`] bytes and [`REQUESTS`] requests that wait for a device; of what is more than every client has ([`OWN`]), what there is
//! in the [`Room`] of the server; of time, what [`Limits`] says.

use super::buffer::Buffer;
use super::haggle::{self, Agreed, Haggle, Step};
use super::input::{Input, LARGE};
use super::limits::Limits;
use super::replies::{BATCH, LENT, Replies};
use super::request::Request;
use super::room::{OWN, Room, Share};
use super::stream::Stream;
use super::tls::{Encrypted, Encryption};
use super::wire::{self, command, error, flag};
use super::zeros;
use crate::errseq::Since;
use crate::export::{Export, Exports};
use crate::workers::{Most, Workers};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use trueline_geom::error::Errno;

/// Bytes of requests that wait for a device: two of the largest.
pub const IN_FLIGHT: usize = 2 * wire::MAXIMUM as usize;
/// Requests that wait for a device.
pub const REQUESTS: usize = 256;

/// What a server offers to every client.
pub struct Service<'a> {
    /// What it exports.
    pub exports: &'a Exports,
    /// Whether through TLS.
    pub encryption: &'a Encryption,
    /// What a client may keep.
    pub limits: Limits,
    /// What all clients have together.
    pub room: &'a Room,
    /// Whether it ends: what was asked is answered, and nothing more.
    pub stop: &'a AtomicBool,
}

/// Serves one client. An error is of the connection; what is wrong with a request is its answer.
pub fn serve(stream: &dyn Stream, service: &Service<'_>, served: &mut dyn FnMut(&Export)) -> io::Result<()> {
    let end = Instant::now() + service.limits.handshake;
    let (mut haggle, mut input) = (Haggle::new(service.encryption.tls()), Input::new());
    stream.send(&haggle::greeting())?;
    match shake_hands(stream, &mut input, &mut haggle, service, end)? {
        Step::Transmission(agreed) => transmit(stream, &mut input, service, &agreed, served),
        // What came before the answer is not the client's who proves itself after it.
        Step::StartTls if input.is_empty() => {
            let Some(certificates) = service.encryption.certificates() else { return Ok(()) };
            let stream = Encrypted::accept(stream, certificates, end)?;
            let done = match shake_hands(&stream, &mut input, &mut haggle.encrypted(), service, end)? {
                Step::Transmission(agreed) => transmit(&stream, &mut input, service, &agreed, served),
                _ => Ok(()),
            };
            stream.end();
            done
        }
        _ => Ok(()),
    }
}

/// Option haggling, to the step that ends it: [`Step::Close`] if the client is done or has broken the protocol.
fn shake_hands(stream: &dyn Stream, input: &mut Input, haggle: &mut Haggle, service: &Service<'_>, end: Instant) -> io::Result<Step> {
    let mut out = Vec::new();
    loop {
        if service.stop.load(Ordering::Relaxed) {
            haggle.shut_down();
        }
        let (taken, step) = haggle.take(service.exports, input.bytes(), &mut out);
        input.take(taken);
        if !out.is_empty() && (step != Step::Answered || out.len() > BATCH || input.is_empty()) {
            stream.send(&out)?;
            out.clear();
        }
        match step {
            Step::Answered => {}
            Step::More => {
                let left = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
                stream.set_patience(Some(left.ok_or(io::ErrorKind::TimedOut)?))?;
                if !input.fill(stream)? {
                    return Ok(Step::Close);
                }
            }
            step => return Ok(step),
        }
    }
}

/// A request that waits for a device, with its payload.
struct Job<'a> {
    request: Request,
    payload: Buffer,
    /// The room for it, where that is more than every client has.
    share: Option<Share<'a>>,
}

impl Job<'_> {
    /// Memory it holds until it is answered.
    fn bytes(&self) -> usize {
        if self.request.command == command::READ { usize::try_from(self.request.length).unwrap_or(usize::MAX) } else { self.payload.len() }
    }
}

/// Where a client is in what it sends.
#[derive(Default)]
struct Pace {
    /// When the first byte of a request came of which others are missing.
    begun: Option<Instant>,
    /// Bytes that had come when the server was told to end, and are not received.
    due: Option<usize>,
    /// Whether what comes came after that.
    refusing: bool,
}

/// The transmission phase of one connection.
struct Session<'a> {
    stream: &'a dyn Stream,
    export: &'a Export,
    /// Errors that the client knows of.
    since: Since,
    agreed: &'a Agreed,
    limits: Limits,
    room: &'a Room,
    stop: &'a AtomicBool,
    sending: Mutex<()>,
    /// Whether the client has gone without a goodbye: it waits for nothing.
    left: AtomicBool,
    workers: Workers<Job<'a>>,
}

fn transmit(
    stream: &dyn Stream,
    input: &mut Input,
    service: &Service<'_>,
    agreed: &Agreed,
    served: &mut dyn FnMut(&Export),
) -> io::Result<()> {
    let Some(export) = service.exports.0.get(agreed.export) else { return Ok(()) };
    served(export);
    // One and the same for silence and for a part of a request: what ran out is seen when it has.
    stream.set_patience(Some(service.limits.request))?;
    let (limits, room, stop) = (service.limits, service.room, service.stop);
    input.expect(agreed.headers.request());
    let most = Most { threads: export.store.depth().min(REQUESTS), jobs: REQUESTS, bytes: IN_FLIGHT };
    let (since, sending, left, workers) = (export.errors.sample(), Mutex::new(()), AtomicBool::new(false), Workers::new(most));
    let session = Session { stream, export, since, agreed, limits, room, stop, sending, left, workers };
    std::thread::scope(|scope| {
        let (mut workers, closing) = (Vec::new(), session.workers.closing());
        let ended = session.read(input, &mut |session| {
            let spawned = std::thread::Builder::new().name("nbd worker".into()).spawn_scoped(scope, move || session.work());
            spawned.map(|worker| workers.push(worker)).is_ok()
        });
        drop(closing);
        // The scope waits until their work is done; their stacks and what else is theirs they have until they are joined.
        for worker in workers {
            if let Err(panic) = worker.join() {
                std::panic::resume_unwind(panic);
            }
        }
        ended
    })
}

/// What became of what a client sent.
enum Next {
    /// A request was taken.
    Request,
    /// It is not all here.
    More,
    /// The client is done, or nothing it sends means anything.
    End,
}

/// Starts a thread that works on the session; `false` if there is none to be had.
type Spawn<'s, 'a, 'w> = dyn FnMut(&'s Session<'a>) -> bool + 'w;

impl<'a> Session<'a> {
    fn send(&self, replies: &mut Replies<'_>) -> io::Result<()> {
        let _turn = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let length = replies.len();
        let sent = replies.send(self.stream, &|| self.room.patience(&self.limits, length));
        if sent.is_err() {
            // A part of a reply may have gone, and nothing can be said behind it.
            self.stream.hang_up();
        }
        sent
    }

    /// Receives more; `false` if nothing comes any more. A client may be silent as long as it likes, but not in the middle of a
    /// request.
    fn receive(&self, input: &mut Input, pace: &mut Pace) -> io::Result<bool> {
        // What the kernel had when the end was said was asked before it; the rest came later.
        let due = self.stop.load(Ordering::Relaxed).then(|| pace.due.unwrap_or_else(|| self.stream.waiting()));
        pace.refusing = due == Some(0);
        let before = input.bytes().len();
        loop {
            match input.fill(self.stream) {
                Err(e) if pace.begun.is_none() && matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Ok(true) if pace.begun.is_some_and(|begun| begun.elapsed() > self.limits.request) => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                filled => {
                    pace.due = due.map(|due| due.saturating_sub(input.bytes().len() - before));
                    return filled;
                }
            }
        }
    }

    /// Reads requests until the client ends, answers what can be answered at once and hands over the rest.
    fn read<'s>(&'s self, input: &mut Input, spawn: &mut Spawn<'s, 'a, '_>) -> io::Result<()> {
        let mut replies = Replies::new(self.agreed.headers);
        let mut pace = Pace::default();
        loop {
            match self.next(input, &mut pace, &mut replies, spawn)? {
                Next::Request if !replies.are_due() => {}
                Next::Request => self.send(&mut replies)?,
                Next::End => return self.send(&mut replies),
                Next::More => {
                    self.send(&mut replies)?;
                    if input.is_empty() {
                        pace.begun = None;
                    } else {
                        pace.begun.get_or_insert_with(Instant::now);
                    }
                    if !self.receive(input, &mut pace)? {
                        // Or the server ends, and answers what was asked.
                        self.left.store(!self.stop.load(Ordering::Relaxed), Ordering::Relaxed);
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Takes the next request, if enough of it is here.
    fn next<'s>(
        &'s self,
        input: &mut Input,
        pace: &mut Pace,
        replies: &mut Replies<'a>,
        spawn: &mut Spawn<'s, 'a, '_>,
    ) -> io::Result<Next> {
        let headers = self.agreed.headers;
        let Some(head) = input.bytes().get(..headers.request()) else { return Ok(Next::More) };
        let Some(request) = Request::read(head, headers).filter(|request| request.command != command::DISC) else { return Ok(Next::End) };
        let payload = request.payload(headers);
        if payload > u64::from(wire::MAXIMUM) {
            // The payload would have to be read to reach the next request, and is longer than was agreed.
            replies.error(&request, error::EINVAL);
            return Ok(Next::End);
        }
        let payload = usize::try_from(payload).unwrap_or(usize::MAX);
        let whole = input.bytes().len() - headers.request() >= payload;
        if !whole && payload < LARGE {
            return Ok(Next::More);
        }
        input.take(headers.request());
        pace.begun = None;
        let allowed = if pace.refusing { Err(error::ESHUTDOWN) } else { request.check(self.export, self.agreed) };
        if let Err(errno) = allowed {
            if !whole {
                // The client may take its time for what is thrown away, and waits for them.
                self.send(replies)?;
            }
            input.skip(payload, self.stream, &|| self.limits.payload(payload))?;
            replies.error(&request, errno);
        } else if !whole {
            self.receive_large(request, input, replies, spawn)?;
        } else if self.answer_now(&request, &input.bytes()[..payload], replies)? {
            input.take(payload);
        } else {
            let job = Job { request, payload: Buffer::Heap(input.bytes()[..payload].to_vec()), share: None };
            input.take(payload);
            self.hand_over(job, replies, spawn)?;
        }
        Ok(Next::Request)
    }

    /// Receives the rest of a payload, and does the request or hands it over.
    fn receive_large<'s>(
        &'s self,
        request: Request,
        input: &mut Input,
        replies: &mut Replies<'a>,
        spawn: &mut Spawn<'s, 'a, '_>,
    ) -> io::Result<()> {
        // The client goes on meanwhile.
        self.send(replies)?;
        let length = usize::try_from(request.payload(self.agreed.headers)).unwrap_or(usize::MAX);
        let share = if length > OWN { Some(self.share(length, replies)?) } else { None };
        let payload = input.read(length, self.stream, &|| self.room.patience(&self.limits, length))?;
        if self.answer_now(&request, payload, replies)? {
            input.shrink();
            return Ok(());
        }
        let payload = input.keep(length);
        self.hand_over(Job { request, payload, share }, replies, spawn)
    }

    /// Room for so many bytes. Who waits for it holds none that others wait for, and what has it is sent alone: what is sent from where
    /// it is has all the time that its client likes.
    fn share(&self, bytes: usize, replies: &mut Replies<'a>) -> io::Result<Share<'a>> {
        self.send(replies)?;
        self.room.share(bytes, &|| self.stream.is_gone()).ok_or(io::ErrorKind::ConnectionReset.into())
    }

    /// Answers what need not wait for a device.
    fn answer_now(&self, request: &Request, payload: &[u8], replies: &mut Replies<'a>) -> io::Result<bool> {
        let store = &*self.export.store;
        match request.command {
            command::READ => {
                let lends = request.length >= LENT && self.stream.socket().is_some();
                if let Some(bytes) = if lends { store.lend(request.offset, request.length) } else { None } {
                    replies.lend(request, bytes);
                    return Ok(true);
                }
                let length = usize::try_from(request.length).unwrap_or(usize::MAX);
                if length > OWN {
                    let share = self.share(length, replies)?;
                    replies.hold(Some(share));
                }
                return Ok(replies.read(request, |buffer| store.read_now(buffer, request.offset)));
            }
            command::WRITE if store.writes_now() && !request.has(flag::FUA) => {
                replies.done(request, store.write_at(payload, request.offset));
            }
            _ if store.never_waits() => self.answer(request, payload, replies),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Leaves a request to another thread, and waits until there is room for it.
    fn hand_over<'s>(&'s self, mut job: Job<'a>, replies: &mut Replies<'a>, spawn: &mut Spawn<'s, 'a, '_>) -> io::Result<()> {
        self.send(replies)?;
        let bytes = job.bytes();
        if job.share.is_none() && self.workers.bytes().saturating_add(bytes) > OWN {
            job.share = Some(self.share(bytes, replies)?);
        }
        self.workers.hand_over(job, bytes, &mut || spawn(self)).map_err(|_| io::ErrorKind::OutOfMemory.into())
    }

    /// Whether nobody waits for an answer.
    fn is_left(&self) -> bool {
        self.left.load(Ordering::Relaxed) || self.stream.is_gone()
    }

    /// Does requests that wait, until there will be none.
    fn work(&self) {
        let mut replies = Replies::of_one_who_waits(self.agreed.headers);
        self.workers.work(|Job { request, payload, share }| {
            replies.hold(share);
            self.answer(&request, &payload, &mut replies);
            drop(payload);
            // A client that has gone is noticed by who reads.
            let _ = self.send(&mut replies);
        });
    }

    fn answer(&self, request: &Request, payload: &[u8], replies: &mut Replies<'_>) {
        let (export, offset) = (self.export, request.offset);
        let (store, since) = (&*export.store, &self.since);
        let through = |done: Result<(), Errno>| done.and_then(|()| if request.has(flag::FUA) { export.flush(since) } else { Ok(()) });
        let done = match request.command {
            command::READ => {
                replies.read(request, |buffer| store.read_at(buffer, offset).map(|()| true));
                return;
            }
            command::BLOCK_STATUS => {
                return match request.status(payload, export, self.agreed) {
                    Ok((asked, contexts)) => replies.status(&asked, &contexts, export),
                    Err(errno) => replies.error(request, errno),
                };
            }
            command::WRITE if request.has(flag::FUA) => export.write_through(since, payload, offset),
            command::WRITE => store.write_at(payload, offset),
            command::FLUSH => export.flush(since),
            command::TRIM => through(zeros::discard(export, request, &|| self.is_left())),
            command::CACHE => {
                store.prefetch(offset, request.length);
                Ok(())
            }
            _ => through(zeros::zero(export, request, &|| self.is_left())),
        };
        replies.done(request, done);
    }
}
