//! The Minix file system, versions 1 to 3, of either byte order.
//!
//! # On disk
//! Superblock at byte 1024. Blocks are counted from byte 0: 1024 bytes in versions 1 and 2, what
//! the superblock says in version 3. The magic stands at 16, in version 3 at 24, in the byte order
//! of the machine that made it.
//!
//! # Limits
//! Zones larger than a block are not recognised: no kernel mounts them.
//!
//! # Sources
//! Linux `include/uapi/linux/minix_fs.h` (`struct minix_super_block`, `struct minix3_super_block`),
//! `fs/minix/inode.c` (`minix_fill_super`); libblkid `superblocks/minix.c` for the checks beside a
//! magic of two bytes.

use super::{Format, FormatKind, Inside, Piece, Sign};
use crate::base::ondisk::on_disk;
use crate::probe::Probe;
use zerocopy::little_endian::{U16, U32};

/// The format, for the registry.
pub struct Minix;

/// The kind that blkid calls `minix`.
pub const KIND: FormatKind = FormatKind::new("minix", &Minix);

impl Format for Minix {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: FormatKind, block: Option<u64>) -> Option<Inside> {
        Some(Inside::from_zero(block))
    }

    fn keeps_to_its_size(&self) -> bool {
        true
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }

    fn enlarge(&self, _sign: &Sign, _piece: Piece, unit: u64) -> Option<String> {
        Some(format!(
            "mkfs.minix makes no larger blocks: copy its files to another one: mke2fs -b {unit}"
        ))
    }
}

on_disk! {
    /// `struct minix_super_block`, of versions 1 and 2.
    struct Super of 24 bytes {
         0 => s_ninodes: U16,
         2 => s_nzones: U16,
         4 => s_imap_blocks: U16,
         6 => s_zmap_blocks: U16,
         8 => s_firstdatazone: U16,
        10 => s_log_zone_size: U16,
        12 => s_max_size: U32,
        16 => s_magic: U16,
        18 => s_state: U16,
        20 => s_zones: U32,
    }
}

on_disk! {
    /// `struct minix3_super_block`, of version 3.
    struct Super3 of 32 bytes {
         0 => s_ninodes: U32,
         4 => s_pad0: U16,
         6 => s_imap_blocks: U16,
         8 => s_zmap_blocks: U16,
        10 => s_firstdatazone: U16,
        12 => s_log_zone_size: U16,
        14 => s_pad1: U16,
        16 => s_max_size: U32,
        20 => s_zones: U32,
        24 => s_magic: U16,
        26 => s_pad2: U16,
        28 => s_blocksize: U16,
        30 => s_disk_version: [u8; 2],
    }
}

const AT: u64 = 1024;
/// Block of versions 1 and 2, in bytes.
const BLOCK: u64 = 1024;
/// Names of 14 and of 30 bytes.
const VERSION_1: [u16; 2] = [0x137f, 0x138f];
const VERSION_2: [u16; 2] = [0x2468, 0x2478];
const VERSION_3: u16 = 0x4d5a;
/// `MINIX_VALID_FS` and `MINIX_ERROR_FS`, the bits that a state may have.
const STATES: u16 = 3;

/// Numbers of either superblock, checked before they are used.
struct Numbers {
    version: &'static str,
    /// Byte of the magic in the superblock.
    magic: u64,
    inodes: u64,
    /// Blocks of the map of inodes, and of the map of zones.
    maps: (u64, u64),
    first_data_zone: u64,
    zones: u64,
    block: u64,
    log_zone_size: u16,
}

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    // An ext2 has its magic here, and may have one of these in the numbers before it.
    if probe.has(AT + 56, b"\x53\xef") {
        return None;
    }
    let numbers = old(&probe.read(AT)?).or_else(|| new(&probe.read(AT)?))?;
    if !numbers.can_be_true() {
        return None;
    }
    let mut sign = Sign::new(KIND, AT + numbers.magic);
    sign.version = Some(numbers.version.into());
    sign.block = Some(numbers.block);
    sign.size = Some(numbers.zones * numbers.block);
    Some(sign)
}

fn old(sb: &Super) -> Option<Numbers> {
    let known = |magic| VERSION_1.contains(&magic) || VERSION_2.contains(&magic);
    let swapped = known(sb.s_magic.get().swap_bytes());
    let u16 = |it: U16| if swapped { it.get().swap_bytes() } else { it.get() };
    let magic = Some(u16(sb.s_magic)).filter(|&magic| known(magic))?;
    if u16(sb.s_state) & !STATES != 0 {
        return None;
    }
    let first = VERSION_1.contains(&magic);
    let zones = if swapped { sb.s_zones.get().swap_bytes() } else { sb.s_zones.get() };
    Some(Numbers {
        version: if first { "1" } else { "2" },
        magic: 16,
        inodes: u16(sb.s_ninodes).into(),
        maps: (u16(sb.s_imap_blocks).into(), u16(sb.s_zmap_blocks).into()),
        first_data_zone: u16(sb.s_firstdatazone).into(),
        zones: if first { u16(sb.s_nzones).into() } else { zones.into() },
        block: BLOCK,
        log_zone_size: u16(sb.s_log_zone_size),
    })
}

fn new(sb: &Super3) -> Option<Numbers> {
    let swapped = sb.s_magic.get().swap_bytes() == VERSION_3;
    let u16 = |it: U16| if swapped { it.get().swap_bytes() } else { it.get() };
    let u32 = |it: U32| if swapped { it.get().swap_bytes() } else { it.get() };
    if u16(sb.s_magic) != VERSION_3 {
        return None;
    }
    Some(Numbers {
        version: "3",
        magic: 24,
        inodes: u32(sb.s_ninodes).into(),
        maps: (u16(sb.s_imap_blocks).into(), u16(sb.s_zmap_blocks).into()),
        first_data_zone: u16(sb.s_firstdatazone).into(),
        zones: u32(sb.s_zones).into(),
        block: u16(sb.s_blocksize).into(),
        log_zone_size: u16(sb.s_log_zone_size),
    })
}

impl Numbers {
    /// True if the maps have a bit for every inode and every zone, bit 0 not being used.
    fn can_be_true(&self) -> bool {
        let bits = |blocks: u64| blocks * 8 * self.block;
        self.block.is_power_of_two()
            && (1024..=4096).contains(&self.block)
            && self.log_zone_size == 0
            && self.inodes > 0
            && self.maps.0 > 0
            && self.maps.1 > 0
            && self.first_data_zone > 0
            && self.zones > self.first_data_zone
            && bits(self.maps.0) > self.inodes
            && bits(self.maps.1) > self.zones - self.first_data_zone
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{disk, recognised};
    use super::*;

    /// A superblock of version 1 as mkfs.minix makes it for 8 MiB, with two of its numbers.
    fn superblock(inodes: u16, state: u16) -> Vec<u8> {
        let numbers = [inodes, 8192, 1, 1, 90, 0, 0x1c00, 0x1008, 0x138f, state];
        numbers.into_iter().flat_map(u16::to_le_bytes).collect()
    }

    /// A magic of two bytes stands in FATs and boot code too; the other numbers decide.
    #[test]
    fn numbers_that_cannot_be_are_no_minix() {
        let found = |inodes, state| {
            let bytes = superblock(inodes, state);
            recognised(&Minix, disk(8 << 20, &[(AT, &bytes)])).map(|sign| sign.kind)
        };
        assert_eq!(found(2752, 1), Some(KIND));
        assert_eq!(found(2752, 2), Some(KIND));
        assert_eq!(found(2752, 265), None);
        assert_eq!(found(0, 1), None);
    }
}
