//! What workloads have in common that ask for one kind of request again and again: its size, its way, how many at a time, until when.

use super::{Parameters, Way};
use crate::error::Error;
use crate::rig::Op;
use crate::streams::{Ask, Limit};

/// Requests of one kind.
pub(super) struct Steady {
    pub(super) offset: u64,
    pub(super) op: Op,
    pub(super) depth: usize,
    pub(super) limit: Limit,
    sync: bool,
}

impl Steady {
    /// As it is said, and `count` requests if nothing is said of that.
    pub(super) fn new(parameters: &Parameters, op: Op, count: u64) -> Result<Steady, Error> {
        let (depth, limit) = (parameters.depth(1)?, parameters.limit(count)?);
        Ok(Steady { offset: parameters.offset, op, depth, limit, sync: parameters.sync })
    }

    /// Reads, unless writes are said.
    pub(super) fn way(parameters: &Parameters) -> Op {
        if parameters.op == Some(Way::Write) { Op::Write } else { Op::Read }
    }

    pub(super) fn writes(&self) -> bool {
        self.op == Op::Write
    }

    /// Requests of a run, where they end it.
    pub(super) fn count(&self) -> Option<u64> {
        match self.limit {
            Limit::Count(count) => Some(count),
            Limit::Time(_) | Limit::Source => None,
        }
    }

    /// One of them, `at` bytes past where they begin.
    pub(super) fn ask(&self, at: u64, length: u64) -> Ask {
        Ask { op: self.op, offset: self.offset + at, length, fua: self.sync }
    }
}
