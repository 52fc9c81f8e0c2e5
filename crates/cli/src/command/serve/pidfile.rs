//! `--pidfile`: the process's number, for scripts, while the server runs.

use crate::failure::Failure;
use crate::replaced::{self, Replacement};
use crate::{input_text, words};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use trueline_host::disk::locks;

/// Most bytes of a number and its line end.
const LONGEST: u64 = 21;

/// The file; it is removed when the value is dropped. Its lock, which ends with the process, tells
/// the file of a server that runs from one that a server has left.
pub(super) struct Pidfile {
    path: PathBuf,
    new: Replacement,
}

impl Pidfile {
    /// A file beside the one that is to be: what can fail is done before there is a client.
    ///
    /// Errors: another kind of file is there, or that of a server that runs; a write fails.
    pub(super) fn prepare(path: &Path) -> Result<Pidfile, Failure> {
        let prepare = || {
            replaceable(path)?;
            // A name that others can guess may be a link of theirs: the file beside is always new.
            let new =
                Replacement::write(path, None, |out| writeln!(out, "{}", std::process::id()))?;
            locks::keep(new.file());
            Ok(Pidfile { path: path.to_owned(), new })
        };
        prepare().map_err(|e| failed(path, &e))
    }

    /// Puts it in its place in one step, so that no reader finds a part of it. Errors: those of
    /// [`Pidfile::prepare`].
    pub(super) fn place(&mut self) -> Result<(), Failure> {
        let Pidfile { path, new } = self;
        // Of two servers that come to this at one time one finds the other's.
        let placed = replaced::lock(path).and_then(|_directory| {
            replaceable(path)?;
            new.place(path)
        });
        placed.map_err(|e| failed(path, &e))
    }
}

fn failed(path: &Path, why: &io::Error) -> Failure {
    Failure::Message(format!("write {}: {}", path.display(), words::os(why)))
}

/// Refuses what is there, if it is no file with a process's number, or that of a server that runs.
fn replaceable(path: &Path) -> io::Result<()> {
    let mut file = match input_text::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let mut text = String::new();
    let is_number = file.metadata()?.is_file()
        && (&mut file).take(LONGEST + 1).read_to_string(&mut text).is_ok()
        && text.len() as u64 <= LONGEST
        && text.chars().all(|c| c.is_ascii_digit() || c.is_ascii_whitespace());
    if !is_number {
        let why = "it is there and holds no process's number: name another file";
        return Err(io::Error::other(why));
    }
    if !locks::keep(&file) {
        let why = format!("the process {} serves and has it: name another file", text.trim());
        return Err(io::Error::other(why));
    }
    Ok(())
}

impl Drop for Pidfile {
    fn drop(&mut self) {
        // A script may have put another one there.
        if self.new.is_placed()
            && fs::read_to_string(&self.path)
                .is_ok_and(|text| text.trim() == std::process::id().to_string())
        {
            let _ = fs::remove_file(&self.path);
        }
    }
}
