//! The target of a workload of blocks: a provider that takes requests, and a clock.

use trueline_geom::base::error::Errno;

pub mod filter;
pub mod observed;
pub mod real;
pub mod shifted;
pub mod simulated;
pub mod stored;

/// The operation of a request: read, write or flush.
pub use trueline_sim::drive::Op;
/// A request to a rig; its tag returns with the completion.
pub use trueline_sim::world::Request;

/// The completion of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedRequest {
    /// The tag of the request.
    pub tag: u64,
    /// The time of completion in ns, on the clock of [`Rig::now`].
    pub at: u64,
    /// The request's error; `None` if it succeeded.
    pub error: Option<Errno>,
}

/// A provider with a clock. Requests complete in any order.
pub trait Rig {
    /// The size of the provider in bytes.
    fn length(&self) -> u64;

    /// The sector size in bytes: the smallest unit of a request.
    fn sector(&self) -> u64;

    /// The most requests in flight before [`Rig::wait`] must be called.
    fn depth(&self) -> usize;

    /// The time in nanoseconds since an arbitrary start.
    fn now(&mut self) -> u64;

    /// Submits a request; it may start at once or at the next [`Rig::wait`]. An error concerns this
    /// request alone.
    fn push(&mut self, request: Request) -> Result<(), Errno>;

    /// Waits until at least `least` requests are done, or all in flight, and appends all
    /// completions to `done`.
    fn wait(&mut self, least: usize, done: &mut Vec<FinishedRequest>) -> Result<(), Errno>;

    /// Spends `ns` nanoseconds of computing where time is virtual; a real host has spent them
    /// already.
    fn think(&mut self, ns: u64);

    /// Idles for `ns` nanoseconds: a timer, or a pause between requests.
    fn rest(&mut self, ns: u64);

    /// True if time is virtual. For reports only: a workload must not depend on it.
    fn is_virtual(&self) -> bool;
}
