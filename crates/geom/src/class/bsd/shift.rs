//! A label whose numbers count from the disk, where its slice begins elsewhere.

use super::label::{Head, Slot};
use super::raw::{bytes, in_table, span, to_usize};
use super::{C, EntryRelation, placed};
use crate::base::patch::Patch;
use crate::base::topology::is_whole;
use crate::mapping::slices::Dialect;
use crate::table::Table;

/// The writes by which the label of `table` is right where its slice begins at byte `origin` of the
/// disk; empty if it counts from the slice. What it says of partitions elsewhere on the disk stays.
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
    let mut raw = table.raw.clone();
    let mut new = bytes(&raw, label.at, label.size());
    label.write(&mut new, &head, &slots);
    raw.put(label.at, &new);
    let own = span(label.at, label.size(), sector);
    let now = bytes(&raw, own.start, to_usize(own.end - own.start));
    Some(vec![Patch::new(own.start, now, "disklabel")])
}
