//! The workloads that a lab file can name: those of `bench`, with the same parameters.

use super::Texts;
use crate::error::Error;
use crate::files::Files;
use crate::rig::Rig;
use crate::run::Run;
use crate::workload::{self, Blocks, Kind, Needs, Parameters, Watch};
use serde::Deserialize;
use std::path::Component;
use toml::{Table, Value};
use trueline_host::interrupt;

/// The most requests of a run: minutes, on any machine. A lab is a file from anywhere.
const MOST: u64 = 1 << 27;

/// A run that was cut short counts for nothing.
fn unless_interrupted() -> Result<(), Error> {
    if interrupt::happened() { Err(Error("interrupted".into())) } else { Ok(()) }
}

/// What is run.
#[derive(Clone, Deserialize)]
#[serde(try_from = "Table")]
pub(super) struct Workload {
    kind: &'static Kind,
    parameters: Parameters,
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
        let parameters = table.try_into().map_err(|e: toml::de::Error| format!("workload {name}: {}", e.message()))?;
        Ok(Workload { kind, parameters })
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
        if name.as_os_str().is_empty() || !name.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(format!("file = {}: name a file beside the lab or below, without .. and no /", name.display()));
        }
        self.parameters.file = Some(texts.beside(name)?);
        Ok(())
    }

    /// The same with its requests moved by so many bytes.
    pub(super) fn moved(&self, by: u64) -> Workload {
        let mut moved = self.clone();
        moved.parameters.offset = moved.parameters.offset.saturating_add(by);
        moved
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
                let mut asked = 0;
                let run = make(&self.parameters)?.run(rig, random, &mut |so_far| {
                    asked = so_far;
                    so_far <= MOST && !interrupt::happened()
                })?;
                unless_interrupted()?;
                if asked > MOST { Err(Error(format!("workload {}: more than {MOST} requests", self.name()))) } else { Ok(run) }
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
                match work.extent() {
                    0..=MOST => {
                        let run = work.run(files, random, &mut |so_far| !interrupt::happened() && watch(so_far))?;
                        unless_interrupted().map(|()| run)
                    }
                    extent => Err(Error(format!("workload {}: {extent} operations, more than {MOST}", self.name()))),
                }
            }
        }
    }
}
