//! Interrupted move: the contents of a partition lie in two places, and only the journal knows
//! which part is where.
//!
//! # On disk
//! A [`Mark`], in the first sector.

pub mod mark;

use self::mark::{MAGIC, Mark};
use super::{Format, FormatKind, Inside, Sign};
use crate::probe::Probe;

/// The format, for the registry.
pub struct Moving;

/// The kind of what a move left.
pub const KIND: FormatKind = FormatKind::new("trueline_move", &Moving);

impl Format for Moving {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }
}

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let mark = Mark::read(&probe.bytes(0, Mark::LENGTH).filter(|bytes| bytes.starts_with(MAGIC))?)?;
    let Mark { from, to, length, .. } = mark;
    let details = vec![("from", from.to_string()), ("to", to.to_string())];
    Some(Sign { inside: Inside::Moving, size: Some(length), details, ..Sign::new(KIND, 0) })
}
