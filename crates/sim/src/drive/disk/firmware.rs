//! The firmware's personality: which writes it joins, and which it delays. Measured drives of one
//! family differ by a factor of 20 here, so it is a named parameter of the model, one personality a
//! file.

use super::geometry::Geometry;
use super::write_cache::{Extent, LIVE, Taken, WriteCache};
use crate::model::disk::{Parameters, Personality};
use std::fmt::Debug;

pub(super) use shingled::Bands;

mod command;
mod log;
mod shingled;
mod stream;
mod window;

/// The destination of a destage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The extents' own place on the medium.
    Home,
    /// The log on the medium.
    Log,
}

/// The circumstances of a destage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reason {
    /// True if nothing may be held back: a flush, writes without room, an idle drive.
    pub(super) forced: bool,
    /// True if the host is idle.
    pub(super) idle: bool,
    /// Free bytes of the log.
    pub(super) log_room: u64,
}

/// The decisions of a personality.
pub(super) trait Firmware: Debug + Send {
    /// True if a write that continues `before` is merged with it and needs no slot of its own.
    fn merges(&self, _before: &Extent) -> bool {
        false
    }

    /// True if an extent is held back for data that may still come, although destaging is urgent.
    /// Only of a live stream.
    fn waits(&self, _start: u64, _extent: &Extent) -> bool {
        false
    }

    /// Takes from the cache the extents written together with the one at `start`, sorted by place;
    /// at least part of that one.
    fn gather(
        &self,
        writes: &mut WriteCache,
        start: u64,
        reason: Reason,
        geometry: &Geometry,
        taken: &mut Vec<Taken>,
    ) -> Target;
}

/// The personality that the model names.
pub(super) fn personality(
    parameters: &Parameters,
    sector: u64,
    bands: Option<Bands>,
) -> Box<dyn Firmware> {
    if let Some(bands) = bands {
        return Box::new(shingled::Shingled { bands, most: parameters.destage_bytes.max(sector) });
    }
    let stream = stream::Stream {
        sector,
        most: parameters.destage_bytes.max(sector),
        segment: parameters.segment_bytes,
    };
    match parameters.personality {
        Personality::Command => Box::new(command::Command),
        // Bands are there with `shingled` alone.
        Personality::Stream | Personality::Shingled => Box::new(stream),
        Personality::Window => Box::new(window::Window { sector, window: parameters.window_bytes }),
        Personality::Log => {
            Box::new(log::Log { home: stream, threshold: parameters.log_threshold_bytes })
        }
    }
}
