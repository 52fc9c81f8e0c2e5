//! Intel's firmware RAID (IMSM: Matrix Storage, Rapid Storage, VROC): a member of a container.
//!
//! # On disk
//! One block of metadata, the same on all disks of a container: its first sector is the last but
//! one of the disk, the rest stands before that. It lists the disks by serial number, and up to a
//! handful of volumes, each with a map: first sector, chunk, and which disk has which place. A
//! volume with work under way has a second map. On disks of 4096-byte sectors all numbers count in
//! those.
//!
//! # Topology
//! What is on a member belongs to its volumes ([`crate::class::imsm`]), which begin at byte 0 of
//! it as a rule: a partition table there is a volume's.
//!
//! # Limits
//! The firmware looks at whole disks alone, and so it is here. Metadata of more than 64 KiB, or
//! with a wrong checksum, are recognised and not read.
//!
//! # Sources
//! mdadm `super-intel.c`; libblkid `superblocks/isw_raid.c`.

use super::{Data, Format, FormatKind, Inside, Sign};
use crate::mapping::raid::shape::RaidShape;
use crate::probe::Probe;
use mpb::{Damage, Mpb, Volume};

pub mod mpb;

/// The format, for the registry.
pub struct Imsm;

/// The kind that blkid calls `isw_raid_member`.
pub const KIND: FormatKind = FormatKind::new("isw_raid_member", &Imsm);

/// Layouts as md numbers them: left-asymmetric, and two near copies.
const ALGORITHM_LEFT_ASYMMETRIC: u32 = 0;
const TWO_NEAR: u32 = 0x102;

impl Format for Imsm {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: FormatKind, _block: Option<u64>) -> Option<Inside> {
        Some(Inside::Unknown(
            "a member of a firmware RAID: where its volumes begin is not known without reading it",
        ))
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        let (at, found) = mpb::find(probe)?;
        Some(sign(at, found))
    }
}

/// The sign that metadata with their signature at `at` are.
fn sign(at: u64, found: Result<Mpb, Damage>) -> Sign {
    let mut sign = Sign::new(KIND, at);
    let end = found.as_ref().map_or(at, |mpb| mpb.start);
    let volumes = found.iter().flat_map(|mpb| &mpb.volumes);
    let offset = volumes.map(|volume| volume.map.start).min().filter(|&first| first < end);
    let offset = offset.unwrap_or(0);
    sign.data = Some(Data { offset, length: Some(end - offset), plain: false });
    match found {
        Err(damage) => sign.inside = Inside::Unknown(damage.words()),
        Ok(mpb) => {
            sign.version = mpb.version;
            if mpb.volumes.is_empty() {
                sign.inside =
                    Inside::Unknown("a spare of a firmware RAID: nothing of it is in use");
            }
            sign.details.push(("disks", mpb.disks.len().to_string()));
            let volumes = mpb.volumes.iter().map(|volume| ("volume", volume.describe()));
            sign.details.extend(volumes);
        }
    }
    sign
}

impl Volume {
    /// The shape of the volume, as md would have it.
    pub fn shape(&self) -> RaidShape {
        let level = i32::from(self.map.level);
        let layout = match level {
            5 => ALGORITHM_LEFT_ASYMMETRIC,
            10 => TWO_NEAR,
            _ => 0,
        };
        // A map has room for 255 disks.
        let disks = u32::try_from(self.map.members.len()).unwrap_or(u32::MAX);
        RaidShape { level, layout, chunk: self.map.chunk, disks }
    }

    /// Its arrangement in a few words: `vol0: raid5 of 3 disks, chunks of 65536 bytes`.
    fn describe(&self) -> String {
        let shape = self.shape();
        let (name, level, disks) = (self.short_name(), shape.level_name(), shape.disks);
        match shape.level {
            1 => format!("{name}: {level} of {disks} disks"),
            _ => format!("{name}: {level} of {disks} disks, chunks of {} bytes", shape.chunk),
        }
    }
}
