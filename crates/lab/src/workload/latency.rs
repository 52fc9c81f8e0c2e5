//! `latency`: one sector, again and again, as in the GEOM benchmark of 2002: a hundred thousand
//! reads a run, ten runs.
//!
//! The cost of a layer is the slope of the mean latency over the number of layers below the
//! provider; neither offset nor size enters.

use super::steady::Steady;
use super::{Blocks, Needs, Parameters, Watch, WorkloadKind, watched, whole};
use crate::error::Error;
use crate::rig::Rig;
use crate::run::Run;

/// The workload `latency` as listed.
pub const KIND: WorkloadKind = WorkloadKind {
    name: "latency",
    title: "reads of the same sector again and again: the cost of a request itself",
    needs: Needs::Blocks(make),
};

const COUNT: u64 = 100_000;
/// The largest sector that Linux supports, in bytes.
const MOST_SECTOR: u64 = 65536;

struct Latency {
    /// The size of a request in bytes; `None`: a sector of the rig.
    bs: Option<u64>,
    each: Steady,
}

fn make(parameters: &Parameters) -> Result<Box<dyn Blocks>, Error> {
    let bs = parameters.bs.map(|_| parameters.block(0)).transpose()?;
    Ok(Box::new(Latency { bs, each: Steady::new(parameters, Steady::way(parameters), COUNT)? }))
}

impl Blocks for Latency {
    fn writes(&self) -> bool {
        self.each.writes()
    }

    fn depth(&self) -> usize {
        self.each.depth
    }

    fn largest(&self) -> u64 {
        self.bs.unwrap_or(MOST_SECTOR)
    }

    fn extent(&self, _length: u64) -> Option<u64> {
        self.each.count()
    }

    fn run(&self, rig: &mut dyn Rig, _seed: u64, watch: &mut Watch<'_>) -> Result<Run, Error> {
        let offset = self.each.offset;
        let length = self.bs.unwrap_or(rig.sector());
        whole(rig, "latency", length, offset)?;
        if offset.checked_add(length).is_none_or(|end| end > rig.length()) {
            return Err(Error::new(format!(
                "latency of {length} bytes at {offset}: the target has {} bytes",
                rig.length()
            )));
        }
        let ask = self.each.ask(0, length);
        watched(rig, self.each.depth, self.each.limit, watch, &mut |_| Some(ask))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::Op;
    use crate::rig::simulated::Simulated;
    use crate::workload::recorder::{Recorder, made, ran, refused};
    use trueline_geom::mapping::route::Route;
    use trueline_sim::model::Model;
    use trueline_sim::time::NS;
    use trueline_sim::world::{Schedule, World};

    /// Mean ns of a thousand requests to the memory disk of 2002, each costing the processor so
    /// much.
    fn mean(parameters: &Parameters, cost_ns: u64) -> f64 {
        let model = Model::parse(Model::named("md").unwrap()).unwrap();
        let world = World::new(vec![(model.drive(1), 512)], Schedule::Fifo);
        let mut rig = Simulated::new(world, Route::store(0, model.size), 512, cost_ns * NS);
        made(&KIND, parameters).run(&mut rig, 1, &mut |_| true).unwrap().mean_ns()
    }

    #[test]
    #[allow(clippy::float_cmp, reason = "whole ns")]
    fn memory_takes_its_time_and_the_processors_and_nothing_else_enters() {
        for cost in [0, 3560, 3560 + 5020 + 830] {
            for (offset, bs) in [(0, 512), (512, 512), (0, 4096), (1536, 65536)] {
                let parameters =
                    Parameters { offset, bs: Some(bs), count: Some(1000), ..Parameters::default() };
                assert_eq!(
                    mean(&parameters, cost),
                    18_100.0 + f64::from(u32::try_from(cost).unwrap())
                );
            }
        }
    }

    #[test]
    fn it_is_always_the_same_sector() {
        let mut rig = Recorder::new(1 << 20);
        let run = ran(&KIND, &Parameters { offset: 1024, ..Parameters::default() }, &mut rig);
        assert_eq!(run.ops, COUNT);
        assert!(rig.asked.iter().all(|&asked| asked == (Op::Read, 1024, 512)));
        rig.sector = 4096;
        let words = refused(&KIND, &Parameters { offset: 512, ..Parameters::default() }, &mut rig);
        assert_eq!(
            words,
            "latency of 4096 bytes at an offset of 512: the target takes only whole sectors of 4096 bytes"
        );
        let words =
            refused(&KIND, &Parameters { offset: 1 << 20, ..Parameters::default() }, &mut rig);
        assert_eq!(words, "latency of 4096 bytes at 1048576: the target has 1048576 bytes");
    }
}
