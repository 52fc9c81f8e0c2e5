//! The error of a measurement.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;
use trueline_geom::base::error::Errno;

/// An error in one line: the attempt, its place, the finding, and a remedy if one is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The attempt, its place, and the finding.
    pub message: String,
    /// The remedy; `None` if the message says all there is.
    pub remedy: Option<Remedy>,
}

/// A change of the measurement that mends an error. A program that takes such changes says how, in
/// its own terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The name of a trace to replay.
    NameTrace,
    /// Requests past the end of the target, folded into it.
    Wrap,
    /// Fewer rows at a time.
    FewerRows,
    /// Fewer rows at a time, or fewer points of a sweep.
    FewerRowsOrPoints,
    /// Fewer rows or points of a sweep at a time, or a smaller share of them.
    SmallerShare,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Remedy::NameTrace => "name one",
            Remedy::Wrap => "fold them into it (wrap)",
            Remedy::FewerRows => "run fewer rows at a time",
            Remedy::SmallerShare => "sweep fewer rows or points at a time, or a smaller share",
            Remedy::FewerRowsOrPoints => "run fewer rows at a time, or sweep fewer points",
        })
    }
}

impl Error {
    /// An error whose message says all there is.
    pub fn new(message: String) -> Error {
        Error { message, remedy: None }
    }

    /// The same error, with a remedy.
    pub(crate) fn with(self, remedy: Remedy) -> Error {
        Error { remedy: Some(remedy), ..self }
    }

    /// The error of a failed request: `write at 4096: no space left`.
    pub fn io(attempt: &str, offset: u64, errno: Errno) -> Error {
        Error::new(format!("{attempt} at {offset}: {errno}"))
    }

    /// The error of a named file that cannot be opened: `read log: no such file or directory:
    /// check the name`.
    pub(crate) fn unread(path: &Path, error: &io::Error) -> Error {
        let why = match error.kind() {
            ErrorKind::NotFound => "no such file or directory: check the name".into(),
            ErrorKind::PermissionDenied => "permission denied: you may not read it".into(),
            _ => error.to_string(),
        };
        Error::new(format!("read {}: {why}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.remedy.map_or(Ok(()), |remedy| write!(f, ": {remedy}"))
    }
}

impl std::error::Error for Error {}

impl From<String> for Error {
    fn from(message: String) -> Error {
        Error::new(message)
    }
}
