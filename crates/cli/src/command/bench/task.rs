//! The task of a run: a workload of blocks or of files, with its parameters.

use crate::failure::Reason;
use trueline_lab::error::Error;
use trueline_lab::files::Files;
use trueline_lab::rig::Rig;
use trueline_lab::run::Run;
use trueline_lab::workload::bonnie::{self, Phases};
use trueline_lab::workload::{Blocks, Needs, OnFiles, Parameters, Watch, WorkloadKind};

/// A workload with its parameters.
pub(super) enum Task {
    Blocks(Box<dyn Blocks>),
    Files(Box<dyn OnFiles>),
    /// A workload on files with results for each phase.
    Bonnie(bonnie::Parameters),
}

impl Task {
    /// The task of a workload with its parameters.
    pub(super) fn new(kind: &WorkloadKind, parameters: &Parameters) -> Result<Task, Reason> {
        let made = match kind.needs {
            Needs::Blocks(make) => make(parameters).map(Task::Blocks),
            Needs::Files(_) if kind.name == bonnie::KIND.name => {
                bonnie::Parameters::from_options(parameters).map(Task::Bonnie)
            }
            Needs::Files(make) => make(parameters).map(Task::Files),
        };
        made.map_err(|e| Reason::from(e).behind(format_args!("bench {}", kind.name)))
    }

    /// True if it writes blocks.
    pub(super) fn writes(&self) -> bool {
        matches!(self, Task::Blocks(blocks) if blocks.writes())
    }

    /// Requests or operations of one run on a provider of `length` bytes; `None` if only time ends
    /// it.
    pub(super) fn extent(&self, length: u64) -> Option<u64> {
        match self {
            Task::Blocks(blocks) => blocks.extent(length),
            Task::Files(files) => Some(files.extent()),
            Task::Bonnie(parameters) => Some(parameters.extent()),
        }
    }

    /// A warning that its results need, in words.
    pub(super) fn warning(&self) -> Option<String> {
        match self {
            Task::Blocks(blocks) => blocks.warning(),
            Task::Files(_) | Task::Bonnie(_) => None,
        }
    }

    /// One run on blocks. Errors: it needs a file system.
    pub(super) fn on_blocks(
        &self,
        rig: &mut dyn Rig,
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Run, Error> {
        match self {
            Task::Blocks(blocks) => blocks.run(rig, seed, watch),
            Task::Files(_) | Task::Bonnie(_) => Err(Error::new("it needs a file system".into())),
        }
    }

    /// One run on files; bonnie's also gives its phases. Errors: it needs blocks.
    pub(super) fn on_files(
        &self,
        files: &mut dyn Files,
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<(Run, Option<Phases>), Error> {
        match self {
            Task::Blocks(_) => Err(Error::new("it needs blocks".into())),
            Task::Files(workload) => Ok((workload.run(files, seed, watch)?, None)),
            Task::Bonnie(parameters) => {
                let phases = bonnie::run(files, parameters, seed, watch)?;
                Ok((bonnie::whole(&phases), Some(phases)))
            }
        }
    }
}
