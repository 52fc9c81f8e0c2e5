//! `freebsd-ufs`: one large file on an empty UFS2, read and written past the cache.
//!
//! # Where its blocks lie
//! ffs_blkpref fills a cylinder group with `maxbpg` blocks of a file, then goes on in the next
//! group that has more free blocks than the average: on an empty file system the next one. So the
//! file is a row of sections of `maxbpg` blocks, one at the beginning of the data of every group.
//! newfs of 2009 made groups of 11761 blocks of 16 KiB (183.77 MB) with 23552 inodes, so that data
//! begin at block 375.
//!
//! # What a request becomes
//! The blocks it touches, whole: a file system reads blocks. Blocks that follow one another are one
//! request.
//!
//! # Sources
//! FreeBSD `sys/ufs/ffs/ffs_alloc.c` (ffs_blkpref_ufs2), `sbin/newfs/mkfs.c`, newfs(8) of FreeBSD
//! 8.

use crate::error::Error;
use crate::rig::{FinishedRequest, Op, Request, Rig};
use serde::Deserialize;
use std::collections::BTreeMap;
use trueline_geom::base::error::Errno;
use trueline_geom::base::topology::{round_down, round_up};

/// The layout of the file system and the size of the file on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UfsLayout {
    /// The size of the file in bytes.
    pub file_bytes: u64,
    /// The size of a block in bytes.
    pub block_bytes: u64,
    /// Blocks in a cylinder group.
    pub group_blocks: u64,
    /// The first data block of a group.
    pub data_block: u64,
    /// Blocks of one file in a group before the next group is used.
    pub maxbpg: u64,
}

impl UfsLayout {
    /// The layout that newfs of FreeBSD 8 makes with blocks of 16 KiB, with a file of `file_bytes`.
    /// `None`: 4 GiB, or as much as the whole groups in `room` bytes can hold of one file.
    pub fn newfs(file_bytes: Option<u64>, room: u64) -> Result<UfsLayout, Error> {
        let shape = UfsLayout {
            file_bytes: 0,
            block_bytes: 16384,
            group_blocks: 11761,
            data_block: 375,
            maxbpg: 2048,
        };
        let groups = room / (shape.group_blocks * shape.block_bytes);
        let most = groups.saturating_mul(shape.maxbpg * shape.block_bytes);
        match file_bytes.unwrap_or(most.min(4 << 30)) {
            0 => Err(Error::new(format!(
                "host freebsd-ufs: the target has {room} bytes, less than a cylinder group of {}",
                shape.group_blocks * shape.block_bytes
            ))),
            file_bytes => Ok(UfsLayout { file_bytes, ..shape }),
        }
    }
}

/// A large file on UFS2, as a rig.
pub struct FreebsdUfs<'a> {
    below: &'a mut dyn Rig,
    shape: UfsLayout,
    /// Unfinished requests by tag.
    open: BTreeMap<u64, Open>,
    /// Tags of requests by the tags of their parts.
    parts: BTreeMap<u64, u64>,
    next_part: u64,
}

struct Open {
    parts: usize,
    done: FinishedRequest,
}

impl<'a> FreebsdUfs<'a> {
    /// A file on the file system that fills `below`. It is an error if the file does not fit.
    pub fn new(below: &'a mut dyn Rig, shape: UfsLayout) -> Result<FreebsdUfs<'a>, Error> {
        let UfsLayout { file_bytes, block_bytes, group_blocks, data_block, maxbpg } = shape;
        let impossible = |why: String| Error::new(format!("host freebsd-ufs: {why}"));
        if !block_bytes.is_power_of_two() || block_bytes < below.sector() {
            return Err(impossible(format!(
                "block_bytes = {block_bytes}: a power of two, at least a sector of {}",
                below.sector()
            )));
        }
        if maxbpg == 0 || data_block.checked_add(maxbpg).is_none_or(|end| end > group_blocks) {
            return Err(impossible(format!(
                "data_block + maxbpg = {data_block} + {maxbpg}: inside a group of {group_blocks} blocks"
            )));
        }
        let file = FreebsdUfs {
            below,
            shape,
            open: BTreeMap::new(),
            parts: BTreeMap::new(),
            next_part: 0,
        };
        let room = file.below.length();
        let end = file_bytes
            .checked_sub(1)
            .and_then(|last| file.place(last))
            .and_then(|last| last.checked_add(1));
        match end {
            Some(end) if end <= room => Ok(file),
            _ => Err(impossible(format!(
                "a file of {file_bytes} bytes does not fit on a file system of {room}"
            ))),
        }
    }

    /// The byte of the provider that holds byte `at` of the file.
    fn place(&self, at: u64) -> Option<u64> {
        let UfsLayout { block_bytes, group_blocks, data_block, maxbpg, .. } = self.shape;
        let section = maxbpg.checked_mul(block_bytes)?;
        let group = (at / section).checked_mul(group_blocks)?;
        group.checked_add(data_block)?.checked_mul(block_bytes)?.checked_add(at % section)
    }

    /// The parts of a request as (offset, length): whole blocks, cut at section boundaries.
    fn cut(&self, request: &Request) -> Result<Vec<(u64, u64)>, Errno> {
        if request.op == Op::Flush {
            return Ok(vec![(0, 0)]);
        }
        let end = request
            .offset
            .checked_add(request.length)
            .filter(|&end| end <= self.shape.file_bytes)
            .ok_or(Errno::Range)?;
        let (mut at, end) = (
            round_down(request.offset, self.shape.block_bytes),
            round_up(end, self.shape.block_bytes),
        );
        let end = end.ok_or(Errno::Range)?;
        let section = self.shape.maxbpg * self.shape.block_bytes;
        let mut parts = Vec::new();
        while at < end {
            let length = (section - at % section).min(end - at);
            parts.push((self.place(at).ok_or(Errno::Range)?, length));
            at += length;
        }
        Ok(parts)
    }
}

impl Rig for FreebsdUfs<'_> {
    fn length(&self) -> u64 {
        self.shape.file_bytes
    }

    fn sector(&self) -> u64 {
        self.below.sector()
    }

    fn depth(&self) -> usize {
        self.below.depth()
    }

    fn now(&mut self) -> u64 {
        self.below.now()
    }

    fn push(&mut self, request: Request) -> Result<(), Errno> {
        let parts = self.cut(&request)?;
        for (sent, (offset, length)) in parts.into_iter().enumerate() {
            let part = self.next_part;
            match self.below.push(Request { tag: part, offset, length, ..request }) {
                Ok(()) => {}
                // The parts already sent will complete, so the error is reported with them.
                Err(errno) if sent == 0 => return Err(errno),
                Err(errno) => {
                    if let Some(open) = self.open.get_mut(&request.tag) {
                        open.done.error = Some(errno);
                    }
                    break;
                }
            }
            self.next_part += 1;
            self.parts.insert(part, request.tag);
            let new = || Open {
                parts: 0,
                done: FinishedRequest { tag: request.tag, at: 0, error: None },
            };
            self.open.entry(request.tag).or_insert_with(new).parts += 1;
        }
        Ok(())
    }

    fn wait(&mut self, least: usize, done: &mut Vec<FinishedRequest>) -> Result<(), Errno> {
        let (before, mut some) = (done.len(), Vec::new());
        while !self.open.is_empty() && done.len() - before < least.max(1) {
            self.below.wait(1, &mut some)?;
            if some.is_empty() {
                break;
            }
            for FinishedRequest { tag, at, error } in some.drain(..) {
                let Some(tag) = self.parts.remove(&tag) else { continue };
                let Some(open) = self.open.get_mut(&tag) else { continue };
                open.parts -= 1;
                open.done.at = open.done.at.max(at);
                open.done.error = open.done.error.or(error);
                if open.parts == 0 {
                    done.extend(self.open.remove(&tag).map(|open| open.done));
                }
            }
        }
        Ok(())
    }

    fn think(&mut self, ns: u64) {
        self.below.think(ns);
    }

    fn rest(&mut self, ns: u64) {
        self.below.rest(ns);
    }

    fn is_virtual(&self) -> bool {
        self.below.is_virtual()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::observed::Observed;
    use crate::rig::simulated::Simulated;
    use trueline_geom::mapping::route::Route;
    use trueline_sim::model::Model;
    use trueline_sim::world::{Schedule, World};

    const MAV: UfsLayout = UfsLayout {
        file_bytes: 4 << 30,
        block_bytes: 16384,
        group_blocks: 11761,
        data_block: 375,
        maxbpg: 2048,
    };

    fn below(length: u64) -> Observed {
        let drive = Model::parse(Model::named("md").unwrap()).unwrap().drive(1);
        let world = World::new(vec![(drive, 512)], Schedule::Fifo);
        Observed::new(Simulated::new(world, Route::store(0, length), 512, 0))
    }

    #[test]
    fn a_file_goes_on_in_the_next_group() {
        let mut below = below(1 << 40);
        let file = FreebsdUfs::new(&mut below, MAV).unwrap();
        let (data, group, section) = (375 * 16384, 11761 * 16384, 2048 * 16384);
        assert_eq!(file.place(0), Some(data));
        assert_eq!(file.place(section - 1), Some(data + section - 1));
        assert_eq!(file.place(section), Some(data + group));
        assert_eq!(file.place(5 * section + 7), Some(data + 5 * group + 7));
    }

    #[test]
    fn a_request_is_its_blocks_and_is_done_once() {
        let mut below = below(1 << 40);
        let mut file = FreebsdUfs::new(&mut below, MAV).unwrap();
        let section = 2048 * 16384;
        let request =
            Request { tag: 9, op: Op::Read, offset: section - 512, length: 1024, fua: false };
        file.push(request).unwrap();
        let mut done = Vec::new();
        file.wait(1, &mut done).unwrap();
        assert_eq!(done.iter().map(|d| (d.tag, d.error)).collect::<Vec<_>>(), [(9, None)]);
        assert_eq!(file.push(Request { offset: MAV.file_bytes, ..request }), Err(Errno::Range));
        assert_eq!(
            below.seen(),
            [(375 * 16384 + section - 16384, 16384), ((11761 + 375) * 16384, 16384)]
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let refused = |shape, length| {
            FreebsdUfs::new(&mut below(length), shape).err().map(|e| e.message).unwrap_or_default()
        };
        assert!(refused(MAV, 1 << 34).contains("does not fit"));
        assert!(refused(UfsLayout { maxbpg: 11761, ..MAV }, 1 << 40).contains("inside a group"));
        assert!(refused(UfsLayout { block_bytes: 3000, ..MAV }, 1 << 40).contains("power of two"));
        assert!(refused(UfsLayout { file_bytes: 0, ..MAV }, 1 << 40).contains("does not fit"));
        assert!(
            refused(UfsLayout { group_blocks: u64::MAX, ..MAV }, 1 << 40).contains("does not fit")
        );
    }
}
