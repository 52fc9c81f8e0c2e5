//! The counters of `serve` as one value: the summary, `--top`, `--json`, the metrics and the live
//! page are written from it.
//!
//! Its serialised form is the contract of `trueline serve --json`; keys may be added, never
//! changed.

mod from_counts;

use crate::remembered::Remembered;
use crate::traffic::{Deeds, Latency, Layer, Verdicts};
use serde::Serialize;

/// An event of the page: the counters, and some earlier samples.
#[derive(Serialize)]
pub(crate) struct Event<'a> {
    #[serde(flatten)]
    pub served: &'a Served,
    pub history: &'a [Sample],
}

/// All counters at some moment.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Served {
    /// Name of the format, `trueline/serve/1`.
    pub format: &'static str,
    /// The target, as the user named it.
    pub target: String,
    /// The profile that its disks are judged by; `None` if none is named.
    #[serde(rename = "for")]
    pub judged: Option<Remembered>,
    /// Time in ns since serving began.
    pub duration_ns: u64,
    /// Number of times since then that tasting found other providers than before.
    pub generation: u64,
    /// Layers of each export: the providers with requests, on each disk that these reached.
    pub layers: Vec<Layer>,
    /// Counters of each export as a whole.
    pub exports: Vec<Export>,
    /// The machine's share of the times of emulated drives; `null` without any, and before the end.
    pub emulation: Option<Emulation>,
}

/// Times of emulated drives, and of the machine that emulates them.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Emulation {
    /// Factor of virtual time to real time.
    pub speed: f64,
    /// Virtual time in which the drives worked, in ns.
    pub drive_ns: u64,
    /// Virtual time in which the drives had no work between two requests, in ns.
    pub machine_ns: u64,
    /// The same by kind of request.
    pub kinds: Vec<EmulatedKind>,
    /// The speed at which the machine distorts no kind much; `null` if it distorts none now.
    pub true_speed: Option<f64>,
}

/// Requests to emulated drives, of one kind.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct EmulatedKind {
    /// Kind of request: `read` or `write`.
    pub op: &'static str,
    /// Pattern: `sequential` if each begins where the one before it ended, else `random`.
    pub pattern: &'static str,
    pub requests: u64,
    pub drive_ns: u64,
    pub machine_ns: u64,
    /// True if ratios of such requests are the drive's: the machine takes a tenth of the drives'
    /// time or less.
    pub is_the_drives: bool,
}

/// Counters of an export as a whole.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Export {
    pub provider: String,
    /// Completed requests, as clients made them.
    pub requests: Deeds,
    /// The pieces that the stack made of them, on all disks.
    pub pieces: Deeds,
    /// Bytes of the requests.
    pub bytes: Deeds,
    pub flushes: u64,
    /// Most requests that waited for a device at one time.
    pub most_waiting: u64,
    /// Requests that failed or were refused; no other counter has them.
    pub errors: Deeds,
    pub flush_errors: u64,
    /// Latencies of requests that waited for a device.
    pub latency_ns: Latencies,
}

/// Latencies by kind of request; `null` if none waited for a device. A request answered from memory
/// has none.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Latencies {
    pub reads: Option<Latency>,
    pub writes: Option<Latency>,
    pub trims: Option<Latency>,
    pub zeroes: Option<Latency>,
    pub flushes: Option<Latency>,
}

/// Counts at some moment, for the page's charts, and latencies since the moment before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Sample {
    /// Time in ns since serving began.
    pub duration_ns: u64,
    /// Requests of all kinds, by verdict.
    pub verdicts: Verdicts,
    /// Bytes of requests, by kind.
    pub bytes: Deeds,
    /// Latencies in ns of reads and writes since the sample before; 0 if none waited for a device.
    pub p50_ns: u64,
    pub p99_ns: u64,
}
