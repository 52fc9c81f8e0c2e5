//! Exports of NBD servers.
//!
//! The provider is found by one connection, which ends before the first run: a server may take a
//! single client. Each run makes a connection of its own, and refuses an export of another length
//! than the one that was looked at. A server that shows another disk of that length meanwhile is
//! not noticed.

use super::{Job, RunOutput};
use crate::command::bench::args::Bench;
use crate::command::bench::task::Task;
use crate::failure::{Failure, Reason};
use crate::media::{holes, require_free, sought};
use crate::target::{DiskOverrides, Target};
use crate::words::escape;
use crate::write_target::WriteTarget;
use std::fmt;
use trueline_geom::graph::Provider;
use trueline_host::disk::file::Access;
use trueline_host::engine::Choice;
use trueline_host::nbd::client::pipeline::Pipeline;
use trueline_host::process::signal;
use trueline_lab::error::Error;
use trueline_lab::rig::real::{Real, RigSetup, rest};
use trueline_lab::rig::{Request, Rig};
use trueline_sim::drive::Op;

/// A provider on the export of a server.
pub(in super::super) struct Exported {
    provider: Provider,
    uri: String,
    writes: bool,
    length: u64,
    /// A warning about unwritten bytes, in words.
    holes: Option<String>,
    held_back: bool,
}

/// Most extents that a server is asked for: each takes a request.
const RUNS: usize = 256;

impl Exported {
    /// Opens a target. Errors: several disks, options of files, a container, a write that would
    /// destroy contents, an export that cannot be written.
    pub(super) fn open(
        typed: &Target,
        overrides: &DiskOverrides,
        args: &Bench,
        writes: bool,
    ) -> Result<Exported, Failure> {
        let attempt = format!("bench {}", args.workload);
        let not = |why: &dyn fmt::Display| Failure::Message(format!("{attempt} on {typed}: {why}"));
        let [source] = typed.sources() else {
            return Err(not(&"an export is measured alone, not with other disks"));
        };
        let options = [
            ("--buffered", args.buffered, "the server decides about its page cache"),
            ("--engine", args.engine.is_some(), "an export has an engine of its own"),
            ("--allow-busy", args.allow_busy, "a server does not say what else uses its export"),
        ];
        if let Some((option, _, why)) = options.iter().find(|(_, given, _)| *given) {
            return Err(not(&format!("{option} is for files and devices of this machine: {why}")));
        }
        let mut target = WriteTarget::open_with(typed, overrides, Access::Read)?;
        let route = target.graph.providers[target.id].route();
        if route.has_tables() || target.graph.stores().len() > 1 {
            return Err(not(
                &"it is the disk in a container: serve that disk, and name its export",
            ));
        }
        if let Some(why) = route.read_only_in_part().filter(|_| writes) {
            return Err(not(&why));
        }
        if writes {
            require_free(&target, &attempt, args.destructive)?;
        }
        let holes = target.graph.stores().first().and_then(|export| {
            holes(&escape::plain(source.typed()), sought(&**export, RUNS)?, export.length())
        });
        let length = target.graph.stores().first().map_or(0, |export| export.length());
        let provider = target.graph.providers.swap_remove(target.id);
        // Its connection ends.
        drop(target);
        let uri = source.typed().to_owned();
        if writes {
            Pipeline::<u64>::open(&uri, true, 1, 0, length, signal::happened)
                .map_err(Reason::from)?;
        }
        Ok(Exported { provider, uri, writes, length, holes, held_back: false })
    }

    pub(super) fn provider(&self) -> &Provider {
        &self.provider
    }

    /// Warnings that the results here need, in words.
    pub(super) fn warnings(&self) -> Vec<String> {
        let waited = || {
            format!(
                "{}: reads and writes are in flight at a time, and a write is sent when the reads \
                before it are answered: fewer than asked for are in flight",
                escape::plain(&self.uri)
            )
        };
        self.holes.iter().cloned().chain(self.held_back.then(waited)).collect()
    }

    /// Runs a job once. What was written before a job that writes is flushed, and the server rests.
    pub(super) fn run(&mut self, job: &mut Job<'_, '_>) -> Result<RunOutput, Error> {
        let Task::Blocks(workload) = job.task else {
            return Err(Error::new("it needs a file system".into()));
        };
        let depth = u32::try_from(workload.depth()).unwrap_or(u32::MAX);
        let shape = RigSetup { depth, largest: workload.largest(), engine: Choice::Best };
        let sector = self.provider.topology.sector;
        let route = self.provider.route().clone();
        let mut rig = Real::of_export(route, sector, &self.uri, self.writes, self.length, shape)?;
        if self.writes {
            flush(&mut rig)?;
            rest(job.rest_ns, &mut || !signal::happened());
        }
        let engine = Some(rig.engine());
        let run = job.task.on_blocks(&mut rig, job.seed, job.watch)?;
        self.held_back |= rig.is_held_back();
        Ok(RunOutput { engine, ..RunOutput::from_run(run) })
    }
}

/// Flushes the export, and waits for it.
fn flush(rig: &mut Real) -> Result<(), Error> {
    let request = Request { tag: 0, op: Op::Flush, offset: 0, length: 0, fua: false };
    let mut done = Vec::new();
    let sent = rig.push(request).and_then(|()| rig.wait(1, &mut done));
    let failed = sent.err().or_else(|| done.iter().find_map(|finished| finished.error));
    failed.map_or(Ok(()), |errno| Err(Error::io("flush", 0, errno)))
}
