//! Drives in virtual time as a rig.

use super::{FinishedRequest, Request, Rig};
use trueline_geom::base::error::Errno;
use trueline_geom::mapping::route::Route;
use trueline_sim::counters::Counters;
use trueline_sim::drive::Completion;
use trueline_sim::time::{NS, Ps};
use trueline_sim::world::World;

/// A provider on the simulated drives of a world.
pub struct Simulated {
    world: World,
    route: Route,
    sector: u64,
    /// Processor time of a request in picoseconds: system call and layers.
    cost: Ps,
    finished: Vec<Completion>,
}

impl Simulated {
    /// The provider that `route` leads from, in sectors of `sector` bytes. Every request costs
    /// `cost` of processor time.
    pub fn new(world: World, route: Route, sector: u64, cost: Ps) -> Simulated {
        Simulated { world, route, sector, cost, finished: Vec::new() }
    }

    /// The counters of every drive, in order.
    pub fn counters(&self) -> Vec<Counters> {
        self.world.counters()
    }

    /// The digest of the world's history; see [`World::digest`].
    pub fn digest(&self) -> u64 {
        self.world.digest()
    }
}

impl Rig for Simulated {
    fn length(&self) -> u64 {
        self.route.length()
    }

    fn sector(&self) -> u64 {
        self.sector
    }

    fn depth(&self) -> usize {
        1 << 16
    }

    fn now(&mut self) -> u64 {
        self.world.now() / NS
    }

    fn push(&mut self, request: Request) -> Result<(), Errno> {
        self.world.submit(&self.route, request, self.cost)
    }

    fn wait(&mut self, least: usize, done: &mut Vec<FinishedRequest>) -> Result<(), Errno> {
        self.world.wait(least, &mut self.finished);
        done.extend(self.finished.drain(..).map(|c| FinishedRequest {
            tag: c.tag,
            at: c.at / NS,
            error: None,
        }));
        Ok(())
    }

    fn think(&mut self, ns: u64) {
        self.world.think(ns.saturating_mul(NS));
    }

    fn rest(&mut self, ns: u64) {
        self.world.pass(self.world.now().saturating_add(ns.saturating_mul(NS)));
    }

    fn is_virtual(&self) -> bool {
        true
    }
}
