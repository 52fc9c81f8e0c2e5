//! Free clusters of a FAT.
//!
//! # On disk
//! A cluster is free if its entry of the FAT is 0. Entries have 12, 16 or 32 bits, of which the
//! upper four of 32 mean nothing; the first two belong to no cluster. In FAT16 and FAT32 two bits
//! of the second say that the volume was unmounted and that no error was met. Linux notes the same
//! in the boot sector.
//!
//! # Limits
//! All copies of the FAT have to be the same, unless only one is in use (FAT32). That no file
//! claims a free cluster is not checked: that takes a walk through all directories.
//!
//! # Sources
//! Microsoft "FAT: General Overview of On-Disk Format" 1.03, "FAT Data Structure"; Linux
//! `fs/fat/inode.c` (`fat_set_state`), `include/uapi/linux/msdos_fs.h`.

use super::BootSector;
use super::layout::{Layout, Width};
use crate::base::patch::Read;
use crate::format::free_space::{Found, Unsure, damaged};
use zerocopy::FromBytes;

/// Bytes of a FAT that are read at once: whole entries of every kind.
const PIECE: u64 = 192 << 10;
/// Most copies of a FAT that are compared.
const COPIES: u64 = 4;

/// Numbers of a volume, checked; places and lengths are in bytes.
struct Volume {
    /// Bits of an entry.
    bits: u64,
    clusters: u64,
    cluster: u64,
    data: u64,
    /// Bytes of the entries of a FAT.
    table: u64,
    /// The FAT that counts, and its copies.
    fats: Vec<u64>,
    /// First cluster of the root directory of a FAT32.
    root: Option<u64>,
}

/// Finds the free clusters of a FAT on a provider of `length` bytes.
pub(super) fn free(length: u64, read: &mut Read<'_>, found: &mut Found<'_>) -> Result<(), Unsure> {
    let volume = Volume::read(length, read)?;
    let Volume { bits, clusters, cluster, data, .. } = volume;
    let bytes = volume.table;
    let (mut piece, mut copy) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < bytes {
        let count = to_index((bytes - at).min(PIECE));
        piece.resize(count, 0);
        copy.resize(count, 0);
        for (nth, fat) in volume.fats.iter().enumerate() {
            let into = if nth == 0 { &mut piece } else { &mut copy };
            read(fat + at, into).map_err(|errno| Unsure::Failed(fat + at, errno))?;
            if nth > 0 && piece != copy {
                return damaged("the copies of its FAT differ");
            }
        }
        let first = at * 8 / bits;
        for number in first..((at + count as u64) * 8 / bits).min(clusters + 2) {
            let Some(value) = entry(&piece, bits, number - first) else {
                return damaged("its FAT ends too early");
            };
            match number {
                0 | 1 => volume.reserved(number, value)?,
                _ if value == 0 && volume.root == Some(number) => {
                    return damaged("its FAT calls the root directory free");
                }
                _ if value == 0 => {
                    let from = data + (number - 2) * cluster;
                    found(from..from + cluster);
                }
                // The largest values are bad clusters and ends.
                _ if value == 1 || value >= clusters + 2 && value < volume.bad() => {
                    return damaged(format!("cluster {number} leads to {value}"));
                }
                _ => {}
            }
        }
        at += count as u64;
    }
    Ok(())
}

impl Volume {
    fn read(length: u64, read: &mut Read<'_>) -> Result<Volume, Unsure> {
        let mut bytes = [0; 512];
        read(0, &mut bytes).map_err(|errno| Unsure::Failed(0, errno))?;
        let Ok((boot, _)) = BootSector::read_from_prefix(&bytes) else {
            return damaged("boot sector");
        };
        let layout = Layout::whole(&boot).map_err(|flaw| Unsure::Damaged(flaw.to_string()))?;
        let Layout { clusters, cluster, reserved, copies: count, fat, width, .. } = layout;
        if clusters == 0 || count > COPIES || layout.total > length {
            return damaged("the numbers of its boot sector");
        }
        let wide = width == Width::ThirtyTwo;
        // `BS_Reserved1`, behind the drive number.
        if bytes[if wide { 65 } else { 37 }] & 1 != 0 {
            return Err(Unsure::Unclean("its boot sector says so"));
        }
        let place = |nth: u64| reserved + nth * fat;
        // `BPB_ExtFlags`: with bit 7 one FAT alone is in use.
        let flags = u16::from_le_bytes([bytes[40], bytes[41]]);
        let active = u64::from(flags & 0xf);
        if wide && flags & 0x80 != 0 && active >= count {
            return damaged("the number of the FAT in use");
        }
        // Linux goes by the first one whatever the flags say, so all have to be alike.
        let fats = (0..count).map(place).collect();
        let root = wide.then(|| u64::from(boot.root_clus.get() & 0x0fff_ffff));
        if root.is_some_and(|root| !(2..clusters + 2).contains(&root)) {
            return damaged("the first cluster of its root directory");
        }
        let (bits, data, table) = (width.bits(), layout.data(), layout.table());
        Ok(Volume { bits, clusters, cluster, data, table, fats, root })
    }

    /// The value of the entry of a bad cluster; larger ones end a file.
    fn bad(&self) -> u64 {
        (1 << self.bits.min(28)) - 9
    }

    /// Examines one of the two entries that belong to no cluster.
    fn reserved(&self, number: u64, value: u64) -> Result<(), Unsure> {
        if number == 0 {
            // Devices write another medium there than in the boot sector.
            return match value & 0xff {
                0xf0 | 0xf8..=0xff => Ok(()),
                _ => damaged("the first entry of its FAT is that of no medium"),
            };
        }
        let (clean, sound) = match self.bits {
            16 => (1 << 15, 1 << 14),
            32 => (1 << 27, 1 << 26),
            _ => return Ok(()),
        };
        if value & clean == 0 {
            return Err(Unsure::Unclean("its FAT says so"));
        }
        if value & sound == 0 {
            return damaged("its FAT says that errors were met");
        }
        Ok(())
    }
}

/// The entry `nth` of those in `fat`, without the bits that mean nothing.
fn entry(fat: &[u8], bits: u64, nth: u64) -> Option<u64> {
    let at = to_index(nth * bits / 8);
    let byte = |more: usize| fat.get(at + more).map(|&byte| u64::from(byte));
    let word = byte(0)? | byte(1)? << 8;
    Some(match bits {
        12 if nth.is_multiple_of(2) => word & 0xfff,
        12 => word >> 4,
        16 => word,
        _ => (word | byte(2)? << 16 | byte(3)? << 24) & 0x0fff_ffff,
    })
}

/// An index into bytes that are in memory, so it fits.
fn to_index(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
