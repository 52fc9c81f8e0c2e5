//! What is not known of a value: two numbers that it lies between, or the words that it may be.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// What a sweep may give a key.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged, expecting = "expected two numbers, the least first, or words")]
pub enum Range {
    /// The least and the greatest.
    Numbers([f64; 2]),
    /// Each of them.
    Words(Vec<String>),
}

impl Range {
    /// What cannot be, in words.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let can = match self {
            Range::Numbers([least, most]) => least.is_finite() && most.is_finite() && least <= most,
            Range::Words(words) => words.len() > 1 && words.iter().collect::<BTreeSet<_>>().len() == words.len(),
        };
        if can { Ok(()) } else { Err("two numbers, the least first, or two words and more, each once") }
    }
}

/// As the file has it.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Range::Numbers([least, most]) => write!(f, "[{least}, {most}]"),
            Range::Words(words) => write!(f, "{words:?}"),
        }
    }
}
