//! What a server says of clients that it cut off: a line for each, at most [`MOST`] a minute, and then how many more there were.

use super::limits::Limits;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Takes a line for people.
pub type Tell = dyn Fn(&str) + Send + Sync;

/// Lines a minute: who would fill a disk with them cannot.
pub const MOST: u32 = 10;
const MINUTE: Duration = Duration::from_secs(60);

/// The lines of one server.
pub(super) struct Notices<'a> {
    tell: &'a Tell,
    minute: Mutex<Minute>,
    /// Whether it was said that clients wait to be accepted.
    held_up: AtomicBool,
}

#[derive(Default)]
struct Minute {
    /// When its first line was said.
    begun: Option<Instant>,
    said: u32,
    /// Lines that were not said.
    more: u64,
}

impl<'a> Notices<'a> {
    pub(super) fn new(tell: &'a Tell) -> Notices<'a> {
        Notices { tell, minute: Mutex::default(), held_up: AtomicBool::new(false) }
    }

    fn minute(&self) -> MutexGuard<'_, Minute> {
        self.minute.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `who` was cut off, and why.
    pub(super) fn cut_off(&self, who: &str, why: &str, now: Instant) {
        self.pass(now);
        let mut minute = self.minute();
        minute.begun.get_or_insert(now);
        if minute.said < MOST {
            minute.said += 1;
            (self.tell)(&format!("{who} was cut off: {why}"));
        } else {
            minute.more += 1;
        }
    }

    /// Nobody can be accepted. It is said once: it comes and goes with every client.
    pub(super) fn held_up(&self, why: &io::Error) {
        if !self.held_up.swap(true, Ordering::Relaxed) {
            let why = why.to_string();
            let why = why.rsplit_once(" (os error ").map_or(why.as_str(), |(why, _)| why);
            (self.tell)(&format!("clients wait until others have gone: {why}: raise the limit of open files (ulimit -n)"));
        }
    }

    /// Says how many more there were, once the minute is over.
    pub(super) fn pass(&self, now: Instant) {
        if self.minute().begun.is_some_and(|begun| now.saturating_duration_since(begun) >= MINUTE) {
            self.end();
        }
    }

    /// The minute is over, or the server is.
    pub(super) fn end(&self) {
        let Minute { more, .. } = std::mem::take(&mut *self.minute());
        if more > 0 {
            (self.tell)(&format!("{more} more clients were cut off within a minute"));
        }
    }
}

/// Why a connection that ended so was cut off; [`None`] if its client has gone. `begun`: whether it had agreed on an export.
pub(super) fn why(error: &io::Error, limits: &Limits, begun: bool) -> Option<String> {
    match error.kind() {
        // What has words of its own: TLS, and what no client may do.
        _ if error.get_ref().is_some() => Some(error.to_string()),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock if !begun => {
            Some(format!("no request within {} s of connecting", limits.handshake.as_secs_f64()))
        }
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            let (request, reply) = (limits.request.as_secs_f64(), limits.reply.as_secs_f64());
            Some(format!("for {request} s a request was not sent to its end, or for {reply} s no byte of a reply was taken"))
        }
        io::ErrorKind::OutOfMemory => Some("there is no thread to be had for its requests".into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_flood_is_ten_lines_a_minute_and_a_count() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let kept = said.clone();
        let tell = move |line: &str| kept.lock().unwrap().push(line.to_owned());
        let taken = || std::mem::take(&mut *said.lock().unwrap());
        let (notices, start) = (Notices::new(&tell), Instant::now());
        for second in 0..40 {
            notices.cut_off(&format!("client {second}"), "slow", start + Duration::from_secs(second));
            notices.pass(start + Duration::from_secs(second));
        }
        let lines = taken();
        assert_eq!((lines.len(), lines[0].as_str(), lines[9].as_str()), (10, "client 0 was cut off: slow", "client 9 was cut off: slow"));
        // Nobody else need come for the rest to be told.
        notices.pass(start + MINUTE);
        assert_eq!(taken(), ["30 more clients were cut off within a minute"]);
        notices.pass(start + 3 * MINUTE);
        notices.cut_off("he", "late", start + 3 * MINUTE);
        notices.end();
        assert_eq!(taken(), ["he was cut off: late"]);
    }

    #[test]
    fn who_goes_by_himself_is_not_cut_off() {
        let why = |kind: io::ErrorKind, begun| why(&kind.into(), &Limits::default(), begun);
        for kind in [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe] {
            assert_eq!(why(kind, true), None);
        }
        assert_eq!(why(io::ErrorKind::WouldBlock, false).as_deref(), Some("no request within 30 s of connecting"));
        assert!(why(io::ErrorKind::TimedOut, true).is_some_and(|why| why.contains("60 s")));
    }
}
