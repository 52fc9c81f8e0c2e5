//! Reasons for which a volume is not read.

use crate::mapping::raid;
use std::fmt;

/// Reason for which a volume of a container is named and not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Reshape that is under way.
    Reshape,
    /// Attributes that mdadm does not serve.
    Attributes(u32),
    /// More disks lost than the volume can do without, as the metadata know it.
    Failed,
    /// Level, or number of disks, that no volume has.
    Level {
        /// Level as md counts.
        level: u8,
        /// Disks of the volume.
        disks: usize,
    },
    /// Layout that cannot be.
    Layout(raid::fault::Fault),
    /// Disk that the container does not have, or has in two places of the volume.
    Disk(usize),
    /// Length in bytes, and what the disks have room for.
    Size {
        /// Bytes of the volume.
        size: u64,
        /// Bytes that its map has.
        room: u64,
    },
    /// Volume that would end past the first byte of the metadata of a disk.
    Past {
        /// Byte after its last on a disk.
        end: u64,
        /// First byte of the metadata there.
        start: u64,
    },
    /// Number of disks that does not say which is which.
    Order {
        /// Disks that are here.
        here: usize,
        /// Disks that the metadata list.
        listed: usize,
    },
    /// Disk missing from a volume whose parity may not fit its data.
    Unsynced,
}

impl From<raid::fault::Fault> for Fault {
    fn from(fault: raid::fault::Fault) -> Fault {
        Fault::Layout(fault)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Reshape => f.write_str("a reshape of it is under way"),
            Fault::Attributes(bits) => {
                write!(f, "its container has attributes that are not known here: {bits:#x}")
            }
            Fault::Failed => f.write_str("more of its disks have failed than it can do without"),
            Fault::Level { level, disks } => {
                write!(f, "no volume of level {level} has {disks} disks")
            }
            Fault::Layout(fault) => fault.fmt(f),
            Fault::Disk(disk) => {
                write!(f, "disk {disk} of it is not in the container, or in it twice")
            }
            Fault::Size { size, room } => {
                write!(f, "it says that it has {size} bytes, and its disks have {room} for it")
            }
            Fault::Past { end, start } => {
                write!(f, "it would end at byte {end} of a disk, past the metadata at byte {start}")
            }
            Fault::Order { here, listed } => write!(
                f,
                "{here} disks are here where {listed} are listed, so it is not known which is which: name each disk once"
            ),
            Fault::Unsynced => f.write_str(
                "a disk is missing, and its parity may not fit its data: the volume was not stopped in order, or its parity was not made yet",
            ),
        }
    }
}

impl std::error::Error for Fault {}
