//! What variants run on: drives in virtual time, new for every run, or what is there.

use crate::Failure;
use crate::options::bench::Bench;
use crate::target;
use real::Real;
use simulated::Simulated;
use trueline_lab::error::Error;
use trueline_lab::rig::Rig;
use trueline_lab::run::Run;
use trueline_lab::workload::Blocks;
use trueline_sim::counters::Counters;

mod real;
mod simulated;

/// A provider to run on.
pub(super) enum Ground {
    Simulated(Simulated),
    Real(Box<Real>),
}

/// A run, and what came of it besides.
pub(super) struct Done {
    pub(super) run: Run,
    /// What every simulated drive did.
    pub(super) spent: Vec<Counters>,
    /// Reads that the page cache added, or real ones of the device.
    pub(super) host_reads: Option<u64>,
}

/// What runs on a rig.
pub(super) type Work<'a> = dyn FnMut(&mut dyn Rig) -> Result<Run, Error> + 'a;

/// Opens a target. `writes`: what runs on it writes.
pub(super) fn open(target: &str, args: &Bench, writes: bool) -> Result<Ground, Failure> {
    let said = target::Said::new(&args.disk)?;
    match target::simulated(target, &said, &args.set)? {
        Some(drives) => Ok(Ground::Simulated(Simulated::new(target, drives, args.buffered)?)),
        None if !args.set.is_empty() => Err(format!("bench {target}: --set is for the models of simulated drives").into()),
        None => Ok(Ground::Real(Box::new(Real::open(target, args, writes)?))),
    }
}

impl Ground {
    /// Whether its time is virtual.
    pub(super) fn is_virtual(&self) -> bool {
        matches!(self, Ground::Simulated(_))
    }

    /// Bytes.
    pub(super) fn length(&self) -> u64 {
        match self {
            Ground::Simulated(drives) => drives.length(),
            Ground::Real(media) => media.length(),
        }
    }

    /// Bytes of its sector.
    pub(super) fn sector(&self) -> u64 {
        match self {
            Ground::Simulated(drives) => drives.sector(),
            Ground::Real(media) => media.sector(),
        }
    }

    /// Layers between it and its disks.
    pub(super) fn depth(&self) -> usize {
        match self {
            Ground::Simulated(drives) => drives.depth(),
            Ground::Real(media) => media.depth(),
        }
    }

    /// Runs `work` once, which does what `workload` does; `seed` is where platters stand.
    pub(super) fn run(&mut self, seed: u64, workload: &dyn Blocks, work: &mut Work<'_>) -> Result<Done, Error> {
        match self {
            Ground::Simulated(drives) => drives.run(seed, work),
            Ground::Real(media) => media.run(workload, work),
        }
    }
}
