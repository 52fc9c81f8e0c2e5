//! Labels that name partitions elsewhere on the disk, while those move.
//!
//! Where a label goes, and where the others are by then, an entry for one of them could look like a
//! partition of the label's own slice, and would be taken along on the way back. So a label that
//! moves is without such entries on its way: the first stage takes them out, the last one writes
//! them with the new places. A label that stays has its entries changed by the last stage alone.

use super::{Level, Whole};
use crate::base::patch::{Patch, lay_over};
use crate::base::store::Store;
use crate::graph::Id;
use crate::mapping::slices::place;
use crate::relocate::named::{Named, label};
use crate::relocate::sequence::{Movement, Stage};
use crate::table::turn::Turn;
use crate::table::{Refusal, Table};
use std::collections::BTreeMap;

/// Sectors of a label, by their first bytes in its provider.
type Sectors = BTreeMap<u64, Vec<u8>>;

impl Level<'_> {
    /// Adds to the plan what lets labels follow `followed`, partitions outside of their slices. A
    /// refusal says which place would be written although a label names it.
    pub(super) fn rename(&self, whole: &mut Whole, followed: &[Named]) -> Result<(), Refusal> {
        self.require_clear(whole)?;
        let mut all = BTreeMap::<Id, Vec<(u32, u64)>>::new();
        for named in followed {
            let Some(partition) = named.partition else { continue };
            let [partition, disk] = [partition, named.disk].map(|id| self.goes(whole, id));
            let base = self.graph.providers[named.disk].base();
            let to = partition.saturating_sub(disk);
            if to != named.range.start.saturating_sub(base) {
                all.entry(named.label).or_default().push((named.index, to));
            }
        }
        all.into_iter().try_for_each(|(id, starts)| self.rename_in(whole, id, &starts))
    }

    /// First byte of provider `id` on the outermost one, in the end.
    fn goes(&self, whole: &Whole, id: Id) -> u64 {
        let base = |id: Id| self.graph.providers[id].base();
        let around = whole.partitions.iter().rfind(|p| self.graph.is_within(p.id, id));
        around.map_or(base(id).saturating_sub(base(self.outermost)), |around| {
            around.to.saturating_add(base(id).saturating_sub(base(around.id)))
        })
    }

    /// Refuses stages that write to what a label names and cannot follow.
    fn require_clear(&self, whole: &Whole) -> Result<(), Refusal> {
        let graph = self.graph;
        let base = graph.providers[self.outermost].base();
        for named in self.bound.iter().filter(|n| graph.is_within(n.disk, self.outermost)) {
            let range =
                named.range.start.saturating_sub(base)..named.range.end.saturating_sub(base);
            let meets = |from: u64, to: u64| from < range.end && range.start < to;
            let writes = |stage: &&Stage| {
                let place = |m: Movement| meets(m.to, m.to.saturating_add(m.length));
                let fresh = |patch: &Patch| meets(patch.offset, patch.end());
                stage.moved.is_some_and(place) || stage.turn.fresh.iter().any(fresh)
            };
            if whole.stages.iter().any(|stage| writes(&stage)) {
                let found = format!("{}, which would be written over", named.reason(graph));
                let advice = "take that entry out of the label first (disklabel -E)";
                return Err(Refusal::new(found, advice));
            }
        }
        Ok(())
    }

    /// Adds the stages for the label on provider `id`, whose partitions of those numbers come to
    /// begin at those bytes in its count.
    fn rename_in(&self, whole: &mut Whole, id: Id, starts: &[(u32, u64)]) -> Result<(), Refusal> {
        let name = &self.graph.providers[id].name;
        let unfit =
            || Refusal::new(format!("the label in {name} cannot follow its neighbours"), "");
        let table = label(self.graph, id).ok_or_else(unfit)?;
        let clear: Vec<_> = starts.iter().map(|&(index, _)| (index, None)).collect();
        let anew: Vec<_> = starts.iter().map(|&(index, to)| (index, Some(to))).collect();
        let cleared = |sectors: &Sectors| renamed(&table, sectors, &clear).ok_or_else(unfit);
        let there = held(&table, &renamed(&table, &Sectors::new(), &clear).ok_or_else(unfit)?);
        let from = self.start(id);
        let (mut at, mut first, mut last) = (from, None, None);
        for (n, stage) in whole.stages.iter().enumerate() {
            let Some(Movement { from, to, length }) = stage.moved else { continue };
            if let Some(inside) = at.checked_sub(from).filter(|&inside| inside < length) {
                at = to.saturating_add(inside);
                (first, last) = (first.or(Some(n)), Some(n));
            }
        }
        let mut end = match (first, last) {
            (Some(first), Some(last)) => {
                let without = cleared(&there)?;
                if let Some(stage) = whole.stages.get_mut(first) {
                    stage.turn.gone.extend(patches(&without, from));
                }
                for stage in whole.stages.iter_mut().skip(last + 1) {
                    let Turn { change, was, .. } = &mut stage.turn;
                    for patch in change.iter_mut().chain(was) {
                        let inside = patch.offset.checked_sub(at);
                        let Some(inside) = inside.filter(|at| there.contains_key(at)) else {
                            continue;
                        };
                        let mut sectors = there.clone();
                        sectors.insert(inside, std::mem::take(&mut patch.bytes));
                        patch.bytes = cleared(&sectors)?.remove(&inside).ok_or_else(unfit)?;
                    }
                }
                let end = cleared(&self.adapted(id, from, at, &there)?)?;
                whole.stages.insert(0, stage(&there, &without, from).ok_or_else(unfit)?);
                end
            }
            _ => there,
        };
        // What stages within the slice have made of it.
        for patch in whole.stages.iter().flat_map(|stage| &stage.turn.change) {
            let inside = patch.offset.checked_sub(at);
            if let Some(sector) = inside.and_then(|inside| end.get_mut(&inside)) {
                sector.clone_from(&patch.bytes);
            }
        }
        let new = renamed(&table, &end, &anew).ok_or_else(unfit)?;
        whole.stages.extend(stage(&end, &new, at));
        Ok(())
    }

    /// First byte of provider `id` on the outermost one, now.
    fn start(&self, id: Id) -> u64 {
        let base = |id: Id| self.graph.providers[id].base();
        base(id).saturating_sub(base(self.outermost))
    }

    /// The sectors `there` of the label on provider `id`, which goes from byte `from` of the
    /// outermost provider to `at`, as the moves write them.
    fn adapted(&self, id: Id, from: u64, at: u64, there: &Sectors) -> Result<Sectors, Refusal> {
        let graph = self.graph;
        let is_partition =
            |outer: &Id| graph.providers[*outer].kind.is_some() && graph.is_within(*outer, id);
        let partition = (0..=id).rev().find(is_partition).unwrap_or(id);
        let inside = from.saturating_sub(self.start(partition));
        let (start, end) = (from.saturating_sub(inside), at.saturating_sub(inside));
        let patches = (self.answers.adapted)(partition, start, end).map_err(|errno| {
            let at = place(from, self.table.sector);
            Refusal::new(format!("{errno} in the label at {at}"), "")
        })?;
        let mut there = there.clone();
        for (offset, bytes) in &mut there {
            lay_over(&patches, offset.saturating_add(inside), bytes);
        }
        Ok(there)
    }
}

/// The sectors that `table` has at the places of `like`, as they were read.
fn held(table: &Table, like: &Sectors) -> Sectors {
    let read = |(&at, bytes): (&u64, &Vec<u8>)| {
        let mut now = vec![0; bytes.len()];
        // Bytes that were not read are zero.
        let _ = table.raw.read_at(&mut now, at);
        (at, now)
    };
    like.iter().map(read).collect()
}

/// The sectors of the label of `table`, if it has `sectors`, with other starts of partitions
/// outside.
fn renamed(table: &Table, sectors: &Sectors, starts: &[(u32, Option<u64>)]) -> Option<Sectors> {
    let mut table = table.clone();
    sectors.iter().for_each(|(at, bytes)| table.raw.put(*at, bytes));
    let size = usize::try_from(table.sector).ok()?;
    let mut new = Sectors::new();
    for patch in table.scheme.rename(&table, starts)? {
        let sectors = (patch.offset..).step_by(size).zip(patch.bytes.chunks(size));
        new.extend(sectors.map(|(at, bytes)| (at, bytes.to_vec())));
    }
    Some(new)
}

/// Sectors as patches of the outermost provider, on which theirs begins at byte `at`.
fn patches(sectors: &Sectors, at: u64) -> Vec<Patch> {
    let patch = |(offset, bytes): (&u64, &Vec<u8>)| {
        Patch::new(at.saturating_add(*offset), bytes.clone(), "disklabel")
    };
    sectors.iter().map(patch).collect()
}

/// The stage that turns sectors of a label into others; `None` if they are the same.
fn stage(was: &Sectors, new: &Sectors, at: u64) -> Option<Stage> {
    let pairs = patches(was, at).into_iter().zip(patches(new, at));
    let (was, change): (Vec<Patch>, Vec<Patch>) =
        pairs.filter(|(was, new)| was.bytes != new.bytes).unzip();
    let turn = Turn { change, was, ..Turn::default() };
    (!turn.change.is_empty()).then_some(Stage { moved: None, turn })
}
