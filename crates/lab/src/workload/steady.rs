//! The common parts of workloads that repeat one kind of request: its size, operation, queue depth
//! and limit.

use super::{Parameters, Way};
use crate::error::Error;
use crate::rig::Op;
use crate::streams::{Ask, Limit};

/// A stream of requests of one kind.
pub(super) struct Steady {
    pub(super) offset: u64,
    pub(super) op: Op,
    pub(super) depth: usize,
    pub(super) limit: Limit,
    sync: bool,
}

impl Steady {
    /// The stream as the parameters say, of `count` requests by default.
    pub(super) fn new(parameters: &Parameters, op: Op, count: u64) -> Result<Steady, Error> {
        let (depth, limit) = (parameters.depth(1)?, parameters.limit(count)?);
        Ok(Steady { offset: parameters.offset, op, depth, limit, sync: parameters.sync })
    }

    /// The operation: reads, unless the parameters say writes.
    pub(super) fn way(parameters: &Parameters) -> Op {
        if parameters.op == Some(Way::Write) { Op::Write } else { Op::Read }
    }

    pub(super) fn writes(&self) -> bool {
        self.op == Op::Write
    }

    /// The number of requests of a run; `None` if time ends it.
    pub(super) fn count(&self) -> Option<u64> {
        match self.limit {
            Limit::Count(count) => Some(count),
            Limit::Time(_) | Limit::Source => None,
        }
    }

    /// One request, `at` bytes past the stream's offset.
    pub(super) fn ask(&self, at: u64, length: u64) -> Ask {
        Ask { op: self.op, offset: self.offset + at, length, fua: self.sync }
    }
}
