//! The workloads that a lab file can name: those of `bench`, with the same parameters.

use super::Texts;
use super::bounds::{REQUESTS, SECONDS};
use crate::error::Error;
use crate::files::Files;
use crate::rig::Rig;
use crate::run::Run;
use crate::workload::{self, Blocks, Needs, Parameters, Watch, WorkloadKind};
use serde::Deserialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use toml::{Table, Value};
use trueline_host::process::signal;

/// The most requests of all runs of a variant, longer ones counted by the MiB: minutes on any
/// machine, as a lab may be untrusted.
const MOST: u64 = 1 << 27;
const WHOLE: u64 = 1 << 20;

/// The number of requests that one of `bytes` counts as: one for each MiB begun.
fn weight(bytes: u64) -> u64 {
    bytes.div_ceil(WHOLE).max(1)
}

/// Turns an interrupt into an error: a run cut short has no result.
fn unless_interrupted() -> Result<(), Error> {
    if signal::happened() { Err(Error::new("interrupted".into())) } else { Ok(()) }
}

/// A workload with its parameters.
#[derive(Clone, Deserialize)]
#[serde(try_from = "Table")]
pub(super) struct Workload {
    kind: &'static WorkloadKind,
    parameters: Parameters,
    /// The number of times it is run.
    times: u64,
    /// The counter of requests that only time ends, shared by the whole lab.
    by_time: Option<Arc<AtomicU64>>,
}

impl TryFrom<Table> for Workload {
    type Error = Error;

    /// `kind` is the name of the workload; the other keys are its parameters.
    fn try_from(mut table: Table) -> Result<Workload, Error> {
        let there =
            || workload::WORKLOADS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
        let Some(Value::String(name)) = table.remove("kind") else {
            return Err(Error::new(format!("a workload needs a kind: {}", there())));
        };
        let kind = workload::named(&name)
            .ok_or_else(|| Error::new(format!("no workload '{name}': there are {}", there())))?;
        let parameters = table.try_into().map_err(|e: toml::de::Error| {
            Error::new(format!("workload {name}: {}", e.to_string().trim().replace('\n', " ")))
        })?;
        Ok(Workload { kind, parameters, times: 1, by_time: None })
    }
}

impl Workload {
    /// The name in the file.
    pub(super) fn name(&self) -> &'static str {
        self.kind.name
    }

    /// Finds the file that the workload names beside the lab: a lab may be untrusted, and opens
    /// nothing elsewhere.
    pub(super) fn find_beside(&mut self, texts: &dyn Texts) -> Result<(), Error> {
        let Some(name) = &self.parameters.file else { return Ok(()) };
        let found = super::stays(name).and_then(|()| texts.beside(name));
        self.parameters.file =
            Some(found.map_err(|why| Error::new(format!("file = {}: {why}", name.display())))?);
        Ok(())
    }

    /// The workload with every request moved by `by` bytes.
    pub(super) fn moved(&self, by: u64) -> Workload {
        let mut moved = self.clone();
        moved.parameters.offset = moved.parameters.offset.saturating_add(by);
        moved
    }

    /// The workload to be run `times` times: the bounds apply to all of them together.
    pub(super) fn times(mut self, times: u64) -> Workload {
        self.times = times.max(1);
        self
    }

    /// The workload counting its requests in `by_time`, where only time ends it.
    pub(super) fn counted_in(mut self, by_time: &Arc<AtomicU64>) -> Workload {
        self.by_time = Some(by_time.clone());
        self
    }

    /// The seconds of a run; 0 if a count ends it.
    pub(super) fn seconds(&self) -> f64 {
        self.parameters.seconds.unwrap_or(0.0)
    }

    /// Requests of all its runs on `length` bytes, longer ones counted by the MiB. 0 if only time
    /// ends it, or if its own bounds refuse it.
    pub(super) fn requests(&self, length: u64) -> u64 {
        let (extent, largest) = match self.kind.needs {
            Needs::Blocks(make) => make(&self.parameters)
                .map_or((0, 0), |work| (work.extent(length).unwrap_or(0), work.largest())),
            Needs::Files(make) => make(&self.parameters).map_or((0, 0), |work| (work.extent(), 0)),
        };
        let begun = self.check(extent, largest).is_ok();
        if begun { extent.saturating_mul(weight(largest)).saturating_mul(self.times) } else { 0 }
    }

    /// Counts one more request of at most `largest` bytes. It is an error if the lab's bound on
    /// requests that only time ends is exceeded.
    fn count(&self, largest: u64) -> Result<(), Error> {
        match &self.by_time {
            Some(count) if count.fetch_add(weight(largest), Ordering::Relaxed) >= REQUESTS => {
                Err(Error::new(format!(
                    "workload {}: more than {REQUESTS} requests of rows that only seconds end: give them fewer seconds",
                    self.name()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Checks the bound on all runs: `extent` is the requests of one, each of at most `largest`
    /// bytes.
    fn check(&self, extent: u64, largest: u64) -> Result<(), Error> {
        let most = MOST / self.times / weight(largest);
        if extent <= most {
            return Ok(());
        }
        let (name, times) = (
            self.name(),
            if self.times > 1 { format!(", {} times", self.times) } else { String::new() },
        );
        Err(Error::new(format!(
            "workload {name}: {extent} requests{times}, more than {most}: give it fewer"
        )))
    }

    /// Checks the bounds on all runs on `length` bytes of this machine, in requests and in time.
    pub(super) fn check_here(&self, work: &dyn Blocks, length: u64) -> Result<(), Error> {
        #[allow(clippy::cast_precision_loss, reason = "a handful of runs")]
        let seconds = self.seconds() * self.times as f64;
        if seconds > SECONDS {
            return Err(Error::new(format!(
                "workload {}: {seconds} seconds in all runs, more than {SECONDS}",
                self.name()
            )));
        }
        self.check(work.extent(length).unwrap_or(0), work.largest())
    }

    /// True if it writes to its target while it is measured.
    pub(super) fn writes(&self) -> bool {
        match self.kind.needs {
            Needs::Blocks(make) => make(&self.parameters).is_ok_and(|work| work.writes()),
            Needs::Files(make) => make(&self.parameters).is_ok_and(|work| work.writes()),
        }
    }

    /// True if it needs a file system rather than blocks.
    pub(super) fn is_of_files(&self) -> bool {
        match self.kind.needs {
            Needs::Blocks(_) => false,
            Needs::Files(_) => true,
        }
    }

    /// The workload of blocks, with every request moved by `offset` bytes.
    pub(super) fn moved_blocks(&self, offset: u64) -> Result<Box<dyn Blocks>, Error> {
        let offset = self.parameters.offset.saturating_add(offset);
        match self.kind.needs {
            Needs::Blocks(make) => make(&Parameters { offset, ..self.parameters.clone() }),
            Needs::Files(_) => {
                Err(Error::new(format!("workload {}: it needs a file system", self.kind.name)))
            }
        }
    }

    /// Runs the workload on blocks.
    pub(super) fn on_blocks(&self, rig: &mut dyn Rig, random: u64) -> Result<Run, Error> {
        match self.kind.needs {
            Needs::Blocks(make) => {
                let work = make(&self.parameters)?;
                self.check(work.extent(rig.length()).unwrap_or(0), work.largest())?;
                // Requests of a run that only time ends are counted for the whole lab.
                let (mut within, counted) = (Ok(()), work.extent(rig.length()).is_some());
                let run = work.run(rig, random, &mut |so_far| {
                    within = self.check(so_far, work.largest());
                    if within.is_ok() && !counted {
                        within = self.count(work.largest());
                    }
                    within.is_ok() && !signal::happened()
                })?;
                unless_interrupted().and(within).map(|()| run)
            }
            Needs::Files(_) => {
                Err(Error::new(format!("workload {}: it needs a file system", self.kind.name)))
            }
        }
    }

    /// Runs the workload on files.
    pub(super) fn on_files(
        &self,
        files: &mut dyn Files,
        random: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Run, Error> {
        match self.kind.needs {
            Needs::Blocks(_) => {
                Err(Error::new(format!("workload {}: it needs blocks", self.kind.name)))
            }
            Needs::Files(make) => {
                let work = make(&self.parameters)?;
                self.check(work.extent(), 0)?;
                let run =
                    work.run(files, random, &mut |so_far| !signal::happened() && watch(so_far))?;
                unless_interrupted().map(|()| run)
            }
        }
    }
}
