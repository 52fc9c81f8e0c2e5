//! `part`'s JSON: tables as they can be edited.

use super::gpart::Shown;
use serde::Serialize;
use std::io;
use trueline_geom::kinds;
use trueline_geom::scheme::Id;
use trueline_geom::table::Entry;
use trueline_geom::topology::largest_grain;

#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    tables: Vec<Table<'a>>,
}

/// One table; all offsets count from its provider's first byte.
#[derive(Serialize)]
struct Table<'a> {
    provider: &'a str,
    scheme: &'static str,
    sector_size: u64,
    length: u64,
    /// First byte at which partitions may lie, and how many bytes.
    usable: Range,
    entries: u32,
    id: Option<String>,
    dialect: Option<&'static str>,
    attributes: Vec<&'static str>,
    /// What is wrong with it; empty if nothing is.
    damage: &'a [String],
    partitions: Vec<Partition<'a>>,
    free: Vec<Range>,
}

#[derive(Serialize)]
struct Range {
    start: u64,
    length: u64,
}

impl From<std::ops::Range<u64>> for Range {
    fn from(range: std::ops::Range<u64>) -> Range {
        Range { start: range.start, length: range.end.saturating_sub(range.start) }
    }
}

#[derive(Serialize)]
struct Partition<'a> {
    provider: String,
    index: u32,
    start: u64,
    length: u64,
    #[serde(rename = "type")]
    kind: String,
    raw_type: String,
    label: Option<&'a str>,
    uuid: Option<String>,
    attributes: Vec<&'static str>,
    largest_grain: Option<u64>,
}

/// Writes the tables as one document.
pub(crate) fn write(shown: &[Shown<'_>], out: &mut dyn io::Write) -> io::Result<()> {
    let document = Document { format: "trueline/part/1", tables: shown.iter().map(|s| table(*s)).collect() };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

fn table(shown: Shown<'_>) -> Table<'_> {
    let table = shown.table;
    let set = shown.scheme.attributes().iter().filter(|a| a.of_table && table.attributes & a.bit == a.bit);
    Table {
        provider: shown.name,
        scheme: table.scheme,
        sector_size: table.sector,
        length: table.length,
        usable: table.usable.clone().into(),
        entries: table.capacity,
        id: table.id.map(|id| match id {
            Id::Guid(guid) => guid.to_string(),
            Id::Signature(n) => format!("{n:08x}"),
            Id::Duid(bytes) => bytes.iter().map(|b| format!("{b:02x}")).collect(),
        }),
        dialect: table.dialect.map(|d| d.name()),
        attributes: set.map(|a| a.name).collect(),
        damage: &table.damage,
        partitions: table.entries.iter().map(|e| partition(shown, e)).collect(),
        free: table.free().into_iter().map(Into::into).collect(),
    }
}

fn partition<'a>(shown: Shown<'a>, entry: &'a Entry) -> Partition<'a> {
    Partition {
        provider: shown.partition(entry),
        index: entry.index,
        start: entry.start,
        length: entry.length,
        kind: kinds::gpart_name(entry.kind),
        raw_type: kinds::raw_name(entry.kind),
        label: entry.label.as_deref(),
        uuid: entry.uuid.map(|uuid| uuid.to_string()),
        attributes: entry.marks(shown.scheme),
        largest_grain: largest_grain(entry.start),
    }
}
