//! `tree`: unpacks a tree of files as tar does, copies it as `cp -r`, deletes it as `rm -r`.
//!
//! The tree comes from a seed, with lognormal sizes, or from a tarball's headers. Each phase is
//! measured by itself. A phase does not wait for dirty data at its end, as the programs do not.

use super::{Needs, OnFiles, Watch, WorkloadKind};
use crate::error::Error;
use crate::files::{File, Files};
use crate::run::Run;
use plan::TreeEntry;
use serde::Deserialize;

pub mod plan;
pub mod tar;

pub use plan::{Sizes, TreeSource};

/// The name of the directory that a tree is copied to.
const COPIED: &str = "trueline-copy";

/// Bytes of one write of tar (20 records of 512), and of one copy of cp.
const TAR_WRITE: u64 = 10240;
const COPY: u64 = 65536;

/// The workload `tree` as listed.
pub const KIND: WorkloadKind = WorkloadKind {
    name: "tree",
    title: "a tree of files unpacked, copied, deleted",
    needs: Needs::Files(make),
};

struct Tree {
    parameters: Parameters,
    phase: Phase,
}

fn make(said: &super::Parameters) -> Result<Box<dyn OnFiles>, Error> {
    let own = Sizes::default();
    let plan = match &said.entries {
        Some(entries) => TreeSource::Listed(entries.clone()),
        None => TreeSource::Seeded(Sizes {
            files: said.files.unwrap_or(own.files),
            per_directory: said.per_directory.unwrap_or(own.per_directory),
            median: said.median.unwrap_or(own.median),
            mean: said.mean.unwrap_or(own.mean),
            ..own
        }),
    };
    plan.check()?;
    Ok(Box::new(Tree {
        parameters: Parameters { plan, think_ns: said.think_ns.unwrap_or(0) },
        phase: said.phase.unwrap_or(Phase::Unpack),
    }))
}

impl OnFiles for Tree {
    fn writes(&self) -> bool {
        true
    }

    fn extent(&self) -> u64 {
        self.parameters.plan.entries()
    }

    fn run(&self, files: &mut dyn Files, seed: u64, watch: &mut Watch<'_>) -> Result<Run, Error> {
        let mut parameters = self.parameters.clone();
        if let TreeSource::Seeded(sizes) = &mut parameters.plan {
            sizes.seed = seed;
        }
        let (last, before) = (self.phase, std::cell::Cell::new(0));
        // Phases before the measured one are not shown to the observer.
        let skip =
            self.extent() * Phase::ALL.iter().position(|&phase| phase == last).unwrap_or(0) as u64;
        let runs = run(files, &parameters, last, &mut |asked| {
            before.set(asked);
            asked < skip || watch(asked - skip)
        })?;
        // Where time is virtual, the whole file system is dropped with its rig.
        if !files.is_virtual() && before.get() + 1 >= skip + self.extent() {
            clean(files, &parameters, last)?;
        }
        runs.into_iter()
            .next_back()
            .map(|(_, run)| run)
            .ok_or_else(|| Error::new("tree: nothing was run".into()))
    }
}

/// The operation on the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// tar: directories and files are made, written, and given their times.
    Unpack,
    /// cp -r: every file is read and made again elsewhere, from the medium if the host can empty
    /// its cache.
    Copy,
    /// rm -r: files are removed, then their directories.
    Delete,
}

impl Phase {
    /// All phases in the order in which they must run.
    pub const ALL: [Phase; 3] = [Phase::Unpack, Phase::Copy, Phase::Delete];

    /// The name in options and reports: `unpack`, `copy`, `delete`.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Unpack => "unpack",
            Phase::Copy => "copy",
            Phase::Delete => "delete",
        }
    }
}

/// The parameters of a run.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    /// The source of the tree's entries.
    pub plan: TreeSource,
    /// Nanoseconds of computing for each file: unpacking, system calls. Spent where time is
    /// virtual.
    pub think_ns: u64,
}

/// Runs the phases up to `last`, and returns the run of each. An operation is a file or directory;
/// bytes are those of the files.
pub fn run(
    files: &mut dyn Files,
    parameters: &Parameters,
    last: Phase,
    watch: &mut Watch<'_>,
) -> Result<Vec<(Phase, Run)>, Error> {
    let mut runs = Vec::new();
    let mut asked = 0;
    for phase in Phase::ALL {
        let mut run = Run::new();
        let begin = files.now();
        let mut each = |files: &mut dyn Files, entry: &TreeEntry| {
            if !watch(asked) {
                return Ok(false);
            }
            asked += 1;
            let before = files.now();
            match phase {
                Phase::Unpack => unpack(files, parameters, entry)?,
                Phase::Copy => copy(files, parameters, entry)?,
                Phase::Delete => delete(files, &entry.name, entry)?,
            }
            let now = files.now();
            run.record(entry.size.unwrap_or(0), now.saturating_sub(before));
            Ok(true)
        };
        if phase == Phase::Copy {
            files.make_directory(COPIED)?;
        }
        let backwards = phase == Phase::Delete;
        parameters.plan.walk(backwards, &mut |entry| each(files, entry))?;
        run.ns = files.now().saturating_sub(begin);
        runs.push((phase, run));
        if phase == last {
            break;
        }
        files.forget()?;
    }
    Ok(runs)
}

/// Removes what [`run`] left after phase `last`, unmeasured.
pub fn clean(files: &mut dyn Files, parameters: &Parameters, last: Phase) -> Result<(), Error> {
    if last != Phase::Delete {
        parameters
            .plan
            .walk(true, &mut |entry| delete(files, &entry.name, entry).map(|()| true))?;
    }
    if last != Phase::Unpack {
        parameters.plan.walk(true, &mut |entry| {
            delete(files, &format!("{COPIED}/{}", entry.name), entry).map(|()| true)
        })?;
        files.remove_directory(COPIED)?;
    }
    Ok(())
}

fn unpack(files: &mut dyn Files, parameters: &Parameters, entry: &TreeEntry) -> Result<(), Error> {
    let name = &entry.name;
    files.think(parameters.think_ns);
    let Some(size) = entry.size else {
        files.make_directory(name)?;
        return files.set_times(name);
    };
    let file = files.create(name)?;
    write(files, file, size, TAR_WRITE)?;
    files.close(file)?;
    files.set_times(name)
}

fn copy(files: &mut dyn Files, parameters: &Parameters, entry: &TreeEntry) -> Result<(), Error> {
    let to = format!("{COPIED}/{}", entry.name);
    files.think(parameters.think_ns);
    let Some(size) = entry.size else { return files.make_directory(&to) };
    let source = files.open(&entry.name)?;
    let copy = files.create(&to)?;
    let mut at = 0;
    while at < size {
        let length = COPY.min(size - at);
        files.read(source, at, length)?;
        files.write(copy, at, length)?;
        at += length;
    }
    files.close(copy)?;
    files.close(source)
}

fn delete(files: &mut dyn Files, name: &str, entry: &TreeEntry) -> Result<(), Error> {
    if entry.size.is_some() { files.remove(name) } else { files.remove_directory(name) }
}

fn write(files: &mut dyn Files, file: File, size: u64, chunk: u64) -> Result<(), Error> {
    let mut at = 0;
    while at < size {
        let length = chunk.min(size - at);
        files.write(file, at, length)?;
        at += length;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
