//! `trueline/bench/1`: the runs of one workload on its variants, and the ratio.

use super::{LayerResult, Spent};
use crate::run::Run;
use crate::statistics::several::confidence_of;
use crate::statistics::{CONFIDENCE, Comparison, Ratio, Slope};
use serde::{Serialize, Serializer};
use trueline_geom::base::topology::Why;
use trueline_sim::counters::Counters;
use trueline_sim::time::seconds;

/// The document of `bench`.
#[derive(Clone, Debug, Serialize)]
pub struct BenchDocument {
    /// The document's format, always `trueline/bench/1`.
    pub format: &'static str,
    /// The name of the workload.
    pub workload: String,
    /// The kind of time, `real` or `virtual`.
    pub time: &'static str,
    /// True if requests went through the host's page cache.
    pub buffered: bool,
    /// The file-system model on simulated drives, as `--host` spells it. `None` if there is none.
    pub host: Option<&'static str>,
    /// The compared variants, the reference first.
    pub variants: Vec<Variant>,
    /// The time of the last variant over that of the first; `None` with fewer than two variants, or
    /// if one has no run.
    pub ratio: Option<Ratio>,
    /// The same ratio with its verdict. Its interval is of this pair alone, whatever else is
    /// compared.
    pub comparison: Option<Comparison>,
    /// Every variant after the first against it, as far as a ratio is defined. Their intervals hold
    /// together.
    pub comparisons: Vec<VariantComparison>,
    /// The correction of these intervals; `None` if there are not several.
    pub correction: Option<Correction>,
    /// Nanoseconds of a request for each layer below its provider; `None` if all variants have the
    /// same depth.
    pub slope: Option<Slope>,
    /// Caveats about the measurement, as sentences.
    pub warnings: Vec<String>,
    /// The reason why fewer runs were made than asked for; `None` if all were made.
    pub ended: Option<String>,
}

/// A variant compared with the first.
#[derive(Clone, Debug, Serialize)]
pub struct VariantComparison {
    /// The name of the variant.
    pub variant: String,
    /// The name of the first variant.
    pub against: String,
    /// The ratio, its interval and the verdict.
    #[serde(flatten)]
    pub comparison: Comparison,
}

/// The correction for several comparisons with one reference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Correction {
    /// The name of the method, always `bonferroni`.
    pub method: &'static str,
    /// The number of comparisons.
    pub comparisons: usize,
    /// The confidence of all intervals together, 0.95.
    pub together: f64,
    /// The confidence of each interval alone.
    pub each: f64,
}

impl Correction {
    /// The correction for so many comparisons; `None` for fewer than two.
    pub fn of(comparisons: usize) -> Option<Correction> {
        (comparisons > 1).then(|| Correction {
            method: "bonferroni",
            comparisons,
            together: CONFIDENCE,
            each: confidence_of(comparisons),
        })
    }
}

/// The runs of one variant.
#[derive(Clone, Debug, Serialize)]
pub struct Variant {
    /// The name that tells the variant from the others.
    pub name: String,
    /// The target as the user typed it.
    pub target: String,
    /// The drive profile that the target's boundaries come from; `None` if none is named.
    #[serde(rename = "for")]
    pub judged: Option<Judged>,
    /// Bytes by which every request is moved.
    pub offset: u64,
    /// True if the offset lies on every known boundary of the target; `None` if none is known.
    pub aligned: Option<bool>,
    /// The boundary that the offset misses, the costliest if there are several.
    pub missed: Option<Missed>,
    /// The number of layers between the provider and its disks.
    pub depth: usize,
    /// The engine: `io_uring`, `sync`, `memory` or `files`; `None` on simulated drives.
    pub engine: Option<&'static str>,
    /// The finished runs in order.
    pub runs: Vec<BenchRun>,
    /// The sums over the simulated drives of all runs; `None` for real drives.
    pub drives: Option<Spent>,
    /// The layers of `--through` with their counts in all runs, the outermost first.
    pub layers: Vec<LayerResult>,
    /// The bonnie table of the run with the median time.
    #[serde(skip)]
    pub table: Option<String>,
}

/// A drive profile, named because the target cannot report its boundaries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// The profile's name, as `--for` takes it.
    pub profile: String,
    /// The origin of the choice: `--for`, an environment variable, or a file's path.
    pub from: String,
}

/// A boundary that a variant's requests do not begin on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Missed {
    /// The kind of boundary, serialised as `check` spells it: `physical`, `chunk`.
    #[serde(serialize_with = "by_name")]
    pub why: Why,
    /// The distance between two such boundaries in bytes.
    pub size: u64,
    /// The distance from the boundary before the request to the request, in bytes.
    pub remainder: u64,
}

/// The figures of one run.
#[derive(Clone, Debug, Serialize)]
pub struct BenchRun {
    /// Seconds from the first request to the completion of the last.
    pub seconds: f64,
    /// The number of requests done.
    pub ops: u64,
    /// The bytes of these requests.
    pub bytes: u64,
    /// The number of failed requests.
    pub errors: u64,
    /// The latencies from submission to completion.
    pub latency_ns: Latency,
    /// Reads caused by the page cache alone; in real time, all reads of the device. `None` without
    /// a page cache.
    pub host_reads: Option<u64>,
    /// The line in the format of bonnie++ 1.96.
    pub bonnie_csv: Option<String>,
}

/// Latencies in nanoseconds; quantiles are rounded to three digits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// The exact mean of all latencies.
    pub mean: f64,
    /// The median: half of the requests are no slower.
    pub p50: u64,
    /// The 99th percentile: 99 of 100 requests are no slower.
    pub p99: u64,
    /// The exact longest latency.
    pub max: u64,
}

impl BenchRun {
    /// The figures of `run`, with the reads its page cache added.
    pub fn from_run(run: &Run, host_reads: Option<u64>) -> BenchRun {
        let latency = &run.latency;
        let quantile = |q| latency.value_at_quantile(q).min(run.longest_ns);
        let latency_ns = Latency {
            mean: run.mean_ns(),
            p50: quantile(0.5),
            p99: quantile(0.99),
            max: run.longest_ns,
        };
        BenchRun {
            seconds: run.seconds(),
            ops: run.ops,
            bytes: run.bytes,
            errors: run.errors,
            latency_ns,
            host_reads,
            bonnie_csv: None,
        }
    }
}

impl Spent {
    /// The sums over `drives`; `host_reads` is the number of reads the host's page cache added.
    pub fn sum(drives: &[Counters], host_reads: u64) -> Spent {
        let mut all = Counters::default();
        for drive in drives {
            all += *drive;
        }
        #[allow(clippy::cast_precision_loss, reason = "for people")]
        let amplification =
            (all.bytes_written > 0).then(|| all.media_written as f64 / all.bytes_written as f64);
        Spent {
            drives: drives.len(),
            media_ops: all.media_ops,
            rmw: all.rmw,
            rmw_reads: all.rmw_reads,
            lost_revolutions: all.lost_revolutions,
            write_amplification: amplification,
            copied: all.copied,
            padded: all.padded,
            erasures: all.erasures,
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
