//! Free space of Btrfs on one device.
//!
//! # On disk
//! Free is what no chunk has a stripe on, and in a chunk what no item of the extent tree covers.
//! The superblock has the roots of the chunk tree and of the root tree, and that has those of the
//! others. A block group, of which each chunk has one, says how many bytes of it are used: in the
//! extent tree, or in a tree of its own. The device tree has the stripes once more.
//!
//! # Limits
//! One device, profiles `single` and `DUP`. Never free: the first MiB, where boot loaders are, and
//! the 64 KiB of each superblock. The trees are those of the newest superblock: what older ones
//! used, which the superblock names as backups, is free. Chunks, stripes, block groups and their
//! sums have to agree, and all nodes that are met, with the roots of all trees, have to be used.
//! That each file's extents are in the extent tree is not checked.
//!
//! # Sources
//! btrfs documentation, "On-disk Format", "Trees"; Linux `include/uapi/linux/btrfs_tree.h`
//! (`struct btrfs_extent_item`, `btrfs_block_group_item`, `btrfs_dev_extent`, `btrfs_root_item`),
//! `fs/btrfs/block-group.c` (`exclude_super_stripes`).

use super::chunks::{CHUNK_ITEM, Chunk, Chunks, DATA, METADATA, SYSTEM};
use super::nodes::{Key, Nodes, push};
use super::superblock::{Device, PLACES, Root, Volume};
use crate::base::ondisk::on_disk;
use crate::base::patch::Read;
use crate::base::topology::{is_whole, round_down};
use crate::format::free_space::{Found, Unsure, damaged};
use std::ops::Range;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U32, U64};

on_disk! {
    /// `struct btrfs_root_item` in its first form, behind its inode.
    struct RootItem of 239 bytes {
          0 => inode: [u8; 160],
        160 => generation: U64,
        168 => skip0: [u8; 8],
        176 => bytenr: U64,
        184 => skip1: [u8; 32],
        216 => refs: U32,
        220 => skip2: [u8; 18],
        238 => level: u8,
    }
    /// `struct btrfs_dev_extent`, a stripe of a chunk.
    struct DevExtent of 48 bytes {
         0 => skip0: [u8; 16],
        16 => chunk_offset: U64,
        24 => length: U64,
        32 => skip1: [u8; 16],
    }
    /// `struct btrfs_dev_replace_item`, as far as it is read.
    struct Replace of 40 bytes {
         0 => skip: [u8; 32],
        32 => state: U64,
    }
    /// `struct btrfs_extent_item`, without its references.
    struct ExtentItem of 24 bytes {
         0 => refs: U64,
         8 => generation: U64,
        16 => flags: U64,
    }
    /// `struct btrfs_block_group_item`, of a chunk.
    struct GroupItem of 24 bytes {
         0 => used: U64,
         8 => chunk_objectid: U64,
        16 => flags: U64,
    }
}

/// Kinds of the keys that are read.
const ROOT_ITEM: u8 = 132;
const EXTENT_ITEM: u8 = 168;
const METADATA_ITEM: u8 = 169;
const GROUP_ITEM: u8 = 192;
const DEV_EXTENT: u8 = 204;
const DEV_ITEM: u8 = 216;
const DEV_REPLACE: u8 = 250;
/// Kinds of references to extents, which stand beside them: to a tree, to data, and the same of a
/// node that several trees share.
const REFERENCES: [u8; 4] = [176, 178, 182, 184];
/// Numbers of the trees that are read.
const EXTENT_TREE: u64 = 2;
const DEVICE_TREE: u64 = 4;
const GROUP_TREE: u64 = 11;
/// Flags of an extent: of data, or a node.
const EXTENT_DATA: u64 = 1;
const EXTENT_NODE: u64 = 2;
/// Bytes at the front of a device that chunks are not put on.
const RESERVED: u64 = 1 << 20;
/// Bytes around a superblock that are left alone in a chunk.
const AROUND: u64 = 64 << 10;
/// Largest number of free ranges that are kept, 16 bytes each.
const MOST: usize = 1 << 20;

/// Finds the free ranges of a Btrfs on a provider of `length` bytes.
pub(super) fn free(length: u64, read: &mut Read<'_>, found: &mut Found<'_>) -> Result<(), Unsure> {
    let volume = Volume::read(length, read)?;
    let mut nodes = Nodes::new(&volume, read);
    let chunks = chunks(&mut nodes)?;
    let stripes = chunks.stripes()?;
    let trees = Trees::read(&mut nodes, &chunks)?;
    trees.compare_device(&mut nodes, &chunks, &stripes)?;
    let mut space = Space::new(&volume, &chunks);
    nodes.walk(&chunks, trees.extents, &mut |key, bytes| space.item(key, bytes))?;
    if let Some(groups) = trees.groups {
        nodes.walk(&chunks, groups, &mut |key, bytes| space.group(key, bytes))?;
    }
    let free = space.finish()?;
    if let Some(at) = nodes.met.iter().find(|&&at| free.has(at)) {
        return damaged(format!("node {at} is in its free space"));
    }
    let mut outside = Outside { found, open: 0..0 };
    let mut at = 0;
    for (place, chunk) in stripes {
        outside.add(at..place);
        for range in free.of(chunk) {
            outside.add(place + (range.start - chunk.start)..place + (range.end - chunk.start));
        }
        at = place + chunk.length;
    }
    outside.add(at..round_down(volume.device.total_bytes.get(), volume.sector));
    outside.end();
    Ok(())
}

/// The chunks of the chunk tree; its device is that of the superblock.
fn chunks(nodes: &mut Nodes<'_, '_>) -> Result<Chunks, Unsure> {
    let volume = nodes.volume;
    let system = Chunks::of_array(volume)?;
    let (mut chunks, mut devices) = (Chunks::empty(), 0);
    nodes.walk(&system, volume.chunk_tree, &mut |key, bytes| match key.kind {
        CHUNK_ITEM => chunks.add(key, bytes, volume),
        DEV_ITEM => {
            let own = &volume.device;
            let is_own = |item: Device| {
                (item.devid, item.uuid, item.fsid) == (own.devid, own.uuid, own.fsid)
                    && item.total_bytes == own.total_bytes
                    && key.offset == own.devid.get()
            };
            devices += 1;
            match devices == 1 && Device::read_from_bytes(bytes).is_ok_and(is_own) {
                true => Ok(()),
                false => damaged("its chunk tree has another device than its superblock"),
            }
        }
        kind => damaged(format!("an item of kind {kind} in its chunk tree")),
    })?;
    if devices == 0 || !chunks.has_system(&system) {
        return damaged("its chunk tree is not that of its superblock");
    }
    Ok(chunks)
}

/// Roots of the trees that are read.
struct Trees {
    extents: Root,
    device: Root,
    groups: Option<Root>,
}

impl Trees {
    /// Reads the root tree, and notes the roots of all trees.
    fn read(nodes: &mut Nodes<'_, '_>, chunks: &Chunks) -> Result<Trees, Unsure> {
        let volume = nodes.volume;
        let (mut roots, mut noted) = ([None; 3], Vec::new());
        let wanted = [EXTENT_TREE, DEVICE_TREE, GROUP_TREE];
        nodes.walk(chunks, volume.root_tree, &mut |key, bytes| {
            if key.kind != ROOT_ITEM {
                return Ok(());
            }
            let Ok((item, _)) = RootItem::read_from_prefix(bytes) else {
                return damaged(format!("the root of its tree {}", key.object));
            };
            let root = Root {
                at: item.bytenr.get(),
                generation: item.generation.get(),
                level: item.level,
                owner: key.object,
            };
            if let Some(nth) = wanted.iter().position(|&tree| tree == key.object) {
                // A second one would have another offset.
                if roots[nth].replace(root).is_some() {
                    return damaged(format!("its tree {} has two roots", key.object));
                }
            } else if item.refs.get() > 0 {
                return push(&mut noted, root.at);
            }
            Ok(())
        })?;
        noted.into_iter().try_for_each(|at| nodes.note(at))?;
        let [extents, device, groups] = roots;
        match (extents, device) {
            (Some(extents), Some(device)) if groups.is_some() == volume.has_group_tree => {
                Ok(Trees { extents, device, groups })
            }
            _ => damaged("its root tree lacks a tree, or has one too many"),
        }
    }

    /// Compares the device tree with the stripes of the chunks.
    fn compare_device(
        &self,
        nodes: &mut Nodes<'_, '_>,
        chunks: &Chunks,
        stripes: &[(u64, &Chunk)],
    ) -> Result<(), Unsure> {
        let device = nodes.volume.device;
        let mut left = stripes.iter();
        nodes.walk(chunks, self.device, &mut |key, bytes| {
            if key.kind == DEV_REPLACE {
                let replace = Replace::read_from_prefix(bytes).map(|(item, _)| item.state.get());
                return match replace {
                    // It never began, is done, or was given up.
                    Ok(0 | 2 | 3) => Ok(()),
                    _ => Err(Unsure::Unknown("its device is being replaced".into())),
                };
            }
            if key.kind != DEV_EXTENT {
                return Ok(());
            }
            let is_next = |item: DevExtent| {
                left.next().is_some_and(|&(place, chunk)| {
                    key.offset == place
                        && item.chunk_offset.get() == chunk.start
                        && item.length.get() == chunk.length
                })
            };
            match key.object == device.devid.get()
                && DevExtent::read_from_bytes(bytes).is_ok_and(is_next)
            {
                true => Ok(()),
                false => damaged(format!("its device tree and its chunks at byte {}", key.offset)),
            }
        })?;
        // What the superblock says of the device's used bytes is older where a chunk was dropped
        // and none was made: Linux commit ae4477f93756.
        match left.next() {
            None => Ok(()),
            Some(_) => damaged("its device tree has fewer chunks"),
        }
    }
}

/// Used bytes and free ranges of each chunk, while the extent tree is read.
struct Space<'a> {
    volume: &'a Volume,
    chunks: &'a [Chunk],
    /// Bytes that extents cover, and those that the block group says are used, of each chunk.
    used: Vec<(u64, Option<u64>)>,
    /// The chunk of the last extent, and the logical address behind that extent.
    chunk: usize,
    at: u64,
    free: Free,
}

impl<'a> Space<'a> {
    fn new(volume: &'a Volume, chunks: &'a Chunks) -> Space<'a> {
        let chunks = chunks.list();
        let at = chunks.first().map_or(0, |chunk| chunk.start);
        let used = vec![(0, None); chunks.len()];
        Space { volume, chunks, used, chunk: 0, at, free: Free::default() }
    }

    /// Takes an item of the extent tree.
    fn item(&mut self, key: Key, bytes: &[u8]) -> Result<(), Unsure> {
        match key.kind {
            EXTENT_ITEM | METADATA_ITEM => match self.extent(key, bytes) {
                Some(()) => Ok(()),
                None => damaged(format!("the extent at {}", key.object)),
            },
            GROUP_ITEM if !self.volume.has_group_tree => self.group(key, bytes),
            kind if REFERENCES.contains(&kind) => Ok(()),
            kind => damaged(format!("an item of kind {kind} in its extent tree")),
        }
    }

    fn extent(&mut self, key: Key, bytes: &[u8]) -> Option<()> {
        let Volume { node, sector, generation, .. } = *self.volume;
        let (item, _) = ExtentItem::read_from_prefix(bytes).ok()?;
        let length = if key.kind == METADATA_ITEM { node } else { key.offset };
        let (start, end) = (key.object, key.object.checked_add(length)?);
        while self.chunks.get(self.chunk)?.end() <= start {
            self.close();
        }
        let chunk = &self.chunks[self.chunk];
        let flags = item.flags.get();
        let is_node = flags & EXTENT_NODE != 0;
        let kinds = if is_node { METADATA | SYSTEM } else { DATA };
        let is_sound = start >= self.at
            && end <= chunk.end()
            && length > 0
            && is_whole(start, sector)
            && is_whole(length, sector)
            && is_node != (flags & EXTENT_DATA != 0)
            && (is_node || key.kind == EXTENT_ITEM)
            && (!is_node || length == node)
            && chunk.kind & kinds != 0
            && item.refs.get() > 0
            && item.generation.get() <= generation;
        if !is_sound {
            return None;
        }
        self.free.push(self.at..start);
        self.at = end;
        self.used[self.chunk].0 += length;
        Some(())
    }

    /// Ends the present chunk, of which the rest is free.
    fn close(&mut self) {
        if let Some(chunk) = self.chunks.get(self.chunk) {
            self.free.push(self.at..chunk.end());
        }
        self.chunk += 1;
        self.at = self.chunks.get(self.chunk).map_or(u64::MAX, |chunk| chunk.start);
    }

    /// Takes a block group, which is to be that of a chunk.
    fn group(&mut self, key: Key, bytes: &[u8]) -> Result<(), Unsure> {
        let nth = self.chunks.binary_search_by_key(&key.object, |chunk| chunk.start).ok();
        let chunk = nth.map(|nth| &self.chunks[nth]);
        let item = GroupItem::read_from_bytes(bytes).ok().filter(|item| {
            chunk.is_some_and(|chunk| {
                (chunk.length, chunk.kind) == (key.offset, item.flags.get())
                    && key.kind == GROUP_ITEM
            })
        });
        let (Some(nth), Some(item)) = (nth, item) else {
            return damaged(format!("the block group at {}", key.object));
        };
        // Keys ascend, and the length is the chunk's: there is no second one.
        self.used[nth].1 = Some(item.used.get());
        Ok(())
    }

    /// The free ranges, once the sums are right.
    fn finish(mut self) -> Result<Free, Unsure> {
        while self.chunk < self.chunks.len() {
            self.close();
        }
        for (Chunk { start, .. }, (covered, used)) in self.chunks.iter().zip(&self.used) {
            if *used != Some(*covered) {
                return damaged(format!("the number of used bytes of the block group at {start}"));
            }
        }
        match self.used.iter().map(|(covered, _)| covered).sum::<u64>() == self.volume.bytes_used {
            true => Ok(self.free),
            false => damaged("the number of used bytes in its superblock"),
        }
    }
}

/// Free ranges of logical addresses, in order, none of which is in two chunks. Of too many the
/// shortest are left out.
#[derive(Default)]
struct Free {
    ranges: Vec<Range<u64>>,
    least: u64,
}

impl Free {
    fn push(&mut self, range: Range<u64>) {
        if range.end <= range.start || range.end - range.start < self.least {
            return;
        }
        while self.ranges.len() >= MOST {
            let least = (self.least * 2).max(4096);
            self.ranges.retain(|range| range.end - range.start >= least);
            self.least = least;
        }
        self.ranges.push(range);
    }

    /// True if byte `at` is in a range.
    fn has(&self, at: u64) -> bool {
        let behind = self.ranges.partition_point(|range| range.start <= at);
        behind.checked_sub(1).is_some_and(|nth| self.ranges[nth].contains(&at))
    }

    /// The ranges in a chunk.
    fn of(&self, chunk: &Chunk) -> &[Range<u64>] {
        let first = self.ranges.partition_point(|range| range.start < chunk.start);
        let behind = self.ranges.partition_point(|range| range.start < chunk.end());
        &self.ranges[first..behind]
    }
}

/// Taker of free ranges of the device in order, which passes on what is outside of the superblocks
/// and the front, joined.
struct Outside<'a, 'f> {
    found: &'a mut Found<'f>,
    open: Range<u64>,
}

impl Outside<'_, '_> {
    fn add(&mut self, range: Range<u64>) {
        let mut at = range.start.max(RESERVED);
        for place in PLACES {
            self.join(at..range.end.min(place));
            at = at.max(if range.end > place { place + AROUND } else { range.end });
        }
        self.join(at..range.end);
    }

    fn join(&mut self, range: Range<u64>) {
        if range.end <= range.start {
            return;
        }
        if range.start != self.open.end {
            self.end();
            self.open.start = range.start;
        }
        self.open.end = range.end;
    }

    /// Passes on what was joined last.
    fn end(&mut self) {
        if self.open.start < self.open.end {
            (self.found)(self.open.clone());
        }
    }
}
