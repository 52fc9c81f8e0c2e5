//! The read cache with reading ahead: a few runs of sectors, of which the least recently used is
//! replaced.

use trueline_geom::base::topology::round_up;

/// A contiguous range of bytes in memory.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start: u64,
    end: u64,
    /// The end of the bytes that the host has asked for.
    asked: u64,
    /// The count of its last use.
    used: u64,
}

/// The segments of the cache.
#[derive(Debug)]
pub(super) struct ReadCache {
    segments: Vec<Segment>,
    most: usize,
    /// The most bytes read ahead of the host's requests.
    ahead: u64,
    clock: u64,
    /// The index of the segment read last.
    last: usize,
    /// True while reading ahead has begun and not reached its goal.
    going: bool,
}

impl ReadCache {
    pub(super) fn new(most: usize, ahead: u64) -> ReadCache {
        ReadCache {
            segments: Vec::with_capacity(most),
            most,
            ahead,
            clock: 0,
            last: 0,
            going: false,
        }
    }

    /// The end of the cached data that contain `at`; `at` if none do.
    pub(super) fn covered(&self, at: u64) -> u64 {
        self.segments
            .iter()
            .filter(|s| s.start <= at && at < s.end)
            .map(|s| s.end)
            .max()
            .unwrap_or(at)
    }

    /// Notes a request of the host for `start..end`, whose beginning is cached.
    pub(super) fn ask(&mut self, start: u64, end: u64) {
        self.clock += 1;
        for segment in self.segments.iter_mut().filter(|s| s.start <= start && start <= s.end) {
            segment.used = self.clock;
            segment.asked = segment.asked.max(end.min(segment.end));
        }
    }

    /// Adds `start..end`, just read; the host asked for the bytes up to `asked`.
    pub(super) fn fill(&mut self, start: u64, end: u64, asked: u64) {
        if self.most == 0 {
            return;
        }
        self.clock += 1;
        let at = match self.segments.iter().position(|s| s.start <= start && start <= s.end) {
            Some(at) => at,
            None => self.room(start),
        };
        self.last = at;
        let segment = &mut self.segments[at];
        segment.used = self.clock;
        segment.end = segment.end.max(end);
        segment.asked = segment.asked.max(asked);
        // A segment keeps as much behind the host's position as ahead of it.
        segment.start = segment
            .start
            .max(segment.end.saturating_sub(self.ahead.saturating_mul(2).max(end - start)));
    }

    /// The index of a new empty segment at `start`, in place of the oldest if necessary.
    fn room(&mut self, start: u64) -> usize {
        let segment = Segment { start, end: start, asked: start, used: self.clock };
        if self.segments.len() < self.most {
            self.segments.push(segment);
            return self.segments.len() - 1;
        }
        let oldest =
            self.segments.iter().enumerate().min_by_key(|(_, s)| s.used).map_or(0, |(at, _)| at);
        self.segments[oldest] = segment;
        oldest
    }

    /// The range to read ahead after the segment read last; `None` if there is enough. It starts
    /// again when half is used up.
    pub(super) fn ahead(&mut self, sector: u64) -> Option<(u64, u64)> {
        let segment = self.segments.get(self.last).filter(|_| self.ahead > 0)?;
        let until = round_up(segment.asked.checked_add(self.ahead)?, sector)?;
        let enough = if self.going { until } else { until - self.ahead / 2 };
        self.going = segment.end < enough;
        self.going.then_some((segment.end, until))
    }
}
