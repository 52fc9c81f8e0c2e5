//! An overlay: writes to a disk go elsewhere, and the disk itself is only read.
//!
//! Each block of [`BLOCK`] bytes belongs to the base, is written, or is zero (`index.rs`). The
//! first write to part of a block reads it from the base and writes it whole; a discarded or zeroed
//! range is zero in whole blocks. A written block is stored at its own offset, so its place never
//! has to be looked up.
//!
//! # Limits
//! The base must not change meanwhile. Memory: the index, at most 64 MiB for every TiB with writes
//! everywhere; for an overlay in memory, the written blocks too. A disk has 256 TiB at most.

use crate::layer::held_ranges::Ranges;
use index::{Index, State};
use kept::Kept;
use std::ops::Range;
use std::sync::Arc;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::{Content, Properties, Run, Store, write_zeros};
use trueline_geom::base::topology::{is_whole, round_down, round_up};
use trueline_host::disk::memory::Memory;
use trueline_host::error::Error;

mod index;
mod kept;
mod overlays;

pub use overlays::{Covered, OverlayStorage, Overlays};

/// The size of a block in bytes: the unit of the base or the overlay.
pub const BLOCK: u64 = 4096;

/// The largest disk, in bytes: its table of pages has 64 MiB.
const LONGEST: u64 = 256 << 40;

/// A disk that an overlay is put over.
pub struct Base {
    /// The name in messages.
    pub name: String,
    /// The bytes of the disk, which are only read.
    pub store: Box<dyn Store>,
    /// The time of its last write, in ns since 1970, if it is a file.
    pub changed: Option<u64>,
}

/// A disk under an overlay. Clones are of the same disk.
#[derive(Clone)]
pub struct Overlay(Arc<Over>);

/// One disk and what was written to it.
struct Over {
    base: Box<dyn Store>,
    /// Written bytes, each at `place` and its own offset.
    data: Arc<dyn Store>,
    place: u64,
    index: Arc<Index>,
    writes: Ranges,
    /// The file that keeps it, if one does.
    kept: Option<Arc<Kept>>,
}

/// Overlays in memory over `bases`, in their order; their data are lost with the last of them.
pub fn in_memory(bases: Vec<Base>) -> Result<Vec<Overlay>, Error> {
    bases.iter().try_for_each(fits)?;
    let over = |base: Base| {
        let length = base.store.length();
        Ok(Overlay::new(
            base.store,
            Arc::new(Memory::new(length)?),
            0,
            Arc::new(Index::new(length)),
            None,
        ))
    };
    bases.into_iter().map(over).collect()
}

/// Overlays over `bases`, in their order, kept in the file at `path`. It is made if it does not
/// exist or is empty; else it must have been made over the same bases. `writes`: true if anything
/// will be written.
pub fn in_file(
    path: &std::path::Path,
    bases: Vec<Base>,
    writes: bool,
) -> Result<Vec<Overlay>, Error> {
    bases.iter().try_for_each(fits)?;
    let (kept, parts) = kept::open(path, &bases, writes)?;
    let over = |(base, (index, place)): (Base, _)| {
        Overlay::new(base.store, kept.medium(), place, index, Some(kept.clone()))
    };
    Ok(bases.into_iter().zip(parts).map(over).collect())
}

/// Refuses a disk that is too long for an overlay, or has units.
fn fits(base: &Base) -> Result<(), Error> {
    let (length, unit) = (base.store.length(), base.store.properties().unit);
    let not = |found| Err(Error::not("put an overlay over", &base.name, found, "serve it without"));
    match () {
        () if length > LONGEST => {
            not(format!("it has {length} bytes and an overlay {LONGEST} at most"))
        }
        () if unit != 1 => not(format!("it takes units of {unit} bytes")),
        () => Ok(()),
    }
}

/// A function for a run of one state: its indices in the request, its offset on the disk, its
/// state.
type Each<'a> = dyn FnMut(Range<usize>, u64, State) -> Result<bool, Errno> + 'a;

impl Overlay {
    fn new(
        base: Box<dyn Store>,
        data: Arc<dyn Store>,
        place: u64,
        index: Arc<Index>,
        kept: Option<Arc<Kept>>,
    ) -> Overlay {
        Overlay(Arc::new(Over { base, data, place, index, writes: Ranges::default(), kept }))
    }

    /// The bytes of written blocks, and of zeroed or discarded blocks.
    pub fn changed(&self) -> (u64, u64) {
        let (written, zero) = self.0.index.counts();
        (written * BLOCK, zero * BLOCK)
    }

    /// The overlay's own part as a store: written ranges are [`Content::Data`], zeroed ones
    /// [`Content::Zero`], and those of the base [`Content::Hole`].
    pub fn written(&self) -> Written {
        Written(self.clone())
    }

    /// The end of a range. [`Errno::Range`] if it is not inside.
    fn end(&self, offset: u64, length: u64) -> Result<u64, Errno> {
        offset.checked_add(length).filter(|&end| end <= self.0.base.length()).ok_or(Errno::Range)
    }

    /// The state at `offset`, and the end of its run, at most `end`, which is greater.
    fn state(&self, offset: u64, end: u64) -> (State, u64) {
        let (state, block) = self.0.index.run(offset / BLOCK..end.div_ceil(BLOCK));
        (state, block.saturating_mul(BLOCK).min(end))
    }

    /// Calls `each` for every run of one state, until a call returns false.
    fn for_each_piece(
        &self,
        offset: u64,
        length: usize,
        each: &mut Each<'_>,
    ) -> Result<bool, Errno> {
        let end = self.end(offset, u64::try_from(length).map_err(|_| Errno::Range)?)?;
        let mut at = offset;
        while at < end {
            let (state, next) = self.state(at, end);
            if !each(index(at - offset)?..index(next - offset)?, at, state)? {
                return Ok(false);
            }
            at = next;
        }
        Ok(true)
    }

    /// Copies the rest of the first and the last block around `start..end` into the overlay, unless
    /// they are in it.
    fn fill_around(&self, start: u64, end: u64) -> Result<(), Errno> {
        let last = round_up(end, BLOCK).ok_or(Errno::Range)?.min(self.0.base.length());
        for (from, to) in [(round_down(start, BLOCK), start), (end, last)] {
            let state = self.0.index.state(from / BLOCK);
            if from == to || state == State::Written {
                continue;
            }
            let mut around = vec![0; index(to - from)?];
            if state == State::Base {
                self.0.base.read_at(&mut around, from)?;
            }
            self.0.data.write_at(&around, self.0.place + from)?;
        }
        Ok(())
    }

    /// The whole blocks in a range; the last block of the disk may be shorter.
    fn inside(&self, offset: u64, end: u64) -> Option<(u64, u64)> {
        let start = round_up(offset, BLOCK)?;
        let end = if end == self.0.base.length() { end } else { round_down(end, BLOCK) };
        (start < end).then_some((start, end))
    }

    /// Zeros whole blocks, and frees their space unless `keep`.
    fn forget(&self, start: u64, end: u64, keep: bool) {
        // Exclusively: a concurrent write must not lose its space.
        let _hold = self.0.writes.hold(start, end, true);
        self.0.index.set(start / BLOCK..end.div_ceil(BLOCK), State::Zero);
        if !keep {
            // The blocks read as zero regardless of their data, so a failure to free them is
            // harmless.
            let _ = self.0.data.discard(self.0.place + start, end - start);
        }
    }
}

fn index(n: u64) -> Result<usize, Errno> {
    usize::try_from(n).map_err(|_| Errno::Range)
}

impl Store for Overlay {
    fn length(&self) -> u64 {
        self.0.base.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let over = &self.0;
        self.for_each_piece(offset, buffer.len(), &mut |range, at, state| {
            let part = buffer.get_mut(range).ok_or(Errno::Range)?;
            match state {
                State::Base => over.base.read_at(part, at)?,
                State::Written => over.data.read_at(part, over.place + at)?,
                State::Zero => part.fill(0),
            }
            Ok(true)
        })
        .map(|_| ())
    }

    fn try_read(&self, buffer: &mut [u8], offset: u64) -> Result<bool, Errno> {
        let over = &self.0;
        self.for_each_piece(offset, buffer.len(), &mut |range, at, state| {
            let part = buffer.get_mut(range).ok_or(Errno::Range)?;
            match state {
                State::Base => over.base.try_read(part, at),
                State::Written => over.data.try_read(part, over.place + at),
                State::Zero => {
                    part.fill(0);
                    Ok(true)
                }
            }
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        let over = &self.0;
        let end = self.end(offset, bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let whole = is_whole(offset, BLOCK) && (is_whole(end, BLOCK) || end == over.base.length());
        let _hold = over.writes.hold(
            round_down(offset, BLOCK),
            round_up(end, BLOCK).ok_or(Errno::Range)?,
            !whole,
        );
        if !whole {
            self.fill_around(offset, end)?;
        }
        over.data.write_at(bytes, over.place + offset)?;
        // The state changes last: until then the block reads as before, also from the file.
        over.index.set(offset / BLOCK..end.div_ceil(BLOCK), State::Written);
        Ok(())
    }

    fn try_zero(&self, offset: u64, length: u64, keep: bool) -> Result<(), Errno> {
        let end = self.end(offset, length)?;
        let inside = self.inside(offset, end);
        if let Some((start, last)) = inside {
            self.forget(start, last, keep);
        }
        let (start, last) = inside.unwrap_or((end, end));
        for (from, to) in [(offset, start), (last, end)] {
            write_zeros(to - from, &mut |done, zeros| self.write_at(zeros, from + done))?;
        }
        Ok(())
    }

    fn discard(&self, offset: u64, length: u64) -> Result<(), Errno> {
        let end = self.end(offset, length)?;
        if let Some((start, last)) = self.inside(offset, end) {
            self.forget(start, last, false);
        }
        Ok(())
    }

    fn start_writeback(&self, offset: u64, length: u64) {
        self.0.data.start_writeback(self.0.place.saturating_add(offset), length);
    }

    fn prefetch(&self, offset: u64, length: u64) {
        self.0.base.prefetch(offset, length);
    }

    fn flush(&self) -> Result<(), Errno> {
        self.0.kept.as_ref().map_or(Ok(()), |kept| kept.flush())
    }

    fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        let end = self.end(offset, length)?;
        let (state, next) = self.state(offset, end);
        match state {
            State::Base => self.0.base.extent(offset, next - offset),
            State::Written => Ok(Run { content: Content::Data, length: next - offset }),
            State::Zero => Ok(Run { content: Content::Hole, length: next - offset }),
        }
    }

    fn properties(&self) -> Properties {
        // A write may wait for another that holds its blocks.
        Properties { depth: self.0.base.properties().depth, ..Properties::default() }
    }
}

/// The division between overlay and base: see [`Overlay::written`].
pub struct Written(Overlay);

impl Store for Written {
    fn length(&self) -> u64 {
        self.0.length()
    }

    fn read_at(&self, _: &mut [u8], _: u64) -> Result<(), Errno> {
        Err(Errno::Unsupported)
    }

    fn write_at(&self, _: &[u8], _: u64) -> Result<(), Errno> {
        Err(Errno::ReadOnly)
    }

    fn flush(&self) -> Result<(), Errno> {
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> Result<(), Errno> {
        Ok(())
    }

    fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        let (state, next) = self.0.state(offset, self.0.end(offset, length)?);
        let content = match state {
            State::Base => Content::Hole,
            State::Written => Content::Data,
            State::Zero => Content::Zero,
        };
        Ok(Run { content, length: next - offset })
    }
}

#[cfg(test)]
mod tests;
