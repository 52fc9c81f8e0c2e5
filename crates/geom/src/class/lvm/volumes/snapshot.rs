//! Old copy-on-write snapshots: chunks that are not as in the origin, on a store of their own.
//!
//! # On disk
//! Chunk 0 of the store is a header. Areas follow, each a chunk of exceptions and then the chunks
//! they are about: pairs of a chunk of the snapshot and one of the store, ended by one without a
//! place.
//!
//! # Sources
//! Linux `drivers/md/dm-snap-persistent.c`: `struct disk_header`, `struct disk_exception`,
//! `area_location`, `insert_exceptions`.

use super::super::chunks::{Run, of_pairs};
use super::super::fault::MapFault;
use super::super::group::SECTOR;
use super::super::tree::little;
use super::Maker;
use crate::base::ondisk::on_disk;
use crate::mapping::route::Route;
use std::collections::BTreeMap;
use zerocopy::FromBytes;
use zerocopy::little_endian::U32;

/// Magic of a store, `SnAp` (`SNAP_MAGIC`).
const MAGIC: u32 = 0x7041_6e53;
/// Version of all stores, `SNAPSHOT_DISK_VERSION`.
const VERSION: u32 = 1;
/// Size of `struct disk_exception` in bytes.
const EXCEPTION: u64 = 16;
/// Largest chunk in bytes: LVM allows 512 KiB.
const MOST_CHUNK: u64 = 1 << 20;

on_disk! {
    /// Header of a store, `struct disk_header`.
    struct Header of 16 bytes {
        0 => magic: U32,
        4 => valid: U32,
        8 => version: U32,
        12 => chunk_size: U32,
    }
}

impl Maker<'_> {
    /// The runs of a snapshot whose store is `volume`, in chunks of `chunk` bytes as the group has
    /// it; an `Err` says why there are none.
    pub(super) fn exceptions(&self, volume: usize, chunk: u64) -> Result<Vec<Run>, MapFault> {
        let route = self.route(volume).ok_or(MapFault::Lost)?;
        let mut head = [0; 512];
        self.read_map(route, 0, &mut head)?;
        let (header, _) = Header::read_from_prefix(&head).map_err(|_| MapFault::Version)?;
        if header.magic.get() != MAGIC || header.version.get() != VERSION {
            return Err(MapFault::Version);
        }
        if header.valid.get() == 0 {
            return Err(MapFault::Full);
        }
        let own = u64::from(header.chunk_size.get()) * SECTOR;
        if own != chunk || !chunk.is_power_of_two() || chunk > MOST_CHUNK {
            return Err(MapFault::Chunks(own, chunk));
        }
        Ok(of_pairs(self.pairs(route, chunk)?, route.length() / chunk))
    }

    /// Chunks of the snapshot, and where each is on the store.
    fn pairs(&self, route: &Route, chunk: u64) -> Result<BTreeMap<u64, u64>, MapFault> {
        let mut pairs = BTreeMap::new();
        let mut raw = vec![0; usize::try_from(chunk).map_err(|_| MapFault::TooLarge)?];
        // Every area takes a chunk, so the store bounds them.
        for area in 0..route.length() / chunk {
            let at = area.checked_mul(chunk / EXCEPTION + 1).and_then(|n| n.checked_add(1));
            let byte = at.and_then(|at| at.checked_mul(chunk));
            let Some(byte) = byte.filter(|byte| route.length() - chunk >= *byte) else { break };
            self.read_map(route, byte, &mut raw)?;
            for entry in raw.chunks_exact(16) {
                let (old, new) = (little(&entry[..8]), little(&entry[8..]));
                if new == 0 {
                    return Ok(pairs);
                }
                if pairs.insert(old, new).is_some() {
                    return Err(MapFault::Twice(old));
                }
                self.count_run()?;
            }
        }
        Ok(pairs)
    }
}
