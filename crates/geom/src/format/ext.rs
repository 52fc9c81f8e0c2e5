//! ext2, ext3 and ext4 of Linux.
//!
//! # On disk
//! The superblock is at byte 1024, its magic `53 EF` at 1080. Block `n` is at `n` × block size from
//! byte 0 of the provider, so the file system is as aligned as its start. `s_first_data_block` is 1
//! for 1 KiB blocks: the boot block comes first. With `bigalloc` space is handed out in clusters;
//! what is written are blocks, as without. A journal on a device of its own (`jbd`) has the same
//! superblock there.
//!
//! # Topology
//! `s_raid_stride` and `s_raid_stripe_width` are the chunk and the full stripe it was made for, in
//! blocks.
//!
//! # Sources
//! Linux `Documentation/filesystems/ext4/super.rst`; e2fsprogs `lib/ext2fs/ext2_fs.h`.

use super::free_space::{Found, Unsure};
use super::maker::Maker;
use super::{Format, FormatKind, Inside, Piece, Sign};
use crate::base::ondisk::{self, on_disk};
use crate::base::patch::Read;
use crate::base::size::PAGE;
use crate::probe::Probe;
use zerocopy::little_endian::{U16, U32};

mod free;

/// The format, for the registry.
pub struct Ext;

/// The kind that blkid calls `ext2`.
pub const EXT2: FormatKind = FormatKind::new("ext2", &Ext);
/// The kind that blkid calls `ext3`.
pub const EXT3: FormatKind = FormatKind::new("ext3", &Ext);
/// The kind that blkid calls `ext4`.
pub const EXT4: FormatKind = FormatKind::new("ext4", &Ext);
/// The kind that blkid calls `jbd`.
pub const JBD: FormatKind = FormatKind::new("jbd", &Ext);

static MAKER: Maker = Maker {
    freebsd: Some("e2fsprogs"),
    file: &["-F"],
    // mke2fs takes only the last -E, and of it the last of a name.
    joined: Some('E'),
    // The stride is counted in blocks.
    gives_way: |option, words| {
        if option == "-E" { words.have_any("b") } else { words.have(option) }
    },
    ..Maker::new("mkfs.ext4", "e2fsprogs")
};

impl Format for Ext {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![EXT2, EXT3, EXT4, JBD]
    }

    fn by_name(&self, kind: FormatKind, block: Option<u64>) -> Option<Inside> {
        (kind != JBD).then(|| Inside::from_zero(block))
    }

    fn keeps_to_its_size(&self) -> bool {
        true
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }

    fn maker(&self) -> Option<&'static Maker> {
        Some(&MAKER)
    }

    fn is_made_here(&self, kind: FormatKind, _length: u64) -> bool {
        kind == EXT4
    }

    fn enlarge(&self, sign: &Sign, piece: Piece, unit: u64) -> Option<String> {
        let is_clustered =
            || piece.size >= PAGE && sign.cluster.is_some_and(|cluster| cluster >= unit);
        if sign.kind == JBD {
            return None;
        }
        // Few systems mount ext4 blocks larger than a page.
        Some(match unit > PAGE {
            true if sign.kind == EXT4 && is_clustered() => {
                format!(
                    "its clusters are large enough; what writes to it should write in whole multiples of {unit} bytes"
                )
            }
            true => format!("make it with clusters: mke2fs -t ext4 -b 4096 -O bigalloc -C {unit}"),
            false => format!("make it with larger blocks: mke2fs -b {unit}"),
        })
    }

    fn fit_set(&self, sign: &Sign, chunk: u64, stripe: u64) -> Option<String> {
        let block = sign.block.unwrap_or(PAGE).max(1);
        (sign.kind != JBD)
            .then(|| format!("tune2fs -E stride={},stripe_width={}", chunk / block, stripe / block))
    }

    fn shorten(&self, kind: FormatKind, file: &str, length: u64) -> Option<String> {
        (kind != JBD).then(|| format!("e2fsck -fp {file}; resize2fs {file} {}K", length >> 10))
    }

    fn checker(&self) -> Option<&'static str> {
        Some("e2fsck -f")
    }

    fn free(
        &self,
        kind: FormatKind,
        length: u64,
        read: &mut Read<'_>,
        found: &mut Found<'_>,
    ) -> Option<Result<(), Unsure>> {
        (kind != JBD).then(|| free::free(length, read, found))
    }
}

on_disk! {
    /// `struct ext4_super_block`, as far as it is read.
    struct Super of 372 bytes {
          0 => s_inodes_count: U32,
          4 => s_blocks_count_lo: U32,
          8 => skip0: [u8; 12],
         20 => s_first_data_block: U32,
         24 => s_log_block_size: U32,
         28 => s_log_cluster_size: U32,
         32 => skip1: [u8; 24],
         56 => s_magic: U16,
         58 => skip2: [u8; 4],
         62 => s_minor_rev_level: U16,
         64 => skip6: [u8; 12],
         76 => s_rev_level: U32,
         80 => skip3: [u8; 12],
         92 => s_feature_compat: U32,
         96 => s_feature_incompat: U32,
        100 => s_feature_ro_compat: U32,
        104 => s_uuid: [u8; 16],
        120 => s_volume_name: [u8; 16],
        136 => skip4: [u8; 72],
        208 => s_journal_uuid: [u8; 16],
        224 => s_journal_inum: U32,
        228 => skip8: [u8; 108],
        336 => s_blocks_count_hi: U32,
        340 => skip5: [u8; 16],
        356 => s_raid_stride: U16,
        358 => skip7: [u8; 10],
        368 => s_raid_stripe_width: U32,
    }
}

const AT: u64 = 1024;
const MAGIC_AT: u64 = AT + 56;
const COMPAT_HAS_JOURNAL: u32 = 0x4;
const INCOMPAT_JOURNAL_DEV: u32 = 0x8;
const INCOMPAT_64BIT: u32 = 0x80;
/// Features of ext3 at most: anything beyond makes it ext4.
const INCOMPAT_EXT3: u32 = 0x2 | 0x4 | 0x10;
const RO_COMPAT_EXT3: u32 = 0x1 | 0x2 | 0x4;
const RO_COMPAT_BIGALLOC: u32 = 0x200;
/// e2fsprogs' limit, 512 MiB.
const MAX_LOG_CLUSTER: u32 = 19;

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let sb: Super = probe.read(AT)?;
    // 1 << 6 KiB is the largest block the format allows.
    if sb.s_magic.get() != 0xef53 || sb.s_log_block_size.get() > 6 {
        return None;
    }
    let (compat, incompat, ro_compat) =
        (sb.s_feature_compat.get(), sb.s_feature_incompat.get(), sb.s_feature_ro_compat.get());
    let kind = if incompat & INCOMPAT_JOURNAL_DEV != 0 {
        JBD
    } else if incompat & !INCOMPAT_EXT3 != 0 || ro_compat & !RO_COMPAT_EXT3 != 0 {
        EXT4
    } else if compat & COMPAT_HAS_JOURNAL != 0 {
        EXT3
    } else {
        EXT2
    };
    let block = 1024u64 << sb.s_log_block_size.get();
    let high = if incompat & INCOMPAT_64BIT != 0 {
        u64::from(sb.s_blocks_count_hi.get()) << 32
    } else {
        0
    };
    let blocks = high | u64::from(sb.s_blocks_count_lo.get());
    let bigalloc =
        ro_compat & RO_COMPAT_BIGALLOC != 0 && sb.s_log_cluster_size.get() <= MAX_LOG_CLUSTER;
    let cluster =
        bigalloc.then(|| 1024 << sb.s_log_cluster_size.get()).filter(|&cluster| cluster > block);
    let in_blocks = |n: u64| (n > 0).then(|| n * block);
    let mut sign = Sign::new(kind, MAGIC_AT);
    sign.version = Some(format!("{}.{}", sb.s_rev_level.get(), sb.s_minor_rev_level.get()));
    sign.label = ondisk::text(&sb.s_volume_name);
    sign.uuid = ondisk::uuid(&sb.s_uuid);
    sign.size = blocks.checked_mul(block);
    sign.block = Some(block);
    sign.cluster = cluster;
    sign.chunk = in_blocks(u64::from(sb.s_raid_stride.get()));
    sign.stripe = in_blocks(u64::from(sb.s_raid_stripe_width.get()));
    sign.details.push(("first data block", sb.s_first_data_block.get().to_string()));
    if compat & COMPAT_HAS_JOURNAL != 0 && sb.s_journal_inum.get() == 0 {
        sign.details.extend(ondisk::uuid(&sb.s_journal_uuid).map(|uuid| ("journal device", uuid)));
    }
    Some(sign)
}
