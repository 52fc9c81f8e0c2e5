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
//! The disk is the one that was seen at installation: that of a virtual machine may be a partition.
//! Its GRUB counts from that partition, `grub-install --force` into a partition from the disk
//! around. Both begin the same sector, so what tells is where a `core.img` is: its list ends with
//! the segment 0x820.
//!
//! # Sources
//! GRUB 2.12 `grub-core/boot/i386/pc/boot.S`, `diskboot.S`; `include/grub/i386/pc/boot.h`
//! (`GRUB_BOOT_MACHINE_KERNEL_SECTOR`, `GRUB_BOOT_MACHINE_LIST_SIZE`); `util/setup.c`.

use super::unmoved::{Loader, is_signed};
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
/// Segment to which the rest of `core.img` is loaded (`GRUB_BOOT_MACHINE_KERNEL_SEG`).
const SEGMENT: [u8; 2] = [0x20, 0x08];
/// Entries of an MBR.
const ENTRIES: Range<usize> = 446..510;
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

/// Disk around what moves: the medium, or a partition that is a disk of its own.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    /// First byte on the medium.
    pub base: u64,
    /// First sector of it.
    pub boot: &'a [u8],
}

/// The writes that adapt what GRUB has in the bytes `old` of the medium, which go to `to`: a boot
/// sector at their beginning, and the list of a `core.img` that it leads to, or the first sector of
/// one of `disks`, the medium first. `read` reads the range; patches are in its addresses.
pub fn rebase(
    disks: &[Around<'_>],
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
    let mut lists: Vec<(u64, u64)> = Vec::new();
    for &Around { base, boot } in disks {
        lists.extend(core(boot).and_then(|at| inside(at, base, old)).map(|at| (at, base)));
    }
    let bases: Vec<u64> = disks.iter().map(|disk| disk.base).collect();
    if let Origin::Disk(base) = origin(&first, &bases, old, read)? {
        if follow(&mut first, &within(old, base), to.saturating_sub(base)) {
            patches.push(Patch::new(KERNEL.start as u64, first[KERNEL].to_vec(), "GRUB's core"));
        }
        let own = core(&first).and_then(|at| inside(at, base, &(to..to + (old.end - old.start))));
        lists.extend(own.map(|at| (at, base)));
    }
    lists.sort_unstable();
    lists.dedup_by_key(|(at, _)| *at);
    for (at, base) in lists {
        let mut list = vec![0; 512];
        read(at, &mut list)?;
        let changed = listed(&list, &within(old, base), to.saturating_sub(base));
        patches.extend(changed.into_iter().map(|(place, start)| {
            Patch::new(at + place as u64, start.to_le_bytes().to_vec(), "GRUB's list")
        }));
    }
    Ok(patches)
}

/// Byte from which the numbers of a boot sector in a partition count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// First byte of a disk around it.
    Disk(u64),
    /// Another place, or none in the partition: the numbers stay as they are.
    Stays,
    /// Doubtful place: they stay too, and may be wrong afterwards.
    Unclear,
}

/// The origin of `first`, the first sector of the bytes `old` of the medium, if it is GRUB's: one
/// of `bases`, or its own first byte. `read` reads the range.
fn origin(
    first: &[u8],
    bases: &[u64],
    old: &Range<u64>,
    read: &mut Read<'_>,
) -> Result<Origin, Errno> {
    let Some(at) = core(first) else { return Ok(Origin::Stays) };
    let all = bases.iter().copied().chain([old.start]);
    let places: Vec<(u64, u64)> =
        all.filter_map(|base| inside(at, base, old).map(|place| (base, place))).collect();
    let (mut images, mut sector) = (Vec::new(), [0; 512]);
    for &(base, place) in &places {
        read(place, &mut sector)?;
        if is_image(&sector) {
            images.push(base);
        }
    }
    let of = |base: u64| if base == old.start { Origin::Stays } else { Origin::Disk(base) };
    let outer = places.iter().map(|(base, _)| *base).find(|base| *base != old.start);
    Ok(match (images.as_slice(), outer) {
        (&[base], _) => of(base),
        (_, None) => Origin::Stays,
        // A partition without a table is no disk.
        (_, Some(base)) if !has_table(first) => Origin::Disk(base),
        _ => Origin::Unclear,
    })
}

/// The loader, if `first` begins the bytes `old` of the medium, and could be of a disk in them as
/// well as of the medium; `read` reads the range. Errors: a failed read.
pub(super) fn left(
    first: &[u8],
    old: &Range<u64>,
    read: &mut Read<'_>,
) -> Result<Option<Loader>, Errno> {
    let is_unclear = origin(first, &[0], old, read)? == Origin::Unclear;
    Ok(is_unclear.then_some(Loader {
        name: "GRUB 2 in a partition that has a table itself",
        notes: "a sector that may count from the disk or from the partition",
        after: "if it starts the disk and not a virtual machine, run grub-install after the move, \
            before a restart",
    }))
}

/// The byte of `old` that is `at` bytes behind `base`, if there is room for a sector.
fn inside(at: u64, base: u64, old: &Range<u64>) -> Option<u64> {
    let at = base.checked_add(at)?;
    let end = at.checked_add(SECTOR)?;
    at.checked_sub(old.start).filter(|_| end <= old.end)
}

/// The bytes `old`, counted from `base`.
fn within(old: &Range<u64>, base: u64) -> Range<u64> {
    old.start.saturating_sub(base)..old.end.saturating_sub(base)
}

/// True if `sector` is the first of a `core.img` that has more than one.
fn is_image(sector: &[u8]) -> bool {
    sector.get(LIST + 8..).is_some_and(|rest| rest[..2] != [0, 0] && rest[2..] == SEGMENT)
}

/// True if `sector` has an entry of a partition table.
fn has_table(sector: &[u8]) -> bool {
    let is_used =
        |entry: &[u8]| matches!(entry[0], 0 | 0x80) && entry[4] != 0 && entry[12..] != [0; 4];
    is_signed(sector)
        && sector.get(ENTRIES).is_some_and(|entries| entries.chunks_exact(16).any(is_used))
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
        let on = |boot: &[u8], read: &mut Read<'_>| {
            rebase(&[Around { base: 0, boot }], &old, 1 << 20, read).unwrap()
        };
        let list = on(&boot(34), &mut read);
        let found: Vec<_> = list.iter().map(|patch| (patch.offset, patch.bytes[0])).collect();
        assert_eq!(found, [(500, 1), (488, 16)]);
        assert_eq!(list[0].bytes[..2], 2049u16.to_le_bytes());
        assert!(on(&boot(1), &mut read).is_empty());
    }

    /// A partition at sector 100 whose first sector has GRUB that notes sector `notes`, with a
    /// `core.img` at those sectors of the partition, and a table or none: what a move by 28 sectors
    /// rewrites, and if it is named before.
    fn within_partition(notes: u64, images: &[usize], is_disk: bool) -> (Vec<(u64, u64)>, bool) {
        let mut image = vec![0; 1000 * 512];
        image[..512].copy_from_slice(&boot(notes));
        for &at in images {
            let entry = (u8::try_from(notes).unwrap() + 1, &mut image[at * 512 + LIST..][..ENTRY]);
            entry.1.copy_from_slice(&[entry.0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0x20, 8]);
        }
        if is_disk {
            image[446 + 4] = 0x83;
            image[446 + 12] = 9;
            image[510..512].copy_from_slice(&[0x55, 0xaa]);
        }
        let mut read = |at: u64, out: &mut [u8]| {
            let at = usize::try_from(at).unwrap();
            out.copy_from_slice(&image[at..at + out.len()]);
            Ok(())
        };
        let (old, mbr) = (100 * 512..1100 * 512, vec![0; 512]);
        let disks = [Around { base: 0, boot: &mbr }];
        let patches = rebase(&disks, &old, 128 * 512, &mut read).unwrap();
        let number = |patch: &Patch| u64::from_le_bytes(*patch.bytes.first_chunk().unwrap());
        let found = patches.iter().map(|patch| (patch.offset, number(patch))).collect();
        (found, left(&image[..512], &old, &mut read).unwrap().is_some())
    }

    #[test]
    fn a_guest_counts_from_its_partition_and_a_partition_of_the_disk_from_that() {
        let core = KERNEL.start as u64;
        let moved = vec![(core, 178), (50 * 512 + 500, 179)];
        for is_disk in [false, true] {
            // The image is where the disk has sector 150, where the partition has it, at neither.
            assert_eq!(within_partition(150, &[50], is_disk), (moved.clone(), false));
            assert_eq!(within_partition(150, &[150], is_disk), (Vec::new(), false));
            assert_eq!(within_partition(1, &[1], is_disk), (Vec::new(), false));
            assert_eq!(within_partition(1, &[], is_disk), (Vec::new(), false));
        }
        assert_eq!(within_partition(150, &[], false), (vec![(core, 178)], false));
        assert_eq!(within_partition(150, &[], true), (Vec::new(), true));
        assert_eq!(within_partition(150, &[50, 150], true), (Vec::new(), true));
        assert_eq!(within_partition(150, &[50, 150], false), (moved, false));
    }

    #[test]
    fn in_a_disk_within_a_partition_numbers_count_from_that() {
        let mut image = vec![0; 100 * 512];
        image[..512].copy_from_slice(&boot(70));
        image[10 * 512 + 500..11 * 512].copy_from_slice(&[71, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0x20, 8]);
        let mut read = |at: u64, out: &mut [u8]| {
            let at = usize::try_from(at).unwrap();
            out.copy_from_slice(&image[at..at + out.len()]);
            Ok(())
        };
        // The disk begins at sector 40, and has the partition at 60: for the medium that is 100.
        let (medium, guest) = (vec![0; 512], boot(70));
        let base = 40 * 512;
        let disks = [Around { base: 0, boot: &medium }, Around { base, boot: &guest }];
        let patches = rebase(&disks, &(100 * 512..200 * 512), 104 * 512, &mut read).unwrap();
        let found: Vec<_> = patches.iter().map(|patch| (patch.offset, patch.bytes[0])).collect();
        assert_eq!(found, [(KERNEL.start as u64, 74), (10 * 512 + 500, 75)]);
    }
}
