//! `GPT` as a table that can be edited: reading, checks of entries, creation and recovery.
//!
//! # Attributes
//! An entry's are its 64 bits as they are on the disk. The table's two are the protective MBR's:
//! [`ACTIVE`] is its entry's flag, without which some firmware boots nothing from the disk;
//! [`LENOVOFIX`] is that entry in the second slot, without which some ThinkPads do not.
//!
//! # Limits
//! A table needs `recover` where a copy is bad, where the two differ, where the backup is not in
//! the last sector, and where the protective MBR is missing: as FreeBSD, which allows nothing else
//! on such a table. An entry that overlaps another or lies outside the range for partitions can be
//! edited, since that is the only way to correct it.
//!
//! # Sources
//! UEFI 2.10 §5.3; FreeBSD `sys/geom/part/g_part_gpt.c`, gpart(8); systemd, "Discoverable
//! Partitions" (bits 59 to 63); Linux `libfdisk/src/gpt.c` (names of attributes).

use super::copies::{Copies, Copy};
use super::structures::{self, SIGNATURE};
use super::{FREEBSD, Gpt, Guard, convert, damage, write};
use crate::base::ondisk;
use crate::base::patch::Patch;
use crate::base::resize::{Aim, Tables, Write};
use crate::base::size::PAGE;
use crate::base::store::{Sparse, Store};
use crate::base::topology::{is_whole, round_down, round_up};
use crate::class::mbr::Record;
use crate::mapping::partition::Partition;
use crate::mapping::route::Route;
use crate::mapping::slices::{PartitionType, place};
use crate::probe::{Budget, Limits, Probe};
use crate::table::scheme::{Attribute, Id, New, Scheme, TableSite};
use crate::table::{Entry, Refusal, Rules, Table, types};
use std::ops::Range;

/// Table attribute: the protective entry's flag is 80.
pub(super) const ACTIVE: u64 = 1;
/// Table attribute: the protective entry is in the second slot.
pub(super) const LENOVOFIX: u64 = 2;

/// Attributes: gpart's first, then UEFI's and those of single types.
const ATTRIBUTES: &[Attribute] = &[
    of_entry("bootme", BOOTME),
    of_entry("bootonce", BOOTONCE),
    of_entry("bootfailed", 57),
    of_entry("required", 0),
    of_entry("noblockio", 1),
    of_entry("legacyboot", 2),
    of_entry("readonly", 60),
    of_entry("shadow", 61),
    of_entry("hidden", 62),
    of_entry("noauto", 63),
    of_table("active", ACTIVE),
    of_table("lenovofix", LENOVOFIX),
];
const BOOTME: u32 = 59;
const BOOTONCE: u32 = 58;

const fn of_entry(name: &'static str, bit: u32) -> Attribute {
    Attribute { name, bit: 1 << bit, of_table: false, exclusive: false }
}

const fn of_table(name: &'static str, bit: u64) -> Attribute {
    Attribute { name, bit, of_table: true, exclusive: false }
}

/// Default number of entries: UEFI's 16 KiB.
const ENTRIES: u32 = 128;
/// Least number of entries. gpart makes no fewer than 128; sfdisk and sgdisk do where room is
/// short, and every kernel reads them. Below four a table holds less than an MBR.
const FEWEST: u32 = 4;
/// Largest number of entries that FreeBSD reads.
const MOST: u32 = 4096;
/// Longest name in UTF-16 code units.
const NAME: usize = 36;
impl Scheme for Gpt {
    fn name(&self) -> &'static str {
        "GPT"
    }

    fn read(&self, probe: &Probe<'_>) -> Option<Table> {
        let sector = probe.sector();
        if !(512..=65536).contains(&sector) || probe.length() < 4 * sector {
            return None;
        }
        let guard = Guard::read(probe);
        let copies = Copies::read(probe, sector, guard.protected());
        let mut table = match (&guard, copies.best()) {
            (Guard::Mbr, _) | (Guard::Absent, None) => return None,
            (_, Some((copy, _))) => read(probe, &copies, copy, &guard),
            // Nothing can be recovered, but the remains can be destroyed.
            (Guard::Protective(_), None) => {
                let flaws = [copies.primary.as_ref().err(), copies.backup.as_ref().err()];
                let damage = flaws.into_iter().flatten().map(|f| f.text().to_string()).collect();
                Table { damage, ..empty(probe.length(), sector, 0..0, 0) }
            }
        };
        // All bytes that a recovery may write too; the last sector of a table may hold more than
        // the table.
        let room = write::array_sectors(&copies, sector).saturating_add(2).saturating_mul(sector);
        let end = round_down(probe.length(), sector);
        for (at, bytes) in
            copies.arrays(sector).chain([(0, room), (end.saturating_sub(room), room)])
        {
            probe.bytes(at, usize::try_from(bytes).unwrap_or(usize::MAX));
        }
        table.raw = probe.seen();
        Some(table)
    }

    fn create(
        &self,
        probe: &Probe<'_>,
        _site: &TableSite<'_>,
        new: &New,
    ) -> Result<Table, Refusal> {
        let (sector, length) = (probe.sector(), probe.length());
        let entries = new.entries.unwrap_or(ENTRIES);
        if !(FEWEST..=MOST).contains(&entries) {
            return Err(Refusal::new(
                format!("{entries} entries"),
                format!("a GPT has {FEWEST} to {MOST}, usually {ENTRIES}"),
            ));
        }
        let front =
            2 + (u64::from(entries) * size_of::<structures::GptEntry>() as u64).div_ceil(sector);
        let least = (2 * front).saturating_mul(sector);
        let outer =
            front * sector..(length / sector).saturating_sub(front - 1).saturating_mul(sector);
        if outer.is_empty() || !(512..=65536).contains(&sector) {
            let found = format!(
                "{length} bytes are too few for a GPT of {entries} entries and {sector}-byte sectors"
            );
            return Err(Refusal::new(found, format!("it takes {least}, or fewer entries")));
        }
        let id = match new.id {
            None => ondisk::Guid::random(new.random),
            Some(Id::Guid(guid)) => guid,
            Some(_) => {
                return Err(Refusal::new(
                    "an identity that is no GUID",
                    "a GPT is known by a GUID",
                ));
            }
        };
        let Some(mut boot) = usize::try_from(sector).ok().and_then(|sector| probe.bytes(0, sector))
        else {
            return Err(Refusal::new("sector 0 cannot be read", "nothing was written"));
        };
        // Boot code may stay; a file system's boot sector would still describe the whole disk as
        // one.
        let keep = Record::read(probe).filter(|record| !record.is_boot_sector()).map_or(0, |_| 440);
        boot[keep..440].fill(0);
        // In a larger sector a BSD label follows the boot sector.
        boot.iter_mut().skip(512).for_each(|byte| *byte = 0);
        let mut raw = Sparse::new(length);
        raw.put(0, &boot);
        // Other contents in the table's place do not belong to it; but a label may stand there, and
        // decides the order of the writes.
        if let Some(other) =
            probe.bytes(sector, boot.len()).filter(|bytes| !bytes.starts_with(SIGNATURE))
        {
            raw.put(sector, &other);
        }
        let usable = usable(new, outer, sector)?;
        Ok(Table { id: Some(Id::Guid(id)), raw, ..empty(length, sector, usable, entries) })
    }

    fn suffix(&self, entry: &Entry) -> String {
        format!(
            "{}{}",
            if entry.partition.kind == PartitionType::Gpt(FREEBSD) { 's' } else { 'p' },
            entry.partition.index
        )
    }

    fn kind(&self, name: &str) -> Option<PartitionType> {
        let text = types::named(name)
            .map_or(Some(name.strip_prefix('!').unwrap_or(name)), |alias| alias.gpt)?;
        text.parse().ok().map(PartitionType::Gpt)
    }

    fn keeps_usable(&self) -> bool {
        true
    }

    fn has_guids(&self) -> bool {
        true
    }

    fn attributes(&self) -> &'static [Attribute] {
        ATTRIBUTES
    }

    /// Adds `bootme` to `bootonce`: a partition that is booted once must be bootable.
    fn sets(&self, attribute: &Attribute) -> u64 {
        if attribute.bit == 1 << BOOTONCE { attribute.bit | 1 << BOOTME } else { attribute.bit }
    }

    fn accept(&self, table: &Table, entry: &Entry) -> Result<(), Refusal> {
        match entry.partition.kind {
            PartitionType::Gpt(guid) if !guid.is_nil() => {}
            PartitionType::Gpt(_) => {
                return Err(Refusal::new(
                    "the type of an unused entry",
                    "delete the partition instead",
                ));
            }
            _ => {
                return Err(Refusal::new(
                    "a type that is no GUID",
                    "name one of gpart's, or give its GUID",
                ));
            }
        }
        if !is_whole(entry.partition.start, table.sector)
            || !is_whole(entry.partition.length, table.sector)
        {
            let found = format!("{} bytes at {}", entry.partition.length, entry.partition.start);
            return Err(Refusal::new(
                found,
                format!("use whole sectors of {} bytes", table.sector),
            ));
        }
        if let Some(label) = &entry.partition.label {
            let units = label.encode_utf16().count();
            if units > NAME {
                return Err(Refusal::new(
                    format!("a label of {units} UTF-16 units"),
                    format!("a GPT has room for {NAME}"),
                ));
            }
            if label.chars().any(char::is_control) {
                return Err(Refusal::new("a control character in the label", "leave it out"));
            }
        }
        if entry.from.is_none() && entry.partition.guid.is_none() {
            return Err(Refusal::new(
                "a partition without a GUID",
                "a GPT tells partitions apart by it",
            ));
        }
        match table.entries.iter().find(|e| {
            e.partition.index != entry.partition.index
                && e.partition.guid.is_some()
                && e.partition.guid == entry.partition.guid
        }) {
            Some(twin) => Err(Refusal::new(
                format!("index {} has the same GUID", twin.partition.index),
                "give each partition one of its own",
            )),
            None => Ok(()),
        }
    }

    fn render(&self, before: &Table, after: &Table) -> Vec<Patch> {
        reread(before, |probe, guard, copies| write::render(probe, guard, copies, before, after))
    }

    fn erase(&self, table: &Table) -> Vec<Patch> {
        reread(table, write::erase)
    }

    fn tail(&self, table: &Table, aim: &Aim) -> u64 {
        reread(table, |_, _, copies| convert::tail(copies, aim))
    }

    fn convert(&self, table: &Table, tables: &Tables<'_>) -> Result<Vec<Write>, Refusal> {
        reread(table, |probe, guard, copies| convert::convert(probe, guard, copies, table, tables))
    }

    fn recover(&self, table: &Table, _site: &TableSite<'_>) -> Result<Table, Refusal> {
        if table.damage.is_empty() {
            return Ok(table.clone());
        }
        let room = reread(table, |_, _, copies| {
            copies.best().map(|_| write::array_sectors(copies, table.sector))
        });
        let Some(room) = room else {
            let advice = "look for the partitions by their contents (testdisk), or destroy it and \
                create one anew";
            return Err(Refusal::new("neither copy of the GPT can be used", advice));
        };
        let sector = table.sector;
        let front = room.saturating_add(2).saturating_mul(sector);
        let back =
            (table.length / sector).saturating_sub(room.saturating_add(1)).saturating_mul(sector);
        let lost = table.entries.iter().find(|e| {
            e.partition.length > 0 && (e.partition.start < front || e.partition.end() > back)
        });
        if let Some(entry) = lost {
            let found = format!(
                "{} takes {} up to {}",
                self.suffix(entry),
                place(entry.partition.start, sector),
                place(entry.partition.end(), sector)
            );
            let bounds = format!(
                "the table leaves {} up to {} for partitions",
                place(front, sector),
                place(back, sector)
            );
            let advice = "restore the full length of the disk or image; or part backup, and part \
                restore -F without that partition";
            return Err(Refusal::new(format!("{found}, and {bounds}"), advice));
        }
        let start = table.usable.start.max(front);
        // A range that was made on pages stays on pages.
        let paged = round_down(back, PAGE);
        let on_pages = is_whole(table.usable.end, PAGE)
            && table.entries.iter().all(|e| e.partition.end() <= paged);
        let end = if on_pages { paged } else { back };
        if start >= end {
            return Err(Refusal::new(
                format!("{} bytes leave no room for partitions", table.length),
                "restore the full length",
            ));
        }
        Ok(Table { usable: start..end, damage: Vec::new(), ..table.clone() })
    }
}

/// An empty table with that usable range and room for entries.
fn empty(length: u64, sector: u64, usable: Range<u64>, capacity: u32) -> Table {
    Table { usable, capacity, ..Table::new(&Gpt, sector, length) }
}

/// The table that `copy` describes, with its damage.
fn read(probe: &Probe<'_>, copies: &Copies, copy: &Copy, guard: &Guard) -> Table {
    let (sector, length) = (probe.sector(), probe.length());
    let header = &copy.header;
    let byte = |lba: u64| lba.saturating_mul(sector);
    let usable = byte(header.first_usable_lba.get()).min(length)
        ..byte(header.last_usable_lba.get().saturating_add(1)).min(length);
    let mut damage: Vec<String> =
        damage(probe, copies, guard).into_iter().map(|finding| finding.message).collect();
    if damage.is_empty() && !write::is_apart(copies, sector) {
        damage.push(
            "the two copies of its table are not where each can be written without \
            touching the other"
                .into(),
        );
    }
    let entry = |(index, e): (u32, structures::GptEntry)| {
        let (first, last) = (e.starting_lba.get(), e.ending_lba.get());
        Entry {
            partition: Partition {
                index,
                start: byte(first),
                // An entry that ends before it begins is shown with no bytes; its bytes on the disk
                // stay.
                length: if first > last {
                    0
                } else {
                    byte(last.saturating_add(1)).saturating_sub(byte(first))
                },
                kind: PartitionType::Gpt(e.partition_type_guid),
                label: ondisk::text_utf16(&e.partition_name),
                guid: (!e.unique_partition_guid.is_nil()).then_some(e.unique_partition_guid),
            },
            attributes: e.attributes.get(),
            from: Some(index),
        }
    };
    Table {
        id: Some(Id::Guid(header.disk_guid)),
        entries: copy.used().map(entry).collect(),
        attributes: guard.attributes(),
        damage,
        ..empty(length, sector, usable, header.number_of_partition_entries.get())
    }
}

/// The range in which partitions may lie in a new table that leaves `outer`.
fn usable(new: &New, outer: Range<u64>, sector: u64) -> Result<Range<u64>, Refusal> {
    let paged = round_up(outer.start, PAGE).unwrap_or(u64::MAX)..round_down(outer.end, PAGE);
    let usual = if new.rules == Rules::Gpart && !paged.is_empty() { paged } else { outer.clone() };
    new.usable(usual, outer, sector)
}

/// The result of `look` at the bytes that a table was read from.
fn reread<T>(table: &Table, look: impl FnOnce(&Probe<'_>, &Guard, &Copies) -> T) -> T {
    let route = Route::store(0, table.length);
    let stores: [Box<dyn Store>; 1] = [Box::new(table.raw.clone())];
    let budget = Budget::new(Limits { bytes: u64::MAX, ..Limits::default() });
    let probe = Probe::new(&route, &stores, &budget, table.sector, Some(0), None);
    let guard = Guard::read(&probe);
    let copies = Copies::read(&probe, table.sector, guard.protected());
    look(&probe, &guard, &copies)
}
