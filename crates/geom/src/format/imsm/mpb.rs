//! Metadata of Intel's firmware RAID: one block that all disks of a container have, parsed into one
//! value.

use crate::base::ondisk::{self, on_disk};
use crate::probe::Probe;
use std::fmt;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U16, U32, U64};

/// Start of the signature; the version follows it.
pub const MPB_SIGNATURE: &[u8; 24] = b"Intel Raid ISM Cfg Sig. ";
/// Sizes of the sector in which the metadata count, each tried.
const SECTORS: [u64; 2] = [512, 4096];
/// Bytes below which libblkid looks for no firmware RAID.
const SMALLEST: u64 = 64 << 10;
/// Largest block that is read, in bytes.
const MOST: u32 = 64 << 10;
/// Signature of the log of bad blocks.
const BBM_LOG_SIGNATURE: u32 = 0xabad_b10c;

/// Attribute of a container whose numbers have high halves.
const MPB_ATTRIB_2TB_DISK: u32 = 0x0400_0000;
/// Attributes that mdadm knows how to serve, and those that it passes over.
const SUPPORTED: u32 = 0xac00_00d7;
const IGNORED: u32 = 0x4000_0000;

/// States of a disk.
const SPARE_DISK: u32 = 1;
const FAILED_DISK: u32 = 4;
/// A journal of a volume with parity, which holds none of its data.
const JOURNAL_DISK: u32 = 0x0200_0000;
/// Bit of a volume's status: a verification that mends what differs.
const DEV_VERIFY_AND_FIX: u32 = 0x80;
/// Bit of a volume that was not stopped in order.
const RAIDVOL_DIRTY: u8 = 1;
/// Bit of a place in a map: what is on its disk is not whole yet, or no more.
const IMSM_ORD_REBUILD: u32 = 1 << 24;
/// States of a map that tell of more than disks do.
const IMSM_T_STATE_UNINITIALIZED: u8 = 1;
const IMSM_T_STATE_FAILED: u8 = 3;
/// Sectors of 512 bytes by which a volume's length may differ from its map's for each disk of data.
const SLACK: u64 = 2048;

on_disk! {
    /// Head of the block, `struct imsm_super` without its tables.
    struct Super of 216 bytes {
          0 => sig: [u8; 32],
         32 => check_sum: U32,
         36 => mpb_size: U32,
         40 => family_num: U32,
         44 => generation_num: U32,
         48 => error_log_size: U32,
         52 => attributes: U32,
         56 => num_disks: u8,
         57 => num_raid_devs: u8,
         58 => error_log_pos: u8,
         59 => fill: u8,
         60 => cache_size: U32,
         64 => orig_family_num: U32,
         68 => pwr_cycle_count: U32,
         72 => bbm_log_size: U32,
         76 => num_raid_devs_created: U16,
         78 => filler1: U16,
         80 => creation_time: U64,
         88 => filler: [u8; 128],
    }

    /// Disk of the container, `struct imsm_disk`.
    struct ImsmDisk of 48 bytes {
          0 => serial: [u8; 16],
         16 => total_blocks_lo: U32,
         20 => scsi_id: U32,
         24 => status: U32,
         28 => owner_cfg_num: U32,
         32 => total_blocks_hi: U32,
         36 => filler: [u8; 12],
    }

    /// Volume, `struct imsm_dev` with its `imsm_vol`, without maps.
    struct ImsmDev of 112 bytes {
          0 => volume: [u8; 16],
         16 => size_low: U32,
         20 => size_high: U32,
         24 => status: U32,
         28 => reserved_blocks: U32,
         32 => migr_priority: u8,
         33 => num_sub_vols: u8,
         34 => tid: u8,
         35 => cng_master_disk: u8,
         36 => cache_policy: U16,
         38 => cng_state: u8,
         39 => cng_sub_state: u8,
         40 => my_vol_raid_dev_num: U16,
         42 => nv_cache_mode: u8,
         43 => nv_cache_flags: u8,
         44 => nvc_vol_orig_family_num: U32,
         48 => nvc_vol_raid_dev_num: U16,
         50 => rwh_policy: u8,
         51 => jd_serial: [u8; 16],
         67 => filler1: u8,
         68 => filler: [u8; 12],
         80 => curr_migr_unit_lo: U32,
         84 => checkpoint_id: U32,
         88 => migr_state: u8,
         89 => migr_type: u8,
         90 => dirty: u8,
         91 => fs_state: u8,
         92 => verify_errors: U16,
         94 => bad_blocks: U16,
         96 => curr_migr_unit_hi: U32,
        100 => vol_filler: [u8; 12],
    }

    /// Map of a volume, `struct imsm_map` without its table of disks.
    struct ImsmMap of 48 bytes {
          0 => pba_of_lba0_lo: U32,
          4 => blocks_per_member_lo: U32,
          8 => num_data_stripes_lo: U32,
         12 => blocks_per_strip: U16,
         14 => map_state: u8,
         15 => raid_level: u8,
         16 => num_members: u8,
         17 => num_domains: u8,
         18 => failed_disk_num: u8,
         19 => ddf: u8,
         20 => pba_of_lba0_hi: U32,
         24 => blocks_per_member_hi: U32,
         28 => num_data_stripes_hi: U32,
         32 => filler: [u8; 16],
    }

    /// Entry of the log of bad blocks, `struct bbm_log_entry`.
    struct BbmLogEntry of 8 bytes {
          0 => marked_count: u8,
          1 => disk_ordinal: u8,
          2 => w1: U16,
          4 => dw1: U32,
    }
}

/// Metadata of a container, as one of its disks has them.
#[derive(Clone, Debug)]
pub struct Mpb {
    /// Byte of the disk at which the signature stands.
    pub at: u64,
    /// First byte of the metadata.
    pub start: u64,
    /// Version, as mdadm prints it: `1.2.02`.
    pub version: Option<String>,
    /// Identity of the container, which it keeps when disks are replaced.
    pub family: u32,
    /// Updates of the metadata so far.
    pub generation: u32,
    /// Checksum, which is right.
    pub sum: u32,
    /// Attributes that are in use and that mdadm does not serve.
    pub unserved: u32,
    /// Disks of the container in the order of its table.
    pub disks: Vec<ContainerDisk>,
    /// Volumes in the order of the table.
    pub volumes: Vec<Volume>,
    /// Stretches that could not be read or written: index of the disk, first byte there, and the
    /// byte after the last.
    pub bad: Vec<(usize, u64, u64)>,
}

/// Disk in the table of a container.
#[derive(Clone, Debug)]
pub struct ContainerDisk {
    /// Serial number, as far as it fits; of a disk that failed, with `:0` behind it.
    pub serial: String,
    /// Length of the disk in bytes.
    pub length: u64,
    /// True if it failed and is in use no more.
    pub failed: bool,
    /// True if it waits for another to fail.
    pub spare: bool,
}

/// Volume of a container.
#[derive(Clone, Debug)]
pub struct Volume {
    /// Name; `None` if it has none.
    pub name: Option<String>,
    /// Length of the volume in bytes.
    pub size: u64,
    /// Work on it that is under way.
    pub migration: Option<Migration>,
    /// True if its copies or its parity may differ: it was not stopped in order, or they were never
    /// made.
    pub unsynced: bool,
    /// Map by which it is read now.
    pub map: Map,
}

/// Work on a volume that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migration {
    /// Copies or parity are made for the first time, or again.
    Resync,
    /// A disk is made of the others.
    Rebuild,
    /// Copies or parity are compared.
    Verify,
    /// The volume gets another level, another chunk or more disks.
    Reshape,
}

/// Places of a volume on its disks.
#[derive(Clone, Debug)]
pub struct Map {
    /// First byte of the volume on every disk.
    pub start: u64,
    /// Bytes that the volume takes on every disk.
    pub share: u64,
    /// Chunk of the volume in bytes.
    pub chunk: u64,
    /// Level as md counts: 10 for a mirror of more than two disks.
    pub level: u8,
    /// True if more disks are lost than it can do without.
    pub failed: bool,
    /// Disks by their places in the volume.
    pub members: Vec<DiskOrdinal>,
}

/// Place of a disk in a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskOrdinal {
    /// Index of the disk in the container's table.
    pub disk: usize,
    /// True if what is on it is not whole.
    pub rebuilding: bool,
}

/// Damage for which nothing of the metadata is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Length that no metadata have.
    Size,
    /// Part that cannot be read.
    Unreadable,
    /// Checksum that is not right.
    Sum,
    /// Table that reaches past the end.
    Cut,
}

impl Damage {
    /// The reason in words, for a member of which nothing else is known.
    pub fn words(self) -> &'static str {
        match self {
            Damage::Size => {
                "a member of a firmware RAID whose metadata say that they are of a length that none have: what is on it is the set's"
            }
            Damage::Unreadable => {
                "a member of a firmware RAID whose metadata cannot be read as a whole: what is on it is the set's"
            }
            Damage::Sum => {
                "a member of a firmware RAID whose metadata have a wrong checksum: what is on it is the set's"
            }
            Damage::Cut => {
                "a member of a firmware RAID whose metadata end within a table: what is on it is the set's"
            }
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

impl std::error::Error for Damage {}

/// The byte at which the signature stands, and the metadata there; `None` for a disk without them,
/// and on a partition, which the firmware does not look at.
pub fn find(probe: &Probe<'_>) -> Option<(u64, Result<Mpb, Damage>)> {
    if probe.kind().is_some() || probe.length() < SMALLEST {
        return None;
    }
    // mdadm looks where the disk's own sectors put it. What counts in others is from before the
    // disk had these sectors, or an image is of a disk that had others.
    let own = SECTORS.into_iter().filter(|&sector| sector == probe.sector());
    let others = SECTORS.into_iter().filter(|&sector| sector != probe.sector());
    own.chain(others).find_map(|sector| {
        let at = (probe.length() / sector).checked_sub(2)? * sector;
        probe.has(at, MPB_SIGNATURE).then(|| (at, read(probe, at, sector)))
    })
}

/// The metadata whose first sector stands at `at`; what they have more stands before it.
fn read(probe: &Probe<'_>, at: u64, sector: u64) -> Result<Mpb, Damage> {
    let head: Super = probe.read(at).ok_or(Damage::Unreadable)?;
    let size = head.mpb_size.get();
    let length = usize::try_from(size).map_err(|_| Damage::Size)?;
    if size > MOST || length < size_of::<Super>() {
        return Err(Damage::Size);
    }
    let rest = u64::from(size).div_ceil(sector).saturating_sub(1) * sector;
    let start = at.checked_sub(rest).ok_or(Damage::Size)?;
    let first = usize::try_from(sector).map_err(|_| Damage::Size)?;
    let more = usize::try_from(rest).map_err(|_| Damage::Size)?;
    let mut bytes = probe.bytes(at, first).ok_or(Damage::Unreadable)?;
    if more > 0 {
        bytes.extend(probe.bytes(start, more).ok_or(Damage::Unreadable)?);
    }
    bytes.truncate(length);
    if sum(&bytes).wrapping_sub(head.check_sum.get()) != head.check_sum.get() {
        return Err(Damage::Sum);
    }
    Reader { bytes: &bytes, head: &head, sector }.mpb(at, start).ok_or(Damage::Cut)
}

/// The sum of all whole words.
fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(4).map(word).fold(0, u32::wrapping_add)
}

/// The little-endian word at the front of `bytes`; 0 where there is none.
fn word(bytes: &[u8]) -> u32 {
    U32::read_from_prefix(bytes).map_or(0, |(word, _)| word.get())
}

/// Reader of the tables behind the head.
struct Reader<'a> {
    bytes: &'a [u8],
    head: &'a Super,
    /// Bytes of the sector in which places are counted.
    sector: u64,
}

impl Reader<'_> {
    fn mpb(&self, at: u64, start: u64) -> Option<Mpb> {
        let head = self.head;
        let mut end = size_of::<Super>();
        let mut disks = Vec::new();
        for _ in 0..head.num_disks {
            disks.push(self.disk(&self.next(&mut end)?));
        }
        let mut volumes = Vec::new();
        for _ in 0..head.num_raid_devs {
            volumes.push(self.volume(&mut end)?);
        }
        let original = head.orig_family_num.get();
        Some(Mpb {
            at,
            start,
            version: ondisk::text(&head.sig[MPB_SIGNATURE.len()..]),
            family: if original == 0 { head.family_num.get() } else { original },
            generation: head.generation_num.get(),
            sum: head.check_sum.get(),
            unserved: head.attributes.get() & !(SUPPORTED | IGNORED),
            disks,
            volumes,
            bad: self.bad(),
        })
    }

    /// The structure at `end`, which moves past it; `None` past the end of the metadata.
    fn next<T: FromBytes>(&self, end: &mut usize) -> Option<T> {
        let (found, _) = T::read_from_prefix(self.bytes.get(*end..)?).ok()?;
        *end += size_of::<T>();
        Some(found)
    }

    /// A number of two halves; the high one counts only where a container says so.
    fn number(&self, low: U32, high: U32) -> u64 {
        let wide = self.head.attributes.get() & MPB_ATTRIB_2TB_DISK != 0;
        let high = if wide { u64::from(high.get()) } else { 0 };
        high << 32 | u64::from(low.get())
    }

    /// Bytes of so many sectors; past 2^64 as many as there are, which is past every end.
    fn sectors(&self, count: u64) -> u64 {
        count.saturating_mul(self.sector)
    }

    fn disk(&self, disk: &ImsmDisk) -> ContainerDisk {
        let status = disk.status.get();
        ContainerDisk {
            serial: ondisk::text(&disk.serial).unwrap_or_default(),
            length: self.sectors(self.number(disk.total_blocks_lo, disk.total_blocks_hi)),
            failed: status & FAILED_DISK != 0,
            spare: status & (SPARE_DISK | JOURNAL_DISK) != 0,
        }
    }

    fn volume(&self, end: &mut usize) -> Option<Volume> {
        let dev: ImsmDev = self.next(end)?;
        let blocks = u64::from(dev.size_high.get()) << 32 | u64::from(dev.size_low.get());
        let size = self.sectors(blocks);
        let migrating = dev.migr_state != 0;
        let (mut map, mut state) = self.map(end, size)?;
        if migrating {
            // The first map is what it will be, the second what it is.
            (map, state) = self.map(end, size)?;
        }
        let migration = migrating.then_some(match dev.migr_type {
            0 | 5 => Migration::Resync,
            // Without a place that is rebuilt mdadm makes copies or parity anew.
            1 if map.members.iter().all(|place| !place.rebuilding) => Migration::Resync,
            1 => Migration::Rebuild,
            2 if dev.status.get() & DEV_VERIFY_AND_FIX != 0 => Migration::Resync,
            2 => Migration::Verify,
            _ => Migration::Reshape,
        });
        let unsynced = dev.dirty & RAIDVOL_DIRTY != 0
            || state == IMSM_T_STATE_UNINITIALIZED
            || migration == Some(Migration::Resync);
        Some(Volume { name: ondisk::text(&dev.volume), size, migration, unsynced, map })
    }

    /// A map of a volume of `size` bytes, and its state.
    fn map(&self, end: &mut usize, size: u64) -> Option<(Map, u8)> {
        let map: ImsmMap = self.next(end)?;
        let mut members = Vec::new();
        for _ in 0..map.num_members {
            let order: U32 = self.next(end)?;
            members.push(DiskOrdinal {
                disk: usize::try_from(order.get() & 0x00ff_ffff).ok()?,
                rebuilding: order.get() & IMSM_ORD_REBUILD != 0,
            });
        }
        let level = if map.raid_level == 1 && members.len() != 2 { 10 } else { map.raid_level };
        let chunk = self.sectors(u64::from(map.blocks_per_strip.get()));
        let start = self.sectors(self.number(map.pba_of_lba0_lo, map.pba_of_lba0_hi));
        let stripes = self.number(map.num_data_stripes_lo, map.num_data_stripes_hi);
        let share = share(level, members.len() as u64, chunk, stripes, size);
        let failed = map.map_state == IMSM_T_STATE_FAILED;
        Some((Map { start, share, chunk, level, failed, members }, map.map_state))
    }

    /// The log of bad blocks, at the end; none where it cannot be one.
    fn bad(&self) -> Vec<(usize, u64, u64)> {
        let size = usize::try_from(self.head.bbm_log_size.get()).unwrap_or(usize::MAX);
        let log = self.bytes.len().checked_sub(size).map(|start| &self.bytes[start..]);
        let Some((head, entries)) = log.and_then(|log| log.split_at_checked(8)) else {
            return Vec::new();
        };
        if word(head) != BBM_LOG_SIGNATURE {
            return Vec::new();
        }
        let count = usize::try_from(word(&head[4..])).unwrap_or(usize::MAX);
        let entries = entries.chunks_exact(size_of::<BbmLogEntry>()).take(count);
        let read = entries.filter_map(|entry| BbmLogEntry::read_from_bytes(entry).ok());
        read.map(|entry| {
            let first = u64::from(entry.dw1.get()) << 16 | u64::from(entry.w1.get());
            let count = u64::from(entry.marked_count) + 1;
            let end = first.saturating_add(count);
            (usize::from(entry.disk_ordinal), self.sectors(first), self.sectors(end))
        })
        .collect()
    }
}

/// Bytes that a volume of `size` bytes takes on every disk, as mdadm computes them: the number of
/// its stripes counts, unless the volume has outgrown it.
fn share(level: u8, members: u64, chunk: u64, stripes: u64, size: u64) -> u64 {
    let (data, copies) = match level {
        0 => (members, 1),
        1 | 10 => (members / 2, 2),
        5 => (members.saturating_sub(1), 1),
        _ => (0, 1),
    };
    if data == 0 {
        return 0;
    }
    let share = stripes.saturating_mul(chunk).saturating_mul(copies);
    let slack = data * SLACK * 512;
    if share.saturating_mul(data).abs_diff(size) > slack { size / data } else { share }
}

impl Volume {
    /// The name that a message calls it by.
    pub fn short_name(&self) -> String {
        self.name.as_deref().unwrap_or("unnamed").replace('/', "-")
    }
}
