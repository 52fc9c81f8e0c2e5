//! Telling the kernel that a disk has another table now.
//!
//! # Sources
//! Linux `block/ioctl.c` (`BLKRRPART`), `include/uapi/linux/fs.h`.

#![allow(unsafe_code, reason = "an ioctl that no safe wrapper has")]

use rustix::fs::{Mode, OFlags};
use rustix::io;
use rustix::ioctl::{NoArg, Opcode, opcode};
use std::path::Path;

/// `_IO(0x12, 95)`.
const BLKRRPART: Opcode = opcode::none(0x12, 95);

/// What the kernel made of a new table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reread {
    /// It has read it.
    Done,
    /// A partition is in use, so it stays with the old table.
    Busy,
    /// It reads no tables of this device: a loop device, or a kernel built without.
    Never,
}

/// Has the kernel read the partition table of the block device at `path` again.
pub fn reread(path: &Path) -> Reread {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let Ok(fd) = io::retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty())) else { return Reread::Never };
    // SAFETY: BLKRRPART takes no argument and touches no memory of this process.
    match unsafe { rustix::ioctl::ioctl(&fd, NoArg::<BLKRRPART>::new()) } {
        Ok(()) => Reread::Done,
        Err(io::Errno::BUSY) => Reread::Busy,
        Err(_) => Reread::Never,
    }
}
