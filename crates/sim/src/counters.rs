//! Counters of a drive, which account for every second.

use crate::time::Ps;
use std::ops::AddAssign;

/// Counts and times since the drive was switched on. The times of the mechanism add up to the time
/// that passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads of the host.
    pub reads: u64,
    /// Writes of the host.
    pub writes: u64,
    /// Flushes of the host.
    pub flushes: u64,
    /// Bytes the host read.
    pub bytes_read: u64,
    /// Bytes the host wrote.
    pub bytes_written: u64,
    /// Operations of the medium: passes of a head over sectors, reads and programs of flash pages.
    pub media_ops: u64,
    /// Bytes the medium read.
    pub media_read: u64,
    /// Bytes the medium wrote; over `bytes_written`, the write amplification.
    pub media_written: u64,
    /// Bytes of `media_written` that hold nothing: pages of flash that could not wait until
    /// they were full.
    pub padded: u64,
    /// Bytes of `media_written` that garbage collection copied.
    pub copied: u64,
    /// Erase blocks that were erased.
    pub erasures: u64,
    /// Physical sectors or indirection units that were written in part, and so read first.
    pub rmw: u64,
    /// Reads of the medium that only a read-modify-write needed.
    pub rmw_reads: u64,
    /// Revolutions lost because a sector had just passed.
    pub lost_revolutions: u64,
    /// Commands answered from a cache: reads from memory, and writes merged with data that were
    /// still dirty.
    pub cache_hits: u64,
    /// Time in set-up and command overhead of the mechanism, in picoseconds.
    pub setup: Ps,
    /// Time in which the arm moved or settled, in picoseconds.
    pub seek: Ps,
    /// Time of rotational delay, in picoseconds.
    pub rotate: Ps,
    /// Time in which bytes moved to or from the medium, in picoseconds.
    pub transfer: Ps,
    /// Time without any work for the mechanism, in picoseconds.
    pub idle: Ps,
    /// Steps of the simulation: commands in, data over the link, operations of the medium, timers.
    pub events: u64,
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.flushes += other.flushes;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        self.media_ops += other.media_ops;
        self.media_read += other.media_read;
        self.media_written += other.media_written;
        self.padded += other.padded;
        self.copied += other.copied;
        self.erasures += other.erasures;
        self.rmw += other.rmw;
        self.rmw_reads += other.rmw_reads;
        self.lost_revolutions += other.lost_revolutions;
        self.cache_hits += other.cache_hits;
        self.setup += other.setup;
        self.seek += other.seek;
        self.rotate += other.rotate;
        self.transfer += other.transfer;
        self.idle += other.idle;
        self.events += other.events;
    }
}
