//! An image on a simulated drive: the image, then zeros up to the end of the drive.
//!
//! A container is a file that the drive holds, and no disk by itself: it ends where it ends, so
//! that a footer is found, and the drive reads its last sector whole.
//!
//! # Limits
//! What lies behind the image has no room: it reads as zeros, and a write there gets
//! [`Errno::NoSpace`]. Neither is the image grown behind its owner's back, nor is anything kept
//! that would be lost at the end.

use crate::failure::Reason;
use crate::target::follow;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::{Content, Properties, Run, Store};
use trueline_geom::base::topology::is_whole;
use trueline_sim::model::Model;

/// A store whose first bytes are an image's; the rest reads as zeros.
pub(in crate::target) struct Image {
    medium: Box<dyn Store>,
    length: u64,
}

impl Image {
    /// The bytes of `medium`, called `name`, on a drive. `whole`: it is as long as the drive, not
    /// as the medium, unless that is a container. `advice` names the drive with the size it is
    /// given.
    ///
    /// Errors: a medium that is longer than the drive; a disk of no whole sectors.
    pub(in crate::target) fn new(
        mut medium: Box<dyn Store>,
        name: &str,
        model: &Model,
        whole: bool,
        advice: &dyn Fn(u64) -> String,
    ) -> Result<Image, Reason> {
        let (has, size) = (medium.length(), model.size);
        if has > size {
            return Err(Reason(format!(
                "{name} has {has} bytes and the drive {size}: give the drive a size: {}",
                advice(has)
            )));
        }
        let sector = model.logical_block_size;
        if follow::container_in(&mut medium, sector, None).is_some() {
            return Ok(Image { medium, length: has });
        }
        let length = if whole { size } else { has };
        if !is_whole(length, sector) {
            return Err(Reason(format!(
                "{name} has {length} bytes: not whole sectors of {sector}"
            )));
        }
        Ok(Image { medium, length })
    }

    /// Number of bytes that the image has of the `length` at `offset`. Errors: a range past the end
    /// of the drive.
    fn held(&self, offset: u64, length: u64) -> Result<u64, Errno> {
        let end =
            offset.checked_add(length).filter(|&end| end <= self.length).ok_or(Errno::Range)?;
        Ok(end.min(self.medium.length()).saturating_sub(offset))
    }

    /// Refuses a range that the image does not have whole.
    fn require_held(&self, offset: u64, length: u64) -> Result<(), Errno> {
        if self.held(offset, length)? == length { Ok(()) } else { Err(Errno::NoSpace) }
    }

    /// The part of `buffer` that the image has; the rest is filled with zeros.
    fn part<'a>(&self, buffer: &'a mut [u8], offset: u64) -> Result<&'a mut [u8], Errno> {
        let held = self.held(offset, buffer.len() as u64)?;
        let (held, zeros) = buffer.split_at_mut(usize::try_from(held).map_err(|_| Errno::Range)?);
        zeros.fill(0);
        Ok(held)
    }
}

impl Store for Image {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let held = self.part(buffer, offset)?;
        if held.is_empty() { Ok(()) } else { self.medium.read_at(held, offset) }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.require_held(offset, bytes.len() as u64)?;
        self.medium.write_at(bytes, offset)
    }

    fn zero(&self, offset: u64, length: u64) -> Result<(), Errno> {
        // Bytes behind the image are zero already.
        match self.held(offset, length)? {
            0 => Ok(()),
            held => self.medium.zero(offset, held),
        }
    }

    fn start_writeback(&self, offset: u64, length: u64) {
        self.medium.start_writeback(offset, length);
    }

    fn prefetch(&self, offset: u64, length: u64) {
        self.medium.prefetch(offset, length);
    }

    fn flush(&self) -> Result<(), Errno> {
        self.medium.flush()
    }

    fn try_read(&self, buffer: &mut [u8], offset: u64) -> Result<bool, Errno> {
        let held = self.part(buffer, offset)?;
        if held.is_empty() { Ok(true) } else { self.medium.try_read(held, offset) }
    }

    fn properties(&self) -> Properties {
        self.medium.properties()
    }

    fn write_through(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.require_held(offset, bytes.len() as u64)?;
        self.medium.write_through(bytes, offset)
    }

    fn discard(&self, offset: u64, length: u64) -> Result<(), Errno> {
        match self.held(offset, length)? {
            0 => Ok(()),
            held => self.medium.discard(offset, held),
        }
    }

    fn try_zero(&self, offset: u64, length: u64, keep: bool) -> Result<(), Errno> {
        match self.held(offset, length)? {
            0 => Ok(()),
            held => self.medium.try_zero(offset, held, keep),
        }
    }

    fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        match self.held(offset, length)? {
            0 => Ok(Run { content: Content::Hole, length }),
            held => self.medium.extent(offset, held),
        }
    }
}
