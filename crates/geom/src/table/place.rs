//! Placement of one partition in a table.
//!
//! A given start or size is taken literally. A chosen one comes out on the best grain on which
//! there is room ([`Topology::places`](crate::base::topology::Topology::places)), in addresses of
//! the medium.

use super::{Entry, Refusal, Table, autofill};
use crate::base::topology::{Grain, is_whole};
use crate::mapping::slices::place as at;
use crate::table::scheme::TableSite;
use std::ops::Range;

/// Wanted place of a partition, in bytes of the provider. A `None` is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// First byte on the provider.
    pub start: Option<u64>,
    /// Length of the partition in bytes.
    pub size: Option<u64>,
    /// Alignment in bytes of a chosen start, in addresses of the medium.
    pub align: Option<u64>,
}

/// Rules by which a place is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// Rules of this program: the best grain.
    #[default]
    Aligned,
    /// Rules of gpart(8) as of FreeBSD 12 and later.
    Gpart,
    /// Rules of gpart(8) as of FreeBSD 9.
    Gpart9,
}

impl Request {
    /// Refuses values that are not whole sectors, and those that are 0.
    fn check(&self, sector: u64) -> Result<(), Refusal> {
        for (what, value) in [("start", self.start), ("size", self.size), ("alignment", self.align)]
        {
            if let Some(value) = value.filter(|&v| !is_whole(v, sector)) {
                return Err(Refusal::new(
                    format!("{what} of {value} bytes"),
                    format!("use whole sectors of {sector} bytes"),
                ));
            }
        }
        match (self.size, self.align) {
            (Some(0), _) => Err(Refusal::new("a size of 0", "leave it out to take what is free")),
            (_, Some(0)) => {
                Err(Refusal::new("an alignment of 0", "leave it out for the best there is"))
            }
            _ => Ok(()),
        }
    }
}

/// The range that a new partition takes.
pub(super) fn place(
    table: &Table,
    site: &TableSite<'_>,
    request: &Request,
    rules: Rules,
) -> Result<Range<u64>, Refusal> {
    request.check(table.sector)?;
    if rules != Rules::Aligned {
        return autofill::place(table, site, request, rules);
    }
    let start = match (request.start, request.size) {
        (Some(start), Some(size)) => return range(start, size),
        (Some(start), None) => return fill(table, site, start, request.align),
        (None, _) => request.size,
    };
    let found = site.grains(request.align).into_iter().find_map(|grain| hole(table, grain, start));
    found.ok_or_else(|| no_room(table, request))
}

fn range(start: u64, size: u64) -> Result<Range<u64>, Refusal> {
    let end = start
        .checked_add(size)
        .ok_or_else(|| Refusal::new(format!("{size} bytes at {start} end past 2^64"), ""))?;
    Ok(start..end)
}

/// The range from a given start to the end of the free range there.
fn fill(
    table: &Table,
    site: &TableSite<'_>,
    start: u64,
    align: Option<u64>,
) -> Result<Range<u64>, Refusal> {
    let Some(free) = table.free().into_iter().find(|r| r.contains(&start)) else {
        let found = format!("{} is not free", at(start, table.sector));
        return Err(Refusal::new(found, free_ranges(table)));
    };
    let end = site.grains(align).into_iter().find_map(|g| {
        g.previous(free.end).filter(|&end| end > start && is_whole(end, table.sector))
    });
    Ok(start..end.unwrap_or(free.end))
}

/// The first hole that holds `size` bytes from a grain on; without a size, the largest from grain
/// to grain.
fn hole(table: &Table, grain: Grain, size: Option<u64>) -> Option<Range<u64>> {
    let holes = table.free().into_iter().filter_map(|free| {
        let start = grain.next(free.start.checked_add(table.lead)?)?;
        let end = match size {
            Some(size) => start.checked_add(size).filter(|&end| end <= free.end)?,
            None => grain.previous(free.end)?,
        };
        (start < end).then_some(start..end)
    });
    match size {
        Some(_) => holes.min_by_key(|r| r.start),
        None => {
            holes.reduce(|best, r| if r.end - r.start > best.end - best.start { r } else { best })
        }
    }
}

/// The new length of `entry` in bytes.
pub(super) fn resize(
    table: &Table,
    site: &TableSite<'_>,
    entry: &Entry,
    request: &Request,
    rules: Rules,
) -> Result<u64, Refusal> {
    request.check(table.sector)?;
    if rules != Rules::Aligned {
        return autofill::resize(table, site, entry, request, rules);
    }
    if let Some(size) = request.size {
        return Ok(size);
    }
    let next =
        table.entries.iter().map(|e| e.partition.start).chain(table.taken.iter().map(|r| r.start));
    let end = next
        .filter(|&s| s >= entry.partition.end())
        .min()
        .unwrap_or(table.usable.end)
        .min(table.usable.end);
    // Growing never shrinks: where the range up to the grain is less than the partition has,
    // nothing changes.
    let best = site.grains(request.align).into_iter().find_map(|g| {
        g.previous(end).filter(|&e| e > entry.partition.end() && is_whole(e, table.sector))
    });
    Ok(best.unwrap_or(entry.partition.end()) - entry.partition.start)
}

/// The new first byte of `entry`: `to`, or the nearest at which its byte `inside` is on the best
/// grain on which there is room.
pub(super) fn relocate(
    table: &Table,
    site: &TableSite<'_>,
    entry: &Entry,
    to: Option<u64>,
    inside: u64,
) -> Result<u64, Refusal> {
    Request { start: to, ..Request::default() }.check(table.sector)?;
    if let Some(to) = to {
        return range(to, entry.partition.length).map(|range| range.start);
    }
    let mut others = table.clone();
    others.entries.retain(|other| other.partition.index != entry.partition.index);
    let found = site
        .grains(None)
        .into_iter()
        .find_map(|grain| nearest(&others, grain.shift(inside), entry));
    // The last grain is a sector, which every start is on already.
    found.filter(|&start| start != entry.partition.start).ok_or_else(|| {
        let (here, free) = (at(entry.partition.start, table.sector), free_ranges(table));
        let found = format!(
            "there is no better place for {} bytes than {here} ({free})",
            entry.partition.length
        );
        Refusal::new(
            found,
            "make room first: shrink what is in it and then the partition (part \
            resize), or the one in its way",
        )
    })
}

/// The start of `entry` on `grain` that is nearest to its present one, in bytes; `None` without
/// room.
fn nearest(others: &Table, grain: Grain, entry: &Entry) -> Option<u64> {
    let near = others.free().into_iter().flat_map(|free| {
        let last = free.end.checked_sub(entry.partition.length).filter(|&last| last >= free.start);
        let places = last.map(|last| {
            let at = entry.partition.start.clamp(free.start, last);
            [
                grain.previous(at).filter(|&start| start >= free.start),
                grain.next(at).filter(|&start| start <= last),
            ]
        });
        places.into_iter().flatten().flatten()
    });
    near.min_by_key(|start| (start.abs_diff(entry.partition.start), *start))
}

fn no_room(table: &Table, request: &Request) -> Refusal {
    let wanted =
        request.size.map_or_else(|| "a partition".to_string(), |size| format!("{size} bytes"));
    let aligned =
        request.align.map_or_else(String::new, |align| format!(" on a multiple of {align} bytes"));
    let lead = if table.lead > 0 {
        format!(" and {} bytes for its {} before it", table.lead, table.scheme)
    } else {
        String::new()
    };
    Refusal::new(format!("no room for {wanted}{aligned}{lead}"), free_ranges(table))
}

/// Number of free ranges that a message names.
const NAMED: usize = 3;

/// The largest free ranges in words, the largest first.
pub(crate) fn free_ranges(table: &Table) -> String {
    let mut free = table.free();
    free.sort_by_key(|r| (std::cmp::Reverse(r.end - r.start), r.start));
    let ranges: Vec<String> = free
        .iter()
        .take(NAMED)
        .map(|r| format!("{} bytes at {}", r.end - r.start, at(r.start, table.sector)))
        .collect();
    if ranges.is_empty() {
        "nothing is free".into()
    } else {
        format!("free: {}", ranges.join(", "))
    }
}
