//! A block device as an operating system lists it, independent of the source of the list.

pub mod lsblk;
pub mod nvme;
pub mod stat;
pub mod sysfs;
pub mod udev;
pub mod users;
use trueline_geom::audit::limits::{Limits, Stacking};
use trueline_geom::base::finding::{self, Finding, Severity};
use trueline_geom::base::topology::{Grain, Topology, Why, is_whole};

/// One block device of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Device {
    /// The kernel's name: `sda1`, `dm-0`.
    pub name: String,
    /// The path of its node: `/dev/sda1`.
    pub path: String,
    /// The major number of the device.
    pub major: u32,
    /// The minor number of the device.
    pub minor: u32,
    /// The size of the device in bytes.
    pub size: u64,
    /// The kind of the device, with its particulars.
    pub kind: DeviceKind,
    /// The queue limits. A partition has its disk's, in its disk's addresses.
    pub limits: Limits,
    /// The reported `alignment_offset` in bytes: a partition's in its own addresses.
    pub alignment_offset: Option<i64>,
    /// The reported `discard_alignment` in bytes, likewise.
    pub discard_alignment: Option<u64>,
    /// True if the device refuses writes.
    pub read_only: bool,
    /// True if the medium is removable.
    pub removable: bool,
    /// The model name of the drive.
    pub model: Option<String>,
    /// The vendor name of the drive.
    pub vendor: Option<String>,
    /// The revision of the drive's firmware.
    pub revision: Option<String>,
    /// The world wide identifier of the drive.
    pub wwid: Option<String>,
    /// The serial number of the drive, as NVMe and SCSI's page 80h of vital product data tell it.
    pub serial: Option<String>,
    /// The number of an NVMe namespace.
    pub nsid: Option<u32>,
    /// The names of devices beneath it; a partition's disk is in [`DeviceKind::Partition`] instead.
    pub slaves: Vec<String>,
    /// The names of devices above it, other than partitions.
    pub holders: Vec<String>,
    /// Mount points; `[SWAP]` for swap, as `lsblk` prints it.
    pub mountpoints: Vec<String>,
    /// The contents that `lsblk`, udev or the mount table report.
    pub signs: Signs,
    /// Listed numbers that cannot be true.
    pub findings: Vec<Finding>,
}

/// The kind of a block device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceKind {
    /// A whole drive, no partition.
    #[default]
    Disk,
    /// A slice of another device.
    Partition {
        /// The name of that device.
        parent: String,
        /// Its partition number there.
        number: Option<u32>,
        /// Its first byte on that device; an old `lsblk` does not report it.
        start: Option<u64>,
        /// The size of that device in bytes; 0 if unknown.
        whole: u64,
    },
    /// A device-mapper device: a logical volume, an encrypted volume, a multipath device.
    Dm {
        /// The name below `/dev/mapper/`.
        name: Option<String>,
        /// Its UUID, whose prefix names the maker: `LVM-`, `CRYPT-LUKS2-`, `mpath-`.
        uuid: Option<String>,
    },
    /// A set of Linux software RAID.
    Md {
        /// The RAID level: `raid5`.
        level: Option<String>,
        /// The chunk size in bytes.
        chunk: Option<u64>,
        /// Members of a complete set.
        disks: Option<u32>,
        /// The version of the metadata: `1.2`.
        metadata: Option<String>,
        /// The members that are present.
        members: Vec<Member>,
    },
    /// A loop device over a file.
    Loop {
        /// The path of that file.
        backing_file: Option<String>,
        /// The byte of the file at which the device begins.
        offset: u64,
        /// The most bytes of the device; 0: to the end of the file.
        sizelimit: u64,
    },
}

/// A member of an md set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The slot in the set, from 0.
    pub slot: u32,
    /// The name of the member's device.
    pub device: Option<String>,
    /// The byte of the device at which the set's data begin.
    pub offset: Option<u64>,
}

/// The contents of a device as `lsblk`, udev or the mount table report them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// The file system, as blkid's TYPE.
    pub fstype: Option<String>,
    /// The block size of a mounted file system in bytes.
    pub block: Option<u64>,
    /// The label of the file system.
    pub label: Option<String>,
    /// The UUID of the file system.
    pub uuid: Option<String>,
    /// The type of a partition table on the device.
    pub pttype: Option<String>,
    /// The partition's type in the table above.
    pub parttype: Option<String>,
    /// The partition's name in the table above.
    pub partlabel: Option<String>,
}

impl Device {
    /// The logical sector size in bytes; 512 if none is reported.
    pub fn sector(&self) -> u64 {
        if self.limits.logical_block_size > 0 { self.limits.logical_block_size } else { 512 }
    }

    /// The first byte on its medium: of a partition on its disk, of a loop device in its file.
    /// `None` for a device over others, which has no single place.
    pub fn medium_start(&self) -> Option<u64> {
        match &self.kind {
            DeviceKind::Disk if self.slaves.is_empty() => Some(0),
            DeviceKind::Partition { start, .. } => *start,
            DeviceKind::Loop { offset, .. } => Some(*offset),
            _ => None,
        }
    }

    /// The boundaries of the device by its limits, in its own addresses, and the limits that cannot
    /// be true. A partition's findings are its disk's: a list of both shows them once.
    pub fn topology(&self) -> (Topology, Vec<Finding>) {
        let (topology, mut findings) = self.of_limits();
        findings.extend(self.findings.iter().cloned());
        (topology, findings)
    }

    /// The possible starts of a partition on its disk, by its own alignment; `None` if that is not
    /// listed either. Both are multiples of the larger of `physical_block_size` and
    /// `minimum_io_size`.
    pub fn starts(&self) -> Option<Grain> {
        let limits = &self.limits;
        let (disk, own) = (
            u64::try_from(limits.alignment_offset).ok()?,
            u64::try_from(self.alignment_offset?).ok()?,
        );
        Some(Grain::new(limits.minimum_io_size.max(limits.physical_block_size), disk)?.shift(own))
    }

    fn of_limits(&self) -> (Topology, Vec<Finding>) {
        match self.kind {
            DeviceKind::Partition { start: Some(start), whole, .. } => {
                let (disk, findings) = self.limits.topology(whole);
                (disk.shift(start, self.size), findings)
            }
            // Only its own phase is known, as with any device over another.
            DeviceKind::Partition { start: None, .. } => {
                let limits = Limits {
                    shape: Stacking::Stacked,
                    alignment_offset: self.alignment_offset.unwrap_or_default(),
                    discard_alignment: self.discard_alignment.unwrap_or_default(),
                    ..self.limits.clone()
                };
                let (mut topology, mut findings) = limits.topology(self.size);
                if self.alignment_offset.is_none() {
                    topology.facts.retain(|fact| fact.why == Why::Logical);
                    let message =
                        "neither its start nor its alignment is listed, so it is not judged";
                    let fix = "list all columns: lsblk -OJb";
                    findings.push(
                        Finding::new(&finding::BLIND, Severity::Warning, 0, message.into())
                            .fix(fix),
                    );
                }
                (topology, findings)
            }
            _ => self.limits.topology(self.size),
        }
    }
}

/// Decides the meaning of each device's sizes, once all devices are known.
pub(crate) fn settle(devices: &mut [Device]) {
    let shapes: Vec<Stacking> = devices.iter().map(|d| shape(d, devices)).collect();
    for (device, shape) in devices.iter_mut().zip(shapes) {
        device.limits.shape = shape;
    }
    // A partition's limits are its disk's, whatever kind that is.
    for i in 0..devices.len() {
        if let DeviceKind::Partition { parent, .. } = &devices[i].kind
            && let Some(shape) = devices.iter().find(|d| d.name == *parent).map(|d| d.limits.shape)
        {
            devices[i].limits.shape = shape;
        }
    }
}

fn shape(device: &Device, all: &[Device]) -> Stacking {
    let (min, opt) = (device.limits.minimum_io_size, device.limits.optimal_io_size);
    let row_of = |chunk: u64| if opt > 0 && is_whole(opt, chunk) { opt } else { 0 };
    match &device.kind {
        // A disk by name, but over others, such as bcache.
        DeviceKind::Disk if !device.slaves.is_empty() => Stacking::Stacked,
        DeviceKind::Disk | DeviceKind::Partition { .. } | DeviceKind::Loop { .. } => {
            Stacking::Drive
        }
        DeviceKind::Md { level, chunk, disks, .. } => {
            let parity = match level.as_deref() {
                Some("raid0") => Some(0),
                Some("raid4" | "raid5") => Some(1),
                Some("raid6") => Some(2),
                // Copies and disks share no simple row, so the kernel's own is used.
                Some("raid10") => None,
                _ => return Stacking::Stacked,
            };
            let chunk = chunk.unwrap_or(min);
            let data = parity
                .zip(*disks)
                .and_then(|(parity, disks)| disks.checked_sub(parity))
                .map(u64::from);
            let row = data.map_or_else(|| row_of(chunk), |data| chunk.saturating_mul(data));
            Stacking::Striped { chunk, row, parity: parity.is_some_and(|disks| disks > 0) }
        }
        DeviceKind::Dm { .. } => {
            // A striped target sets both sizes itself; any other target inherits them from the
            // devices beneath.
            let inherited = all
                .iter()
                .any(|d| device.slaves.contains(&d.name) && d.limits.optimal_io_size == opt);
            let striped =
                !inherited && min > device.limits.physical_block_size && row_of(min) > min;
            if striped {
                Stacking::Striped { chunk: min, row: opt, parity: false }
            } else {
                Stacking::Stacked
            }
        }
    }
}
