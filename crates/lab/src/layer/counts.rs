//! Counts of what passes a layer.

use crate::rig::Op;
use crate::streams::Ask;
use serde::Serialize;
use std::ops::AddAssign;

/// Requests and their bytes, by operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RequestCounts {
    /// The number of reads.
    pub reads: u64,
    /// The number of writes.
    pub writes: u64,
    /// The number of flushes.
    pub flushes: u64,
    /// Bytes of the reads.
    pub bytes_read: u64,
    /// Bytes of the writes.
    pub bytes_written: u64,
}

impl RequestCounts {
    /// The counts of some requests.
    pub fn of(asks: impl Iterator<Item = Ask>) -> RequestCounts {
        let mut counts = RequestCounts::default();
        asks.for_each(|ask| counts.count(ask));
        counts
    }

    /// Adds a request to the counts.
    pub fn count(&mut self, ask: Ask) {
        match ask.op {
            Op::Read => {
                self.reads += 1;
                self.bytes_read += ask.length;
            }
            Op::Write => {
                self.writes += 1;
                self.bytes_written += ask.length;
            }
            Op::Flush => self.flushes += 1,
        }
    }
}

impl AddAssign for RequestCounts {
    fn add_assign(&mut self, other: RequestCounts) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.flushes += other.flushes;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
    }
}

/// Counts of a layer with its name.
pub type NamedCounts = (&'static str, LayerCounts);

/// Requests that came to a layer, and those that it made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LayerCounts {
    /// The requests that came to the layer.
    pub asked: RequestCounts,
    /// The requests that it made of what is beneath.
    pub made: RequestCounts,
    /// The reads among these that a write or a flush caused.
    pub caused_reads: u64,
    /// The bytes of these reads.
    pub caused_bytes_read: u64,
}

impl AddAssign for LayerCounts {
    fn add_assign(&mut self, other: LayerCounts) {
        self.asked += other.asked;
        self.made += other.made;
        self.caused_reads += other.caused_reads;
        self.caused_bytes_read += other.caused_bytes_read;
    }
}

impl LayerCounts {
    /// Counts a request and what became of it.
    pub(super) fn count(&mut self, ask: Ask, made: RequestCounts) {
        self.asked.count(ask);
        self.made += made;
        if ask.op != Op::Read {
            self.caused_reads += made.reads;
            self.caused_bytes_read += made.bytes_read;
        }
    }

    /// Bytes written beneath for one that was written above; `None` if nothing was.
    pub fn write_amplification(&self) -> Option<f64> {
        // Counts of one run are far below 2^53.
        #[allow(clippy::cast_precision_loss, reason = "a ratio for people, not an address")]
        let ratio = |a: u64, b: u64| a as f64 / b as f64;
        (self.asked.bytes_written > 0)
            .then(|| ratio(self.made.bytes_written, self.asked.bytes_written))
    }
}
