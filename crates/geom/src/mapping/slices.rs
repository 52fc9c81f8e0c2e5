//! Slices: the common form of every partition table as named ranges of the provider below.

use crate::base::finding::{self, Finding, Severity};
use crate::base::ondisk::{Guid, text};
use crate::base::topology::Topology;
use crate::mapping::geom::{Extent, Geom, Op, Slot};
use crate::mapping::partition::Partition;
use std::ops::Range;

/// Flavour of a BSD label; flavours differ in the origin of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Offsets from the label's slice, shifted by entry `c`'s.
    FreeBsd,
    /// Offsets from the start of the disk, 48 bits.
    OpenBsd,
    /// Offsets from the start of the disk; `d` is the disk, `c` the slice.
    NetBsd,
    /// DragonFly's 64-bit label, with offsets from its slice in bytes.
    DragonFly,
}

impl Dialect {
    /// Name of the system.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::FreeBsd => "FreeBSD",
            Dialect::OpenBsd => "OpenBSD",
            Dialect::NetBsd => "NetBSD",
            Dialect::DragonFly => "DragonFly",
        }
    }
}

/// Type of a slice in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionType {
    /// Type byte of an MBR or EBR.
    Mbr(u8),
    /// Type GUID of a GPT.
    Gpt(Guid),
    /// `fstype` of a BSD label of that flavour.
    Bsd(Dialect, u8),
    /// Type in a table that is read and never written.
    Tag(Tag),
}

impl PartitionType {
    /// True for an extended partition, whose first sector is a table of the same class.
    pub fn is_extended(self) -> bool {
        matches!(self, PartitionType::Mbr(0x05 | 0x0f | 0x85))
    }
}

/// Type in a table that is read and never written, as its class understands it: nothing outside the
/// class has a list of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Name of the class, as [`Class::name`](crate::class::Class::name) has it.
    pub class: &'static str,
    /// Type as it is on the disk.
    pub code: Code,
    /// Name of the type with that of its system: `solaris-root`; `None` for a type that the class
    /// does not know.
    pub name: Option<&'static str>,
    /// Use that the type alone tells.
    pub purpose: Purpose,
}

/// Type as it is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Number of up to 32 bits.
    Number(u32),
    /// Text, filled up with zeroes.
    Text([u8; 32]),
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Code::Number(number) => write!(f, "{number}"),
            Code::Text(field) => f.write_str(&text(field).unwrap_or_default()),
        }
    }
}

/// Use of a partition, as far as its type alone tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Contents that are judged by the formats found in them.
    Data,
    /// Swap without a header, in pages from its first byte.
    Swap,
    /// Boot code, drivers or the table itself, which a running system does not write.
    Boot,
}

/// One partition of a table as tasting shows it: it lies within its provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Suffix to the parent's name: `s1`, `p2`, `a`.
    pub suffix: String,
    /// Facts that the table records of it.
    pub partition: Partition,
}

/// The ranges of `usable` that none of `taken` covers, in order; `taken` may overlap.
pub fn free_within(
    usable: &Range<u64>,
    taken: impl Iterator<Item = Range<u64>>,
) -> Vec<Range<u64>> {
    let mut taken: Vec<Range<u64>> = taken.collect();
    taken.sort_by_key(|range| (range.start, range.end));
    let (mut at, mut free) = (usable.start, Vec::new());
    for range in taken {
        free.push(at..range.start.min(usable.end));
        at = at.max(range.end);
    }
    free.push(at..usable.end);
    free.retain(|range| range.start < range.end);
    free
}

/// Partition table as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slices {
    /// Range in which partitions may lie, in bytes of the provider below.
    pub usable: Range<u64>,
    /// Entries in use, in the table's order.
    pub entries: Vec<Slice>,
    /// Disk signature of an MBR, of which UUIDs of its partitions are made; `None` without one.
    pub signature: Option<u32>,
}

impl Slices {
    /// A table of partitions that have GUIDs or no UUID.
    pub fn new(usable: Range<u64>, entries: Vec<Slice>) -> Slices {
        Slices { usable, entries, signature: None }
    }

    /// A table of one nameless slice, for an inner data area.
    pub fn data_area(start: u64, length: u64) -> Slices {
        let end = start.saturating_add(length);
        let slice = Slice {
            suffix: String::new(),
            partition: Partition::new(1, start, length, PartitionType::Mbr(0)),
        };
        Slices::new(start..end, vec![slice])
    }

    /// Ranges of `usable` that no entry covers, in ascending order.
    pub fn free(&self) -> Vec<Range<u64>> {
        free_within(&self.usable, self.entries.iter().map(|slice| slice.partition.range()))
    }

    /// UUID of `partition` as Linux prints it: its GUID, or the disk's signature with its number.
    pub fn uuid(&self, partition: &Partition) -> Option<String> {
        let signed = |id| format!("{id:08x}-{:02x}", partition.index);
        partition.guid.map(|guid| guid.to_string()).or_else(|| self.signature.map(signed))
    }
}

/// Entries of a table while they are read one by one: those that lie on the provider, and findings
/// about the others.
pub(crate) struct Listing {
    length: u64,
    sector: u64,
    entries: Vec<Slice>,
    findings: Vec<Finding>,
}

impl Listing {
    /// An empty listing for a table on a provider of `length` bytes; messages count places in
    /// sectors of `sector` bytes.
    pub(crate) fn new(length: u64, sector: u64) -> Listing {
        Listing { length, sector, entries: Vec::new(), findings: Vec::new() }
    }

    /// Adds an entry, or the finding that it does not lie on the provider. An entry of no bytes is
    /// not in use.
    pub(crate) fn add(&mut self, slice: Slice) {
        if slice.partition.is_within(self.length) {
            self.entries.extend(Some(slice).filter(|slice| slice.partition.length > 0));
        } else {
            self.findings.push(out_of_range(
                &slice.suffix,
                slice.partition.start,
                self.length,
                self.sector,
                "left out",
            ));
        }
    }

    /// As [`Listing::add`], of an entry whose start is counted in bytes of the medium, on a
    /// provider that begins at its byte `base`. A finding names the start as the table has it.
    pub(crate) fn add_from(&mut self, base: u64, slice: Slice) {
        let here = slice.partition.start.checked_sub(base).map(|start| Slice {
            partition: Partition { start, ..slice.partition.clone() },
            ..slice.clone()
        });
        match here.filter(|here| here.partition.is_within(self.length)) {
            Some(here) => self.add(here),
            // One of no bytes is in use nowhere.
            None if slice.partition.length == 0 => {}
            None => self.findings.push(out_of_range(
                &slice.suffix,
                slice.partition.start,
                self.length,
                self.sector,
                "left out",
            )),
        }
    }

    /// Adds a finding about the table itself, an error of the rule for labels.
    pub(crate) fn damaged(&mut self, at: u64, message: String) {
        self.findings.push(Finding::new(&finding::LABEL, Severity::Error, at, message));
    }

    /// The table, and all findings with those of overlaps. `usable` is the range in which
    /// partitions may lie, in bytes.
    pub(crate) fn finish(mut self, usable: Range<u64>) -> (Slices, Vec<Finding>) {
        let ranges: Vec<_> =
            self.entries.iter().map(|s| (s.suffix.clone(), s.partition.range())).collect();
        self.findings.extend(overlaps(&ranges, self.sector));
        (Slices::new(usable, self.entries), bounded(self.findings))
    }
}

/// A place as messages name it: the byte first, the LBA in parentheses.
pub fn place(byte: u64, sector: u64) -> String {
    format!("byte {byte} (LBA {})", byte / sector.max(1))
}

/// Findings about ranges that overlap: one for each range that begins before an earlier one has
/// ended. One sort, so that a table of thousands costs no more than that.
pub fn overlaps(ranges: &[(String, Range<u64>)], sector: u64) -> Vec<Finding> {
    let mut sorted: Vec<&(String, Range<u64>)> =
        ranges.iter().filter(|(_, r)| r.start < r.end).collect();
    sorted.sort_by_key(|(_, r)| (r.start, r.end));
    let (mut findings, mut furthest) = (Vec::new(), None::<&(String, Range<u64>)>);
    for now @ (name, range) in sorted {
        if let Some((before, reach)) = furthest.filter(|(_, f)| f.end > range.start) {
            let shared = reach.end.min(range.end) - range.start;
            let message = format!(
                "{before} and {name} share {shared} bytes from {}",
                place(range.start, sector)
            );
            findings.push(
                Finding::new(&finding::OVERLAP, Severity::Error, range.start, message).fix(
                    "find out which of the two holds the data before anything writes to \
                        either; then delete or shrink the other",
                ),
            );
        }
        if furthest.is_none_or(|(_, f)| f.end < range.end) {
            furthest = Some(now);
        }
    }
    findings
}

/// The finding that an entry at `start` lies past the end of a provider of `end` bytes; `became`
/// says what is done with it.
pub fn out_of_range(name: &str, start: u64, end: u64, sector: u64, became: &str) -> Finding {
    let message = format!(
        "{name} at {} does not lie within the {end} bytes here: {became}",
        place(start, sector)
    );
    Finding::new(&finding::RANGE, Severity::Error, start, message).fix(
        "if the disk or image was cut short, restore its full length; otherwise correct the table",
    )
}

/// Most findings of one rule from one table; a hostile table could make thousands.
const SAME_RULE: usize = 16;

/// The findings, without those past the first few of each rule; the last kept one of a rule gives
/// the number of the others.
pub fn bounded(findings: Vec<Finding>) -> Vec<Finding> {
    let mut kept: Vec<Finding> = Vec::new();
    let mut left_out: Vec<(&'static str, usize)> = Vec::new();
    for finding in findings {
        if kept.iter().filter(|f| f.rule == finding.rule).count() < SAME_RULE {
            kept.push(finding);
        } else if let Some((_, n)) = left_out.iter_mut().find(|(id, _)| *id == finding.rule.id) {
            *n += 1;
        } else {
            left_out.push((finding.rule.id, 1));
        }
    }
    for (id, n) in left_out {
        if let Some(last) = kept.iter_mut().rfind(|f| f.rule.id == id) {
            last.message.push_str(&format!("; and {n} more like it"));
        }
    }
    kept
}

impl Geom for Slices {
    fn providers(&self) -> Vec<Slot> {
        self.entries
            .iter()
            .map(|s| Slot {
                name: s.suffix.clone(),
                length: s.partition.length,
                kind: Some(s.partition.kind),
            })
            .collect()
    }

    fn topology(&self, slot: usize, below: &[Topology]) -> Topology {
        match (self.entries.get(slot), below.first()) {
            (Some(slice), Some(below)) => {
                below.shift(slice.partition.start, slice.partition.length)
            }
            _ => Topology::new(1, 0),
        }
    }

    fn map(&self, slot: usize, offset: u64, length: u64, _op: Op) -> Extent {
        match self.entries.get(slot) {
            Some(slice) => {
                Extent::At { consumer: 0, offset: slice.partition.start + offset, length }
            }
            None => Extent::Fail { length },
        }
    }

    fn shift(&self, slot: usize) -> Option<u64> {
        self.entries.get(slot).map(|s| s.partition.start)
    }

    fn table(&self) -> Option<&Slices> {
        Some(self)
    }
}
