//! A disk and a journal in memory, and changes to both with sums that are right again.

use crc::{CRC_32_ISCSI, CRC_32_ISO_HDLC, Crc};
use std::sync::atomic::{AtomicU64, Ordering};
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;
use trueline_geom::base::store::filter::{Action, Filter, Request};
use trueline_host::disk::memory::Memory;

/// Sums of heads and pieces, and of notes.
const SUM: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);
const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
/// Bytes of a head before what its sum is of.
const HEAD: usize = 20;
/// Distance of notes in bytes, and of heads in a file with several.
const APART: usize = 2048;
/// Bytes of a note before its sum.
const NOTE: usize = 32;

/// Bytes of a sector.
pub const SECTOR: u64 = 512;

/// The byte of the disk at `at` before anything moves.
pub fn numbers(at: u64) -> u8 {
    u8::try_from((at / SECTOR * 7 + at * 13 + at / 3) % 251).unwrap_or(0)
}

/// The bytes of the disk before anything moves: `length` from `at` on.
pub fn part(at: u64, length: u64) -> Vec<u8> {
    (at..at + length).map(numbers).collect()
}

/// Memory of `length` bytes, with those of `byte`.
pub fn memory(length: u64, byte: impl Fn(u64) -> u8) -> Memory {
    let memory = Memory::new(length).expect("memory");
    let bytes: Vec<u8> = (0..length).map(byte).collect();
    memory.write_at(&bytes, 0).expect("it is inside");
    memory
}

/// All bytes of `memory`.
pub fn bytes(memory: &Memory) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(memory.length()).unwrap_or(0)];
    memory.read_at(&mut bytes, 0).expect("it is inside");
    bytes
}

/// Changes bytes of `paper` or `disk`, four bytes of `changes` each: which, where, and the new
/// byte.
pub fn change(paper: &Memory, disk: &Memory, changes: &[u8]) {
    for change in changes.chunks_exact(4) {
        let store = if change[0] & 1 == 0 { paper } else { disk };
        let at = u64::from(u16::from_le_bytes([change[1], change[2]])) % store.length();
        store.write_at(&change[3..], at).expect("it is inside");
    }
}

/// Makes the sums of every head and of every note right.
pub fn repair(paper: &Memory) {
    let mut bytes = bytes(paper);
    for from in (0..bytes.len()).step_by(APART) {
        let (_, file) = bytes.split_at_mut(from);
        if file.starts_with(b"TLMN") {
            let sum = CRC.checksum(&file[..NOTE]);
            file[NOTE..NOTE + 4].copy_from_slice(&sum.to_le_bytes());
        }
        // A conversion has its sum before the length, which is under it.
        let (length, sum, body) = if file.starts_with(b"TLCONV\0") {
            (12, 8, 12)
        } else if file.starts_with(b"TLDISK\0") || file.starts_with(b"TLMOVE\0") {
            (8, 16, HEAD)
        } else {
            continue;
        };
        let end = file[length..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if let Some(summed) = usize::try_from(end).ok().and_then(|end| file.get(body..end)) {
            let right = SUM.checksum(summed);
            file[sum..sum + 4].copy_from_slice(&right.to_le_bytes());
        }
    }
    paper.write_at(&bytes, 0).expect("it is inside");
}

/// A disk on which every write from the n-th on fails.
pub struct Failing<'a> {
    disk: &'a Memory,
    left: AtomicU64,
}

impl Failing<'_> {
    /// The disk `disk`, on which so many writes are done.
    pub fn after(disk: &Memory, writes: u64) -> Failing<'_> {
        Failing { disk, left: AtomicU64::new(writes) }
    }
}

impl Filter for Failing<'_> {
    fn inner(&self) -> &dyn Store {
        self.disk
    }

    fn pass(
        &self,
        request: &Request,
        run: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let one_less = |left: u64| left.checked_sub(1);
        if matches!(request.action, Action::Write | Action::Zero)
            && self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err()
        {
            return Err(Errno::Io);
        }
        run()
    }
}
