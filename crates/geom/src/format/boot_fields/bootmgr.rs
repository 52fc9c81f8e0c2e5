//! Windows since Vista, whose boot configuration names partitions of an MBR disk by the disk's
//! signature and the byte at which each begins.
//!
//! # On disk
//! The active entry of the MBR leads to an NTFS or FAT whose boot sector starts `BOOTMGR`. The file
//! `\Boot\BCD`, a hive of the registry, has for each system the device with that byte. On a GPT it
//! has the partition's GUID, which stays.
//!
//! Before Vista, `boot.ini` has the number of the partition, which stays too; drive letters other
//! than that of the system are found by signature and byte, and may change once.
//!
//! # Sources
//! Microsoft "BCD Boot Options Reference" (`device`, `osdevice`), "BCDBoot Command-Line Options";
//! superuser.com/q/486019 (both devices, before and after a move by 1 MiB); ntfs-3g `layout.h`
//! (`NTFS_BOOT_SECTOR`).

use super::unmoved::{Loader, has, is_signed};
use crate::base::error::Errno;
use crate::base::patch::Read;

/// Place of the first entry of an MBR, the bytes of one, and their number.
const ENTRIES: usize = 446;
const ENTRY: usize = 16;
const COUNT: usize = 4;
/// State byte of the entry that a BIOS starts.
const ACTIVE: u8 = 0x80;
/// Type of the entry that protects a GPT.
const PROTECTIVE: u8 = 0xee;
/// Names at byte 3 of an NTFS and of a BitLocker volume.
const VOLUMES: [&[u8]; 2] = [b"NTFS    ", b"-FVE-FS-"];

/// First byte of the active partition in `mbr`, the first sector of the disk, if it starts Windows;
/// `read` reads the disk. Errors: a failed read.
pub(super) fn start(
    mbr: &[u8],
    length: u64,
    sector: u64,
    read: &mut Read<'_>,
) -> Result<Option<u64>, Errno> {
    if !is_signed(mbr) {
        return Ok(None);
    }
    let entries = (0..COUNT).filter_map(|n| mbr.get(ENTRIES + n * ENTRY..)?.first_chunk::<ENTRY>());
    let entries: Vec<&[u8; ENTRY]> = entries.collect();
    if entries.iter().any(|entry| entry[4] == PROTECTIVE) {
        return Ok(None);
    }
    let Some(active) = entries.into_iter().find(|e| e[0] == ACTIVE && e[4] != 0) else {
        return Ok(None);
    };
    let first = u32::from_le_bytes([active[8], active[9], active[10], active[11]]);
    let start = u64::from(first)
        .checked_mul(sector)
        .filter(|&start| start > 0 && start.checked_add(512).is_some_and(|end| end <= length));
    let Some(start) = start else { return Ok(None) };
    let mut boot = [0; 512];
    read(start, &mut boot)?;
    Ok(Some(start).filter(|_| is_signed(&boot) && has(&boot, b"BOOTMGR")))
}

/// The loader, if the partition at `start` that begins with `first` is one that the boot
/// configuration of a Windows may name; `active`: as [`start`] found it.
pub(super) fn left(first: &[u8], start: u64, active: Option<u64>) -> Option<Loader> {
    let active = active?;
    let is_volume = VOLUMES.iter().any(|name| first.get(3..11) == Some(name));
    (is_volume || start == active).then_some(Loader {
        name: "Windows' boot configuration (BCD)",
        notes: "the byte at which the partitions of Windows begin",
        after: "start the installation medium after the move, open a command prompt there \
            (Shift+F10), and run bcdboot C:\\Windows, with the letter that Windows has there, \
            or bootrec /rebuildbcd",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> Vec<u8> {
        let mut disk = vec![0; 1 << 20];
        disk[510..512].copy_from_slice(&[0x55, 0xaa]);
        disk[446 + 16..][..16]
            .copy_from_slice(&[0x80, 0, 0, 0, 7, 0, 0, 0, 63, 0, 0, 0, 9, 0, 0, 0]);
        disk[63 * 512 + 3..][..8].copy_from_slice(b"NTFS    ");
        disk[63 * 512 + 0x188..][..18].copy_from_slice(b"BOOTMGR is missing");
        disk[63 * 512 + 510..][..2].copy_from_slice(&[0x55, 0xaa]);
        disk
    }

    fn found(disk: &[u8], length: u64) -> Option<u64> {
        let mut read = |at: u64, out: &mut [u8]| {
            let at = usize::try_from(at).unwrap();
            out.copy_from_slice(disk.get(at..at + out.len()).ok_or(Errno::Range)?);
            Ok(())
        };
        start(&disk[..512], length, 512, &mut read).unwrap()
    }

    #[test]
    fn the_active_partition_of_an_mbr_starts_windows() {
        let whole = disk();
        assert_eq!(found(&whole, 1 << 20), Some(63 * 512));
        for (at, byte) in [
            (446 + 16, 0),            // not active
            (446 + 16 + 4, 0xee),     // a GPT
            (446 + 16 + 11, 0xff),    // past the end
            (510, 0),                 // no MBR
            (63 * 512 + 511, 0),      // no boot sector
            (63 * 512 + 0x188, b'N'), // another loader
        ] {
            let mut other = whole.clone();
            other[at] = byte;
            assert_eq!(found(&other, 1 << 20), None, "{at}");
        }
        let mut first = whole.clone();
        first[446 + 16 + 8] = 0;
        assert_eq!(found(&first, 1 << 20), None);
        assert_eq!(found(&whole, 64 * 512 - 1), None);
    }

    #[test]
    fn volumes_of_windows_are_named_and_no_others() {
        let active = Some(63 * 512);
        let mut first = vec![0; 512];
        assert!(left(&first, 63 * 512, active).is_some());
        assert_eq!(left(&first, 1 << 20, active), None);
        first[3..11].copy_from_slice(b"NTFS    ");
        assert!(left(&first, 1 << 20, active).is_some());
        assert_eq!(left(&first, 1 << 20, None), None);
        assert_eq!(left(&[], 1 << 20, active), None);
    }
}
