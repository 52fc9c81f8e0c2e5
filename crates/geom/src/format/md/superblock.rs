//! Superblocks of md: both versions parsed into one value.

use crate::base::ondisk::{self, on_disk};
use crate::base::topology::round_down;
use crate::mapping::raid::shape::RaidShape;
use crate::probe::Probe;
use std::ops::Range;
use zerocopy::little_endian::{U16, U32, U64};

/// Magic number of both versions.
pub const MD_SB_MAGIC: u32 = 0xa92b_4efc;
const MD_RESERVED_BYTES: u64 = 64 << 10;
/// Bits of a disk's state in version 0.90, and of the set's.
const MD_DISK_FAULTY: u32 = 1 << 0;
const MD_DISK_ACTIVE: u32 = 1 << 1;
const MD_DISK_SYNC: u32 = 1 << 2;
const MD_DISK_WRITEMOSTLY: u32 = 1 << 9;
const MD_SB_CLEAN: u32 = 1 << 0;
/// Minor version of 0.90 that records a reshape.
const MINOR_RESHAPE: u32 = 91;
/// Disks that a 0.90 superblock has room for.
const MD_SB_DISKS: u32 = 27;

/// Optional features of version 1, by bit.
pub mod feature {
    /// A write-intent bitmap lies beside the superblock.
    pub const BITMAP: u32 = 1;
    /// A member that is being rebuilt: it has a role, and up to here the content.
    pub const RECOVERY_OFFSET: u32 = 2;
    /// A reshape is under way.
    pub const RESHAPE: u32 = 4;
    /// The bad-block log is not empty.
    pub const BAD_BLOCKS: u32 = 8;
    /// A member that is to take another's place.
    pub const REPLACEMENT: u32 = 16;
    /// The reshape goes from the end to the front.
    pub const RESHAPE_BACKWARDS: u32 = 32;
    /// The data move to another offset with the reshape.
    pub const NEW_OFFSET: u32 = 64;
    /// The set has a journal.
    pub const JOURNAL: u32 = 512;
    /// A log of partial parity lies where a bitmap would.
    pub const PPL: u32 = 1024;
    /// Several such logs do.
    pub const MULTIPLE_PPLS: u32 = 2048;
    /// The layout of a RAID0 of several zones is recorded.
    pub const RAID0_LAYOUT: u32 = 4096;
    /// All features that are known here.
    pub const ALL: u32 = 8191;
}

/// Flag of a device: read from only where no other copy is left.
const WRITE_MOSTLY: u8 = 1;
/// Roles from here on are none: journal, faulty, spare.
const ROLE_JOURNAL: u16 = 0xfffd;
const ROLE_FAULTY: u16 = 0xfffe;
const ROLE_SPARE: u16 = 0xffff;
/// Largest number of roles beside a version 1 superblock, in its 4096 bytes.
const MOST_ROLES: u32 = (4096 - 256) / 2;
/// Largest bad-block log that is read, in bytes; mdadm makes logs of 4096.
const MOST_LOG: u64 = 64 << 10;

on_disk! {
    /// On-disk superblock of version 1, `struct mdp_superblock_1`.
    struct Mdp1 of 256 bytes {
          0 => magic: U32,
          4 => major_version: U32,
          8 => feature_map: U32,
         12 => pad0: U32,
         16 => set_uuid: [u8; 16],
         32 => set_name: [u8; 32],
         64 => ctime: U64,
         72 => level: U32,
         76 => layout: U32,
         80 => size: U64,
         88 => chunksize: U32,
         92 => raid_disks: U32,
         96 => bitmap_offset: U32,
        100 => new_level: U32,
        104 => reshape_position: U64,
        112 => delta_disks: U32,
        116 => new_layout: U32,
        120 => new_chunk: U32,
        124 => new_offset: U32,
        128 => data_offset: U64,
        136 => data_size: U64,
        144 => super_offset: U64,
        152 => recovery_offset: U64,
        160 => dev_number: U32,
        164 => cnt_corrected_read: U32,
        168 => device_uuid: [u8; 16],
        184 => devflags: u8,
        185 => bblog_shift: u8,
        186 => bblog_size: U16,
        188 => bblog_offset: U32,
        192 => utime: U64,
        200 => events: U64,
        208 => resync_offset: U64,
        216 => sb_csum: U32,
        220 => max_dev: U32,
        224 => pad3: [u8; 32],
    }
}

/// A reshape under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reshape {
    /// Byte of the set up to which, or from which on, it is done.
    pub position: u64,
    /// True if it goes from the end to the front.
    pub backwards: bool,
    /// The shape that the set had before.
    pub old: RaidShape,
    /// First byte of the data on this member in the new shape.
    pub data_offset: u64,
}

/// Role of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Member in use, with its number from 0.
    Active(u32),
    /// Member that waits for another to fail.
    Spare,
    /// Member that failed or was removed.
    Faulty,
    /// Journal of a set with parity.
    Journal,
}

/// Knowledge that one member's superblock has of itself and of its set.
#[derive(Clone, Debug)]
pub struct Superblock {
    /// Byte of the member at which it stands.
    pub at: u64,
    /// Version, as mdadm prints it: `1.2`, `0.90.0`.
    pub version: String,
    /// Identity of the set.
    pub uuid: [u8; 16],
    /// Name with the host's before it; `None` in version 0.90, and where it has none.
    pub name: Option<String>,
    /// Minor number of the device, which is the name of a 0.90 set.
    pub minor: u32,
    /// Identity of this member: its UUID, in 0.90 its number.
    pub device: [u8; 16],
    /// Place of this member in tables of roles.
    pub number: u32,
    /// Shape of the set; of one that is being reshaped, the new one.
    pub shape: RaidShape,
    /// Reshape that is under way.
    pub reshape: Option<Reshape>,
    /// Bytes that the set uses of every member; 0 if the members decide.
    pub size: u64,
    /// First byte of the data; `None` past 2^64.
    pub data_offset: Option<u64>,
    /// Bytes of data that this member has room for.
    pub room: Option<u64>,
    /// Updates of the superblock so far.
    pub events: u64,
    /// Role of this member.
    pub role: Role,
    /// Bytes of the data up to which this member is rebuilt; `u64::MAX` for one that is in sync.
    pub recovered: u64,
    /// Features in use ([`feature`]).
    pub features: u32,
    /// True if the set was stopped in order, so that its copies and its parity agree.
    pub clean: bool,
    /// True if it is read only where no other copy is left.
    pub write_mostly: bool,
    /// Numbers of the members that have a role, as this member knows them.
    pub active: Vec<u32>,
    /// First byte on the member, and length, of stretches that could not be read or written.
    pub bad: Vec<(u64, u64)>,
    /// Checksum that is recorded.
    pub sum: u32,
    /// Checksum of what was read; `None` if part of it could not be.
    pub computed: Option<u32>,
}

/// The superblock on a provider, the first in the order 0.90, 1.0, 1.1, 1.2.
pub fn find(probe: &Probe<'_>) -> Option<Superblock> {
    let length = probe.length();
    let at = round_down(length, MD_RESERVED_BYTES).checked_sub(MD_RESERVED_BYTES);
    at.filter(|&at| probe.reaches(at))
        .and_then(|at| version_0(probe, at))
        .or_else(|| find_version_1(probe))
}

/// The superblock of version 1 on a provider, which records its own place.
pub fn find_version_1(probe: &Probe<'_>) -> Option<Superblock> {
    let at_1_0 = round_down(probe.length(), 4096).checked_sub(8192);
    at_1_0
        .and_then(|at| version_1(probe, at, "1.0"))
        .or_else(|| version_1(probe, 0, "1.1"))
        .or_else(|| version_1(probe, 4096, "1.2"))
}

/// Words of a 0.90 superblock (`mdp_super_t`), by their numbers.
mod word {
    pub(super) const MINOR_VERSION: usize = 2;
    pub(super) const PATCH_VERSION: usize = 3;
    pub(super) const SET_UUID0: usize = 5;
    pub(super) const LEVEL: usize = 7;
    pub(super) const SIZE: usize = 8;
    pub(super) const RAID_DISKS: usize = 10;
    pub(super) const MD_MINOR: usize = 11;
    pub(super) const SET_UUID1: usize = 13;
    pub(super) const STATE: usize = 33;
    pub(super) const SB_CSUM: usize = 38;
    pub(super) const EVENTS: usize = 39;
    pub(super) const RESHAPE_POSITION: usize = 44;
    pub(super) const NEW_LEVEL: usize = 46;
    pub(super) const DELTA_DISKS: usize = 47;
    pub(super) const NEW_LAYOUT: usize = 48;
    pub(super) const NEW_CHUNK: usize = 49;
    pub(super) const LAYOUT: usize = 64;
    pub(super) const CHUNK_SIZE: usize = 65;
    /// Descriptors of 32 words: number, major, minor, raid_disk, state.
    pub(super) const DISKS: usize = 128;
    pub(super) const THIS_DISK: usize = 992;
    pub(super) const ALL: usize = 1024;
}

/// A superblock of version 0.90 at `at`, in the byte order of the machine that wrote it.
fn version_0(probe: &Probe<'_>, at: u64) -> Option<Superblock> {
    // The magic first: every provider is asked, and a sector is less than a superblock.
    let magic: U32 = probe.read(at)?;
    let big = magic.get() == MD_SB_MAGIC.swap_bytes();
    if magic.get() != MD_SB_MAGIC && !big {
        return None;
    }
    let words: [U32; word::ALL] = probe.read(at)?;
    let get = |at: usize| if big { words[at].get().swap_bytes() } else { words[at].get() };
    // A number of two words has its high one first on a big-endian machine.
    let long = |at: usize| {
        let (first, second) = (u64::from(get(at)), u64::from(get(at + 1)));
        if big { first << 32 | second } else { second << 32 | first }
    };
    let size = u64::from(get(word::SIZE)) << 10;
    at.checked_sub(size)?;
    let minor = get(word::MINOR_VERSION);
    // Before 0.90 a set had one word of identity.
    let identity = [word::SET_UUID0, word::SET_UUID1, word::SET_UUID1 + 1, word::SET_UUID1 + 2];
    let mut uuid = [0; 16];
    let known = if minor >= 90 { 4 } else { 1 };
    for (to, from) in uuid.chunks_exact_mut(4).zip(identity).take(known) {
        to.copy_from_slice(&get(from).to_be_bytes());
    }
    let state = |descriptor: usize| get(descriptor + 4);
    let number = get(word::THIS_DISK);
    let descriptor = |nth: u32| word::DISKS + nth as usize * 32;
    let here = state(word::THIS_DISK);
    let role = if here & MD_DISK_FAULTY != 0 {
        Role::Faulty
    } else if here & (MD_DISK_SYNC | MD_DISK_ACTIVE) != 0 {
        Role::Active(get(word::THIS_DISK + 3))
    } else {
        Role::Spare
    };
    let shape = RaidShape {
        level: get(word::LEVEL).cast_signed(),
        layout: get(word::LAYOUT),
        chunk: u64::from(get(word::CHUNK_SIZE)),
        disks: get(word::RAID_DISKS),
    };
    let delta = get(word::DELTA_DISKS).cast_signed();
    let reshaping = minor >= MINOR_RESHAPE;
    let new = RaidShape {
        level: get(word::NEW_LEVEL).cast_signed(),
        layout: get(word::NEW_LAYOUT),
        chunk: u64::from(get(word::NEW_CHUNK)),
        ..shape
    };
    let reshape = Reshape {
        position: long(word::RESHAPE_POSITION).saturating_mul(512),
        backwards: delta < 0,
        old: RaidShape { disks: shape.disks.wrapping_add_signed(delta.wrapping_neg()), ..shape },
        data_offset: 0,
    };
    let mut device = [0; 16];
    device[12..].copy_from_slice(&number.to_be_bytes());
    Some(Superblock {
        at,
        version: format!("0.{minor}.{}", get(word::PATCH_VERSION)),
        uuid,
        name: None,
        minor: get(word::MD_MINOR),
        device,
        number,
        shape: if reshaping { new } else { shape },
        reshape: reshaping.then_some(reshape),
        size,
        data_offset: Some(0),
        // Levels that use all of each member record no size.
        room: Some(at),
        events: long(word::EVENTS),
        role,
        recovered: if here & MD_DISK_SYNC != 0 { u64::MAX } else { 0 },
        features: 0,
        clean: get(word::STATE) & MD_SB_CLEAN != 0,
        write_mostly: here & MD_DISK_WRITEMOSTLY != 0,
        active: (0..MD_SB_DISKS).filter(|&n| state(descriptor(n)) & MD_DISK_SYNC != 0).collect(),
        bad: Vec::new(),
        sum: get(word::SB_CSUM),
        computed: Some(folded((0..word::ALL).filter(|&n| n != word::SB_CSUM).map(get))),
    })
}

/// The sum of 32-bit words, its carries added once.
fn folded(words: impl Iterator<Item = u32>) -> u32 {
    let sum = words.fold(0u64, |sum, word| sum.wrapping_add(u64::from(word)));
    let [a, b, c, d, e, f, g, h] = sum.to_le_bytes();
    u32::from_le_bytes([a, b, c, d]).wrapping_add(u32::from_le_bytes([e, f, g, h]))
}

/// A superblock of version 1 at `at`.
fn version_1(probe: &Probe<'_>, at: u64, version: &str) -> Option<Superblock> {
    let sb: Mdp1 = probe.read(at)?;
    let here = sb.super_offset.get().checked_mul(512) == Some(at);
    if sb.magic.get() != MD_SB_MAGIC || sb.major_version.get() != 1 || !here {
        return None;
    }
    let bytes = |sectors: U64| sectors.get().checked_mul(512);
    let features = sb.feature_map.get();
    let has = |bit: u32| features & bit != 0;
    let count = sb.max_dev.get().min(MOST_ROLES);
    let whole = probe.bytes(at, 256 + count as usize * 2);
    let roles: Vec<u16> = whole.as_deref().map_or(Vec::new(), |whole| {
        whole[256..].chunks_exact(2).map(|role| u16::from_le_bytes([role[0], role[1]])).collect()
    });
    let own = roles.get(sb.dev_number.get() as usize).copied().or_else(|| {
        // The count may be wrong; the role is where its number says.
        let place = u64::from(sb.dev_number.get()) * 2 + 256;
        let role: Option<U16> = if place < 4096 { probe.read(at + place) } else { None };
        role.map(U16::get)
    });
    let role = match own {
        None | Some(ROLE_SPARE) => Role::Spare,
        Some(ROLE_FAULTY) => Role::Faulty,
        Some(ROLE_JOURNAL) => Role::Journal,
        Some(role) => Role::Active(u32::from(role)),
    };
    let sector = |n: U32| u64::from(n.get()) * 512;
    let shape = RaidShape {
        level: sb.level.get().cast_signed(),
        layout: sb.layout.get(),
        chunk: sector(sb.chunksize),
        disks: sb.raid_disks.get(),
    };
    let data_offset = bytes(sb.data_offset);
    let delta = sb.delta_disks.get().cast_signed();
    let moved = i64::from(sb.new_offset.get().cast_signed()) * 512;
    let reshape = has(feature::RESHAPE).then(|| Reshape {
        position: bytes(sb.reshape_position).unwrap_or(u64::MAX),
        backwards: delta < 0 || delta == 0 && has(feature::RESHAPE_BACKWARDS),
        old: RaidShape { disks: shape.disks.wrapping_add_signed(delta.wrapping_neg()), ..shape },
        data_offset: data_offset
            .and_then(|at| at.checked_add_signed(if has(feature::NEW_OFFSET) { moved } else { 0 }))
            .unwrap_or(u64::MAX),
    });
    let new = RaidShape {
        level: sb.new_level.get().cast_signed(),
        layout: sb.new_layout.get(),
        chunk: sector(sb.new_chunk),
        ..shape
    };
    let active = (0..).zip(&roles).filter(|(_, role)| **role < ROLE_JOURNAL).map(|(n, _)| n);
    Some(Superblock {
        at,
        version: version.to_string(),
        uuid: sb.set_uuid,
        name: ondisk::text(&sb.set_name),
        minor: 0,
        device: sb.device_uuid,
        number: sb.dev_number.get(),
        shape: if reshape.is_some() { new } else { shape },
        reshape,
        size: bytes(sb.size).unwrap_or(u64::MAX),
        data_offset,
        room: bytes(sb.data_size),
        events: sb.events.get(),
        role,
        recovered: if has(feature::RECOVERY_OFFSET) {
            bytes(sb.recovery_offset).unwrap_or(0)
        } else {
            u64::MAX
        },
        features,
        clean: sb.resync_offset.get() == u64::MAX,
        write_mostly: sb.devflags & WRITE_MOSTLY != 0,
        active: active.collect(),
        bad: if has(feature::BAD_BLOCKS) { bad_blocks(probe, at, &sb) } else { Vec::new() },
        sum: sb.sb_csum.get(),
        computed: whole.filter(|_| sb.max_dev.get() <= MOST_ROLES).map(|whole| sum_1(&whole)),
    })
}

/// The checksum of a version 1 superblock with its roles.
fn sum_1(whole: &[u8]) -> u32 {
    let words = whole.chunks(4).enumerate().filter(|(nth, _)| nth * 4 != 216);
    folded(words.map(|(_, word)| {
        let mut all = [0; 4];
        all[..word.len()].copy_from_slice(word);
        u32::from_le_bytes(all)
    }))
}

/// The bad-block log of a member: first byte on the member, and length in bytes.
fn bad_blocks(probe: &Probe<'_>, at: u64, sb: &Mdp1) -> Vec<(u64, u64)> {
    let offset = i64::from(sb.bblog_offset.get().cast_signed()) * 512;
    let length = u64::from(sb.bblog_size.get()) * 512;
    let log = at
        .checked_add_signed(offset)
        .and_then(|at| probe.bytes(at, usize::try_from(length.min(MOST_LOG)).ok()?));
    let entries = log.as_deref().unwrap_or_default().chunks_exact(8);
    let words = entries.filter_map(|e| Some(u64::from_le_bytes(e.try_into().ok()?)));
    let unit = 512u64.checked_shl(u32::from(sb.bblog_shift)).unwrap_or(0);
    words
        .take_while(|&entry| entry != u64::MAX)
        .filter(|&entry| entry != 0)
        .map(|entry| ((entry >> 10).saturating_mul(unit), (entry & 0x3ff).saturating_mul(unit)))
        .collect()
}

impl Superblock {
    /// True if this member is in use and has the content from first byte to last.
    pub fn is_in_sync(&self) -> bool {
        matches!(self.role, Role::Active(_)) && self.recovered == u64::MAX
    }

    /// The bytes at the end of a provider that a superblock of version 0.90 and its data take.
    pub fn tail(&self) -> Option<Range<u64>> {
        let start = self.at.checked_sub(self.size).filter(|_| self.is_first_version())?;
        Some(start..self.at.checked_add(MD_RESERVED_BYTES)?)
    }

    /// True for version 0.90.
    pub fn is_first_version(&self) -> bool {
        self.version.starts_with("0.")
    }

    /// The name of the set without its host.
    pub fn short_name(&self) -> String {
        if self.is_first_version() {
            return self.minor.to_string();
        }
        let name = self.name.as_deref().unwrap_or_default();
        let short = name.split_once(':').map_or(name, |(_, name)| name);
        if short.is_empty() {
            return self.uuid[..4].iter().map(|byte| format!("{byte:02x}")).collect();
        }
        short.replace('/', "-")
    }
}
