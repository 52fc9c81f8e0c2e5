//! Boot fields: start sectors that file systems record (FAT, NTFS, exFAT) and that a move rewrites.
//!
//! # On disk
//! FAT and NTFS keep the number of sectors before them on the medium (`BPB_HiddSec`, byte 28) for their boot code;
//! FAT32 and NTFS have a copy of that sector. exFAT (`PartitionOffset`, byte 64) has a copy of its first twelve, with a
//! checksum over eleven of them. Other formats do not record their start.
//!
//! # Sources
//! Microsoft "FAT: General Overview of On-Disk Format" 1.03 ("Boot Sector and BPB"); Microsoft "exFAT file system specification" 3.1.2,
//! 3.4 (`BootChecksum`); ntfs-3g `layout.h` (`BIOS_PARAMETER_BLOCK`, and the copy in the last sector of the volume).

use crate::base::error::Errno;
use crate::base::patch::{Patch, Read};

/// Writes that adapt a file system to a new start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rebased {
    /// Writes in addresses of the file system.
    pub patches: Vec<Patch>,
    /// Byte of the medium that the field names, where that was wrong and so was left alone; `None` otherwise.
    pub left: Option<u64>,
}

/// Place of the number in the boot sector: byte offset and width.
struct Field {
    at: u64,
    bytes: usize,
}

const HIDDEN: Field = Field { at: 28, bytes: 4 };
const PARTITION_OFFSET: Field = Field { at: 64, bytes: 8 };
/// Sectors of exFAT's boot region under the checksum in the twelfth.
const SUMMED: u64 = 11;

/// The writes that the file system called `kind` (blkid's name) needs when it moves from byte `from` of the medium to
/// byte `to`. `read` reads its `length` bytes, from the old place. Without a boot field there are none.
pub fn rebase(kind: &str, (from, to): (u64, u64), length: u64, read: &mut Read<'_>) -> Result<Rebased, Errno> {
    let mut boot = [0; 512];
    if length < 512 || !matches!(kind, "vfat" | "ntfs" | "exfat") {
        return Ok(Rebased::default());
    }
    read(0, &mut boot)?;
    let word = |at: usize| u64::from(u16::from_le_bytes([boot[at], boot[at + 1]]));
    let sector = if kind == "exfat" { 1_u64.checked_shl(boot[108].into()).unwrap_or(0) } else { word(11) };
    if !(512..=4096).contains(&sector) || !sector.is_power_of_two() {
        return Ok(Rebased::default());
    }
    let field = if kind == "exfat" { PARTITION_OFFSET } else { HIDDEN };
    let says = number(&boot, &field);
    let fits = field.bytes == 8 || u32::try_from(to / sector).is_ok();
    if says != from / sector || !fits {
        // A 0 is written by tools that do not know the start.
        return Ok(Rebased { left: Some(says.saturating_mul(sector)).filter(|&at| at != 0), ..Rebased::default() });
    }
    let copies = match kind {
        "exfat" => vec![0, 12],
        // `TotalSectors` does not count the copy.
        "ntfs" => vec![0, u64::from_le_bytes(*boot[40..].first_chunk().unwrap_or(&[0; 8]))],
        // FAT32 alone has no size of a FAT at byte 22, and records the sector of the copy.
        _ if word(22) == 0 => vec![0, word(50)],
        _ => vec![0],
    };
    let mut rebased = Rebased::default();
    for copy in copies {
        let whole = if kind == "exfat" { sector * (SUMMED + 1) } else { sector };
        let Some(at) = copy.checked_mul(sector).filter(|at| at.checked_add(whole).is_some_and(|end| end <= length)) else { continue };
        let mut bytes = vec![0; usize::try_from(whole).unwrap_or_default()];
        read(at, &mut bytes)?;
        // A sector that is no copy has other values, or belongs to another file system.
        if bytes[..11] != boot[..11] || number(&bytes, &field) != says {
            continue;
        }
        let now = (to / sector).to_le_bytes();
        let place = usize::try_from(field.at).unwrap_or_default();
        bytes[place..place + field.bytes].copy_from_slice(&now[..field.bytes]);
        if kind == "exfat" {
            let summed = usize::try_from(SUMMED * sector).unwrap_or_default();
            let sum = checksum(&bytes[..summed]).to_le_bytes();
            bytes[summed..].chunks_exact_mut(4).for_each(|word| word.copy_from_slice(&sum));
        }
        rebased.patches.push(Patch::new(at, bytes, "where it begins"));
    }
    // Two copies in the same place are one.
    rebased.patches.dedup_by_key(|patch| patch.offset);
    Ok(rebased)
}

fn number(bytes: &[u8], field: &Field) -> u64 {
    let at = usize::try_from(field.at).unwrap_or_default();
    bytes[at..at + field.bytes].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// exFAT's checksum of its boot region, without `VolumeFlags` and `PercentInUse`, which change in use.
fn checksum(bytes: &[u8]) -> u32 {
    let counted = bytes.iter().enumerate().filter(|(at, _)| !matches!(at, 106 | 107 | 112));
    counted.fold(0, |sum: u32, (_, &byte)| sum.rotate_right(1).wrapping_add(byte.into()))
}
