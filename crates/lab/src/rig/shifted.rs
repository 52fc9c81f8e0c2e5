//! A rig whose requests are moved down, each part of it by a distance of its own: a layout as if
//! its layers began on the grain.

use super::filter::Filter;
use super::{Op, Request, Rig};

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
}

impl<R: Rig> Filter for Shifted<R> {
    type Beneath = R;

    fn beneath(&self) -> &R {
        &self.rig
    }

    fn beneath_mut(&mut self) -> &mut R {
        &mut self.rig
    }

    fn pass(&mut self, request: Request) -> Request {
        let nth = self.parts.partition_point(|&(start, _)| start <= request.offset);
        let down = nth.checked_sub(1).and_then(|nth| self.parts.get(nth)).map_or(0, |part| part.1);
        match request.op {
            Op::Flush => request,
            Op::Read | Op::Write => {
                Request { offset: request.offset.saturating_sub(down), ..request }
            }
        }
    }
}
