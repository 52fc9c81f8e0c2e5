//! Thin volumes: blocks on the data volume of their pool, which its metadata place.
//!
//! # On disk
//! The metadata volume begins with a superblock: the roots of a tree of devices, each the root of a
//! tree from virtual blocks to blocks of data and the time at which they were mapped, and of a tree
//! of details, with the time of the last snapshot of each device. What was mapped before that may
//! be shared.
//!
//! # Limits
//! Space maps are not read: neither counts of references nor free blocks matter to what is read.
//!
//! # Sources
//! Linux `drivers/md/dm-thin-metadata.c`: `struct thin_disk_superblock`, `struct
//! disk_device_details`, `unpack_block_time`, `__snapshotted_since`.

use super::super::chunks::{Run, push};
use super::super::fault::MapFault;
use super::super::group::SECTOR;
use super::super::tree::{BLOCK, Blocks, little};
use super::Maker;
use crate::base::finding::{self, Finding, Severity};
use crate::base::ondisk::on_disk;
use std::cell::Cell;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U32, U64};

const MAGIC: u64 = 27_022_010;
/// Difference of a superblock's checksum, `SUPERBLOCK_CSUM_XOR`.
const SUPERBLOCK_XOR: u32 = 160_774;
/// Flag of damaged metadata, `THIN_METADATA_NEEDS_CHECK_FLAG`.
const NEEDS_CHECK: u32 = 1;
/// Bits of a mapping that hold its time.
const TIME_BITS: u32 = 24;
/// Size in bytes of a device's details, and the byte of the time of its last snapshot.
const DETAILS: usize = 24;
const SNAPSHOTTED: usize = 20;

on_disk! {
    /// `struct thin_disk_superblock`, up to the size of its metadata.
    struct Superblock of 352 bytes {
        0 => csum: U32,
        4 => flags: U32,
        8 => blocknr: U64,
        16 => uuid: [u8; 16],
        32 => magic: U64,
        40 => version: U32,
        44 => time: U32,
        48 => trans_id: U64,
        56 => held_root: U64,
        64 => space_map_roots: [u8; 256],
        320 => data_mapping_root: U64,
        328 => device_details_root: U64,
        336 => data_block_size: U32,
        340 => metadata_block_size: U32,
        344 => metadata_nr_blocks: U64,
    }
}

/// Metadata of a pool.
pub(super) struct Pool<'a> {
    blocks: Blocks<'a>,
    mappings: u64,
    details: u64,
    /// Number of the last change that LVM made.
    transaction: u64,
    needs_check: bool,
    /// Size of a block of data in bytes.
    pub(super) chunk: u64,
}

impl<'a> Pool<'a> {
    /// The pool with the metadata `blocks`, of which the group says that a block of data has
    /// `chunk` bytes.
    fn read(blocks: Blocks<'a>, chunk: u64) -> Result<Pool<'a>, MapFault> {
        let raw = blocks.get(0, SUPERBLOCK_XOR, 8)?;
        let (sb, _) = Superblock::read_from_prefix(&raw).map_err(|_| MapFault::Version)?;
        if sb.magic.get() != MAGIC || !(1..=2).contains(&sb.version.get()) {
            return Err(MapFault::Version);
        }
        let own = u64::from(sb.data_block_size.get()) * SECTOR;
        if own != chunk {
            return Err(MapFault::Chunks(own, chunk));
        }
        let unit = u64::from(sb.metadata_block_size.get()) * SECTOR;
        if unit != BLOCK as u64 {
            return Err(MapFault::Version);
        }
        Ok(Pool {
            mappings: sb.data_mapping_root.get(),
            details: sb.device_details_root.get(),
            transaction: sb.trans_id.get(),
            needs_check: sb.flags.get() & NEEDS_CHECK != 0,
            chunk,
            blocks,
        })
    }

    /// The reason for which Linux would not write its volumes; LVM counts `transaction` changes.
    pub(super) fn read_only(&self, transaction: Option<u64>) -> Option<&'static str> {
        if self.needs_check {
            Some("the metadata of its pool need a check")
        } else if self.differs_from(transaction).is_some() {
            Some("the metadata of its pool and those of its group are of different times")
        } else {
            None
        }
    }

    /// The number of changes that LVM counts, if the pool has seen another.
    fn differs_from(&self, transaction: Option<u64>) -> Option<u64> {
        transaction.filter(|&other| other != self.transaction)
    }

    /// The runs of a device on a data volume of `room` bytes; `left` is how many more may be made
    /// of all devices.
    pub(super) fn runs(
        &self,
        device: u64,
        room: u64,
        left: &Cell<usize>,
    ) -> Result<Vec<Run>, MapFault> {
        let missing = MapFault::NoDevice;
        let root = self.blocks.find(self.mappings, device, 8)?.ok_or(missing.clone())?;
        let details = self.blocks.find(self.details, device, DETAILS)?.ok_or(missing)?;
        let snapshotted = details.get(SNAPSHOTTED..).map_or(0, little);
        let most = room / self.chunk;
        let mut runs = Vec::new();
        self.blocks.walk(little(&root), 8, &mut |first, value| {
            let value = little(value);
            let (data, time) = (value >> TIME_BITS, value & ((1 << TIME_BITS) - 1));
            let is_shared = snapshotted > time;
            let store = Some(data).filter(|&data| data < most);
            let before = runs.len();
            push(&mut runs, Run { first, count: 1, store, is_shared });
            if runs.len() > before {
                left.set(left.get().checked_sub(1).ok_or(MapFault::Pieces)?);
            }
            Ok(())
        })?;
        Ok(runs)
    }
}

impl<'a> Maker<'a> {
    /// The metadata of a pool; an `Err` says what is wrong with them.
    pub(super) fn read_pool(&self, metadata: usize, chunk: u64) -> Result<Pool<'a>, MapFault> {
        let lost = MapFault::Lost;
        let route = self.route(metadata).ok_or(lost.clone())?.clone();
        let present = self.present.first().ok_or(lost)?;
        Pool::read(Blocks::new(&present.probe, route), chunk)
    }
}

/// Findings about a pool of which LVM counts `transaction` changes.
pub(super) fn findings(
    pool: &Result<Pool<'_>, MapFault>,
    transaction: Option<u64>,
) -> Vec<Finding> {
    let finding = |severity, message| Finding::new(&finding::LABEL, severity, 0, message);
    let pool = match pool {
        Ok(pool) => pool,
        // The volumes say that where they are is not known.
        Err(why) if why.is_unfetched() => return Vec::new(),
        Err(why) => {
            let message = format!("the metadata of this pool cannot be used: {why}");
            let repair = "repair them on the host that has the pool: lvconvert --repair";
            return vec![finding(Severity::Error, message).fix(repair)];
        }
    };
    let mut found = Vec::new();
    if pool.needs_check {
        let message = "the metadata of this pool are marked: they need a check";
        found.push(finding(Severity::Warning, message.into()).fix("lvconvert --repair"));
    }
    if let Some(other) = pool.differs_from(transaction) {
        let message = format!(
            "the metadata of this pool have seen {} changes of LVM, those of the group {other}: they are of different times",
            pool.transaction
        );
        found.push(
            finding(Severity::Warning, message).fix(
                "LVM does not start it: restore the group's metadata of that time: vgcfgrestore",
            ),
        );
    }
    found
}
