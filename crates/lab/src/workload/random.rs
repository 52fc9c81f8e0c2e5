//! `random-read`, `random-write`: blocks at random, each at a multiple of its size plus the offset.
//!
//! The program of the OSnews test of 2010 is `random-write` with `generator = "glibc"` and `blocks
//! = 200000000`: `random() % 200000000 * 4096 + off * 512`.

use super::steady::Steady;
use super::{Blocks, Generator, Needs, Parameters, Watch, WorkloadKind, glibc, watched, whole};
use crate::error::Error;
use crate::rig::{Op, Rig};
use crate::run::Run;
use trueline_sim::random;

/// The workload `random-read` as listed.
pub const READ: WorkloadKind = WorkloadKind {
    name: "random-read",
    title: "reads of 4 KiB anywhere",
    needs: Needs::Blocks(|p| make(p, Op::Read)),
};
/// The workload `random-write` as listed.
pub const WRITE: WorkloadKind = WorkloadKind {
    name: "random-write",
    title: "writes of 4 KiB anywhere",
    needs: Needs::Blocks(|p| make(p, Op::Write)),
};

const BLOCK: u64 = 4096;
const COUNT: u64 = 1000;

struct Random {
    bs: u64,
    grid: u64,
    each: Steady,
    generator: Generator,
    blocks: Option<u64>,
}

fn make(parameters: &Parameters, op: Op) -> Result<Box<dyn Blocks>, Error> {
    let (bs, each) = (parameters.block(BLOCK)?, Steady::new(parameters, op, COUNT)?);
    let Parameters { generator, blocks, .. } = *parameters;
    Ok(Box::new(Random { bs, grid: parameters.grid.unwrap_or(bs), each, generator, blocks }))
}

/// The generator of block numbers.
enum Numbers {
    Seeded(random::Random),
    Glibc(glibc::Random),
}

impl Numbers {
    fn below(&mut self, blocks: u64) -> u64 {
        match self {
            Numbers::Seeded(random) => random.below(blocks),
            Numbers::Glibc(random) => u64::from(random.draw()) % blocks.max(1),
        }
    }
}

impl Random {
    /// The number of blocks that requests fall on. One block stays free at the end even at offset
    /// 0, so that every offset within a block makes the same requests but for the offset.
    fn blocks(&self, length: u64) -> Result<u64, Error> {
        let Random { bs, grid, each: Steady { offset, .. }, .. } = *self;
        let room = length.saturating_sub(offset.max(bs)).saturating_sub(bs.saturating_sub(grid));
        let there = room.checked_div(grid).unwrap_or(0);
        match self.blocks {
            None | Some(0) if there == 0 => {
                let least = offset.max(bs).saturating_add(bs);
                let found = format!(
                    "the target has {length} bytes, and at least {least} are needed, as one block stays free to move the others"
                );
                Err(Error::new(format!("random blocks of {bs} bytes at {offset}: {found}")))
            }
            None => Ok(there),
            Some(wanted @ 1..) if wanted <= there => Ok(wanted),
            Some(wanted) => Err(Error::new(format!(
                "{wanted} random blocks of {bs} bytes at {offset}: the target has {there}"
            ))),
        }
    }
}

impl Blocks for Random {
    fn writes(&self) -> bool {
        self.each.writes()
    }

    fn depth(&self) -> usize {
        self.each.depth
    }

    fn largest(&self) -> u64 {
        self.bs
    }

    fn extent(&self, _length: u64) -> Option<u64> {
        self.each.count()
    }

    fn run(&self, rig: &mut dyn Rig, seed: u64, watch: &mut Watch<'_>) -> Result<Run, Error> {
        let Random { bs, grid, each: Steady { offset, .. }, .. } = *self;
        whole(rig, "random blocks", bs, offset)?;
        whole(rig, "a grid of random blocks", grid, offset)?;
        let blocks = self.blocks(rig.length())?;
        let mut numbers = match self.generator {
            Generator::Seeded => Numbers::Seeded(random::Random::new(seed)),
            Generator::Glibc => Numbers::Glibc(glibc::Random::default()),
        };
        watched(rig, self.each.depth, self.each.limit, watch, &mut |_| {
            Some(self.each.ask(numbers.below(blocks) * grid, bs))
        })
    }
}

#[cfg(test)]
mod tests;
