//! `gpt`: the GUID partition table.
//!
//! # On disk
//! Two copies. The primary header is in LBA 1, the backup in the last LBA; each names its own array
//! of entries. Both the header and the array have a CRC-32. An MBR in LBA 0 protects it with one
//! entry of type EE.
//!
//! A copy counts if both its CRCs and its place are right; the primary is used if it does. Linux
//! reads a GPT only behind a protective entry; an MBR with partitions of its own and no such entry
//! hides the GPT from every kernel, and from this class. A backup alone, with nothing in front that
//! refers to it, is left over from an old table. A primary that names itself as the backup has
//! none: Linux, blkid and GPT fdisk read it, FreeBSD and parted do not.
//!
//! # Topology
//! Slices of the disk.
//!
//! # Limits
//! 4096 entries of 128 to 1024 bytes, as FreeBSD. A table for another sector size is recognised,
//! not read: its numbers are true only on a disk with that sector.
//!
//! # Sources
//! UEFI 2.10 §5.2.3, §5.3; FreeBSD `sys/geom/part/g_part_gpt.c`; Linux `block/partitions/efi.c`.

use super::mbr::{self, Record};
use super::{Class, Taste};
use crate::base::finding::{self, Finding, Fix, Severity};
use crate::base::ondisk::{self, Guid};
use crate::mapping::partition::Partition;
use crate::mapping::slices::{
    PartitionType, Slice, Slices, bounded, out_of_range, overlaps, place,
};
use crate::probe::{Blind, Probe};
use crate::table::scheme::Scheme;
use copies::{Copies, Copy, Flaw, header};
use std::sync::Arc;
use structures::{Header, SIGNATURE};
use zerocopy::FromBytes;

mod convert;
mod copies;
pub mod left;
mod scheme;
mod structures;
mod write;

/// The class `gpt`, for GUID partition tables.
pub struct Gpt;

/// Sector sizes in bytes that a table may have been written for.
const SECTORS: [u64; 4] = [512, 4096, 1024, 2048];
/// The type `freebsd`, whose partitions GEOM names as slices
/// (516e7cb4-6ecf-11d6-8ff8-00022d09712b).
const FREEBSD: Guid = Guid([
    0xb4, 0x7c, 0x6e, 0x51, 0xcf, 0x6e, 0xd6, 0x11, 0x8f, 0xf8, 0x00, 0x02, 0x2d, 0x09, 0x71, 0x2b,
]);

/// Relation of LBA 0 to a GPT.
enum Guard {
    /// No MBR, or one without partitions.
    Absent,
    /// MBR with an entry of type EE.
    Protective(Box<Record>),
    /// MBR with partitions of its own: kernels read those, and no GPT.
    Mbr,
}

impl Guard {
    fn read(probe: &Probe<'_>) -> Guard {
        match Record::read(probe) {
            Some(record) if record.protects_gpt() => Guard::Protective(Box::new(record)),
            Some(record) if record.is_table(probe.length() / probe.sector()) => Guard::Mbr,
            _ => Guard::Absent,
        }
    }

    /// The table's attributes, as bits of `scheme.rs`.
    fn attributes(&self) -> u64 {
        let Guard::Protective(record) = self else { return 0 };
        let found = (0..).zip(record.entries()).find(|(_, e)| e.is_protective());
        let active = found.filter(|(_, e)| e.is_active()).map_or(0, |_| scheme::ACTIVE);
        active | found.filter(|(slot, _)| *slot == 1).map_or(0, |_| scheme::LENOVOFIX)
    }

    /// The last sector of the protective entry, at which the backup was written.
    fn protected(&self) -> Option<u64> {
        let Guard::Protective(record) = self else { return None };
        record.entries().iter().find(|e| e.is_protective()).map(|e| e.end().saturating_sub(1))
    }
}

/// The sector size in bytes that a GPT here was written for: the provider's own if a copy of the
/// table is valid in it, else another. `None` where there is no GPT, or an MBR hides it. An image
/// without a named sector is best opened with this one.
pub fn sector_of(probe: &Probe<'_>) -> Option<u64> {
    let guard = Guard::read(probe);
    let valid = |unit: u64| {
        let last = (probe.length() / unit).saturating_sub(1);
        let backup =
            || matches!(guard, Guard::Protective(_)) && header(probe, unit, last, "backup").is_ok();
        header(probe, unit, 1, "primary").is_ok() || backup()
    };
    let others = SECTORS.into_iter().filter(|&s| s != probe.sector());
    std::iter::once(probe.sector())
        .chain(others)
        .find(|&unit| valid(unit))
        .filter(|_| !matches!(guard, Guard::Mbr))
}

impl Class for Gpt {
    fn name(&self) -> &'static str {
        "gpt"
    }

    fn scheme(&self) -> Option<&'static dyn Scheme> {
        Some(&Gpt)
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        if !(512..=65536).contains(&probe.sector()) || probe.length() < 4 * probe.sector() {
            return Taste::No;
        }
        let guard = Guard::read(probe);
        let copies = Copies::read(probe, probe.sector(), guard.protected());
        match (&guard, copies.best()) {
            (Guard::Mbr, Some((_, name))) => hidden(&copies, name),
            (Guard::Absent, Some((_, "backup"))) => left_behind(&copies),
            (_, Some((copy, _))) => table(probe, &copies, copy, &guard),
            (_, None) => elsewhere(probe, &copies, &guard),
        }
    }
}

fn hidden(copies: &Copies, name: &str) -> Taste {
    let message = format!(
        "a valid {name} GPT of {} stands behind an MBR that has partitions and no protective entry: kernels read the MBR",
        copies.describe()
    );
    let remove = if copies.is_single() {
        format!("wipefs --backup --offset {} DEVICE", copies.unit)
    } else {
        "wipefs --all --types gpt DEVICE".into()
    };
    Taste::Refused(vec![
        Finding::new(&finding::STALE, Severity::Warning, copies.unit, message).fix(format!(
            "if the MBR is right, remove the GPT: {remove}; if the GPT is right, \
                write a protective MBR: gdisk, x, n, w"
        )),
    ])
}

fn left_behind(copies: &Copies) -> Taste {
    let message = format!(
        "a backup GPT of {} is left, but its primary and the protective MBR are gone: Linux sees no partitions here",
        copies.describe()
    );
    Taste::Refused(vec![
        Finding::new(&finding::STALE, Severity::Warning, 0, message).fix(
            "if the table is wanted, rebuild it from the backup: gpart recover, or gdisk, 1 (use current GPT), w; if not: sgdisk --zap",
        ),
    ])
}

/// Bytes of the disk that begins so, by its primary header: the backup is in the last sector.
pub(super) fn length_of(begin: &[u8]) -> Option<u64> {
    SECTORS.into_iter().find_map(|sector| {
        let (header, _) =
            Header::read_from_prefix(begin.get(usize::try_from(sector).ok()?..)?).ok()?;
        let last = (header.signature == *SIGNATURE).then(|| header.alternate_lba.get())?;
        last.checked_add(1)?.checked_mul(sector)
    })
}

/// The answer where no copy is valid in the provider's own sectors: a table in another size, a
/// damaged one, or none.
fn elsewhere(probe: &Probe<'_>, copies: &Copies, guard: &Guard) -> Taste {
    let own = probe.sector();
    for unit in SECTORS.into_iter().filter(|&unit| unit != own && probe.length() >= 4 * unit) {
        // Without a protective entry only a primary counts: a header at the end may belong to
        // another disk.
        let protected = matches!(guard, Guard::Protective(_));
        if !protected && header(probe, unit, 1, "primary").is_err() {
            continue;
        }
        let other = Copies::read(probe, unit, guard.protected());
        let Some((_, name)) = other.best() else { continue };
        if matches!(guard, Guard::Mbr) {
            return hidden(&other, name);
        }
        let message = format!(
            "the GPT was written for {unit}-byte sectors; here they are {own} bytes: {}, cannot be reached in {own}-byte sectors",
            other.describe()
        );
        let finding = Finding::new(&finding::SECTOR, Severity::Error, unit, message)
            .against(unit, 0, None)
            .fix(Fix::ShowSectorsOrRemake(unit))
            .fix(Fix::Convert(unit));
        return Taste::Refused(vec![finding]);
    }
    let remains = matches!(&copies.primary, Err(Flaw::Damaged(..)));
    let message = match (guard, &copies.primary, &copies.backup) {
        (Guard::Protective(_), Err(primary), Err(backup)) => {
            format!("a protective MBR, but no valid GPT: {}; {}", primary.text(), backup.text())
        }
        (Guard::Absent, Err(primary), Err(backup)) if remains => {
            format!("no valid GPT: {}; {}", primary.text(), backup.text())
        }
        _ => return Taste::No,
    };
    Taste::Refused(vec![
        Finding::new(&finding::GPT, Severity::Error, own, message).fix(
            "look for the partitions by their contents (testdisk) before anything is written; without wanted data: wipefs --all --force DEVICE",
        ),
    ])
}

/// The geom with the partitions of `copy`, and findings about the rest.
fn table(probe: &Probe<'_>, copies: &Copies, copy: &Copy, guard: &Guard) -> Taste {
    let (sector, length) = (probe.sector(), probe.length());
    let mut findings = damage(probe, copies, guard);
    let header = &copy.header;
    let (first, last) = (header.first_usable_lba.get(), header.last_usable_lba.get());
    let byte = |lba: u64| lba.saturating_mul(sector).min(length);
    let (mut entries, mut ranges) = (Vec::new(), Vec::new());
    for (index, entry) in copy.used() {
        let prefix = if entry.partition_type_guid == FREEBSD { "s" } else { "p" };
        let suffix = format!("{prefix}{index}");
        let (from, to) = (entry.starting_lba.get(), entry.ending_lba.get());
        if from > to {
            let message = format!(
                "{suffix} begins at LBA {from} and ends before that, at LBA {to}: left out"
            );
            findings.push(
                Finding::new(&finding::RANGE, Severity::Error, byte(from), message)
                    .fix("correct the entry or delete it"),
            );
            continue;
        }
        let Some(end) =
            to.checked_add(1).and_then(|end| end.checked_mul(sector)).filter(|&end| end <= length)
        else {
            findings.push(out_of_range(
                &suffix,
                from.saturating_mul(sector),
                length,
                sector,
                "left out",
            ));
            continue;
        };
        let start = from * sector;
        if from < first || to > last {
            let message = format!(
                "{suffix} is in LBA {from} to {to}, not within the usable LBA {first} to {last}"
            );
            findings.push(
                Finding::new(&finding::RANGE, Severity::Warning, start, message)
                    .fix("move or shrink the partition; FreeBSD refuses the whole table"),
            );
        }
        ranges.push((suffix.clone(), start..end));
        entries.push(Slice {
            suffix,
            partition: Partition {
                index,
                start,
                length: end - start,
                kind: PartitionType::Gpt(entry.partition_type_guid),
                label: ondisk::text_utf16(&entry.partition_name),
                guid: (!entry.unique_partition_guid.is_nil())
                    .then_some(entry.unique_partition_guid),
            },
        });
    }
    findings.extend(overlaps(&ranges, sector));
    if let Guard::Protective(record) = guard {
        findings.extend(hybrid(record, &entries, sector));
        // On a disk that has changed its length, the damage already says so.
        if findings.is_empty() {
            findings.extend(protected_length(record, length / sector));
        }
    }
    let usable = byte(first)..byte(last.saturating_add(1));
    Taste::Geom(Arc::new(Slices::new(usable, entries)), bounded(findings))
}

/// Findings about the copies themselves.
fn damage(probe: &Probe<'_>, copies: &Copies, guard: &Guard) -> Vec<Finding> {
    let (sector, mut findings) = (probe.sector(), Vec::new());
    let last = (probe.length() / sector).saturating_sub(1);
    let place_of = |copy: &Result<Copy, Flaw>| copy.as_ref().ok().map(|c| c.header.my_lba.get());
    let moved = place_of(&copies.backup).filter(|&at| at < last);
    let mut say = |rule, offset: u64, message: String, fix: Vec<Fix>| {
        findings.push(Finding { fix, ..Finding::new(rule, Severity::Warning, offset, message) });
    };
    let recover = |or: &str| vec![Fix::Recover, or.into()];
    match (&copies.primary, &copies.backup) {
        (Err(flaw), _) => {
            // Tools look for a backup in the last sector only: sgdisk -e would write an empty table
            // here.
            let fix = moved.map_or_else(|| REPAIR.into(), |at| shorten((at + 1) * sector));
            say(
                &finding::GPT,
                sector,
                format!("{}; the backup is used", flaw.text()),
                recover(&fix),
            );
        }
        (Ok(_), Err(_)) if copies.is_single() => {
            let message = "the primary header names itself as the backup (AlternateLBA 1), so \
                there is no backup: Linux, blkid, sfdisk and gdisk read this table, FreeBSD and \
                parted do not";
            say(&finding::GPT, sector, message.into(), recover(BACK_UP));
        }
        // A backup that was not unpacked was not looked for.
        (Ok(_), Err(Flaw::Missing(_))) if probe.blind().is_some_and(Blind::is_packed) => {}
        (Ok(primary), Err(flaw)) => {
            let cut = primary.header.alternate_lba.get() > last;
            let fix = if cut { vec![LENGTHEN.into()] } else { recover(REPAIR) };
            say(&finding::GPT, last * sector, format!("{}; the primary is used", flaw.text()), fix);
        }
        (Ok(primary), Ok(backup)) => {
            let differ = differences(&primary.header, &backup.header);
            if !differ.is_empty() {
                let message = format!(
                    "primary and backup are both valid and differ in {}; the primary is used",
                    differ.join(", ")
                );
                say(&finding::GPT, sector, message, vec![Fix::ChooseCopy]);
            }
        }
    }
    match guard {
        Guard::Protective(record) => {
            let start = record
                .entries()
                .iter()
                .find(|e| e.is_protective())
                .map_or(1, mbr::PartitionRecord::start);
            if start != 1 {
                let message = format!(
                    "the protective entry of the MBR begins at LBA {start}, not 1: Linux does not read this table"
                );
                say(&finding::GPT, 0, message, recover(GUARD));
            }
        }
        Guard::Absent | Guard::Mbr => {
            let message =
                "the protective MBR is missing: Linux does not read this table, FreeBSD does";
            say(&finding::GPT, 0, message.into(), recover(GUARD));
        }
    }
    if let Some(at) = moved {
        let message = format!(
            "the backup header is at {}, {} bytes before the last sector: the disk or image has grown since the table was written",
            place(at * sector, sector),
            (last - at) * sector,
        );
        let fix = if copies.primary.is_ok() { MOVE.into() } else { shorten((at + 1) * sector) };
        say(&finding::MOVED_END, at * sector, message, recover(&fix));
    }
    findings
}

const REPAIR: &str = "write both copies anew from the good one: gdisk, w";
const BACK_UP: &str = "write a backup, if no partition is in the last sectors: gdisk, w";
const LENGTHEN: &str =
    "restore the full length of the disk or image; then, if the backup is still missing: gdisk, w";
const MOVE: &str = "move the backup to the end: sgdisk -e, or sfdisk --relocate gpt-bak-std";
const GUARD: &str = "write a protective MBR: gdisk, x, n, w";

/// Advice for a backup that is neither at the end nor pointed to.
fn shorten(length: u64) -> String {
    format!(
        "repair it at its old length of {length} bytes (truncate, or losetup --sizelimit): gdisk, w; then grow it again and sgdisk -e. Not sgdisk -e first: it would write an empty table"
    )
}

/// Fields in which two copies must agree (FreeBSD's list), and do not.
fn differences(a: &Header, b: &Header) -> Vec<&'static str> {
    let fields = [
        ("disk GUID", a.disk_guid == b.disk_guid),
        ("revision", a.revision == b.revision),
        ("header size", a.header_size == b.header_size),
        ("first usable LBA", a.first_usable_lba == b.first_usable_lba),
        ("last usable LBA", a.last_usable_lba == b.last_usable_lba),
        ("number of entries", a.number_of_partition_entries == b.number_of_partition_entries),
        ("entry size", a.size_of_partition_entry == b.size_of_partition_entry),
        ("table", a.partition_entry_array_crc32 == b.partition_entry_array_crc32),
    ];
    fields.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
}

/// The finding that the protective entry covers neither the disk of `sectors` nor all that 32 bits
/// can hold. A hybrid's entry covers the range its maker chose.
fn protected_length(record: &Record, sectors: u64) -> Option<Finding> {
    let entry = record
        .entries()
        .iter()
        .find(|e| e.is_protective())
        .filter(|_| record.used().next().is_none())?;
    let (says, wanted) = (entry.size(), sectors.saturating_sub(1).min(u64::from(u32::MAX)));
    let message = format!(
        "the protective entry of the MBR covers {says} sectors, and the disk has {wanted} behind it: old tools may take the rest for free"
    );
    (says != wanted && says != u64::from(u32::MAX)).then(|| {
        Finding::new(&finding::GPT, Severity::Note, 0, message)
            .fix("write the table anew: sfdisk --relocate gpt-bak-std, or gdisk, w")
    })
}

/// The finding about a protective MBR with partitions of its own: each should be one of the GPT's.
fn hybrid(record: &Record, entries: &[Slice], sector: u64) -> Option<Finding> {
    let (mut same, mut other) = (Vec::new(), Vec::new());
    for (number, entry) in record.used() {
        let twin = entries.iter().find(|s| {
            s.partition.start == entry.start() * sector
                && s.partition.length == entry.size() * sector
        });
        match twin {
            Some(twin) => same.push(format!("{number} is {}", twin.suffix)),
            None => other.push(format!(
                "{number} at {}, {} bytes",
                place(entry.start() * sector, sector),
                entry.size() * sector
            )),
        }
    }
    if !other.is_empty() {
        let message = format!(
            "the MBR beside the GPT has partitions the GPT does not have: {}",
            other.join("; ")
        );
        return Some(Finding::new(&finding::HYBRID, Severity::Error, 0, message).fix(
            "make the two agree (gdisk, r, h), or go back to a plain protective MBR \
                    (gdisk, x, n, w)",
        ));
    }
    let message = format!(
        "hybrid MBR: its entry {}; what edits one table must edit the other",
        same.join(", entry ")
    );
    (!same.is_empty()).then(|| {
        Finding::new(&finding::HYBRID, Severity::Note, 0, message)
            .fix("a plain protective MBR, where nothing boots by the MBR: gdisk, x, n, w")
    })
}
