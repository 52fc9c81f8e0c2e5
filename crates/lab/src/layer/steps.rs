//! Requests that a layer makes of the device for one of its own, in phases.

use crate::streams::Ask;
use std::collections::VecDeque;

/// The requests beneath of one request, in the order in which they are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// Every request with the number of its phase.
    asks: VecDeque<(u32, Ask)>,
    phase: u32,
}

impl Steps {
    /// Adds a request to the present phase. Those of one phase are in flight together.
    pub fn add(&mut self, ask: Ask) {
        self.asks.push_back((self.phase, ask));
    }

    /// Begins the next phase, which is sent when all before it is done.
    pub fn then(&mut self) {
        self.phase = self.phase.saturating_add(1);
    }

    /// All requests, in order.
    pub fn asks(&self) -> impl Iterator<Item = Ask> + '_ {
        self.asks.iter().map(|&(_, ask)| ask)
    }

    /// Takes the requests of the earliest phase that has any; empty if all are taken.
    pub(super) fn next_phase(&mut self) -> Vec<Ask> {
        let Some(&(phase, _)) = self.asks.front() else { return Vec::new() };
        let many = self.asks.iter().take_while(|(own, _)| *own == phase).count();
        self.asks.drain(..many).map(|(_, ask)| ask).collect()
    }
}
