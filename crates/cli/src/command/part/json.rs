//! `part show --json`: the tables as one value for programs.

use crate::command::part::text::PAGE;
use crate::remembered::Remembered;
use crate::render::gpart::Shown;
use crate::report::Range;
use serde::Serialize;
use std::io::{self, BufWriter, Write};
use trueline_geom::base::topology::{Topology, largest_grain};
use trueline_geom::table::scheme::TableSite;
use trueline_geom::table::{Entry, Table, types};

/// The document of `part show --json`.
#[derive(Debug, Serialize)]
pub(crate) struct Document {
    format: &'static str,
    tables: Vec<TableJson>,
}

impl Document {
    /// The document on these tables, each with its site and the profile that its disk is judged by.
    pub(crate) fn new(tables: &[(Shown<'_>, TableSite<'_>, Option<&Remembered>)]) -> Document {
        let tables = tables
            .iter()
            .map(|(shown, site, judged)| TableJson::new(*shown, site, judged.cloned()));
        Document { format: "trueline/part/1", tables: tables.collect() }
    }

    /// Adds the tables of another document behind its own.
    pub(crate) fn append(&mut self, other: Document) {
        self.tables.extend(other.tables);
    }

    /// Prints it, on lines of its own.
    pub(crate) fn print(&self) -> io::Result<()> {
        let mut out = BufWriter::new(anstream::stdout().lock());
        serde_json::to_writer_pretty(&mut out, self).map_err(io::Error::from)?;
        writeln!(out)?;
        out.flush()
    }
}

/// One table; all places are bytes of its provider.
#[derive(Debug, Serialize)]
struct TableJson {
    provider: String,
    /// The profile that its disk is judged by; `null` if none is named.
    #[serde(rename = "for")]
    judged: Option<Remembered>,
    scheme: &'static str,
    /// First byte of the provider, on the medium or its set.
    base: u64,
    length: u64,
    /// True if its class only reads it: no verb of `part` changes it.
    read_only: bool,
    sector_size: u64,
    stripe_size: u64,
    stripe_offset: u64,
    usable: Range,
    /// The greatest index of a partition.
    capacity: u32,
    /// Identity of the table: GPT's disk GUID, MBR's signature, OpenBSD's label UID.
    id: Option<String>,
    /// The flavour of a BSD label.
    dialect: Option<&'static str>,
    /// Attributes of the table itself.
    attributes: Vec<&'static str>,
    /// Damage found in it, in words; `[]`: none.
    damage: Vec<String>,
    entries: Vec<EntryJson>,
    free: Vec<Range>,
}

/// A partition of the table.
#[derive(Debug, Serialize)]
struct EntryJson {
    index: u32,
    name: String,
    start: u64,
    length: u64,
    #[serde(rename = "type")]
    kind: String,
    raw_type: String,
    label: Option<String>,
    uuid: Option<String>,
    attributes: Vec<&'static str>,
    /// The largest power of two that divides its start on the medium; `null` for byte 0.
    largest_grain: Option<u64>,
    /// True if its start is on every boundary that counts; `null` if none is known.
    aligned: Option<bool>,
    /// The boundaries that it misses, the costliest first.
    misses: Vec<Missed>,
}

#[derive(Debug, Serialize)]
struct Missed {
    why: &'static str,
    unit: u64,
    remainder: u64,
    /// Device operations of a write of 4096 bytes, relative to one on the boundary.
    rmw_factor: Option<f64>,
}

impl TableJson {
    fn new(shown: Shown<'_>, site: &TableSite<'_>, judged: Option<Remembered>) -> TableJson {
        let table = shown.table;
        let (stripe_size, stripe_offset) = site.topology.stripesize_and_offset();
        let attributes = shown
            .scheme
            .attributes()
            .iter()
            .filter(|a| a.of_table && table.attributes & a.bit == a.bit);
        TableJson {
            provider: shown.name.text().into(),
            judged,
            scheme: shown.scheme.name(),
            read_only: !shown.scheme.is_editable(),
            base: site.base,
            length: table.length,
            sector_size: table.sector,
            stripe_size,
            stripe_offset,
            usable: range(&table.usable),
            id: table.id.map(|id| id.to_string()),
            dialect: table.dialect.map(|d| d.name()),
            capacity: table.capacity,
            attributes: attributes.map(|a| a.name).collect(),
            damage: table.damage.clone(),
            entries: entries(shown, table, site),
            free: table.free().iter().map(range).collect(),
        }
    }
}

fn range(range: &std::ops::Range<u64>) -> Range {
    Range { start: range.start, length: range.end.saturating_sub(range.start) }
}

fn entries(shown: Shown<'_>, table: &Table, site: &TableSite<'_>) -> Vec<EntryJson> {
    let entry = |e: &Entry| {
        let topology = site.topology.shift(e.partition.start, e.partition.length);
        EntryJson {
            index: e.partition.index,
            name: shown.partition(e),
            start: e.partition.start,
            length: e.partition.length,
            kind: types::gpart_name(e.partition.kind),
            raw_type: types::raw_name(e.partition.kind),
            label: e.partition.label.clone(),
            uuid: e.partition.guid.map(|uuid| uuid.to_string()),
            attributes: e.marks(shown.scheme),
            largest_grain: largest_grain(site.base.saturating_add(e.partition.start)),
            aligned: aligned(&topology),
            misses: misses(&topology),
        }
    };
    table.entries.iter().map(entry).collect()
}

fn aligned(topology: &Topology) -> Option<bool> {
    let clash = topology.clashes.iter().any(|c| c.why.costs());
    (clash || topology.counting().next().is_some())
        .then(|| !clash && topology.missed(PAGE).is_empty())
}

fn misses(topology: &Topology) -> Vec<Missed> {
    let missed = topology.missed(PAGE).into_iter();
    missed
        .map(|(fact, cost)| Missed {
            why: fact.why.name(),
            unit: fact.grain.size(),
            remainder: fact.grain.remainder(0),
            rmw_factor: cost.map(|c| c.rmw_factor),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::part::tables::{Bench, SECTOR};
    use trueline_geom::table::{Request, Rules};

    #[test]
    fn the_keys_and_what_they_say() {
        let mut disk = Bench::disk("ada0", 1 << 21, 4096, (40, 2_097_111));
        let at = |start, size| Request {
            start: Some(start * SECTOR),
            size: Some(size * SECTOR),
            align: None,
        };
        disk.add("freebsd-boot", at(40, 1024), Rules::Gpart);
        disk.add("freebsd", at(2047, 1_000_000), Rules::Gpart);
        disk.table.entries[0].attributes = 1 << 59;
        let json =
            serde_json::to_value(Document::new(&[(disk.shown(), disk.site(), None)])).unwrap();
        assert_eq!(json["format"], "trueline/part/1");
        let table = &json["tables"][0];
        assert_eq!((&table["provider"], &table["scheme"]), (&"ada0".into(), &"GPT".into()));
        assert_eq!(table["usable"], serde_json::json!({"start": 20480, "length": 1_073_700_864}));
        assert_eq!(table["free"][0], serde_json::json!({"start": 544_768, "length": 503_296}));
        let want = serde_json::json!({
            "index": 1, "name": "ada0p1", "start": 20480, "length": 524_288, "type": "freebsd-boot",
            "raw_type": "83bd6b9d-7f41-11dc-be0b-001560b84f0f", "label": null, "uuid": null, "attributes": ["bootme"],
            "largest_grain": 4096, "aligned": true, "misses": [],
        });
        assert_eq!(table["entries"][0], want);
        let off = &table["entries"][1];
        assert_eq!((&off["aligned"], &off["largest_grain"]), (&false.into(), &512.into()));
        assert_eq!(
            off["misses"],
            serde_json::json!([{"why": "physical", "unit": 4096, "remainder": 3584, "rmw_factor": 4.0}])
        );
    }
}
