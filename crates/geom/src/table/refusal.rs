//! Refusal of an edit: the value that is wrong, and advice.

use std::fmt;

/// Refusal of an edit. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Reason in words: the value that is wrong.
    pub found: String,
    /// Advice in words; may be empty.
    pub advice: String,
}

impl Refusal {
    /// A refusal for the reason `found`, with `advice`.
    pub fn new(found: impl Into<String>, advice: impl Into<String>) -> Refusal {
        Refusal { found: found.into(), advice: advice.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.advice.is_empty() {
            f.write_str(&self.found)
        } else {
            write!(f, "{}: {}", self.found, self.advice)
        }
    }
}

impl std::error::Error for Refusal {}
