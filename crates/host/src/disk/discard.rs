//! Discards of a block device.
//!
//! # Limits
//! What a discarded range reads as is not said. A device that knows no discard refuses it.
//!
//! # Sources
//! Linux `include/uapi/linux/fs.h` (`BLKDISCARD`), `block/ioctl.c` (`blk_ioctl_discard`).

#![allow(unsafe_code, reason = "an ioctl that no safe wrapper has")]

use rustix::fd::AsFd;
use rustix::io;
use rustix::ioctl::{Direction, Opcode, Setter, opcode};

/// Number of the ioctl, `_IO(0x12, 119)`.
const BLKDISCARD: Opcode = opcode::from_components(Direction::None, 0x12, 119, 0);

/// Discards `length` bytes of a block device from `offset` on, both in whole sectors.
pub(crate) fn discard(device: impl AsFd, offset: u64, length: u64) -> io::Result<()> {
    // SAFETY: BLKDISCARD reads two numbers of 64 bits, first byte and length.
    unsafe { rustix::ioctl::ioctl(device, Setter::<BLKDISCARD, [u64; 2]>::new([offset, length])) }
}
