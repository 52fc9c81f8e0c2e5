//! PostgreSQL's write-ahead log: places of records, and the requests that write them.

use super::super::steps::Steps;
use super::super::{FLUSH, ask};
use super::PAGE;
use crate::error::Error;
use crate::rig::Op;
use trueline_geom::base::topology::{is_whole, round_down, round_up};

/// The alignment of records (`MAXIMUM_ALIGNOF`).
const ALIGN: u64 = 8;
/// The bytes of a page's header, and of a segment's first page (`SizeOfXLogShortPHD`, `…LongPHD`).
const HEADER: u64 = 24;
const LONG_HEADER: u64 = 40;

/// The log, at the begin of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wal {
    length: u64,
    segment: u64,
    /// The pages of the ring before it.
    ring: u64,
    /// The end of the last record.
    end: u64,
    /// The ends of what is written, and of what is flushed.
    written: u64,
    flushed: u64,
    counts: WalCounts,
}

/// The server's own counts of its log (`pg_stat_wal`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalCounts {
    /// Records in the log (`wal_records`).
    pub records: u64,
    /// Images of pages in them (`wal_fpi`).
    pub images: u64,
    /// The bytes of the records (`wal_bytes`), without alignment and headers of pages.
    pub bytes: u64,
    /// Records that found the ring full (`wal_buffers_full`).
    pub ring_full: u64,
    /// Writes of the log (`wal_write`).
    pub writes: u64,
    /// Flushes of the log (`wal_sync`).
    pub syncs: u64,
}

impl Wal {
    /// A log that is written and flushed to `position`.
    pub(super) fn new(
        length: u64,
        segment: u64,
        buffers: u64,
        position: u64,
    ) -> Result<Wal, Error> {
        let refuse = |why: String| Err(Error::new(why));
        if !segment.is_power_of_two() || !(1 << 20..=1 << 30).contains(&segment) {
            return refuse(format!("segment = {segment}: a power of two from 1 MiB to 1 GiB"));
        }
        if !(1..=1 << 60).contains(&length) || !is_whole(length, segment) {
            return refuse(format!("log = {length}: whole segments of {segment} bytes, to 2^60"));
        }
        // GUC_UNIT_XBLOCKS: at least 4 pages, at most 2^31 bytes.
        if !is_whole(buffers, PAGE) || !(4 * PAGE..1 << 31).contains(&buffers) {
            return refuse(format!("wal-buffers = {buffers}: pages of {PAGE} bytes, at least 4"));
        }
        if !is_whole(position, ALIGN) || position > 1 << 62 {
            return refuse(format!("position = {position}: a multiple of {ALIGN} below 2^62"));
        }
        let counts = WalCounts::default();
        let ring = buffers / PAGE;
        let mut wal = Wal { length, segment, ring, end: 0, written: 0, flushed: 0, counts };
        let position = wal.behind_header(position);
        (wal.end, wal.written, wal.flushed) = (position, position, position);
        Ok(wal)
    }

    /// The byte behind the header of a page, if `at` is its first.
    fn behind_header(&self, at: u64) -> u64 {
        match () {
            () if is_whole(at, self.segment) => at + LONG_HEADER,
            () if is_whole(at, PAGE) => at + HEADER,
            () => at,
        }
    }

    /// The counts since the begin.
    pub(super) fn counts(&self) -> WalCounts {
        self.counts
    }

    /// Adds a record of `length` bytes, of which an image is a part or not; returns its end.
    pub(super) fn insert(&mut self, length: u64, image: bool, steps: &mut Steps) -> u64 {
        self.counts.records += 1;
        self.counts.images += u64::from(image);
        self.counts.bytes += length;
        let mut left = round_up(length, ALIGN).unwrap_or(length);
        while left > 0 {
            if is_whole(self.end, PAGE) {
                self.make_room(steps);
                self.end = self.behind_header(self.end);
            }
            let room = PAGE - (self.end - round_down(self.end, PAGE));
            let part = left.min(room);
            self.end += part;
            left -= part;
        }
        self.end
    }

    /// Writes the page whose place in the ring the page at the end takes.
    fn make_room(&mut self, steps: &mut Steps) {
        let old = self.end.checked_sub(self.ring * PAGE).map(|old| old + PAGE);
        if let Some(old) = old.filter(|&old| self.written < old) {
            self.counts.ring_full += 1;
            self.write(old, steps);
        }
    }

    /// Flushes the log, all of it, if that at `to` is not flushed yet.
    pub(super) fn flush(&mut self, to: u64, steps: &mut Steps) {
        if to <= self.flushed {
            return;
        }
        self.write(self.end, steps);
        if self.flushed < self.written {
            self.sync(steps);
        }
    }

    fn sync(&mut self, steps: &mut Steps) {
        steps.add(FLUSH);
        steps.then();
        self.counts.syncs += 1;
        self.flushed = self.written;
    }

    /// Writes the pages from that in which the last write ended to the one in which `to` lies.
    fn write(&mut self, to: u64, steps: &mut Steps) {
        let mut first = round_down(self.written, PAGE);
        while self.written < to {
            let page = round_down(self.written, PAGE);
            let end = page + PAGE;
            self.written = end.min(to);
            let wraps = is_whole(end, self.ring * PAGE);
            let ends_segment = self.written == end && is_whole(end, self.segment);
            if self.written == to || wraps || ends_segment {
                steps.add(ask(Op::Write, first % self.length, end - first));
                steps.then();
                self.counts.writes += 1;
                first = end;
            }
            if ends_segment {
                self.sync(steps);
            }
        }
    }
}
