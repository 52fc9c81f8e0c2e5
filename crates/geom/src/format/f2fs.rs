//! F2FS, a log-structured file system of Linux.
//!
//! # On disk
//! Two superblocks, in blocks 0 and 1, 1024 bytes in. Blocks are counted from byte 0; the main area
//! begins at `main_blkaddr`, a whole number of segments (2 MiB) after `segment0_blkaddr`, which
//! `mkfs.f2fs` puts on a zone or segment of the medium if it is told the partition's start.
//!
//! # Limits
//! The checksum is not computed; the second superblock is not read.
//!
//! # Sources
//! Linux `Documentation/filesystems/f2fs.rst`, "On-disk Layout"; `include/linux/f2fs_fs.h` (`struct
//! f2fs_super_block`).

use super::{Format, FormatKind, Inside, Sign};
use crate::base::ondisk::{self, on_disk};
use crate::probe::Probe;
use zerocopy::little_endian::{U16, U32, U64};

/// The format, for the registry.
pub struct F2fs;

/// The kind that blkid calls `f2fs`.
pub const KIND: FormatKind = FormatKind::new("f2fs", &F2fs);

impl Format for F2fs {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: FormatKind, _block: Option<u64>) -> Option<Inside> {
        Some(Inside::FURTHER_IN)
    }

    fn keeps_to_its_size(&self) -> bool {
        true
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }
}

on_disk! {
    /// `struct f2fs_super_block`, as far as it is read.
    struct Super of 1148 bytes {
          0 => magic: U32,
          4 => major_ver: U16,
          6 => minor_ver: U16,
          8 => log_sectorsize: U32,
         12 => log_sectors_per_block: U32,
         16 => log_blocksize: U32,
         20 => log_blocks_per_seg: U32,
         24 => segs_per_sec: U32,
         28 => secs_per_zone: U32,
         32 => checksum_offset: U32,
         36 => block_count: U64,
         44 => skip0: [u8; 24],
         68 => segment_count_main: U32,
         72 => segment0_blkaddr: U32,
         76 => skip1: [u8; 16],
         92 => main_blkaddr: U32,
         96 => skip2: [u8; 12],
        108 => uuid: [u8; 16],
        124 => volume_name: [u8; 1024],
    }
}

const AT: u64 = 1024;
const MAGIC: u32 = 0xf2f5_2010;

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let sb: Super = probe.read(AT)?;
    let (sector_shift, block_shift) = (sb.log_sectorsize.get(), sb.log_blocksize.get());
    let (segment_shift, sections) = (sb.log_blocks_per_seg.get(), u64::from(sb.segs_per_sec.get()));
    let valid = sb.magic.get() == MAGIC
        && (9..=block_shift).contains(&sector_shift)
        // A block is the page of the machine, 4 KiB to 64 KiB, and a segment 512 of them.
        && (12..=16).contains(&block_shift)
        && sb.log_sectors_per_block.get() == block_shift - sector_shift
        && segment_shift == 9;
    if !valid {
        return None;
    }
    let block = 1u64 << block_shift;
    let segment = block << segment_shift;
    let main = u64::from(sb.main_blkaddr.get()) * block;
    let mut sign = Sign::new(KIND, AT);
    sign.version = Some(format!("{}.{}", sb.major_ver.get(), sb.minor_ver.get()));
    sign.label = ondisk::text_utf16(&sb.volume_name);
    sign.uuid = ondisk::uuid(&sb.uuid);
    sign.size = sb.block_count.get().checked_mul(block);
    sign.sector = Some(1 << sector_shift);
    sign.block = Some(block);
    let length = u64::from(sb.segment_count_main.get()) * segment;
    sign.data_at(probe, Some(main), Some(length), false);
    sign.details.push(("segment", segment.to_string()));
    if sections > 1 {
        sign.details.push(("section", (segment * sections).to_string()));
    }
    sign.details.push(("segment 0", (u64::from(sb.segment0_blkaddr.get()) * block).to_string()));
    Some(sign)
}
