//! `memory`: a fixed time a command and a rate, one command at a time, as md(4) and RAM disks.

use super::{Command, Completion, Drive, Op};
use crate::counters::Counters;
use crate::model::memory::Parameters;
use crate::time::{NS, Ps, S, span};
use std::collections::VecDeque;

/// Memory behind one server.
#[derive(Debug)]
pub struct Memory {
    command: Ps,
    per_byte: f64,
    /// Completions in order of time.
    queue: VecDeque<Completion>,
    free: Ps,
    counters: Counters,
}

impl Memory {
    /// A drive switched on at time 0.
    pub fn new(parameters: &Parameters) -> Memory {
        let rate = parameters.rate_bytes;
        #[allow(clippy::cast_precision_loss, reason = "a rate")]
        let per_byte = if rate > 0 { S as f64 / rate as f64 } else { 0.0 };
        Memory {
            command: span(parameters.command_ns, NS),
            per_byte,
            queue: VecDeque::new(),
            free: 0,
            counters: Counters::default(),
        }
    }
}

impl Drive for Memory {
    fn submit(&mut self, now: Ps, command: Command) {
        let begin = self.free.max(now);
        #[allow(clippy::cast_precision_loss, reason = "bytes of one command")]
        let transfer = span(command.length as f64 * self.per_byte, 1);
        let at = begin + self.command + transfer;
        let counters = &mut self.counters;
        counters.idle += begin - self.free;
        counters.setup += self.command;
        counters.transfer += transfer;
        match command.op {
            Op::Read => {
                (counters.reads, counters.bytes_read) =
                    (counters.reads + 1, counters.bytes_read + command.length)
            }
            Op::Write => {
                (counters.writes, counters.bytes_written) =
                    (counters.writes + 1, counters.bytes_written + command.length)
            }
            Op::Flush => counters.flushes += 1,
        }
        self.free = at;
        self.queue.push_back(Completion { tag: command.tag, at });
    }

    fn next(&self) -> Option<Ps> {
        self.queue.front().map(|done| done.at)
    }

    fn advance(&mut self, now: Ps, done: &mut Vec<Completion>) {
        let ready = self.queue.partition_point(|next| next.at <= now);
        done.extend(self.queue.drain(..ready));
    }

    fn tags(&self) -> usize {
        usize::MAX
    }

    fn counters(&self, now: Ps) -> Counters {
        let mut counters = self.counters;
        counters.idle += now.saturating_sub(self.free);
        // The time that commands in flight take after `now` is not spent yet.
        let ahead = self.free.saturating_sub(now);
        let transfer = ahead.min(counters.transfer);
        counters.transfer -= transfer;
        counters.setup = counters.setup.saturating_sub(ahead - transfer);
        counters
    }
}
