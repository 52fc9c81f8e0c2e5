//! What is compared: a workload on a target, moved by an offset.

use super::ground::{self, Ground};
use crate::Failure;
use crate::options::bench::Bench;
use std::cell::RefCell;
use std::rc::Rc;
use trueline_lab::error::Error;
use trueline_lab::run::Run;
use trueline_lab::workload::{Blocks, Kind, Watch};
use trueline_sim::counters::Counters;
use trueline_sim::random::Random;

/// One variant and its finished runs.
pub(super) struct Variant {
    pub(super) name: String,
    pub(super) target: String,
    /// Bytes.
    pub(super) offset: u64,
    pub(super) depth: usize,
    workload: Box<dyn Blocks>,
    /// Variants of one target share it.
    pub(super) ground: Rc<RefCell<Ground>>,
    /// Reads that the page cache added, of every run that counts.
    pub(super) host_reads: Vec<Option<u64>>,
    /// What each drive did in all of them.
    pub(super) spent: Vec<Counters>,
}

/// Every target at every offset.
pub(super) fn all(args: &Bench, kind: &Kind) -> Result<Vec<Variant>, Failure> {
    let several = args.targets.len() > 1;
    let offsets = match (args.offset.as_slice(), several) {
        ([], true) => &[0][..],
        ([], false) => &[0, 1],
        (said, _) => said,
    };
    let writes = super::make(kind, &args.parameters(0))?.writes();
    let mut variants = Vec::new();
    for target in &args.targets {
        let ground = Rc::new(RefCell::new(ground::open(target, args, writes)?));
        let (sector, depth) = (ground.borrow().sector(), ground.borrow().depth());
        for &offset in offsets {
            let name = match (several, offsets.len()) {
                (true, 1) => target.clone(),
                (true, _) => format!("{target} offset {offset}"),
                (false, _) => format!("offset {offset}"),
            };
            let bytes = offset.checked_mul(sector);
            let bytes = bytes.ok_or_else(|| format!("bench {target}: an offset of {offset} sectors: no disk has so many"))?;
            let workload = super::make(kind, &args.parameters(bytes))?;
            let (target, ground) = (target.clone(), Rc::clone(&ground));
            variants.push(Variant { name, target, offset: bytes, depth, workload, ground, host_reads: Vec::new(), spent: Vec::new() });
        }
    }
    Ok(variants)
}

impl Variant {
    /// Requests of a run; `None` if only time ends it.
    pub(super) fn extent(&self) -> Option<u64> {
        self.workload.extent(self.ground.borrow().length())
    }

    /// The run of that number. In a run every variant has the same requests, on drives whose platters stand alike. `counts`: it is not
    /// there to warm up.
    pub(super) fn run(&mut self, run: usize, counts: bool, seed: u64, watch: &mut Watch<'_>) -> Result<Run, Error> {
        let seed = Random::new(seed.wrapping_add(run as u64)).bits();
        let mut ground = self.ground.borrow_mut();
        let done = ground.run(seed, &*self.workload, &mut |rig| self.workload.run(rig, seed, watch))?;
        if counts {
            self.host_reads.push(done.host_reads);
            self.spent.resize(done.spent.len().max(self.spent.len()), Counters::default());
            for (all, one) in self.spent.iter_mut().zip(done.spent) {
                *all += one;
            }
        }
        Ok(done.run)
    }
}
