//! `dd`: one block after another, from the offset on, one at a time unless more are asked for.

use super::{Blocks, Kind, Needs, Parameters, Watch, Way, watched, whole};
use crate::error::Error;
use crate::rig::{Op, Rig};
use crate::run::Run;
use crate::streams::{Ask, Limit};

/// Sequential reads or writes.
pub const KIND: Kind = Kind { name: "dd", title: "sequential reads, or with --write writes, one at a time", needs: Needs::Blocks(make) };

/// Bytes of a run of which nothing else is said, and of a block.
const RUN: u64 = 256 << 20;
const BLOCK: u64 = 1 << 20;

struct Dd {
    bs: u64,
    offset: u64,
    op: Op,
    depth: usize,
    limit: Limit,
    sync: bool,
}

fn make(parameters: &Parameters) -> Result<Box<dyn Blocks>, Error> {
    let bs = parameters.block(BLOCK)?;
    let op = if parameters.op == Some(Way::Write) { Op::Write } else { Op::Read };
    let limit = parameters.limit((RUN / bs).max(1))?;
    Ok(Box::new(Dd { bs, offset: parameters.offset, op, depth: parameters.depth(1)?, limit, sync: parameters.sync }))
}

impl Dd {
    /// Blocks to the end of the provider.
    fn blocks(&self, length: u64) -> u64 {
        length.saturating_sub(self.offset) / self.bs
    }
}

impl Blocks for Dd {
    fn writes(&self) -> bool {
        self.op == Op::Write
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn largest(&self) -> u64 {
        self.bs
    }

    fn extent(&self, length: u64) -> Option<u64> {
        match self.limit {
            Limit::Count(count) => Some(count.min(self.blocks(length))),
            Limit::Time(_) | Limit::Source => None,
        }
    }

    fn run(&self, rig: &mut dyn Rig, _seed: u64, watch: &mut Watch<'_>) -> Result<Run, Error> {
        let Dd { bs, offset, op, .. } = *self;
        whole(rig, "dd", bs, offset)?;
        let (length, blocks) = (rig.length(), self.blocks(rig.length()));
        if blocks == 0 {
            return Err(Error(format!("dd of {bs} bytes at {offset}: the target has {length} bytes")));
        }
        let mut next = 0;
        // At the end it ends, as dd does; by time it begins again.
        let again = matches!(self.limit, Limit::Time(_));
        watched(rig, self.depth, self.limit, watch, &mut |_| {
            if next == blocks && again {
                next = 0;
            }
            let ask = (next < blocks).then(|| Ask { op, offset: offset + next * bs, length: bs, fua: self.sync });
            next += 1;
            ask
        })
    }
}

#[cfg(test)]
mod tests;
