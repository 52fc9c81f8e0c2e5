//! `page-cache`: Linux's page cache over a whole block device, or over a file that is written
//! already.
//!
//! # Rules
//! - **Blocks** are the largest power of two that divides the device's size, a page of 4096 bytes
//!   at the most (`set_init_blocksize` in block/bdev.c; `blockdev --getbsz`). A file's are those of
//!   its file system.
//! - **A write** of a part of a block first reads the block, one after another
//!   (`__block_write_begin` in fs/buffer.c): what the device sees is aligned, and slow. A block that
//!   is in the cache is not read again.
//! - **With `O_SYNC`** (`sync = "medium"`) a write is written at once, in whole blocks, and a flush
//!   of the drive follows; `"drive"` is without the flush, as Linux before 2.6.33 and drives
//!   without a cache are.
//! - **Without** (`"later"`) its blocks become dirty, and it is done. A flush (fsync) writes them,
//!   ascending, those that follow one another as one request, and flushes the drive.
//! - **A read** fetches the blocks that are missing, those that follow one another as one request.
//!
//! # Limits
//! Nothing is read ahead (`POSIX_FADV_RANDOM`). Nothing is written by age or because much is dirty:
//! there is no clock, and `memory` is far more than is written. A full cache forgets blocks in the
//! order of their arrival, and first writes them if they are dirty. A request that is larger than
//! the device takes at one time (`max_sectors_kb`, and its segments) is one request here.
//!
//! # Measured
//! Linux 6.18 on a loop device, 200 writes of 4096 bytes at 512 past a multiple of 4096:
//!
//! | device | reads of 8 sectors | sectors written |
//! |---|---|---|
//! | of a whole number of pages | 400 | 3200 |
//! | of an odd number of sectors | 0 | 1600 |

use super::stack::LayerRig;
use super::steps::Steps;
use super::{FLUSH, Layer, LayerKind, ask, parameters};
use crate::error::Error;
use crate::rig::{Op, Rig};
use crate::streams::Ask;
use serde::Deserialize;
use std::collections::{BTreeSet, HashSet, VecDeque};
use trueline_geom::base::error::Errno;
use trueline_geom::base::size::PAGE;
use trueline_geom::base::topology::{largest_grain, round_down, round_up};

/// The layer `page-cache` as listed.
pub const KIND: LayerKind = LayerKind {
    name: "page-cache",
    title: "Linux's page cache over a device, or over a file that is written already",
    make: |keys| Ok(Box::new(PageCache::new(parameters(keys)?)?)),
};

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
}

impl Default for Keys {
    fn default() -> Keys {
        Keys { memory: 1 << 30, block: None, sync: Sync::Later }
    }
}

/// The page cache over one device or file.
pub struct PageCache {
    keys: Keys,
    block: u64,
    /// The capacity of the cache in blocks.
    room: usize,
    /// First bytes of the cached blocks, and the same in the order of arrival.
    cached: HashSet<u64>,
    order: VecDeque<u64>,
    /// First bytes of the blocks that are not written yet.
    dirty: BTreeSet<u64>,
}

impl PageCache {
    /// An empty cache. It is an error if its blocks cannot be.
    pub fn new(keys: Keys) -> Result<PageCache, Error> {
        if let Some(block) = keys.block
            && !(block.is_power_of_two() && (512..=1 << 16).contains(&block))
        {
            return Err(Error::new(format!(
                "block = {block}: a power of two from 512 to 65536 bytes"
            )));
        }
        let mut cache = PageCache {
            keys,
            block: PAGE,
            room: 1,
            cached: HashSet::new(),
            order: VecDeque::new(),
            dirty: BTreeSet::new(),
        };
        cache.of_blocks(keys.block.unwrap_or(PAGE));
        Ok(cache)
    }

    /// A rig behind an empty cache of `memory` bytes alone, of blocks as Linux takes them.
    pub fn alone(sync: Sync, memory: u64, beneath: &mut dyn Rig) -> Result<LayerRig<'_>, Error> {
        let cache = PageCache::new(Keys { memory, block: None, sync })?;
        LayerRig::new(vec![(KIND.name, Box::new(cache))], beneath)
    }

    fn of_blocks(&mut self, block: u64) {
        self.block = block;
        self.room = usize::try_from(self.keys.memory / block).unwrap_or(usize::MAX).max(1);
    }

    /// The blocks that a range covers, in part or whole: the first one's first byte, and the end.
    fn covered(&self, offset: u64, length: u64) -> Result<(u64, u64), Errno> {
        let end = offset.checked_add(length).ok_or(Errno::Range)?;
        Ok((round_down(offset, self.block), round_up(end, self.block).ok_or(Errno::Range)?))
    }

    fn read(&mut self, first: u64, last: u64, steps: &mut Steps) {
        let mut missing: Option<(u64, u64)> = None;
        let mut at = first;
        while at < last {
            if self.cached.contains(&at) {
                steps_of(missing.take(), steps);
            } else {
                missing = Some((missing.map_or(at, |(first, _)| first), at + self.block));
                self.keep(at, steps);
            }
            at += self.block;
        }
        steps_of(missing, steps);
    }

    fn write(&mut self, offset: u64, length: u64, steps: &mut Steps) -> Result<(), Errno> {
        let (first, last) = self.covered(offset, length)?;
        let mut at = first;
        while at < last {
            let in_part = at < offset || at + self.block > offset + length;
            if in_part && !self.cached.contains(&at) {
                steps.add(ask(Op::Read, at, self.block));
                steps.then();
            }
            self.keep(at, steps);
            if self.keys.sync == Sync::Later {
                self.dirty.insert(at);
            }
            at += self.block;
        }
        if self.keys.sync != Sync::Later {
            steps.add(ask(Op::Write, first, last - first));
        }
        if self.keys.sync == Sync::Medium {
            steps.then();
            steps.add(FLUSH);
        }
        Ok(())
    }

    /// Writes what is dirty, ascending.
    fn write_back(&mut self, steps: &mut Steps) {
        let mut run: Option<(u64, u64)> = None;
        for at in std::mem::take(&mut self.dirty) {
            run = match run {
                Some((first, end)) if end == at => Some((first, at + self.block)),
                other => {
                    if let Some((first, end)) = other {
                        steps.add(ask(Op::Write, first, end - first));
                    }
                    Some((at, at + self.block))
                }
            };
        }
        if let Some((first, end)) = run {
            steps.add(ask(Op::Write, first, end - first));
        }
    }

    /// Adds a block to the cache, and takes the oldest out if it is full.
    fn keep(&mut self, at: u64, steps: &mut Steps) {
        if !self.cached.insert(at) {
            return;
        }
        self.order.push_back(at);
        if self.order.len() > self.room
            && let Some(oldest) = self.order.pop_front()
        {
            self.cached.remove(&oldest);
            if self.dirty.remove(&oldest) {
                steps.add(ask(Op::Write, oldest, self.block));
            }
        }
    }
}

/// Reads a run of missing blocks.
fn steps_of(missing: Option<(u64, u64)>, steps: &mut Steps) {
    if let Some((first, end)) = missing {
        steps.add(ask(Op::Read, first, end - first));
    }
}

/// The block size of a device's page cache, in bytes.
pub fn block_of(length: u64, sector: u64) -> u64 {
    largest_grain(length).unwrap_or(PAGE).min(PAGE).max(sector)
}

impl Layer for PageCache {
    fn attach(&mut self, length: u64, sector: u64) -> Result<(), Error> {
        let block = self.keys.block.unwrap_or(block_of(length, sector));
        if block < sector {
            return Err(Error::new(format!(
                "block = {block}: the sectors beneath have {sector} bytes"
            )));
        }
        self.of_blocks(block);
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
                self.write_back(steps);
                steps.then();
                steps.add(FLUSH);
                Ok(())
            }
            Op::Read => {
                let (first, last) = self.covered(asked.offset, asked.length)?;
                self.read(first, last, steps);
                Ok(())
            }
            Op::Write => self.write(asked.offset, asked.length, steps),
        }
    }
}

/// The smallest request to a cache in bytes.
const SMALLEST: u64 = 512;

#[cfg(test)]
mod tests;
