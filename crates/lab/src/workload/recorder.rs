//! A rig that records its requests and takes a microsecond for each, one after another.

use super::{Blocks, Needs, Parameters, WorkloadKind};
use crate::rig::{FinishedRequest, Op, Request, Rig};
use crate::run::Run;
use std::collections::VecDeque;
use trueline_geom::base::error::Errno;

/// A rig that records its requests.
pub(crate) struct Recorder {
    pub(crate) length: u64,
    pub(crate) sector: u64,
    /// The requests in order: operation, offset, length.
    pub(crate) asked: Vec<(Op, u64, u64)>,
    /// The most requests that were in flight at once.
    pub(crate) most: usize,
    /// The time of each request's submission in ns.
    pub(crate) times: Vec<u64>,
    now: u64,
    free: u64,
    queue: VecDeque<FinishedRequest>,
}

impl Recorder {
    pub(crate) fn new(length: u64) -> Recorder {
        Recorder {
            length,
            sector: 512,
            asked: Vec::new(),
            most: 0,
            times: Vec::new(),
            now: 0,
            free: 0,
            queue: VecDeque::new(),
        }
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
        self.queue.push_back(FinishedRequest { tag, at: self.free, error: None });
        self.most = self.most.max(self.queue.len());
        Ok(())
    }

    fn wait(&mut self, least: usize, done: &mut Vec<FinishedRequest>) -> Result<(), Errno> {
        for _ in 0..least {
            let Some(next) = self.queue.pop_front() else { break };
            self.now = self.now.max(next.at);
            done.push(next);
        }
        // Other requests done by now complete too.
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

/// The workload of blocks that `kind` constructs.
pub(crate) fn made(kind: &WorkloadKind, parameters: &Parameters) -> Box<dyn Blocks> {
    let Needs::Blocks(make) = kind.needs else { panic!("{} runs on files", kind.name) };
    make(parameters).unwrap()
}

/// One run of the workload on a rig, with seed 1.
pub(crate) fn ran(kind: &WorkloadKind, parameters: &Parameters, rig: &mut Recorder) -> Run {
    made(kind, parameters).run(rig, 1, &mut |_| true).unwrap()
}

/// The message of the error that prevents a run.
pub(crate) fn refused(kind: &WorkloadKind, parameters: &Parameters, rig: &mut Recorder) -> String {
    let Needs::Blocks(make) = kind.needs else { panic!("{} runs on files", kind.name) };
    make(parameters).and_then(|workload| workload.run(rig, 1, &mut |_| true)).unwrap_err().message
}
