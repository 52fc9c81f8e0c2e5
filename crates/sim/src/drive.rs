//! The interface of every simulated drive, one drive a file.

use crate::counters::Counters;
use crate::time::Ps;
use zones::Zones;

pub mod disk;
pub mod memory;
pub mod ssd;
pub mod zones;

/// The operation of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// READ of any length.
    Read,
    /// WRITE of any length.
    Write,
    /// FLUSH CACHE, done when all earlier writes are on the medium.
    Flush,
}

/// A command of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The host's tag, unique among the commands in the drive.
    pub tag: u64,
    /// The operation of the command.
    pub op: Op,
    /// The offset in bytes, a multiple of the logical sector.
    pub offset: u64,
    /// The length in bytes, a multiple of the logical sector; 0 for a flush.
    pub length: u64,
    /// Forced unit access: a write is done when it is on the medium.
    pub fua: bool,
}

/// The completion of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The tag of the command.
    pub tag: u64,
    /// The time of completion.
    pub at: Ps,
}

/// A drive. It is given commands and the time, and reports the time of its next own event.
///
/// Time never goes back: the `now` of every call is at least that of the call before.
pub trait Drive: Send {
    /// Takes a command that arrives at `now`, inside the drive and in whole sectors. It accepts any
    /// number: the host limits the commands in flight ([`Drive::tags`]).
    fn submit(&mut self, now: Ps, command: Command);

    /// The time of its next event if no command comes before; `None` while it is at rest.
    fn next(&self) -> Option<Ps>;

    /// Simulates everything up to and including `now`, and appends the completions, in order of
    /// time.
    fn advance(&mut self, now: Ps, done: &mut Vec<Completion>);

    /// The most commands in flight: 32 with NCQ, 1 without.
    fn tags(&self) -> usize;

    /// The empty zones of a host-managed drive; `None` if any write is accepted. The host judges
    /// commands by them before it submits them.
    fn zones(&self) -> Option<Zones> {
        None
    }

    /// The counters up to `now`. [`Drive::advance`] must have simulated all events by then.
    fn counters(&self, now: Ps) -> Counters;
}
