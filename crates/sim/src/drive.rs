//! What every simulated drive answers, one drive a file.

use crate::counters::Counters;
use crate::time::Ps;

pub mod disk;
pub mod memory;
pub mod ssd;

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// READ.
    Read,
    /// WRITE.
    Write,
    /// FLUSH CACHE: done when everything written before it is on the medium.
    Flush,
}

/// A command of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// What the host calls it; of the commands a drive has at one time no two are called the same.
    pub tag: u64,
    /// What it does.
    pub op: Op,
    /// First byte, a multiple of the logical sector.
    pub offset: u64,
    /// Bytes, a multiple of the logical sector; 0 for a flush.
    pub length: u64,
    /// Forced unit access: a write is done when it is on the medium.
    pub fua: bool,
}

/// A command that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Which.
    pub tag: u64,
    /// When.
    pub at: Ps,
}

/// A drive: it is given commands and the time, and says when it will next do something by itself.
///
/// Time never goes back: the `now` of every call is at least that of the call before.
pub trait Drive: Send {
    /// Takes a command that arrives at `now`, inside the drive and in whole sectors. It takes as many as it is given: how many a
    /// host keeps in it at a time is the host's affair ([`Drive::tags`]).
    fn submit(&mut self, now: Ps, command: Command);

    /// When it will next do something, if no command comes before; `None` while it is at rest.
    fn next(&self) -> Option<Ps>;

    /// Does everything that happens up to and at `now`, and appends what is done by then, in order of time.
    fn advance(&mut self, now: Ps, done: &mut Vec<Completion>);

    /// Commands it takes at one time: 32 with NCQ, 1 without.
    fn tags(&self) -> usize;

    /// What it did up to `now`. Nothing happens by then that [`Drive::advance`] was not asked to do.
    fn counters(&self, now: Ps) -> Counters;
}
