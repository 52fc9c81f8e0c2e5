//! The chain of logical partitions inside an extended one.
//!
//! # On disk
//! An EBR looks like an MBR. Its data entry counts from the EBR itself; its link, an entry of an extended type, counts from
//! the start of the extended partition. The first link is followed; entries 3 and 4 are data only where they fit the EBR's
//! own extent (Linux). Logical partitions are numbered in the order of the chain, from 5.
//!
//! # Limits
//! 128 links. What stands before damage survives it.
//!
//! # Sources
//! Linux `block/partitions/msdos.c` (`parse_extended`); FreeBSD `sys/geom/part/g_part_ebr.c`.

use super::{Entry, Record};
use crate::finding::{self, Finding, Severity};
use crate::probe::Probe;
use crate::slices::{Slice, place};
use std::ops::Range;

/// Links followed; no kernel makes more partitions.
const LINKS: usize = 128;

/// What a chain holds.
#[derive(Default)]
pub(super) struct Chain {
    /// The logical partitions, in order.
    pub(super) logicals: Vec<Slice>,
    /// The sectors the EBRs themselves are in: no partition may cover them.
    pub(super) tables: Vec<(String, Range<u64>)>,
    /// What is wrong with it.
    pub(super) findings: Vec<Finding>,
}

impl Chain {
    fn damage(&mut self, at: u64, sector: u64, what: &str) {
        let message = format!("the chain of logical partitions: at {}, {what}", place(at, sector));
        let fix = "copy the data of the partitions that are left, then write the chain anew; testdisk finds lost ones by their contents";
        self.findings.push(Finding::new(&finding::EBR, Severity::Error, at, message).fix(fix));
    }

    /// The partitions of the EBR that, with them, takes the bytes `ebr`; the first is `number`.
    fn add(&mut self, probe: &Probe<'_>, record: &Record, extended: &Slice, ebr: Range<u64>, number: &mut u32) {
        let (at, sector, end) = (ebr.start, probe.sector(), extended.start + extended.length);
        for (place_in_ebr, entry) in record.used().filter(|(_, e)| !e.kind().is_extended()) {
            let start = at.saturating_add(entry.start() * sector);
            let length = entry.size() * sector;
            let fits = entry.end() * sector <= ebr.end - ebr.start && start.saturating_add(length) <= end;
            if place_in_ebr > 2 && !fits {
                continue;
            }
            let suffix = format!("s{number}");
            if start >= probe.length() {
                self.damage(at, sector, &format!("{suffix} would begin at {}, past the end: left out", place(start, sector)));
                continue;
            }
            if start.saturating_add(length) > end {
                let what = format!("{suffix} of {length} bytes at {} leaves the extended partition", place(start, sector));
                self.damage(at, sector, &what);
            }
            let length = length.min(probe.length() - start);
            self.logicals.push(Slice { suffix, index: *number, start, length, kind: entry.kind(), label: None, uuid: None });
            *number += 1;
        }
        if record.entries().iter().any(begins_on_its_ebr) {
            self.damage(at, sector, "a logical partition begins on its own EBR: left out");
        }
    }
}

/// Follows the chain in `extended`; its first partition is `number`.
pub(super) fn walk(probe: &Probe<'_>, extended: &Slice, mut number: u32) -> Chain {
    let mut chain = Chain::default();
    let sector = probe.sector();
    let end = extended.start + extended.length;
    let mut at = extended.start;
    // What the link said the next EBR and its partition take; the first may take all.
    let mut extent = extended.length;
    loop {
        if chain.tables.len() >= LINKS {
            chain.damage(at, sector, &format!("the {LINKS}th link leads on; not followed"));
            break;
        }
        if chain.tables.iter().any(|(_, seen)| seen.start == at) {
            chain.damage(at, sector, "a link leads back to an EBR already seen");
            break;
        }
        let Some(record) = probe.read::<Record>(at) else {
            chain.damage(at, sector, "the EBR cannot be read");
            break;
        };
        if !record.is_signed() {
            chain.damage(at, sector, "there should be an EBR, but it does not end in 55 AA");
            break;
        }
        chain.tables.push((format!("the EBR {} of {}", chain.tables.len() + 1, extended.suffix), at..at.saturating_add(sector)));
        chain.add(probe, &record, extended, at..at.saturating_add(extent), &mut number);
        let Some(link) = record.entries().iter().find(|e| e.kind().is_extended() && e.size() > 0) else { break };
        let next = extended.start + link.start() * sector;
        if next >= end {
            chain.damage(at, sector, &format!("a link leads to {}, outside the extended partition", place(next, sector)));
            break;
        }
        (at, extent) = (next, link.size() * sector);
    }
    chain
}

/// A data entry that has the table itself as its first sector.
fn begins_on_its_ebr(entry: &Entry) -> bool {
    entry.os_type != 0 && !entry.kind().is_extended() && entry.start() == 0 && entry.size() > 0
}
