//! A rig whose requests are moved down, each part of it by a distance of its own: a layout as if
//! its layers began on the grain.

use super::{FinishedRequest, Op, Request, Rig};
use trueline_geom::base::error::Errno;

/// A rig with its parts moved down.
pub struct Shifted<R> {
    rig: R,
    /// First bytes of the parts, ascending, and the bytes by which each goes down.
    parts: Vec<(u64, u64)>,
}

impl<R: Rig> Shifted<R> {
    /// Requests to `rig` from the first byte of a part on go down by its distance: `parts` has
    /// both, ascending. None goes below byte 0.
    pub fn new(rig: R, parts: Vec<(u64, u64)>) -> Shifted<R> {
        Shifted { rig, parts }
    }

    /// The rig beneath, which requests reach moved.
    pub fn rig(&self) -> &R {
        &self.rig
    }
}

impl<R: Rig> Rig for Shifted<R> {
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
        let nth = self.parts.partition_point(|&(start, _)| start <= request.offset);
        let down = nth.checked_sub(1).and_then(|nth| self.parts.get(nth)).map_or(0, |part| part.1);
        let offset = match request.op {
            Op::Flush => request.offset,
            Op::Read | Op::Write => request.offset.saturating_sub(down),
        };
        self.rig.push(Request { offset, ..request })
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
