//! What `bench` and `lab` found, as values: every output is written from these.
//!
//! The keys are the contract of `trueline/bench/1` and `trueline/lab/1`; keys may be added.

use serde::Serialize;

pub mod bench;

/// `trueline/lab/1`.
#[derive(Clone, Debug, Serialize)]
pub struct LabDocument {
    /// `trueline/lab/1`.
    pub format: &'static str,
    /// In the order in which they were asked for.
    pub labs: Vec<LabResult>,
}

/// One lab.
#[derive(Clone, Debug, Serialize)]
pub struct LabResult {
    /// Its name: `2009-gstripe`.
    pub lab: String,
    /// In a line.
    pub title: String,
    /// The document it takes its published values from.
    pub source: Option<String>,
    /// Its rows.
    pub rows: Vec<Row>,
}

impl LabResult {
    /// Whether a document published anything that it makes again.
    pub fn is_published(&self) -> bool {
        self.rows.iter().any(|row| row.published.is_some())
    }
}

/// One row: a published measurement and ours.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The number of the seed document: `003`.
    pub seed: Option<String>,
    /// Its id: `raidtest-n1`.
    pub row: String,
    /// In words.
    pub title: String,
    /// Of the values: `s`, `req/s`, `bytes/s`, `ns`.
    pub unit: String,
    /// Whether more is better.
    pub more_is_better: bool,
    /// What the document says.
    pub published: Option<Published>,
    /// What we find; `None` where no honest prediction can be made: in the document every value of it is null then.
    #[serde(serialize_with = "or_nulls")]
    pub ours: Option<Ours>,
    /// `ours.ratio / published.ratio - 1`.
    pub error: Option<f64>,
    /// The greatest |error| that is promised; where there is no ratio, of the aligned value.
    pub bound: Option<f64>,
    /// Whether it is predicted, rather than measured here or not at all.
    pub predicted: bool,
    /// Whether it was to be measured on this machine and could not be; `note` says why.
    pub skipped: bool,
    /// What is to be known of this row.
    pub note: String,
    /// The firmware personality of `ours`, where the drive has one.
    pub personality: Option<String>,
    /// The same under the other personalities.
    pub alternatives: Vec<Alternative>,
    /// What was run, aligned first: where its seconds went.
    pub variants: Vec<VariantResult>,
}

impl Row {
    /// How far ours is from what is published: of the ratio or, where there is none, of the aligned value.
    pub fn deviation(&self) -> Option<f64> {
        if self.error.is_some() {
            return self.error;
        }
        let (published, ours) = (self.published?, self.ours?);
        if published.ratio.is_some() { None } else { Some(ours.aligned? / published.aligned? - 1.0) }
    }

    /// Whether ours comes from drives whose model was chosen by this very row: how near it is says nothing of others.
    pub fn is_calibrated(&self) -> bool {
        !self.predicted && self.ours.is_some() && self.variants.iter().any(|variant| variant.drives.is_some())
    }

    /// Whether it is within its bound; `None`: it has none, or nothing to compare.
    pub fn keeps_bound(&self) -> Option<bool> {
        Some(self.deviation()?.abs() <= self.bound?)
    }
}

/// Published values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Published {
    /// Of the aligned layout; the only value where there is no other.
    pub aligned: Option<f64>,
    /// Of the unaligned layout.
    pub unaligned: Option<f64>,
    /// unaligned / aligned.
    pub ratio: Option<f64>,
}

/// Our values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Ours {
    /// Of the aligned layout.
    pub aligned: Option<f64>,
    /// Of the unaligned layout.
    pub unaligned: Option<f64>,
    /// unaligned / aligned.
    pub ratio: Option<f64>,
    /// The least ratio: of the sweep where time is virtual, of the 95 % interval where it is real.
    pub low: Option<f64>,
    /// The greatest.
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
    /// Its name.
    pub personality: String,
    /// Its values.
    pub ours: Ours,
    /// `ours.ratio / published.ratio - 1`.
    pub error: Option<f64>,
}

/// One layout of a row, as it ran.
#[derive(Clone, Debug, Serialize)]
pub struct VariantResult {
    /// `aligned`, `unaligned`.
    pub name: String,
    /// Target: disks and provider.
    pub target: String,
    /// Seconds of its run: of real time the median if there were several, of virtual time of all together, as what follows.
    pub seconds: f64,
    /// Requests.
    pub ops: u64,
    /// Bytes.
    pub bytes: u64,
    /// Latency at quantiles: (quantile, ns), ascending, for a curve.
    pub latency: Vec<(f64, u64)>,
    /// What the drives did, all together; of real drives nothing is known.
    pub drives: Option<Spent>,
    /// The layout on its first medium.
    pub layout: Option<Layout>,
}

/// Where the seconds of simulated drives went, summed over the drives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spent {
    /// Drives.
    pub drives: usize,
    /// Operations of the medium.
    pub media_ops: u64,
    /// Physical sectors or indirection units written in part.
    pub rmw: u64,
    /// Reads of the medium that only these needed.
    pub rmw_reads: u64,
    /// Revolutions lost.
    pub lost_revolutions: u64,
    /// Bytes the medium wrote over bytes the host wrote; `None` if it wrote none.
    pub write_amplification: Option<f64>,
    /// Reads that only the page cache of the host needed.
    pub host_reads: u64,
    /// Seconds in overhead.
    pub setup: f64,
    /// Seconds the arm moved.
    pub seek: f64,
    /// Seconds waiting for a sector.
    pub rotate: f64,
    /// Seconds of bytes.
    pub transfer: f64,
    /// Seconds of nothing.
    pub idle: f64,
}

/// A layout as it is drawn: boundaries of the medium, and the layers from the outside in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Layout {
    /// Bytes of a physical block, or of the chunk where that is what counts.
    pub unit: u64,
    /// The first byte that begins one.
    pub phase: u64,
    /// Layers: name, first byte on the medium.
    pub layers: Vec<(String, u64)>,
    /// Where the first requests fall: first byte, bytes.
    pub requests: Vec<(u64, u64)>,
}
