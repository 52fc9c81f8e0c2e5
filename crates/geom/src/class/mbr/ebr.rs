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
use crate::probe::reach::{NEAR_END, NEAR_FRONT};
use std::ops::Range;

/// Largest number of links that are followed; no kernel makes more partitions.
pub(super) const LINKS: usize = 128;

/// Links by which places are guessed: a disk with more of them takes its rounds.
const GUESSES: usize = 12;

/// Bytes between an EBR and its partition that are asked for with both: a track.
const NEAR_EBR: u64 = 32 << 10;

/// Provider that the extended partition lies on.
pub(super) struct Medium<'a> {
    pub(super) read: &'a dyn Fn(u64) -> Option<Record>,
    /// Called with places that are likely to be read later.
    pub(super) expect: &'a dyn Fn(Range<u64>),
    pub(super) sector: u64,
    pub(super) length: u64,
}

impl<'a> Medium<'a> {
    /// One of which every read is the same.
    pub(super) fn of(
        read: &'a dyn Fn(u64) -> Option<Record>,
        sector: u64,
        length: u64,
    ) -> Medium<'a> {
        Medium { read, expect: &|_| {}, sector, length }
    }
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
        let size = link.size() * sector;
        if chain.links.len() <= GUESSES {
            let logical = chain.logicals.last().map(|slice| slice.partition.start);
            let gap = logical.and_then(|start| start.checked_sub(at));
            expect(medium, extended, next..next.saturating_add(size), gap);
        }
        (at, extent) = (next, size);
    }
    chain
}

/// Guesses of what is read once an EBR is here that takes, with its partition, the bytes `extent`:
/// the partition begins as far behind it as the one before, by `gap`, and the EBR after it lies at
/// its end, as fdisk, sfdisk and parted put them.
fn expect(medium: &Medium<'_>, extended: &Range<u64>, extent: Range<u64>, gap: Option<u64>) {
    let Range { start, end } = extent;
    let gap = gap.filter(|&gap| start.saturating_add(gap) < end);
    if end > extended.end || end > medium.length || start >= end {
        return;
    }
    let front = |ebr: u64, gap: u64| {
        let (front, end) = (ebr.saturating_add(gap), extended.end.min(medium.length));
        let from = if gap <= NEAR_EBR { ebr } else { front };
        let behind = front.saturating_add(NEAR_FRONT).saturating_add(medium.sector).min(end);
        (medium.expect)(from..behind.max(from));
    };
    gap.into_iter().for_each(|gap| front(start, gap));
    let is_last = end >= extended.end;
    let next = if is_last { end } else { end.saturating_add(medium.sector) };
    (medium.expect)(end.saturating_sub(NEAR_END).max(start)..next);
    gap.filter(|_| !is_last).into_iter().for_each(|gap| front(end, gap));
}

/// True if the table itself is the first sector of a data entry.
fn begins_on_its_ebr(entry: &PartitionRecord) -> bool {
    entry.os_type != 0 && !entry.kind().is_extended() && entry.start() == 0 && entry.size() > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Places that are guessed for an EBR that takes `extent` of a disk of 100 MiB, of which the
    /// extended partition has all but the last.
    fn guessed(extent: Range<u64>, gap: Option<u64>) -> Vec<Range<u64>> {
        let (all, read) = (RefCell::new(Vec::new()), |_| None);
        let medium = Medium {
            expect: &|range| all.borrow_mut().push(range),
            ..Medium::of(&read, 512, 100 << 20)
        };
        expect(&medium, &(0..99 << 20), extent, gap);
        all.into_inner()
    }

    #[test]
    fn an_ebr_tells_where_the_next_one_and_its_partitions_are() {
        const K: u64 = 1 << 10;
        const M: u64 = 1 << 20;
        let near = 9 * K + 512;
        let end = 40 * M - 12 * K..40 * M + 512;
        assert_eq!(
            guessed(9 * M..40 * M, Some(M)),
            [10 * M..10 * M + near, end.clone(), 41 * M..41 * M + near]
        );
        // A track: the EBR is fetched with what follows it.
        let track = 63 * 512;
        assert_eq!(
            guessed(9 * M..40 * M, Some(track)),
            [9 * M..9 * M + track + near, end.clone(), 40 * M..40 * M + track + near]
        );
        assert_eq!(guessed(9 * M..40 * M, None), vec![end]);
        // Nothing follows the last one; what cannot be true is no place.
        let last = 99 * M - 12 * K..99 * M;
        assert_eq!(guessed(9 * M..99 * M, None), vec![last]);
        assert_eq!(guessed(9 * M..100 * M, Some(M)), []);
        assert_eq!(guessed(9 * M..9 * M, Some(M)), []);
        assert_eq!(guessed(u64::MAX - 9..u64::MAX, Some(M)), []);
    }
}
