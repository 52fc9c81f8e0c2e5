//! `disk`: a stand-in while the drive is being built.

use super::memory::Memory;
use super::{Command, Completion, Drive};
use crate::counters::Counters;
use crate::model::{Model, disk::Parameters, memory};
use crate::time::Ps;

/// The drive.
#[derive(Debug)]
pub struct Disk(Memory);

impl Disk {
    /// Switched on at 0.
    pub fn new(_model: &Model, _parameters: &Parameters, _seed: u64) -> Disk {
        Disk(Memory::new(&memory::Parameters { command_ns: 5e6, rate_bytes: 100_000_000 }))
    }
}

impl Drive for Disk {
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
