//! `minix`: the subpartitions of a Minix partition.
//!
//! # On disk
//! An MBR partition of type 81 begins either with a boot sector or with a table of the MBR's shape:
//! four entries at byte 446, `55 AA` at 510. Entries of type 81 are subpartitions; if the first is
//! of another type, it is no table. Starts are sectors of the disk, not of the partition.
//!
//! # Topology
//! Slices of the partition.
//!
//! # Limits
//! Where the partition has no place on a medium, as on a stripe, starts are counted from its set.
//! It is not edited.
//!
//! # Sources
//! Linux `block/partitions/msdos.c` (`parse_minix`); Minix 3 `minix/commands/part`.

use super::mbr::Record;
use super::{Class, Taste};
use crate::mapping::partition::Partition;
use crate::mapping::slices::{Listing, PartitionType, Slice};
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
        let inside = matches!(probe.kind(), Some(PartitionType::Mbr(MINIX)));
        match Record::read(probe).filter(|record| inside && record.entries()[0].is_of(MINIX)) {
            Some(record) => slices(probe, &record),
            None => Taste::No,
        }
    }
}

/// The subpartitions; no table where there is none and none lies elsewhere.
fn slices(probe: &Probe<'_>, record: &Record) -> Taste {
    let (sector, length, base) = (probe.sector(), probe.length(), probe.start().unwrap_or(0));
    let mut listing = Listing::new(length, sector);
    for (index, entry) in (1..).zip(record.entries()).filter(|(_, entry)| entry.is_of(MINIX)) {
        // 32-bit counts of sectors of at most 4096 bytes.
        let (start, length) = (entry.start() * sector, entry.size() * sector);
        let kind = PartitionType::Mbr(MINIX);
        listing.add_from(
            base,
            Slice {
                suffix: format!("s{index}"),
                partition: Partition::new(index, start, length, kind),
            },
        );
    }
    let (slices, findings) = listing.finish(sector..length.max(sector));
    match (slices.entries.is_empty(), findings.is_empty()) {
        (false, _) => Taste::Geom(Arc::new(slices), findings),
        // A boot sector that happens to end like one, unless something is said to lie elsewhere.
        (true, true) => Taste::No,
        (true, false) => Taste::Refused(findings),
    }
}
