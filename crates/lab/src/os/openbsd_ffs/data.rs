//! File data: `ffs_write` and `ffs_read`, through the clusters of `vfs_cluster.c`.

use super::{FILE_DELAY, OpenbsdFfs};
use crate::error::Error;
use crate::os::names::Id;
use crate::rig::Op;

/// Direct pointers of an inode. Only a file that ends among them ends in fragments.
const DIRECT: u64 = 12;

impl OpenbsdFfs<'_> {
    pub(super) fn write_data(&mut self, id: Id, offset: u64, length: u64) -> Result<(), Error> {
        let (bsize, fsize, frag) = (self.shape.bsize, self.shape.fsize, self.shape.frag);
        let end = offset
            .checked_add(length)
            .ok_or_else(|| Error::new(format!("write at {offset}: past 2^64")))?;
        let mut at = offset;
        while at < end {
            let lbn = at / bsize;
            let stop = end.min((lbn + 1) * bsize);
            let size = self.names.node(id)?.size;
            // A tail of fragments that is no longer the tail becomes a block.
            if let Some(last) = size
                .checked_sub(1)
                .map(|last| last / bsize)
                .filter(|&last| last < lbn && last < DIRECT)
            {
                self.grow(id, last, frag)?;
            }
            let used = stop.max(size.min((lbn + 1) * bsize)) - lbn * bsize;
            let fragments = if lbn < DIRECT {
                u32::try_from(used.div_ceil(fsize)).unwrap_or(frag)
            } else {
                frag
            };
            if self.names.node(id)?.extents.block(lbn, frag).is_none() {
                self.indirect(id, lbn)?;
            }
            self.grow(id, lbn, fragments)?;
            let inode = self.names.node(id)?;
            inode.size = inode.size.max(stop);
            self.write_block(id, lbn, stop == (lbn + 1) * bsize)?;
            at = stop;
        }
        Ok(())
    }

    /// Marks a block changed. With `ended`, it is written to its end and may join a cluster.
    fn write_block(&mut self, id: Id, lbn: u64, ended: bool) -> Result<(), Error> {
        let (bsize, fsize, frag) = (self.shape.bsize, self.shape.fsize, self.shape.frag);
        let inode = self.names.node(id)?;
        let number = inode.number;
        let (at, fragments) = inode
            .extents
            .block(lbn, frag)
            .ok_or_else(|| Error::new(format!("write block {lbn}: it is not there")))?;
        let follows = lbn > 0
            && inode
                .extents
                .block(lbn - 1, frag)
                .is_some_and(|(before, _)| before + u64::from(frag) == at);
        let (first, count) = inode.cluster;
        self.write_later(number, self.shape.byte(at), u64::from(fragments) * fsize, FILE_DELAY);
        if !ended {
            return Ok(());
        }
        if count > 0 && !(follows && lbn == first + count) {
            self.send_cluster(id)?;
        }
        let inode = self.names.node(id)?;
        inode.cluster =
            if inode.cluster.1 == 0 { (lbn, 1) } else { (inode.cluster.0, inode.cluster.1 + 1) };
        if inode.cluster.1 * bsize >= self.parameters.cluster {
            self.send_cluster(id)?;
        }
        Ok(())
    }

    /// Sends the gathered blocks, contiguous ones in one write. Blocks that the syncer has written
    /// meanwhile are left out.
    fn send_cluster(&mut self, id: Id) -> Result<(), Error> {
        let (bsize, frag) = (self.shape.bsize, self.shape.frag);
        let inode = self.names.node(id)?;
        let (first, count) = std::mem::take(&mut inode.cluster);
        let Some((at, _)) = inode.extents.block(first, frag) else { return Ok(()) };
        let begin = self.shape.byte(at);
        let mut unsent: Option<(u64, u64)> = None;
        for block in (0..count).map(|n| begin + n * bsize) {
            if !self.buffers.clean(block) {
                continue;
            }
            unsent = match unsent {
                Some((from, to)) if to == block => Some((from, block + bsize)),
                Some((from, to)) => {
                    self.write_behind(from, to - from)?;
                    Some((block, block + bsize))
                }
                None => Some((block, block + bsize)),
            };
        }
        unsent.map_or(Ok(()), |(from, to)| self.write_behind(from, to - from))
    }

    pub(super) fn read_data(&mut self, id: Id, offset: u64, length: u64) -> Result<(), Error> {
        let bsize = self.shape.bsize;
        let inode = self.names.node(id)?;
        let end = offset.saturating_add(length).min(inode.size);
        if offset >= end {
            return Ok(());
        }
        for lbn in offset / bsize..end.div_ceil(bsize) {
            let on = self.names.node(id)?.read_on;
            self.read_cluster(id, lbn)?;
            if lbn > 0 && lbn == on || lbn + 1 == on {
                // A sequential read has the cluster after this one on its way.
                let ahead = lbn / self.blocks() * self.blocks() + self.blocks();
                self.begin_read(id, ahead)?;
            }
            self.names.node(id)?.read_on = lbn + 1;
        }
        Ok(())
    }

    /// Blocks in a cluster, at least 1.
    fn blocks(&self) -> u64 {
        (self.parameters.cluster / self.shape.bsize).max(1)
    }

    /// Reads a block, with the rest of its cluster, and waits for it.
    fn read_cluster(&mut self, id: Id, lbn: u64) -> Result<(), Error> {
        self.begin_read(id, lbn)?;
        let Some((at, _)) = self.names.node(id)?.extents.block(lbn, self.shape.frag) else {
            return Ok(());
        };
        match self.arriving.remove(&self.shape.byte(at)) {
            Some(tag) => self.queue.finish(tag),
            None => Ok(()),
        }
    }

    /// Starts a read of a block and the contiguous blocks after it, to the end of the cluster or
    /// file, or to a cached block.
    fn begin_read(&mut self, id: Id, lbn: u64) -> Result<(), Error> {
        let (bsize, fsize, frag) = (self.shape.bsize, self.shape.fsize, self.shape.frag);
        let Some((at, fragments)) = self.names.node(id)?.extents.block(lbn, frag) else {
            return Ok(());
        };
        let begin = self.shape.byte(at);
        if self.buffers.has(begin) {
            return Ok(());
        }
        let mut blocks = vec![(begin, u64::from(fragments) * fsize)];
        let last = lbn / self.blocks() * self.blocks() + self.blocks();
        for next in lbn + 1..last {
            let Some((at, fragments)) = self.names.node(id)?.extents.block(next, frag) else {
                break;
            };
            let byte = self.shape.byte(at);
            if byte != begin + (next - lbn) * bsize || self.buffers.has(byte) {
                break;
            }
            blocks.push((byte, u64::from(fragments) * fsize));
        }
        let length = blocks.iter().map(|(_, length)| length).sum();
        let tag = self.queue.begin(Op::Read, begin, length)?;
        for (byte, length) in blocks {
            self.buffers.keep(byte, length);
            self.arriving.insert(byte, tag);
        }
        Ok(())
    }
}
