//! `openbsd-ffs`: OpenBSD 4.6's FFS without soft updates, mounted with defaults, on any rig.
//!
//! # Rules
//! From OpenBSD's `sys/ufs/ufs/ufs_vnops.c`, `ufs_lookup.c`,
//! `sys/ufs/ffs/{ffs_alloc,ffs_balloc,ffs_inode}.c`, `sys/kern/vfs_{cluster,subr,sync,bio}.c` and
//! `sbin/newfs/mkfs.c`:
//!
//! - **Making a file** waits for two writes: the block of inodes that its inode is in (`bsize`
//!   bytes), then the buffer of the directory that its name is in, which is as long as the
//!   directory's last block: some fragments. Where the name begins a new 512 bytes of the
//!   directory, it waits for the directory's inode too.
//! - **A directory** is four of these: its parent's inode, its own, its own first fragment, its
//!   name.
//! - **Removing** waits for the buffer of the name and for the inode; what is given back is noted
//!   in maps that are written later.
//! - **Times and sizes** are written with their inode, later.
//! - **File data**: whole blocks that lie one after another are gathered to 64 KiB and sent,
//!   without waiting; the tail of a file, and what never makes a cluster, stays in memory until its
//!   owner is due.
//! - **The syncer** writes all that a file has dirty 30 s after its first dirty buffer, and all of
//!   the device's (inodes, maps) after 10 s; each buffer is a write of its own, none is waited for.
//! - A buffer that is being written is not changed before the write is done.
//!
//! # Limits
//! An empty file system that was made with `newfs -f fsize -b bsize -i 4*fsize`; groups are tried
//! in turn when one is full, where the kernel rehashes; nothing is kept free for root; the
//! processor's time is not in it. The order of writes of one owner is that of their places.

use super::buffers::Buffers;
use super::names::{Id, Names, ROOT};
use super::numbered::Numbered;
use super::queue::Queue;
use crate::error::Error;
use crate::files::{File, Files};
use crate::rig::{Op, Rig};
use group::Group;
use inode::{DIRECTORY_BLOCK, Directory, Inode};
use serde::Deserialize;
use shape::FfsLayout;
use trueline_geom::base::topology::{round_down, round_up};
use trueline_sim::random::Random;

mod data;
mod group;
mod inode;
mod place;
mod shape;

/// One second in nanoseconds.
const S: u64 = 1_000_000_000;
/// Seconds until the syncer writes dirty buffers: `syncdelay`, and a third of it for a mounted
/// device (`reassignbuf`). Buffers of directories are never left dirty without soft updates.
const FILE_DELAY: u64 = 30;
const DEVICE_DELAY: u64 = 10;
/// The owner of inodes and maps; a file's owner is its inode's number, which is never 0.
const DEVICE: u64 = 0;

/// The parameters of newfs, and the properties of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// The size of a fragment in bytes, `newfs -f`.
    pub fsize: u64,
    /// The size of a block in bytes, `newfs -b`.
    pub bsize: u64,
    /// The most bytes of one read or write (`MAXPHYS`, `MAXBSIZE`).
    pub cluster: u64,
    /// The size of the buffer cache in bytes: a tenth of the memory. Above three quarters of it
    /// dirty, the cleaner writes down to a half.
    pub cache: u64,
    /// The most asynchronous writes in flight; the next one waits.
    pub in_flight: usize,
}

impl Default for Parameters {
    /// The defaults of newfs of 2009, and the host of seed 000 with 3326 MB of memory.
    fn default() -> Parameters {
        Parameters { fsize: 2048, bsize: 16384, cluster: 65536, cache: 332 << 20, in_flight: 64 }
    }
}

/// An FFS without soft updates.
pub struct OpenbsdFfs<'a> {
    queue: Queue<'a>,
    parameters: Parameters,
    shape: FfsLayout,
    /// Cylinder groups by number, each made on first use.
    groups: Vec<Option<Box<Group>>>,
    free_blocks: u64,
    free_inodes: u64,
    directories: u64,
    /// The random group at which the search for a directory of the root begins.
    random: Random,
    buffers: Buffers,
    names: Names<Inode>,
    /// Tags of reads in flight by the first byte of a block.
    arriving: Numbered<u64, u64>,
    /// A vector that [`OpenbsdFfs::send`] reuses.
    sending: Vec<(u64, u64)>,
}

impl<'a> OpenbsdFfs<'a> {
    /// An empty file system that fills a rig.
    pub fn new(rig: &'a mut dyn Rig, parameters: Parameters) -> Result<OpenbsdFfs<'a>, Error> {
        let queue = Queue::new(rig);
        let shape =
            FfsLayout::new(queue.length(), queue.sector(), parameters.fsize, parameters.bsize)?;
        let mut groups: Vec<_> = (0..shape.groups).map(|_| None).collect();
        let free = |group| u64::from((shape.fragments(group) - shape.data) / shape.frag);
        let free_blocks: u64 = (0..shape.groups).map(free).sum();
        let parameters = Parameters {
            in_flight: parameters.in_flight.max(1),
            cluster: parameters.cluster.max(parameters.bsize),
            ..parameters
        };
        let mut root = Inode {
            number: 2,
            size: DIRECTORY_BLOCK,
            directory: Some(Box::new(Directory::new())),
            ..Inode::default()
        };
        let mut first = Group::new(&shape, 0);
        // Inodes 0 and 1 are unused (`ROOTINO` is 2); the root has one fragment.
        for _ in 0..3 {
            first.take_inode();
        }
        let before = first.free_blocks;
        let at = first
            .take(1, None)
            .ok_or_else(|| Error::new("newfs: no room for a root directory".into()))?;
        root.extents.put(0, u64::from(at), 1, shape.frag);
        first.directories = 1;
        let free_blocks = free_blocks - u64::from(before - first.free_blocks);
        groups[0] = Some(Box::new(first));
        let (buffers, names) = (Buffers::new(parameters.cache), Names::new(root));
        Ok(OpenbsdFfs {
            queue,
            parameters,
            shape,
            groups,
            free_blocks,
            free_inodes: u64::from(shape.groups) * u64::from(shape.inodes) - 3,
            directories: 1,
            random: Random::new(1),
            buffers,
            names,
            arriving: Numbered::default(),
            sending: Vec::new(),
        })
    }

    /// The extents of a file as (first byte of the provider, bytes), in the file's order.
    pub fn extents(&mut self, name: &str) -> Result<Vec<(u64, u64)>, Error> {
        let (id, shape) = (self.names.get(name)?, self.shape);
        Ok(self
            .names
            .node(id)?
            .extents
            .runs()
            .iter()
            .map(|run| (shape.byte(run.at), u64::from(run.fragments) * shape.fsize))
            .collect())
    }

    /// Runs the syncer and the cleaner: sends owners that are due, and the oldest while too much is
    /// dirty.
    fn syncer(&mut self) -> Result<(), Error> {
        let now = self.queue.now();
        while let Some(owner) = self.buffers.due(now) {
            self.send(owner)?;
        }
        if self.buffers.dirty() > self.parameters.cache / 4 * 3 {
            while self.buffers.dirty() > self.parameters.cache / 2 {
                let Some(owner) = self.buffers.due(u64::MAX) else { break };
                self.send(owner)?;
            }
        }
        Ok(())
    }

    /// Sends all dirty buffers of an owner.
    fn send(&mut self, owner: u64) -> Result<(), Error> {
        let mut sending = std::mem::take(&mut self.sending);
        sending.clear();
        self.buffers.take(owner, &mut sending);
        let sent =
            sending.iter().try_for_each(|&(offset, length)| self.write_behind(offset, length));
        self.sending = sending;
        sent
    }

    /// A write that the program waits for (`bwrite`).
    fn write_now(&mut self, offset: u64, length: u64) -> Result<(), Error> {
        self.buffers.write(offset, length);
        self.queue.wait_for(Op::Write, offset, length)
    }

    /// A write that the program does not wait for (`bawrite`).
    fn write_behind(&mut self, offset: u64, length: u64) -> Result<(), Error> {
        self.queue.settle(self.parameters.in_flight - 1)?;
        self.queue.begin(Op::Write, offset, length).map(drop)
    }

    /// Changes a buffer that is written later (`bdwrite`), `delay` seconds after its owner first
    /// becomes dirty.
    fn write_later(&mut self, owner: u64, offset: u64, length: u64, delay: u64) {
        let second = round_down(self.queue.now(), S);
        self.buffers.soil(owner, offset, length, second + delay * S);
    }

    /// Reads a buffer unless it is cached (`bread`).
    fn fetch(&mut self, offset: u64, length: u64) -> Result<(), Error> {
        if !self.arriving.is_empty()
            && let Some(tag) = self.arriving.remove(&offset)
        {
            self.queue.finish(tag)?;
        }
        if !self.buffers.keeps(offset, length) {
            self.queue.wait_for(Op::Read, offset, length)?;
            self.buffers.keep(offset, length);
        }
        Ok(())
    }

    /// Updates an inode (`UFS_UPDATE`), written now or later.
    fn update(&mut self, number: u64, now: bool) -> Result<(), Error> {
        let (offset, length) = (self.shape.inode_block(number), self.shape.bsize);
        self.fetch(offset, length)?;
        if now {
            return self.write_now(offset, length);
        }
        self.write_later(DEVICE, offset, length, DEVICE_DELAY);
        Ok(())
    }

    /// The buffer that contains a directory's block of 512 bytes: first byte, bytes.
    fn directory_buffer(&mut self, directory: Id, block: u32) -> Result<(u64, u64), Error> {
        let (frag, bsize) = (self.shape.frag, self.shape.bsize);
        let lbn = u64::from(block) * DIRECTORY_BLOCK / bsize;
        let place = self.names.node(directory)?.extents.block(lbn, frag);
        let (at, fragments) = place.ok_or_else(|| {
            Error::new(format!("directory inode {directory}: block {lbn} is not there"))
        })?;
        Ok((self.shape.byte(at), u64::from(fragments) * self.shape.fsize))
    }

    /// Adds an entry of `bytes` to a directory (`ufs_direnter`). Returns its block of 512 bytes and
    /// its length.
    fn enter(&mut self, parent: Id, bytes: u16) -> Result<(u32, u16), Error> {
        let inode = self.names.node(parent)?;
        let directory = inode
            .directory
            .as_mut()
            .ok_or_else(|| Error::new("make a file: its parent is not a directory".into()))?;
        let (block, new) = directory.enter(bytes);
        let (number, lbn) = (inode.number, u64::from(block) * DIRECTORY_BLOCK / self.shape.bsize);
        if new {
            let size = (u64::from(block) + 1) * DIRECTORY_BLOCK;
            inode.size = size;
            let fragments = round_up(size - lbn * self.shape.bsize, self.shape.fsize).unwrap_or(0)
                / self.shape.fsize;
            let known = self
                .directory_buffer(parent, block)
                .is_ok_and(|(offset, _)| self.buffers.has(offset));
            self.grow(parent, lbn, u32::try_from(fragments).unwrap_or(self.shape.frag))?;
            let (offset, length) = self.directory_buffer(parent, block)?;
            if known {
                self.buffers.keep(offset, length);
            }
            self.write_now(offset, length)?;
            self.update(number, true)?;
        } else {
            let (offset, length) = self.directory_buffer(parent, block)?;
            self.fetch(offset, length)?;
            self.write_now(offset, length)?;
        }
        Ok((block, bytes))
    }

    /// Allocates an inode that is not in any directory yet, and reads its block.
    fn new_inode(&mut self, name: &str, directory: bool) -> Result<(Id, Inode), Error> {
        if self.names.is_there(name) {
            return Err(Error::new(format!("create {name}: it is there already")));
        }
        let parent = self.names.parent(name)?;
        let number = self.take_inode(parent, directory)?;
        self.fetch(self.shape.inode_block(number), self.shape.bsize)?;
        Ok((parent, Inode { number, parent, ..Inode::default() }))
    }

    /// Reads the buffers that `open` and `stat` need: the one of the name and the inode's block.
    fn look_up(&mut self, name: &str) -> Result<Id, Error> {
        let id = self.names.get(name)?;
        let (parent, (block, _), number) = {
            let inode = self.names.node(id)?;
            (inode.parent, inode.entry, inode.number)
        };
        let (offset, length) = self.directory_buffer(parent, block)?;
        self.fetch(offset, length)?;
        self.fetch(self.shape.inode_block(number), self.shape.bsize)?;
        Ok(id)
    }

    /// Removes a name, and frees its inode and blocks (`ufs_dirremove`, `ffs_truncate`,
    /// `ffs_freefile`).
    fn drop_name(&mut self, name: &str) -> Result<(), Error> {
        let id = self.look_up(name)?;
        let (parent, entry, number) = {
            let inode = self.names.node(id)?;
            (inode.parent, inode.entry, inode.number)
        };
        if let Some(directory) = self.names.node(parent)?.directory.as_mut() {
            directory.leave(entry);
        }
        let (offset, length) = self.directory_buffer(parent, entry.0)?;
        self.write_now(offset, length)?;
        self.update(number, true)?;
        if let Some(inode) = self.names.leave(name) {
            self.give_back(inode)?;
        }
        self.update(number, false)
    }
}

impl Files for OpenbsdFfs<'_> {
    fn now(&mut self) -> u64 {
        self.queue.now()
    }

    fn make_directory(&mut self, name: &str) -> Result<(), Error> {
        self.syncer()?;
        let (parent, inode) = self.new_inode(name, true)?;
        let number = inode.number;
        let above = self.names.node(parent)?.number;
        self.update(above, true)?;
        let id = self.names.enter(
            name,
            Inode { size: DIRECTORY_BLOCK, directory: Some(Box::new(Directory::new())), ..inode },
        )?;
        self.grow(id, 0, 1)?;
        self.update(number, true)?;
        let (offset, length) = self.directory_buffer(id, 0)?;
        self.write_now(offset, length)?;
        let entry = self.enter(parent, Directory::entry_bytes(name))?;
        self.names.node(id)?.entry = entry;
        Ok(())
    }

    fn create(&mut self, name: &str) -> Result<File, Error> {
        self.syncer()?;
        let (parent, inode) = self.new_inode(name, false)?;
        self.update(inode.number, true)?;
        let entry = self.enter(parent, Directory::entry_bytes(name))?;
        let id = self.names.enter(name, Inode { entry, ..inode })?;
        Ok(self.names.open(id))
    }

    fn open(&mut self, name: &str) -> Result<File, Error> {
        self.syncer()?;
        let id = self.look_up(name)?;
        Ok(self.names.open(id))
    }

    fn write(&mut self, file: File, offset: u64, length: u64) -> Result<(), Error> {
        self.syncer()?;
        let id = self.names.opened(file)?;
        self.write_data(id, offset, length)
    }

    fn read(&mut self, file: File, offset: u64, length: u64) -> Result<(), Error> {
        self.syncer()?;
        let id = self.names.opened(file)?;
        self.read_data(id, offset, length)
    }

    fn sync_file(&mut self, file: File) -> Result<(), Error> {
        let id = self.names.opened(file)?;
        let number = self.names.node(id)?.number;
        self.send(number)?;
        self.queue.settle(0)?;
        self.update(number, true)
    }

    fn close(&mut self, file: File) -> Result<(), Error> {
        self.names.close(file).map(drop)
    }

    fn stat(&mut self, name: &str) -> Result<u64, Error> {
        self.syncer()?;
        let id = self.look_up(name)?;
        Ok(self.names.node(id)?.size)
    }

    fn set_times(&mut self, name: &str) -> Result<(), Error> {
        let id = self.names.get(name)?;
        let number = self.names.node(id)?.number;
        self.update(number, false)
    }

    fn remove(&mut self, name: &str) -> Result<(), Error> {
        self.syncer()?;
        let id = self.names.get(name)?;
        if self.names.node(id)?.directory.is_some() {
            return Err(Error::new(format!("remove {name}: it is a directory")));
        }
        self.drop_name(name)
    }

    fn remove_directory(&mut self, name: &str) -> Result<(), Error> {
        self.syncer()?;
        let id = self.names.get(name)?;
        match self.names.node(id)?.directory.as_ref().map(|directory| directory.entries) {
            Some(0) if id != ROOT => self.drop_name(name),
            Some(_) => Err(Error::new(format!("remove {name}: the directory is not empty"))),
            None => Err(Error::new(format!("remove {name}: it is not a directory"))),
        }
    }

    fn forget(&mut self) -> Result<(), Error> {
        while let Some(owner) = self.buffers.due(u64::MAX) {
            self.send(owner)?;
        }
        self.queue.settle(0)?;
        self.arriving.clear();
        self.buffers.empty();
        for inode in self.names.nodes() {
            (inode.cluster, inode.read_on) = ((0, 0), 0);
        }
        Ok(())
    }

    fn think(&mut self, ns: u64) {
        self.queue.think(ns);
    }

    fn is_virtual(&self) -> bool {
        self.queue.is_virtual()
    }
}

#[cfg(test)]
mod tests;
