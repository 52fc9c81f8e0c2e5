//! Bytes of a table that a label was read from.

use super::label::{self, Label};
use crate::base::store::{Sparse, Store};
use crate::base::topology::{round_down, round_up};
use std::ops::Range;

/// The label in the bytes of a table; `None` if there is none for that sector.
pub(super) fn in_table(raw: &Sparse, sector: u64) -> Option<Label> {
    label::find(&|at, length| Some(bytes(raw, at, length)), sector)?
        .ok()
        .filter(|l| l.sector == sector)
}

pub(super) fn to_usize(n: u64) -> usize {
    usize::try_from(n).unwrap_or(0)
}

/// The bytes of `raw` at that place; zeros past its end.
pub(super) fn bytes(raw: &Sparse, at: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    if raw.read_at(&mut bytes, at).is_err() {
        bytes.fill(0);
    }
    bytes
}

/// The range of whole sectors that contain `length` bytes at `at`.
pub(super) fn span(at: u64, length: usize, sector: u64) -> Range<u64> {
    let end = at.saturating_add(length as u64);
    round_down(at, sector)..round_up(end, sector).unwrap_or(end)
}
