//! Sets that are drawn at random, and what a probe of them answers.

use crate::drawn::{Answer, between, off, one};
use crate::noise::{Noise, Noisy};
use std::fmt;
use std::sync::Arc;
use trueline_geom::base::topology::{Grain, Why};
use trueline_geom::class::stripe::Raid0;
use trueline_geom::mapping::geom::Geom;
use trueline_geom::mapping::route::Route;
use trueline_geom::mapping::slices::Slices;
use trueline_lab::probe::{ProbeSetup, ProbeVerdict, probe};
use trueline_lab::rig::Op;
use trueline_lab::rig::simulated::Simulated;
use trueline_sim::model::Model;
use trueline_sim::random::Random;
use trueline_sim::world::{Schedule, World};

fn model(name: &str) -> Model {
    Model::parse_with(Model::named(name).expect("it is built in"), &[]).expect("a model")
}

/// A striped set with a hidden chunk, in a partition with a hidden start.
#[derive(Clone, Debug)]
pub(crate) struct DrawnSet {
    drive: &'static str,
    members: usize,
    chunk: u64,
    start: u64,
    noise: Noise,
}

impl fmt::Display for DrawnSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {}: chunk {}, start {}, {:?}",
            self.members, self.drive, self.chunk, self.start, self.noise
        )
    }
}

impl DrawnSet {
    pub(crate) fn new(seed: u64, drives: &[&'static str]) -> DrawnSet {
        let mut random = Random::new(seed ^ 0x7365_7473);
        let drive = one(&mut random, drives);
        let members = usize::try_from(between(&mut random, 2, 8)).expect("few");
        let sector = model(drive).logical_block_size;
        let chunk = (sector * 2) << random.below(11);
        let start = if random.below(2) == 0 { 0 } else { random.below(chunk / sector) * sector };
        let noise = Noise {
            spread: one(&mut random, &[0.0, 0.02, 0.05, 0.1]),
            drift: one(&mut random, &[0.0, 0.05, 0.1]),
            pauses: one(&mut random, &[0.0, 1.0, 10.0]),
            others: one(&mut random, &[0.0, 1.0, 5.0]),
        };
        DrawnSet { drive, members, chunk, start, noise }
    }

    /// A set of a number of drives that divides a power of two, so that every row of chunks begins
    /// where a larger chunk could.
    pub(crate) fn with_rows(seed: u64, drives: &[&'static str]) -> DrawnSet {
        let (members, chunk) = (2 << (seed % 3), 65536 << (seed / 3 % 4));
        DrawnSet { members, chunk, start: 16896, ..DrawnSet::new(seed, drives) }
    }

    pub(crate) fn kind(&self) -> String {
        format!("set of {}", self.drive)
    }

    /// The answer of a probe, and the virtual seconds that it took.
    pub(crate) fn probe(&self, seed: u64) -> (Answer, f64) {
        let model = model(self.drive);
        let sector = model.logical_block_size;
        let nth = |nth: usize| (model.drive(seed + nth as u64), sector);
        let world = World::new((0..self.members).map(nth).collect(), Schedule::Fifo);
        let below: Vec<Route> =
            (0..self.members).map(|nth| Route::store(nth, model.size)).collect();
        let share = model.size / self.chunk * self.chunk;
        let raid = Raid0::new("set".into(), self.chunk, self.members, share).expect("a set");
        let raid: Arc<dyn Geom> = Arc::new(raid);
        let whole = Route::new(&raid, 0, share * self.members as u64, &below);
        let length = whole.length() - self.start;
        let slice: Arc<dyn Geom> = Arc::new(Slices::data_area(self.start, length));
        let route = Route::new(&slice, 0, length, &[whole]);
        let mut rig = Noisy::new(Simulated::new(world, route, sector, 0), self.noise, seed);
        let setup =
            ProbeSetup { op: Op::Read, budget_ns: 120_000_000_000, seed, depth: 32, is_set: true };
        let report = probe(&mut rig, setup, &mut |_| true).expect("no request fails");
        #[allow(clippy::cast_precision_loss)]
        let seconds = report.spent_ns as f64 / 1e9;
        let hidden = Grain::multiples(self.chunk).shift(self.start);
        let told = format!("{:?} {:?} {:?}", report.verdict, report.units, report.requests);
        let answer = match (&report.units[..], report.verdict) {
            ([unit], _)
                if unit.grain.size() == hidden.size()
                    && unit.why == Why::Chunk
                    && off(unit.grain, hidden) <= unit.blur =>
            {
                Answer::Right
            }
            ([], ProbeVerdict::Unsure) => Answer::Unsure(told),
            _ => Answer::Wrong(told),
        };
        (answer, seconds)
    }
}
