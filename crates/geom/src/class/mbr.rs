//! `mbr`: the PC's partition table, with the chain of logical partitions (`ebr.rs`).
//!
//! # On disk
//! Sector 0: four entries of 16 bytes at byte 446, `55 AA` at 510. Starts and sizes are 32-bit, in
//! the provider's logical Sector 0: four entries of 16 bytes at byte 446, `55 AA` at 510. Starts
//! and sizes are 32-bit, in the provider's logical sectors. The same two bytes end every boot
//! sector, so a table is distinguished by its entries: flags are 00 or 80, and a sector that holds
//! a FAT, exFAT or NTFS parameter block is a table only if every entry makes sense. The fake entry
//! of FreeBSD's boot1 (start 0, size 50000) is no partition. An entry that begins inside and ends
//! past the end is cut, as Linux does; one that begins past the end is left out. The sector size
//! that entries count in is not recorded: an image is taken to be of 4096-byte sectors where its
//! partitions hold something recognised there, and nothing on sectors of 512. A provider whose
//! sector is named is read as named, and the contradiction is a finding.
//!
//! # Topology
//! Slices of the disk.
//!
//! # Limits
//! No MBR is looked for in a slice of another: neither FreeBSD nor Linux does. CHS fields are not
//! read, only written.
//!
//! # Sources
//! UEFI 2.10 §5.2 (names); FreeBSD `sys/geom/part/g_part_mbr.c` (probe); Linux
//! `block/partitions/msdos.c`, `core.c`.

use self::ebr::Medium;
use super::{Class, Recognises, Taste, gpt};
use crate::base::finding::{self, Finding, Fix, Severity};
use crate::base::ondisk::on_disk;
use crate::base::topology::round_down;
use crate::mapping::partition::Partition;
use crate::mapping::slices::{
    PartitionType, Slice, Slices, bounded, out_of_range, overlaps, place,
};
use crate::probe::Probe;
use crate::table::scheme::Scheme;
use std::ops::Range;
use std::sync::Arc;
use zerocopy::IntoBytes;
use zerocopy::little_endian::U32;

mod chain;
mod convert;
mod ebr;
mod edit;
mod edit_ebr;
mod kinds;
pub mod shift;

/// The class `mbr`, for the PC's tables.
pub struct Mbr;

/// Scheme for the chain inside an extended partition, as a table of its own: it is edited, not
/// tasted.
pub struct Ebr;

on_disk! {
    /// One partition record (UEFI 2.10, table 5.2).
    #[derive(Clone, Copy, PartialEq, Eq, IntoBytes)]
    pub(super) struct PartitionRecord of 16 bytes {
         0 => boot_indicator: u8,
         1 => starting_chs: [u8; 3],
         4 => os_type: u8,
         5 => ending_chs: [u8; 3],
         8 => starting_lba: U32,
        12 => size_in_lba: U32,
    }
}

on_disk! {
    /// A sector with a table (UEFI 2.10, table 5.1); an EBR has the same shape.
    #[derive(Clone, PartialEq, Eq, IntoBytes)]
    pub(super) struct Record of 512 bytes {
          0 => boot_code: [u8; 440],
        440 => unique_mbr_disk_signature: U32,
        444 => unknown: [u8; 2],
        446 => partition_record: [PartitionRecord; 4],
        510 => signature: [u8; 2],
    }
}

/// Type of the entry that protects a GPT.
pub(super) const PROTECTIVE: u8 = 0xee;
/// Sectors in a track by default: GEOM keeps the first track free for boot code.
const TRACK: u64 = 63;

impl PartitionRecord {
    /// First sector, from the origin that this entry counts from.
    pub(super) fn start(&self) -> u64 {
        u64::from(self.starting_lba.get())
    }

    /// Number of its sectors.
    pub(super) fn size(&self) -> u64 {
        u64::from(self.size_in_lba.get())
    }

    /// Sector after the last one.
    pub(super) fn end(&self) -> u64 {
        self.start() + self.size()
    }

    /// True if this is the entry that protects a GPT.
    pub(super) fn is_protective(&self) -> bool {
        self.os_type == PROTECTIVE
    }

    /// True if its flag marks it as bootable.
    pub(super) fn is_active(&self) -> bool {
        self.boot_indicator == 0x80
    }

    /// True if it has the type `os_type`.
    pub(super) fn is_of(&self, os_type: u8) -> bool {
        self.os_type == os_type
    }

    fn kind(&self) -> PartitionType {
        PartitionType::Mbr(self.os_type)
    }

    /// True if this entry makes a partition.
    fn is_used(&self) -> bool {
        self.os_type != 0 && !self.is_protective() && self.start() != 0 && self.size() != 0
    }
}

impl Record {
    /// The record in sector 0, if it ends as a boot sector does.
    pub(super) fn read(probe: &Probe<'_>) -> Option<Record> {
        probe.read::<Record>(0).filter(Record::is_signed)
    }

    /// Signature of the disk, of which Linux makes the UUIDs of its partitions; `None` for 0.
    fn disk_signature(&self) -> Option<u32> {
        Some(self.unique_mbr_disk_signature.get()).filter(|&signature| signature != 0)
    }

    pub(super) fn is_signed(&self) -> bool {
        self.signature == [0x55, 0xaa]
    }

    /// All four entries, used or not.
    pub(super) fn entries(&self) -> &[PartitionRecord; 4] {
        &self.partition_record
    }

    /// True if one of its entries protects a GPT.
    pub(super) fn protects_gpt(&self) -> bool {
        self.entries().iter().any(PartitionRecord::is_protective)
    }

    /// Gives the entry that protects a GPT so many sectors.
    pub(super) fn protect(&mut self, sectors: u32) {
        let slot = self.partition_record.iter_mut().find(|slot| slot.is_protective());
        slot.into_iter().for_each(|slot| slot.size_in_lba = sectors.into());
    }

    /// Entries that make partitions, each with its number from 1.
    pub(super) fn used(&self) -> impl Iterator<Item = (u32, &PartitionRecord)> {
        (1..).zip(&self.partition_record).filter(|(_, e)| e.is_used())
    }

    /// True if this is a table that kernels read partitions from, on a provider of `sectors`
    /// sectors.
    pub(super) fn is_table(&self, sectors: u64) -> bool {
        let flags = self.entries().iter().all(|e| matches!(e.boot_indicator, 0 | 0x80));
        let any = self.used().any(|(_, e)| e.start() < sectors);
        flags
            && any
            && (!self.is_boot_sector()
                || self.is_tidy() && self.used().all(|(_, e)| e.end() <= sectors))
    }

    /// True if unused entries are blank and used ones do not overlap: boot code or text never looks
    /// so.
    fn is_tidy(&self) -> bool {
        let blank = |e: &PartitionRecord| e.boot_indicator == 0 && e.start() == 0 && e.size() == 0;
        let ranges: Vec<_> =
            self.used().map(|(_, e)| (String::new(), e.start()..e.end())).collect();
        self.entries().iter().all(|e| e.is_used() || e.is_protective() || blank(e))
            && overlaps(&ranges, 1).is_empty()
    }

    /// True if a file system's parameter block stands where an MBR has boot code (FreeBSD's test,
    /// and the names).
    pub(super) fn is_boot_sector(&self) -> bool {
        let b = &self.boot_code;
        let named = matches!(&b[3..11], b"NTFS    " | b"EXFAT   ")
            || &b[54..57] == b"FAT"
            || &b[82..85] == b"FAT";
        let bytes_per_sector = u16::from_le_bytes([b[11], b[12]]);
        let sizes = bytes_per_sector.is_power_of_two()
            && (512..=4096).contains(&bytes_per_sector)
            && b[13].is_power_of_two();
        named || sizes
    }
}

impl Class for Mbr {
    fn name(&self) -> &'static str {
        "mbr"
    }

    fn scheme(&self) -> Option<&'static dyn Scheme> {
        Some(&Mbr)
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        let nested = matches!(probe.kind(), Some(PartitionType::Mbr(_)));
        let Some(record) =
            Record::read(probe).filter(|_| !nested && (512..=4096).contains(&probe.sector()))
        else {
            return Taste::No;
        };
        // A protective entry belongs to a GPT; only when there is none left do the other entries
        // count. An MBR without partitions hides no GPT.
        let yields = record.protects_gpt() || record.used().next().is_none();
        if yields && gpt::sector_of(probe).is_some() {
            return Taste::No;
        }
        if let Some(finding) = other_sector(probe, &record) {
            return Taste::Refused(vec![finding]);
        }
        if record.is_table(probe.length() / probe.sector()) {
            return table(probe, &record);
        }
        nothing(probe, &record)
    }

    fn contradicted(&self, probe: &Probe<'_>, recognises: Recognises) -> Option<Finding> {
        contradicted(probe, &Record::read(probe)?, recognises)
    }
}

/// The geom with the table's partitions, logical ones included.
fn table(probe: &Probe<'_>, record: &Record) -> Taste {
    let (sector, length) = (probe.sector(), probe.length());
    let (mut entries, mut findings, mut primaries) = (Vec::new(), Vec::new(), Vec::new());
    for (number, entry) in record.used() {
        let (start, end) = (entry.start() * sector, entry.end() * sector);
        let suffix = format!("s{number}");
        if start >= length {
            findings.push(out_of_range(&suffix, start, length, sector, "left out"));
            continue;
        }
        if end > length {
            findings.push(out_of_range(
                &suffix,
                start,
                length,
                sector,
                "cut at the end, as Linux does",
            ));
        }
        primaries.push((suffix.clone(), start..end));
        let length = end.min(length) - start;
        entries
            .push(Slice { suffix, partition: Partition::new(number, start, length, entry.kind()) });
    }
    findings.extend(overlaps(&primaries, sector));
    let mut inner = Vec::new();
    let extended: Vec<Slice> =
        entries.iter().filter(|s: &&Slice| s.partition.kind.is_extended()).cloned().collect();
    for extended in extended {
        let number = entries.last().map_or(5, |s| s.partition.index.max(4) + 1);
        let read = |at| probe.read(at);
        let expect = |range: Range<u64>| {
            let length = usize::try_from(range.end - range.start).unwrap_or_default();
            let _ = probe.is_far() && probe.bytes(range.start, length).is_some();
        };
        let medium = Medium { expect: &expect, ..Medium::of(&read, sector, length) };
        let chain = ebr::walk(&medium, &extended.partition.range(), number);
        inner.extend(chain.tables(&extended.suffix));
        findings.extend(chain.findings);
        for slice in chain.logicals {
            inner.push((slice.suffix.clone(), slice.partition.range()));
            entries.push(slice);
        }
    }
    findings.extend(overlaps(&inner, sector));
    let early = entries.iter().any(|s| s.partition.start < TRACK * sector);
    let first = if early { sector } else { TRACK * sector };
    let end = (length / sector).min(u64::from(u32::MAX)) * sector;
    Taste::Geom(
        Arc::new(Slices {
            signature: record.disk_signature(),
            ..Slices::new(first..end.max(first), entries)
        }),
        bounded(findings),
    )
}

/// The answer to a sector with `55 AA` that holds no partition: an empty table, a table for a
/// larger disk, or none.
fn nothing(probe: &Probe<'_>, record: &Record) -> Taste {
    let (sector, length) = (probe.sector(), probe.length());
    let flags = record.entries().iter().all(|e| matches!(e.boot_indicator, 0 | 0x80));
    let protective = record.protects_gpt();
    // Tools that make a table give the disk a signature; boot sectors have code or zeros there.
    let made = flags
        && record.is_tidy()
        && record.unique_mbr_disk_signature.get() != 0
        && !record.is_boot_sector();
    if !made || protective {
        return Taste::No;
    }
    if record.used().next().is_some() {
        let out = |(n, e): (u32, &PartitionRecord)| {
            out_of_range(&format!("s{n}"), e.start() * sector, length, sector, "left out")
        };
        return Taste::Refused(record.used().map(out).collect());
    }
    let end = round_down(length, sector);
    Taste::Geom(Arc::new(Slices::new((TRACK * sector).min(end)..end, Vec::new())), Vec::new())
}

/// Sector sizes in bytes that drives show, and that an MBR may have been written for.
const SECTORS: [u64; 2] = [512, 4096];

/// The sector size in bytes that an MBR was written for, by the contents of its partitions: a
/// format that fits is recognised at their starts in that size, and none at their starts in the
/// provider's. `None` if that does not decide it. An image without a named sector is best opened
/// with this one; a device has the sectors it has.
pub fn sector_of(probe: &Probe<'_>, recognises: Recognises) -> Option<u64> {
    let record = Record::read(probe).filter(|record| !record.protects_gpt())?;
    let (own, length) = (probe.sector(), probe.length());
    let end = record.used().map(|(_, e)| e.end()).max()?;
    let fits = |&unit: &u64| unit != own && end * unit <= length && record.is_table(length / unit);
    let mut others = SECTORS.into_iter().filter(fits).peekable();
    // The places read first are those that tasting reads in any case.
    let doubtful = others.peek().is_some()
        && record.is_table(length / own)
        && !holds(probe, &record, own, recognises);
    others.find(|&unit| doubtful && holds(probe, &record, unit, recognises))
}

/// The finding that its partitions hold something in sectors of another size only: a table that was
/// written through a USB bridge of 4096-byte sectors, as it is seen without the bridge.
fn contradicted(probe: &Probe<'_>, record: &Record, recognises: Recognises) -> Option<Finding> {
    let (made, sector) = (sector_of(probe, recognises)?, probe.sector());
    let (number, first) = record.used().find(|(_, e)| holds_in(probe, e, made, recognises))?;
    let message = format!(
        "the MBR was written for {made}-byte sectors; here they are {sector} bytes: s{number} begins at {}, where nothing is recognised, and what it holds at {}",
        place(first.start() * sector, sector),
        place(first.start() * made, made),
    );
    Some(
        Finding::new(&finding::SECTOR, Severity::Error, 0, message)
            .against(made, 0, None)
            .fix(Fix::ShowSectors(made))
            .fix(Fix::Convert(made)),
    )
}

/// True if something is recognised in a partition, where the entries count sectors of `unit` bytes.
fn holds(probe: &Probe<'_>, record: &Record, unit: u64, recognises: Recognises) -> bool {
    record.used().any(|(_, entry)| holds_in(probe, entry, unit, recognises))
}

fn holds_in(probe: &Probe<'_>, entry: &PartitionRecord, unit: u64, recognises: Recognises) -> bool {
    let (start, kind) = (entry.start() * unit, entry.kind());
    let length = probe.length().saturating_sub(start).min(entry.size() * unit);
    let route = probe.route_within(start, length);
    let inside = probe.within(&route, start, &kind);
    kind.is_extended() && inside.has(510, &[0x55, 0xaa]) || recognises(&inside)
}

/// The finding of a table whose entries lie inside only when they count 512-byte sectors, on larger
/// ones.
fn other_sector(probe: &Probe<'_>, record: &Record) -> Option<Finding> {
    let (sector, length) = (probe.sector(), probe.length());
    let end = record.used().map(|(_, e)| e.end()).max()?;
    let (_, first) = record.used().min_by_key(|(_, e)| e.start())?;
    let (here, there) = (end * sector > length, end * 512 <= length);
    if sector == 512 || !here || !there || !record.is_table(length / 512) {
        return None;
    }
    let message = format!(
        "the MBR was written for 512-byte sectors; here they are {sector} bytes: its {} partitions, the first at {}, would begin at {} and end past the end",
        record.used().count(),
        place(first.start() * 512, 512),
        place(first.start() * sector, sector),
    );
    Some(
        Finding::new(&finding::SECTOR, Severity::Error, 0, message)
            .against(512, 0, None)
            .fix(Fix::ShowSectors(512))
            .fix(Fix::Convert(512)),
    )
}
