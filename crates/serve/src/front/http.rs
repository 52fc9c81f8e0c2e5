//! A small HTTP/1.1 server: GET and HEAD, a few clients, one request for each connection, for this
//! server's names alone.
//!
//! # Limits
//! [`CLIENTS`] connections, of which [`LOOKERS`] may watch events; [`HEAD`] bytes of a request and
//! [`PATIENCE`] to send it. A client that takes nothing of an answer for so long is disconnected.
//! Requests with a body are answered as those without.
//!
//! # Sources
//! RFC 9112 (HTTP/1.1); HTML Living Standard, section "Server-sent events".

use crate::front::{Front, as_io_flusher};
use trueline_host::error::Error;

use request::{ErrorResponse, HttpRequest};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use trueline_host::nbd::listener;

mod request;

/// The most clients at a time; further ones are told to come again.
pub const CLIENTS: usize = 16;
/// The most clients that watch events at a time, so that others are answered too.
pub const LOOKERS: usize = 12;
/// The most bytes of a request.
pub const HEAD: usize = 8 << 10;
/// The time for a client to send its request, and to take an answer.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// The time between two events.
const PERIOD: Duration = Duration::from_secs(1);
/// The time within which a server notices that it must stop.
const TICK: Duration = Duration::from_millis(50);

/// The content of a server.
pub trait Site: Send + Sync {
    /// The answer to a GET of `path`, without its query; [`None`] if there is nothing.
    fn answer(&self, path: &str) -> Option<Answer>;

    /// The data of the next event of a stream.
    fn event(&self) -> String;

    /// Called some twenty times a second, whether or not a client is connected.
    fn pass(&self) {}
}

/// An answer to a request.
pub enum Answer {
    /// A complete document, sent at once.
    Page {
        /// The media type of the document.
        kind: &'static str,
        /// The `Content-Security-Policy` of the document.
        policy: String,
        /// The bytes of the document.
        body: Vec<u8>,
    },
    /// A stream of [`Site::event`], until the client closes it.
    Events,
}

/// A server of a site, at an address.
pub struct Http {
    listener: TcpListener,
    /// The host that it was told to listen on.
    host: String,
    site: Arc<dyn Site>,
    /// The time limit of clients: [`PATIENCE`], except in tests.
    patience: Duration,
}

impl Http {
    /// A server of `site` at an address, or the first address of `host` that can be bound; port 0
    /// is any free one. It answers requests to an address, to `localhost` or to that name.
    pub fn bind(host: &str, port: u16, site: Arc<dyn Site>) -> Result<Http, Error> {
        let listener = listener::tcp(host, port)?;
        // A waiting client may leave before it is accepted, and there may be no other for a long
        // time.
        listener.set_nonblocking(true).map_err(|e| Error::os("listen on", Path::new(host), e))?;
        Ok(Http { listener, host: host.into(), site, patience: PATIENCE })
    }
}

impl Front for Http {
    fn place(&self) -> String {
        self.listener
            .local_addr()
            .map_or_else(|_| "http://localhost/".into(), |address| format!("http://{address}/"))
    }

    fn variable(&self) -> &'static str {
        "metrics"
    }

    fn run(&self, stop: &AtomicBool) -> Result<(), Error> {
        // Requests for counters must not wait for writes, nor writes for them.
        as_io_flusher();
        let (clients, lookers) = (&AtomicUsize::new(0), &AtomicUsize::new(0));
        std::thread::scope(|scope| {
            while !stop.load(Ordering::Relaxed) {
                self.site.pass();
                if !is_ready(&self.listener) {
                    continue;
                }
                let Ok((stream, _)) = self.listener.accept() else {
                    // The client left before it was accepted; or there is no descriptor, and an
                    // immediate retry would only spin.
                    std::thread::sleep(TICK);
                    continue;
                };
                if clients.load(Ordering::Relaxed) >= CLIENTS {
                    // Without waiting for the rest of the request: other clients want to be
                    // accepted.
                    say(&stream, &request::BUSY, false);
                    continue;
                }
                clients.fetch_add(1, Ordering::Relaxed);
                let serve = move || {
                    // A failed connection concerns only its client.
                    let _ = self.serve(&stream, lookers, stop);
                    clients.fetch_sub(1, Ordering::Relaxed);
                };
                if std::thread::Builder::new()
                    .name("http client".into())
                    .spawn_scoped(scope, serve)
                    .is_err()
                {
                    clients.fetch_sub(1, Ordering::Relaxed);
                }
            }
        });
        Ok(())
    }
}

/// True if a client waits to be accepted; returns after [`TICK`] at the latest.
fn is_ready(listener: &TcpListener) -> bool {
    let tick = Timespec { tv_sec: 0, tv_nsec: i64::from(TICK.subsec_nanos()) };
    let mut poll = [PollFd::new(listener, PollFlags::IN)];
    matches!(rustix::event::poll(&mut poll, Some(&tick)), Ok(ready) if ready > 0)
}

impl Http {
    fn serve(
        &self,
        stream: &TcpStream,
        lookers: &AtomicUsize,
        stop: &AtomicBool,
    ) -> io::Result<()> {
        stream.set_write_timeout(Some(self.patience))?;
        stream.set_nodelay(true)?;
        let HttpRequest { path, bare } = self.ask(stream, stop)?;
        match path.and_then(|path| self.site.answer(&path).ok_or(request::MISSING)) {
            Err(refusal) => refuse(stream, &refusal, bare),
            Ok(Answer::Page { kind, policy, body }) => {
                let head =
                    head("200 OK", kind, &policy, &format!("Content-Length: {}\r\n", body.len()));
                (&mut &*stream).write_all(head.as_bytes())?;
                (&mut &*stream).write_all(if bare { &[] } else { &body })?;
            }
            Ok(Answer::Events) => {
                if lookers.fetch_add(1, Ordering::Relaxed) >= LOOKERS {
                    refuse(stream, &request::BUSY, bare);
                } else {
                    // A stream ends when its client has gone.
                    let _ = send_events(stream, &*self.site, bare, stop);
                }
                lookers.fetch_sub(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Reads the head of a request, within the time limit.
    fn ask(&self, stream: &TcpStream, stop: &AtomicBool) -> io::Result<HttpRequest> {
        let end = Instant::now() + self.patience;
        let (mut bytes, mut got) = (vec![0; HEAD], 0);
        loop {
            match request::parse(&bytes[..got], &self.host) {
                Some(asked) => return Ok(asked),
                None if got == HEAD => return Ok(request::LONG.into()),
                None => {}
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || stop.load(Ordering::Relaxed) {
                return Ok(request::LATE.into());
            }
            // In short steps, so that a stopping server does not wait for a silent client.
            stream.set_read_timeout(Some(left.min(TICK)))?;
            match (&mut &*stream).read(&mut bytes[got..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(more) => got += more,
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::WouldBlock
                            | io::ErrorKind::TimedOut
                            | io::ErrorKind::Interrupted
                    ) => {}
                Err(e) => return Err(e),
            }
        }
    }
}

/// The head of an answer. `field` is a further header field, with its line end.
fn head(status: &str, kind: &str, policy: &str, field: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{field}Content-Security-Policy: {policy}\r\n\
            X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCache-Control: \
            no-store\r\nConnection: close\r\n\r\n"
    )
}

/// The policy that allows neither fetches nor scripts.
pub const NOTHING: &str = "default-src 'none'";

fn refuse(stream: &TcpStream, refusal: &ErrorResponse, bare: bool) {
    say(stream, refusal, bare);
    drain(stream);
}

/// Answers with a single line; `bare`: with the head alone.
fn say(stream: &TcpStream, refusal: &ErrorResponse, bare: bool) {
    let ErrorResponse { status, field, advice } = refusal;
    let body = format!("{status}{advice}\n");
    let field = format!("{field}Content-Length: {}\r\n", body.len());
    let answer =
        head(status, "text/plain; charset=utf-8", NOTHING, &field) + if bare { "" } else { &body };
    // Best effort: a client with unread data may see the connection reset.
    let _ = (&mut &*stream).write_all(answer.as_bytes());
    let _ = stream.shutdown(Shutdown::Write);
}

/// Reads a little of what is still sent: closing a socket with unread bytes revokes the answer (RFC
/// 9112, section 9.6).
fn drain(stream: &TcpStream) {
    let _ = stream.set_read_timeout(Some(TICK));
    let mut bytes = [0; 4096];
    for _ in 0..16 {
        if !matches!((&mut &*stream).read(&mut bytes), Ok(more) if more > 0) {
            break;
        }
    }
}

fn send_events(
    stream: &TcpStream,
    site: &dyn Site,
    bare: bool,
    stop: &AtomicBool,
) -> io::Result<()> {
    (&mut &*stream).write_all(head("200 OK", "text/event-stream", NOTHING, "").as_bytes())?;
    while !bare && !stop.load(Ordering::Relaxed) {
        let next = Instant::now() + PERIOD;
        // A line break would end the event.
        let data = site.event().replace(['\n', '\r'], " ");
        (&mut &*stream).write_all(format!("data: {data}\n\n").as_bytes())?;
        while Instant::now() < next && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(TICK);
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "http/tests.rs"]
mod tests;
