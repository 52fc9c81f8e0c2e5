//! A small HTTP/1.1 server: GET and HEAD, a few clients, each answered once, if it asks for this server and not for another.
//!
//! # Limits
//! [`CLIENTS`] at one time, of which [`LOOKERS`] may watch events; [`HEAD`] bytes of a request and [`PATIENCE`] to send it; who takes
//! nothing of the answer for so long is hung up on. Requests with a body are answered as those without.
//!
//! # Sources
//! RFC 9112 (HTTP/1.1); HTML Living Standard, section "Server-sent events".

use crate::front::{Front, as_io_flusher};
use trueline_host::error::Error;

use asked::{Asked, Refusal};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use trueline_host::nbd::listener;

mod asked;

/// Clients at one time; further ones are told to come again.
pub const CLIENTS: usize = 16;
/// Clients that watch events at one time, so that others are answered too.
pub const LOOKERS: usize = 12;
/// Bytes of a request.
pub const HEAD: usize = 8 << 10;
/// How long a client may take to send its request, and to take an answer.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two events.
const PERIOD: Duration = Duration::from_secs(1);
/// How long a server that is told to stop may take to notice.
const TICK: Duration = Duration::from_millis(50);

/// What is served.
pub trait Site: Send + Sync {
    /// The answer to a GET of `path`, which has no query; [`None`] where there is nothing.
    fn answer(&self, path: &str) -> Option<Answer>;

    /// The next event of a stream.
    fn event(&self) -> String;

    /// Called some twenty times a second, whether a page is looked at or not.
    fn pass(&self) {}
}

/// An answer.
pub enum Answer {
    /// All of it.
    Page {
        /// Its media type.
        kind: &'static str,
        /// Its `Content-Security-Policy`.
        policy: String,
        /// Its bytes.
        body: Vec<u8>,
    },
    /// [`Site::event`] again and again, until nobody looks.
    Events,
}

/// A site, at an address.
pub struct Http {
    listener: TcpListener,
    /// What it was told to listen on.
    host: String,
    site: Arc<dyn Site>,
    /// [`PATIENCE`], but in tests.
    patience: Duration,
}

impl Http {
    /// `site` at an address, or the first one that `host` stands for and that there is; port 0 is any that is free. It answers those who
    /// ask by an address, as `localhost` or by that name.
    pub fn bind(host: &str, port: u16, site: Arc<dyn Site>) -> Result<Http, Error> {
        let listener = listener::tcp(host, port)?;
        // Whoever waited to be accepted may have gone, and there may be no other for a long time.
        listener.set_nonblocking(true).map_err(|e| Error::os("listen on", Path::new(host), e))?;
        Ok(Http { listener, host: host.into(), site, patience: PATIENCE })
    }
}

impl Front for Http {
    fn place(&self) -> String {
        self.listener.local_addr().map_or_else(|_| "http://localhost/".into(), |address| format!("http://{address}/"))
    }

    fn variable(&self) -> &'static str {
        "metrics"
    }

    fn run(&self, stop: &AtomicBool) -> Result<(), Error> {
        // Who asks for counts waits for nobody who writes, nor the other way round.
        as_io_flusher();
        let (clients, lookers) = (&AtomicUsize::new(0), &AtomicUsize::new(0));
        std::thread::scope(|scope| {
            while !stop.load(Ordering::Relaxed) {
                self.site.pass();
                if !is_ready(&self.listener) {
                    continue;
                }
                let Ok((stream, _)) = self.listener.accept() else {
                    // He has gone before he was accepted; or there is no descriptor, and asking at once only keeps a processor busy.
                    std::thread::sleep(TICK);
                    continue;
                };
                if clients.load(Ordering::Relaxed) >= CLIENTS {
                    // Without waiting for more of what he sends: others want to be accepted.
                    say(&stream, &asked::BUSY, false);
                    continue;
                }
                clients.fetch_add(1, Ordering::Relaxed);
                let serve = move || {
                    // What goes wrong is between the client and its network.
                    let _ = self.serve(&stream, lookers, stop);
                    clients.fetch_sub(1, Ordering::Relaxed);
                };
                if std::thread::Builder::new().name("http client".into()).spawn_scoped(scope, serve).is_err() {
                    clients.fetch_sub(1, Ordering::Relaxed);
                }
            }
        });
        Ok(())
    }
}

/// Whether a client waits to be accepted; returns after [`TICK`] at the latest.
fn is_ready(listener: &TcpListener) -> bool {
    let tick = Timespec { tv_sec: 0, tv_nsec: i64::from(TICK.subsec_nanos()) };
    let mut poll = [PollFd::new(listener, PollFlags::IN)];
    matches!(rustix::event::poll(&mut poll, Some(&tick)), Ok(ready) if ready > 0)
}

impl Http {
    fn serve(&self, stream: &TcpStream, lookers: &AtomicUsize, stop: &AtomicBool) -> io::Result<()> {
        stream.set_write_timeout(Some(self.patience))?;
        stream.set_nodelay(true)?;
        let Asked { path, bare } = self.ask(stream, stop)?;
        match path.and_then(|path| self.site.answer(&path).ok_or(asked::MISSING)) {
            Err(refusal) => refuse(stream, &refusal, bare),
            Ok(Answer::Page { kind, policy, body }) => {
                let head = head("200 OK", kind, &policy, &format!("Content-Length: {}\r\n", body.len()));
                (&mut &*stream).write_all(head.as_bytes())?;
                (&mut &*stream).write_all(if bare { &[] } else { &body })?;
            }
            Ok(Answer::Events) => {
                if lookers.fetch_add(1, Ordering::Relaxed) >= LOOKERS {
                    refuse(stream, &asked::BUSY, bare);
                } else {
                    // Nobody looks any more: that is how it ends.
                    let _ = send_events(stream, &*self.site, bare, stop);
                }
                lookers.fetch_sub(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Reads a request.
    fn ask(&self, stream: &TcpStream, stop: &AtomicBool) -> io::Result<Asked> {
        let end = Instant::now() + self.patience;
        let (mut bytes, mut got) = (vec![0; HEAD], 0);
        loop {
            match asked::parse(&bytes[..got], &self.host) {
                Some(asked) => return Ok(asked),
                None if got == HEAD => return Ok(asked::LONG.into()),
                None => {}
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || stop.load(Ordering::Relaxed) {
                return Ok(asked::LATE.into());
            }
            // In short steps, so that a server that is told to stop does not wait for who sends nothing.
            stream.set_read_timeout(Some(left.min(TICK)))?;
            match (&mut &*stream).read(&mut bytes[got..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(more) => got += more,
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted) => {}
                Err(e) => return Err(e),
            }
        }
    }
}

/// The head of an answer. `field`: a further header field, with its end of line.
fn head(status: &str, kind: &str, policy: &str, field: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{field}Content-Security-Policy: {policy}\r\nX-Content-Type-Options: nosniff\r\n\
         Referrer-Policy: no-referrer\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
}

/// Nothing may be fetched or run.
pub const NOTHING: &str = "default-src 'none'";

fn refuse(stream: &TcpStream, refusal: &Refusal, bare: bool) {
    say(stream, refusal, bare);
    drain(stream);
}

/// Answers with a line alone; `bare`: with its head.
fn say(stream: &TcpStream, refusal: &Refusal, bare: bool) {
    let Refusal { status, field, advice } = refusal;
    let body = format!("{status}{advice}\n");
    let field = format!("{field}Content-Length: {}\r\n", body.len());
    let answer = head(status, "text/plain; charset=utf-8", NOTHING, &field) + if bare { "" } else { &body };
    // As far as it can be told: who has sent more than was read may see the connection reset.
    let _ = (&mut &*stream).write_all(answer.as_bytes());
    let _ = stream.shutdown(Shutdown::Write);
}

/// Takes a little of what is still sent: closing a socket with bytes unread takes back the answer (RFC 9112, section 9.6).
fn drain(stream: &TcpStream) {
    let _ = stream.set_read_timeout(Some(TICK));
    let mut bytes = [0; 4096];
    for _ in 0..16 {
        if !matches!((&mut &*stream).read(&mut bytes), Ok(more) if more > 0) {
            break;
        }
    }
}

fn send_events(stream: &TcpStream, site: &dyn Site, bare: bool, stop: &AtomicBool) -> io::Result<()> {
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
