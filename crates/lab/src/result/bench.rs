//! `trueline/bench/1`: the runs of one workload on its variants, and the ratio.

use super::Spent;
use crate::run::Run;
use crate::statistics::{Comparison, Ratio, Slope};
use serde::{Serialize, Serializer};
use trueline_geom::base::topology::Why;
use trueline_sim::counters::Counters;
use trueline_sim::time::seconds;

/// The document.
#[derive(Clone, Debug, Serialize)]
pub struct BenchDocument {
    /// `trueline/bench/1`.
    pub format: &'static str,
    /// Its name.
    pub workload: String,
    /// `real` or `virtual`.
    pub time: &'static str,
    /// Whether through the page cache of the host.
    pub buffered: bool,
    /// The host of files on simulated drives, as `--host` spells it.
    pub host: Option<&'static str>,
    /// What was compared, the first being what the last is compared with.
    pub variants: Vec<Variant>,
    /// Time of the last variant over the first; `None` if there are not two, or one has no run.
    pub ratio: Option<Ratio>,
    /// The same, and what may be said of it.
    pub comparison: Option<Comparison>,
    /// ns of a request over the layers below its provider; `None` where they do not differ.
    pub slope: Option<Slope>,
    /// What speaks against the measurement, in words.
    pub warnings: Vec<String>,
    /// Why there are fewer runs than were asked for.
    pub ended: Option<String>,
}

/// One variant.
#[derive(Clone, Debug, Serialize)]
pub struct Variant {
    /// What tells it from the others.
    pub name: String,
    /// As typed.
    pub target: String,
    /// The profile that the target's boundaries are of; `None` where nothing names one.
    #[serde(rename = "for")]
    pub judged: Option<Judged>,
    /// Bytes that every request is moved by.
    pub offset: u64,
    /// Whether that lies on every boundary the target is known to have; `None` if it says of none.
    pub aligned: Option<bool>,
    /// The boundary it is off, of several the one that costs the most.
    pub missed: Option<Missed>,
    /// Layers between the provider and its disks.
    pub depth: usize,
    /// What moved the bytes: `io_uring`, `sync`, `memory`, `files`; of simulated drives nothing did.
    pub engine: Option<&'static str>,
    /// Its finished runs, in order.
    pub runs: Vec<BenchRun>,
    /// What the drives of all its runs did; of real drives nothing is known.
    pub drives: Option<Spent>,
    /// The table of bonnie, of the run that took the median time.
    #[serde(skip)]
    pub table: Option<String>,
}

/// A profile of drives, named for a target that cannot say what it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// Its name, as `--for` takes it.
    pub profile: String,
    /// Its origin: `--for`, an environment variable, a file's path.
    pub from: String,
}

/// A boundary that a variant's requests begin off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Missed {
    /// The unit it marks; serialised as `check` spells it: `physical`, `chunk`.
    #[serde(serialize_with = "by_name")]
    pub why: Why,
    /// Bytes from one to the next.
    pub size: u64,
    /// Bytes from the last one to the request.
    pub remainder: u64,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct BenchRun {
    /// From the first request to the end of the last.
    pub seconds: f64,
    /// Requests done.
    pub ops: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// From asking to done.
    pub latency_ns: Latency,
    /// Reads that only the page cache needed; real: all reads of the device. `None` without a page cache.
    pub host_reads: Option<u64>,
    /// The line that bonnie++ 1.96 writes.
    pub bonnie_csv: Option<String>,
}

/// Latencies in ns; quantiles to three digits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// The mean, exact as the longest is.
    pub mean: f64,
    /// Half are no longer.
    pub p50: u64,
    /// 99 of 100 are no longer.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

impl BenchRun {
    /// One run as it is told.
    pub fn of(run: &Run, host_reads: Option<u64>) -> BenchRun {
        let latency = &run.latency;
        let quantile = |q| latency.value_at_quantile(q).min(run.longest_ns);
        let latency_ns = Latency { mean: run.mean_ns(), p50: quantile(0.5), p99: quantile(0.99), max: run.longest_ns };
        BenchRun { seconds: run.seconds(), ops: run.ops, bytes: run.bytes, errors: run.errors, latency_ns, host_reads, bonnie_csv: None }
    }
}

impl Spent {
    /// What drives did, `host_reads` of which only the page cache needed.
    pub fn of(drives: &[Counters], host_reads: u64) -> Spent {
        let mut all = Counters::default();
        for drive in drives {
            all += *drive;
        }
        #[allow(clippy::cast_precision_loss, reason = "for people")]
        let amplification = (all.bytes_written > 0).then(|| all.media_written as f64 / all.bytes_written as f64);
        Spent {
            drives: drives.len(),
            media_ops: all.media_ops,
            rmw: all.rmw,
            rmw_reads: all.rmw_reads,
            lost_revolutions: all.lost_revolutions,
            write_amplification: amplification,
            host_reads,
            setup: seconds(all.setup),
            seek: seconds(all.seek),
            rotate: seconds(all.rotate),
            transfer: seconds(all.transfer),
            idle: seconds(all.idle),
        }
    }
}

/// A unit as the word that JSON has for it.
fn by_name<S: Serializer>(why: &Why, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(why)
}
