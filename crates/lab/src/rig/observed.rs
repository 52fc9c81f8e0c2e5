//! Drives in virtual time as a rig that records the places of its first requests.

use super::filter::Filter;
use super::simulated::Simulated;
use super::{Op, Request};

/// The number of recorded requests: as many as a picture has room for.
const REMEMBERED: usize = 12;

/// A rig with a record of its first requests.
pub struct Observed {
    rig: Simulated,
    seen: Vec<(u64, u64)>,
}

impl Observed {
    /// Records the requests of `rig`.
    pub fn new(rig: Simulated) -> Observed {
        Observed { rig, seen: Vec::with_capacity(REMEMBERED) }
    }

    /// The first reads and writes: (first byte of the provider, bytes).
    pub fn seen(&self) -> &[(u64, u64)] {
        &self.seen
    }
}

impl Filter for Observed {
    type Beneath = Simulated;

    fn beneath(&self) -> &Simulated {
        &self.rig
    }

    fn beneath_mut(&mut self) -> &mut Simulated {
        &mut self.rig
    }

    fn pass(&mut self, request: Request) -> Request {
        if self.seen.len() < REMEMBERED && request.op != Op::Flush {
            self.seen.push((request.offset, request.length));
        }
        request
    }
}
