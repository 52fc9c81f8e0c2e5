//! The placement of new inodes and blocks: `ffs_dirpref`, `ffs1_blkpref`, `ffs_hashalloc`.

use super::inode::Inode;
use super::{DEVICE, DEVICE_DELAY, Group, OpenbsdFfs};
use crate::error::Error;
use crate::os::names::{Id, ROOT};

/// Direct pointers of an inode (`NDADDR`).
const DIRECT: u64 = 12;
/// The expected number of files in a directory, and of their bytes (`avgfpdir`, × `avgfilesize`
/// 16384).
const DIRECTORY_FILES: u64 = 64;
const DIRECTORY_BYTES: u64 = 16384 * DIRECTORY_FILES;

impl OpenbsdFfs<'_> {
    pub(super) fn group(&mut self, group: u32) -> &mut Group {
        let shape = &self.shape;
        self.groups[group as usize].get_or_insert_with(|| Box::new(Group::new(shape, group)))
    }

    /// All groups, each once, from `group` on and then from 0.
    fn groups_from(&self, group: u32) -> impl Iterator<Item = u32> + use<> {
        let groups = self.shape.groups;
        (group..groups).chain(0..group)
    }

    /// Allocates an inode: a file's in the group of its directory, a directory's where it has room
    /// to grow. Returns its number.
    pub(super) fn take_inode(&mut self, parent: Id, directory: bool) -> Result<u64, Error> {
        let above = self.shape.group_of_inode(self.names.node(parent)?.number);
        let preferred = if directory { self.group_for_directory(parent, above) } else { above };
        for group in self.groups_from(preferred) {
            self.fetch(self.shape.map_of(group), self.shape.bsize)?;
            if let Some(inode) = self.group(group).take_inode() {
                let own = self.group(group);
                own.new_directories = if directory {
                    own.new_directories + 1
                } else {
                    own.new_directories.saturating_sub(1)
                };
                own.directories += u32::from(directory);
                self.directories += u64::from(directory);
                self.free_inodes -= 1;
                self.write_later(DEVICE, self.shape.map_of(group), self.shape.bsize, DEVICE_DELAY);
                return Ok(u64::from(group) * u64::from(self.shape.inodes) + u64::from(inode));
            }
        }
        Err(Error::new("create: no inode is free on the file system".into()))
    }

    /// The group for a new directory. In the root: the one with the fewest directories, from a
    /// random group on. Elsewhere: near its parent, until a group has many directories, or is a
    /// quarter of a group fuller than the average, or has as many new ones as fit with their
    /// expected content.
    fn group_for_directory(&mut self, parent: Id, above: u32) -> u32 {
        let groups = u64::from(self.shape.groups);
        let (blocks, inodes, directories) =
            (self.free_blocks / groups, self.free_inodes / groups, self.directories / groups);
        if parent == ROOT {
            let first = u32::try_from(self.random.below(groups)).unwrap_or(0);
            let roomy = |own: &mut Self, group: u32| {
                let group = own.group(group);
                u64::from(group.free_inodes) >= inodes && u64::from(group.free_blocks) >= blocks
            };
            let found: Vec<u32> =
                self.groups_from(first).filter(|&group| roomy(self, group)).collect();
            return found
                .into_iter()
                .min_by_key(|&group| self.group(group).directories)
                .unwrap_or(first);
        }
        let most = (directories + u64::from(self.shape.inodes) / 16).min(self.shape.inodes.into());
        let (blocks_of_one, inodes_of_one) =
            (u64::from(self.shape.per_group / self.shape.frag), u64::from(self.shape.inodes));
        let contiguous = (blocks * self.shape.bsize / DIRECTORY_BYTES)
            .min(inodes_of_one / DIRECTORY_FILES)
            .clamp(1, 255);
        let has_room = |own: &mut Self, group: u32| {
            let group = own.group(group);
            u64::from(group.directories) < most
                && u64::from(group.free_inodes) >= inodes.saturating_sub(inodes_of_one / 4)
                && u64::from(group.free_blocks) >= blocks.saturating_sub(blocks_of_one / 4)
                && u64::from(group.new_directories) < contiguous
        };
        self.groups_from(above).find(|&group| has_room(self, group)).unwrap_or(above)
    }

    /// Extends block `lbn` of a file to `fragments`: in place if the next ones are free, else
    /// elsewhere.
    pub(super) fn grow(&mut self, id: Id, lbn: u64, fragments: u32) -> Result<(), Error> {
        let frag = self.shape.frag;
        let old = self.names.node(id)?.extents.block(lbn, frag);
        if let Some((at, had)) = old {
            if had >= fragments {
                return Ok(());
            }
            let (group, within) = self.split(at);
            if self.group(group).extend(within, had, fragments) {
                self.names.node(id)?.extents.put(lbn, at, fragments, frag);
                return self.note_map(group);
            }
        }
        let preferred = self.preferred(id, lbn)?;
        let at = self.take(preferred, fragments)?;
        if let Some((at, had)) = old {
            self.buffers.forget(self.shape.byte(at));
            self.give(at, had);
        }
        self.names.node(id)?.extents.put(lbn, at, fragments, frag);
        Ok(())
    }

    /// Allocates the indirect block that block `lbn` is the first to need. It is written at once,
    /// so that it never points at garbage.
    pub(super) fn indirect(&mut self, id: Id, lbn: u64) -> Result<(), Error> {
        let Some(over) = lbn.checked_sub(DIRECT) else { return Ok(()) };
        let pointers = self.shape.pointers();
        if over % pointers == 0
            && self.names.node(id)?.indirect.len() as u64
                == over / pointers + u64::from(over > pointers)
        {
            // The second one needs the double indirect block above it too.
            for _ in 0..(if over == pointers { 2 } else { 1 }) {
                let preferred = self.preferred(id, lbn)?;
                let at = self.take(preferred, self.shape.frag)?;
                self.names.node(id)?.indirect.push(at);
                self.write_now(self.shape.byte(at), self.shape.bsize)?;
            }
        }
        let number = self.names.node(id)?.number;
        if let Some(&at) = self.names.node(id)?.indirect.last() {
            self.write_later(number, self.shape.byte(at), self.shape.bsize, super::FILE_DELAY);
        }
        Ok(())
    }

    /// The preferred place of a block: after the one before it; after as many blocks as an indirect
    /// block has pointers, in the next group with average free space.
    fn preferred(&mut self, id: Id, lbn: u64) -> Result<u64, Error> {
        let (frag, pointers) = (self.shape.frag, self.shape.pointers());
        let inode = self.names.node(id)?;
        let home = self.shape.group_of_inode(inode.number);
        let before = lbn.checked_sub(1).and_then(|lbn| inode.extents.block(lbn, frag));
        let indirect = inode.indirect.last().copied();
        let begin = |group| self.shape.base(group) + u64::from(self.shape.data);
        match (lbn.checked_sub(DIRECT), before) {
            (Some(0), _) | (None, None) => {
                Ok(indirect.map_or(begin(home), |at| at + u64::from(frag)))
            }
            (Some(over), Some((at, _))) if over % pointers == 0 => {
                let average = self.free_blocks / u64::from(self.shape.groups);
                let next = (self.split(at).0 + 1) % self.shape.groups;
                let group = self
                    .groups_from(next)
                    .find(|&group| u64::from(self.group(group).free_blocks) >= average)
                    .unwrap_or(next);
                let wanted = self.shape.base(group) + u64::from(self.shape.data);
                Ok(indirect
                    .filter(|&at| self.split(at).0 == group)
                    .map_or(wanted, |at| at + u64::from(frag)))
            }
            (_, Some((at, _))) => Ok(at + u64::from(frag)),
            (Some(_), None) => Ok(begin(home)),
        }
    }

    /// Allocates fragments, preferably at `preferred`. Returns the first.
    fn take(&mut self, preferred: u64, fragments: u32) -> Result<u64, Error> {
        let (first, within) = self.split(preferred.min(self.shape.size - 1));
        for group in self.groups_from(first) {
            self.fetch(self.shape.map_of(group), self.shape.bsize)?;
            let wanted = (group == first).then_some(within);
            let own = self.group(group);
            let before = own.free_blocks;
            let taken = own.take(fragments, wanted);
            let broken = before - own.free_blocks;
            if let Some(at) = taken {
                self.free_blocks -= u64::from(broken);
                self.write_later(DEVICE, self.shape.map_of(group), self.shape.bsize, DEVICE_DELAY);
                return Ok(self.shape.base(group) + u64::from(at));
            }
        }
        Err(Error::new("write: no space left on the file system".into()))
    }

    fn give(&mut self, at: u64, fragments: u32) {
        let (group, within) = self.split(at);
        let own = self.group(group);
        let before = own.free_blocks;
        own.give(within, fragments);
        let whole = own.free_blocks - before;
        self.free_blocks += u64::from(whole);
    }

    /// Frees all blocks of a removed file, and its inode.
    pub(super) fn give_back(&mut self, inode: Inode) -> Result<(), Error> {
        let (frag, bsize) = (self.shape.frag, self.shape.bsize);
        let mut groups = vec![self.shape.group_of_inode(inode.number)];
        for run in inode.extents.runs() {
            let mut given = 0;
            while given < run.fragments {
                let (at, fragments) =
                    (run.at + u64::from(given), (run.fragments - given).min(frag));
                self.buffers.forget(self.shape.byte(at));
                self.give(at, fragments);
                given += fragments;
            }
            groups.push(self.split(run.at).0);
        }
        for &at in &inode.indirect {
            self.buffers.forget(self.shape.byte(at));
            self.give(at, frag);
        }
        let within = u32::try_from(inode.number % u64::from(self.shape.inodes)).unwrap_or(0);
        let home = self.shape.group_of_inode(inode.number);
        let own = self.group(home);
        own.give_inode(within);
        own.directories -= u32::from(inode.directory.is_some());
        self.directories -= u64::from(inode.directory.is_some());
        self.free_inodes += 1;
        groups.dedup();
        for group in groups {
            let map = self.shape.map_of(group);
            self.fetch(map, bsize)?;
            self.write_later(DEVICE, map, bsize, DEVICE_DELAY);
        }
        Ok(())
    }

    /// Marks the map of a group as changed.
    fn note_map(&mut self, group: u32) -> Result<(), Error> {
        let (map, bsize) = (self.shape.map_of(group), self.shape.bsize);
        self.fetch(map, bsize)?;
        self.write_later(DEVICE, map, bsize, DEVICE_DELAY);
        Ok(())
    }

    /// The group of a fragment, and its number within the group.
    fn split(&self, at: u64) -> (u32, u32) {
        let per = u64::from(self.shape.per_group);
        let narrow = |x: u64| u32::try_from(x).unwrap_or(u32::MAX);
        (narrow(at / per), narrow(at % per))
    }
}
