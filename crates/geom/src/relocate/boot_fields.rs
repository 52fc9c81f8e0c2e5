//! What a file system says of where it begins, and says anew when it is moved.
//!
//! # On disk
//! FAT and NTFS keep the sectors before them on the medium (`BPB_HiddSec`, byte 28) for their boot code; FAT32 and NTFS have a copy of
//! that sector, exFAT (`PartitionOffset`, byte 64) one of its first twelve, with a sum over eleven of them. Others do not know where they
//! are.
//!
//! # Sources
//! Microsoft "FAT: General Overview of On-Disk Format" 1.03 ("Boot Sector and BPB"); Microsoft "exFAT file system specification" 3.1.2,
//! 3.4 (`BootChecksum`); ntfs-3g `layout.h` (`BIOS_PARAMETER_BLOCK`, and the copy in the last sector of the volume).

use crate::base::error::Errno;
use crate::base::patch::{Patch, Read};

/// What is to be written because a file system is elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rebased {
    /// The writes, in its own addresses.
    pub patches: Vec<Patch>,
    /// The byte of the medium at which it says that it begins, where that was not true and so was left alone.
    pub left: Option<u64>,
}

/// Where the number is.
struct Field {
    at: u64,
    bytes: usize,
}

const HIDDEN: Field = Field { at: 28, bytes: 4 };
const PARTITION_OFFSET: Field = Field { at: 64, bytes: 8 };
/// Sectors of exFAT's boot region that the sum in the twelfth is of.
const SUMMED: u64 = 11;

/// What the file system called `kind` (blkid's name), in `length` bytes that `read` reads, is told when it is moved from byte `from` of the
/// medium to byte `to`.
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
        // 0 is what tools write that do not know.
        return Ok(Rebased { left: Some(says.saturating_mul(sector)).filter(|&at| at != 0), ..Rebased::default() });
    }
    let copies = match kind {
        "exfat" => vec![0, 12],
        // `TotalSectors` leaves the copy out.
        "ntfs" => vec![0, u64::from_le_bytes(*boot[40..].first_chunk().unwrap_or(&[0; 8]))],
        // FAT32 alone has no size of a FAT at byte 22, and says where the copy is.
        _ if word(22) == 0 => vec![0, word(50)],
        _ => vec![0],
    };
    let mut rebased = Rebased::default();
    for copy in copies {
        let whole = if kind == "exfat" { sector * (SUMMED + 1) } else { sector };
        let Some(at) = copy.checked_mul(sector).filter(|at| at.checked_add(whole).is_some_and(|end| end <= length)) else { continue };
        let mut bytes = vec![0; usize::try_from(whole).unwrap_or_default()];
        read(at, &mut bytes)?;
        // A copy that is none says something else, or is of another file system.
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
    // Two copies in one place are one.
    rebased.patches.dedup_by_key(|patch| patch.offset);
    Ok(rebased)
}

fn number(bytes: &[u8], field: &Field) -> u64 {
    let at = usize::try_from(field.at).unwrap_or_default();
    bytes[at..at + field.bytes].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// exFAT's sum of its boot region: `VolumeFlags` and `PercentInUse`, which change in use, are left out.
fn checksum(bytes: &[u8]) -> u32 {
    let counted = bytes.iter().enumerate().filter(|(at, _)| !matches!(at, 106 | 107 | 112));
    counted.fold(0, |sum: u32, (_, &byte)| sum.rotate_right(1).wrapping_add(byte.into()))
}
