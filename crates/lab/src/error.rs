//! Why a measurement could not be done.

use std::fmt;
use trueline_geom::error::Errno;

/// What was attempted, where, and what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(pub String);

impl Error {
    /// `write at 4096: no space left`.
    pub fn io(attempt: &str, offset: u64, errno: Errno) -> Error {
        Error(format!("{attempt} at {offset}: {errno}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
