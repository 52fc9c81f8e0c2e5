//! A directory of this machine. A run works in a scratch directory in it, which is removed with the
//! run.

use super::{Job, RunOutput};
use crate::failure::{Failure, complain};
use crate::target::Target;
use crate::words;
use std::path::{Path, PathBuf};
use trueline_host::process::signal;
use trueline_lab::error::Error;
use trueline_lab::files::directory::Directory as Root;
use trueline_lab::files::{Files, scratch::Scratch};
use trueline_lab::rig::real::rest;

/// A directory of a mounted file system.
pub(in super::super) struct Directory {
    path: PathBuf,
}

impl Directory {
    /// Opens an existing directory.
    pub(super) fn open(target: &Target) -> Result<Directory, Failure> {
        match std::fs::metadata(target.typed()) {
            Ok(found) if found.is_dir() => Ok(Directory { path: target.typed().into() }),
            Ok(_) => Err(format!(
                "bench {target}: it is not a directory: name one of a mounted \
                file system, or a simulated drive"
            )
            .into()),
            Err(e) => Err(format!("bench {target}: {}", words::os(&e)).into()),
        }
    }

    /// True if the target is a directory.
    pub(super) fn is(target: &Target) -> bool {
        Path::new(target.typed()).is_dir()
    }

    /// Runs a job once, after older dirty data has been written, and a rest.
    pub(super) fn run(&self, job: &mut Job<'_, '_>) -> Result<RunOutput, Error> {
        let scratch = Scratch::new(&self.path)?;
        let mut files = Root::new(scratch.path())?;
        files.forget()?;
        rest(job.rest_ns, &mut || !signal::happened());
        let done = job.task.on_files(&mut files, job.seed, job.watch);
        drop(files);
        if signal::happened() {
            // A tree of many files takes as long to remove as to make.
            complain(&format!(
                "bench: interrupted: removing {}; a second Ctrl-C leaves it there",
                scratch.path().display()
            ));
        }
        let (run, phases) = done?;
        scratch.remove()?;
        Ok(RunOutput { phases, engine: Some("files"), ..RunOutput::from_run(run) })
    }
}
