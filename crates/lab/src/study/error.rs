//! The error of a lab: the line of its file, and what was found there.

use crate::error::Error;
use std::fmt;
use trueline_sim::model;

/// A lab that cannot be read, or a row of it that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabError {
    /// The line of the file, if one is to blame.
    pub line: Option<usize>,
    /// The fault, and the values that would be accepted.
    pub cause: Error,
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        self.cause.fmt(f)
    }
}

impl std::error::Error for LabError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// An error that no line is known of yet.
impl From<Error> for LabError {
    fn from(cause: Error) -> LabError {
        LabError { line: None, cause }
    }
}

/// A model's error in a message of a lab; the line is one of the model's file.
pub(super) fn in_model(name: &str, error: &model::ModelRefusal) -> Error {
    Error::new(format!("model {name}: {error}"))
}
