//! Notices about clients that were cut off: one line for each, at most [`MOST`] a minute, and then
//! the number of the others.

use super::limits::Limits;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use trueline_host::lock::lock;

/// A consumer of lines for people.
pub type Tell = dyn Fn(&str) + Send + Sync;

/// The most lines a minute: a hostile client cannot fill a disk with them.
pub const MOST: u32 = 10;
const MINUTE: Duration = Duration::from_secs(60);

/// The notices of one server.
pub(super) struct Notices<'a> {
    tell: &'a Tell,
    minute: Mutex<Minute>,
    /// True if it was reported that clients wait to be accepted.
    held_up: AtomicBool,
}

#[derive(Default)]
struct Minute {
    /// The time of its first line.
    begun: Option<Instant>,
    said: u32,
    /// Lines that were suppressed.
    more: u64,
}

impl<'a> Notices<'a> {
    pub(super) fn new(tell: &'a Tell) -> Notices<'a> {
        Notices { tell, minute: Mutex::default(), held_up: AtomicBool::new(false) }
    }

    fn minute(&self) -> MutexGuard<'_, Minute> {
        lock(&self.minute)
    }

    /// Reports that the client `client` was cut off for the reason `why`.
    pub(super) fn cut_off(&self, client: &str, why: &str, now: Instant) {
        self.pass(now);
        let mut minute = self.minute();
        minute.begun.get_or_insert(now);
        if minute.said < MOST {
            minute.said += 1;
            (self.tell)(&format!("{client} was cut off: {why}"));
        } else {
            minute.more += 1;
        }
    }

    /// Reports that no client can be accepted; only once, as the condition comes and goes with
    /// every client.
    pub(super) fn held_up(&self, why: &io::Error) {
        if !self.held_up.swap(true, Ordering::Relaxed) {
            let why = why.to_string();
            let why = why.rsplit_once(" (os error ").map_or(why.as_str(), |(why, _)| why);
            (self.tell)(&format!(
                "clients wait until others have gone: {why}: raise the limit of open files (ulimit -n)"
            ));
        }
    }

    /// Reports the number of suppressed lines, once the minute is over.
    pub(super) fn pass(&self, now: Instant) {
        if self.minute().begun.is_some_and(|begun| now.saturating_duration_since(begun) >= MINUTE) {
            self.end();
        }
    }

    /// Ends the minute, or the server.
    pub(super) fn end(&self) {
        let Minute { more, .. } = std::mem::take(&mut *self.minute());
        if more > 0 {
            (self.tell)(&format!("{more} more clients were cut off within a minute"));
        }
    }
}

/// The reason for which a connection was cut off; [`None`] if its client has gone. `begun`: true if
/// an export had been agreed on.
pub(super) fn why(error: &io::Error, limits: &Limits, begun: bool) -> Option<String> {
    match error.kind() {
        // Errors with a message of their own: TLS, and violated limits.
        _ if error.get_ref().is_some() => Some(error.to_string()),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock if !begun => {
            Some(format!("no request within {} s of connecting", limits.handshake.as_secs_f64()))
        }
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            let (request, reply) = (limits.request.as_secs_f64(), limits.reply.as_secs_f64());
            Some(format!(
                "for {request} s a request was not sent to its end, or for {reply} s no byte of a reply was taken"
            ))
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
            notices.cut_off(
                &format!("client {second}"),
                "slow",
                start + Duration::from_secs(second),
            );
            notices.pass(start + Duration::from_secs(second));
        }
        let lines = taken();
        assert_eq!(
            (lines.len(), lines[0].as_str(), lines[9].as_str()),
            (10, "client 0 was cut off: slow", "client 9 was cut off: slow")
        );
        // The rest is reported even if no other client comes.
        notices.pass(start + MINUTE);
        assert_eq!(taken(), ["30 more clients were cut off within a minute"]);
        notices.pass(start + 3 * MINUTE);
        notices.cut_off("a client", "late", start + 3 * MINUTE);
        notices.end();
        assert_eq!(taken(), ["a client was cut off: late"]);
    }

    #[test]
    fn a_client_that_leaves_is_not_cut_off() {
        let why = |kind: io::ErrorKind, begun| why(&kind.into(), &Limits::default(), begun);
        for kind in [
            io::ErrorKind::UnexpectedEof,
            io::ErrorKind::ConnectionReset,
            io::ErrorKind::BrokenPipe,
        ] {
            assert_eq!(why(kind, true), None);
        }
        assert_eq!(
            why(io::ErrorKind::WouldBlock, false).as_deref(),
            Some("no request within 30 s of connecting")
        );
        assert!(why(io::ErrorKind::TimedOut, true).is_some_and(|why| why.contains("60 s")));
    }
}
