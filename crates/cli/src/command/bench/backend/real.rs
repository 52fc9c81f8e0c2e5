//! Files and devices of this machine.

use super::{Job, RunOutput};
use crate::command::bench::args::Bench;
use crate::command::bench::task::Task;
use crate::failure::Failure;
use crate::media::{Media, MediaUse};
use crate::target::{DiskOverrides, Target};
use trueline_geom::base::store::Store;
use trueline_geom::graph::Provider;
use trueline_host::device::stat;
use trueline_host::engine::Choice;
use trueline_host::engine::open_file::Cache;
use trueline_host::process::signal;
use trueline_lab::error::Error;
use trueline_lab::rig::real::rest;

/// A provider on files and devices.
pub(in super::super) struct Real {
    media: Media,
    /// True if the page cache keeps its contents between runs.
    cached: bool,
}

impl Real {
    /// Opens a target. Errors: a write without `--destructive` that would destroy contents.
    pub(super) fn open(
        typed: &Target,
        overrides: &DiskOverrides,
        args: &Bench,
        writes: bool,
    ) -> Result<Real, Failure> {
        let asked = MediaUse {
            attempt: &format!("bench {}", args.workload),
            writes,
            destructive: args.destructive,
            allow_busy: args.allow_busy,
            cache: if args.buffered { Cache::Through } else { Cache::Around },
            engine: args.engine.map_or(Choice::Best, Choice::from),
        };
        Ok(Real { media: Media::open(typed, overrides, asked)?, cached: args.cached })
    }

    pub(super) fn provider(&self) -> &Provider {
        self.media.provider()
    }

    pub(super) fn grain(&self) -> u64 {
        self.media.grain()
    }

    pub(super) fn holes(&self) -> Option<&str> {
        self.media.holes()
    }

    /// Runs a job once. What was written before a job that writes is flushed, and the drives rest.
    /// The page cache is emptied before, unless it is to be kept.
    pub(super) fn run(&mut self, job: &mut Job<'_, '_>) -> Result<RunOutput, Error> {
        let Task::Blocks(workload) = job.task else {
            return Err(Error::new("it needs a file system".into()));
        };
        let media = &self.media;
        let route = self.provider().route().cold(super::TABLE_PAGES);
        let mut rig = media.rig(route, workload.depth(), workload.largest())?;
        if workload.writes() {
            let flushed = media.media.iter().try_for_each(Store::flush);
            flushed.map_err(|errno| Error::io("flush", 0, errno))?;
            rest(job.rest_ns, &mut || !signal::happened());
        }
        for medium in media.media.iter().filter(|_| media.cache == Cache::Through && !self.cached) {
            medium.start_writeback(0, 0);
        }
        let engine = Some(rig.engine());
        let before = self.reads();
        let run = job.task.on_blocks(&mut rig, job.seed, job.watch)?;
        let host_reads =
            self.reads().zip(before).map(|(after, before)| after.saturating_sub(before));
        Ok(RunOutput { host_reads, engine, ..RunOutput::from_run(run) })
    }

    /// Reads of the devices so far; `None` for files, and past the page cache, where reads are the
    /// requests themselves.
    fn reads(&self) -> Option<u64> {
        if self.media.cache == Cache::Around {
            return None;
        }
        self.media.paths.iter().map(|path| stat::done(path).map(|done| done.reads)).sum()
    }
}
