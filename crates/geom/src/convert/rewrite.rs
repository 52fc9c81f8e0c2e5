//! Writes of a conversion on the disk itself, with a journal of old and new bytes.
//!
//! # On disk
//! A file: the magic with the version, a CRC-32 of the rest of the head, the length of the head;
//! the identity, the sectors and the lengths of the disk before and after, the words by which its
//! user knows the disk, and of each write its place, its length and a CRC-32 of the old and of the
//! new bytes. From a boundary of 4096 bytes on, the old and the new bytes of each write. All
//! numbers are little-endian. The head is written last, so a journal with a valid head is whole.
//!
//! # Order
//! The journal is flushed; a [`Mark`] goes over the first bytes of the disk, which hides all tables
//! on it from every reader; a flush; all writes behind those bytes; a flush; the first bytes. Each
//! step may be repeated, and each byte is in the journal, so going on and going back are the same
//! with old and new bytes.
//!
//! # Limits
//! [`LONGEST`] bytes of a head. Every number is checked before it is used: a journal may be
//! hostile.

use super::Conversion;
use crate::base::error::Errno;
use crate::base::resize::Write;
use crate::base::store::Store;
use crate::base::topology::{is_whole, round_up};
use crate::format::moving::mark::{Mark, Sealed};
use crate::relocate::draft::write_head;
use crate::relocate::{LONGEST, Rest, Unreadable};
use std::collections::BTreeMap;

pub(super) const MAGIC: &[u8; 7] = b"TLCONV\0";
/// Version that is written, and the only one that is gone on with.
const VERSION: u8 = 1;
/// Bytes before the part under the CRC: magic, version, CRC, length.
const BEFORE: usize = 20;
/// Boundary of what lies behind the head.
const BLOCK: u64 = 4096;
/// Bytes that are read and written at once.
const PIECE: usize = 1 << 20;
/// Bytes that a medium writes whole or not at all, and those that the mark takes.
const PART: usize = 512;
const ATOM: u64 = PART as u64;

/// Journal of a conversion in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// Random identity, which the mark has.
    pub id: [u8; 16],
    /// Logical sector in bytes before.
    pub from: u64,
    /// Logical sector in bytes after.
    pub to: u64,
    /// Length of the disk before, in bytes.
    pub before: u64,
    /// Length of the disk after, in bytes.
    pub after: u64,
    /// The words by which its user knows the disk.
    pub words: String,
    /// Places of the disk that change, in order and apart.
    spans: Vec<Span>,
}

/// Place of the disk that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    at: u64,
    length: u64,
    old: u32,
    new: u32,
}

/// End that a conversion in place goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toward {
    /// The disk for the new sectors.
    New,
    /// The disk as it was before.
    Old,
}

/// State of a disk by the places that change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Disk as it was before.
    Old,
    /// Disk as it is to be.
    New,
    /// Disk in between, which the mark hides.
    Between,
    /// Another disk, or one that was written to since.
    Other,
    /// Anything: the bytes in the journal are not those that it was made with.
    Damaged,
}

impl Rewrite {
    /// The journal of `conversion`, with room in it for `writes` but without its sums. Places are
    /// whole parts of 512 bytes.
    pub fn new(id: [u8; 16], conversion: &Conversion, words: &str) -> Rewrite {
        let Conversion { aim, before, after, writes, .. } = conversion;
        let span = |write: &Write| Span { at: write.at, length: write.length(), old: 0, new: 0 };
        let mut spans: Vec<Span> = writes.iter().map(span).collect();
        // The mark takes the place of the first bytes, whatever becomes of them.
        if spans.first().is_none_or(|first| first.at > 0) {
            let length = spans.first().map_or(ATOM, |first| first.at.min(ATOM));
            spans.insert(0, Span { at: 0, length, old: 0, new: 0 });
        }
        let (from, to) = (aim.from, aim.to);
        Rewrite { id, from, to, before: *before, after: *after, words: words.to_owned(), spans }
    }

    /// Bytes of the disk that change.
    pub fn bytes(&self) -> u64 {
        self.spans.iter().fold(0, |sum: u64, span| sum.saturating_add(span.length))
    }

    /// Bytes that the whole journal takes; `None` for one that is too long.
    pub fn size(&self) -> Option<u64> {
        self.room()?.checked_add(self.bytes().checked_mul(2)?)
    }

    /// First byte behind the head.
    fn room(&self) -> Option<u64> {
        let head = self.head().len() as u64;
        round_up(head, BLOCK).filter(|_| head <= LONGEST)
    }

    fn head(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend(self.id);
        let numbers = [self.from, self.to, self.before, self.after, self.words.len() as u64];
        numbers.iter().for_each(|number| body.extend(number.to_le_bytes()));
        body.extend(self.words.as_bytes());
        body.extend((self.spans.len() as u64).to_le_bytes());
        for Span { at, length, old, new } in &self.spans {
            [at, length].iter().for_each(|number| body.extend(number.to_le_bytes()));
            [old, new].iter().for_each(|number| body.extend(number.to_le_bytes()));
        }
        let length = (BEFORE + body.len()) as u64;
        let summed = [&length.to_le_bytes()[..], &body].concat();
        let sum = crc32fast::hash(&summed).to_le_bytes();
        [&MAGIC[..], &[VERSION], &sum, &summed].concat()
    }

    /// Places of the old and of the new bytes of each span in the journal.
    fn places(&self) -> Result<Vec<(Span, u64, u64)>, Errno> {
        let mut at = self.room().ok_or(Errno::Range)?;
        let mut places = Vec::new();
        for span in &self.spans {
            places.push((*span, at, at.saturating_add(span.length)));
            at = at.saturating_add(span.length.saturating_mul(2));
        }
        Ok(places)
    }

    /// Writes the journal of `writes` to `disk`, and flushes it. `told` gets the bytes that are
    /// done.
    pub fn record(
        &mut self,
        journal: &dyn Store,
        disk: &dyn Store,
        writes: &[Write],
        told: &mut dyn FnMut(u64),
    ) -> Result<(), Errno> {
        let mut read = |at: u64, out: &mut [u8]| read_within(disk, at, out);
        let by_place: BTreeMap<u64, &Write> =
            writes.iter().map(|write| (write.at, write)).collect();
        for (n, (span, old, new)) in self.places()?.into_iter().enumerate() {
            let write = by_place.get(&span.at);
            let (mut before, mut after) = (crc32fast::Hasher::new(), crc32fast::Hasher::new());
            let mut done = 0;
            while done < span.length {
                let mut bytes = piece(span.length - done);
                read(span.at + done, &mut bytes)?;
                before.update(&bytes);
                journal.write_at(&bytes, old + done)?;
                if let Some(write) = write {
                    write.fill(done, &mut bytes, &mut read)?;
                }
                after.update(&bytes);
                journal.write_at(&bytes, new + done)?;
                done += bytes.len() as u64;
                told(bytes.len() as u64);
            }
            (self.spans[n].old, self.spans[n].new) = (before.finalize(), after.finalize());
        }
        write_head(journal, &self.head())
    }

    /// Reads and checks the head of a journal.
    pub fn open(store: &dyn Store) -> Result<Rewrite, Unreadable> {
        let mut before = [0; BEFORE];
        if store.length() < BEFORE as u64 {
            return Err(Unreadable::Other);
        }
        store.read_at(&mut before, 0)?;
        if !before.starts_with(MAGIC) {
            return Err(Unreadable::Other);
        }
        if before[MAGIC.len()] != VERSION {
            return Err(Unreadable::Version(before[MAGIC.len()]));
        }
        let length = before[12..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if length > LONGEST.min(store.length()) || length < BEFORE as u64 {
            return Err(Unreadable::Damaged);
        }
        let mut head = vec![0; usize::try_from(length).unwrap_or_default()];
        store.read_at(&mut head, 0)?;
        if head[8..12] != crc32fast::hash(&head[12..]).to_le_bytes() {
            return Err(Unreadable::Damaged);
        }
        let rewrite = decode(&head[BEFORE..]).ok_or(Unreadable::Damaged)?;
        let size = rewrite.size().filter(|&size| size <= store.length());
        size.filter(|_| rewrite.is_sound()).map(|_| rewrite).ok_or(Unreadable::Damaged)
    }

    fn is_sound(&self) -> bool {
        let longest = self.before.max(self.after);
        let apart = self.spans.windows(2).all(|pair| {
            pair[0].at.checked_add(pair[0].length).is_some_and(|end| end <= pair[1].at)
        });
        let whole = |span: &Span| {
            span.length > 0
                && is_whole(span.at, ATOM)
                && is_whole(span.length, ATOM)
                && span.at.checked_add(span.length).is_some_and(|end| end <= longest)
        };
        apart
            && self.spans.first().is_some_and(|first| first.at == 0)
            && self.spans.iter().all(whole)
            && [self.from, self.to].iter().all(|size| [512, 4096].contains(size))
    }

    /// The state of `disk`. Reads all places that change.
    pub fn standing(&self, journal: &dyn Store, disk: &dyn Store) -> Result<Standing, Errno> {
        let (mut is_old, mut is_new, mut is_marked) = (true, true, false);
        let mut is_other = false;
        for (span, old, new) in self.places()? {
            let mut sums = [crc32fast::Hasher::new(), crc32fast::Hasher::new()];
            let mut done = 0;
            while done < span.length {
                let [mut there, mut before, mut after] =
                    [(); 3].map(|()| piece(span.length - done));
                read_within(disk, span.at + done, &mut there)?;
                journal.read_at(&mut before, old + done)?;
                journal.read_at(&mut after, new + done)?;
                sums[0].update(&before);
                sums[1].update(&after);
                let parts = there.chunks(PART).zip(before.chunks(PART).zip(after.chunks(PART)));
                for (n, (part, (before, after))) in parts.enumerate() {
                    if done == 0 && n == 0 && span.at == 0 {
                        is_marked = self.is_mark(part);
                    }
                    let is_first = done == 0 && n == 0 && span.at == 0;
                    let known = part == before || part == after || is_first && is_marked;
                    is_other |= !known;
                    is_old &= part == before;
                    is_new &= part == after;
                }
                done += there.len() as u64;
            }
            if sums.map(crc32fast::Hasher::finalize) != [span.old, span.new] {
                return Ok(Standing::Damaged);
            }
        }
        Ok(match (is_other, is_old, is_new) {
            (true, ..) => Standing::Other,
            (_, _, true) => Standing::New,
            (_, true, false) => Standing::Old,
            (_, false, false) => Standing::Between,
        })
    }

    fn is_mark(&self, bytes: &[u8]) -> bool {
        Mark::read(bytes).is_some_and(|mark| mark.id == self.id)
    }

    /// The mark over the first bytes of the disk.
    fn mark(&self) -> Vec<u8> {
        let sealed = Some(Sealed { step: 0, seal: 0 });
        Mark { id: self.id, from: 0, to: 0, length: self.before, sealed }.sector(ATOM)
    }

    /// Carries it out on `disk`, from any state in between. `told` gets the bytes that are done.
    pub fn run(
        &self,
        journal: &dyn Store,
        disk: &dyn Store,
        toward: Toward,
        told: &mut dyn FnMut(u64),
    ) -> Result<(), Errno> {
        disk.write_at(&self.mark(), 0)?;
        disk.flush()?;
        let mut first = Vec::new();
        for (span, old, new) in self.places()? {
            let from = if toward == Toward::New { new } else { old };
            let mut done = 0;
            while done < span.length {
                let mut bytes = piece(span.length - done);
                journal.read_at(&mut bytes, from + done)?;
                let at = span.at + done;
                done += bytes.len() as u64;
                told(bytes.len() as u64);
                let mut rest = bytes.as_slice();
                let mut place = at;
                if at == 0 {
                    let (head, tail) = rest.split_at(rest.len().min(PART));
                    first = head.to_vec();
                    (rest, place) = (tail, ATOM);
                }
                // A disk that is as short as it was has nothing past its end.
                let room = disk.length().saturating_sub(place);
                let fits = usize::try_from(room).unwrap_or(usize::MAX).min(rest.len());
                disk.write_at(&rest[..fits], place)?;
            }
        }
        disk.flush()?;
        disk.write_at(&first, 0)?;
        disk.flush()
    }
}

/// A buffer for the next of `left` bytes.
fn piece(left: u64) -> Vec<u8> {
    vec![0; usize::try_from(left).unwrap_or(usize::MAX).min(PIECE)]
}

/// Reads what is there; past the end of a disk that has yet to grow there are zeros.
fn read_within(disk: &dyn Store, at: u64, out: &mut [u8]) -> Result<(), Errno> {
    let there = usize::try_from(disk.length().saturating_sub(at)).unwrap_or(usize::MAX);
    let (read, rest) = out.split_at_mut(there.min(out.len()));
    rest.fill(0);
    if read.is_empty() { Ok(()) } else { disk.read_at(read, at) }
}

fn decode(body: &[u8]) -> Option<Rewrite> {
    let mut rest = Rest(body);
    let id = *rest.bytes(16)?.first_chunk()?;
    let [from, to, before, after] =
        [rest.number()?, rest.number()?, rest.number()?, rest.number()?];
    let words = String::from_utf8(rest.blob()?.to_vec()).ok()?;
    let count = usize::try_from(rest.number()?).ok()?;
    if count > body.len() {
        return None;
    }
    let mut spans = Vec::new();
    for _ in 0..count {
        let (at, length) = (rest.number()?, rest.number()?);
        let [old, new] = [rest.bytes(4)?, rest.bytes(4)?]
            .map(|bytes| bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)));
        spans.push(Span { at, length, old, new });
    }
    rest.0.is_empty().then_some(Rewrite { id, from, to, before, after, words, spans })
}
