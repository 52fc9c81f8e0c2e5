//! What was read, and read ahead: a few runs of sectors, the least recently used gives way.

use trueline_geom::base::topology::round_up;

/// A run of bytes in memory.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start: u64,
    end: u64,
    /// As far as the host has asked.
    asked: u64,
    /// When it was last used.
    used: u64,
}

/// The segments.
#[derive(Debug)]
pub(super) struct ReadCache {
    segments: Vec<Segment>,
    most: usize,
    /// How far ahead of what was asked for it reads.
    ahead: u64,
    clock: u64,
    /// The segment that was read last.
    last: usize,
    /// Whether it is reading ahead and has not come as far as it wants.
    going: bool,
}

impl ReadCache {
    pub(super) fn new(most: usize, ahead: u64) -> ReadCache {
        ReadCache { segments: Vec::with_capacity(most), most, ahead, clock: 0, last: 0, going: false }
    }

    /// As far as there is something in memory from `at` on.
    pub(super) fn covered(&self, at: u64) -> u64 {
        self.segments.iter().filter(|s| s.start <= at && at < s.end).map(|s| s.end).max().unwrap_or(at)
    }

    /// The host asked for `start..end`, of which the beginning is here.
    pub(super) fn ask(&mut self, start: u64, end: u64) {
        self.clock += 1;
        for segment in self.segments.iter_mut().filter(|s| s.start <= start && start <= s.end) {
            segment.used = self.clock;
            segment.asked = segment.asked.max(end.min(segment.end));
        }
    }

    /// `start..end` was read; up to `asked` because the host asked.
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
        // A segment holds what is ahead and as much behind.
        segment.start = segment.start.max(segment.end.saturating_sub(self.ahead.saturating_mul(2).max(end - start)));
    }

    /// An empty segment at `start`.
    fn room(&mut self, start: u64) -> usize {
        let segment = Segment { start, end: start, asked: start, used: self.clock };
        if self.segments.len() < self.most {
            self.segments.push(segment);
            return self.segments.len() - 1;
        }
        let oldest = self.segments.iter().enumerate().min_by_key(|(_, s)| s.used).map_or(0, |(at, _)| at);
        self.segments[oldest] = segment;
        oldest
    }

    /// What is to be read ahead after the segment that was read last: from where, to where. It begins again when half is used up.
    pub(super) fn ahead(&mut self, sector: u64) -> Option<(u64, u64)> {
        let segment = self.segments.get(self.last).filter(|_| self.ahead > 0)?;
        let until = round_up(segment.asked.checked_add(self.ahead)?, sector)?;
        let enough = if self.going { until } else { until - self.ahead / 2 };
        self.going = segment.end < enough;
        self.going.then_some((segment.end, until))
    }
}
