//! `ssd`: a stand-in while the drive is being built.

use super::memory::Memory;
use super::{Command, Completion, Drive};
use crate::counters::Counters;
use crate::model::{Model, memory, ssd::Parameters};
use crate::time::Ps;

/// The drive.
#[derive(Debug)]
pub struct Ssd(Memory);

impl Ssd {
    /// Switched on at 0.
    pub fn new(_model: &Model, _parameters: &Parameters) -> Ssd {
        Ssd(Memory::new(&memory::Parameters { command_ns: 5e4, rate_bytes: 1_000_000_000 }))
    }
}

impl Drive for Ssd {
    fn submit(&mut self, now: Ps, command: Command) {
        self.0.submit(now, command);
    }

    fn next(&self) -> Option<Ps> {
        self.0.next()
    }

    fn advance(&mut self, now: Ps, done: &mut Vec<Completion>) {
        self.0.advance(now, done);
    }

    fn tags(&self) -> usize {
        32
    }

    fn counters(&self) -> Counters {
        self.0.counters()
    }
}
