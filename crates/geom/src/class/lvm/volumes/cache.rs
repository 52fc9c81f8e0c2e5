//! Volumes behind a cache: dm-cache and dm-writecache.
//!
//! # On disk
//! dm-cache's metadata begin with a superblock, which has the root of an array from chunks of the
//! cache to chunks of the origin. dm-writecache has, behind its superblock, for every block the
//! sector of the origin that it holds, and when it was written.
//!
//! # What is read
//! What Linux would read: of a chunk that the cache has, the cache's. So it does not matter which
//! chunks are dirty, nor whether the cache was closed in order.
//!
//! # Sources
//! Linux `drivers/md/dm-cache-metadata.c`: `struct cache_disk_superblock`, `unpack_value`;
//! `drivers/md/dm-writecache.c`: `struct wc_memory_superblock`, `writecache_resume`.

use super::super::chunks::{Run, of_pairs};
use super::super::fault::MapFault;
use super::super::group::SECTOR;
use super::super::tree::{BLOCK, Blocks, little};
use super::Maker;
use crate::base::ondisk::on_disk;
use crate::base::topology::round_up;
use crate::mapping::route::Route;
use std::collections::BTreeMap;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U32, U64};

/// `CACHE_SUPERBLOCK_MAGIC`: 06142003 in octal.
const MAGIC: u64 = 0o6_142_003;
/// Difference of a superblock's checksum, `SUPERBLOCK_CSUM_XOR` of dm-cache.
const SUPERBLOCK_XOR: u32 = 9_031_977;
/// `M_VALID`: the chunk of the cache holds something.
const VALID: u64 = 1;
/// Bits of a mapping that are flags.
const FLAG_BITS: u32 = 16;
/// Magic of a dm-writecache, `MEMORY_SUPERBLOCK_MAGIC`.
const WRITE_MAGIC: u32 = 0x2348_9321;
/// Size in bytes of its superblock, and of an entry for every block.
const WRITE_HEAD: u64 = 64;
const WRITE_ENTRY: u64 = 16;
/// Bytes of entries that are read at once.
const PIECE: u64 = 64 << 10;

on_disk! {
    /// `struct cache_disk_superblock`, up to the number of chunks.
    struct Superblock of 244 bytes {
        0 => csum: U32,
        4 => flags: U32,
        8 => blocknr: U64,
        16 => uuid: [u8; 16],
        32 => magic: U64,
        40 => version: U32,
        44 => policy_name: [u8; 16],
        60 => policy_hint_size: U32,
        64 => metadata_space_map_root: [u8; 128],
        192 => mapping_root: U64,
        200 => hint_root: U64,
        208 => discard_root: U64,
        216 => discard_block_size: U64,
        224 => discard_nr_blocks: U64,
        232 => data_block_size: U32,
        236 => metadata_block_size: U32,
        240 => cache_blocks: U32,
    }
}

on_disk! {
    /// `struct wc_memory_superblock` without its entries.
    struct WriteSuperblock of 32 bytes {
        0 => magic: U32,
        4 => version: U32,
        8 => block_size: U32,
        12 => pad: U32,
        16 => n_blocks: U64,
        24 => seq_count: U64,
    }
}

/// Map of a cache.
pub(super) struct Map {
    /// Size of a chunk in bytes.
    pub(super) chunk: u64,
    /// First byte of chunk 0 on the cache.
    pub(super) base: u64,
    pub(super) runs: Vec<Run>,
}

impl Maker<'_> {
    /// The runs of a dm-cache in chunks of `chunk` bytes, whose metadata `route` leads to, on
    /// `room` bytes of data.
    pub(super) fn cached(
        &self,
        route: &Route,
        chunk: u64,
        room: u64,
    ) -> Result<Vec<Run>, MapFault> {
        let present = self.present.first().ok_or(MapFault::Lost)?;
        let blocks = Blocks::new(&present.probe, route.clone());
        let raw = blocks.get(0, SUPERBLOCK_XOR, 8)?;
        let (sb, _) = Superblock::read_from_prefix(&raw).map_err(|_| MapFault::Version)?;
        if sb.magic.get() != MAGIC || !(1..=2).contains(&sb.version.get()) {
            return Err(MapFault::Version);
        }
        let own = u64::from(sb.data_block_size.get()) * SECTOR;
        let unit = u64::from(sb.metadata_block_size.get()) * SECTOR;
        if own != chunk || unit != BLOCK as u64 {
            return Err(MapFault::Chunks(own, chunk));
        }
        let (count, most) = (u64::from(sb.cache_blocks.get()), room / chunk);
        let mut chunks = BTreeMap::new();
        blocks.array(sb.mapping_root.get(), 8, &mut |store, value| {
            let value = little(value);
            if store >= count || value & VALID == 0 {
                return Ok(());
            }
            self.count_run()?;
            let first = value >> FLAG_BITS;
            match chunks.insert(first, store) {
                Some(_) => Err(MapFault::Twice(first)),
                None => Ok(()),
            }
        })?;
        Ok(of_pairs(chunks, most))
    }

    /// The map of the dm-writecache on `volume`.
    pub(super) fn write_cached(&self, volume: usize) -> Result<Map, MapFault> {
        let route = self.route(volume).ok_or(MapFault::Lost)?;
        let mut head = [0; 512];
        self.read_map(route, 0, &mut head)?;
        let (sb, _) = WriteSuperblock::read_from_prefix(&head).map_err(|_| MapFault::Version)?;
        let chunk = u64::from(sb.block_size.get());
        let is_known = sb.magic.get() == WRITE_MAGIC && sb.version.get() == 1;
        if !is_known || !chunk.is_power_of_two() || !(SECTOR..=1 << 16).contains(&chunk) {
            return Err(MapFault::Version);
        }
        let count = sb.n_blocks.get();
        let entries = count.checked_mul(WRITE_ENTRY).and_then(|n| n.checked_add(WRITE_HEAD));
        let base = entries.and_then(|end| round_up(end, chunk));
        let base = base.filter(|&base| base <= route.length());
        let base = base.ok_or(MapFault::Entries)?;
        let newest = self.entries(route, count, sb.seq_count.get(), chunk)?;
        let most = (route.length() - base) / chunk;
        let pairs = newest.into_iter().map(|(first, (_, store))| (first, store));
        Ok(Map { chunk, base, runs: of_pairs(pairs, most) })
    }

    /// For every block of the origin that a dm-writecache has: when it was written, and the block
    /// of the cache. What was written from `end` on was not finished.
    fn entries(
        &self,
        route: &Route,
        count: u64,
        end: u64,
        chunk: u64,
    ) -> Result<BTreeMap<u64, (u64, u64)>, MapFault> {
        let mut newest: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let mut raw = Vec::new();
        for number in 0..count {
            let within = number * WRITE_ENTRY % PIECE;
            if within == 0 {
                let left = (count - number).saturating_mul(WRITE_ENTRY).min(PIECE);
                raw.resize(usize::try_from(left).unwrap_or(0), 0);
                self.read_map(route, WRITE_HEAD + number * WRITE_ENTRY, &mut raw)?;
            }
            let at = usize::try_from(within).unwrap_or(0);
            let Some(entry) = raw.get(at..at + 16) else { break };
            let (sector, written) = (little(&entry[..8]), little(&entry[8..]));
            let byte = sector.checked_mul(SECTOR).filter(|_| written < end);
            let Some(block) = byte.map(|byte| byte / chunk) else { continue };
            let held = newest.entry(block).or_insert((written, number));
            if held.0 <= written {
                *held = (written, number);
            }
            self.count_run()?;
        }
        Ok(newest)
    }
}
