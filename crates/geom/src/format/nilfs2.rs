//! NILFS2, a log-structured file system of Linux.
//!
//! # On disk
//! Superblock at byte 1024. Blocks are counted from byte 0 and written segment after segment;
//! segment 0 begins in block `s_first_data_block`, the others at whole segments.
//!
//! # Limits
//! The second superblock, near the end, is not read.
//!
//! # Sources
//! Linux `include/uapi/linux/nilfs2_ondisk.h` (`struct nilfs_super_block`), `fs/nilfs2/the_nilfs.c`
//! (`nilfs_valid_sb`).

use super::{Format, FormatKind, Inside, Sign};
use crate::base::ondisk::{self, on_disk};
use crate::probe::Probe;
use zerocopy::little_endian::{U16, U32, U64};

/// The format, for the registry.
pub struct Nilfs2;

/// The kind that blkid calls `nilfs2`.
pub const KIND: FormatKind = FormatKind::new("nilfs2", &Nilfs2);

impl Format for Nilfs2 {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: FormatKind, block: Option<u64>) -> Option<Inside> {
        Some(Inside::from_zero(block))
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }
}

on_disk! {
    /// `struct nilfs_super_block`, as far as it is read.
    struct Super of 248 bytes {
          0 => s_rev_level: U32,
          4 => s_minor_rev_level: U16,
          6 => s_magic: U16,
          8 => s_bytes: U16,
         10 => s_flags: U16,
         12 => s_crc_seed: U32,
         16 => s_sum: U32,
         20 => s_log_block_size: U32,
         24 => s_nsegments: U64,
         32 => s_dev_size: U64,
         40 => s_first_data_block: U64,
         48 => s_blocks_per_segment: U32,
         52 => skip: [u8; 100],
        152 => s_uuid: [u8; 16],
        168 => s_volume_name: [u8; 80],
    }
}

const AT: u64 = 1024;
const MAGIC: u16 = 0x3434;
/// Range of `s_sum` in bytes.
const SUM: std::ops::Range<usize> = 16..20;

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let sb: Super = probe.read(AT)?;
    // 1 KiB to 64 KiB. The magic is two letters "44", so the checksum decides.
    if sb.s_magic.get() != MAGIC || sb.s_log_block_size.get() > 6 || !sum_is_right(probe, &sb) {
        return None;
    }
    let block = 1024u64 << sb.s_log_block_size.get();
    let mut sign = Sign::new(KIND, AT + 6);
    sign.version = Some(sb.s_rev_level.get().to_string());
    sign.label = ondisk::text(&sb.s_volume_name);
    sign.uuid = ondisk::uuid(&sb.s_uuid);
    sign.size = Some(sb.s_dev_size.get());
    sign.block = Some(block);
    sign.details.push(("segment", (u64::from(sb.s_blocks_per_segment.get()) * block).to_string()));
    Some(sign)
}

/// True if `s_sum` is the CRC of the superblock with itself taken as 0: the plain register, from
/// the seed, not inverted.
fn sum_is_right(probe: &Probe<'_>, sb: &Super) -> bool {
    let length = usize::from(sb.s_bytes.get());
    let Some(mut bytes) =
        probe.bytes(AT, length.min(1024)).filter(|_| (248..=1024).contains(&length))
    else {
        return false;
    };
    bytes[SUM].fill(0);
    let mut crc = crc32fast::Hasher::new_with_initial(!sb.s_crc_seed.get());
    crc.update(&bytes);
    !crc.finalize() == sb.s_sum.get()
}
