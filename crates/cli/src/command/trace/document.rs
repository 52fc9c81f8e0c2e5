//! Counts of one trace as one value: text and JSON are written from it.
//!
//! Its serialised form is the contract of `trueline trace --json`; keys may be added, never
//! changed.

use crate::command::trace::causes::Cause;
use crate::command::trace::observation::{Observation, ProcessCounts};
use crate::command::trace::what_if::DriveRun;
use crate::remembered::Remembered;
use crate::traffic::{Deeds, Latency, Layer, Verdicts};
use serde::Serialize;
use std::cmp::Reverse;
use trueline_geom::base::topology::Placement;
use trueline_serve::layer::counted::Waits;

/// Processes in the document, at most: those that miss most.
const MOST: usize = 256;

/// Counts of one trace.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Traced {
    /// Name of the format, `trueline/trace/1`.
    pub format: &'static str,
    /// The device as the user named it, or the file of a trace.
    pub target: String,
    /// The profile that the disks are judged by; `None` if none is named.
    #[serde(rename = "for")]
    pub judged: Option<Remembered>,
    /// Time in ns since tracing began; of a file, from its first request to its last.
    pub duration_ns: u64,
    /// Counted requests of each kind.
    pub requests: Deeds,
    /// Bytes of these requests.
    pub bytes: Deeds,
    pub flushes: u64,
    /// Commands that are neither reads, writes, trims, zeroes nor flushes; of a file, records that
    /// are no requests.
    pub other: u64,
    /// Requests that begin behind the end of what is traced; no other number has them.
    pub outside: u64,
    /// Events that the kernel could not keep; no other number has them.
    pub lost: u64,
    /// The providers with requests: the deepest one that a request begins in.
    pub layers: Vec<Layer>,
    /// Causes of what misses, those of the layer that misses most first.
    pub causes: Vec<Cause>,
    /// Latencies of reads and writes by verdict, from the driver to its answer.
    pub latency_ns: KindLatencies,
    /// The processes that handed requests to the driver, those that miss most first.
    pub processes: Vec<ProcessDocument>,
    /// Requests of processes that are not in the list.
    pub other_processes: u64,
    /// Runs of the requests on the simulated drives of `--drive`.
    pub drives: Vec<DriveRun>,
}

/// Latencies of each kind.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct KindLatencies {
    pub reads: VerdictLatencies,
    pub writes: VerdictLatencies,
}

/// Latencies of each verdict; `null` without requests.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct VerdictLatencies {
    pub aligned: Option<Latency>,
    pub misaligned: Option<Latency>,
    pub partial: Option<Latency>,
    pub unknown: Option<Latency>,
}

/// Requests of one process.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ProcessDocument {
    /// The number of the thread.
    pub pid: u32,
    /// Its name, as the kernel keeps it: at most 15 bytes.
    pub name: String,
    pub reads: Verdicts,
    pub writes: Verdicts,
    pub trims: Verdicts,
    pub zeroes: Verdicts,
    pub bytes: Deeds,
}

impl Traced {
    /// The document of what was `seen` of `target`, whose disks are `judged` by a profile.
    pub(crate) fn new(target: &str, judged: Option<&Remembered>, seen: &Observation) -> Traced {
        let layers: Vec<Layer> =
            seen.layers().iter().map(|counted| Layer::new(None, counted)).collect();
        let sum =
            |of: fn(&Layer) -> Deeds| layers.iter().map(of).fold(Deeds::default(), Deeds::merge);
        let (requests, bytes) =
            (sum(|layer| layer.requests.counts()), sum(|layer| layer.request_bytes));
        let mut all: Vec<_> = seen.processes.iter().collect();
        all.sort_by_key(|(process, counts)| {
            (Reverse(counts.of_verdict(Placement::Misaligned)), Reverse(counts.sum()), *process)
        });
        let rest = all.split_off(all.len().min(MOST));
        let other_processes =
            rest.iter().map(|(_, counts)| counts.sum()).sum::<u64>() + seen.others.sum();
        let processes = all
            .into_iter()
            .map(|(process, counts)| ProcessDocument::new(process.pid, &process.name, counts))
            .collect();
        let [reads, writes] = seen.latencies.each_ref().map(VerdictLatencies::new);
        Traced {
            format: "trueline/trace/1",
            target: target.into(),
            judged: judged.cloned(),
            duration_ns: seen.duration_ns,
            requests,
            bytes,
            flushes: seen.flushes,
            other: seen.other,
            outside: seen.outside,
            lost: seen.lost,
            layers,
            causes: Vec::new(),
            latency_ns: KindLatencies { reads, writes },
            processes,
            other_processes,
            drives: Vec::new(),
        }
    }
}

impl VerdictLatencies {
    /// Latencies in the order of [`Placement::ALL`].
    fn new(waits: &[Waits; Placement::ALL.len()]) -> VerdictLatencies {
        let [aligned, misaligned, partial, unknown] = waits.each_ref().map(Latency::new);
        VerdictLatencies { aligned, misaligned, partial, unknown }
    }
}

impl ProcessDocument {
    fn new(pid: u32, name: &str, counts: &ProcessCounts) -> ProcessDocument {
        let [reads, writes, trims, zeroes] = counts.requests.map(Verdicts::new);
        let bytes = Deeds::new(counts.bytes);
        ProcessDocument { pid, name: name.into(), reads, writes, trims, zeroes, bytes }
    }

    /// Requests of all kinds, by verdict.
    pub(crate) fn verdicts(&self) -> Verdicts {
        self.reads.merge(self.writes).merge(self.trims).merge(self.zeroes)
    }
}
