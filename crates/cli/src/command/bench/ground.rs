//! What variants run on: simulated drives, new for every run.

use crate::Failure;
use crate::options::bench::Bench;
use crate::target::{self, Said, Simulated};
use trueline_geom::graph::Id;
use trueline_geom::route::Route;
use trueline_lab::error::Error;
use trueline_lab::rig::{Rig, simulated};
use trueline_lab::run::Run;
use trueline_sim::counters::Counters;
use trueline_sim::random::Random;
use trueline_sim::world::{Schedule, World};

/// A provider to run on.
pub(super) struct Ground {
    drives: Simulated,
    id: Id,
}

/// A run, and what came of it besides.
pub(super) struct Done {
    pub(super) run: Run,
    /// What every simulated drive did.
    pub(super) spent: Vec<Counters>,
    pub(super) host_reads: Option<u64>,
}

/// What runs on a rig.
pub(super) type Work<'a> = dyn FnMut(&mut dyn Rig) -> Result<Run, Error> + 'a;

/// Opens a target.
pub(super) fn open(target: &str, args: &Bench) -> Result<Ground, Failure> {
    let said = Said::new(&args.disk)?;
    let drives = target::simulated(target, &said, &args.set)?;
    let drives = drives.ok_or_else(|| format!("bench {target}: this version measures simulated drives: drive:MODEL[@SIZE]"))?;
    let id = provider(target, &drives)?;
    Ok(Ground { drives, id })
}

/// The provider that was named, or the only one there is without a name.
fn provider(target: &str, drives: &Simulated) -> Result<Id, Failure> {
    match &drives.provider {
        Some(name) => drives.graph.find(name).ok_or_else(|| crate::seat::no_provider(target, name, &drives.graph)),
        None if drives.models.len() < 2 => Ok(0),
        None => Err(format!("bench {target}: several disks: name the provider after a #: #stripe/data").into()),
    }
}

impl Ground {
    /// Whether its time is virtual.
    pub(super) fn is_virtual(&self) -> bool {
        true
    }

    /// Bytes.
    pub(super) fn length(&self) -> u64 {
        self.drives.graph.providers[self.id].topology.length
    }

    /// Bytes of its sector.
    pub(super) fn sector(&self) -> u64 {
        self.drives.graph.providers[self.id].topology.sector
    }

    /// Layers between it and its disks.
    pub(super) fn depth(&self) -> usize {
        self.drives.graph.providers[self.id].depth
    }

    /// Runs `work` once, on drives that were switched on as `seed` has it.
    pub(super) fn run(&mut self, seed: u64, work: &mut Work<'_>) -> Result<Done, Error> {
        let mut seeds = Random::new(seed);
        let drives = self.drives.models.iter().map(|model| (model.drive(seeds.bits()), model.logical_block_size));
        let world = World::new(drives.collect(), Schedule::Fifo);
        let route: Route = self.drives.graph.providers[self.id].route().clone();
        let mut rig = simulated::Simulated::new(world, route, self.sector(), 0);
        let run = work(&mut rig)?;
        Ok(Done { run, spent: rig.counters(), host_reads: None })
    }
}
