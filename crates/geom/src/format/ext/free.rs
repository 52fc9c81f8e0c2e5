//! Free space of ext2, ext3 and ext4.
//!
//! # On disk
//! Each group of blocks has a descriptor with the place of its block bitmap, a bit a block (with
//! `bigalloc` a cluster). Descriptors follow the superblock, or, with `meta_bg`, those of a block
//! full of groups are in the first of them. A group whose bitmap is uninitialised has nothing in it
//! but metadata: copies of the superblock and of descriptors, and bitmaps and inode tables of any
//! group, which `flex_bg` gathers in a few. Metadata is never called free here, whatever a bitmap
//! says.
//!
//! # Limits
//! Checksums of descriptors and bitmaps are held to, and the number of free clusters of each group.
//! At most 2^20 groups, which are 128 TiB in blocks of 4096 bytes.
//!
//! # Sources
//! Linux `Documentation/filesystems/ext4/{super,group_descr,bitmaps}.rst`, `fs/ext4/balloc.c`;
//! e2fsprogs `lib/ext2fs/{openfs,csum,closefs}.c` (places of descriptors, sums, which groups have
//! copies).

use super::{AT, INCOMPAT_64BIT, MAX_LOG_CLUSTER, RO_COMPAT_BIGALLOC};
use crate::base::ondisk::on_disk;
use crate::base::patch::Read;
use crate::format::free_space::{Found, Unsure, clear_bits, damaged};
use std::ops::Range;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U16, U32};

on_disk! {
    /// `struct ext4_super_block`, as far as free space depends on it.
    struct Super of 1024 bytes {
          0 => skip0: [u8; 4],
          4 => s_blocks_count_lo: U32,
          8 => skip1: [u8; 12],
         20 => s_first_data_block: U32,
         24 => s_log_block_size: U32,
         28 => s_log_cluster_size: U32,
         32 => s_blocks_per_group: U32,
         36 => s_clusters_per_group: U32,
         40 => s_inodes_per_group: U32,
         44 => skip2: [u8; 14],
         58 => s_state: U16,
         60 => skip3: [u8; 16],
         76 => s_rev_level: U32,
         80 => skip4: [u8; 8],
         88 => s_inode_size: U16,
         90 => skip5: [u8; 2],
         92 => s_feature_compat: U32,
         96 => s_feature_incompat: U32,
        100 => s_feature_ro_compat: U32,
        104 => s_uuid: [u8; 16],
        120 => skip6: [u8; 86],
        206 => s_reserved_gdt_blocks: U16,
        208 => skip7: [u8; 46],
        254 => s_desc_size: U16,
        256 => skip8: [u8; 4],
        260 => s_first_meta_bg: U32,
        264 => skip9: [u8; 72],
        336 => s_blocks_count_hi: U32,
        340 => skip10: [u8; 248],
        588 => s_backup_bgs: [U32; 2],
        596 => skip11: [u8; 28],
        624 => s_checksum_seed: U32,
        628 => skip12: [u8; 392],
       1020 => s_checksum: U32,
    }
}

on_disk! {
    /// `struct ext4_group_desc`; the second half is there with 64-bit numbers alone.
    struct Descriptor of 64 bytes {
         0 => bg_block_bitmap_lo: U32,
         4 => bg_inode_bitmap_lo: U32,
         8 => bg_inode_table_lo: U32,
        12 => bg_free_blocks_count_lo: U16,
        14 => skip0: [u8; 4],
        18 => bg_flags: U16,
        20 => skip1: [u8; 4],
        24 => bg_block_bitmap_csum_lo: U16,
        26 => skip2: [u8; 4],
        30 => bg_checksum: U16,
        32 => bg_block_bitmap_hi: U32,
        36 => bg_inode_bitmap_hi: U32,
        40 => bg_inode_table_hi: U32,
        44 => bg_free_blocks_count_hi: U16,
        46 => skip3: [u8; 10],
        56 => bg_block_bitmap_csum_hi: U16,
        58 => skip4: [u8; 6],
    }
}

const STATE_VALID: u16 = 1;
const STATE_ERROR: u16 = 2;
const COMPAT_SPARSE_SUPER2: u32 = 0x200;
const INCOMPAT_RECOVER: u32 = 0x4;
const INCOMPAT_META_BG: u32 = 0x10;
const INCOMPAT_CSUM_SEED: u32 = 0x2000;
/// Features with which bitmaps mean what they mean without: all but compression and snapshots.
const INCOMPAT_KNOWN: u32 = 0x3f7d6;
const RO_COMPAT_SPARSE_SUPER: u32 = 0x1;
const RO_COMPAT_GDT_CSUM: u32 = 0x10;
const RO_COMPAT_METADATA_CSUM: u32 = 0x400;
const RO_COMPAT_SNAPSHOT: u32 = 0x80;
/// Flag `EXT4_BG_BLOCK_UNINIT` in `bg_flags`.
const BLOCK_UNINIT: u16 = 2;
/// Most groups; their descriptors are read one block at a time, their metadata is kept.
const GROUPS: u64 = 1 << 20;

const CRC32C: crc::Crc<u32, crc::Table<16>> =
    crc::Crc::<u32, crc::Table<16>>::new(&crc::CRC_32_ISCSI);
/// The kernel's `crc16`, which begins with all bits set here.
const CRC16: crc::Crc<u16> = crc::Crc::<u16>::new(&crc::CRC_16_MODBUS);

/// The kernel's `crc32c`, without an inversion at either end.
fn crc32c(seed: u32, parts: &[&[u8]]) -> u32 {
    let mut digest = CRC32C.digest_with_initial(seed.reverse_bits());
    parts.iter().for_each(|part| digest.update(part));
    !digest.finalize()
}

/// Numbers of a file system, checked; places and lengths are in blocks.
struct Volume {
    uuid: [u8; 16],
    block: u64,
    /// Blocks of a cluster.
    ratio: u64,
    first: u64,
    blocks: u64,
    per_group: u64,
    groups: u64,
    descriptor: u64,
    /// Blocks of an inode table.
    table: u64,
    reserved: u64,
    first_meta: u64,
    compat: u32,
    incompat: u32,
    ro_compat: u32,
    backups: [u64; 2],
    seed: u32,
}

/// Descriptor of a group, with its numbers in one piece.
struct Group {
    bitmap: u64,
    free: u64,
    flags: u16,
    checksum: u32,
    /// First blocks of its bitmaps and its table.
    metadata: [u64; 3],
}

/// Finds what an ext2, ext3 or ext4 on a provider of `length` bytes does not use.
pub(super) fn free(length: u64, read: &mut Read<'_>, found: &mut Found<'_>) -> Result<(), Unsure> {
    let volume = Volume::read(length, read)?;
    let metadata = volume.metadata(read)?;
    let mut used = Used { ranges: &metadata, next: 0 };
    let mut bitmap = vec![0; to_index(volume.block)];
    volume.each_group(read, &mut |read, number, group| {
        let start = volume.first + number * volume.per_group;
        let end = (start + volume.per_group).min(volume.blocks);
        let mut around = |range: Range<u64>| {
            used.around(range, &mut |free| {
                found(free.start * volume.block..free.end * volume.block);
            });
        };
        if group.flags & BLOCK_UNINIT != 0 && volume.has_sums() {
            around(start..end);
            return Ok(());
        }
        let at = group.bitmap * volume.block;
        read(at, &mut bitmap).map_err(|errno| Unsure::Failed(at, errno))?;
        if volume.ro_compat & RO_COMPAT_METADATA_CSUM != 0 {
            let covered = to_index(volume.per_group / volume.ratio / 8).min(bitmap.len());
            let sum = crc32c(volume.seed, &[&bitmap[..covered]]);
            let mask = if volume.descriptor >= 64 { u32::MAX } else { 0xffff };
            if sum & mask != group.checksum & mask {
                return damaged(format!("the checksum of the block bitmap of group {number}"));
            }
        }
        let clusters = (end - start).div_ceil(volume.ratio);
        let mut visit = |run: Range<u64>| {
            let block = |cluster: u64| (start + cluster * volume.ratio).min(end);
            around(block(run.start)..block(run.end));
        };
        let free = clear_bits(&bitmap, clusters, &mut visit);
        if free != Some(group.free) {
            return damaged(format!("the number of free blocks of group {number}"));
        }
        Ok(())
    })
}

impl Volume {
    fn read(length: u64, read: &mut Read<'_>) -> Result<Volume, Unsure> {
        let mut bytes = [0; 1024];
        read(AT, &mut bytes).map_err(|errno| Unsure::Failed(AT, errno))?;
        let Ok((sb, _)) = Super::read_from_prefix(&bytes) else { return damaged("superblock") };
        let (compat, incompat, ro_compat) =
            (sb.s_feature_compat.get(), sb.s_feature_incompat.get(), sb.s_feature_ro_compat.get());
        let is_summed = ro_compat & RO_COMPAT_METADATA_CSUM != 0;
        if is_summed && crc32c(u32::MAX, &[&bytes[..1020]]) != sb.s_checksum.get() {
            return damaged("the checksum of its superblock");
        }
        if incompat & INCOMPAT_RECOVER != 0 {
            return Err(Unsure::Unclean("its journal has to be replayed"));
        }
        if sb.s_state.get() & STATE_VALID == 0 {
            return Err(Unsure::Unclean("its superblock says so"));
        }
        if sb.s_state.get() & STATE_ERROR != 0 {
            return damaged("its superblock says that errors were found");
        }
        let unknown = incompat & !INCOMPAT_KNOWN | ro_compat & RO_COMPAT_SNAPSHOT;
        if unknown != 0 {
            return Err(Unsure::Unknown(format!("features {unknown:#x}")));
        }
        let log = (sb.s_log_block_size.get(), sb.s_log_cluster_size.get());
        let is_clustered = ro_compat & RO_COMPAT_BIGALLOC != 0;
        let log_ratio = if is_clustered { log.1.checked_sub(log.0) } else { Some(0) };
        let (Some(log_ratio), 0..=6, 0..=MAX_LOG_CLUSTER) = (log_ratio, log.0, log.1) else {
            return damaged("the size of its blocks or clusters");
        };
        let (block, ratio) = (1024_u64 << log.0, 1_u64 << log_ratio);
        let high = if incompat & INCOMPAT_64BIT != 0 { sb.s_blocks_count_hi.get() } else { 0 };
        let blocks = u64::from(high) << 32 | u64::from(sb.s_blocks_count_lo.get());
        let (first, per_group) =
            (u64::from(sb.s_first_data_block.get()), u64::from(sb.s_blocks_per_group.get()));
        let per_bitmap = block * 8;
        let descriptor = match sb.s_desc_size.get() {
            _ if incompat & INCOMPAT_64BIT == 0 => 32,
            size if size.is_power_of_two() && (64..=1024).contains(&size) => u64::from(size),
            size => return damaged(format!("descriptors of {size} bytes")),
        };
        let inode = if sb.s_rev_level.get() == 0 { 128 } else { u64::from(sb.s_inode_size.get()) };
        let table = (u64::from(sb.s_inodes_per_group.get()) * inode).div_ceil(block);
        let is_sound = first <= 1
            && blocks > first
            && blocks.checked_mul(block).is_some_and(|bytes| bytes <= length)
            && per_group >= 8
            && per_group == u64::from(sb.s_clusters_per_group.get()).saturating_mul(ratio)
            && per_group / ratio <= per_bitmap
            && table <= per_group.max(1 << 20);
        if !is_sound {
            return damaged("the numbers of its superblock");
        }
        let groups = (blocks - first).div_ceil(per_group);
        if groups > GROUPS {
            return Err(Unsure::Unknown(format!("{groups} groups")));
        }
        let seed = match incompat & INCOMPAT_CSUM_SEED != 0 {
            true => sb.s_checksum_seed.get(),
            false => crc32c(u32::MAX, &[&sb.s_uuid]),
        };
        Ok(Volume {
            uuid: sb.s_uuid,
            block,
            ratio,
            first,
            blocks,
            per_group,
            groups,
            descriptor,
            table,
            reserved: u64::from(sb.s_reserved_gdt_blocks.get()),
            first_meta: u64::from(sb.s_first_meta_bg.get()),
            compat,
            incompat,
            ro_compat,
            backups: sb.s_backup_bgs.map(|group| u64::from(group.get())),
            seed,
        })
    }

    fn has_sums(&self) -> bool {
        self.ro_compat & (RO_COMPAT_GDT_CSUM | RO_COMPAT_METADATA_CSUM) != 0
    }

    /// Descriptors in a block.
    fn per_block(&self) -> u64 {
        self.block / self.descriptor
    }

    /// Number of blocks of descriptors.
    fn tables(&self) -> u64 {
        self.groups.div_ceil(self.per_block())
    }

    /// True if the descriptors of block `nth` are in the groups that they describe.
    fn is_meta(&self, nth: u64) -> bool {
        self.incompat & INCOMPAT_META_BG != 0 && nth >= self.first_meta
    }

    /// True if a copy of the superblock is in `group`.
    fn has_super(&self, group: u64) -> bool {
        let is_power = |base: u64| {
            let mut power = base;
            while power < group {
                power *= base;
            }
            power == group
        };
        if group == 0 {
            return true;
        }
        if self.compat & COMPAT_SPARSE_SUPER2 != 0 {
            return self.backups.contains(&group);
        }
        self.ro_compat & RO_COMPAT_SPARSE_SUPER == 0
            || group == 1
            || [3, 5, 7].into_iter().any(is_power)
    }

    fn start(&self, group: u64) -> u64 {
        self.first + group * self.per_group
    }

    /// Blocks of a group from its first on to the one behind its superblock: with blocks of 1 KiB
    /// and clusters, the boot block is the first.
    fn lead(&self, group: u64) -> u64 {
        u64::from(group == 0 && self.first == 0 && self.block == 1024)
            + u64::from(self.has_super(group))
    }

    /// The block with the descriptors of block `nth`.
    fn table_at(&self, nth: u64) -> u64 {
        if !self.is_meta(nth) {
            return self.first + self.lead(0) + nth;
        }
        let group = nth * self.per_block();
        self.start(group) + self.lead(group)
    }

    /// Calls `visit` with each group, in order.
    fn each_group(&self, read: &mut Read<'_>, visit: &mut Visit<'_>) -> Result<(), Unsure> {
        let mut table = vec![0; to_index(self.block)];
        for nth in 0..self.tables() {
            let at = self.table_at(nth).min(self.blocks - 1) * self.block;
            read(at, &mut table).map_err(|errno| Unsure::Failed(at, errno))?;
            let first = nth * self.per_block();
            let all = table.chunks_exact(to_index(self.descriptor));
            for (bytes, number) in all.zip(first..self.groups) {
                let group = self.group(bytes, number)?;
                visit(read, number, &group)?;
            }
        }
        Ok(())
    }

    fn group(&self, bytes: &[u8], number: u64) -> Result<Group, Unsure> {
        let mut whole = [0; 64];
        let known = bytes.len().min(whole.len());
        whole[..known].copy_from_slice(&bytes[..known]);
        let Ok((d, _)) = Descriptor::read_from_prefix(&whole) else { return damaged("descriptor") };
        let nth = u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
        let sum = if self.ro_compat & RO_COMPAT_METADATA_CSUM != 0 {
            let (front, back) = (&bytes[..30], &bytes[32..]);
            Some(crc32c(self.seed, &[&nth, front, &[0, 0], back]) & 0xffff)
        } else if self.ro_compat & RO_COMPAT_GDT_CSUM != 0 {
            let mut digest = CRC16.digest();
            [&self.uuid[..], &nth, &bytes[..30], &bytes[32..]]
                .iter()
                .for_each(|part| digest.update(part));
            Some(u32::from(digest.finalize()))
        } else {
            None
        };
        if sum.is_some_and(|sum| sum != u32::from(d.bg_checksum.get())) {
            return damaged(format!("the checksum of the descriptor of group {number}"));
        }
        let joined = |low: U32, high: U32| u64::from(high.get()) << 32 | u64::from(low.get());
        let metadata = [
            joined(d.bg_block_bitmap_lo, d.bg_block_bitmap_hi),
            joined(d.bg_inode_bitmap_lo, d.bg_inode_bitmap_hi),
            joined(d.bg_inode_table_lo, d.bg_inode_table_hi),
        ];
        let ends = [1, 1, self.table];
        let is_inside = |(at, length): (&u64, u64)| {
            *at >= self.first && at.checked_add(length).is_some_and(|end| end <= self.blocks)
        };
        if !metadata.iter().zip(ends).all(is_inside) {
            return damaged(format!("the places of the metadata of group {number}"));
        }
        let high = u64::from(d.bg_free_blocks_count_hi.get()) << 16;
        let sum_high = u32::from(d.bg_block_bitmap_csum_hi.get()) << 16;
        Ok(Group {
            bitmap: metadata[0],
            free: high | u64::from(d.bg_free_blocks_count_lo.get()),
            flags: d.bg_flags.get(),
            checksum: sum_high | u32::from(d.bg_block_bitmap_csum_lo.get()),
            metadata,
        })
    }

    /// The blocks of metadata, in order.
    fn metadata(&self, read: &mut Read<'_>) -> Result<Vec<Range<u64>>, Unsure> {
        let mut kinds = [Vec::new(), Vec::new(), Vec::new()];
        let lengths = [1, 1, self.table];
        self.each_group(read, &mut |_, _, group| {
            for ((kind, at), length) in kinds.iter_mut().zip(group.metadata).zip(lengths) {
                push(kind, at..at + length);
            }
            Ok(())
        })?;
        let mut all = kinds.concat();
        let plain = if self.incompat & INCOMPAT_META_BG != 0 {
            self.first_meta.min(self.tables())
        } else {
            self.tables()
        };
        for group in 0..self.groups {
            let start = self.start(group);
            if self.has_super(group) {
                push(&mut all, start..start + self.lead(group) + plain + self.reserved);
            }
            // With `meta_bg` the first two groups and the last of a block have a copy of it.
            let nth = group / self.per_block();
            let place = group % self.per_block();
            if self.is_meta(nth) && (place <= 1 || place + 1 == self.per_block()) {
                push(&mut all, start..start + self.lead(group) + 1);
            }
        }
        all.sort_by_key(|range| range.start);
        let mut joined = Vec::new();
        all.into_iter().for_each(|range| push(&mut joined, range));
        Ok(joined)
    }
}

/// A visitor of groups: the reader, number of the group, its descriptor.
type Visit<'a> = dyn FnMut(&mut Read<'_>, u64, &Group) -> Result<(), Unsure> + 'a;

/// Appends `range` to `list`, joined with the last one if they touch.
fn push(list: &mut Vec<Range<u64>>, range: Range<u64>) {
    match list.last_mut().filter(|last| last.start <= range.start && last.end >= range.start) {
        Some(last) => last.end = last.end.max(range.end),
        None => list.push(range),
    }
}

/// Blocks that are used whatever a bitmap says, walked once in ascending order.
struct Used<'a> {
    ranges: &'a [Range<u64>],
    next: usize,
}

impl Used<'_> {
    /// Calls `each` with the parts of `range` around what is used.
    fn around(&mut self, range: Range<u64>, each: &mut dyn FnMut(Range<u64>)) {
        while self.ranges.get(self.next).is_some_and(|used| used.end <= range.start) {
            self.next += 1;
        }
        let mut at = range.start;
        for used in self.ranges[self.next..].iter().take_while(|used| used.start < range.end) {
            if used.start > at {
                each(at..used.start);
            }
            at = at.max(used.end);
        }
        if at < range.end {
            each(at..range.end);
        }
    }
}

/// An index into bytes that are in memory, so it fits.
fn to_index(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
