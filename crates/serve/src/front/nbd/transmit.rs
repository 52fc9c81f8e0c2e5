//! The transmission phase of one connection: the thread that reads requests, those that answer
//! them, and the sending of replies.
//!
//! The reading thread answers all that memory can answer: it reads many requests at once and sends
//! their replies at once. Requests that must wait for a device go to threads of this connection
//! alone, in any order, so a slow client, or one with slow requests, keeps no other waiting.
//!
//! # Limits
//! [`IN_FLIGHT`] bytes and [`REQUESTS`] requests that wait for a device; for memory beyond every
//! client's own ([`OWN`]), the [`MemoryBudget`] of the server; for time, [`Limits`].

use super::buffer::Buffer;
use super::connection::{Service, cut_off};
use super::input::{Input, LARGE};
use super::limits::Limits;
use super::progress::Progress;
use crate::export::Export;
use crate::front::nbd::execute::Answers;
use crate::front::nbd::memory_budget::{LOOK, MemoryBudget, OWN, Reservation};
use crate::front::nbd::negotiate::Agreed;
use crate::front::nbd::reply::{LENT, Replies};
use crate::workers::{Most, Workers};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;
use trueline_host::lock::lock;
use trueline_host::nbd::block_sizes::LARGEST_REQUEST;
use trueline_host::nbd::request::Request;
use trueline_host::nbd::stream::Stream;
use trueline_host::nbd::wire::{Headers, command, error};

/// The most bytes of requests that wait for a device: two of the largest.
const IN_FLIGHT: usize = 2 * LARGEST_REQUEST as usize;
/// The most requests that wait for a device.
const REQUESTS: usize = 256;

/// A request that waits for a device, with its payload.
struct Job<'a> {
    request: Request,
    payload: Buffer,
    /// The reservation for it, if it takes more than every client's own memory.
    share: Option<Reservation<'a>>,
}

impl Job<'_> {
    /// The bytes of memory it holds until it is answered.
    fn bytes(&self) -> usize {
        if self.request.command == command::READ {
            usize::try_from(self.request.length).unwrap_or(usize::MAX)
        } else {
            self.payload.len()
        }
    }
}

/// The position of a client in its stream of requests.
#[derive(Default)]
struct Pace {
    /// The time of the first byte of an incomplete request.
    begun: Option<Instant>,
    /// The number of received bytes up to the stop of the server.
    due: Option<u64>,
    /// True if the bytes to come were sent after the stop.
    refusing: bool,
}

/// The transmission phase of one connection.
struct Session<'a> {
    stream: &'a dyn Stream,
    answers: Answers<'a>,
    headers: Headers,
    limits: Limits,
    room: &'a MemoryBudget,
    stop: &'a AtomicBool,
    sending: Mutex<()>,
    /// The first error of the stream, in any thread; later ones are its consequences.
    failed: OnceLock<io::Error>,
    /// True if the client has gone without a goodbye, and waits for no reply.
    left: AtomicBool,
    workers: Workers<Job<'a>>,
}

/// Serves a client after its negotiation.
pub(super) fn transmit(
    stream: &dyn Stream,
    input: &mut Input,
    service: &Service<'_>,
    agreed: &Agreed,
    served: &mut dyn FnMut(&Export),
) -> io::Result<()> {
    let Some(export) = service.exports.0.get(agreed.export) else { return Ok(()) };
    served(export);
    // The same timeout for silence and for part of a request: the cause is determined when it
    // expires.
    stream.set_patience(Some(service.limits.request))?;
    let (limits, room, stop) = (service.limits, service.room, service.stop);
    input.expect(agreed.headers.request());
    let most = Most {
        threads: export.store.properties().depth.min(REQUESTS),
        jobs: REQUESTS,
        bytes: IN_FLIGHT,
    };
    let (answers, headers, workers) =
        (Answers::new(export, agreed), agreed.headers, Workers::new(most));
    let (sending, failed, left) = (Mutex::new(()), OnceLock::new(), AtomicBool::new(false));
    let session =
        Session { stream, answers, headers, limits, room, stop, sending, failed, left, workers };
    std::thread::scope(|scope| {
        let (mut workers, closing) = (Vec::new(), session.workers.closing());
        let read = session.read(input, &mut |session| {
            let spawned = std::thread::Builder::new()
                .name("nbd worker".into())
                .spawn_scoped(scope, move || session.work());
            spawned.map(|worker| workers.push(worker)).is_ok()
        });
        if let Err(e) = read {
            session.fail(e);
        }
        drop(closing);
        // The scope waits only for the threads' work; joining them also frees their stacks.
        for worker in workers {
            if let Err(panic) = worker.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    session.failed.into_inner().map_or(Ok(()), Err)
}

/// Disconnects the client if its thread panics: a reply is missing or incomplete.
struct HangUp<'a>(&'a dyn Stream);

impl Drop for HangUp<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.hang_up();
        }
    }
}

/// The effect of the next bytes of a client.
enum Next {
    /// A request was taken.
    Request,
    /// The request is incomplete.
    More,
    /// The client is done.
    End,
}

/// A function that starts a worker thread of the session; false if that is impossible.
type Spawn<'s, 'a, 'w> = dyn FnMut(&'s Session<'a>) -> bool + 'w;

impl<'a> Session<'a> {
    /// Notes an error of the stream, if it is the first.
    fn fail(&self, error: io::Error) {
        let _ = self.failed.set(error);
    }

    /// Checks the deadlines of a payload or reply under way. `holds`: it has a reservation that
    /// other clients may wait for.
    fn is_in_time(&self, progress: &Progress, holds: bool) -> io::Result<()> {
        let now = Instant::now();
        if progress.is_late(&self.limits, now) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if holds && progress.is_in_the_way(&self.limits, self.room.crowded(), now) {
            return Err(cut_off(
                "others waited for the memory that its large request took, and it was too slow",
            ));
        }
        Ok(())
    }

    /// As [`Session::is_in_time`], for a payload, whose client must not be silent either.
    fn comes_in_time(&self, progress: &Progress, holds: bool) -> io::Result<()> {
        if progress.is_silent(&self.limits, Instant::now()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.is_in_time(progress, holds)
    }

    fn send(&self, replies: &mut Replies<'_>) -> io::Result<()> {
        let _turn = lock(&self.sending);
        replies.send(self.stream, &|progress| self.is_in_time(progress, true)).map_err(|e| {
            let kind = e.kind();
            self.fail(e);
            // Part of a reply may have been sent, and nothing can follow it.
            self.stream.hang_up();
            kind.into()
        })
    }

    /// Receives more; false at the end of the stream. A client may be silent as long as it likes,
    /// but not in the middle of a request.
    fn receive(&self, input: &mut Input, pace: &mut Pace) -> io::Result<bool> {
        if self.stop.load(Ordering::Relaxed) {
            // Bytes that the kernel had at the stop were sent before it; the others came later.
            let due = pace.due.get_or_insert_with(|| {
                input.received().saturating_add(self.stream.waiting() as u64)
            });
            pace.refusing = input.received() >= *due;
        }
        loop {
            match input.fill(self.stream) {
                Err(e)
                    if pace.begun.is_none()
                        && matches!(
                            e.kind(),
                            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                        ) => {}
                Ok(true)
                    if pace.begun.is_some_and(|begun| begun.elapsed() > self.limits.request) =>
                {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                filled => return filled,
            }
        }
    }

    /// Reads requests until the client ends. Answers those it can at once, and hands over the
    /// others.
    fn read<'s>(&'s self, input: &mut Input, spawn: &mut Spawn<'s, 'a, '_>) -> io::Result<()> {
        let mut replies = Replies::new(self.headers);
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
                        // At the stop of the server, requests made before are still answered.
                        self.left.store(!self.stop.load(Ordering::Relaxed), Ordering::Relaxed);
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Takes the next request, if enough of it has arrived.
    fn next<'s>(
        &'s self,
        input: &mut Input,
        pace: &mut Pace,
        replies: &mut Replies<'a>,
        spawn: &mut Spawn<'s, 'a, '_>,
    ) -> io::Result<Next> {
        let headers = self.headers;
        let Some(head) = input.bytes().get(..headers.request()) else { return Ok(Next::More) };
        let Some(request) = Request::read(head, headers) else {
            self.send(replies)?;
            return Err(cut_off("what it sent is no request"));
        };
        if request.command == command::DISC {
            return Ok(Next::End);
        }
        let payload = request.payload(headers);
        let most = self.answers.most();
        if payload > u64::from(most) {
            // The payload exceeds the agreed maximum, and would have to be read to reach the next
            // request.
            self.answers.refuse(&request, error::EINVAL, replies);
            self.send(replies)?;
            return Err(cut_off(format!(
                "a request with {payload} bytes behind it, where {most} are the most"
            )));
        }
        let payload = usize::try_from(payload).unwrap_or(usize::MAX);
        let whole = input.bytes().len() - headers.request() >= payload;
        if !whole && payload < LARGE {
            return Ok(Next::More);
        }
        input.take(headers.request());
        pace.begun = None;
        let allowed =
            if pace.refusing { Err(error::ESHUTDOWN) } else { self.answers.check(&request) };
        if let Err(errno) = allowed {
            if !whole {
                // The client may take its time with a discarded payload, and waits for the replies.
                self.send(replies)?;
            }
            input.skip(payload, self.stream, &|progress| self.comes_in_time(progress, false))?;
            self.answers.refuse(&request, errno, replies);
        } else if !whole {
            self.receive_large(request, input, replies, spawn)?;
        } else if self.answer_now(&request, &input.bytes()[..payload], replies)? {
            input.take(payload);
        } else {
            let job = Job {
                request,
                payload: Buffer::Heap(input.bytes()[..payload].to_vec()),
                share: replies.release(),
            };
            input.take(payload);
            self.hand_over(job, replies, spawn)?;
        }
        Ok(Next::Request)
    }

    /// Receives the rest of a payload, and executes the request or hands it over.
    fn receive_large<'s>(
        &'s self,
        request: Request,
        input: &mut Input,
        replies: &mut Replies<'a>,
        spawn: &mut Spawn<'s, 'a, '_>,
    ) -> io::Result<()> {
        // The client can continue meanwhile.
        self.send(replies)?;
        let length = usize::try_from(request.payload(self.headers)).unwrap_or(usize::MAX);
        let share = if length > OWN { Some(self.share(length, replies)?) } else { None };
        let holds = share.is_some();
        if holds {
            // Other clients may begin to wait while nothing arrives.
            self.stream.set_patience(Some(LOOK.min(self.limits.request)))?;
        }
        let payload =
            input.read(length, self.stream, &|progress| self.comes_in_time(progress, holds))?;
        if holds {
            self.stream.set_patience(Some(self.limits.request))?;
        }
        if self.answer_now(&request, payload, replies)? {
            input.shrink();
            return Ok(());
        }
        let payload = input.keep(length);
        self.hand_over(Job { request, payload, share }, replies, spawn)
    }

    /// Reserves memory. The connection holds no other reservation while it waits, and sends a reply
    /// with one alone: borrowed bytes may take as long as the client likes.
    fn share(&self, bytes: usize, replies: &mut Replies<'a>) -> io::Result<Reservation<'a>> {
        self.send(replies)?;
        self.room
            .share(bytes, &|| self.stream.is_gone())
            .ok_or(io::ErrorKind::ConnectionReset.into())
    }

    /// Answers a request that need not wait for a device. A reservation that a read has not used
    /// yet stays in `replies`.
    fn answer_now(
        &self,
        request: &Request,
        payload: &[u8],
        replies: &mut Replies<'a>,
    ) -> io::Result<bool> {
        if request.command == command::READ {
            if request.length >= LENT
                && self.stream.socket().is_some()
                && self.answers.borrow(request, replies)
            {
                return Ok(true);
            }
            let length = usize::try_from(request.length).unwrap_or(usize::MAX);
            if length > OWN {
                let share = self.share(length, replies)?;
                replies.hold(share);
            }
        }
        Ok(self.answers.now(request, payload, &|| self.is_left(), replies))
    }

    /// Leaves a request to another thread, and waits until it has room for it.
    fn hand_over<'s>(
        &'s self,
        mut job: Job<'a>,
        replies: &mut Replies<'a>,
        spawn: &mut Spawn<'s, 'a, '_>,
    ) -> io::Result<()> {
        self.send(replies)?;
        let bytes = job.bytes();
        if job.share.is_none() && self.workers.bytes().saturating_add(bytes) > OWN {
            job.share = Some(self.share(bytes, replies)?);
        }
        self.workers
            .hand_over(job, bytes, &mut || spawn(self))
            .map_err(|_| io::ErrorKind::OutOfMemory.into())
    }

    /// True if the client has gone and waits for no reply.
    fn is_left(&self) -> bool {
        self.left.load(Ordering::Relaxed) || self.stream.is_gone()
    }

    /// Executes waiting requests, until there will be no more.
    fn work(&self) {
        let mut replies = Replies::of_one_that_waits(self.headers);
        self.workers.work(|Job { request, payload, share }| {
            let _hang_up = HangUp(self.stream);
            if let Some(share) = share {
                replies.hold(share);
            }
            self.answers.waiting(&request, &payload, &|| self.is_left(), &mut replies);
            drop(payload);
            // The error is kept, and the reading thread notices the end of the connection.
            let _ = self.send(&mut replies);
        });
    }
}

#[cfg(test)]
mod tests;
