//! A rig that remembers what it was asked, a microsecond a request, one after another.

use super::{Blocks, Kind, Needs, Parameters};
use crate::rig::{Done, Op, Request, Rig};
use crate::run::Run;
use std::collections::VecDeque;
use trueline_geom::base::error::Errno;

/// The rig.
pub(crate) struct Recorder {
    pub(crate) length: u64,
    pub(crate) sector: u64,
    /// Operation, offset, length, in the order in which they were asked.
    pub(crate) asked: Vec<(Op, u64, u64)>,
    /// The most that were in flight at one time.
    pub(crate) most: usize,
    /// When each was asked.
    pub(crate) times: Vec<u64>,
    now: u64,
    free: u64,
    queue: VecDeque<Done>,
}

impl Recorder {
    pub(crate) fn new(length: u64) -> Recorder {
        Recorder { length, sector: 512, asked: Vec::new(), most: 0, times: Vec::new(), now: 0, free: 0, queue: VecDeque::new() }
    }
}

impl Rig for Recorder {
    fn length(&self) -> u64 {
        self.length
    }

    fn sector(&self) -> u64 {
        self.sector
    }

    fn depth(&self) -> usize {
        1 << 16
    }

    fn now(&mut self) -> u64 {
        self.now
    }

    fn push(&mut self, request: Request) -> Result<(), Errno> {
        let Request { tag, op, offset, length, .. } = request;
        if offset.checked_add(length).is_none_or(|end| end > self.length) {
            return Err(Errno::Range);
        }
        self.asked.push((op, offset, length));
        self.times.push(self.now);
        self.free = self.free.max(self.now) + 1000;
        self.queue.push_back(Done { tag, at: self.free, error: None });
        self.most = self.most.max(self.queue.len());
        Ok(())
    }

    fn wait(&mut self, least: usize, done: &mut Vec<Done>) -> Result<(), Errno> {
        for _ in 0..least {
            let Some(next) = self.queue.pop_front() else { break };
            self.now = self.now.max(next.at);
            done.push(next);
        }
        // What else is done by now comes too.
        let ready = self.queue.partition_point(|next| next.at <= self.now);
        done.extend(self.queue.drain(..ready));
        Ok(())
    }

    fn think(&mut self, ns: u64) {
        self.now += ns;
    }

    fn rest(&mut self, ns: u64) {
        self.now += ns;
    }

    fn is_virtual(&self) -> bool {
        true
    }
}

/// The workload of blocks that `kind` makes.
pub(crate) fn made(kind: &Kind, parameters: &Parameters) -> Box<dyn Blocks> {
    let Needs::Blocks(make) = kind.needs else { panic!("{} runs on files", kind.name) };
    make(parameters).unwrap()
}

/// One run of it on a rig, with seed 1.
pub(crate) fn ran(kind: &Kind, parameters: &Parameters, rig: &mut Recorder) -> Run {
    made(kind, parameters).run(rig, 1, &mut |_| true).unwrap()
}

/// Why it cannot be run.
pub(crate) fn refused(kind: &Kind, parameters: &Parameters, rig: &mut Recorder) -> String {
    let Needs::Blocks(make) = kind.needs else { panic!("{} runs on files", kind.name) };
    make(parameters).and_then(|workload| workload.run(rig, 1, &mut |_| true)).unwrap_err().0
}
