//! Requests as they are seen, added up: by layer, by process, and by how long they took.

use crate::command::trace::patterns::Patterns;
use std::collections::HashMap;
use trueline_geom::audit::io::IoKind;
use trueline_geom::base::topology::Placement;
use trueline_geom::graph::{Graph, Id};
use trueline_host::tracefs::{Operation, Phase, Process, SeenRequest};
use trueline_lab::rig::Op;
use trueline_lab::trace::TracedRequest;
use trueline_serve::counting::{LayerCounts, ObservedProvider};
use trueline_serve::layer::counted::Waits;

/// Processes that are told apart, at most; those that come later are counted together.
const MOST_PROCESSES: usize = 4096;

/// Numbers by verdict, in the order of [`Placement::ALL`].
type ByVerdict = [u64; Placement::ALL.len()];

/// Counts of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessCounts {
    /// Requests in the order of [`IoKind::ALL`], by verdict.
    pub(super) requests: [ByVerdict; IoKind::ALL.len()],
    /// Bytes of these requests.
    pub(super) bytes: [u64; IoKind::ALL.len()],
}

impl ProcessCounts {
    /// Requests of all kinds with a verdict.
    pub(super) fn of_verdict(&self, verdict: Placement) -> u64 {
        self.requests.iter().map(|counts| counts[verdict.index()]).sum()
    }

    /// Requests of all kinds.
    pub(super) fn sum(&self) -> u64 {
        self.requests.iter().flatten().sum()
    }
}

/// Sums of the requests seen so far.
pub(crate) struct Observation {
    layers: ObservedProvider,
    patterns: Patterns,
    /// Latencies of reads and of writes, by verdict.
    pub(super) latencies: [[Waits; Placement::ALL.len()]; 2],
    pub(super) processes: HashMap<Process, ProcessCounts>,
    /// Counts of the processes that are not told apart.
    pub(super) others: ProcessCounts,
    pub(super) flushes: u64,
    /// Commands that are none of the counted kinds.
    pub(super) other: u64,
    /// Requests that begin outside of what is traced.
    pub(super) outside: u64,
    /// Events that the kernel could not keep.
    pub(super) lost: u64,
    pub(super) duration_ns: u64,
}

impl Observation {
    /// Nothing yet of requests to provider `id` of `graph`.
    pub(super) fn new(graph: &Graph, id: Id) -> Observation {
        Observation {
            layers: ObservedProvider::new(graph, id),
            patterns: Patterns::default(),
            latencies: Default::default(),
            processes: HashMap::new(),
            others: ProcessCounts::default(),
            flushes: 0,
            other: 0,
            outside: 0,
            lost: 0,
            duration_ns: 0,
        }
    }

    /// Counts so far, of each layer on each disk.
    pub(super) fn layers(&self) -> Vec<LayerCounts> {
        self.layers.layers()
    }

    /// Shapes of the requests so far.
    pub(super) fn patterns(&self) -> &Patterns {
        &self.patterns
    }

    /// The first byte of every part of what is traced, and that of the layer there.
    pub(super) fn parts(&self) -> Vec<(u64, u64)> {
        self.layers.parts()
    }

    /// Adds a moment of a request to a device.
    pub(super) fn see(&mut self, seen: SeenRequest) {
        let SeenRequest { at_ns, phase, flags, offset, length } = seen;
        let kind = kind(flags.operation);
        match (phase, kind) {
            (Phase::Issued(_), _) if flags.operation == Operation::Flush => self.flushes += 1,
            // A drive's own command has no place.
            (Phase::Issued(_), _) if kind.is_none() || length == 0 => self.other += 1,
            (Phase::Issued(process), Some(kind)) => {
                self.flushes += u64::from(flags.preflush);
                let request = |offset| (kind, offset, length);
                match offset.map(|offset| self.count(at_ns, request(offset), Some(&process))) {
                    Some(Some(verdict)) => self.process(process).add(kind, verdict, length),
                    Some(None) => {}
                    // It begins in front of a partition.
                    None => self.outside += 1,
                }
            }
            (Phase::Completed(ns), Some(kind @ (IoKind::Read | IoKind::Write))) => {
                let judged = offset.and_then(|offset| self.layers.judge(kind, offset, length));
                if let Some(judged) = judged {
                    self.latencies[kind.index()][judged.fit.index()].add(ns);
                }
            }
            _ => {}
        }
    }

    /// Adds a request of a trace, which names no process and no end.
    pub(super) fn replay(&mut self, request: &TracedRequest) {
        let TracedRequest { at_ns, op, offset, length, .. } = *request;
        match op {
            Op::Flush => self.flushes += 1,
            Op::Read => drop(self.count(at_ns, (IoKind::Read, offset, length), None)),
            Op::Write => drop(self.count(at_ns, (IoKind::Write, offset, length), None)),
        }
    }

    /// Counts a request of a process, if one is known, and returns its verdict.
    fn count(
        &mut self,
        at: u64,
        request: (IoKind, u64, u64),
        process: Option<&Process>,
    ) -> Option<Placement> {
        let (kind, offset, length) = request;
        let counted = self.layers.count(kind, offset, length);
        self.outside += u64::from(counted.is_none());
        let counted = counted?;
        self.patterns.see(at, request, &counted, process);
        Some(counted.judged.fit)
    }

    /// The counts of a process.
    fn process(&mut self, process: Process) -> &mut ProcessCounts {
        if self.processes.len() < MOST_PROCESSES || self.processes.contains_key(&process) {
            self.processes.entry(process).or_default()
        } else {
            &mut self.others
        }
    }
}

impl ProcessCounts {
    fn add(&mut self, kind: IoKind, verdict: Placement, length: u64) {
        self.requests[kind.index()][verdict.index()] += 1;
        let bytes = &mut self.bytes[kind.index()];
        *bytes = bytes.saturating_add(length);
    }
}

/// The kind of an operation; `None` of one that is not judged.
fn kind(operation: Operation) -> Option<IoKind> {
    match operation {
        Operation::Read => Some(IoKind::Read),
        Operation::Write => Some(IoKind::Write),
        Operation::Discard => Some(IoKind::Trim),
        Operation::WriteZeroes => Some(IoKind::Zero),
        Operation::Flush | Operation::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::open::open;
    use crate::target::{DiskOverrides, Target};
    use trueline_host::tracefs::RequestFlags;

    /// An observation of a disk of 1 MiB.
    fn observation() -> Observation {
        let overrides = DiskOverrides::new(&Default::default()).ok().unwrap();
        let graph = open(&Target::parse("md:1m"), &overrides).ok().unwrap();
        Observation::new(&graph, 0)
    }

    fn issued(pid: u32, rwbs: &str, offset: Option<u64>, length: u64) -> SeenRequest {
        let phase = Phase::Issued(Process { pid, name: "one".into() });
        let flags = RequestFlags::parse(rwbs).unwrap();
        SeenRequest { at_ns: 0, phase, flags, offset, length }
    }

    #[test]
    fn every_request_is_in_one_number() {
        let mut seen = observation();
        for (rwbs, offset, length) in [
            ("W", Some(0), 512),
            // A flush and a write, and a flush alone.
            ("FWFS", Some(512), 512),
            ("FF", Some(0), 0),
            // A drive's own commands, with and without a length.
            ("N", Some(0), 0),
            ("ZR", Some(0), 512),
            // In front of what is traced, and behind its end.
            ("R", None, 512),
            ("R", Some(1 << 20), 512),
        ] {
            seen.see(issued(7, rwbs, offset, length));
        }
        let process = Process { pid: 7, name: "one".into() };
        assert_eq!((seen.flushes, seen.other, seen.outside), (2, 2, 2));
        assert_eq!(seen.processes[&process].sum(), 2);
        assert_eq!(seen.layers()[0].tally.requested(IoKind::Write), 1024);
    }

    #[test]
    fn processes_beyond_the_limit_are_counted_together() {
        let mut seen = observation();
        for pid in 0..5000 {
            seen.see(issued(pid, "R", Some(0), 512));
        }
        seen.see(issued(0, "R", Some(0), 512));
        assert_eq!((seen.processes.len(), seen.others.sum()), (MOST_PROCESSES, 5000 - 4096));
    }
}
