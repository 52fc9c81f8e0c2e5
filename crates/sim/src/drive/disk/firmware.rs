//! The firmware's personality: what it writes together, what it waits for. Measured drives of one family differ by a factor of 20
//! here, so it is a named parameter of the model, one personality a file.

use super::geometry::Geometry;
use super::write_cache::{Extent, Taken, WriteCache};
use crate::model::disk::{Parameters, Personality};
use std::fmt::Debug;

mod command;
mod log;
mod stream;
mod window;

/// Where a job writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Where the data belong.
    Home,
    /// In the log.
    Log,
}

/// Why the cache is destaged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reason {
    /// Nothing waits: a flush, a host whose writes find no room, an idle drive.
    pub(super) forced: bool,
    /// The host is idle.
    pub(super) idle: bool,
    /// Bytes for which the log has room.
    pub(super) log_room: u64,
}

/// What a personality decides.
pub(super) trait Firmware: Debug + Send {
    /// Whether a write that goes on where `before` ends becomes one with it and takes no slot of its own.
    fn merges(&self, _before: &Extent) -> bool {
        false
    }

    /// Whether an extent waits for what may still come, though the cache wants to be emptied.
    fn waits(&self, _start: u64, _extent: &Extent) -> bool {
        false
    }

    /// Takes out of the cache what is written in one go with the extent at `start`, in order of place; at least something of it.
    fn gather(&self, writes: &mut WriteCache, start: u64, reason: Reason, geometry: &Geometry, taken: &mut Vec<Taken>) -> Target;
}

/// The one that the model names.
pub(super) fn of(parameters: &Parameters, sector: u64) -> Box<dyn Firmware> {
    let stream = stream::Stream { sector, most: parameters.destage_bytes.max(sector), segment: parameters.segment_bytes };
    match parameters.personality {
        Personality::Command => Box::new(command::Command),
        Personality::Stream => Box::new(stream),
        Personality::Window => Box::new(window::Window { sector, window: parameters.window_bytes }),
        Personality::Log => Box::new(log::Log { home: stream, threshold: parameters.log_threshold_bytes }),
    }
}
