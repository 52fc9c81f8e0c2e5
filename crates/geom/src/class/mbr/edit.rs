//! Editing the MBR's own four entries.
//!
//! The table is one sector and one write. An entry keeps its slot; unused slots, the bytes at 444
//! and the boot code keep their contents. A new extended partition gets an empty EBR first:
//! leftovers in its place would be read as a chain.
//!
//! # On disk
//! CHS fields are for geometry 255/63 as sfdisk writes them, `FE FF FF` past cylinder 1023; of a
//! table that carries gpart's geometry they are gpart's, `FF FF FF` past it. They change only with
//! the place of their partition.
//!
//! A new table keeps the boot code of a boot sector that has no file system in it, as sfdisk and
//! parted do: a system that boots from there goes on booting. Other contents go: the start of an
//! old file system would be found again.
//!
//! # Limits
//! Starts and sizes are below 2^32 sectors; partitions end there too, as FreeBSD has it. One
//! extended partition.
//!
//! # Sources
//! As [`super`]; util-linux `libfdisk/src/dos.c`; FreeBSD `g_part_mbr.c`.

use super::convert::convert;
use super::ebr::{Medium, walk};
use super::kinds::kind;
use super::{Mbr, PartitionRecord, Record, TRACK};
use crate::base::patch::Patch;
use crate::base::resize::{Tables, Write};
use crate::base::store::{Sparse, Store};
use crate::base::topology::round_down;
use crate::class::{Class, Taste};
use crate::mapping::partition::Partition;
use crate::mapping::slices::{PartitionType, place};
use crate::probe::Probe;
use crate::table::scheme::{Attribute, Geometry, Id, New, Scheme, TableSite};
use crate::table::{Advice, Entry, Property, Refusal, Rules, Table};
use std::ops::Range;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// Number of entries in a table.
const ENTRIES: u32 = 4;
/// Attributes of an MBR's entries.
pub(super) const ATTRIBUTES: &[Attribute] =
    &[Attribute { name: "active", bit: 0x80, of_table: false, exclusive: true }];
/// Entry that is not used.
pub(super) const BLANK: PartitionRecord = PartitionRecord {
    boot_indicator: 0,
    starting_chs: [0; 3],
    os_type: 0,
    ending_chs: [0; 3],
    starting_lba: U32::ZERO,
    size_in_lba: U32::ZERO,
};

impl Record {
    /// A record without entries, boot code and disk signature.
    pub(super) fn empty() -> Record {
        Record { signature: [0x55, 0xaa], ..Record::new_zeroed() }
    }

    /// The record at byte `at` of the bytes that were read.
    pub(super) fn read_at(raw: &Sparse, at: u64) -> Option<Record> {
        let mut bytes = [0; size_of::<Record>()];
        raw.read_at(&mut bytes, at).ok()?;
        Record::read_from_bytes(&bytes).ok()
    }

    /// The sector at byte `at` of the bytes that were read, with this record in it.
    pub(super) fn within(&self, raw: &Sparse, at: u64, sector: u64) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(sector).unwrap_or(0).max(size_of::<Record>())];
        // Bytes that were not read are zero.
        let _ = raw.read_at(&mut bytes, at);
        bytes[..size_of::<Record>()].copy_from_slice(self.as_bytes());
        bytes
    }
}

impl PartitionRecord {
    /// Turns this into the entry for `entry`, which counts from byte `origin`.
    pub(super) fn set(&mut self, table: &Table, entry: &Entry, origin: u64) -> Result<(), Refusal> {
        let PartitionType::Mbr(os_type) = entry.partition.kind else { return Err(foreign(table)) };
        let sectors = |bytes: u64, what: &str| {
            let found = || {
                format!(
                    "{what} of {} sectors does not fit the {}",
                    bytes / table.sector,
                    table.scheme
                )
            };
            u32::try_from(bytes / table.sector)
                .map_err(|_| Refusal::new(found(), format!("the most is {}; use GPT", u32::MAX)))
        };
        let start = entry
            .partition
            .start
            .checked_sub(origin)
            .ok_or_else(|| Refusal::new("a start before the table it is in", ""))?;
        let (start, size) =
            (sectors(start, "a start")?, sectors(entry.partition.length, "a size")?);
        (self.os_type, self.boot_indicator) = (os_type, entry.attributes.to_le_bytes()[0]);
        if (self.starting_lba.get(), self.size_in_lba.get()) != (start, size) {
            (self.starting_lba, self.size_in_lba) = (start.into(), size.into());
            let first = table.origin.saturating_add(entry.partition.start) / table.sector;
            self.set_chs(table, first, u64::from(size));
        }
        Ok(())
    }

    /// Sets the CHS fields for `size` sectors from `first`.
    pub(super) fn set_chs(&mut self, table: &Table, first: u64, size: u64) {
        let chs = |lba| match table.geometry {
            Some(geometry) => geometry.chs(lba, [0xff; 3]),
            None => Geometry::LBA.chs(lba, [0xfe, 0xff, 0xff]),
        };
        self.starting_chs = chs(first);
        self.ending_chs = chs(first.saturating_add(size).saturating_sub(1));
    }
}

/// The refusal of a type of another scheme.
fn foreign(table: &Table) -> Refusal {
    Refusal::new(
        format!("a type that is none of {}'s", table.scheme),
        "use an alias such as linux-data, or a byte such as 0x83",
    )
}

/// Checks an entry's type, apart from the table's place in the stack.
pub(super) fn check_kind(table: &Table, entry: &Entry) -> Result<u8, Refusal> {
    match entry.partition.kind {
        PartitionType::Mbr(0) => {
            Err(Refusal::new("type 0 is that of unused entries", "choose another"))
        }
        PartitionType::Mbr(super::PROTECTIVE) => {
            Err(Refusal::new("type 0xee protects a GPT", "create a GPT, which makes it itself"))
        }
        PartitionType::Mbr(_) if entry.partition.label.is_some() => Err(Refusal::new(
            format!("{} has no labels", table.scheme),
            Advice::LeaveOut(Property::Label),
        )),
        PartitionType::Mbr(byte) => Ok(byte),
        _ => Err(foreign(table)),
    }
}

/// Entries in use, as they are on the disk.
fn entries(record: &Record, sector: u64) -> Vec<Entry> {
    let entry = |(index, slot): (u32, &PartitionRecord)| Entry {
        partition: Partition::new(index, slot.start() * sector, slot.size() * sector, slot.kind()),
        attributes: u64::from(slot.boot_indicator),
        from: Some(index),
    };
    record.used().map(entry).collect()
}

/// A table without entries on `length` bytes.
pub(super) fn blank(scheme: &'static dyn Scheme, sector: u64, length: u64) -> Table {
    let end = (length / sector).min(u64::from(u32::MAX)) * sector;
    Table {
        usable: (TRACK * sector).min(end)..end,
        capacity: ENTRIES,
        ..Table::new(scheme, sector, length)
    }
}

/// Refuses providers on which no table can be.
pub(super) fn check_site(probe: &Probe<'_>) -> Result<(), Refusal> {
    let (sector, length) = (probe.sector(), probe.length());
    if !sector.is_power_of_two() || !(512..=4096).contains(&sector) {
        return Err(Refusal::new(format!("sectors of {sector} bytes"), "an MBR needs 512 to 4096"));
    }
    if length < 2 * sector {
        return Err(Refusal::new(
            format!("{length} bytes are too few for a table"),
            format!("the least is {}", 2 * sector),
        ));
    }
    Ok(())
}

impl Scheme for Mbr {
    fn name(&self) -> &'static str {
        "MBR"
    }

    fn read(&self, probe: &Probe<'_>) -> Option<Table> {
        let refused = match self.taste(probe) {
            Taste::Geom(..) => Vec::new(),
            Taste::Refused(findings) => findings,
            Taste::No | Taste::Member(_) => return None,
        };
        let (record, sector, length) = (Record::read(probe)?, probe.sector(), probe.length());
        let mut table = blank(&Mbr, sector, length);
        table.raw.put(0, &probe.bytes(0, usize::try_from(sector).ok()?)?);
        table.entries = entries(&record, sector);
        table.id = Some(Id::Signature(record.unique_mbr_disk_signature.get()));
        let read = |at| probe.read(at);
        let chains: Vec<Range<u64>> = extended(&table).map(|e| within(e, length)).collect();
        for chain in chains {
            for link in walk(&Medium::of(&read, sector, length), &chain, 5).links {
                table.raw.put(link.at, link.record.as_bytes());
            }
        }
        table.damage = refused.into_iter().map(|f| f.message).collect();
        if table.damage.is_empty() {
            table.damage = damage(&table, &record);
        }
        self.settle(&mut table);
        Some(table)
    }

    fn create(&self, probe: &Probe<'_>, site: &TableSite<'_>, new: &New) -> Result<Table, Refusal> {
        check_site(probe)?;
        if let Some(PartitionType::Mbr(_)) = site.kind {
            return Err(Refusal::new(
                "an MBR inside a partition of an MBR is read by no system",
                "use an extended partition, or GPT",
            ));
        }
        if let Some(entries) = new.entries.filter(|&n| n != ENTRIES) {
            return Err(Refusal::new(
                format!("{entries} entries"),
                "an MBR has 4; more fit an extended partition, or GPT",
            ));
        }
        let mut table = blank(&Mbr, probe.sector(), probe.length());
        table.usable = new.usable(table.usable.clone(), self.bounds(&table), table.sector)?;
        table.geometry = match (new.geometry, new.rules) {
            (None, Rules::Aligned) => None,
            (None, Rules::Gpart | Rules::Gpart9) => {
                Some(Geometry::derive(table.length, table.sector))
            }
            (given, _) => given,
        };
        table.id = Some(Id::Signature(match new.id {
            Some(Id::Signature(id)) => id,
            Some(_) => {
                return Err(Refusal::new(
                    "an identity that is none of an MBR's",
                    "use a number of 32 bits",
                ));
            }
            // Zero is the value of a disk without a signature.
            None => new
                .random
                .chunks_exact(4)
                .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                .find(|&id| id != 0)
                .unwrap_or(1),
        }));
        let sector = usize::try_from(table.sector).unwrap_or(0);
        let mut first = probe
            .bytes(0, sector)
            .ok_or_else(|| Refusal::new("the first sector cannot be read", ""))?;
        // In a larger sector a BSD label follows the boot sector.
        first.iter_mut().skip(512).for_each(|byte| *byte = 0);
        table.raw.put(0, &first);
        Ok(table)
    }

    fn suffix(&self, entry: &Entry) -> String {
        format!("s{}", entry.partition.index)
    }

    fn kind(&self, name: &str) -> Option<PartitionType> {
        kind(name)
    }

    fn attributes(&self) -> &'static [Attribute] {
        ATTRIBUTES
    }

    fn accept(&self, table: &Table, entry: &Entry) -> Result<(), Refusal> {
        check_kind(table, entry)?;
        BLANK.clone().set(table, entry, 0)?;
        let was = table
            .entry(entry.partition.index)
            .filter(|e| e.from == entry.from && e.partition.start == entry.partition.start);
        let is_extended = entry.partition.kind.is_extended();
        if let Some(was) = was.filter(|e| e.partition.kind.is_extended() != is_extended) {
            let found = format!(
                "s{} would {} an extended partition",
                was.partition.index,
                if was.partition.kind.is_extended() { "no longer be" } else { "become" }
            );
            return Err(Refusal::new(found, "delete it and add another in its place"));
        }
        if !is_extended {
            return Ok(());
        }
        if let Some(other) = extended(table).find(|e| e.partition.index != entry.partition.index) {
            let found = format!("s{} is an extended partition already", other.partition.index);
            return Err(Refusal::new(found, "logical partitions go into that one"));
        }
        match last_logical(table, entry) {
            Some((suffix, end)) if end > entry.partition.end() => {
                let found = format!(
                    "{suffix} ends at {}, past the end the extended partition is to have",
                    place(end, table.sector)
                );
                Err(Refusal::new(found, "delete or shrink it first"))
            }
            _ => Ok(()),
        }
    }

    fn render(&self, before: &Table, after: &Table) -> Vec<Patch> {
        let (sector, raw) = (before.sector, &before.raw);
        let Some(now) = Record::read_at(raw, 0) else { return Vec::new() };
        let is_read = now.is_signed()
            && entries(&now, sector) == before.entries
            && id(before) == now.unique_mbr_disk_signature.get();
        let start = if is_read { now.clone() } else { fresh(&now) };
        let raw = if is_read { raw } else { &Sparse::new(before.length) };
        let is_new = |e: &&Entry| {
            e.partition.kind.is_extended()
                && !before.entries.iter().any(|b| {
                    b.partition.kind.is_extended() && b.partition.start == e.partition.start
                })
        };
        let mut patches = Vec::new();
        let last = record(&start, after, |_| true);
        for entry in after.entries.iter().filter(is_new) {
            // An EBR is never written into the range of a partition of the table on the disk.
            let sectors = entry.partition.start..entry.partition.start.saturating_add(sector);
            if before
                .entries
                .iter()
                .any(|e| e.partition.start < sectors.end && sectors.start < e.partition.end())
            {
                let without = record(&start, after, |e| e.from.is_some());
                patches.push(Patch::new(
                    0,
                    without.within(raw, 0, sector),
                    "MBR without what is deleted",
                ));
            }
            let ebr = Record::empty().within(&Sparse::new(0), 0, sector);
            patches.push(in_order(&patches, Patch::new(entry.partition.start, ebr, "empty EBR")));
        }
        if last != now || !patches.is_empty() {
            patches.push(in_order(&patches, Patch::new(0, last.within(raw, 0, sector), "MBR")));
        }
        patches
    }

    fn erase(&self, table: &Table) -> Vec<Patch> {
        vec![Patch::new(0, vec![0; usize::try_from(table.sector).unwrap_or(0)], "MBR")]
    }

    fn convert(&self, table: &Table, tables: &Tables<'_>) -> Result<Vec<Write>, Refusal> {
        convert(table, tables)
    }

    /// Opens the first track only if a partition is in it already, as GEOM does: boot loaders live
    /// there.
    fn settle(&self, table: &mut Table) {
        if table.entries.iter().any(|e| e.partition.start < table.usable.start) {
            table.usable.start = table.sector;
        }
    }

    fn bounds(&self, table: &Table) -> Range<u64> {
        table.sector..table.usable.end
    }

    /// Cuts partitions at the end of the medium, which is all that can be done: an MBR has no
    /// second copy.
    fn recover(&self, table: &Table, _site: &TableSite<'_>) -> Result<Table, Refusal> {
        let Some(record) = Record::read_at(&table.raw, 0).filter(|r| !r.protects_gpt()) else {
            return Err(Refusal::new(
                "this MBR protects a GPT that is not there",
                "recover the GPT, or destroy what is left of it",
            ));
        };
        let end = round_down(table.length, table.sector);
        let mut whole =
            Table { damage: Vec::new(), entries: entries(&record, table.sector), ..table.clone() };
        if let Some(lost) = whole.entries.iter().find(|e| e.partition.start >= end) {
            let found = format!(
                "s{} begins at {}, past the end of {} bytes",
                lost.partition.index,
                place(lost.partition.start, table.sector),
                table.length
            );
            return Err(Refusal::new(
                found,
                "give the disk or image its length back, or destroy the table",
            ));
        }
        for Entry { partition, .. } in &mut whole.entries {
            partition.length = partition.length.min(end - partition.start);
        }
        Ok(whole)
    }
}

/// The patch, after a flush of those in `before`.
pub(super) fn in_order(before: &[Patch], patch: Patch) -> Patch {
    if before.is_empty() { patch } else { patch.after_flush() }
}

fn id(table: &Table) -> u32 {
    match table.id {
        Some(Id::Signature(id)) => id,
        _ => 0,
    }
}

/// The record from which a new table begins, on the present contents of the sector.
fn fresh(now: &Record) -> Record {
    let keeps = now.is_signed() && !now.is_boot_sector();
    Record { boot_code: if keeps { now.boot_code } else { [0; 440] }, ..Record::empty() }
}

/// The record `start` with the entries of `table` that `counts` selects.
fn record(start: &Record, table: &Table, counts: impl Fn(&Entry) -> bool) -> Record {
    let mut record = Record {
        unique_mbr_disk_signature: id(table).into(),
        signature: [0x55, 0xaa],
        ..start.clone()
    };
    for (index, slot) in (1..).zip(&mut record.partition_record) {
        match table.entry(index).filter(|e| counts(e)) {
            Some(entry) => {
                let was = entry.from.and_then(|from| {
                    start.partition_record.get(usize::try_from(from).ok()?.checked_sub(1)?)
                });
                let mut bytes = was.copied().unwrap_or(BLANK);
                // An entry that does not fit was refused by `accept`.
                if bytes.set(table, entry, 0).is_ok() {
                    *slot = bytes;
                }
            }
            None if slot.is_used() => *slot = BLANK,
            None => {}
        }
    }
    record
}

fn extended(table: &Table) -> impl Iterator<Item = &Entry> {
    table.entries.iter().filter(|e| e.partition.kind.is_extended())
}

/// Bytes of an extended partition on a disk of `length` bytes.
pub(super) fn within(entry: &Entry, length: u64) -> Range<u64> {
    let range = entry.partition.range();
    range.start..range.end.min(length).max(range.start)
}

/// Name and end in bytes of the logical partition in `entry` that ends last.
fn last_logical(table: &Table, entry: &Entry) -> Option<(String, u64)> {
    let was = table.entries.iter().find(|e| {
        e.from.is_some() && e.from == entry.from && e.partition.start == entry.partition.start
    })?;
    let read = |at| Record::read_at(&table.raw, at);
    let medium = Medium::of(&read, table.sector, table.length);
    let logicals = walk(&medium, &within(was, table.length), 5).logicals;
    logicals.into_iter().map(|l| (l.suffix, l.partition.end())).max_by_key(|(_, end)| *end)
}

/// Damage, in words, with which a table must not be edited.
fn damage(table: &Table, record: &Record) -> Vec<String> {
    let out = |e: &Entry| {
        let found = format!(
            "s{} ends at {}, past the end of {} bytes",
            e.partition.index,
            place(e.partition.end(), table.sector),
            table.length
        );
        (e.partition.end() > table.length).then_some(found)
    };
    let mut damage: Vec<String> = table.entries.iter().filter_map(out).collect();
    if record.protects_gpt() {
        damage.push("one of its entries protects a GPT that is not there".into());
    }
    damage
}
