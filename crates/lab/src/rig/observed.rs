//! Drives in virtual time as a rig that records the places of its first requests.

use super::simulated::Simulated;
use super::{FinishedRequest, Op, Request, Rig};
use trueline_geom::base::error::Errno;

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

    /// The rig under observation.
    pub fn rig(&self) -> &Simulated {
        &self.rig
    }
}

impl Rig for Observed {
    fn length(&self) -> u64 {
        self.rig.length()
    }

    fn sector(&self) -> u64 {
        self.rig.sector()
    }

    fn depth(&self) -> usize {
        self.rig.depth()
    }

    fn now(&mut self) -> u64 {
        self.rig.now()
    }

    fn push(&mut self, request: Request) -> Result<(), Errno> {
        self.rig.push(request)?;
        if self.seen.len() < REMEMBERED && request.op != Op::Flush {
            self.seen.push((request.offset, request.length));
        }
        Ok(())
    }

    fn wait(&mut self, least: usize, done: &mut Vec<FinishedRequest>) -> Result<(), Errno> {
        self.rig.wait(least, done)
    }

    fn think(&mut self, ns: u64) {
        self.rig.think(ns);
    }

    fn rest(&mut self, ns: u64) {
        self.rig.rest(ns);
    }

    fn is_virtual(&self) -> bool {
        self.rig.is_virtual()
    }
}
