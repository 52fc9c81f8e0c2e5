//! The progress of a payload or large reply, and its deadlines.

use super::limits::Limits;
use std::io;
use std::time::Instant;

/// The progress of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    begun: Instant,
    /// The time of the last byte received or sent.
    last: Instant,
    done: usize,
    length: usize,
}

/// The check of a message's deadlines, called after each progress, or some time without any.
pub(super) type InTime<'a> = &'a dyn Fn(&Progress) -> io::Result<()>;

impl Progress {
    /// The progress of `length` bytes, the first of which is awaited from `now` on.
    pub(super) fn new(length: usize, now: Instant) -> Progress {
        Progress { begun: now, last: now, done: 0, length }
    }

    /// Notes `count` more bytes by `now`.
    pub(super) fn add(&mut self, count: usize, now: Instant) {
        if count > 0 {
            self.last = now;
            self.done = self.done.saturating_add(count).min(self.length);
        }
    }

    /// True if the client was silent longer than a request may pause.
    pub(super) fn is_silent(&self, limits: &Limits, now: Instant) -> bool {
        now.saturating_duration_since(self.last) >= limits.request
    }

    /// True if the message takes longer than a slow line needs.
    pub(super) fn is_late(&self, limits: &Limits, now: Instant) -> bool {
        now.saturating_duration_since(self.begun) > limits.payload(self.length)
    }

    /// True if the message is too slow while other clients wait for its memory, since `crowded`.
    /// Earlier slowness does not count: the time starts when they began to wait. It has some for
    /// its first byte, and [`Limits::request`] for all of it.
    pub(super) fn is_in_the_way(
        &self,
        limits: &Limits,
        crowded: Option<Instant>,
        now: Instant,
    ) -> bool {
        const WHOLE: u32 = 1 << 10;
        let done = self.done.saturating_mul(1 << 10) / self.length.max(1);
        let (first, done) =
            (limits.crowded.min(limits.request), u32::try_from(done).unwrap_or(WHOLE));
        let may = first.saturating_add((limits.request - first) / WHOLE * done);
        crowded.is_some_and(|crowded| now.saturating_duration_since(crowded.max(self.begun)) > may)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const MIB: usize = 1 << 20;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn a_client_alone_has_the_time_of_a_slow_line() {
        let (start, limits) = (Instant::now(), Limits::default());
        let mut progress = Progress::new(32 * MIB, start);
        assert!(
            !progress.is_late(&limits, start + seconds(33 * 60))
                && progress.is_late(&limits, start + seconds(33 * 60 + 1))
        );
        assert!(!progress.is_in_the_way(&limits, None, start + seconds(33 * 60)));
        assert!(
            !progress.is_silent(&limits, start + seconds(59))
                && progress.is_silent(&limits, start + seconds(60))
        );
        progress.add(0, start + seconds(30));
        assert!(progress.is_silent(&limits, start + seconds(60)), "nothing is not a byte");
        progress.add(1, start + seconds(30));
        assert!(!progress.is_silent(&limits, start + seconds(60)));
    }

    /// While others wait, what takes room has ten seconds for its first byte, and a minute for all
    /// of it.
    #[test]
    fn a_client_that_keeps_others_waiting_has_less() {
        let (start, limits) = (Instant::now(), Limits::default());
        let mut progress = Progress::new(32 * MIB, start);
        let in_the_way = |progress: &Progress, after| {
            progress.is_in_the_way(&limits, Some(start), start + seconds(after))
        };
        assert_eq!((in_the_way(&progress, 10), in_the_way(&progress, 11)), (false, true));
        progress.add(16 * MIB, start + seconds(1));
        assert_eq!((in_the_way(&progress, 34), in_the_way(&progress, 36)), (false, true));
        progress.add(16 * MIB - 1, start + seconds(1));
        assert_eq!((in_the_way(&progress, 59), in_the_way(&progress, 61)), (false, true));
    }

    /// A slow client is not cut off the moment another begins to wait.
    #[test]
    fn slowness_counts_from_when_another_waits() {
        let (start, limits) = (Instant::now(), Limits::default());
        let progress = Progress::new(32 * MIB, start);
        let crowded = start + seconds(500);
        assert!(!progress.is_in_the_way(&limits, Some(crowded), crowded + seconds(10)));
        assert!(progress.is_in_the_way(&limits, Some(crowded), crowded + seconds(11)));
        // A message that begins after others began to wait is timed from its own start.
        let late = Progress::new(32 * MIB, crowded);
        assert!(!late.is_in_the_way(&limits, Some(start), crowded + seconds(10)));
    }
}
