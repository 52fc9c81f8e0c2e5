//! The error of a measurement.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;
use trueline_geom::base::error::Errno;

/// A message that says what was attempted, where, and what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(pub String);

impl Error {
    /// The message of a failed request: `write at 4096: no space left`.
    pub fn io(attempt: &str, offset: u64, errno: Errno) -> Error {
        Error(format!("{attempt} at {offset}: {errno}"))
    }

    /// The message of a named file that cannot be opened: `read log: no such file or directory:
    /// check the name`.
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
