//! `bsd`: the disklabel of FreeBSD, OpenBSD and NetBSD.
//!
//! # On disk
//! One structure of 148 bytes and 16 for each partition, in either byte order, in LBA 1; some ports
//! keep it in sector 0. OpenBSD keeps it at byte 512 whatever the sector. Two magics; the XOR of
//! all its 16-bit words is 0. FreeBSD does not look at the checksum, OpenBSD and NetBSD do.
//!
//! Offsets and sizes are in units of `d_secsize`. The origin of offsets is the dialect's:
//! - FreeBSD: entry `c`, whose own offset is the base: 0, or where the slice begins on the disk.
//! - OpenBSD and NetBSD: the start of the disk. A label may therefore name partitions outside its
//!   own slice.
//!
//! The dialect follows from the table above; else OpenBSD from its version field, NetBSD from an
//! unused `d` at 0 that holds all others. Entries that stand for the whole (`c`, NetBSD's `d`) are
//! no partitions, as in GEOM.
//!
//! # Topology
//! Slices. FreeBSD's `a` may begin at 0 and overlay the label: UFS leaves that room.
//!
//! # Limits
//! 22 partitions: as many as fit the sector. No label is looked for in a label's partition, since
//! `a` shows the same sector again.
//!
//! # Sources
//! FreeBSD `sys/sys/disk/bsd.h` (names), `sys/geom/part/g_part_bsd.c`; OpenBSD
//! `sys/sys/disklabel.h`, `kern/subr_disk.c`; NetBSD `sys/sys/disklabel.h`; Linux
//! `block/partitions/msdos.c` (`parse_bsd`).

use super::{Class, Taste};
use crate::base::finding::{self, Finding, Fix, Severity};
use crate::mapping::partition::Partition;
use crate::mapping::slices::{
    Dialect, PartitionType, Slice, Slices, bounded, out_of_range, overlaps, place,
};
use crate::probe::Probe;
use crate::table::scheme::Scheme;
use label::{Label, Part};
use std::ops::Range;
use std::sync::Arc;

mod convert;
mod create;
mod label;
mod raw;
mod scheme;
mod shift;

/// The class `bsd`, for 32-bit labels.
pub struct Bsd;

/// Index of entry `c`, and below of `d`, which may stand for the whole slice or disk.
const C: usize = 2;
const D: usize = 3;
/// Type of an unused entry, `FS_UNUSED`.
const UNUSED: u8 = 0;

/// GPT types that hold a label: `freebsd`, DragonFly's `label32`, OpenBSD data.
const GPT_FREEBSD: [&str; 2] =
    ["516e7cb4-6ecf-11d6-8ff8-00022d09712b", "9d087404-1ca5-11dc-8817-01301bb8a9f5"];
const GPT_OPENBSD: &str = "824cc7a0-36a8-11e3-890a-952519ad3f61";

const REPAIR: &str = "look at it with the system that wrote it, and write it anew from a saved \
    copy: disklabel -R, bsdlabel -R, gpart restore";

impl Class for Bsd {
    fn name(&self) -> &'static str {
        "bsd"
    }

    fn scheme(&self) -> Option<&'static dyn Scheme> {
        Some(&Bsd)
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        if matches!(probe.kind(), Some(PartitionType::Bsd(..))) {
            return Taste::No;
        }
        let label = match label::find(&|at, length| probe.bytes(at, length), probe.sector()) {
            None => return Taste::No,
            Some(Err(finding)) => return Taste::Refused(vec![finding]),
            Some(Ok(label)) => label,
        };
        if label.sector != probe.sector() {
            return Taste::Refused(vec![other_sector(probe, &label)]);
        }
        slices(probe, &label)
    }
}

/// The dialect that follows from the table above, else from the label's own fields.
fn dialect(probe: &Probe<'_>, label: &Label) -> Dialect {
    probe.kind().and_then(dialect_of).unwrap_or_else(|| match label.version {
        1 => Dialect::OpenBsd,
        _ if holds_all(label, D) => Dialect::NetBsd,
        _ => Dialect::FreeBsd,
    })
}

/// True if entry `i` is unused, begins at 0 and contains every other entry of the label but `c`,
/// unused ones too: NetBSD's `d`, on a disk of whatever size.
fn holds_all(label: &Label, i: usize) -> bool {
    let Some(whole) =
        label.entries.get(i).filter(|e| e.offset == 0 && e.length > 0 && e.fstype == UNUSED)
    else {
        return false;
    };
    let mut others = label.entries.iter().enumerate().filter(|(i, e)| *i != C && e.length > 0);
    others.all(|(_, e)| e.end() <= whole.end())
}

/// The dialect of labels in a partition of that kind; `None` where the kind does not decide it.
fn dialect_of(kind: &PartitionType) -> Option<Dialect> {
    match kind {
        PartitionType::Mbr(0xa5) => Some(Dialect::FreeBsd),
        PartitionType::Mbr(0xa6) => Some(Dialect::OpenBsd),
        PartitionType::Mbr(0xa9) => Some(Dialect::NetBsd),
        PartitionType::Gpt(guid) => match guid.to_string() {
            guid if GPT_FREEBSD.contains(&guid.as_str()) => Some(Dialect::FreeBsd),
            guid if guid == GPT_OPENBSD => Some(Dialect::OpenBsd),
            _ => None,
        },
        _ => None,
    }
}

/// True if entry `i` stands for the whole slice or disk. util-linux writes a `d` for the disk into
/// FreeBSD labels too.
fn is_raw(label: &Label, dialect: Dialect, i: usize, part: &Part, slice: &Range<u64>) -> bool {
    let covers = part.offset <= slice.start && part.end() >= slice.end;
    let unused = part.fstype == UNUSED;
    match dialect {
        Dialect::NetBsd => (i == C || i == D) && (covers || unused),
        _ => i == C || i == D && unused && (covers || holds_all(label, i)),
    }
}

/// The offset in the label's terms, in bytes, of byte 0 of this slice.
fn origin(probe: &Probe<'_>, label: &Label, dialect: Dialect) -> u64 {
    let c = label.entries.get(C).filter(|c| c.length > 0).map_or(0..0, |c| c.offset..c.end());
    if dialect == Dialect::FreeBsd {
        return c.start;
    }
    // The slice's place by the label itself. If that is as long as this slice it is this one. This
    // holds in an image of the slice alone too, and on a disk within a disk, where the medium is
    // another disk than the label's.
    let bytes = |n: u64| n.saturating_mul(label.sector);
    let own = if dialect == Dialect::OpenBsd {
        bytes(label.bounds.start)..bytes(label.bounds.end)
    } else {
        c
    };
    // A slice longer than the label can say is cut there.
    let said = own.end.saturating_sub(own.start);
    let most = bytes(label.most());
    let is_cut = said < probe.length() && (said == most || own.end == most);
    if said == probe.length() || said > 0 && is_cut {
        return own.start;
    }
    let fits = |&origin: &u64| {
        let slice = origin..origin.saturating_add(probe.length());
        let inside = |part: &Part| slice.start <= part.offset && part.end() <= slice.end;
        label
            .entries
            .iter()
            .enumerate()
            .filter(|(i, p)| p.length > 0 && !is_raw(label, dialect, *i, p, &slice) && inside(p))
            .count()
    };
    let places = [Some(0), Some(own.start), probe.start()];
    // Of equals `max_by_key` takes the last: the medium.
    places.into_iter().flatten().max_by_key(fits).unwrap_or(0)
}

/// Relation of an entry to the slice that its label is on.
enum EntryRelation {
    /// Unused entry, or one for the whole.
    Nothing,
    /// Partition elsewhere on the disk.
    Foreign,
    /// Partition that begins in the slice and reaches past it, in a dialect that allows that.
    Past,
    /// Partition outside the slice, with the byte of the slice at which it would begin; `None` if
    /// that is before the slice.
    Outside(Option<u64>),
    /// Partition that begins at this byte of the slice.
    At(u64),
}

/// The relation of entry `i` to `slice`, which is in the label's addresses.
fn placed(label: &Label, dialect: Dialect, i: usize, slice: &Range<u64>) -> EntryRelation {
    let Some(part) = label.entries.get(i) else { return EntryRelation::Nothing };
    let free = dialect == Dialect::FreeBsd;
    if part.length == 0 || part.fstype == UNUSED && !free || is_raw(label, dialect, i, part, slice)
    {
        return EntryRelation::Nothing;
    }
    if !free && (part.end() <= slice.start || part.offset >= slice.end) {
        return EntryRelation::Foreign;
    }
    if !free && part.offset >= slice.start && part.end() > slice.end {
        return EntryRelation::Past;
    }
    let start = part.offset.checked_sub(slice.start);
    let room = slice.end - slice.start;
    match start.filter(|s| s.checked_add(part.length).is_some_and(|end| end <= room)) {
        Some(start) => EntryRelation::At(start),
        None => EntryRelation::Outside(start),
    }
}

fn slices(probe: &Probe<'_>, label: &Label) -> Taste {
    let (sector, length) = (probe.sector(), probe.length());
    let dialect = dialect(probe, label);
    let origin = origin(probe, label, dialect);
    let slice = origin..origin.saturating_add(length);
    let (mut entries, mut findings, mut ranges) = (Vec::new(), Vec::new(), Vec::new());
    for (i, letter) in ('a'..='z').enumerate().take(label.entries.len()) {
        let part = &label.entries[i];
        let at = place(part.offset, sector);
        let start = match placed(label, dialect, i, &slice) {
            EntryRelation::Nothing => continue,
            EntryRelation::Foreign => {
                let message = format!(
                    "{letter} is elsewhere on the disk, at {at}, outside the label's own slice"
                );
                findings.push(Finding::new(&finding::RANGE, Severity::Note, 0, message));
                continue;
            }
            EntryRelation::Past => {
                let message = format!(
                    "{letter} at {at} reaches past its slice, as what lies beyond 2 TiB of an MBR disk must: not looked into"
                );
                findings.push(Finding::new(&finding::BLIND, Severity::Warning, 0, message));
                continue;
            }
            EntryRelation::Outside(start) => {
                findings.push(out_of_range(
                    &letter.to_string(),
                    start.unwrap_or(0),
                    length,
                    sector,
                    "left out",
                ));
                continue;
            }
            EntryRelation::At(start) => start,
        };
        ranges.push((letter.to_string(), start..start + part.length));
        let index = u32::try_from(i + 1).unwrap_or(u32::MAX);
        let kind = PartitionType::Bsd(dialect, part.fstype);
        entries.push(Slice {
            suffix: letter.to_string(),
            partition: Partition::new(index, start, part.length, kind),
        });
    }
    if is_remains(label, dialect, &slice) {
        return Taste::Refused(damage(label, dialect));
    }
    findings.extend(overlaps(&ranges, sector));
    findings.extend(damage(label, dialect));
    Taste::Geom(
        Arc::new(Slices::new(usable(label, dialect, origin, length), entries)),
        bounded(findings),
    )
}

/// True if a label is neither whole nor of this size: the remains of another one.
fn is_remains(label: &Label, dialect: Dialect, slice: &Range<u64>) -> bool {
    let places: Vec<EntryRelation> =
        (0..label.entries.len()).map(|i| placed(label, dialect, i, slice)).collect();
    let here = places.iter().any(|p| matches!(p, EntryRelation::At(_)));
    let meant = places.iter().any(|p| matches!(p, EntryRelation::Past | EntryRelation::Outside(_)));
    label.stored != label.computed && meant && !here
}

/// The range in which partitions may lie, in bytes of the slice: all of it, the part that OpenBSD's
/// label gives, or what lies before the end of NetBSD's `d`.
fn usable(label: &Label, dialect: Dialect, origin: u64, length: u64) -> Range<u64> {
    let bound = |n: u64| n.saturating_mul(label.sector).saturating_sub(origin).min(length);
    match dialect {
        Dialect::OpenBsd if label.version == 1 && label.bounds.start < label.bounds.end => {
            bound(label.bounds.start)..bound(label.bounds.end)
        }
        // It contains every partition: with one past its end the label would be none of NetBSD's.
        Dialect::NetBsd if holds_all(label, D) => {
            let end = label.entries.get(D).map_or(u64::MAX, Part::end);
            0..end.saturating_sub(origin).min(length)
        }
        _ => 0..length,
    }
}

/// Findings about the label itself.
fn damage(label: &Label, dialect: Dialect) -> Vec<Finding> {
    checksum(label).into_iter().chain(geometry(label, dialect)).collect()
}

/// The label's name in quotes, to identify it in messages; empty without one.
fn named(label: &Label) -> String {
    label.name.as_ref().map_or_else(String::new, |n| format!(" {n:?}"))
}

fn checksum(label: &Label) -> Option<Finding> {
    let (named, stored, computed) = (named(label), label.stored, label.computed);
    let message = format!(
        "disklabel{named} checksum is {stored:04x}, computed {computed:04x}: OpenBSD and NetBSD refuse it, FreeBSD and Linux do not look"
    );
    (stored != computed)
        .then(|| Finding::new(&finding::LABEL, Severity::Warning, label.at, message).fix(REPAIR))
}

fn geometry(label: &Label, dialect: Dialect) -> Option<Finding> {
    let (named, (sectors, tracks)) = (named(label), label.tracks);
    let refused = dialect == Dialect::FreeBsd
        && !((1..=255).contains(&sectors) && (1..=255).contains(&tracks));
    let message = format!(
        "disklabel{named} names {sectors} sectors a track and {tracks} tracks: FreeBSD refuses a label beyond 1 to 255"
    );
    refused.then(|| Finding::new(&finding::LABEL, Severity::Warning, label.at, message).fix(REPAIR))
}

/// The finding that a label counts other sectors than the provider's.
fn other_sector(probe: &Probe<'_>, label: &Label) -> Finding {
    let (own, theirs) = (probe.sector(), label.sector);
    let used = label.entries.iter().enumerate().filter(|(i, p)| *i != C && p.length > 0);
    let first = used.clone().map(|(_, p)| p.offset).min().unwrap_or(0);
    let message = format!(
        "the disklabel was written for {theirs}-byte sectors; here they are {own} bytes: {} partitions, the first with offset {}, cannot be reached",
        used.count(),
        place(first, theirs),
    );
    Finding::new(&finding::SECTOR, Severity::Error, label.at, message)
        .against(theirs, 0, None)
        .fix(Fix::ShowSectors(theirs))
}

#[cfg(test)]
mod tests;
