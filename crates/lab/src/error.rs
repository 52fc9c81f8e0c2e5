//! Why a measurement could not be done.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;
use trueline_geom::base::error::Errno;

/// What was attempted, where, and what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(pub String);

impl Error {
    /// `write at 4096: no space left`.
    pub fn io(attempt: &str, offset: u64, errno: Errno) -> Error {
        Error(format!("{attempt} at {offset}: {errno}"))
    }

    /// A file that somebody named could not be opened: `read log: no such file or directory: check the name`.
    pub(crate) fn unread(path: &Path, error: &io::Error) -> Error {
        let why = match error.kind() {
            ErrorKind::NotFound => "no such file or directory: check the name".into(),
            ErrorKind::PermissionDenied => "permission denied: you may not read it".into(),
            _ => error.to_string(),
        };
        Error(format!("read {}: {why}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
