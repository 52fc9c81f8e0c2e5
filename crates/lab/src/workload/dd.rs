//! `dd`: one block after another from the offset on, one at a time unless `qd` is given.

use super::steady::Steady;
use super::{Blocks, Needs, Parameters, Watch, WorkloadKind, watched, whole};
use crate::error::Error;
use crate::rig::Rig;
use crate::run::Run;
use crate::streams::Limit;

/// The workload `dd` as listed.
pub const KIND: WorkloadKind = WorkloadKind {
    name: "dd",
    title: "sequential reads or writes, one at a time",
    needs: Needs::Blocks(make),
};

/// The bytes of a run by default, and the size of a block.
const RUN: u64 = 256 << 20;
const BLOCK: u64 = 1 << 20;

struct Dd {
    bs: u64,
    each: Steady,
}

fn make(parameters: &Parameters) -> Result<Box<dyn Blocks>, Error> {
    let bs = parameters.block(BLOCK)?;
    let each = Steady::new(parameters, Steady::way(parameters), (RUN / bs).max(1))?;
    Ok(Box::new(Dd { bs, each }))
}

impl Dd {
    /// The number of whole blocks up to the end of the provider.
    fn blocks(&self, length: u64) -> u64 {
        length.saturating_sub(self.each.offset) / self.bs
    }
}

impl Blocks for Dd {
    fn writes(&self) -> bool {
        self.each.writes()
    }

    fn depth(&self) -> usize {
        self.each.depth
    }

    fn largest(&self) -> u64 {
        self.bs
    }

    fn extent(&self, length: u64) -> Option<u64> {
        self.each.count().map(|count| count.min(self.blocks(length)))
    }

    fn run(&self, rig: &mut dyn Rig, _seed: u64, watch: &mut Watch<'_>) -> Result<Run, Error> {
        let (bs, offset) = (self.bs, self.each.offset);
        whole(rig, "dd", bs, offset)?;
        let (length, blocks) = (rig.length(), self.blocks(rig.length()));
        if blocks == 0 {
            return Err(Error::new(format!(
                "dd of {bs} bytes at {offset}: the target has {length} bytes"
            )));
        }
        let mut next = 0;
        // A count ends at the end of the target, as dd does; a duration continues from the start.
        let again = matches!(self.each.limit, Limit::Time(_));
        watched(rig, self.each.depth, self.each.limit, watch, &mut |_| {
            if next == blocks && again {
                next = 0;
            }
            let ask = (next < blocks).then(|| self.each.ask(next * bs, bs));
            next += 1;
            ask
        })
    }
}

#[cfg(test)]
mod tests;
