//! A request to the kernel to read a disk's partition table again.
//!
//! # Sources
//! Linux `block/ioctl.c` (`BLKRRPART`), `include/uapi/linux/fs.h`.

#![allow(unsafe_code, reason = "an ioctl that no safe wrapper has")]

use rustix::fs::{Mode, OFlags};
use rustix::io;
use rustix::ioctl::{NoArg, Opcode, opcode};
use std::path::Path;

/// The request `_IO(0x12, 95)`.
const BLKRRPART: Opcode = opcode::none(0x12, 95);

/// The kernel's response to a new table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reread {
    /// The kernel has read the table.
    Done,
    /// A partition is in use, so the old table stays.
    Busy,
    /// The kernel reads no tables of this device: a loop device, or a kernel built without them.
    Never,
}

/// Makes the kernel read the partition table of the block device at `path` again.
pub fn reread(path: &Path) -> Reread {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let Ok(fd) = io::retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty())) else {
        return Reread::Never;
    };
    // SAFETY: BLKRRPART takes no argument and touches no memory of this process.
    match unsafe { rustix::ioctl::ioctl(&fd, NoArg::<BLKRRPART>::new()) } {
        Ok(()) => Reread::Done,
        Err(io::Errno::BUSY) => Reread::Busy,
        Err(_) => Reread::Never,
    }
}
