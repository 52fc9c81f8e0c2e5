//! Drives in virtual time.

use super::{Done, Work};
use crate::{Failure, seat, target};
use trueline_geom::graph::{Id, Provider};
use trueline_lab::error::Error;
use trueline_lab::host::linux_bdev::{Buffered, Sync};
use trueline_lab::rig;
use trueline_sim::random::Random;
use trueline_sim::world::{Schedule, World};

/// A provider on simulated drives.
pub(in super::super) struct Simulated {
    drives: target::Simulated,
    id: Id,
    buffered: bool,
}

/// Memory of the host's page cache.
const MEMORY: u64 = 1 << 30;

impl Simulated {
    /// The provider that was named, or the only one there is without a name.
    pub(super) fn new(target: &str, drives: target::Simulated, buffered: bool) -> Result<Simulated, Failure> {
        let id = match &drives.provider {
            Some(name) => drives.graph.find(name).ok_or_else(|| seat::no_provider(target, name, &drives.graph))?,
            None if drives.models.len() < 2 => 0,
            None => return Err(format!("bench {target}: several disks: name the provider after a #: #stripe/data").into()),
        };
        Ok(Simulated { drives, id, buffered })
    }

    fn provider(&self) -> &Provider {
        &self.drives.graph.providers[self.id]
    }

    pub(super) fn length(&self) -> u64 {
        self.provider().topology.length
    }

    pub(super) fn sector(&self) -> u64 {
        self.provider().topology.sector
    }

    pub(super) fn depth(&self) -> usize {
        self.provider().depth
    }

    /// Runs `work` once, on drives that were switched on as `seed` has it.
    pub(super) fn run(&mut self, seed: u64, work: &mut Work<'_>) -> Result<Done, Error> {
        let mut seeds = Random::new(seed);
        let drives = self.drives.models.iter().map(|model| (model.drive(seeds.bits()), model.logical_block_size));
        let world = World::new(drives.collect(), Schedule::Fifo);
        let mut rig = rig::simulated::Simulated::new(world, self.provider().route().clone(), self.sector(), 0);
        let (run, host_reads) = if self.buffered {
            let mut buffered = Buffered::new(&mut rig, Sync::Medium, MEMORY);
            let run = work(&mut buffered)?;
            (run, Some(buffered.added_reads()))
        } else {
            (work(&mut rig)?, None)
        };
        Ok(Done { run, spent: rig.counters(), host_reads })
    }
}
