//! Disks as a fuzz input: any bytes are some disks, and every disk can be written as such bytes.
//!
//! ```text
//! 0      flags: bit 0 sectors of 4096 bytes, else 512; bit 1 make checksums right; bit 2 the unit
//! below is used 1      disks, 1 to 4 (less 1, modulo 4)
//! 2..18  read-modify-write unit: size and phase
//! then for every disk: length u64, segments u16, and for every segment: offset u64, length u32,
//! bytes
//! ```
//!
//! Numbers are little-endian. An input that ends early ends there.

use crate::invariants::Subject;
use crate::repair::repair;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::Grain;

const SECTOR_4096: u8 = 1;
const REPAIR: u8 = 2;
const UNIT: u8 = 4;

/// Bytes before a disk that say what is done with it.
pub const SCRIPT: usize = 192;

/// The numbers in `script`, each below the one asked for; 0 after its end.
pub fn numbers(script: &[u8]) -> impl FnMut(u64) -> u64 {
    let mut input = Input(script);
    move |below| {
        let width = u64::from((u64::BITS - below.saturating_sub(1).leading_zeros()).div_ceil(8));
        input.number(width) % below.max(1)
    }
}

/// The disks that `data` describes: one at least.
pub fn decode(data: &[u8]) -> Vec<Subject> {
    let mut input = Input(data);
    let (flags, count) = (input.number(1), input.number(1) % 4 + 1);
    let has = |flag: u8| flags & u64::from(flag) != 0;
    let sector = if has(SECTOR_4096) { 4096 } else { 512 };
    let (size, phase) = (input.number(8), input.number(8));
    let physical = Grain::new(size, phase).filter(|_| has(UNIT));
    let mut subjects = Vec::new();
    for _ in 0..count {
        let mut disk = Sparse::new(input.number(8));
        for _ in 0..input.number(2) {
            let (offset, length) = (input.number(8), input.number(4));
            disk.put(offset, input.take(length));
            if input.0.is_empty() {
                break;
            }
        }
        if has(REPAIR) {
            repair(&mut disk, sector);
        }
        subjects.push(Subject { disk, sector, physical });
    }
    subjects
}

/// The input that is `disks` in sectors of `sector` bytes; `None` if it would be too long to
/// mutate.
pub fn encode(disks: &[Sparse], sector: u64) -> Option<Vec<u8>> {
    let flags = if sector == 4096 { SECTOR_4096 } else { 0 };
    let mut data = vec![flags | REPAIR, u8::try_from(disks.len()).ok()? - 1];
    data.extend([0; 16]);
    for disk in disks {
        data.extend(disk.length().to_le_bytes());
        data.extend(u16::try_from(disk.runs().count()).ok()?.to_le_bytes());
        for (at, bytes) in disk.runs() {
            data.extend(at.to_le_bytes());
            data.extend(u32::try_from(bytes.len()).ok()?.to_le_bytes());
            data.extend(bytes);
        }
    }
    (data.len() <= 256 << 10).then_some(data)
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: u64) -> &'a [u8] {
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(self.0.len());
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    fn number(&mut self, width: u64) -> u64 {
        self.take(width).iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
    }
}
