//! Log of a VHDX: changes to metadata that a crash has left to be done.
//!
//! The log is a ring of entries. The run of entries that counts ends at the one with the highest
//! sequence number and begins at the one that this names as its tail. What the run would write is
//! laid over what is read.

use super::super::container::NotFollowed;
use super::layout::Header;
use super::{CRC32C, MIB};
use crate::base::ondisk::{Guid, on_disk};
use crate::base::topology::{is_whole, round_down};
use crate::mapping::tables::PAGE;
use crate::probe::Probe;
use std::collections::BTreeMap;
use zerocopy::little_endian::{U32, U64};

/// Largest log that is looked at, in bytes.
const MOST_LOG: u64 = 8 << 20;
/// Pages that a log may change: 16 MiB.
const MOST_PAGES: usize = 4096;
/// Bytes of entries that are summed, in lengths of the log: entries of a true log do not overlap.
const MOST_SUMMED: usize = 4;
/// Bytes of a sector of the log.
const SECTOR: usize = 4096;

on_disk! {
    /// 2.3.1.1 Log Entry Header.
    struct EntryHeader of 64 bytes {
         0 => signature: [u8; 4],
         4 => checksum: U32,
         8 => entry_length: U32,
        12 => tail: U32,
        16 => sequence_number: U64,
        24 => descriptor_count: U32,
        28 => reserved: U32,
        32 => log_guid: Guid,
        48 => flushed_file_offset: U64,
        56 => last_file_offset: U64,
    }
}

on_disk! {
    /// 2.3.1.2 Log Entry Zero Descriptor, 2.3.1.3 Log Entry Data Descriptor.
    struct Descriptor of 32 bytes {
         0 => signature: [u8; 4],
         4 => trailing_bytes: [u8; 4],
         /// Zero length, of a zero descriptor.
         8 => leading_bytes: [u8; 8],
        16 => file_offset: U64,
        24 => sequence_number: U64,
    }
}

/// Reasons for which a log is not read.
const TOO_LARGE: NotFollowed =
    NotFollowed("its log has to be replayed: it is larger than is looked at");
const UNREADABLE: NotFollowed =
    NotFollowed("its log has to be replayed: it lies past the end of the file");
const NO_RUN: NotFollowed =
    NotFollowed("its log has to be replayed: no run of entries in it is whole");
const OVERLAPPING: NotFollowed =
    NotFollowed("its log has to be replayed: its entries lie over each other");
const CUT: NotFollowed = NotFollowed("its log has to be replayed: the file was cut since");
const DAMAGED: NotFollowed = NotFollowed("its log has to be replayed: an entry in it is damaged");
const TOO_MANY: NotFollowed =
    NotFollowed("its log has to be replayed: it changes more than is looked at");

/// Pages that the log has and the file has not yet.
#[derive(Clone, Default)]
pub(super) struct Overlay {
    /// Contents by the first byte in the file; `None` for zeros.
    pages: BTreeMap<u64, Option<Box<[u8; SECTOR]>>>,
    entries: u64,
}

impl Overlay {
    /// The overlay of a file with this header; an empty one where nothing is to be replayed.
    ///
    /// Errors: the reason for which the log cannot be followed.
    pub(super) fn read(probe: &Probe<'_>, header: &Header) -> Result<Overlay, NotFollowed> {
        if header.log_guid.is_nil() {
            return Ok(Overlay::default());
        }
        let (at, length) = (header.log_offset.get(), u64::from(header.log_length.get()));
        if !is_whole(at, MIB) || !is_whole(length, MIB) || at == 0 || length == 0 {
            return Err(DAMAGED);
        }
        if length > MOST_LOG {
            return Err(TOO_LARGE);
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| TOO_LARGE)?];
        probe.map(at, &mut bytes).map_err(|_| UNREADABLE)?;
        let log = Log { bytes, guid: header.log_guid };
        let mut overlay = Overlay::default();
        for entry in log.run()? {
            overlay.replay(&log, &entry, probe.length())?;
        }
        Ok(overlay)
    }

    /// Number of entries that were to be replayed.
    pub(super) fn entries(&self) -> u64 {
        self.entries
    }

    /// The `N` bytes at `at`, if the log has them. They lie in one page.
    pub(super) fn bytes<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let page = self.pages.get(&round_down(at, PAGE))?;
        let from = usize::try_from(at - round_down(at, PAGE)).ok()?;
        match page {
            None => Some([0; N]),
            Some(page) => page.get(from..from + N)?.try_into().ok(),
        }
    }

    /// Lays the pages of the log over `bytes`, which were read at `at`.
    pub(super) fn lay_over(&self, at: u64, bytes: &mut [u8]) {
        let end = at.saturating_add(bytes.len() as u64);
        for (&start, page) in self.pages.range(round_down(at, PAGE)..end) {
            let (from, to) = (start.max(at), (start + PAGE).min(end));
            let within = |base: u64| {
                let index = |n: u64| usize::try_from(n - base).unwrap_or(usize::MAX);
                index(from)..index(to)
            };
            let Some(part) = bytes.get_mut(within(at)) else { continue };
            match page.as_ref().and_then(|page| page.get(within(start))) {
                Some(page) => part.copy_from_slice(page),
                None => part.fill(0),
            }
        }
    }

    /// True if the log changes something of the `length` bytes at `at`.
    pub(super) fn touches(&self, at: u64, length: u64) -> bool {
        self.pages.range(at..at.saturating_add(length)).next().is_some()
    }

    fn replay(&mut self, log: &Log, entry: &LogEntry, file: u64) -> Result<(), NotFollowed> {
        let bytes = log.circular(entry.at, entry.length);
        let header: EntryHeader = part(&bytes, 0).ok_or(DAMAGED)?;
        if header.flushed_file_offset.get() > file {
            return Err(CUT);
        }
        let count = usize::try_from(header.descriptor_count.get()).map_err(|_| DAMAGED)?;
        // Descriptors fill sectors of their own; the data sectors follow.
        let head = count.checked_mul(32).and_then(|n| n.checked_add(64)).ok_or(DAMAGED)?;
        let mut data = head.div_ceil(SECTOR);
        for nth in 0..count {
            let descriptor: Descriptor = part(&bytes, 64 + nth * 32).ok_or(DAMAGED)?;
            let at = descriptor.file_offset.get();
            let is_own = descriptor.sequence_number.get() == entry.sequence;
            // Headers and region tables are not for the log.
            if !is_own || at < MIB || !is_whole(at, PAGE) {
                return Err(DAMAGED);
            }
            match &descriptor.signature {
                b"desc" => {
                    let sector = bytes.get(data * SECTOR..(data + 1) * SECTOR).ok_or(DAMAGED)?;
                    let page = whole(sector, &descriptor, entry.sequence).ok_or(DAMAGED)?;
                    self.pages.insert(at, Some(page));
                    data += 1;
                }
                b"zero" => self.zero(at, u64::from_le_bytes(descriptor.leading_bytes))?,
                _ => return Err(DAMAGED),
            }
            if self.pages.len() > MOST_PAGES {
                return Err(TOO_MANY);
            }
        }
        self.entries += 1;
        Ok(())
    }

    fn zero(&mut self, at: u64, length: u64) -> Result<(), NotFollowed> {
        if !is_whole(length, PAGE) || at.checked_add(length).is_none() {
            return Err(DAMAGED);
        }
        if length / PAGE > MOST_PAGES as u64 {
            return Err(TOO_MANY);
        }
        self.pages.extend((0..length / PAGE).map(|nth| (at + nth * PAGE, None)));
        Ok(())
    }
}

/// The structure at byte `at` of an entry.
fn part<T: zerocopy::FromBytes>(bytes: &[u8], at: usize) -> Option<T> {
    T::read_from_prefix(bytes.get(at..)?).ok().map(|(found, _)| found)
}

/// The page of a data sector (2.3.1.4): its first 8 and last 4 bytes are in the descriptor.
fn whole(sector: &[u8], descriptor: &Descriptor, sequence: u64) -> Option<Box<[u8; SECTOR]>> {
    let (high, low) = (sector.get(4..8)?, sector.get(SECTOR - 4..)?);
    let number = sequence.to_le_bytes();
    let is_own = sector.starts_with(b"data") && high == &number[4..] && low == &number[..4];
    let mut page: Box<[u8; SECTOR]> = Box::new(sector.try_into().ok()?);
    page[..8].copy_from_slice(&descriptor.leading_bytes);
    page[SECTOR - 4..].copy_from_slice(&descriptor.trailing_bytes);
    is_own.then_some(page)
}

/// The ring, as it is in the file.
struct Log {
    bytes: Vec<u8>,
    guid: Guid,
}

/// An entry that is whole: its place in the ring, its length, that of its tail, its number.
#[derive(Clone, Copy)]
struct LogEntry {
    at: usize,
    length: usize,
    tail: usize,
    sequence: u64,
}

impl Log {
    /// The `length` bytes at `at`, around the end of the ring.
    fn circular(&self, at: usize, length: usize) -> Vec<u8> {
        let (before, from) = self.bytes.split_at(at.min(self.bytes.len()));
        from.iter().chain(before).take(length).copied().collect()
    }

    /// The entry at `at`, before its checksum is looked at.
    fn header(&self, at: usize) -> Option<LogEntry> {
        let header: EntryHeader = part(&self.bytes, at)?;
        let index = |number: U32| usize::try_from(number.get()).ok();
        let (length, tail) = (index(header.entry_length)?, index(header.tail)?);
        let is_entry = header.signature == *b"loge"
            && header.log_guid == self.guid
            && header.sequence_number.get() > 0
            && (SECTOR..=self.bytes.len()).contains(&length)
            && length.is_multiple_of(SECTOR)
            && tail < self.bytes.len()
            && tail.is_multiple_of(SECTOR);
        let sequence = header.sequence_number.get();
        is_entry.then_some(LogEntry { at, length, tail, sequence })
    }

    /// True if the checksum of an entry is that of its bytes.
    fn is_whole(&self, entry: &LogEntry) -> bool {
        let mut bytes = self.circular(entry.at, entry.length);
        let own: Option<U32> = part(&bytes, 4);
        bytes[4..8].fill(0);
        own.is_some_and(|own| own.get() == CRC32C.checksum(&bytes))
    }

    /// The entries to be replayed, in order.
    fn run(&self) -> Result<Vec<LogEntry>, NotFollowed> {
        let mut entries = BTreeMap::new();
        let mut summed = 0;
        for at in (0..self.bytes.len()).step_by(SECTOR) {
            let Some(entry) = self.header(at) else { continue };
            summed += entry.length;
            if summed > self.bytes.len() * MOST_SUMMED {
                return Err(OVERLAPPING);
            }
            if self.is_whole(&entry) {
                entries.insert(at, entry);
            }
        }
        let mut heads: Vec<&LogEntry> = entries.values().collect();
        heads.sort_by_key(|entry| std::cmp::Reverse(entry.sequence));
        heads.into_iter().find_map(|head| self.run_to(head, &entries)).ok_or(NO_RUN)
    }

    /// The run from the tail of `head` to it, if it has no gap.
    fn run_to(
        &self,
        head: &LogEntry,
        entries: &BTreeMap<usize, LogEntry>,
    ) -> Option<Vec<LogEntry>> {
        let mut run = vec![*entries.get(&head.tail)?];
        while let Some(last) = run.last().filter(|last| last.at != head.at) {
            let next = entries.get(&((last.at + last.length) % self.bytes.len()))?;
            if next.sequence != last.sequence.checked_add(1)? || next.sequence > head.sequence {
                return None;
            }
            run.push(*next);
        }
        Some(run)
    }
}
