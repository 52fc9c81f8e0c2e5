//! What is compared: a workload on a target, moved by an offset.

use super::ground::{self, Ground};
use crate::Failure;
use crate::options::bench::Bench;
use std::cell::RefCell;
use std::rc::Rc;
use trueline_lab::error::Error;
use trueline_lab::run::Run;
use trueline_lab::workload::{Blocks, Kind};
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
    pub(super) runs: Vec<Finished>,
    /// What each drive did in all runs.
    pub(super) spent: Vec<Counters>,
}

/// A run that is done.
pub(super) struct Finished {
    pub(super) run: Run,
    pub(super) host_reads: Option<u64>,
}

/// Every target at every offset.
pub(super) fn all(args: &Bench, kind: &Kind) -> Result<Vec<Variant>, Failure> {
    let several = args.targets.len() > 1;
    let offsets = match (args.offset.as_slice(), several) {
        ([], true) => &[0][..],
        ([], false) => &[0, 1],
        (said, _) => said,
    };
    let mut variants = Vec::new();
    for target in &args.targets {
        let ground = Rc::new(RefCell::new(ground::open(target, args)?));
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
            variants.push(Variant { name, target, offset: bytes, depth, workload, ground, runs: Vec::new(), spent: Vec::new() });
        }
    }
    Ok(variants)
}

impl Variant {
    /// One run more. In a run every variant has the same requests, on drives whose platters stand alike.
    pub(super) fn run(&mut self, run: u64, seed: u64) -> Result<(), Error> {
        let seed = Random::new(seed.wrapping_add(run)).bits();
        let mut ground = self.ground.borrow_mut();
        let done = ground.run(seed, &mut |rig| self.workload.run(rig, seed, &mut |_| true))?;
        self.runs.push(Finished { run: done.run, host_reads: done.host_reads });
        self.spent.resize(done.spent.len().max(self.spent.len()), Counters::default());
        for (all, one) in self.spent.iter_mut().zip(done.spent) {
            *all += one;
        }
        Ok(())
    }
}
