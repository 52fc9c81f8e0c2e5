//! The result of `check` as one value: every output (text, JSON, SARIF, Prometheus, HTML, SVG) is
//! written from it.

use crate::remembered::Remembered;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt::{self, Display};
use trueline_geom::base::finding::Severity;
use trueline_geom::base::topology::{Source, Trust, Why};
use trueline_geom::graph::Incomplete;

/// Name of the format of a report of `check`, and of its lines.
pub(crate) const CHECK: &str = "trueline/check/1";

/// The whole result of a command.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Name of the format: `trueline/check/1`, or another command's with the same keys.
    pub format: &'static str,
    /// The worst verdict of its targets.
    pub verdict: Verdict,
    /// Targets in the order of the command line.
    pub targets: Vec<Target>,
    /// Errors, a line each, as on stderr. With any, the verdict is `unknown` at best.
    pub errors: Vec<UnreadTarget>,
}

/// A target that could not be read, or what a walk could not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnreadTarget {
    /// The target, as the user named it; empty where no name is known.
    pub target: String,
    /// The line on stderr.
    pub why: String,
}

impl From<String> for UnreadTarget {
    fn from(why: String) -> UnreadTarget {
        UnreadTarget { target: String::new(), why }
    }
}

impl Serialize for UnreadTarget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.why)
    }
}

impl Report {
    /// The report on `targets`; `format` is `trueline/check/1` or one with the same keys.
    pub(crate) fn new(
        format: &'static str,
        targets: Vec<Target>,
        errors: Vec<UnreadTarget>,
    ) -> Report {
        let unread = (!errors.is_empty()).then_some(Verdict::Unknown);
        let verdict =
            targets.iter().map(|t| t.verdict).chain(unread).max().unwrap_or(Verdict::Unknown);
        Report { format, verdict, targets, errors }
    }
}

/// A verdict about I/O; the worse is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// Everything that does I/O does it on the grain.
    Aligned,
    /// Something could not be known.
    Unknown,
    /// Something does I/O off the grain.
    Misaligned,
}

/// A target and all that stands on it.
#[derive(Debug, Serialize)]
pub(crate) struct Target {
    /// The target, as the user named it.
    pub target: String,
    /// The profile it was judged by, and its source; `None` if no profile was named.
    #[serde(rename = "for")]
    pub judged: Option<Remembered>,
    /// The worst verdict of its data-bearing providers.
    pub verdict: Verdict,
    /// Providers, each after its parent.
    pub providers: Vec<Provider>,
    /// Findings, the most severe first.
    pub findings: Vec<Finding>,
    /// Sets of which it has some members only.
    #[serde(skip)]
    pub incomplete: Vec<Incomplete>,
}

/// A provider: a disk, a partition, a set or a data area.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Provider {
    /// Its name without the disk's; empty for the one disk of a target.
    pub provider: String,
    /// The provider it stands on; `null` for a disk, and for a set, which has members.
    pub parent: Option<String>,
    /// The GEOM class that provides it.
    pub class: &'static str,
    /// Kind of the metadata recognised on it, if it is one thing.
    pub sign: Option<String>,
    /// First byte, on the medium.
    pub start: Option<u64>,
    /// Length of the provider in bytes.
    pub length: u64,
    /// Logical sector in bytes.
    pub sector_size: u64,
    /// GEOM's stripesize in bytes; 0 if unknown.
    pub stripe_size: u64,
    /// GEOM's stripeoffset in bytes.
    pub stripe_offset: u64,
    /// Every boundary known of it, with source and trust.
    pub grains: Vec<Grain>,
    /// The largest power of two that divides `start`.
    pub largest_grain: Option<u64>,
    /// Its own verdict, or the worst of those that stand on it if it only carries others.
    pub verdict: Verdict,
    /// True if a file system, or other I/O, begins at its first byte.
    pub data_bearing: bool,
    /// Its start in the nearest disk or set, in bytes: the place in a picture.
    pub base: u64,
    /// The disk or set that `base` counts from.
    pub root: String,
    /// Kinds of everything recognised, if it is more than one thing.
    pub signs: Vec<String>,
    /// The partition table on it.
    pub table: Option<Table>,
    /// Members of a set, by name.
    pub members: Vec<String>,
    /// Arrangement of a set over its members.
    #[serde(rename = "set", skip_serializing_if = "Option::is_none")]
    pub arrangement: Option<Arrangement>,
    /// Translation from the guest's addresses, of the contents of a container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
    /// Type in the entry of the table above, in words.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Label of the file system, else of the table entry.
    pub label: Option<String>,
    /// UUID of what was recognised, else of the table entry.
    pub uuid: Option<String>,
    /// The unit of I/O of what was recognised, in bytes.
    pub block_size: Option<u64>,
    /// First mount point, on a running host.
    pub mountpoint: Option<String>,
    /// False if its start is not known.
    #[serde(skip)]
    pub placed: bool,
    /// Further facts of what was recognised, in its own tools' words: for `info`.
    #[serde(skip)]
    pub details: Vec<(&'static str, String)>,
}

/// Places of a guest's blocks in the file of a container.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Container {
    /// Unit in bytes in which the file gets space.
    pub allocation: u64,
    /// Largest size in bytes modulo which all blocks are at one distance from their guest offset.
    pub grain: u64,
    /// That distance, modulo `grain`.
    pub phase: u64,
    /// Blocks whose places were looked at; `null` where the format says where all of them are.
    pub blocks_looked_at: Option<u64>,
    /// Price of a guest's first write to a cluster; left out where none is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_write: Option<FirstWrite>,
}

/// Device operations of a guest's first write to a cluster of a container, at the least.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct FirstWrite {
    /// Bytes that the guest writes.
    pub bytes: u64,
    /// Unit in bytes in which the drive beneath the file reads and writes.
    pub unit: u64,
    /// Units read, those that are written in part included.
    pub reads: u64,
    /// Units that are written.
    pub writes: u64,
    /// The ranges that it touches, each with its share of both.
    pub ranges: Vec<TouchedRange>,
}

/// A range that a first write touches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct TouchedRange {
    /// Name of the bytes in the words of the format.
    pub what: &'static str,
    /// Length of the range in bytes.
    pub length: u64,
    /// Units of the drive that are read for it.
    pub reads: u64,
    /// Units of the drive that are written.
    pub writes: u64,
}

/// Arrangement of a set, in the words of its own system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Arrangement {
    /// Level or type: `raid5`, `linear`.
    pub level: String,
    /// Layout, for a level that has several.
    pub layout: Option<String>,
    /// Chunk in bytes; `None` for a set without chunks.
    pub chunk: Option<u64>,
    /// Members of the whole set.
    pub members: usize,
    /// Members that are here and in use.
    pub present: usize,
    /// Reason for which nothing of it is written.
    pub read_only: Option<&'static str>,
}

/// A partition table and its free ranges.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Table {
    /// Name of the scheme: `gpt`, `mbr`, `bsd`.
    pub scheme: &'static str,
    /// First usable byte, on the provider.
    pub first: u64,
    /// The byte after the last usable one.
    pub end: u64,
    /// Ranges that no partition covers.
    pub free: Vec<Range>,
}

/// A range of bytes on a provider.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Range {
    /// First byte of the range.
    pub start: u64,
    /// Length of the range in bytes.
    pub length: u64,
}

/// A boundary of a provider, and its source.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Grain {
    /// Distance between boundaries in bytes.
    pub size: u64,
    /// The first boundary at or after the provider's byte 0.
    pub phase: u64,
    /// Purpose: `logical`, `physical`, `chunk`, …
    #[serde(serialize_with = "by_name")]
    pub why: Why,
    /// Source of the figure: the user, a device, a model, …
    #[serde(serialize_with = "by_name")]
    pub source: Source,
    /// Degree of trust in the source.
    #[serde(serialize_with = "by_name")]
    pub trust: Trust,
}

/// A finding of a rule on one provider.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    /// Id of the rule, `TL0001`.
    pub rule: &'static str,
    /// Severity: `error`, `warning` or `note`.
    #[serde(serialize_with = "by_name")]
    pub severity: Severity,
    /// Name of the provider it is on.
    pub provider: String,
    /// First byte, on the medium or, above a set, on the set.
    pub offset: u64,
    /// The unit it is measured against, in bytes; 0 if there is none.
    pub unit: u64,
    /// Distance past the last boundary, in bytes.
    pub remainder: u64,
    /// The share of naturally aligned I/Os that cross a boundary; 0 where nothing is measured.
    pub straddle: f64,
    /// Device operations per write, relative to aligned; 1 where nothing is measured.
    pub rmw_factor: f64,
    /// The sentence that states it, one line.
    pub message: String,
    /// Cures in words, the best first.
    pub fix: Vec<String>,
    /// Shell commands that mend it and lose nothing, in order: the first of `fix`, each by itself.
    pub commands: Vec<String>,
}

impl Target {
    /// Its disks as typed, without `#PROVIDER`. A `#` may be part of a file's name: one that leads
    /// to a provider is followed by the name of the first that is reported.
    pub(crate) fn disks(&self) -> &str {
        let first = self.providers.first().map(|p| p.provider.as_str());
        let mut splits = self.target.match_indices('#').map(|(at, _)| self.target.split_at(at));
        let chosen = splits.find(|(_, provider)| first == Some(&provider[1..]));
        chosen.map_or(&self.target, |(disks, _)| disks)
    }
}

/// Key of a finding by which it is known again: two runs, or two branches, have the same finding
/// if rule, provider and numbers are the same. Words and severity may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FindingKey<'a> {
    pub(crate) rule: &'a str,
    pub(crate) provider: &'a str,
    pub(crate) offset: u64,
    pub(crate) unit: u64,
    pub(crate) remainder: u64,
}

impl Display for FindingKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FindingKey { rule, provider, offset, unit, remainder } = self;
        write!(f, "{rule}:{provider}:{offset}:{unit}:{remainder}")
    }
}

impl Finding {
    /// The key by which it is known again.
    pub(crate) fn key(&self) -> FindingKey<'_> {
        let Finding { rule, provider, offset, unit, remainder, .. } = self;
        FindingKey { rule, provider, offset: *offset, unit: *unit, remainder: *remainder }
    }
}

/// An enum of `geom` as the word that JSON has for it.
fn by_name<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}
