//! A disk in memory: unwritten bytes are zero and take no memory, and discarded or zeroed bytes
//! free theirs.
//!
//! Requests do not wait for each other. If two clients write the same bytes at the same moment,
//! each word is one's or the other's: no disk promises more for a whole request.

use crate::disk::shared::Shared;
use crate::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::{Content, Properties, Run, Store};
use trueline_geom::base::topology::{round_down, round_up};

/// A disk in memory.
#[derive(Debug)]
pub struct Memory {
    length: u64,
    bytes: Shared,
    written: Written,
    /// The page size of this machine in bytes, up to 64 KiB: only whole pages can be freed, as
    /// madvise(2) rounds a length up.
    page: u64,
}

/// The zeros that one call writes.
const ZEROS: [u8; 4096] = [0; 4096];

impl Memory {
    /// A disk of `length` zero bytes. It is an error if the address space has no such range.
    pub fn new(length: u64) -> Result<Memory, Error> {
        Memory::with_pages(length, rustix::param::page_size() as u64)
    }

    fn with_pages(length: u64, page: u64) -> Result<Memory, Error> {
        let failed = |e| Error::os("reserve", Path::new(&format!("{length} bytes of memory")), e);
        let bytes = Shared::new(round_up(length, page).ok_or(failed(rustix::io::Errno::NOMEM))?)
            .map_err(failed)?;
        Ok(Memory { length, bytes, written: Written::new(length), page })
    }

    /// The index of `length` bytes at `offset`. [`Errno::Range`] if they are not inside.
    fn place(&self, offset: u64, length: usize) -> Result<usize, Errno> {
        let end = u64::try_from(length).ok().and_then(|length| offset.checked_add(length));
        let inside = end.is_some_and(|end| end <= self.length);
        usize::try_from(offset).ok().filter(|_| inside).ok_or(Errno::Range)
    }

    /// Writes zeros from `offset` to `end`, both inside.
    fn write_zeros(&self, offset: u64, end: u64) -> Result<(), Errno> {
        let mut at = offset;
        while at < end {
            let count = (end - at).min(ZEROS.len() as u64);
            self.write_at(&ZEROS[..index(count)?], at)?;
            at += count;
        }
        Ok(())
    }

    /// Zeros the bytes from `offset` to `end`, both inside, and frees their memory.
    fn give_back(&self, offset: u64, end: u64) -> Result<(), Errno> {
        // The last page has no bytes beyond the end of the disk.
        let last = if end == self.length {
            round_up(end, self.page)
        } else {
            Some(round_down(end, self.page))
        }
        .ok_or(Errno::Range)?;
        let Some(first) = round_up(offset, self.page).filter(|&first| first < last) else {
            return self.write_zeros(offset, end);
        };
        // The map is cleared before the bytes, while a write does it the other way round: a
        // concurrent write is never taken for a hole.
        self.written.forget(offset, end, self.length);
        if self.bytes.give_back(index(first)?..index(last)?).is_err() {
            return self.write_zeros(offset, end);
        }
        // A piece that was never written is zero already.
        let edges = [(offset, first), (last, end)]
            .into_iter()
            .filter(|&(from, to)| from < to && self.written.has(from / PIECE));
        edges.into_iter().try_for_each(|(from, to)| self.write_zeros(from, to))
    }
}

fn index(n: u64) -> Result<usize, Errno> {
    usize::try_from(n).map_err(|_| Errno::Range)
}

impl Store for Memory {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        self.bytes.read(self.place(offset, buffer.len())?, buffer);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.bytes.write(self.place(offset, bytes.len())?, bytes);
        self.written.note(offset, bytes.len() as u64);
        Ok(())
    }

    fn flush(&self) -> Result<(), Errno> {
        Ok(())
    }

    fn discard(&self, offset: u64, length: u64) -> Result<(), Errno> {
        self.try_zero(offset, length, false)
    }

    fn try_zero(&self, offset: u64, length: u64, keep: bool) -> Result<(), Errno> {
        let end =
            offset.checked_add(length).filter(|&end| end <= self.length).ok_or(Errno::Range)?;
        if keep { self.write_zeros(offset, end) } else { self.give_back(offset, end) }
    }

    fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        let end =
            offset.checked_add(length).filter(|&end| end <= self.length).ok_or(Errno::Range)?;
        Ok(self.written.run(offset, end))
    }

    fn try_read(&self, buffer: &mut [u8], offset: u64) -> Result<bool, Errno> {
        self.read_at(buffer, offset).map(|()| true)
    }

    fn properties(&self) -> Properties {
        Properties { write_back: true, non_blocking: true, ..Properties::default() }
    }

    fn borrow(&self, offset: u64, length: u64) -> Result<Option<&[AtomicU8]>, Errno> {
        let length = index(length)?;
        Ok(Some(self.bytes.bytes(self.place(offset, length)?, length)))
    }
}

/// The written pieces of a disk, one bit each.
#[derive(Debug)]
struct Written(Box<[AtomicU64]>);

/// The size of a piece in bytes; an unwritten piece is reported as a hole.
const PIECE: u64 = 64 << 10;
/// The most pieces that one query looks at.
const LOOK: u64 = 1 << 16;

impl Written {
    fn new(length: u64) -> Written {
        let words = length.div_ceil(PIECE).div_ceil(64);
        Written((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    /// The word and the bit of a piece, which must exist.
    fn bit(&self, piece: u64) -> (&AtomicU64, u64) {
        let word = usize::try_from(piece / 64).ok().and_then(|word| self.0.get(word));
        (word.expect("a piece of the disk"), 1 << (piece % 64))
    }

    /// Marks the pieces of a write.
    fn note(&self, offset: u64, length: u64) {
        let pieces =
            if length == 0 { 0..0 } else { offset / PIECE..(offset + length).div_ceil(PIECE) };
        for piece in pieces {
            let (word, bit) = self.bit(piece);
            // Most writes hit marked pieces: a load leaves the word shared among caches.
            if word.load(Ordering::SeqCst) & bit == 0 {
                word.fetch_or(bit, Ordering::SeqCst);
            }
        }
    }

    /// Unmarks the whole pieces from `offset` to `end` on a disk of `length` bytes.
    fn forget(&self, offset: u64, end: u64, length: u64) {
        let end = if end == length { end.div_ceil(PIECE) } else { end / PIECE };
        for piece in offset.div_ceil(PIECE)..end {
            let (word, bit) = self.bit(piece);
            if word.load(Ordering::SeqCst) & bit != 0 {
                word.fetch_and(!bit, Ordering::SeqCst);
            }
        }
    }

    fn has(&self, piece: u64) -> bool {
        let (word, bit) = self.bit(piece);
        word.load(Ordering::SeqCst) & bit != 0
    }

    /// The content at `offset`, and its length up to `end`, which is greater.
    fn run(&self, offset: u64, end: u64) -> Run {
        let first = offset / PIECE;
        let last = end.div_ceil(PIECE).min(first + LOOK);
        let data = self.has(first);
        let next = (first + 1..last).find(|&piece| self.has(piece) != data).unwrap_or(last);
        let length = next.saturating_mul(PIECE).min(end) - offset;
        Run { content: if data { Content::Data } else { Content::Hole }, length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(memory: &Memory) -> Vec<u8> {
        let mut all = vec![9; usize::try_from(memory.length()).unwrap()];
        memory.read_at(&mut all, 0).unwrap();
        all
    }

    /// Runs from the beginning to the end: first byte, whether data.
    fn runs(memory: &Memory) -> Vec<(u64, bool)> {
        let (mut at, mut found) = (0, Vec::new());
        while at < memory.length() {
            let run = memory.extent(at, memory.length() - at).unwrap();
            found.push((at, run.content == Content::Data));
            at += run.length;
        }
        assert_eq!(at, memory.length());
        found
    }

    #[test]
    fn it_is_zero_and_holds_what_is_written() {
        let memory = Memory::new(10_000).unwrap();
        assert!(all(&memory).iter().all(|&byte| byte == 0));
        memory.write_at(&[1, 2, 3], 9_997).unwrap();
        let mut end = [0; 4];
        memory.read_at(&mut end, 9_996).unwrap();
        assert_eq!((memory.length(), end), (10_000, [0, 1, 2, 3]));
        // The mapping is whole pages, the disk is not.
        for offset in [9_998, 10_000, u64::MAX] {
            assert_eq!(memory.write_at(&[0; 3], offset), Err(Errno::Range));
            assert_eq!(memory.read_at(&mut end, offset), Err(Errno::Range));
            assert_eq!(memory.try_zero(offset, 3, false), Err(Errno::Range));
            assert_eq!(memory.discard(offset, 3), Err(Errno::Range));
            assert!(memory.extent(offset, 3).is_err() && memory.borrow(offset, 3).is_err());
        }
        assert_eq!(memory.read_at(&mut [], 10_000), Ok(()));
        assert!(Memory::new(u64::MAX).is_err());
    }

    /// A disk larger than the machine's memory: only written pages take room.
    #[test]
    fn a_large_one_costs_nothing() {
        let Ok(memory) = Memory::new(1 << 40) else {
            return println!("skipped: this kernel promises no more memory than it has");
        };
        memory.write_at(&[7], (1 << 40) - 1).unwrap();
        let mut end = [0; 2];
        memory.read_at(&mut end, (1 << 40) - 2).unwrap();
        assert_eq!(end, [0, 7]);
        assert_eq!(runs(&memory).last(), Some(&((1 << 40) - PIECE, true)));
        memory.zero(0, 1 << 40).unwrap();
        assert!(runs(&memory).iter().all(|&(_, data)| !data));
    }

    /// Every way to make a range zero, at pages of every size, pieces and between them, beside
    /// bytes that stay.
    #[test]
    fn a_range_is_zero_and_nothing_else() {
        let length = 3 * PIECE + 100;
        let marks = [
            0,
            1,
            4095,
            4096,
            4097,
            8192,
            PIECE - 1,
            PIECE,
            PIECE + 5000,
            2 * PIECE,
            3 * PIECE,
            length - 1,
            length,
        ];
        for (i, &from) in marks.iter().enumerate() {
            for &to in &marks[i..] {
                for (keep, page) in [(false, 4096), (true, 4096), (false, 16384), (false, 65536)] {
                    let memory = Memory::with_pages(length, page).unwrap();
                    memory.write_at(&vec![7; usize::try_from(length).unwrap()], 0).unwrap();
                    memory.try_zero(from, to - from, keep).unwrap();
                    let zero = |at: usize| (from..to).contains(&(at as u64));
                    assert!(
                        all(&memory)
                            .iter()
                            .enumerate()
                            .all(|(at, &byte)| byte == if zero(at) { 0 } else { 7 }),
                        "{from} to {to}"
                    );
                    for (at, data) in runs(&memory) {
                        assert!(
                            data || !keep && from <= at && at < to,
                            "{from} to {to}: a hole at {at}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn what_was_not_written_is_a_hole() {
        let memory = Memory::new(10 * PIECE + 1).unwrap();
        assert_eq!(runs(&memory), [(0, false)]);
        memory.write_at(&[1], 2 * PIECE - 1).unwrap();
        memory.write_at(&[1; 2], 5 * PIECE - 1).unwrap();
        memory.write_at(&[], 8 * PIECE).unwrap();
        assert_eq!(
            runs(&memory),
            [(0, false), (PIECE, true), (2 * PIECE, false), (4 * PIECE, true), (6 * PIECE, false)]
        );
        assert_eq!(memory.extent(PIECE + 5, 10), Ok(Run { content: Content::Data, length: 10 }));
        // A piece of which a part stays is data.
        memory.discard(PIECE + 1, 4 * PIECE).unwrap();
        assert_eq!(
            runs(&memory),
            [(0, false), (PIECE, true), (2 * PIECE, false), (5 * PIECE, true), (6 * PIECE, false)]
        );
        memory.zero(0, memory.length()).unwrap();
        assert_eq!(runs(&memory), [(0, false)]);
    }
}
