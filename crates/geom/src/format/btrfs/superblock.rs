//! Superblock of Btrfs, as far as free space depends on it.
//!
//! # On disk
//! Superblocks are 4096 bytes long, at 64 KiB, 64 MiB and 256 GiB of each device. All are written
//! with each transaction; the first is the one that is mounted. A checksum is in front of what it
//! is of, of one of four kinds.
//!
//! # Sources
//! btrfs documentation, "On-disk Format", section "Superblock"; Linux
//! `include/uapi/linux/btrfs_tree.h` (`struct btrfs_super_block`), `include/uapi/linux/btrfs.h`
//! (features).

use crate::base::error::Errno;
use crate::base::ondisk::on_disk;
use crate::base::patch::Read;
use crate::base::topology::is_whole;
use crate::format::free_space::{Unsure, damaged};
use blake2::digest::consts::U32 as Bytes32;
use sha2::Digest;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U16, U32, U64};

on_disk! {
    /// `struct btrfs_dev_item`, in a superblock and in the chunk tree.
    #[derive(Clone, Copy)]
    pub(super) struct Device of 98 bytes {
         0 => pub(super) devid: U64,
         8 => pub(super) total_bytes: U64,
        16 => pub(super) bytes_used: U64,
        24 => skip0: [u8; 42],
        66 => pub(super) uuid: [u8; 16],
        82 => pub(super) fsid: [u8; 16],
    }
    /// `struct btrfs_super_block`, as far as it is read.
    struct Super of 4096 bytes {
           0 => csum: [u8; 32],
          32 => fsid: [u8; 16],
          48 => bytenr: U64,
          56 => flags: U64,
          64 => magic: [u8; 8],
          72 => generation: U64,
          80 => root: U64,
          88 => chunk_root: U64,
          96 => log_root: U64,
         104 => skip0: [u8; 16],
         120 => bytes_used: U64,
         128 => skip1: [u8; 8],
         136 => num_devices: U64,
         144 => sectorsize: U32,
         148 => nodesize: U32,
         152 => skip2: [u8; 8],
         160 => sys_chunk_array_size: U32,
         164 => chunk_root_generation: U64,
         172 => compat_flags: U64,
         180 => compat_ro_flags: U64,
         188 => incompat_flags: U64,
         196 => csum_type: U16,
         198 => root_level: u8,
         199 => chunk_root_level: u8,
         200 => log_root_level: u8,
         201 => dev_item: Device,
         299 => skip3: [u8; 272],
         571 => metadata_uuid: [u8; 16],
         587 => skip4: [u8; 224],
         811 => sys_chunk_array: [u8; 2048],
        2859 => skip5: [u8; 1237],
    }
}

const LENGTH: usize = 4096;
/// Places of the superblocks, in bytes of the device.
pub(super) const PLACES: [u64; 3] = [64 << 10, 64 << 20, 256 << 30];
/// Flags of a superblock that change nothing here: it was written, and with back references.
const FLAGS: u64 = 3;
const FLAG_ERROR: u64 = 4;
/// Features with which extents mean what they mean without: all up to `RAID1C34` (profiles are
/// those of the chunks), and simple quotas.
const INCOMPAT_KNOWN: u64 = 0xfff | 1 << 16;
const INCOMPAT_MIXED_BACKREF: u64 = 1;
const INCOMPAT_METADATA_UUID: u64 = 1 << 10;
const COMPAT_RO_KNOWN: u64 = 0xf;
const COMPAT_RO_GROUP_TREE: u64 = 1 << 3;

const CRC32C: crc::Crc<u32, crc::Table<16>> =
    crc::Crc::<u32, crc::Table<16>>::new(&crc::CRC_32_ISCSI);

/// Kind of the checksums of superblocks and nodes.
#[derive(Clone, Copy)]
enum Sum {
    Crc32c,
    XxHash,
    Sha256,
    Blake2b,
}

impl Sum {
    fn new(kind: u16) -> Option<Sum> {
        [Sum::Crc32c, Sum::XxHash, Sum::Sha256, Sum::Blake2b].get(usize::from(kind)).copied()
    }

    /// True if the first of 32 bytes of `block` are the checksum of the bytes behind them.
    fn is_of(self, block: &[u8]) -> bool {
        let Some((sum, body)) = block.split_at_checked(32) else { return false };
        match self {
            Sum::Crc32c => sum.starts_with(&CRC32C.checksum(body).to_le_bytes()),
            Sum::XxHash => sum.starts_with(&twox_hash::XxHash64::oneshot(0, body).to_le_bytes()),
            Sum::Sha256 => sum == sha2::Sha256::digest(body).as_slice(),
            Sum::Blake2b => sum == blake2::Blake2b::<Bytes32>::digest(body).as_slice(),
        }
    }
}

/// Root of a tree: the logical address, generation and level of its node, and the tree's number.
#[derive(Clone, Copy)]
pub(super) struct Root {
    pub(super) at: u64,
    pub(super) generation: u64,
    pub(super) level: u8,
    pub(super) owner: u64,
}

/// Numbers of a file system on one device, checked; lengths are in bytes.
pub(super) struct Volume {
    sum: Sum,
    /// The identity that nodes have.
    pub(super) fsid: [u8; 16],
    pub(super) generation: u64,
    pub(super) sector: u64,
    pub(super) node: u64,
    pub(super) root_tree: Root,
    pub(super) chunk_tree: Root,
    pub(super) bytes_used: u64,
    pub(super) device: Device,
    /// True if block groups are in a tree of their own.
    pub(super) has_group_tree: bool,
    /// Chunks of the chunk tree itself, each behind its key.
    pub(super) array: Vec<u8>,
}

/// Numbers of the root tree and of the chunk tree.
const ROOT_TREE: u64 = 1;
const CHUNK_TREE: u64 = 3;

impl Volume {
    /// Reads the superblocks on a provider of `length` bytes.
    pub(super) fn read(length: u64, read: &mut Read<'_>) -> Result<Volume, Unsure> {
        let (sb, sum) = superblock(PLACES[0], read)?
            .ok_or_else(|| Unsure::Damaged("the checksum of its superblock, or its kind".into()))?;
        let (flags, incompat) = (sb.flags.get(), sb.incompat_flags.get());
        let compat_ro = sb.compat_ro_flags.get();
        if flags & FLAG_ERROR != 0 {
            return damaged("its superblock says that errors were met");
        }
        if flags & !FLAGS != 0
            || incompat & !INCOMPAT_KNOWN != 0
            || incompat & INCOMPAT_MIXED_BACKREF == 0
            || compat_ro & !COMPAT_RO_KNOWN != 0
        {
            return Err(Unsure::Unknown(format!(
                "flags {flags:#x}, features {incompat:#x} and {compat_ro:#x}"
            )));
        }
        if sb.num_devices.get() != 1 {
            return Err(Unsure::Unknown(format!("it is on {} devices", sb.num_devices)));
        }
        if sb.log_root.get() != 0 {
            return Err(Unsure::Unclean("its log has to be replayed"));
        }
        let (sector, node) = (u64::from(sb.sectorsize.get()), u64::from(sb.nodesize.get()));
        let total = sb.dev_item.total_bytes.get();
        let array = usize::try_from(sb.sys_chunk_array_size.get()).unwrap_or(usize::MAX);
        let fsid = match incompat & INCOMPAT_METADATA_UUID != 0 {
            true => sb.metadata_uuid,
            false => sb.fsid,
        };
        let (generation, chunk_generation) = (sb.generation.get(), sb.chunk_root_generation.get());
        let is_sound = sector.is_power_of_two()
            && node.is_power_of_two()
            && (512..=65536).contains(&sector)
            && (sector.max(4096)..=65536).contains(&node)
            && is_whole(sb.root.get(), sector)
            && is_whole(sb.chunk_root.get(), sector)
            && chunk_generation <= generation
            && total <= length
            && total > PLACES[0] + LENGTH as u64
            && sb.dev_item.fsid == fsid;
        let Some(array) = sb.sys_chunk_array.get(..array).filter(|_| is_sound) else {
            return damaged("the numbers of its superblock");
        };
        for at in PLACES.into_iter().skip(1).filter(|at| at + (LENGTH as u64) < total) {
            let other = match superblock(at, read) {
                // A bad sector: the first one counts.
                Err(Unsure::Failed(_, Errno::Io)) => None,
                other => other?.filter(|(other, _)| other.fsid == sb.fsid),
            };
            // An older one was not written before a loss of power; a newer one cannot be.
            if other.is_some_and(|(other, _)| other.generation.get() > generation) {
                return damaged(format!("its superblock at byte {at} is newer than the first"));
            }
        }
        Ok(Volume {
            sum,
            fsid,
            generation,
            sector,
            node,
            root_tree: Root {
                at: sb.root.get(),
                generation,
                level: sb.root_level,
                owner: ROOT_TREE,
            },
            chunk_tree: Root {
                at: sb.chunk_root.get(),
                generation: chunk_generation,
                level: sb.chunk_root_level,
                owner: CHUNK_TREE,
            },
            bytes_used: sb.bytes_used.get(),
            device: sb.dev_item,
            has_group_tree: compat_ro & COMPAT_RO_GROUP_TREE != 0,
            array: array.to_vec(),
        })
    }

    /// True if a node is what its checksum is of.
    pub(super) fn is_summed(&self, node: &[u8]) -> bool {
        self.sum.is_of(node)
    }
}

/// The superblock at byte `at` and the kind of its checksum, if it is one and its checksum is
/// right.
fn superblock(at: u64, read: &mut Read<'_>) -> Result<Option<(Super, Sum)>, Unsure> {
    let mut bytes = vec![0; LENGTH];
    read(at, &mut bytes).map_err(|errno| Unsure::Failed(at, errno))?;
    let Ok(sb) = Super::read_from_bytes(&bytes) else { return Ok(None) };
    let is_one = sb.magic == *b"_BHRfS_M" && sb.bytenr.get() == at;
    let sum = Sum::new(sb.csum_type.get()).filter(|sum| is_one && sum.is_of(&bytes));
    Ok(sum.map(|sum| (sb, sum)))
}
