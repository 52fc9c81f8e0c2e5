//! The two files beneath an image: QEMU's protocol layer, `block/io.c`.

use super::up;
use crate::layer::{FLUSH, ask};
use crate::rig::Op;
use crate::streams::Ask;
use trueline_geom::base::error::Errno;
use trueline_geom::base::topology::{is_whole, round_down};

/// The unit in bytes in which QEMU knows the length of a file.
const SECTOR: u64 = 512;

/// Ranges of the image file that were made zero without a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zeroed {
    /// Requests (`fallocate` of a file, `BLKZEROOUT` of a device).
    pub ranges: u64,
    /// Bytes of all these ranges.
    pub bytes: u64,
}

/// The image file, and the requests that were made of it and of the backing file.
pub(super) struct ImageFile {
    /// The bytes in whose multiples requests are made.
    alignment: u64,
    /// The most bytes that the file may have.
    space: u64,
    /// The length of the file as QEMU knows it.
    pub(super) end: u64,
    /// True if it was written since the last flush.
    dirty: bool,
    pub(super) zeroed: Zeroed,
    log: Vec<Ask>,
}

impl ImageFile {
    pub(super) fn new(alignment: u64, space: u64) -> ImageFile {
        ImageFile { alignment, space, end: 0, dirty: false, zeroed: Zeroed::default(), log: vec![] }
    }

    /// Takes the requests that were made since it was last asked for them.
    pub(super) fn take_log(&mut self) -> Vec<Ask> {
        std::mem::take(&mut self.log)
    }

    /// Forgets what creating the image did: it is closed, and opened again.
    pub(super) fn reopen(&mut self) {
        self.log.clear();
        self.dirty = false;
        self.zeroed = Zeroed::default();
    }

    /// The range in whole units of the alignment around `length` bytes at `at`.
    fn padded(&self, at: u64, length: u64) -> (u64, u64) {
        (round_down(at, self.alignment), up(at.saturating_add(length), self.alignment))
    }

    /// Reads whole units of the alignment; past the end of the file there is nothing to read.
    pub(super) fn read(&mut self, at: u64, length: u64) {
        let (from, to) = self.padded(at, length);
        let there = up(self.end.saturating_sub(from), self.alignment);
        self.push_read(from, (to - from).min(there));
    }

    fn push_read(&mut self, at: u64, length: u64) {
        if length > 0 {
            self.log.push(ask(Op::Read, at, length));
        }
    }

    /// Writes whole units of the alignment; the first and the last are read first, where a part of
    /// them is kept (`bdrv_padding_rmw_read`): both at once if nothing lies between them.
    pub(super) fn write(&mut self, at: u64, length: u64) -> Result<(), Errno> {
        let (from, to) = self.padded(at, length);
        let unit = self.alignment;
        let (head, tail) = (!is_whole(at, unit), !is_whole(at + length, unit));
        let few = to - from <= if head && tail { 2 * unit } else { unit };
        if (head || tail) && few {
            self.read(from, to - from);
        } else {
            if head {
                self.read(from, unit);
            }
            if tail {
                self.read(to - unit, unit);
            }
        }
        self.extend(to)?;
        self.log.push(ask(Op::Write, from, to - from));
        Ok(())
    }

    /// Makes a range zero without writing it; false if it is not in whole units of the alignment,
    /// which would take a write.
    pub(super) fn zero(&mut self, at: u64, length: u64) -> Result<bool, Errno> {
        if !is_whole(at, self.alignment) || !is_whole(length, self.alignment) {
            return Ok(false);
        }
        self.extend(at + length)?;
        self.zeroed.ranges += 1;
        self.zeroed.bytes += length;
        Ok(true)
    }

    fn extend(&mut self, end: u64) -> Result<(), Errno> {
        if end > self.space {
            return Err(Errno::NoSpace);
        }
        self.end = self.end.max(up(end, SECTOR));
        self.dirty = true;
        Ok(())
    }

    /// Flushes the file, unless nothing was written since the last flush (`bdrv_co_flush`).
    pub(super) fn flush(&mut self) {
        if std::mem::take(&mut self.dirty) {
            self.log.push(FLUSH);
        }
    }

    /// Writes, and flushes (`bdrv_pwrite_sync`).
    pub(super) fn write_sync(&mut self, at: u64, length: u64) -> Result<(), Errno> {
        self.write(at, length)?;
        self.flush();
        Ok(())
    }

    /// Reads a backing file, of which there is nothing past the end.
    pub(super) fn read_backing(&mut self, backing: Backing, at: u64, length: u64) {
        let length = length.min(backing.length.saturating_sub(at));
        if length > 0 {
            let (from, to) = self.padded(at, length);
            self.push_read(backing.start + from, to - from);
        }
    }
}

/// A backing file: where it begins in the address space beneath, and its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backing {
    pub(super) start: u64,
    pub(super) length: u64,
}
