//! What a workload runs on: a provider that takes requests, and a clock.

use trueline_geom::base::error::Errno;

pub mod observed;
pub mod real;
pub mod simulated;
pub mod stored;

/// What a request does.
pub use trueline_sim::drive::Op;
/// What is asked of a rig; its tag comes back when it is done.
pub use trueline_sim::world::Request;

/// A request that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Which.
    pub tag: u64,
    /// When, in ns of [`Rig::now`].
    pub at: u64,
    /// Whether it failed.
    pub error: Option<Errno>,
}

/// A provider with a clock. What is pushed is done in any order.
pub trait Rig {
    /// Bytes.
    fn length(&self) -> u64;

    /// The smallest unit it takes, in bytes.
    fn sector(&self) -> u64;

    /// Requests that it takes before [`Rig::wait`] must be called.
    fn depth(&self) -> usize;

    /// The time in ns, from any beginning.
    fn now(&mut self) -> u64;

    /// Asks for a request; it may begin at once or at the next [`Rig::wait`]. An error is of this request alone.
    fn push(&mut self, request: Request) -> Result<(), Errno>;

    /// Returns when at least `least` requests are done, or all there are, and appends them.
    fn wait(&mut self, least: usize, done: &mut Vec<Done>) -> Result<(), Errno>;

    /// The host computes for `ns`: spent where time is virtual; a real host has spent it already.
    fn think(&mut self, ns: u64);

    /// The host does nothing for `ns`: a timer, an idle second.
    fn rest(&mut self, ns: u64);

    /// Whether its time is virtual. For reports: a workload that asks has missed the point.
    fn is_virtual(&self) -> bool;
}
