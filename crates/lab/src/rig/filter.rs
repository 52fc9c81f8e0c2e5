//! A rig that notes or changes requests on their way to another one.

use super::{FinishedRequest, Request, Rig};
use trueline_geom::base::error::Errno;

/// Part of such a rig that is its own; all else is that of the rig beneath.
pub trait Filter {
    /// The type of the rig beneath.
    type Beneath: Rig;

    /// The rig that requests go to.
    fn beneath(&self) -> &Self::Beneath;

    /// The rig that requests go to, to be used.
    fn beneath_mut(&mut self) -> &mut Self::Beneath;

    /// The request that goes on in the place of this one.
    fn pass(&mut self, request: Request) -> Request;
}

impl<F: Filter> Rig for F {
    fn length(&self) -> u64 {
        self.beneath().length()
    }

    fn sector(&self) -> u64 {
        self.beneath().sector()
    }

    fn depth(&self) -> usize {
        self.beneath().depth()
    }

    fn now(&mut self) -> u64 {
        self.beneath_mut().now()
    }

    fn push(&mut self, request: Request) -> Result<(), Errno> {
        let request = self.pass(request);
        self.beneath_mut().push(request)
    }

    fn wait(&mut self, least: usize, done: &mut Vec<FinishedRequest>) -> Result<(), Errno> {
        self.beneath_mut().wait(least, done)
    }

    fn think(&mut self, ns: u64) {
        self.beneath_mut().think(ns);
    }

    fn rest(&mut self, ns: u64) {
        self.beneath_mut().rest(ns);
    }

    fn is_virtual(&self) -> bool {
        self.beneath().is_virtual()
    }
}
