//! Sectors that may be unreadable: those that a list names, each of which is tried once more when
//! it is copied, and those of them that failed then.
//!
//! # On disk
//! Two slots at the end of a journal, written in turns, each flushed before it is gone by. A slot
//! has a record: the magic, the identity of the move, the number of the write, how many ranges are
//! listed and how many failed, a CRC-32 of all; then the ranges, each by its first byte and the
//! byte behind. The later slot of those that are whole counts. All numbers are little-endian.
//!
//! What failed is in a slot before a note has the sum of a piece with it: a resumed move has the
//! same bytes, whether a sector that failed could be read by then or not.
//!
//! # Limits
//! [`MOST`] ranges in all. A block of 64 KiB is tried at once, and sector by sector where
//! that fails.

use super::gaps::outside;
use super::{Move, ends};
use crate::base::error::Errno;
use crate::base::ondisk::on_disk;
use crate::base::patch::Read;
use crate::base::store::Store;
use crate::base::topology::round_down;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, IntoBytes};

on_disk! {
    /// Record in front of the ranges of a slot.
    #[derive(IntoBytes)]
    struct Record of 40 bytes {
         0 => magic: [u8; 4],
         4 => id: [u8; 16],
        20 => turn: U64,
        28 => listed: U32,
        32 => failed: U32,
        36 => crc: U32,
    }
    /// A range of a slot.
    #[derive(Clone, Copy, IntoBytes)]
    struct Span of 16 bytes {
        0 => start: U64,
        8 => end: U64,
    }
}

const MAGIC: [u8; 4] = *b"TLBS";
/// Bytes of a slot.
const SLOT: u64 = 1 << 20;
/// Bytes of both slots, which a journal has behind all else.
pub const ROOM: u64 = 2 * SLOT;
/// Largest number of ranges in a slot.
pub const MOST: usize = (1 << 16) - 8;
/// Bytes that are tried at once, and their alignment.
const BLOCK: u64 = 64 << 10;

/// Sectors of what moves that may be unreadable, in its addresses, in order and apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BadSectors {
    /// Ranges of which each sector is tried when it is copied.
    pub listed: Vec<Range<u64>>,
    /// Ranges that failed: they count as zeros, and are not read again.
    pub failed: Vec<Range<u64>>,
}

impl BadSectors {
    /// The list `listed`, of which nothing was tried yet.
    pub fn new(listed: Vec<Range<u64>>) -> BadSectors {
        BadSectors { listed: joined(listed), failed: Vec::new() }
    }

    /// Adds ranges to those that are tried; true if any of them is new.
    pub fn list(&mut self, more: &[Range<u64>]) -> bool {
        let all = joined(self.listed.iter().chain(more).cloned());
        let is_new = all != self.listed;
        self.listed = all;
        is_new
    }

    /// Adds ranges that failed.
    pub fn fail(&mut self, more: impl IntoIterator<Item = Range<u64>>) {
        self.failed = joined(self.failed.drain(..).chain(more));
    }

    /// The bytes at both ends of `length` bytes, at most `most` each, in sectors of `sector`; notes
    /// what fails of the list in them.
    pub fn ends(
        &mut self,
        length: u64,
        (most, sector): (u64, u64),
        read: &mut Read<'_>,
    ) -> Result<(Vec<u8>, Vec<u8>), Errno> {
        let (front, back) = ends(length, most);
        let mut failed = Vec::new();
        let mut bytes = |at: u64, count: u64| {
            let mut bytes = vec![0; usize::try_from(count).map_err(|_| Errno::Range)?];
            self.try_read(sector, at, &mut bytes, read, &mut failed).map(|()| bytes)
        };
        let both = (bytes(0, front)?, bytes(length - back, back)?);
        self.fail(failed);
        Ok(both)
    }

    /// Fills `out` with the bytes at `at`, and with zeros where a sector of the list fails, which
    /// is added to `failed`. Sectors are of `sector` bytes.
    pub fn try_read(
        &self,
        sector: u64,
        at: u64,
        out: &mut [u8],
        read: &mut Read<'_>,
        failed: &mut Vec<Range<u64>>,
    ) -> Result<(), Errno> {
        let whole = at..at.saturating_add(out.len() as u64);
        let tried = outside(&inside(&self.listed, &whole), &self.failed);
        if tried.is_empty() {
            return read_around(&self.failed, at, out, read);
        }
        let passed = joined(inside(&self.failed, &whole).into_iter().chain(tried.iter().cloned()));
        read_around(&passed, at, out, read)?;
        let mut one = |range: Range<u64>| {
            let index = |byte: u64| usize::try_from(byte - at).map_err(|_| Errno::Range);
            let part = out.get_mut(index(range.start)?..index(range.end)?).ok_or(Errno::Range)?;
            match read(range.start, part) {
                Ok(()) => Ok(true),
                // No other error is of the medium.
                Err(Errno::Io) => {
                    part.fill(0);
                    Ok(false)
                }
                Err(errno) => Err(errno),
            }
        };
        for block in tried.iter().flat_map(|range| cut(range, BLOCK)) {
            if one(block.clone())? {
                continue;
            }
            let is_one = block.end - block.start <= sector;
            for part in cut(&block, sector) {
                if is_one || !one(part.clone())? {
                    failed.push(part);
                }
            }
        }
        Ok(())
    }
}

/// The parts of `range` between multiples of `unit`.
fn cut(range: &Range<u64>, unit: u64) -> impl Iterator<Item = Range<u64>> + use<> {
    let (mut at, end) = (range.start, range.end);
    std::iter::from_fn(move || {
        let next = round_down(at, unit).saturating_add(unit).min(end);
        (at < end).then(|| std::mem::replace(&mut at, next)..next)
    })
}

/// The parts of `ranges`, which are in order, inside `within`.
fn inside(ranges: &[Range<u64>], within: &Range<u64>) -> Vec<Range<u64>> {
    let first = ranges.partition_point(|range| range.end <= within.start);
    let parts = ranges[first..].iter().take_while(|range| range.start < within.end);
    parts.map(|range| range.start.max(within.start)..range.end.min(within.end)).collect()
}

/// The ranges in order, those that touch as one.
fn joined(ranges: impl IntoIterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = ranges.into_iter().collect();
    ranges.sort_by_key(|range| range.start);
    let mut apart: Vec<Range<u64>> = Vec::new();
    for range in ranges.into_iter().filter(|range| range.start < range.end) {
        match apart.last_mut().filter(|last| last.end >= range.start) {
            Some(last) => last.end = last.end.max(range.end),
            None => apart.push(range),
        }
    }
    apart
}

/// Fills `out` with the bytes at `at`, and with zeros in `passed`, which is in order.
fn read_around(
    passed: &[Range<u64>],
    at: u64,
    out: &mut [u8],
    read: &mut Read<'_>,
) -> Result<(), Errno> {
    let whole = at..at.saturating_add(out.len() as u64);
    let first = passed.partition_point(|range| range.end <= at);
    if passed.get(first).is_none_or(|range| range.start >= whole.end) {
        return read(at, out);
    }
    out.fill(0);
    for part in outside(&[whole], &passed[first..]) {
        let index = |byte: u64| usize::try_from(byte - at).map_err(|_| Errno::Range);
        let part = (part.start, index(part.start)?..index(part.end)?);
        read(part.0, out.get_mut(part.1).ok_or(Errno::Range)?)?;
    }
    Ok(())
}

impl Move {
    /// Fills `out` with the bytes at `at` of the range, at the old place. Sectors of the list are
    /// tried, and what fails is added to `failed`; without that, they are read as all others.
    pub(super) fn read(
        &self,
        disk: &dyn Store,
        at: u64,
        out: &mut [u8],
        failed: Option<&mut Vec<Range<u64>>>,
    ) -> Result<(), Errno> {
        let mut read = |at: u64, out: &mut [u8]| disk.read_at(out, self.from + at);
        match failed {
            Some(failed) => self.bad.try_read(self.sector, at, out, &mut read, failed),
            None => read_around(&self.bad.failed, at, out, &mut read),
        }
    }

    /// Bytes of the list of `bad` that are copied, and so could be read. Gaps are not copied.
    pub fn readable(&self, bad: &BadSectors) -> u64 {
        let gaps: Vec<_> = self.gaps.list().iter().map(|gap| gap.range.clone()).collect();
        let tried = outside(&outside(&bad.listed, &bad.failed), &gaps);
        tried.iter().map(|range| range.end - range.start).sum()
    }
}

/// Room in a journal for the two slots.
pub(super) struct Area {
    /// First byte of the slots.
    at: u64,
    id: [u8; 16],
    /// Number of the last write.
    turn: AtomicU64,
}

impl Area {
    /// The room from byte `at` of `store` on, and what it has of the move `id`; `None` if the file
    /// ends before.
    pub(super) fn open(
        store: &dyn Store,
        at: u64,
        id: [u8; 16],
    ) -> Result<Option<(Area, BadSectors)>, Errno> {
        if at.checked_add(ROOM).is_none_or(|end| end > store.length()) {
            return Ok(None);
        }
        let mut newest = (0, BadSectors::default());
        for slot in 0..2 {
            let found = read_slot(store, at + slot * SLOT, id)?;
            newest = found.filter(|found| found.0 > newest.0).unwrap_or(newest);
        }
        let (turn, bad) = newest;
        Ok(Some((Area { at, id, turn: turn.into() }, bad)))
    }

    /// Writes the list and what failed, and flushes them.
    pub(super) fn keep(&self, store: &dyn Store, bad: &BadSectors) -> Result<(), Errno> {
        if bad.listed.len() + bad.failed.len() > MOST {
            return Err(Errno::NoSpace);
        }
        let turn = self.turn.load(Ordering::Relaxed) + 1;
        let count = |ranges: &[Range<u64>]| u32::try_from(ranges.len()).map_err(|_| Errno::NoSpace);
        let mut record = Record {
            magic: MAGIC,
            id: self.id,
            turn: turn.into(),
            listed: count(&bad.listed)?.into(),
            failed: count(&bad.failed)?.into(),
            crc: 0.into(),
        };
        let all = bad.listed.iter().chain(&bad.failed);
        let entry = |range: &Range<u64>| Span { start: range.start.into(), end: range.end.into() };
        let entries: Vec<Span> = all.map(entry).collect();
        record.crc = sum(&record, entries.as_bytes()).into();
        let bytes = [record.as_bytes(), entries.as_bytes()].concat();
        store.write_at(&bytes, self.at + turn % 2 * SLOT)?;
        store.flush()?;
        self.turn.store(turn, Ordering::Relaxed);
        Ok(())
    }
}

fn sum(record: &Record, entries: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&record.as_bytes()[..size_of::<Record>() - 4]);
    sum.update(entries);
    sum.finalize()
}

/// The number of the write in the slot at `at`, and its ranges; `None` if it is not whole, or of
/// another move.
fn read_slot(store: &dyn Store, at: u64, id: [u8; 16]) -> Result<Option<(u64, BadSectors)>, Errno> {
    let mut record = [0; size_of::<Record>()];
    store.read_at(&mut record, at)?;
    let Ok(record) = Record::read_from_bytes(&record) else { return Ok(None) };
    let count = |number: U32| usize::try_from(number.get()).unwrap_or(usize::MAX);
    let (listed, failed) = (count(record.listed), count(record.failed));
    let all = listed.saturating_add(failed);
    if record.magic != MAGIC || record.id != id || all > MOST {
        return Ok(None);
    }
    let mut bytes = vec![0; all * size_of::<Span>()];
    store.read_at(&mut bytes, at + size_of::<Record>() as u64)?;
    let Ok(entries) = <[Span]>::ref_from_bytes(&bytes) else { return Ok(None) };
    let ranges = |entries: &[Span]| {
        entries.iter().map(|entry| entry.start.get()..entry.end.get()).collect::<Vec<_>>()
    };
    let (listed, failed) = entries.split_at(listed);
    let bad = BadSectors { listed: ranges(listed), failed: ranges(failed) };
    // In order and apart, as they are written.
    let is_sound = bad.listed == joined(bad.listed.iter().cloned())
        && bad.failed == joined(bad.failed.iter().cloned());
    let is_whole = record.crc.get() == sum(&record, &bytes) && is_sound;
    Ok(is_whole.then_some((record.turn.get(), bad)))
}
