//! Memory and zeroes: they measure our own layers.

use super::{Done, Job};
use crate::command::bench::args::Bench;
use crate::failure::Failure;
use crate::{target, write_target};
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
        target: &str,
        overrides: &target::DiskOverrides,
        args: &Bench,
        writes: bool,
    ) -> Result<Option<Memory>, Failure> {
        let Some((graph, provider)) = target::memory(target, overrides)? else { return Ok(None) };
        if args.buffered {
            return Err(format!(
                "bench {target}: memory has no page cache before it: leave --buffered away"
            )
            .into());
        }
        if writes && target::split(target).0.iter().any(|disk| disk.starts_with("zero:")) {
            return Err(format!(
                "bench {} on {target}: zero: takes no writes: use md:SIZE, which is memory",
                args.workload
            )
            .into());
        }
        let id = match &provider {
            Some(name) => {
                graph.find(name).ok_or_else(|| write_target::no_provider(target, name, &graph))?
            }
            None if target::split(target).0.len() < 2 => 0,
            None => return Err(super::several(target)),
        };
        Ok(Some(Memory { graph, id }))
    }

    pub(super) fn provider(&self) -> &Provider {
        &self.graph.providers[self.id]
    }

    /// Runs a job once, on the bytes that the run before left.
    pub(super) fn run(&self, job: &mut Job<'_, '_>) -> Result<Done, Error> {
        let mut rig = Stored::new(
            self.graph.stores(),
            self.provider().route().clone(),
            self.provider().topology.sector,
        );
        let run = job.task.on_blocks(&mut rig, job.seed, job.watch)?;
        Ok(Done { engine: Some("memory"), ..Done::of(run) })
    }
}
