//! Partitions that labels name outside of their own slices.
//!
//! OpenBSD's and NetBSD's labels count from the start of the disk, and may name what the table
//! around them has too, and what that calls free. Such a place is taken. Where it is one partition,
//! the label can follow it; else all that shares bytes with it has to stay.

use crate::base::patch::Patch;
use crate::graph::{Graph, Id};
use crate::mapping::slices::{free_within, place};
use crate::registry;
use crate::table::{Refusal, Table};
use std::collections::BTreeMap;
use std::ops::Range;

/// Range outside of a slice that the label in it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Provider with the label.
    pub label: Id,
    /// Number of the partition in it.
    pub index: u32,
    /// Provider from which the label counts: the disk that its system sees.
    pub disk: Id,
    /// Bytes that it names, counted as [`Provider::base`](crate::graph::Provider::base) counts.
    pub range: Range<u64>,
    /// Partition of another table with these very bytes.
    pub partition: Option<Id>,
}

/// The BSD label on provider `id`, whole or damaged; `None` if there is none.
pub fn label(graph: &Graph, id: Id) -> Option<Table> {
    let p = &graph.providers[id];
    let (class, _) = p.table.as_ref()?;
    registry::scheme_of(class).filter(|scheme| scheme.is_guest())?;
    p.tasted().table(&graph.probe(id))
}

/// All that labels of `graph` name outside of the slices that they are in.
pub fn named(graph: &Graph) -> Vec<Named> {
    let of_label = |id: Id| {
        let table = label(graph, id)?;
        let origin = Some(table.origin).filter(|&origin| origin != 0)?;
        let disk = counted_from(graph, id, origin)?;
        let base = graph.providers[disk].base();
        let outside = table.scheme.outside(&table).into_iter();
        Some(outside.map(move |(index, at)| {
            let range = at.start.saturating_add(base)..at.end.saturating_add(base);
            let partition = partition(graph, disk, id, &range);
            Named { label: id, index, disk, range, partition }
        }))
    };
    (0..graph.providers.len()).filter_map(of_label).flatten().collect()
}

/// The disk around label `id` from which its numbers count, if that of its slice is `origin`: a
/// disk within a partition, where that fits, else the outermost. `None` for a label without a disk
/// around it.
fn counted_from(graph: &Graph, id: Id, origin: u64) -> Option<Id> {
    let base = graph.providers[id].base();
    let is_around = |outer: &Id| {
        let p = &graph.providers[*outer];
        let is_disk = p.table.as_ref().is_some_and(|(class, _)| matches!(*class, "mbr" | "gpt"));
        is_disk && graph.is_within(*outer, id)
    };
    let around: Vec<Id> = (0..id).filter(is_around).collect();
    let fits = |disk: &&Id| base.checked_sub(graph.providers[**disk].base()) == Some(origin);
    around.iter().rev().find(fits).or(around.first()).copied()
}

/// The partition on `disk` that has just the bytes `range`, and neither is around label `id` nor in
/// its slice.
fn partition(graph: &Graph, disk: Id, id: Id, range: &Range<u64>) -> Option<Id> {
    (disk + 1..graph.providers.len()).find(|&other| {
        let p = &graph.providers[other];
        let is_it = p.base() == range.start && p.topology.length == range.end - range.start;
        let is_apart = !graph.is_within(other, id) && !graph.is_within(id, other);
        is_it && is_apart && p.kind.is_some() && !p.is_extended() && graph.is_within(disk, other)
    })
}

impl Named {
    /// True if the label follows where that partition goes, when all on provider `outermost` is
    /// arranged.
    pub fn follows(&self, graph: &Graph, outermost: Id) -> bool {
        let is_in = |id: Id| id != outermost && graph.is_within(outermost, id);
        self.partition.is_some_and(is_in)
            && is_in(self.label)
            && label(graph, self.label).is_some_and(|table| table.damage.is_empty())
    }

    /// True if partition `id` shares bytes with it, and would leave it behind.
    pub fn binds(&self, graph: &Graph, id: Id) -> bool {
        let p = &graph.providers[id];
        let end = p.base().saturating_add(p.topology.length);
        let is_on_disk = graph.is_within(self.disk, id) && id != self.disk;
        is_on_disk && p.base() < self.range.end && self.range.start < end
    }

    /// Reason why what shares bytes with it stays.
    pub fn reason(&self, graph: &Graph) -> String {
        let p = &graph.providers[self.label];
        let letters = ('a'..='z').zip(1..);
        let letter = letters.filter(|(_, index)| *index == self.index).map(|(letter, _)| letter);
        let letter = letter.collect::<String>();
        let [from, to] = [self.range.start, self.range.end].map(|at| place(at, p.topology.sector));
        format!("{letter} of the label in {} names {from} up to {to}", p.name)
    }
}

/// The writes, in addresses of provider `on`, by which labels name what is in partition `id`, if
/// that alone goes to byte `to` of it. A refusal says what a label names there, and could not
/// follow, or where the partition would be.
pub fn along(graph: &Graph, on: Id, id: Id, to: u64) -> Result<Vec<Patch>, Refusal> {
    let base = |id: Id| graph.providers[id].base();
    let refused = |named: &Named, why: &str| {
        let advice = "take that entry out of the label first (disklabel -E)";
        Refusal::new(format!("{}, {why}", named.reason(graph)), advice)
    };
    let to = base(on).saturating_add(to);
    let new = to..to.saturating_add(graph.providers[id].topology.length);
    let mut labels = BTreeMap::<Id, Vec<(u32, Option<u64>)>>::new();
    for named in named(graph).iter().filter(|named| !graph.is_within(id, named.disk)) {
        let is_inside = |partition: Id| graph.is_within(id, partition);
        let is_kept = graph.is_within(id, named.label) || !named.follows(graph, on);
        match named.partition {
            Some(partition) if is_inside(partition) && is_kept => {
                return Err(refused(named, "which would not follow"));
            }
            Some(partition) if is_inside(partition) => {
                let from = named.range.start - base(id).min(named.range.start);
                let start = to.saturating_add(from).saturating_sub(base(named.disk));
                labels.entry(named.label).or_default().push((named.index, Some(start)));
            }
            None if named.binds(graph, id) => {
                return Err(refused(named, "which would not follow"));
            }
            // Another disk has other bytes.
            None if graph.is_within(named.disk, id)
                && new.start < named.range.end
                && named.range.start < new.end =>
            {
                return Err(refused(named, "which would be written over"));
            }
            _ => {}
        }
    }
    let mut patches = Vec::new();
    for (id, starts) in labels {
        let renamed = label(graph, id).and_then(|table| table.scheme.rename(&table, &starts));
        let renamed = renamed.ok_or_else(|| {
            let name = &graph.providers[id].name;
            Refusal::new(format!("the label in {name} cannot follow its neighbours"), "")
        })?;
        let at = base(id).saturating_sub(base(on));
        patches.extend(renamed.into_iter().map(|p| Patch { offset: p.offset + at, ..p }));
    }
    Ok(patches)
}

/// The parts of provider `on` that labels name and cannot follow, and that no partition of `table`
/// has.
pub fn taken(graph: &Graph, on: Id, table: &Table) -> Vec<Range<u64>> {
    let mut named = named(graph);
    named.retain(|named| named.partition.is_none());
    held(graph, on, &named, table.entries.iter().map(|entry| entry.partition.range()))
}

/// The parts of provider `on` that labels name, of `named`, and that none of `used` has, which are
/// ranges of it; in order.
pub fn held(
    graph: &Graph,
    on: Id,
    named: &[Named],
    used: impl Iterator<Item = Range<u64>>,
) -> Vec<Range<u64>> {
    let p = &graph.providers[on];
    let (base, length) = (p.base(), p.topology.length);
    let here = named.iter().filter(|named| graph.is_within(named.disk, on));
    let inside = |at: u64| at.saturating_sub(base).min(length);
    let here = here.map(|named| inside(named.range.start)..inside(named.range.end));
    let mut here: Vec<Range<u64>> = here.filter(|range| range.start < range.end).collect();
    here.sort_by_key(|range| (range.start, range.end));
    let used: Vec<Range<u64>> = used.collect();
    let mut held: Vec<Range<u64>> = Vec::new();
    for range in here {
        // What two labels name counts once.
        let from = held.last().map_or(range.start, |last| last.end.max(range.start));
        let range = from.min(range.end)..range.end;
        held.extend(free_within(&range, used.iter().cloned()));
    }
    held
}
