//! `linux-writeback`: ext2 on Linux 2.6.31 through its page cache, on any rig.
//!
//! # Rules
//! From Linux 2.6.31's `mm/page-writeback.c`, `fs/fs-writeback.c`, `fs/mpage.c`, `fs/buffer.c`,
//! `fs/ext2` and `block`; see `flusher`:
//!
//! - **No program waits** for a write: pages become dirty. The flusher wakes every 5 s and writes
//!   pages that are 30 s old; it also writes when a tenth of the memory is dirty. A program waits
//!   when a fifth is.
//! - **A pass** writes at most 1024 pages, 4 MiB, of one inode, in the order of its pages, and ends
//!   after the page with which it finds the queue congested: with 113 of 128 requests, and until
//!   there are fewer than 103.
//! - **Requests** are at most 512 KiB. Pages of a file that lie together are a bio, at most as
//!   long, which ends with a pass and where an indirect block is; it is merged whole with the
//!   request before it, or not. Pages of the device are a bio each.
//! - **Metadata** (inodes, maps, indirect blocks) are pages of the device's own inode; as long as
//!   files have something to write, they wait until they are old. But an indirect block that lies
//!   where the data before it end goes with these (`write_boundary_block`).
//! - **Blocks** of a file follow one another from the first free one of its group; after the first
//!   12, an indirect block stands before every 1024 of data.
//! - **Reading** brings 128 KiB, and the next 128 KiB when a program reads on.
//!
//! # Limits
//! An empty file system as mke2fs made it in 2009 (blocks of 4 KiB); a directory is in the group of
//! its parent until less than an eighth of that is free; nothing is kept for root; no barriers, as
//! ext2 has none; the processor's time is not in it.

use super::extents::Extents;
use super::names::{Id, Names, ROOT};
use crate::error::Error;
use crate::files::{File, Files};
use crate::rig::Rig;
use flusher::{DEVICE, Flusher};
use group::Group;
use serde::Deserialize;
use shape::{BLOCK, Ext2Layout, PER_GROUP};

mod dirty;
pub(crate) mod flusher;
mod group;
mod pages;
mod requests;
pub(crate) mod shape;

pub use flusher::Limits;

/// The properties of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// The size of memory in bytes.
    pub memory: u64,
}

impl Default for Parameters {
    /// The host of seed 001, with 8 GiB of memory.
    fn default() -> Parameters {
        Parameters { memory: 8 << 30 }
    }
}

/// Direct pointers of an inode, and pointers in an indirect block.
const DIRECT: u64 = 12;
const POINTERS: u64 = BLOCK / 4;

/// A file or a directory.
#[derive(Default)]
struct Inode {
    number: u64,
    size: u64,
    parent: Id,
    /// Bytes of its directory entry; for a directory, of all entries in it.
    entry: u64,
    extents: Extents,
    indirect: Vec<u64>,
    /// The number of entries of a directory; `None` for a file.
    entries: Option<u64>,
}

/// An ext2 file system behind the page cache.
pub struct LinuxWriteback<'a> {
    flusher: Flusher<'a>,
    shape: Ext2Layout,
    /// Groups by number, each made on first use.
    groups: Vec<Option<Box<Group>>>,
    names: Names<Inode>,
    cache: pages::Cache,
}

impl<'a> LinuxWriteback<'a> {
    /// An empty file system that fills a rig.
    pub fn new(rig: &'a mut dyn Rig, parameters: Parameters) -> Result<LinuxWriteback<'a>, Error> {
        let length = rig.length();
        let shape = Ext2Layout::new(length).ok_or_else(|| {
            Error::new(format!("mke2fs: {length} bytes are too few for a file system"))
        })?;
        let mut groups: Vec<Option<Box<Group>>> = (0..shape.groups()).map(|_| None).collect();
        let mut first = Group::new(&shape, 0);
        // Inodes 1 to 10 are reserved; 2 is the root, which has one block.
        for _ in 0..10 {
            first.take_inode();
        }
        let mut root =
            Inode { number: 1, size: BLOCK, entries: Some(0), entry: 24, ..Inode::default() };
        let (at, _) = first
            .take(0, 1)
            .ok_or_else(|| Error::new("mke2fs: no room for a root directory".into()))?;
        root.extents.put(0, u64::from(at), 1, 1);
        groups[0] = Some(Box::new(first));
        let flusher = Flusher::new(rig, Limits::of_memory(parameters.memory));
        Ok(LinuxWriteback {
            flusher,
            shape,
            groups,
            names: Names::new(root),
            cache: pages::Cache::new(parameters.memory),
        })
    }

    /// The extents of a file as (first byte of the provider, bytes), in the file's order.
    pub fn extents(&mut self, name: &str) -> Result<Vec<(u64, u64)>, Error> {
        let id = self.names.get(name)?;
        Ok(self
            .names
            .node(id)?
            .extents
            .runs()
            .iter()
            .map(|run| (run.at * BLOCK, u64::from(run.fragments) * BLOCK))
            .collect())
    }

    /// Dirty bytes in the page cache.
    pub fn dirty(&self) -> u64 {
        self.flusher.dirty()
    }

    fn group(&mut self, group: u64) -> Result<&mut Group, Error> {
        let shape = &self.shape;
        let own = usize::try_from(group).ok().and_then(|group| self.groups.get_mut(group));
        let own =
            own.ok_or_else(|| Error::new(format!("group {group}: the file system has fewer")))?;
        Ok(own.get_or_insert_with(|| Box::new(Group::new(shape, group))))
    }

    /// All groups, each once, from `group` on and then from 0.
    fn groups_from(&self, group: u64) -> impl Iterator<Item = u64> + use<> {
        (group..self.shape.groups()).chain(0..group)
    }

    /// Changes a block of the device: reads it if it is not cached, and marks it dirty.
    fn change(&mut self, block: u64) -> Result<(), Error> {
        self.cache.fetch_block(&mut self.flusher.queue, block)?;
        self.flusher.soil(DEVICE, block, 1, block * BLOCK)
    }

    /// Allocates a free block, preferably at `preferred`, and the free blocks after it, to at most
    /// `most`. Returns the first block and their number.
    fn take(&mut self, preferred: u64, most: u64) -> Result<(u64, u64), Error> {
        let preferred = preferred.min(self.shape.blocks - 1);
        let first = preferred / PER_GROUP;
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        for group in self.groups_from(first) {
            let within = if group == first { preferred % PER_GROUP } else { 0 };
            let taken = self.group(group)?.take(u32::try_from(within).unwrap_or(0), most);
            if let Some((at, count)) = taken {
                self.change(self.shape.maps(group))?;
                return Ok((group * PER_GROUP + u64::from(at), count.into()));
            }
        }
        Err(Error::new("write: no space left on the file system".into()))
    }

    /// Allocates an inode in the group of its directory, or the next group with room. Returns its
    /// number, from 0.
    fn take_inode(&mut self, parent: Id, directory: bool) -> Result<u64, Error> {
        let above = self.names.node(parent)?.number / Ext2Layout::INODES;
        for group in self.groups_from(above) {
            let crowded =
                directory && self.group(group)?.free < u32::try_from(PER_GROUP / 8).unwrap_or(0);
            if crowded && group != above {
                continue;
            }
            if let Some(inode) = self.group(group)?.take_inode() {
                self.change(self.shape.maps(group) + 1)?;
                return Ok(group * Ext2Layout::INODES + u64::from(inode));
            }
        }
        Err(Error::new("create: no inode is free on the file system".into()))
    }

    /// Allocates block `lbn` of a file and those after it, at most `most`, with the indirect blocks
    /// they need before them. Returns the place of `lbn` and the number of contiguous blocks.
    fn grow(&mut self, id: Id, lbn: u64, most: u64) -> Result<(u64, u64), Error> {
        let inode = self.names.node(id)?;
        if let Some((at, count)) = inode.extents.rest(lbn, 1) {
            return Ok((at, most.min(count.into())));
        }
        let home = inode.number / Ext2Layout::INODES;
        let before = inode.extents.runs().last().map(|run| run.at + u64::from(run.fragments));
        let mut preferred = before.unwrap_or(self.shape.data(home));
        if lbn >= DIRECT && (lbn - DIRECT).is_multiple_of(POINTERS) {
            let nth = (lbn - DIRECT) / POINTERS;
            // The first indirect block has none above it. The second adds the double indirect
            // block, and 1024 later the triple one with another.
            let above = match nth.checked_sub(1) {
                None => 0,
                Some(0) => 1,
                Some(over) if over.is_multiple_of(POINTERS) => 1 + u64::from(over == POINTERS),
                Some(_) => 0,
            };
            for _ in 0..=above {
                let (at, _) = self.take(preferred, 1)?;
                self.names.node(id)?.indirect.push(at);
                self.cache.keep(DEVICE, at, 1);
                self.flusher.soil(DEVICE, at, 1, at * BLOCK)?;
                preferred = at + 1;
            }
        }
        // The next indirect block comes before the block that needs it.
        let until = if lbn < DIRECT { DIRECT - lbn } else { POINTERS - (lbn - DIRECT) % POINTERS };
        let (at, count) = self.take(preferred, most.min(until))?;
        let inode = self.names.node(id)?;
        inode.extents.put(lbn, at, u32::try_from(count).unwrap_or(1), 1);
        if let Some(&indirect) = inode.indirect.last() {
            self.flusher.soil(DEVICE, indirect, 1, indirect * BLOCK)?;
        }
        Ok((at, count))
    }

    /// Adds an entry of `bytes` to a directory: one of its pages becomes dirty.
    fn enter(&mut self, parent: Id, bytes: u64) -> Result<(), Error> {
        let inode = self.names.node(parent)?;
        let entries = inode
            .entries
            .as_mut()
            .ok_or_else(|| Error::new("make a file: its parent is not a directory".into()))?;
        *entries += 1;
        inode.entry += bytes;
        let (number, lbn) = (inode.number, (inode.entry - 1) / BLOCK);
        let grown = inode.extents.block(lbn, 1).is_none();
        inode.size = inode.size.max((lbn + 1) * BLOCK);
        self.grow(parent, lbn, 1)?;
        self.change(self.shape.inode_block(number))?;
        self.change_directory(parent, lbn, grown)
    }

    fn change_directory(&mut self, directory: Id, lbn: u64, new: bool) -> Result<(), Error> {
        let inode = self.names.node(directory)?;
        let number = inode.number;
        let Some((at, _)) = inode.extents.block(lbn, 1) else { return Ok(()) };
        if new {
            self.cache.keep(DEVICE, at, 1);
        } else {
            self.cache.fetch_block(&mut self.flusher.queue, at)?;
        }
        self.flusher.soil(number + 1, lbn, 1, at * BLOCK)
    }

    /// Reads the blocks that `open` and `stat` need: the directory's first block and the inode's.
    fn look_up(&mut self, name: &str) -> Result<Id, Error> {
        let id = self.names.get(name)?;
        let (parent, number) = (self.names.node(id)?.parent, self.names.node(id)?.number);
        if let Some((at, _)) = self.names.node(parent)?.extents.block(0, 1) {
            self.cache.fetch_block(&mut self.flusher.queue, at)?;
        }
        self.cache.fetch_block(&mut self.flusher.queue, self.shape.inode_block(number))?;
        Ok(id)
    }

    /// Makes an inode and its name.
    fn make(&mut self, name: &str, directory: bool) -> Result<Id, Error> {
        if self.names.is_there(name) {
            return Err(Error::new(format!("create {name}: it is there already")));
        }
        let parent = self.names.parent(name)?;
        let leaf = name.rsplit('/').next().unwrap_or(name).len().min(255) as u64;
        let entry = (8 + leaf).next_multiple_of(4);
        if self.names.node(parent)?.entries.is_none() {
            return Err(Error::new(format!("create {name}: its parent is not a directory")));
        }
        let number = self.take_inode(parent, directory)?;
        self.change(self.shape.inode_block(number))?;
        let id = self.names.enter(name, Inode { number, parent, entry, ..Inode::default() })?;
        if directory {
            let inode = self.names.node(id)?;
            (inode.entries, inode.size) = (Some(0), BLOCK);
            self.grow(id, 0, 1)?;
            self.change_directory(id, 0, true)?;
        }
        self.enter(parent, entry)?;
        Ok(id)
    }

    /// Removes a name, its inode and its blocks.
    fn drop_name(&mut self, name: &str) -> Result<(), Error> {
        let id = self.look_up(name)?;
        let parent = self.names.node(id)?.parent;
        if let Some(entries) = self.names.node(parent)?.entries.as_mut() {
            *entries -= 1;
        }
        self.change_directory(parent, 0, false)?;
        let Some(inode) = self.names.leave(name) else { return Ok(()) };
        self.flusher.drop_owner(inode.number + 1);
        self.cache.drop_owner(inode.number + 1);
        self.change(self.shape.inode_block(inode.number))?;
        let home = inode.number / Ext2Layout::INODES;
        self.group(home)?.give_inode(u32::try_from(inode.number % Ext2Layout::INODES).unwrap_or(0));
        self.change(self.shape.maps(home) + 1)?;
        let runs = inode.extents.runs().iter().map(|run| (run.at, u64::from(run.fragments)));
        for (at, count) in runs.chain(inode.indirect.iter().map(|&at| (at, 1))) {
            for group in at / PER_GROUP..=(at + count - 1) / PER_GROUP {
                let own = self.group(group)?;
                for block in at.max(group * PER_GROUP)..(at + count).min((group + 1) * PER_GROUP) {
                    own.give(u32::try_from(block % PER_GROUP).unwrap_or(0));
                }
                self.change(self.shape.maps(group))?;
            }
        }
        Ok(())
    }
}

impl Files for LinuxWriteback<'_> {
    fn now(&mut self) -> u64 {
        self.flusher.queue.now()
    }

    fn make_directory(&mut self, name: &str) -> Result<(), Error> {
        self.make(name, true).map(drop)
    }

    fn create(&mut self, name: &str) -> Result<File, Error> {
        let id = self.make(name, false)?;
        Ok(self.names.open(id))
    }

    fn open(&mut self, name: &str) -> Result<File, Error> {
        let id = self.look_up(name)?;
        Ok(self.names.open(id))
    }

    fn write(&mut self, file: File, offset: u64, length: u64) -> Result<(), Error> {
        let id = self.names.opened(file)?;
        let end = offset
            .checked_add(length)
            .ok_or_else(|| Error::new(format!("write at {offset}: past 2^64")))?;
        let (mut lbn, last) = (offset / BLOCK, end.div_ceil(BLOCK));
        let inode = self.names.node(id)?;
        inode.size = inode.size.max(end);
        let number = inode.number;
        while lbn < last {
            let (at, count) = self.grow(id, lbn, last - lbn)?;
            self.cache.keep(number + 1, lbn, count);
            self.flusher.soil(number + 1, lbn, count, at * BLOCK)?;
            lbn += count;
        }
        self.change(self.shape.inode_block(number))
    }

    fn read(&mut self, file: File, offset: u64, length: u64) -> Result<(), Error> {
        let id = self.names.opened(file)?;
        self.flusher.pump(false)?;
        let inode = self.names.node(id)?;
        let end = offset.saturating_add(length).min(inode.size);
        let cache = &mut self.cache;
        let queue = &mut self.flusher.queue;
        (offset / BLOCK..end.div_ceil(BLOCK))
            .try_for_each(|lbn| cache.read(queue, inode.number + 1, &inode.extents, lbn))
    }

    fn sync_file(&mut self, file: File) -> Result<(), Error> {
        let id = self.names.opened(file)?;
        let number = self.names.node(id)?.number;
        self.flusher.sync_owner(number + 1)?;
        self.flusher.sync_owner(DEVICE)
    }

    fn close(&mut self, file: File) -> Result<(), Error> {
        self.names.close(file).map(drop)
    }

    fn stat(&mut self, name: &str) -> Result<u64, Error> {
        let id = self.look_up(name)?;
        Ok(self.names.node(id)?.size)
    }

    fn set_times(&mut self, name: &str) -> Result<(), Error> {
        let id = self.names.get(name)?;
        let number = self.names.node(id)?.number;
        self.change(self.shape.inode_block(number))
    }

    fn remove(&mut self, name: &str) -> Result<(), Error> {
        let id = self.names.get(name)?;
        if self.names.node(id)?.entries.is_some() {
            return Err(Error::new(format!("remove {name}: it is a directory")));
        }
        self.drop_name(name)
    }

    fn remove_directory(&mut self, name: &str) -> Result<(), Error> {
        let id = self.names.get(name)?;
        match self.names.node(id)?.entries {
            Some(0) if id != ROOT => self.drop_name(name),
            Some(_) => Err(Error::new(format!("remove {name}: the directory is not empty"))),
            None => Err(Error::new(format!("remove {name}: it is not a directory"))),
        }
    }

    fn forget(&mut self) -> Result<(), Error> {
        self.flusher.sync()?;
        self.cache.empty();
        Ok(())
    }

    fn think(&mut self, ns: u64) {
        // The next write reports a failure of this one.
        let _ = self.flusher.think(ns);
    }

    fn is_virtual(&self) -> bool {
        self.flusher.queue.is_virtual()
    }
}

#[cfg(test)]
mod tests;
