//! Files of lines that a run goes on with where another has ended.

use crate::failure::Reason;
use crate::words;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use trueline_host::disk::locks;

/// A file of lines that is open for reading and appending, locked for this run.
pub(crate) struct Appended {
    /// The path, behind all links.
    pub(crate) path: PathBuf,
    pub(crate) file: File,
}

impl Appended {
    /// Opens a file of lines, or makes it.
    ///
    /// Errors: something else than a file, one that another run writes, or that cannot be written.
    pub(crate) fn open(named: &Path) -> Result<Appended, Reason> {
        // Through a link to what it leads to, so that the link stays.
        let path = named.canonicalize().unwrap_or_else(|_| named.to_path_buf());
        if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
            return Err(refused(named, "it is no file"));
        }
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&path)
            .map_err(|e| failed(named, &e))?;
        if locks::keep(&file) {
            Ok(Appended { path, file })
        } else {
            Err(reason(named, "another run writes it"))
        }
    }
}

/// The reason for which a file is left alone.
pub(crate) fn refused(path: &Path, why: &str) -> Reason {
    reason(path, format_args!("{why}: name a new file"))
}

/// The reason for which a file cannot be read or written.
pub(crate) fn failed(path: &Path, error: &io::Error) -> Reason {
    reason(path, words::os(error))
}

fn reason(path: &Path, why: impl fmt::Display) -> Reason {
    Reason(format!("write {}: {why}", path.display()))
}
