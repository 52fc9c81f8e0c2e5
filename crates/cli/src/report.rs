//! What `check` found, as one value: every output (text, JSON, SARIF, Prometheus, HTML, SVG) is written from it.
//!
//! Its serialised form is the contract of `trueline check --json`; keys may be added, never changed.

use crate::remembered::Remembered;
use serde::Serialize;

/// The whole answer.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// `trueline/check/1`, or another command's with the same keys.
    pub format: &'static str,
    /// The worst of the targets'.
    pub verdict: Verdict,
    /// In the order asked for.
    pub targets: Vec<Target>,
    /// What could not be read, a line each, as on stderr. With any, the verdict is `unknown` at best.
    pub errors: Vec<String>,
}

impl Report {
    /// The report on `targets`; its format is `trueline/check/1` or one with the same keys.
    pub(crate) fn new(format: &'static str, targets: Vec<Target>, errors: Vec<String>) -> Report {
        let unread = (!errors.is_empty()).then_some(Verdict::Unknown);
        let verdict = targets.iter().map(|t| t.verdict).chain(unread).max().unwrap_or(Verdict::Unknown);
        Report { format, verdict, targets, errors }
    }
}

/// A verdict about I/O; the worse is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// Everything that does I/O does it on the grain.
    Aligned,
    /// Something could not be known.
    Unknown,
    /// Something does I/O off the grain.
    Misaligned,
}

/// One target.
#[derive(Debug, Serialize)]
pub(crate) struct Target {
    /// As the user named it.
    pub target: String,
    /// The profile it was judged by, and who said so; none where nobody did.
    #[serde(rename = "for")]
    pub judged: Option<Remembered>,
    /// The worst of its data-bearing providers.
    pub verdict: Verdict,
    /// A provider comes after its parent.
    pub providers: Vec<Provider>,
    /// The most severe first.
    pub findings: Vec<Finding>,
}

/// One provider.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Provider {
    /// Its name without the disk's; empty for the one disk of a target.
    pub provider: String,
    /// What it stands on; `null` for a disk, and for a set, which has members.
    pub parent: Option<String>,
    /// The class that offers it.
    pub class: &'static str,
    /// What was recognised on it, if one thing.
    pub sign: Option<String>,
    /// First byte on the medium.
    pub start: Option<u64>,
    /// Bytes.
    pub length: u64,
    /// Logical sector in bytes.
    pub sector_size: u64,
    /// GEOM's stripesize; 0 if unknown.
    pub stripe_size: u64,
    /// GEOM's stripeoffset.
    pub stripe_offset: u64,
    /// Every boundary known.
    pub grains: Vec<Grain>,
    /// The largest power of two that divides `start`.
    pub largest_grain: Option<u64>,
    /// Of this provider, or of the worst that stands on it where it only carries others.
    pub verdict: Verdict,
    /// Whether something does I/O from its start.
    pub data_bearing: bool,
    /// The start in its nearest disk or set, in bytes: what a picture is drawn from.
    pub base: u64,
    /// The disk or set that `base` counts from.
    pub root: String,
    /// Everything recognised, where it is more than one thing.
    pub signs: Vec<String>,
    /// The table on it.
    pub table: Option<Table>,
    /// The members it is made of, for a set.
    pub members: Vec<String>,
    /// What the table above calls its type, for people.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Label of the file system, else of the table entry.
    pub label: Option<String>,
    /// UUID of what was recognised, else of the table entry.
    pub uuid: Option<String>,
    /// The unit of I/O of what was recognised, in bytes.
    pub block_size: Option<u64>,
    /// Where it is mounted, on a host.
    pub mountpoint: Option<String>,
    /// False if it is not known where it begins.
    #[serde(skip)]
    pub placed: bool,
}

/// A partition table.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Table {
    /// `gpt`, `mbr`, `bsd`.
    pub scheme: &'static str,
    /// First usable byte, on the provider.
    pub first: u64,
    /// The byte after the last usable one.
    pub end: u64,
    /// What no partition covers.
    pub free: Vec<Range>,
}

/// A range of bytes on a provider.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Range {
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub length: u64,
}

/// A boundary.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Grain {
    /// Bytes.
    pub size: u64,
    /// The first boundary at or after the provider's byte 0.
    pub phase: u64,
    /// What for.
    pub why: &'static str,
    /// Who says so.
    pub source: &'static str,
    /// How far it is believed.
    pub trust: &'static str,
}

/// One finding.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    /// Rule id.
    pub rule: &'static str,
    /// `error`, `warning` or `note`.
    pub severity: &'static str,
    /// Where.
    pub provider: String,
    /// First byte, on the medium or, above a set, on the set.
    pub offset: u64,
    /// The unit it is measured against; 0 where there is none.
    pub unit: u64,
    /// How far past a boundary.
    pub remainder: u64,
    /// The share of naturally aligned I/Os that cross a boundary; 0 where nothing is measured.
    pub straddle: f64,
    /// Device operations per write, relative to aligned; 1 where nothing is measured.
    pub rmw_factor: f64,
    /// One line.
    pub message: String,
    /// What to do, the best first.
    pub fix: Vec<String>,
    /// Commands of a shell that mend it and lose nothing, in order: the first of `fix`, each by itself.
    pub commands: Vec<String>,
}
