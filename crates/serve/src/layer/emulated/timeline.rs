//! A world whose clock follows a given one. It reads no clock itself.

use super::Speed;
use trueline_geom::base::error::Errno;
use trueline_geom::mapping::route::Route;
use trueline_lab::rig::Request;
use trueline_sim::counters::Counters;
use trueline_sim::drive::Completion;
use trueline_sim::time::Ps;
use trueline_sim::world::World;

/// The world, and its start.
pub(super) struct Timeline {
    world: World,
    /// The time in ns at which the world's time is 0.
    start: u64,
    speed: Speed,
    done: Vec<Completion>,
}

impl Timeline {
    /// The timeline of a world that starts at `start`.
    pub(super) fn new(world: World, speed: Speed, start: u64) -> Timeline {
        Timeline { world, start, speed, done: Vec::new() }
    }

    /// The world's time at `now`. Clocks of several processors may step back a little; the world's
    /// time does not.
    fn world_time(&self, now: u64) -> Ps {
        now.saturating_sub(self.start).saturating_mul(self.speed.ps_per_ns()).max(self.world.now())
    }

    /// Submits a request that arrives at `now`. Returns the world's time of its arrival.
    pub(super) fn enter(&mut self, now: u64, route: &Route, request: Request) -> Result<Ps, Errno> {
        self.world.pass(self.world_time(now));
        self.world.submit(route, request, 0)?;
        Ok(self.world.now())
    }

    /// Resets the zones of host-managed drives that lie wholly within a range.
    pub(super) fn reset_zones(
        &mut self,
        now: u64,
        route: &Route,
        offset: u64,
        length: u64,
    ) -> Result<(), Errno> {
        self.world.pass(self.world_time(now));
        self.world.reset_zones(route, offset, length)
    }

    /// Advances the world to `now`. Returns the completions by then.
    pub(super) fn advance(&mut self, now: u64) -> impl Iterator<Item = Completion> + '_ {
        self.world.pass(self.world_time(now));
        self.world.wait(0, &mut self.done);
        self.done.drain(..)
    }

    /// The time in ns of the world's next own event; [`None`] at rest.
    pub(super) fn next(&self) -> Option<u64> {
        self.world.next().map(|at| self.start.saturating_add(at.div_ceil(self.speed.ps_per_ns())))
    }

    /// The counters of every drive.
    pub(super) fn counters(&self) -> Vec<Counters> {
        self.world.counters()
    }
}
