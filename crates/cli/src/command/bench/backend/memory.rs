//! Memory and zeroes: they measure our own layers.

use super::{Job, RunOutput};
use crate::command::bench::args::Bench;
use crate::failure::Failure;
use crate::target::{DiskOverrides, Source, Target, open};
use crate::write_target;
use trueline_geom::graph::{Graph, Id, Provider};
use trueline_lab::error::Error;
use trueline_lab::rig::stored::Stored;

/// A provider over memory and zeroes.
pub(in super::super) struct Memory {
    graph: Graph,
    id: Id,
}

impl Memory {
    /// Allocates the memory; `None` if the target is of another kind. Errors: writes to zeroes.
    pub(super) fn open(
        target: &Target,
        overrides: &DiskOverrides,
        args: &Bench,
        writes: bool,
    ) -> Result<Option<Memory>, Failure> {
        let Some(graph) = open::memory(target, overrides)? else { return Ok(None) };
        if args.buffered {
            return Err(format!(
                "bench {target}: memory has no page cache before it: leave --buffered away"
            )
            .into());
        }
        if writes && target.sources().iter().any(Source::is_zeroes) {
            return Err(format!(
                "bench {} on {target}: zero: takes no writes: use md:SIZE, which is memory",
                args.workload
            )
            .into());
        }
        let id = match target.provider() {
            Some(name) => {
                graph.find(name).ok_or_else(|| write_target::no_provider(target, name, &graph))?
            }
            None if target.sources().len() < 2 => graph.disk(0),
            None => return Err(super::several(target)),
        };
        Ok(Some(Memory { graph, id }))
    }

    pub(super) fn provider(&self) -> &Provider {
        &self.graph.providers[self.id]
    }

    /// Runs a job once, on the bytes that the run before left.
    pub(super) fn run(&self, job: &mut Job<'_, '_>) -> Result<RunOutput, Error> {
        let mut rig = Stored::new(
            self.graph.stores(),
            self.provider().route().clone(),
            self.provider().topology.sector,
        );
        let run = job.task.on_blocks(&mut rig, job.seed, job.watch)?;
        Ok(RunOutput { engine: Some("memory"), ..RunOutput::from_run(run) })
    }
}
