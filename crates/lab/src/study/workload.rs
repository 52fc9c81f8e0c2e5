//! The workloads that a lab file can name: those of `bench`, with the same parameters.

use super::Texts;
use super::bounds::{REQUESTS, SECONDS};
use crate::error::Error;
use crate::files::Files;
use crate::rig::Rig;
use crate::run::Run;
use crate::workload::{self, Blocks, Kind, Needs, Parameters, Watch};
use serde::Deserialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use toml::{Table, Value};
use trueline_host::process::signal;

/// The most requests of all runs of a variant, longer ones counted by the MiB: minutes, on any machine. A lab is a file from anywhere.
const MOST: u64 = 1 << 27;
const WHOLE: u64 = 1 << 20;

/// What a request of so many bytes is counted as.
fn weight(bytes: u64) -> u64 {
    bytes.div_ceil(WHOLE).max(1)
}

/// A run that was cut short counts for nothing.
fn unless_interrupted() -> Result<(), Error> {
    if signal::happened() { Err(Error("interrupted".into())) } else { Ok(()) }
}

/// What is run.
#[derive(Clone, Deserialize)]
#[serde(try_from = "Table")]
pub(super) struct Workload {
    kind: &'static Kind,
    parameters: Parameters,
    /// How many times it is run.
    times: u64,
    /// Where requests of what only time ends are counted: those of a whole lab.
    by_time: Option<Arc<AtomicU64>>,
}

impl TryFrom<Table> for Workload {
    type Error = String;

    /// `kind` is its name; the other keys are its parameters.
    fn try_from(mut table: Table) -> Result<Workload, String> {
        let there = || workload::WORKLOADS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
        let Some(Value::String(name)) = table.remove("kind") else {
            return Err(format!("a workload has a kind: {}", there()));
        };
        let kind = workload::named(&name).ok_or_else(|| format!("no workload '{name}': {}", there()))?;
        let parameters =
            table.try_into().map_err(|e: toml::de::Error| format!("workload {name}: {}", e.to_string().trim().replace('\n', " ")))?;
        Ok(Workload { kind, parameters, times: 1, by_time: None })
    }
}

impl Workload {
    /// As the file spells it.
    pub(super) fn name(&self) -> &'static str {
        self.kind.name
    }

    /// Looks for the file that it names beside the lab: a lab is a file from anywhere, and opens nothing elsewhere.
    pub(super) fn find_beside(&mut self, texts: &dyn Texts) -> Result<(), String> {
        let Some(name) = &self.parameters.file else { return Ok(()) };
        let found = super::stays(name).and_then(|()| texts.beside(name));
        self.parameters.file = Some(found.map_err(|why| format!("file = {}: {why}", name.display()))?);
        Ok(())
    }

    /// The same with its requests moved by so many bytes.
    pub(super) fn moved(&self, by: u64) -> Workload {
        let mut moved = self.clone();
        moved.parameters.offset = moved.parameters.offset.saturating_add(by);
        moved
    }

    /// The same, which is run so many times: what all of them do is bounded.
    pub(super) fn times(mut self, times: u64) -> Workload {
        self.times = times.max(1);
        self
    }

    /// The same, which counts there what it asks for where only time ends it.
    pub(super) fn counted_in(mut self, by_time: &Arc<AtomicU64>) -> Workload {
        self.by_time = Some(by_time.clone());
        self
    }

    /// Seconds of a run, where they end it.
    pub(super) fn seconds(&self) -> f64 {
        self.parameters.seconds.unwrap_or(0.0)
    }

    /// Requests of all runs of it on `length` bytes, longer ones counted by the MiB. None of what only time ends, and of what will not be
    /// begun.
    pub(super) fn requests(&self, length: u64) -> u64 {
        let (extent, largest) = match self.kind.needs {
            Needs::Blocks(make) => make(&self.parameters).map_or((0, 0), |work| (work.extent(length).unwrap_or(0), work.largest())),
            Needs::Files(make) => make(&self.parameters).map_or((0, 0), |work| (work.extent(), 0)),
        };
        let begun = self.check(extent, largest).is_ok();
        if begun { extent.saturating_mul(weight(largest)).saturating_mul(self.times) } else { 0 }
    }

    /// That with one more request of at most `largest` bytes the lab stays within its bound, where only time ends runs.
    fn count(&self, largest: u64) -> Result<(), Error> {
        match &self.by_time {
            Some(count) if count.fetch_add(weight(largest), Ordering::Relaxed) >= REQUESTS => Err(Error(format!(
                "workload {}: more than {REQUESTS} requests of rows that only seconds end: give them fewer",
                self.name()
            ))),
            _ => Ok(()),
        }
    }

    /// That all runs of it end: `extent` is of one, in requests of at most `largest` bytes.
    fn check(&self, extent: u64, largest: u64) -> Result<(), Error> {
        let most = MOST / self.times / weight(largest);
        if extent <= most {
            return Ok(());
        }
        let (name, times) = (self.name(), if self.times > 1 { format!(", {} times", self.times) } else { String::new() });
        Err(Error(format!("workload {name}: {extent} requests{times}, more than {most}: give it fewer")))
    }

    /// That all runs of it on `length` bytes of this machine end.
    pub(super) fn check_here(&self, work: &dyn Blocks, length: u64) -> Result<(), Error> {
        #[allow(clippy::cast_precision_loss, reason = "a handful of runs")]
        let seconds = self.seconds() * self.times as f64;
        if seconds > SECONDS {
            return Err(Error(format!("workload {}: {seconds} seconds in all runs, more than {SECONDS}", self.name())));
        }
        self.check(work.extent(length).unwrap_or(0), work.largest())
    }

    /// Whether it needs a file system, rather than blocks.
    pub(super) fn is_of_files(&self) -> bool {
        match self.kind.needs {
            Needs::Blocks(_) => false,
            Needs::Files(_) => true,
        }
    }

    /// It, with every request so many bytes further.
    pub(super) fn from(&self, offset: u64) -> Result<Box<dyn Blocks>, Error> {
        let offset = self.parameters.offset.saturating_add(offset);
        match self.kind.needs {
            Needs::Blocks(make) => make(&Parameters { offset, ..self.parameters.clone() }),
            Needs::Files(_) => Err(Error(format!("{}: it needs a file system", self.kind.name))),
        }
    }

    /// Runs it on blocks.
    pub(super) fn on_blocks(&self, rig: &mut dyn Rig, random: u64) -> Result<Run, Error> {
        match self.kind.needs {
            Needs::Blocks(make) => {
                let work = make(&self.parameters)?;
                self.check(work.extent(rig.length()).unwrap_or(0), work.largest())?;
                // What only time ends is counted.
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
            Needs::Files(_) => Err(Error(format!("{}: it needs a file system", self.kind.name))),
        }
    }

    /// Runs it on files.
    pub(super) fn on_files(&self, files: &mut dyn Files, random: u64, watch: &mut Watch<'_>) -> Result<Run, Error> {
        match self.kind.needs {
            Needs::Blocks(_) => Err(Error(format!("{}: it needs blocks", self.kind.name))),
            Needs::Files(make) => {
                let work = make(&self.parameters)?;
                self.check(work.extent(), 0)?;
                let run = work.run(files, random, &mut |so_far| !signal::happened() && watch(so_far))?;
                unless_interrupted().map(|()| run)
            }
        }
    }
}
