//! Sectors that GRUB 2 notes on a disk that a BIOS starts: a move rewrites them.
//!
//! # On disk
//! `boot.img`, in the MBR or in the first sector of a partition, begins with a jump over 99 bytes
//! and keeps the sector of `core.img` in 64 bits at byte 92. The first sector of `core.img` ends
//! with a list of the rest, from byte 500 towards the front: first sector in 64 bits, number of
//! sectors in 16, segment in 16; one without sectors ends it. All count from the start of the disk,
//! in sectors of 512 bytes. What follows is found by partition numbers and file names, which a move
//! leaves as they are.
//!
//! # Sources
//! GRUB 2.12 `grub-core/boot/i386/pc/boot.S`, `diskboot.S`; `include/grub/i386/pc/boot.h`
//! (`GRUB_BOOT_MACHINE_KERNEL_SECTOR`, `GRUB_BOOT_MACHINE_LIST_SIZE`); `util/setup.c`.

use crate::base::error::Errno;
use crate::base::patch::{Patch, Read};
use std::ops::Range;

/// Bytes of the sectors that GRUB counts.
const SECTOR: u64 = 512;
/// First bytes of `boot.img`: the jump.
const JUMP: [u8; 2] = [0xeb, 0x63];
/// Text in it, and the bytes in which it stands.
const NAME: &[u8] = b"GRUB ";
const CODE: Range<usize> = 0x66..0x1b8;
/// Place of the sector of `core.img`.
const KERNEL: Range<usize> = 0x5c..0x64;
/// Place of the first entry of a list, and the bytes of each.
const LIST: usize = 500;
const ENTRY: usize = 12;
/// Least place of an entry: a list ends long before.
const LEAST: usize = 300;

/// Byte of the disk at which `boot`, a boot sector, finds `core.img`; `None` if it is not GRUB's.
fn core(boot: &[u8]) -> Option<u64> {
    let code = boot.get(CODE)?;
    let is_grub = boot.starts_with(&JUMP) && code.windows(NAME.len()).any(|text| text == NAME);
    let sector = boot.get(KERNEL)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))?;
    sector.checked_mul(SECTOR).filter(|_| is_grub)
}

/// The byte `at` of a disk where `old` is at `to` afterwards; `None` if it stays.
fn moved(at: u64, old: &Range<u64>, to: u64) -> Option<u64> {
    at.checked_sub(old.start).filter(|_| at < old.end)?.checked_add(to)
}

/// Changes `boot`, a boot sector, if it finds `core.img` in the bytes `old` of the disk, for their
/// new place at `to`. True if it did.
pub fn follow(boot: &mut [u8], old: &Range<u64>, to: u64) -> bool {
    let Some(at) = core(boot).and_then(|at| moved(at, old, to)) else { return false };
    if let Some(field) = boot.get_mut(KERNEL) {
        field.copy_from_slice(&(at / SECTOR).to_le_bytes());
    }
    true
}

/// The writes that adapt what GRUB has in the bytes `old` of the disk, which go to `to`: a boot
/// sector at their beginning, and the list of a `core.img` that it or `mbr`, the first sector of
/// the disk, leads to. `read` reads the range; patches are in its addresses.
pub fn rebase(
    mbr: &[u8],
    old: &Range<u64>,
    to: u64,
    read: &mut Read<'_>,
) -> Result<Vec<Patch>, Errno> {
    let mut patches = Vec::new();
    if old.end.saturating_sub(old.start) < SECTOR {
        return Ok(patches);
    }
    let mut first = vec![0; 512];
    read(0, &mut first)?;
    let own = core(&first);
    if follow(&mut first, old, to) {
        patches.push(Patch::new(KERNEL.start as u64, first[KERNEL].to_vec(), "GRUB's core"));
    }
    for at in [core(mbr), own].into_iter().flatten() {
        let inside = at.checked_sub(old.start).filter(|_| at.saturating_add(SECTOR) <= old.end);
        let Some(inside) = inside else { continue };
        let mut list = vec![0; 512];
        read(inside, &mut list)?;
        let entries = listed(&list, old, to).into_iter().map(|(place, start)| {
            Patch::new(inside + place as u64, start.to_le_bytes().to_vec(), "GRUB's list")
        });
        patches.extend(entries);
    }
    Ok(patches)
}

/// Entries of the list at the end of `sector`, the first one of `core.img`, that change: the byte
/// of each in the sector, and its new first sector.
fn listed(sector: &[u8], old: &Range<u64>, to: u64) -> Vec<(usize, u64)> {
    let mut changes = Vec::new();
    for at in (LEAST..=LIST).rev().step_by(ENTRY) {
        let Some((start, rest)) = sector.get(at..at + ENTRY).and_then(|e| e.split_first_chunk())
        else {
            break;
        };
        if rest[..2] == [0, 0] {
            break;
        }
        let first = u64::from_le_bytes(*start);
        if let Some(new) = first.checked_mul(SECTOR).and_then(|first| moved(first, old, to)) {
            changes.push((at, new / SECTOR));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(sector: u64) -> Vec<u8> {
        let mut boot = vec![0; 512];
        boot[..2].copy_from_slice(&JUMP);
        boot[KERNEL].copy_from_slice(&sector.to_le_bytes());
        boot[0x180..0x185].copy_from_slice(NAME);
        boot
    }

    #[test]
    fn what_lies_in_the_range_is_followed_and_nothing_else() {
        let old = 34 * 512..1035 * 512;
        for (sector, wanted) in [(34, 2048), (40, 2054), (1034, 3048), (1, 1), (1035, 1035)] {
            let mut mbr = boot(sector);
            assert_eq!(follow(&mut mbr, &old, 1 << 20), sector != wanted);
            assert_eq!(core(&mbr), Some(wanted * 512));
        }
        let mut other = boot(34);
        other[0x180] = b'L';
        assert!(!follow(&mut other, &old, 1 << 20));
    }

    #[test]
    fn a_list_is_followed_to_its_end() {
        let old = 34 * 512..1035 * 512;
        let mut image = vec![0; 1001 * 512];
        image[500..512].copy_from_slice(&[35, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0x20, 8]);
        image[488..500].copy_from_slice(&[50, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0x20, 9]);
        image[464..476].copy_from_slice(&[60, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0x20, 9]);
        let mut read = |at: u64, out: &mut [u8]| {
            let at = usize::try_from(at).unwrap();
            out.copy_from_slice(&image[at..at + out.len()]);
            Ok(())
        };
        let list = rebase(&boot(34), &old, 1 << 20, &mut read).unwrap();
        let found: Vec<_> = list.iter().map(|patch| (patch.offset, patch.bytes[0])).collect();
        assert_eq!(found, [(500, 1), (488, 16)]);
        assert_eq!(list[0].bytes[..2], 2049u16.to_le_bytes());
        assert!(rebase(&boot(1), &old, 1 << 20, &mut read).unwrap().is_empty());
    }
}
