//! The chain of logical partitions inside an extended one.
//!
//! # On disk
//! An EBR looks like an MBR. Its data entry counts from the EBR itself; its link, an entry of an
//! extended type, counts from the start of the extended partition. The first link is followed;
//! entries 3 and 4 are data only where they fit the EBR's own extent (Linux). Logical partitions
//! are numbered in the order of the chain, from 5.
//!
//! # Limits
//! 128 links. Partitions before a damaged link are kept.
//!
//! # Sources
//! Linux `block/partitions/msdos.c` (`parse_extended`); FreeBSD `sys/geom/part/g_part_ebr.c`.

use super::{PartitionRecord, Record};
use crate::base::finding::{self, Finding, Severity};
use crate::mapping::partition::Partition;
use crate::mapping::slices::{Slice, place};
use std::ops::Range;

/// Largest number of links that are followed; no kernel makes more partitions.
pub(super) const LINKS: usize = 128;

/// Provider that the extended partition lies on.
pub(super) struct Medium<'a> {
    pub(super) read: &'a dyn Fn(u64) -> Option<Record>,
    pub(super) sector: u64,
    pub(super) length: u64,
}

/// One EBR of a chain.
pub(super) struct Link {
    /// First byte, from the start that the extended partition counts from.
    pub(super) at: u64,
    pub(super) record: Record,
    /// Indices of its entries that are partitions, from 0.
    pub(super) data: Vec<usize>,
    /// Index of the entry that links to the next EBR; `None` in the last.
    pub(super) next: Option<usize>,
}

/// Contents of a chain.
#[derive(Default)]
pub(super) struct Chain {
    /// EBRs of the chain, in order.
    pub(super) links: Vec<Link>,
    /// Logical partitions, in order.
    pub(super) logicals: Vec<Slice>,
    /// Findings about damaged links and entries.
    pub(super) findings: Vec<Finding>,
    /// True if its last link leads nowhere.
    pub(super) broken: bool,
    sector: u64,
}

impl Chain {
    /// Ranges of the EBRs' own sectors with their names: no partition may cover them. `extended` is
    /// the name of the partition that holds them.
    pub(super) fn tables(&self, extended: &str) -> Vec<(String, Range<u64>)> {
        let table = |(n, link): (usize, &Link)| {
            (format!("the EBR {n} of {extended}"), link.at..link.at.saturating_add(self.sector))
        };
        (1..).zip(&self.links).map(table).collect()
    }

    fn damage(&mut self, at: u64, what: &str) {
        let message =
            format!("the chain of logical partitions: at {}, {what}", place(at, self.sector));
        let fix = "copy the data of the partitions that are left, then write the chain anew; \
            testdisk finds lost ones by their contents";
        self.findings.push(Finding::new(&finding::EBR, Severity::Error, at, message).fix(fix));
    }

    /// Adds the partitions of the EBR that takes, with them, the bytes `ebr`; returns the indices
    /// of their entries. The first gets `number`.
    fn add(
        &mut self,
        length: u64,
        record: &Record,
        extended: &Range<u64>,
        ebr: Range<u64>,
        number: &mut u32,
    ) -> Vec<usize> {
        let (at, sector, end) = (ebr.start, self.sector, extended.end);
        let mut data = Vec::new();
        for (slot, entry) in record
            .partition_record
            .iter()
            .enumerate()
            .filter(|(_, e)| e.is_used() && !e.kind().is_extended())
        {
            let start = at.saturating_add(entry.start() * sector);
            let size = entry.size() * sector;
            let fits =
                entry.end() * sector <= ebr.end - ebr.start && start.saturating_add(size) <= end;
            if slot > 1 && !fits {
                continue;
            }
            let suffix = format!("s{number}");
            if start >= length {
                self.damage(
                    at,
                    &format!(
                        "{suffix} would begin at {}, past the end: left out",
                        place(start, sector)
                    ),
                );
                continue;
            }
            if start.saturating_add(size) > end {
                let what = format!(
                    "{suffix} of {size} bytes at {} leaves the extended partition",
                    place(start, sector)
                );
                self.damage(at, &what);
            }
            let size = size.min(length - start);
            self.logicals.push(Slice {
                suffix,
                partition: Partition::new(*number, start, size, entry.kind()),
            });
            data.push(slot);
            *number += 1;
        }
        if record.entries().iter().any(begins_on_its_ebr) {
            self.damage(at, "a logical partition begins on its own EBR: left out");
        }
        data
    }

    fn cut(&mut self, at: u64, what: &str) {
        self.broken = true;
        self.damage(at, what);
    }
}

/// Follows the chain in the bytes `extended`; its first partition is `number`.
pub(super) fn walk(medium: &Medium<'_>, extended: &Range<u64>, mut number: u32) -> Chain {
    let sector = medium.sector;
    let mut chain = Chain { sector, ..Chain::default() };
    let mut at = extended.start;
    // Bytes that the link gives to the next EBR and its partition; the first may take all.
    let mut extent = extended.end - extended.start;
    loop {
        if chain.links.len() >= LINKS {
            chain.cut(at, &format!("the {LINKS}th link leads on; not followed"));
            break;
        }
        if chain.links.iter().any(|seen| seen.at == at) {
            chain.cut(at, "a link leads back to an EBR already seen");
            break;
        }
        let Some(record) = (medium.read)(at) else {
            chain.cut(at, "the EBR cannot be read");
            break;
        };
        if !record.is_signed() {
            chain.cut(at, "there should be an EBR, but it does not end in 55 AA");
            break;
        }
        let data =
            chain.add(medium.length, &record, extended, at..at.saturating_add(extent), &mut number);
        let next = record.entries().iter().position(|e| e.kind().is_extended() && e.size() > 0);
        let leads = next.map(|slot| record.partition_record[slot]);
        chain.links.push(Link { at, record, data, next });
        let Some(link) = leads else { break };
        let next = extended.start + link.start() * sector;
        if next >= extended.end {
            chain.cut(
                at,
                &format!("a link leads to {}, outside the extended partition", place(next, sector)),
            );
            break;
        }
        (at, extent) = (next, link.size() * sector);
    }
    chain
}

/// True if the table itself is the first sector of a data entry.
fn begins_on_its_ebr(entry: &PartitionRecord) -> bool {
    entry.os_type != 0 && !entry.kind().is_extended() && entry.start() == 0 && entry.size() > 0
}
