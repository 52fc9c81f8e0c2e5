//! `page-cache`: Linux's page cache over a whole block device, or over a file that is written
//! already.
//!
//! # Rules
//! - **Blocks** are the largest power of two that divides the device's size, a page of 4096 bytes
//!   at the most (`set_init_blocksize` in block/bdev.c; `blockdev --getbsz`). A file's are those of
//!   its file system.
//! - **A write** of a part of a block first reads the block, one after another here
//!   (`__block_write_begin` in fs/buffer.c): what the device sees is aligned, and slow. A block
//!   that is in the cache is not read again.
//! - **With `O_SYNC`** (`sync = "medium"`) a write is written at once, in whole blocks, and a flush
//!   of the drive follows; `"drive"` is without the flush, as Linux before 2.6.33 and drives
//!   without a cache are.
//! - **Without** (`"later"`) its blocks become dirty, and it is done. A flush (fsync) writes them,
//!   ascending, and flushes the drive. Blocks that follow one another are one request, of as many
//!   blocks as the device takes segments (each is a bio of one).
//! - **One such write** (`RWF_DSYNC`, FUA) writes what is dirty of its own pages, and flushes
//!   (`generic_write_sync`, `blkdev_fsync`).
//! - **A read** fetches the pages that are missing, those that follow one another as one request
//!   (`page_cache_ra_unbounded` in mm/readahead.c). Where a page lacks blocks, needed or not, all
//!   that it lacks is read, each with a request of its own (`block_read_full_folio`).
//!
//! # Limits
//! Nothing is read ahead (`POSIX_FADV_RANDOM`). Nothing is written by age or because much is dirty:
//! there is no clock, and `memory` is far more than is written. A full cache forgets pages in the
//! order of their arrival, and first writes what is dirty of them. A read that is larger than the
//! device takes at one time (`max_sectors_kb`) is one request here.
//!
//! Pages of a device with smaller blocks are read one by one; Linux holds several that were written
//! together as one folio, and reads what any of them lacks. For the same reason a write with FUA
//! may write neighbours that are dirty too.
//!
//! # Measured
//! Linux 6.18 on a loop device, 200 writes of 4096 bytes at 512 past a multiple of 4096:
//!
//! | device | reads of 8 sectors | sectors written |
//! |---|---|---|
//! | of a whole number of pages | 400 | 3200 |
//! | of an odd number of sectors | 0 | 1600 |
//!
//! And request by request, against what the device got: three sequences of 300 reads, writes and
//! flushes on a device of whole pages, in one of which every write waits, read at random
//! (`POSIX_FADV_RANDOM`), and the writes and flushes of one on devices of 512, 1024 and 2048 bytes
//! more each.

use super::stack::LayerRig;
use super::steps::Steps;
use super::{FLUSH, Layer, LayerKind, ask, parameters};
use crate::error::Error;
use crate::rig::{Op, Rig};
use crate::streams::Ask;
use serde::Deserialize;
use std::collections::{BTreeSet, HashMap, VecDeque};
use trueline_geom::base::error::Errno;
use trueline_geom::base::size::PAGE;
use trueline_geom::base::topology::{largest_grain, round_down, round_up};
use trueline_sim::model::keys::names;

/// The layer `page-cache` as listed.
pub const KIND: LayerKind = LayerKind {
    name: "page-cache",
    title: "Linux's page cache over a device, or over a file that is written already",
    keys: names::<Keys>,
    make: |keys| Ok(Box::new(PageCache::new(parameters(keys)?)?)),
};

/// The smallest request to a cache, and the smallest block, in bytes.
const SMALLEST: u64 = 512;

/// The segments of a request where a driver names no number (`BLK_MAX_SEGMENTS`).
const SEGMENTS: u64 = 128;

/// The moment at which a write is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sync {
    /// At once, to the drive: a write is done when the drive has it, perhaps in a cache of its own
    /// (`O_SYNC` of Linux before 2.6.33, and drives without a cache).
    Drive,
    /// At once, to the medium: a write is done when a FLUSH CACHE behind it is.
    Medium,
    /// With the next flush (fsync).
    Later,
}

/// The keys of the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Keys {
    /// The most bytes of the cache.
    pub memory: u64,
    /// The bytes of a block; `None`: what Linux takes for the device.
    pub block: Option<u64>,
    /// The moment at which a write is written.
    pub sync: Sync,
    /// The most blocks that are written with one request (`queue/max_segments` of the device).
    pub segments: u64,
}

impl Default for Keys {
    fn default() -> Keys {
        Keys { memory: 1 << 30, block: None, sync: Sync::Later, segments: SEGMENTS }
    }
}

/// The page cache over one device or file.
pub struct PageCache {
    keys: Keys,
    block: u64,
    /// The end of the device in bytes, in whole blocks.
    end: u64,
    /// The capacity of the cache in pages.
    room: usize,
    /// First bytes of the cached pages, with what each has of its blocks.
    pages: HashMap<u64, Valid>,
    /// The same in the order of arrival.
    order: VecDeque<u64>,
    /// First bytes of the blocks that are not written yet.
    dirty: BTreeSet<u64>,
}

/// The blocks of a page that are in the cache, a bit each.
type Valid = u8;

impl PageCache {
    /// An empty cache. It is an error if its blocks cannot be.
    pub fn new(keys: Keys) -> Result<PageCache, Error> {
        if let Some(block) = keys.block
            && !(block.is_power_of_two() && (SMALLEST..=PAGE).contains(&block))
        {
            return Err(Error::new(format!(
                "block = {block}: a power of two from {SMALLEST} to {PAGE} bytes"
            )));
        }
        Ok(PageCache {
            keys,
            block: keys.block.unwrap_or(PAGE),
            end: u64::MAX,
            room: usize::try_from(keys.memory / PAGE).unwrap_or(usize::MAX).max(1),
            pages: HashMap::new(),
            order: VecDeque::new(),
            dirty: BTreeSet::new(),
        })
    }

    /// A rig behind an empty cache of `memory` bytes alone, of blocks as Linux takes them.
    pub fn alone(sync: Sync, memory: u64, beneath: &mut dyn Rig) -> Result<LayerRig<'_>, Error> {
        let cache = PageCache::new(Keys { memory, block: None, sync, ..Keys::default() })?;
        LayerRig::new(vec![(KIND.name, Box::new(cache))], beneath)
    }

    /// The blocks that a range covers, in part or whole: the first one's first byte, and the end.
    fn covered(&self, offset: u64, length: u64) -> Result<(u64, u64), Errno> {
        let end = offset.checked_add(length).ok_or(Errno::Range)?;
        Ok((round_down(offset, self.block), round_up(end, self.block).ok_or(Errno::Range)?))
    }

    /// The first bytes of the blocks from `first` to `last`.
    fn blocks(&self, first: u64, last: u64) -> impl Iterator<Item = u64> + use<> {
        // A block is at most a page.
        (first..last).step_by(usize::try_from(self.block).unwrap_or(usize::MAX))
    }

    /// The bytes of the largest write: of as many blocks as a request has segments.
    fn most(&self) -> u64 {
        self.keys.segments.saturating_mul(self.block).max(self.block)
    }

    /// The bit of a block in its page.
    fn bit(&self, at: u64) -> Valid {
        1 << ((at - round_down(at, PAGE)) / self.block)
    }

    fn has(&self, at: u64) -> bool {
        self.pages.get(&round_down(at, PAGE)).is_some_and(|valid| valid & self.bit(at) != 0)
    }

    fn read(&mut self, first: u64, last: u64, steps: &mut Steps) {
        // A run of pages that are not there at all.
        let mut absent = Run::default();
        let mut page = round_down(first, PAGE);
        while page < last {
            let end = page.saturating_add(PAGE).min(self.end);
            if !self.pages.contains_key(&page) {
                if let Some((first, end)) = absent.add(page, end) {
                    steps.add(ask(Op::Read, first, end - first));
                }
                self.keep_all(page, end, steps);
            } else {
                // All that is missing of the page is read, a block at a time, needed or not.
                if let Some((first, end)) = absent.take() {
                    steps.add(ask(Op::Read, first, end - first));
                }
                for at in self.blocks(page, end).filter(|&at| !self.has(at)) {
                    steps.add(ask(Op::Read, at, self.block));
                }
                self.keep_all(page, end, steps);
            }
            page = end;
        }
        if let Some((first, end)) = absent.take() {
            steps.add(ask(Op::Read, first, end - first));
        }
    }

    fn write(&mut self, offset: u64, length: u64, steps: &mut Steps) -> Result<(), Errno> {
        let (first, last) = self.covered(offset, length)?;
        for at in self.blocks(first, last) {
            let in_part = at < offset || at + self.block > offset + length;
            if in_part && !self.has(at) {
                steps.add(ask(Op::Read, at, self.block));
                steps.then();
            }
            self.keep(at, steps);
            if self.keys.sync == Sync::Later {
                self.dirty.insert(at);
            }
        }
        if self.keys.sync != Sync::Later {
            write_back((first, last), self.most(), steps);
        }
        if self.keys.sync == Sync::Medium {
            steps.then();
            steps.add(FLUSH);
        }
        Ok(())
    }

    /// Writes what is dirty from `first` to `last`, whole pages, and flushes.
    fn write_dirty(&mut self, first: u64, last: u64, steps: &mut Steps) {
        let behind = round_up(last, PAGE).unwrap_or(u64::MAX);
        let dirty: Vec<u64> = self.dirty.range(round_down(first, PAGE)..behind).copied().collect();
        dirty.iter().for_each(|at| _ = self.dirty.remove(at));
        let most = self.most();
        steps.then();
        runs(dirty, self.block).into_iter().for_each(|run| write_back(run, most, steps));
        steps.then();
        steps.add(FLUSH);
    }

    fn keep_all(&mut self, first: u64, last: u64, steps: &mut Steps) {
        self.blocks(first, last).for_each(|at| self.keep(at, steps));
    }

    /// Adds a block to the cache, and takes the oldest page out if it is full.
    fn keep(&mut self, at: u64, steps: &mut Steps) {
        let (page, bit) = (round_down(at, PAGE), self.bit(at));
        if let Some(valid) = self.pages.get_mut(&page) {
            *valid |= bit;
            return;
        }
        self.pages.insert(page, bit);
        self.order.push_back(page);
        if self.order.len() > self.room
            && let Some(oldest) = self.order.pop_front()
        {
            self.pages.remove(&oldest);
            let dirty: Vec<u64> = self.dirty.range(oldest..oldest + PAGE).copied().collect();
            dirty.iter().for_each(|at| _ = self.dirty.remove(at));
            let most = self.most();
            runs(dirty, self.block).into_iter().for_each(|run| write_back(run, most, steps));
        }
    }
}

/// A run of bytes without a gap, as it grows.
#[derive(Default)]
struct Run(Option<(u64, u64)>);

impl Run {
    /// Adds a range. The run before it, if it does not go on.
    fn add(&mut self, first: u64, end: u64) -> Option<(u64, u64)> {
        match &mut self.0 {
            Some((_, own)) if *own == first => {
                *own = end;
                None
            }
            own => own.replace((first, end)),
        }
    }

    fn take(&mut self) -> Option<(u64, u64)> {
        self.0.take()
    }
}

/// The runs of ascending blocks.
fn runs(blocks: impl IntoIterator<Item = u64>, block: u64) -> Vec<(u64, u64)> {
    let mut run = Run::default();
    let mut runs: Vec<(u64, u64)> =
        blocks.into_iter().filter_map(|at| run.add(at, at + block)).collect();
    runs.extend(run.take());
    runs
}

/// Writes a range in requests of at most `most` bytes.
fn write_back((first, end): (u64, u64), most: u64, steps: &mut Steps) {
    let mut at = first;
    while at < end {
        let length = most.min(end - at);
        steps.add(ask(Op::Write, at, length));
        at += length;
    }
}

/// The block size of a device's page cache, in bytes.
pub fn block_of(length: u64, sector: u64) -> u64 {
    largest_grain(length).unwrap_or(PAGE).min(PAGE).max(sector)
}

impl Layer for PageCache {
    fn attach(&mut self, length: u64, sector: u64) -> Result<(), Error> {
        let block = self.keys.block.unwrap_or(block_of(length, sector));
        if block < sector || block > PAGE {
            return Err(Error::new(format!(
                "block = {block}: sectors beneath of {sector} bytes, and pages of {PAGE}"
            )));
        }
        (self.block, self.end) = (block, round_down(length, block));
        Ok(())
    }

    /// A device's last bytes that fill no block are not shown: Linux's own choice of blocks has
    /// none.
    fn length(&self, beneath: u64) -> u64 {
        round_down(beneath, self.block)
    }

    /// A program reads and writes any bytes; sectors are what workloads are made of.
    fn sector(&self, _beneath: u64) -> u64 {
        SMALLEST
    }

    fn plan(&mut self, asked: Ask, steps: &mut Steps) -> Result<(), Errno> {
        match asked.op {
            Op::Flush => {
                self.write_dirty(0, u64::MAX, steps);
                Ok(())
            }
            Op::Read => {
                let (first, last) = self.covered(asked.offset, asked.length)?;
                self.read(first, last, steps);
                Ok(())
            }
            Op::Write => {
                self.write(asked.offset, asked.length, steps)?;
                if asked.fua && self.keys.sync == Sync::Later {
                    self.write_dirty(asked.offset, asked.offset + asked.length, steps);
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
