//! `loop`: Linux's loop device over a file that is written already.
//!
//! # Rules
//! - **Through the page cache** (`direct = false`) a request is a read or write of the file
//!   (`lo_rw_aio` in drivers/block/loop.c): a write ends in the cache, a write of a part of a block
//!   of the file system reads the block first, and a flush is an fsync, which writes what is dirty.
//!   A loop device has sectors of 512 bytes, so a guest or a file system that keeps to them causes
//!   reads that nothing shows above it.
//! - **Around it** (`losetup --direct-io=on`) requests go to the file's blocks as they are; the
//!   loop device's sectors are those of the device beneath.
//! - **A write with FUA** is a write and a flush: a loop device has no FUA of its own.
//!
//! # Measured
//! Linux 6.18 over a file on ext4 without a journal, request by request, against what the device of
//! the file system got: the writes and flushes of two sequences of 300, all of a third around the
//! page cache, and 40 reads of single pages after each.
//!
//! # Limits
//! Those of `page-cache`; measured with blocks of 4096 bytes. The file is in one piece: where it is
//! not, a request that crosses two pieces becomes two. The file system's own writes (times, its
//! journal) are not in it.

use super::page_cache::{Keys as CacheKeys, PageCache, Sync};
use super::steps::Steps;
use super::{FLUSH, Layer, LayerKind, parameters};
use crate::error::Error;
use crate::streams::Ask;
use serde::Deserialize;
use trueline_geom::base::error::Errno;
use trueline_geom::base::size::PAGE;
use trueline_sim::model::keys::names;

/// The layer `loop` as listed.
pub const KIND: LayerKind = LayerKind {
    name: "loop",
    title: "Linux's loop device over a file that is written already",
    keys: names::<Keys>,
    make: |keys| Ok(Box::new(LoopDevice::new(parameters(keys)?)?)),
};

/// The sector size in bytes of a loop device over the page cache.
const SECTOR: u64 = 512;

/// The keys of the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Keys {
    /// True if the file is read and written around the page cache.
    pub direct: bool,
    /// The most bytes of the file in the page cache.
    pub memory: u64,
    /// The bytes of a block of the file system that has the file.
    pub block: u64,
}

impl Default for Keys {
    fn default() -> Keys {
        Keys { direct: false, memory: 1 << 30, block: PAGE }
    }
}

/// A loop device over a file.
struct LoopDevice {
    /// `None` around the page cache.
    cache: Option<PageCache>,
}

impl LoopDevice {
    fn new(Keys { direct, memory, block }: Keys) -> Result<LoopDevice, Error> {
        let cache = PageCache::new(CacheKeys {
            memory,
            block: Some(block),
            sync: Sync::Later,
            ..CacheKeys::default()
        })?;
        Ok(LoopDevice { cache: (!direct).then_some(cache) })
    }
}

impl Layer for LoopDevice {
    fn attach(&mut self, length: u64, sector: u64) -> Result<(), Error> {
        self.cache.as_mut().map_or(Ok(()), |cache| cache.attach(length, sector))
    }

    fn length(&self, beneath: u64) -> u64 {
        self.cache.as_ref().map_or(beneath, |cache| cache.length(beneath))
    }

    fn sector(&self, beneath: u64) -> u64 {
        if self.cache.is_some() { SECTOR } else { beneath }
    }

    fn plan(&mut self, ask: Ask, steps: &mut Steps) -> Result<(), Errno> {
        let Ask { op, offset, length, fua } = ask;
        let plain = super::ask(op, offset, length);
        match &mut self.cache {
            Some(cache) => cache.plan(plain, steps)?,
            None => steps.add(plain),
        }
        if fua {
            steps.then();
            self.plan(FLUSH, steps)?;
        }
        Ok(())
    }
}
