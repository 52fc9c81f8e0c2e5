//! The range of an uncertain value: two numbers that it lies between, or the words that it may be.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// The values that a sweep may give a key.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged, expecting = "expected two numbers, the least first, or words")]
pub enum Range {
    /// The least and the greatest value.
    Numbers([f64; 2]),
    /// Words, each equally likely.
    Words(Vec<String>),
}

impl Range {
    /// True for two finite numbers in order, or at least two different words.
    pub(super) fn is_valid(&self) -> bool {
        match self {
            Range::Numbers([least, most]) => least.is_finite() && most.is_finite() && least <= most,
            Range::Words(words) => {
                words.len() > 1 && words.iter().collect::<BTreeSet<_>>().len() == words.len()
            }
        }
    }
}

/// The range as the file has it.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Range::Numbers([least, most]) => write!(f, "[{least}, {most}]"),
            Range::Words(words) => write!(f, "{words:?}"),
        }
    }
}
