//! The results of `bench` and `lab` as values, from which every output is written.
//!
//! The keys are the contract of `trueline/bench/1` and `trueline/lab/1`; keys may be added.

use crate::layer::counts::{LayerCounts, NamedCounts};
use serde::Serialize;

pub mod bench;

/// The document in the format `trueline/lab/1`.
#[derive(Clone, Debug, Serialize)]
pub struct LabDocument {
    /// The document's format, always `trueline/lab/1`.
    pub format: &'static str,
    /// The labs in the order in which they were named.
    pub labs: Vec<LabResult>,
}

impl LabDocument {
    /// The nearer of our ratio and the null model's, for every prediction that can be compared.
    pub fn nearer(&self) -> Vec<Nearer> {
        let rows = self.labs.iter().flat_map(|lab| &lab.rows).filter(|row| row.predicted);
        rows.filter_map(|row| row.null_model?.nearer).collect()
    }
}

/// The results of one lab.
#[derive(Clone, Debug, Serialize)]
pub struct LabResult {
    /// The name of the lab: `2009-gstripe`.
    pub lab: String,
    /// The title, one line for people.
    pub title: String,
    /// The document that the published values come from. `None`: it reproduces no document.
    pub source: Option<String>,
    /// The rows in the order of the lab file.
    pub rows: Vec<Row>,
}

impl LabResult {
    /// True if any row reproduces a published measurement.
    pub fn is_published(&self) -> bool {
        self.rows.iter().any(|row| row.published.is_some())
    }
}

/// One row: a published measurement and our own.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The number of the seed document: `003`.
    pub seed: Option<String>,
    /// The row's id: `raidtest-n1`.
    pub row: String,
    /// The title, a phrase for people.
    pub title: String,
    /// The unit of the values: `s`, `req/s`, `bytes/s`, `ns`.
    pub unit: String,
    /// True if a greater value is better.
    pub more_is_better: bool,
    /// The published values; `None` if the row has none.
    pub published: Option<Published>,
    /// Our values; `None` if no honest prediction can be made. The document then has an object
    /// whose values are all null.
    #[serde(serialize_with = "or_nulls")]
    pub ours: Option<Ours>,
    /// The relative error: `ours.ratio / published.ratio - 1`; of the aligned value if no ratio is
    /// published.
    pub error: Option<f64>,
    /// The relative errors of the two values.
    pub level_errors: LevelErrors,
    /// The ratio of the null model; `None` if the row has no ratio or is measured here.
    pub null_model: Option<NullModel>,
    /// The greatest |error| that the row promises; without a ratio, that of the aligned value.
    pub bound: Option<f64>,
    /// True if our values are predicted, rather than calibrated to this row or measured here.
    pub predicted: bool,
    /// True if the row should have been measured on this machine and could not be; `note` says why.
    pub skipped: bool,
    /// A remark for the reader, possibly empty.
    pub note: String,
    /// The firmware personality of `ours`, if the drive has one.
    pub personality: Option<String>,
    /// The same row under the other personalities.
    pub alternatives: Vec<Alternative>,
    /// The layouts as they ran, aligned first, with the drives' use of time.
    pub variants: Vec<VariantResult>,
}

impl Row {
    /// True if our values come from this machine, not from simulated drives.
    pub fn is_measured_here(&self) -> bool {
        !self.variants.is_empty() && self.variants.iter().all(|variant| variant.drives.is_none())
    }

    /// True if our values come from a drive model calibrated to this row, so their accuracy says
    /// nothing about other rows.
    pub fn is_calibrated(&self) -> bool {
        !self.predicted
            && self.ours.is_some()
            && self.variants.iter().any(|variant| variant.drives.is_some())
    }

    /// True if the error is within the bound; `None` without a bound, or with nothing to compare.
    pub fn keeps_bound(&self) -> Option<bool> {
        Some(self.error?.abs() <= self.bound?)
    }

    /// True if the range of our ratio holds the published one; `None` without a range, or with
    /// nothing to compare.
    pub fn range_holds(&self) -> Option<bool> {
        let (published, ours) = (self.published?.ratio?, self.ours?);
        Some((ours.low?..=ours.high?).contains(&published))
    }
}

/// The values that a document published.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Published {
    /// The value of the aligned layout, or the only value.
    pub aligned: Option<f64>,
    /// The value of the unaligned layout.
    pub unaligned: Option<f64>,
    /// The ratio unaligned / aligned.
    pub ratio: Option<f64>,
}

impl Published {
    /// The relative error of our ratio or, if none is published, of the aligned value. `None` if
    /// there is nothing to compare.
    pub fn error(&self, ours: Ours) -> Option<f64> {
        match self.ratio {
            Some(ratio) => Some(ours.ratio? / ratio - 1.0),
            None => self.level_errors(ours).aligned,
        }
    }

    /// The relative errors of both values.
    pub fn level_errors(&self, ours: Ours) -> LevelErrors {
        let error = |ours: Option<f64>, published: Option<f64>| Some(ours? / published? - 1.0);
        LevelErrors {
            aligned: error(ours.aligned, self.aligned),
            unaligned: error(ours.unaligned, self.unaligned),
        }
    }
}

/// The relative errors of a row's values: ours over the published one, less 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LevelErrors {
    /// The error of the aligned value.
    pub aligned: Option<f64>,
    /// The error of the unaligned value.
    pub unaligned: Option<f64>,
}

/// A ratio that a constant for the class of the drives gives.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NullModel {
    /// The ratio unaligned / aligned in the row's unit.
    pub ratio: f64,
    /// The relative error: `ratio / published.ratio - 1`.
    pub error: Option<f64>,
    /// The nearer of this ratio and ours to the published one; `None` if none is published.
    pub nearer: Option<Nearer>,
}

/// The nearer of two ratios to the published one, by their factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Nearer {
    /// Our ratio is nearer.
    Ours,
    /// The null model's ratio is nearer.
    Null,
    /// The two differ by less than 1 %.
    Same,
}

/// The values that we predict or measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Ours {
    /// The value of the aligned layout, in the row's unit.
    pub aligned: Option<f64>,
    /// The value of the unaligned layout.
    pub unaligned: Option<f64>,
    /// The ratio unaligned / aligned.
    pub ratio: Option<f64>,
    /// The least ratio: of the sweep in virtual time, of the 95 % interval in real time.
    pub low: Option<f64>,
    /// The greatest ratio, likewise.
    pub high: Option<f64>,
}

/// `ours` is an object in every row: the contract has no null for it.
#[allow(clippy::ref_option, reason = "serde passes the field")]
fn or_nulls<S: serde::Serializer>(ours: &Option<Ours>, to: S) -> Result<S::Ok, S::Error> {
    ours.unwrap_or_default().serialize(to)
}

/// A row under another firmware personality.
#[derive(Clone, Debug, Serialize)]
pub struct Alternative {
    /// The name of the personality.
    pub personality: String,
    /// Our values with this personality.
    pub ours: Ours,
    /// The relative error, as that of the row.
    pub error: Option<f64>,
}

/// One layout of a row, as it ran.
#[derive(Clone, Debug, Serialize)]
pub struct VariantResult {
    /// The variant's name: `aligned`, `unaligned`.
    pub name: String,
    /// The target as text: disks and provider.
    pub target: String,
    /// Seconds: the median run in real time, the sum of all runs in virtual time, as for the fields
    /// below.
    pub seconds: f64,
    /// The number of requests done.
    pub ops: u64,
    /// The bytes of these requests.
    pub bytes: u64,
    /// Latency quantiles for a curve: (quantile, nanoseconds), ascending.
    pub latency: Vec<(f64, u64)>,
    /// The sums over all simulated drives; `None` for real drives.
    pub drives: Option<Spent>,
    /// The layers above the drives with their counts, the outermost first; empty if there are none.
    pub layers: Vec<LayerResult>,
    /// The layout on the first medium.
    pub layout: Option<Layout>,
}

/// A layer between a workload and simulated drives, with what passed it in all runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LayerResult {
    /// The name of the layer, as labs and `--through` spell it.
    pub layer: &'static str,
    /// The requests that came to it, and those that it made.
    #[serde(flatten)]
    pub counts: LayerCounts,
    /// Bytes written beneath for one that was written above; `None` if nothing was.
    pub write_amplification: Option<f64>,
}

impl LayerResult {
    /// The sums of several runs' counts: those of a run are its layers with their names, the
    /// outermost first.
    pub fn sum(runs: impl IntoIterator<Item = Vec<NamedCounts>>) -> Vec<LayerResult> {
        let mut all: Vec<NamedCounts> = Vec::new();
        for run in runs {
            match all.is_empty() {
                true => all = run,
                false => all.iter_mut().zip(run).for_each(|(all, one)| all.1 += one.1),
            }
        }
        let result = |(layer, counts): NamedCounts| LayerResult {
            layer,
            counts,
            write_amplification: counts.write_amplification(),
        };
        all.into_iter().map(result).collect()
    }
}

/// Use of time and media operations, summed over simulated drives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spent {
    /// The number of drives.
    pub drives: usize,
    /// Operations on the medium.
    pub media_ops: u64,
    /// Read-modify-writes: physical sectors or indirection units written in part.
    pub rmw: u64,
    /// Reads of the medium caused by these partial writes.
    pub rmw_reads: u64,
    /// Revolutions lost while the drive waited for a sector to return.
    pub lost_revolutions: u64,
    /// Write amplification: bytes written to the medium over bytes written by the host. `None` if
    /// the host wrote none.
    pub write_amplification: Option<f64>,
    /// Bytes that garbage collection of flash copied, counted as written to the medium.
    pub copied: u64,
    /// Bytes of flash pages that were written and hold nothing, counted likewise.
    pub padded: u64,
    /// Erase blocks of flash that were erased.
    pub erasures: u64,
    /// Reads caused by the host's page cache alone.
    pub host_reads: u64,
    /// Seconds of command overhead.
    pub setup: f64,
    /// Seconds of arm movement.
    pub seek: f64,
    /// Seconds of rotational delay.
    pub rotate: f64,
    /// Seconds of data transfer.
    pub transfer: f64,
    /// Seconds without any request.
    pub idle: f64,
}

/// The layout for a drawing: boundaries of the medium, and the layers from the outermost in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Layout {
    /// The size of a physical block in bytes, or of the chunk if that is the boundary that matters.
    pub unit: u64,
    /// The first byte at which such a unit begins.
    pub phase: u64,
    /// The layers: (name, first byte on the medium).
    pub layers: Vec<(String, u64)>,
    /// The first requests: (first byte, bytes).
    pub requests: Vec<(u64, u64)>,
}
