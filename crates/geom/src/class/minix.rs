//! `minix`: the subpartitions of a Minix partition.
//!
//! # On disk
//! An MBR partition of type 81 begins either with a boot sector or with a table of the MBR's shape: four entries at byte 446, `55 AA`
//! at 510. Entries of type 81 are subpartitions; if the first is of another type, it is no table. Starts are sectors of the disk, not of
//! the partition.
//!
//! # Topology
//! Slices of the partition.
//!
//! # Limits
//! Where the partition has no place on a medium, as on a stripe, starts are counted from its set. It is not edited.
//!
//! # Sources
//! Linux `block/partitions/msdos.c` (`parse_minix`); Minix 3 `minix/commands/part`.

use super::mbr::Record;
use super::{Class, Taste};
use crate::mapping::slices::{Kind, Slice, Slices, bounded, out_of_range, overlaps};
use crate::probe::Probe;
use std::sync::Arc;

/// The class `minix`, for Minix subpartitions.
pub struct Minix;

/// MBR type of Minix's partitions and subpartitions.
const MINIX: u8 = 0x81;

impl Class for Minix {
    fn name(&self) -> &'static str {
        "minix"
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        let inside = matches!(probe.kind(), Some(Kind::Mbr(MINIX)));
        match Record::read(probe).filter(|record| inside && record.entries()[0].is_of(MINIX)) {
            Some(record) => slices(probe, &record),
            None => Taste::No,
        }
    }
}

fn slices(probe: &Probe<'_>, record: &Record) -> Taste {
    let (sector, length, base) = (probe.sector(), probe.length(), probe.start().unwrap_or(0));
    let (mut entries, mut findings, mut ranges) = (Vec::new(), Vec::new(), Vec::new());
    for (index, entry) in (1..).zip(record.entries()).filter(|(_, entry)| entry.is_of(MINIX) && entry.size() > 0) {
        let suffix = format!("s{index}");
        // 32-bit counts of sectors of at most 4096 bytes.
        let (start, size) = (entry.start() * sector, entry.size() * sector);
        let inside = start.checked_sub(base).filter(|&at| at.checked_add(size).is_some_and(|end| end <= length));
        let Some(start) = inside else {
            findings.push(out_of_range(&suffix, start, length, sector, "left out"));
            continue;
        };
        ranges.push((suffix.clone(), start..start + size));
        entries.push(Slice { suffix, index, start, length: size, kind: Kind::Mbr(MINIX), label: None, uuid: None });
    }
    if entries.is_empty() {
        // No entry is used: a boot sector that happens to end like a table, unless an entry lies elsewhere.
        return if findings.is_empty() { Taste::No } else { Taste::Refused(bounded(findings)) };
    }
    findings.extend(overlaps(&ranges, sector));
    Taste::Geom(Arc::new(Slices { usable: sector..length.max(sector), entries }), bounded(findings))
}
