//! A store with another sector size than its own: a disk of 4096-byte sectors as one of 512, and
//! the reverse.
//!
//! A write that is not whole units of the store is a read-modify-write. It holds its units, against
//! every overlapping write, until they are written: otherwise two writes of neighbouring sectors
//! could read the same unit, and the one written back last would undo the other.
//!
//! # Limits
//! A request waits for earlier ones that overlap it, so none waits for ever. Reads do not wait: a
//! read during an overlapping write may return old or new data, as on every disk.

use crate::layer::held_ranges::{Hold, Ranges};
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::{Content, Properties, Run, Store, write_zeros};
use trueline_geom::base::topology::{is_whole, round_down, round_up};

/// A store in sectors of another size.
pub struct Sectored {
    below: Arc<dyn Store>,
    /// The unit of requests from above, in bytes.
    sector: u64,
    /// The unit of requests to the store, in bytes.
    block: u64,
    /// Writes in flight, in units of the store.
    ranges: Ranges,
}

/// A request extended to whole units of the store.
#[derive(Clone, Copy)]
struct Units {
    start: u64,
    end: u64,
    /// Bytes of the first unit before the request.
    before: usize,
    /// The length of all units in bytes.
    length: usize,
}

/// A write of whole units: bytes, offset.
type Write<'a> = dyn Fn(&[u8], u64) -> Result<(), Errno> + 'a;
/// A read of whole units, if they are cached: buffer, offset.
type Read<'a> = dyn Fn(&mut [u8], u64) -> Result<bool, Errno> + 'a;

impl Sectored {
    /// The store `below` in sectors of `sector` bytes; a rest at its end is left out. [`None`] if
    /// neither its unit is a multiple of the sector, nor the sector of its unit.
    pub fn new(below: Arc<dyn Store>, sector: u64) -> Option<Sectored> {
        let unit = below.properties().unit;
        let fits = sector > 0
            && unit > 0
            && (is_whole(unit, sector) || is_whole(sector, unit))
            && is_whole(below.length(), unit);
        fits.then(|| Sectored { below, sector, block: unit, ranges: Ranges::default() })
    }

    /// True if a request is whole units of the store.
    fn is_whole(&self, offset: u64, length: u64) -> bool {
        is_whole(offset, self.block) && is_whole(length, self.block)
    }

    /// The units of a request. It is an error if it is outside, or not whole sectors of the view.
    fn units(&self, offset: u64, length: u64) -> Result<Units, Errno> {
        if !is_whole(offset, self.sector) || !is_whole(length, self.sector) {
            return Err(Errno::Unaligned);
        }
        let end =
            offset.checked_add(length).filter(|&end| end <= self.length()).ok_or(Errno::Range)?;
        let (start, end) =
            (round_down(offset, self.block), round_up(end, self.block).ok_or(Errno::Range)?);
        let index = |n: u64| usize::try_from(n).map_err(|_| Errno::Range);
        Ok(Units { start, end, before: index(offset - start)?, length: index(end - start)? })
    }

    /// Waits for earlier conflicting writes of these units, and holds them.
    fn hold(&self, units: Units, partial: bool) -> Hold<'_> {
        self.ranges.hold(units.start, units.end, partial)
    }

    /// Calls `write` with whole units that contain `bytes` at their place.
    fn write(&self, bytes: &[u8], offset: u64, write: &Write<'_>) -> Result<(), Errno> {
        let length = bytes.len() as u64;
        let units = self.units(offset, length)?;
        if length == 0 {
            return Ok(());
        }
        let whole = self.is_whole(offset, length);
        // Where sectors are whole units nothing is read back, so writes cannot conflict.
        let _hold = (self.block > self.sector).then(|| self.hold(units, !whole));
        if whole {
            return write(bytes, offset);
        }
        let mut image = vec![0; units.length];
        self.read_ends(&mut image, units, bytes.len())?;
        image[units.before..units.before + bytes.len()].copy_from_slice(bytes);
        write(&image, units.start)
    }

    /// Reads the first and the last unit, if the request of `length` bytes covers only part of
    /// them.
    fn read_ends(&self, image: &mut [u8], units: Units, length: usize) -> Result<(), Errno> {
        let unit = usize::try_from(self.block).map_err(|_| Errno::Range)?;
        let last = units.length - unit;
        if units.before > 0 {
            self.below.read_at(&mut image[..unit], units.start)?;
        }
        if units.before + length < units.length && (last > 0 || units.before == 0) {
            self.below.read_at(&mut image[last..], units.end - self.block)?;
        }
        Ok(())
    }

    /// Calls `read` for whole units, and copies the requested part. True if the bytes were there.
    fn read(&self, buffer: &mut [u8], offset: u64, read: &Read<'_>) -> Result<bool, Errno> {
        let length = buffer.len() as u64;
        let units = self.units(offset, length)?;
        if self.is_whole(offset, length) {
            return read(buffer, offset);
        }
        let mut image = vec![0; units.length];
        let there = read(&mut image, units.start)?;
        buffer.copy_from_slice(&image[units.before..units.before + buffer.len()]);
        Ok(there)
    }

    /// The whole units inside a range: (offset, length); [`None`] if there are none.
    fn inside(&self, offset: u64, length: u64) -> Option<(u64, u64)> {
        let start = round_up(offset, self.block)?;
        let end = round_down(offset.checked_add(length)?, self.block);
        end.checked_sub(start).filter(|&length| length > 0).map(|length| (start, length))
    }
}

impl Store for Sectored {
    fn length(&self) -> u64 {
        round_down(self.below.length(), self.sector)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        self.read(buffer, offset, &|buffer, offset| {
            self.below.read_at(buffer, offset).map(|()| true)
        })
        .map(|_| ())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.write(bytes, offset, &|bytes, offset| self.below.write_at(bytes, offset))
    }

    fn write_through(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.write(bytes, offset, &|bytes, offset| self.below.write_through(bytes, offset))
    }

    fn start_writeback(&self, offset: u64, length: u64) {
        self.below.start_writeback(offset, length);
    }

    fn prefetch(&self, offset: u64, length: u64) {
        self.below.prefetch(offset, length);
    }

    fn flush(&self) -> Result<(), Errno> {
        self.below.flush()
    }

    fn try_read(&self, buffer: &mut [u8], offset: u64) -> Result<bool, Errno> {
        self.read(buffer, offset, &|buffer, offset| self.below.try_read(buffer, offset))
    }

    fn borrow(&self, offset: u64, length: u64) -> Result<Option<&[AtomicU8]>, Errno> {
        self.units(offset, length)?;
        if self.is_whole(offset, length) { self.below.borrow(offset, length) } else { Ok(None) }
    }

    fn properties(&self) -> Properties {
        let below = self.below.properties();
        // Where units are held, a write may wait for others.
        let holds = self.block > self.sector;
        let (write_back, non_blocking) = (!holds && below.write_back, !holds && below.non_blocking);
        Properties { unit: self.sector, write_back, non_blocking, ..below }
    }

    fn discard(&self, offset: u64, length: u64) -> Result<(), Errno> {
        let units = self.units(offset, length)?;
        let Some((start, length)) = self.inside(offset, length) else { return Ok(()) };
        // A read-modify-write of a unit must not overlap.
        let _hold = self.hold(units, false);
        self.below.discard(start, length)
    }

    fn try_zero(&self, offset: u64, length: u64, keep: bool) -> Result<(), Errno> {
        let units = self.units(offset, length)?;
        let inside = self.inside(offset, length);
        if let Some((start, length)) = inside {
            let _hold = self.hold(units, false);
            self.below.try_zero(start, length, keep)?;
        }
        let end = offset + length;
        let (start, last) = inside.map_or((end, end), |(start, length)| (start, start + length));
        for (from, to) in [(offset, start), (last, end)] {
            write_zeros(to - from, &mut |done, zeros| self.write_at(zeros, from + done))?;
        }
        Ok(())
    }

    fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        let units = self.units(offset, length)?;
        let run = self.below.extent(units.start, units.end - units.start)?;
        let end = units.start.saturating_add(run.length).min(offset + length);
        let whole = round_down(end.saturating_sub(offset), self.sector);
        if whole > 0 {
            return Ok(Run { length: whole, ..run });
        }
        // The run ends within the first sector, which is mixed: reported as a hole, it would not be
        // read.
        let end = units.start.saturating_add(self.block.max(self.sector)).min(offset + length);
        Ok(Run { content: Content::Data, length: end.saturating_sub(offset) })
    }
}

#[cfg(test)]
#[path = "sectored/tests.rs"]
mod tests;
