//! `command`: every command is destaged alone. Its ragged first and last sectors are read in one
//! pass, and it is written when it comes round again: one revolution more a command.

use super::{Firmware, Geometry, Reason, Taken, Target, WriteCache};

/// The personality `command`, without state.
#[derive(Debug)]
pub(super) struct Command;

impl Firmware for Command {
    fn gather(
        &self,
        writes: &mut WriteCache,
        start: u64,
        _: Reason,
        geometry: &Geometry,
        taken: &mut Vec<Taken>,
    ) -> Target {
        writes.take(start, u64::MAX, geometry, taken);
        Target::Home
    }
}
