//! A label whose numbers count from the disk, where its slice or a neighbour begins elsewhere.

use super::label::{Head, Label, Slot};
use super::raw::{bytes, in_table, span, to_usize};
use super::{C, EntryRelation, placed};
use crate::base::patch::Patch;
use crate::base::topology::is_whole;
use crate::mapping::slices::Dialect;
use crate::table::Table;
use std::ops::Range;

/// The writes by which the label of `table` is right where its slice begins at byte `origin` of the
/// disk; empty if it counts from the slice. What it says of partitions elsewhere on the disk stays:
/// see [`renamed`].
/// `None` if a number would not fit its field.
pub(super) fn shifted(table: &Table, origin: u64) -> Option<Vec<Patch>> {
    let label = in_table(&table.raw, table.sector)?;
    let (dialect, sector) = (table.dialect?, table.sector);
    if !table.damage.is_empty() || !is_whole(origin, sector) {
        return None;
    }
    if table.origin == 0 {
        return Some(Vec::new());
    }
    let slice = table.origin..table.origin.saturating_add(table.length);
    let moved = |offset: u64| {
        let sectors = offset.checked_sub(slice.start)?.checked_add(origin)? / sector;
        Some(sectors).filter(|&sectors| sectors <= label.most())
    };
    let mut slots = Vec::new();
    for (i, part) in label.entries.iter().enumerate() {
        let is_slice =
            part.length > 0 && part.offset == slice.start && i == C && dialect != Dialect::OpenBsd;
        // One that reaches past the slice may be another slice's, which stays where it is.
        let is_here = matches!(placed(&label, dialect, i, &slice), EntryRelation::At(_));
        slots.push(if is_slice || is_here {
            Slot::Put {
                offset: moved(part.offset)?,
                size: part.length / sector,
                fstype: part.fstype,
                from: Some(i),
            }
        } else {
            Slot::Keep
        });
    }
    let mut head = Head::default();
    if dialect == Dialect::OpenBsd
        && label.is_wide()
        && label.bounds.start.checked_mul(sector) == Some(slice.start)
    {
        let start = moved(slice.start)?;
        let long = label.bounds.end.saturating_sub(label.bounds.start);
        // An end at the limit says as much as there is.
        let end = start.checked_add(long)?.min(label.most());
        head.bounds =
            Some((start, if label.bounds.end == label.most() { label.most() } else { end }));
    }
    Some(vec![written(table, &label, &head, &slots)])
}

/// The partitions of OpenBSD's and NetBSD's labels that are elsewhere on the disk, or reach out of
/// the slice: their numbers, and their bytes in the label's count. FreeBSD knows none.
pub(super) fn outside(table: &Table) -> Vec<(u32, Range<u64>)> {
    let label = in_table(&table.raw, table.sector).zip(table.dialect);
    let Some((label, dialect)) = label.filter(|(_, d)| *d != Dialect::FreeBsd) else {
        return Vec::new();
    };
    let slice = table.origin..table.origin.saturating_add(table.length);
    let is_outside = |i: usize| {
        use EntryRelation::{Foreign, Outside, Past};
        matches!(placed(&label, dialect, i, &slice), Foreign | Past | Outside(_))
    };
    let entries = (1..).zip(label.entries.iter().enumerate());
    let outside = entries.filter(|(_, (i, _))| is_outside(*i));
    outside.map(|(index, (_, part))| (index, part.offset..part.end())).collect()
}

/// The writes by which the label of `table` names partitions from other first bytes on, by their
/// numbers and in its count; with `None` the entry is cleared. `None` if a number would not fit.
pub(super) fn renamed(table: &Table, starts: &[(u32, Option<u64>)]) -> Option<Vec<Patch>> {
    let label = in_table(&table.raw, table.sector)?;
    let mut slots: Vec<Slot> = label.entries.iter().map(|_| Slot::Keep).collect();
    for &(index, start) in starts {
        let i = usize::try_from(index).ok()?.checked_sub(1)?;
        let (part, slot) = (label.entries.get(i)?, slots.get_mut(i)?);
        *slot = match start {
            None => Slot::Clear,
            Some(start) => Slot::Put {
                offset: Some(start / table.sector)
                    .filter(|&n| is_whole(start, table.sector) && n <= label.most())?,
                size: part.length / table.sector,
                fstype: part.fstype,
                from: Some(i),
            },
        };
    }
    Some(vec![written(table, &label, &Head::default(), &slots)])
}

/// The sectors of the label of `table` with `head` and `slots` in it.
fn written(table: &Table, label: &Label, head: &Head, slots: &[Slot]) -> Patch {
    let mut raw = table.raw.clone();
    let mut new = bytes(&raw, label.at, label.size());
    label.write(&mut new, head, slots);
    raw.put(label.at, &new);
    let own = span(label.at, label.size(), table.sector);
    let now = bytes(&raw, own.start, to_usize(own.end - own.start));
    Patch::new(own.start, now, "disklabel")
}
