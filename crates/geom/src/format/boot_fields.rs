//! Boot fields: start sectors that file systems record (FAT, NTFS, exFAT) and that a move rewrites.
//!
//! # On disk
//! FAT and NTFS keep the number of sectors before them on the medium (`BPB_HiddSec`, byte 28) for
//! their boot code; FAT32 and NTFS have a copy of that sector. exFAT (`PartitionOffset`, byte 64)
//! has a copy of its first twelve, with a checksum over eleven of them. Other formats do not record
//! their start.
//!
//! # Sources
//! Microsoft "FAT: General Overview of On-Disk Format" 1.03 ("Boot Sector and BPB"); Microsoft
//! "exFAT file system specification" 3.1.2, 3.4 (`BootChecksum`); ntfs-3g `layout.h`
//! (`BIOS_PARAMETER_BLOCK`, and the copy in the last sector of the volume).

use crate::base::error::Errno;
use crate::base::patch::{Patch, Read};
use std::ops::Range;

mod biosboot;
mod bootmgr;
pub mod extlinux;
pub mod grub;
mod grub_legacy;
mod lilo;
pub mod unmoved;

/// Writes that adapt a file system to a new start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rebased {
    /// Writes in addresses of the file system.
    pub patches: Vec<Patch>,
    /// Byte of the medium that the field names, where that was wrong and so was left alone; `None`
    /// otherwise.
    pub left: Option<u64>,
}

/// A file system that moves.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    /// Its first byte on the medium before the move.
    pub from: u64,
    /// Its first byte after it.
    pub to: u64,
    /// Bytes of the provider that it is on.
    pub length: u64,
}

/// The copies of a boot sector, and the field in each that says where the file system begins.
pub(super) struct Field {
    /// Bytes of the file system's sectors.
    pub(super) sector: u64,
    /// The field, as bytes of a copy.
    pub(super) place: Range<usize>,
    /// The sectors in which the copies begin.
    pub(super) copies: Vec<u64>,
    /// Sectors of a copy.
    pub(super) sectors: u64,
    /// Function that writes the checksum of a copy anew.
    pub(super) seal: fn(&mut [u8]),
}

/// The place of `BPB_HiddSec`, in 32 bits.
pub(super) const HIDDEN: Range<usize> = 28..32;

/// Bytes of a boot sector by which a copy of it is known: the jump and the name.
const HEAD: usize = 11;

/// The 16-bit number at byte `at` of a boot sector.
pub(super) fn word(boot: &[u8; 512], at: usize) -> u64 {
    u64::from(u16::from_le_bytes([boot[at], boot[at + 1]]))
}

/// The writes that make the start-sector fields true after a move; `field` finds them in the first
/// boot sector.
pub(super) fn rebase(
    moved: Moved,
    read: &mut Read<'_>,
    field: impl FnOnce(&[u8; 512]) -> Field,
) -> Result<Rebased, Errno> {
    let Moved { from, to, length } = moved;
    let mut boot = [0; 512];
    if length < 512 {
        return Ok(Rebased::default());
    }
    read(0, &mut boot)?;
    let Field { sector, place, copies, sectors, seal } = field(&boot);
    if !(512..=4096).contains(&sector) || !sector.is_power_of_two() {
        return Ok(Rebased::default());
    }
    let says = number(&boot[place.clone()]);
    let fits = place.len() == 8 || u32::try_from(to / sector).is_ok();
    if says != from / sector || !fits {
        // A 0 is written by tools that do not know the start.
        return Ok(Rebased {
            left: Some(says.saturating_mul(sector)).filter(|&at| at != 0),
            ..Rebased::default()
        });
    }
    let mut rebased = Rebased::default();
    for copy in copies {
        let whole = sector * sectors;
        let Some(at) = copy
            .checked_mul(sector)
            .filter(|at| at.checked_add(whole).is_some_and(|end| end <= length))
        else {
            continue;
        };
        let mut bytes = vec![0; usize::try_from(whole).unwrap_or_default()];
        read(at, &mut bytes)?;
        // A sector that only lies where a copy would says something else, or is of another file
        // system.
        if bytes[..HEAD] != boot[..HEAD] || number(&bytes[place.clone()]) != says {
            continue;
        }
        let now = (to / sector).to_le_bytes();
        bytes[place.clone()].copy_from_slice(&now[..place.len()]);
        seal(&mut bytes);
        rebased.patches.push(Patch::new(at, bytes, "where it begins"));
    }
    // Two copies in one place are one.
    rebased.patches.dedup_by_key(|patch| patch.offset);
    Ok(rebased)
}

/// A little-endian number of up to 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}
