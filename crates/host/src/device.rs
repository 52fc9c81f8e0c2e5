//! A block device as an operating system lists it, whoever was asked.

pub mod lsblk;
pub mod nvme;
pub mod stat;
pub mod sysfs;
pub mod udev;
pub mod users;
use trueline_geom::audit::limits::{Limits, Shape};
use trueline_geom::base::finding::{self, Finding, Severity};
use trueline_geom::base::topology::{Grain, Topology, Why, is_whole};

/// One block device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Device {
    /// The kernel's name: `sda1`, `dm-0`.
    pub name: String,
    /// Where it is opened: `/dev/sda1`.
    pub path: String,
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Bytes.
    pub size: u64,
    /// What it is.
    pub kind: Kind,
    /// Its queue limits; a partition has its disk's, in its disk's addresses.
    pub limits: Limits,
    /// `alignment_offset` as reported for itself: a partition's in its own addresses.
    pub alignment_offset: Option<i64>,
    /// `discard_alignment` as reported for itself.
    pub discard_alignment: Option<u64>,
    /// Whether it refuses writes.
    pub read_only: bool,
    /// Whether its medium can be taken out.
    pub removable: bool,
    /// Model.
    pub model: Option<String>,
    /// Vendor.
    pub vendor: Option<String>,
    /// Firmware revision.
    pub revision: Option<String>,
    /// World wide identifier.
    pub wwid: Option<String>,
    /// NVMe namespace number.
    pub nsid: Option<u32>,
    /// What it stands on, by name; a partition's disk is in [`Kind::Partition`] instead.
    pub slaves: Vec<String>,
    /// What stands on it, by name, other than partitions.
    pub holders: Vec<String>,
    /// Where it is mounted; `[SWAP]` as `lsblk` says it.
    pub mountpoints: Vec<String>,
    /// What `lsblk`, udev or the mount table say stands on it.
    pub signs: Signs,
    /// Numbers listed for it that cannot be true.
    pub findings: Vec<Finding>,
}

/// What a device is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A drive.
    #[default]
    Disk,
    /// A slice of another device.
    Partition {
        /// That device.
        parent: String,
        /// Its number there.
        number: Option<u32>,
        /// First byte there; an old `lsblk` does not say.
        start: Option<u64>,
        /// Bytes of that device; 0 if unknown.
        whole: u64,
    },
    /// Device mapper: a logical volume, an encrypted volume, a path of many.
    Dm {
        /// `/dev/mapper/` name.
        name: Option<String>,
        /// Its prefix says who made it: `LVM-`, `CRYPT-LUKS2-`, `mpath-`.
        uuid: Option<String>,
    },
    /// Linux software RAID.
    Md {
        /// `raid5`.
        level: Option<String>,
        /// Bytes.
        chunk: Option<u64>,
        /// Members of a whole set.
        disks: Option<u32>,
        /// `1.2`.
        metadata: Option<String>,
        /// The members there are.
        members: Vec<Member>,
    },
    /// A file as a device.
    Loop {
        /// That file.
        backing_file: Option<String>,
        /// Its byte at which the device begins.
        offset: u64,
        /// Bytes; 0: to the end.
        sizelimit: u64,
    },
}

/// A member of an md set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Which.
    pub slot: u32,
    /// The device, by name.
    pub device: Option<String>,
    /// Its byte at which the set's data begin.
    pub offset: Option<u64>,
}

/// What somebody who looked says stands on a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// blkid's TYPE.
    pub fstype: Option<String>,
    /// Bytes of its blocks, where it is mounted here.
    pub block: Option<u64>,
    /// Of the file system.
    pub label: Option<String>,
    /// Of the file system.
    pub uuid: Option<String>,
    /// The partition table on it.
    pub pttype: Option<String>,
    /// What the table above calls it.
    pub parttype: Option<String>,
    /// Its name in the table above.
    pub partlabel: Option<String>,
}

impl Device {
    /// Logical sector in bytes; 512 if none is reported.
    pub fn sector(&self) -> u64 {
        if self.limits.logical_block_size > 0 { self.limits.logical_block_size } else { 512 }
    }

    /// Its first byte on its medium: of a partition, on its disk; of a loop, in its file; `None` for one that stands on others
    /// and so has no single place.
    pub fn medium_start(&self) -> Option<u64> {
        match &self.kind {
            Kind::Disk if self.slaves.is_empty() => Some(0),
            Kind::Partition { start, .. } => *start,
            Kind::Loop { offset, .. } => Some(*offset),
            _ => None,
        }
    }

    /// What the device is by its limits, in its own addresses, and what in them cannot be true. A partition's findings are
    /// its disk's: whoever lists both shows them once.
    pub fn topology(&self) -> (Topology, Vec<Finding>) {
        let (topology, mut findings) = self.of_limits();
        findings.extend(self.findings.iter().cloned());
        (topology, findings)
    }

    /// Where on its disk a partition may begin, by its own alignment; `None` where that is not listed either. Both are counted in the
    /// larger of `physical_block_size` and `minimum_io_size`.
    pub fn starts(&self) -> Option<Grain> {
        let limits = &self.limits;
        let (disk, own) = (u64::try_from(limits.alignment_offset).ok()?, u64::try_from(self.alignment_offset?).ok()?);
        Some(Grain::new(limits.minimum_io_size.max(limits.physical_block_size), disk)?.shift(own))
    }

    fn of_limits(&self) -> (Topology, Vec<Finding>) {
        match self.kind {
            Kind::Partition { start: Some(start), whole, .. } => {
                let (disk, findings) = self.limits.topology(whole);
                (disk.shift(start, self.size), findings)
            }
            // Only its own phase is known, as of any device over another.
            Kind::Partition { start: None, .. } => {
                let limits = Limits {
                    shape: Shape::Stacked,
                    alignment_offset: self.alignment_offset.unwrap_or_default(),
                    discard_alignment: self.discard_alignment.unwrap_or_default(),
                    ..self.limits.clone()
                };
                let (mut topology, mut findings) = limits.topology(self.size);
                if self.alignment_offset.is_none() {
                    topology.facts.retain(|fact| fact.why == Why::Logical);
                    let message = "where it starts is not listed, and neither is its alignment: not judged";
                    let fix = "list all columns: lsblk -OJb";
                    findings.push(Finding::new(&finding::BLIND, Severity::Warning, 0, message.into()).fix(fix));
                }
                (topology, findings)
            }
            _ => self.limits.topology(self.size),
        }
    }
}

/// Decides what the sizes of each device mean, when all are known.
pub(crate) fn settle(devices: &mut [Device]) {
    let shapes: Vec<Shape> = devices.iter().map(|d| shape(d, devices)).collect();
    for (device, shape) in devices.iter_mut().zip(shapes) {
        device.limits.shape = shape;
    }
    // A partition's are its disk's, whatever that is.
    for i in 0..devices.len() {
        if let Kind::Partition { parent, .. } = &devices[i].kind
            && let Some(shape) = devices.iter().find(|d| d.name == *parent).map(|d| d.limits.shape)
        {
            devices[i].limits.shape = shape;
        }
    }
}

fn shape(device: &Device, all: &[Device]) -> Shape {
    let (min, opt) = (device.limits.minimum_io_size, device.limits.optimal_io_size);
    let row_of = |chunk: u64| if opt > 0 && is_whole(opt, chunk) { opt } else { 0 };
    match &device.kind {
        // bcache and the like: a disk by name, over others.
        Kind::Disk if !device.slaves.is_empty() => Shape::Stacked,
        Kind::Disk | Kind::Partition { .. } | Kind::Loop { .. } => Shape::Drive,
        Kind::Md { level, chunk, disks, .. } => {
            let parity = match level.as_deref() {
                Some("raid0") => Some(0),
                Some("raid4" | "raid5") => Some(1),
                Some("raid6") => Some(2),
                // Copies and disks share no simple row: the kernel's own is taken.
                Some("raid10") => None,
                _ => return Shape::Stacked,
            };
            let chunk = chunk.unwrap_or(min);
            let data = parity.zip(*disks).and_then(|(parity, disks)| disks.checked_sub(parity)).map(u64::from);
            let row = data.map_or_else(|| row_of(chunk), |data| chunk.saturating_mul(data));
            Shape::Striped { chunk, row, parity: parity.is_some_and(|disks| disks > 0) }
        }
        Kind::Dm { .. } => {
            // A striped target sets both sizes itself; any other passes on those of what it stands on.
            let inherited = all.iter().any(|d| device.slaves.contains(&d.name) && d.limits.optimal_io_size == opt);
            let striped = !inherited && min > device.limits.physical_block_size && row_of(min) > min;
            if striped { Shape::Striped { chunk: min, row: opt, parity: false } } else { Shape::Stacked }
        }
    }
}
