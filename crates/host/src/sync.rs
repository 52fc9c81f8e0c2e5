//! The engine where io_uring is not to be had: one pread(2) or pwrite(2) a request, one request at a time.

use crate::buffers::Buffers;
use crate::engine::{Finished, Op, Transfer, check, errno, rest};
use crate::lane::Lane;
use rustix::io::{self, ReadWriteFlags};
use std::io::IoSlice;
use trueline_geom::error::Errno;

/// Files, and memory for them.
pub struct Sync {
    lanes: Vec<Lane>,
    buffers: Buffers,
    done: Vec<Finished>,
}

impl Sync {
    /// Over `lanes`.
    pub fn new(lanes: Vec<Lane>, buffers: Buffers) -> Sync {
        Sync { lanes, buffers, done: Vec::new() }
    }

    pub(crate) fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// Does it, whole.
    pub(crate) fn push(&mut self, transfer: Transfer) -> Result<(), Errno> {
        check(&transfer, &self.lanes, &self.buffers)?;
        let error = self.whole(transfer).err();
        self.done.push(Finished { tag: transfer.tag, error });
        Ok(())
    }

    pub(crate) fn wait(&mut self, done: &mut Vec<Finished>) {
        done.append(&mut self.done);
    }

    pub(crate) fn memory(&mut self, at: usize, length: usize) -> Option<&mut [u8]> {
        self.buffers.holds(at, length).then(|| self.buffers.bytes_mut(at, length))
    }

    fn whole(&mut self, transfer: Transfer) -> Result<(), Errno> {
        let lane = self.lanes.get(transfer.lane).ok_or(Errno::NoDevice)?;
        let mut left = Some(transfer);
        while let Some(transfer) = left {
            let bytes = io::retry_on_intr(|| once(&transfer, lane, &mut self.buffers)).map_err(errno)?;
            left = rest(&transfer, lane, u32::try_from(bytes).unwrap_or(transfer.length))?;
        }
        Ok(())
    }
}

/// One system call.
fn once(transfer: &Transfer, lane: &Lane, buffers: &mut Buffers) -> io::Result<usize> {
    let &Transfer { op, offset, place, fua, .. } = transfer;
    let length = usize::try_from(transfer.length).map_err(|_| io::Errno::INVAL)?;
    match op {
        Op::Read => io::pread(lane, buffers.bytes_mut(place, length), offset),
        Op::Write if fua => io::pwritev2(lane, &[IoSlice::new(buffers.bytes(place, length))], offset, ReadWriteFlags::DSYNC),
        Op::Write => io::pwrite(lane, buffers.bytes(place, length), offset),
        Op::Flush => rustix::fs::fdatasync(lane).map(|()| 0),
    }
}
