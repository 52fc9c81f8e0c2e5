//! Tables in partitions whose contents are off the grain by different distances: these partitions
//! move within their table, after the one that they are in.

use super::{Level, Obstacle, Planned, Whole};
use crate::base::patch::{Patch, lay_over};
use crate::base::topology::Grain;
use crate::format::grub;
use crate::graph::{Graph, Id};
use crate::relocate::sequence::{Movement, Stage};
use crate::table::turn::Turn;
use crate::table::{Refusal, Table};
use std::collections::BTreeSet;

/// Largest number of tables around one that is planned.
const DEEPEST: usize = 4;
/// Places of a partition, by what it carries, that are tried.
const TRIED: usize = 8;

/// Provider that a partition carries, at the end of a branch: it does I/O.
pub(super) struct Carried {
    /// Provider at that end.
    pub(super) id: Id,
    /// Its first byte, in addresses of the partition.
    pub(super) at: u64,
}

/// All that partition `id` carries, at the ends of every branch.
pub(super) fn carried(graph: &Graph, id: Id) -> Vec<Carried> {
    let base = graph.providers[id].base();
    let ranges = graph.providers.iter().filter(|p| !p.is_set);
    let divided: BTreeSet<Id> = ranges.flat_map(|p| p.parents.iter().copied()).collect();
    let is_end = |inner: &Id| {
        let p = &graph.providers[*inner];
        let is_table = p.is_extended() || p.slices().is_some();
        !is_table && !divided.contains(inner) && graph.is_within(id, *inner)
    };
    let ends = (id + 1..graph.providers.len()).filter(is_end);
    ends.map(|id| Carried { id, at: graph.providers[id].base().saturating_sub(base) }).collect()
}

/// The outermost provider with a table in partition `id`; `None` without one, or with several.
fn tabled(graph: &Graph, id: Id) -> Option<Id> {
    let has_table =
        |inner: &Id| graph.providers[*inner].slices().is_some() && graph.is_within(id, *inner);
    let mut tables = (id..graph.providers.len()).filter(has_table);
    let first = tables.next()?;
    tables.all(|other| graph.is_within(first, other)).then_some(first)
}

/// Table in a partition, whose partitions move within it.
pub(super) struct Nest {
    /// Provider with the table.
    on: Id,
    /// First byte of that provider, in addresses of the partition.
    at: u64,
    /// Table as it is now.
    table: Table,
    /// Places of the partition with room in it for all that it carries, the best first.
    pub(super) choices: Vec<Choice>,
}

/// Place of a partition that carries others, by what of it is on the grain. Of two the lesser one
/// leaves less off the grain, then moves fewer bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Choice {
    /// Number of partitions in it that stay off the grain.
    pub(super) left: usize,
    /// Bytes that are moved within it.
    pub(super) bytes: u64,
    /// Byte of the partition that comes out on the grain.
    pub(super) inside: u64,
}

impl Nest {
    /// Adds the plan `inside` of a partition, which goes from byte `from` of the table around it to
    /// `to`, to the plan `whole` of that table.
    pub(super) fn put(&self, inside: Whole, from: u64, to: u64, whole: &mut Whole) {
        let (from, to) = (from.saturating_add(self.at), to.saturating_add(self.at));
        whole.stages.extend(inside.stages.into_iter().map(|stage| shifted(stage, to)));
        let placed = |p: Planned| {
            let now = p.now.start.saturating_add(from)..p.now.end.saturating_add(from);
            let own = p.own.map(|own| along(own, to));
            Planned { now, own, to: p.to.saturating_add(to), ..p }
        };
        whole.partitions.extend(inside.partitions.into_iter().map(placed));
    }
}

fn along(moved: Movement, by: u64) -> Movement {
    let Movement { from, to, length } = moved;
    Movement { from: from.saturating_add(by), to: to.saturating_add(by), length }
}

/// The stage in addresses that begin `by` bytes before its own.
fn shifted(stage: Stage, by: u64) -> Stage {
    let put = |patches: Vec<Patch>| {
        let put = |p: Patch| Patch { offset: p.offset.saturating_add(by), ..p };
        patches.into_iter().map(put).collect()
    };
    let Turn { fresh, change, was, gone } = stage.turn;
    let turn = Turn { fresh: put(fresh), change: put(change), was: put(was), gone: put(gone) };
    Stage { moved: stage.moved.map(|moved| along(moved, by)), turn }
}

impl Level<'_> {
    /// The table in a partition which carries providers that no one place is right for. A want of
    /// room is that of the place at which the least is wanting.
    pub(super) fn nest(
        &self,
        planned: &Planned,
        carried: &[Carried],
        common: Grain,
    ) -> Result<Nest, Obstacle> {
        let graph = self.graph;
        let refused = |found: &str| Obstacle::from(Refusal::new(found, ""));
        let on = tabled(graph, planned.id).ok_or_else(|| refused("they are not of one table"))?;
        if self.depth >= DEEPEST {
            return Err(refused("there are too many tables around them"));
        }
        if let Some(why) = (self.answers.closed)(on) {
            return Err(refused(&why));
        }
        let table = graph.providers[on].tasted().table(&graph.probe(on));
        let table = table.filter(|table| table.scheme.is_editable());
        let table = table.ok_or_else(|| refused("tables of this sort are not written"))?;
        let base = |id: Id| graph.providers[id].base();
        let at = base(on).saturating_sub(base(planned.id));
        let mut nest = Nest { on, at, table, choices: Vec::new() };
        let start = planned.now.start;
        let own = common.next(start).map(|next| next - start);
        let mut tried: Vec<u64> = own.into_iter().collect();
        for inside in carried.iter().map(|carried| carried.at) {
            let is_new = tried.iter().all(|&other| common.shift(other) != common.shift(inside));
            if is_new && planned.stays.is_none() && tried.len() < TRIED {
                tried.push(inside);
            }
        }
        let (mut least, mut why) = (None::<(u64, u64)>, None);
        for inside in tried {
            let grain = common.shift(inside);
            let Some(to) = grain.next(start).or(grain.previous(start)) else { continue };
            match self.inside(&nest, planned.id, to, false).map_err(Obstacle::from)?.plan() {
                Ok(plan) => {
                    let left = plan.partitions.iter().filter(|p| p.stays.is_some()).count();
                    let moved = plan.stages.iter().filter_map(|stage| stage.moved);
                    let bytes = moved.fold(0, |sum: u64, moved| sum.saturating_add(moved.length));
                    nest.choices.push(Choice { left, bytes, inside });
                }
                Err(Obstacle::Room(room)) => {
                    let longer = room.longer.unwrap_or(u64::MAX);
                    if least.is_none_or(|(before, _)| longer < before) {
                        least = Some((longer, to));
                    }
                }
                Err(Obstacle::Refused(refusal)) => why = why.or(Some(refusal)),
            }
        }
        nest.choices.sort_unstable();
        if !nest.choices.is_empty() {
            return Ok(nest);
        }
        if let Some((_, to)) = least.filter(|_| self.explains) {
            self.inside(&nest, planned.id, to, true)?.plan()?;
        }
        Err(why.map_or_else(|| refused("there is no room in it"), Obstacle::from))
    }

    /// The table of `nest` where partition `id`, which it is in, begins at byte `to` of the
    /// provider with this table.
    pub(super) fn inside(
        &self,
        nest: &Nest,
        id: Id,
        to: u64,
        explains: bool,
    ) -> Result<Level<'_>, Refusal> {
        let graph = self.graph;
        let base = |id: Id| graph.providers[id].base();
        let (from, end) =
            (base(id).saturating_sub(base(self.outermost)), self.at.saturating_add(to));
        let patches = match from == end {
            true => Vec::new(),
            false => (self.answers.adapted)(id, from, end).map_err(|errno| {
                Refusal::new(format!("{errno} in {}", graph.providers[id].name), "")
            })?,
        };
        let inner = |p: Patch| Some(Patch { offset: p.offset.checked_sub(nest.at)?, ..p });
        let patches: Vec<Patch> = patches.into_iter().filter_map(inner).collect();
        let mut table = nest.table.clone();
        for (at, bytes) in nest.table.raw.runs() {
            let mut bytes = bytes.to_vec();
            lay_over(&patches, at, &mut bytes);
            table.raw.put(at, &bytes);
        }
        if table.origin != 0 {
            // Its numbers count from elsewhere, and follow.
            let origin = table.origin.checked_add(end).and_then(|at| at.checked_sub(from));
            table.origin = origin.ok_or_else(|| Refusal::new("a label past 2^64 bytes", ""))?;
        }
        let at = to.saturating_add(nest.at);
        let on = &graph.providers[nest.on];
        Ok(Level {
            graph,
            bound: self.bound,
            outermost: self.outermost,
            on: nest.on,
            at: self.at.saturating_add(at),
            table,
            topology: self.topology.shift(at, on.topology.length),
            base: self.base.saturating_add(at),
            kind: on.kind,
            patches,
            answers: self.answers,
            depth: self.depth + 1,
            explains,
        })
    }

    /// Adds to `stages` what GRUB notes in the first sector of the disk of the partitions that
    /// move.
    pub(super) fn boot(&self, stages: &mut [Stage]) {
        let mut boot = vec![0; usize::try_from(self.table.sector).unwrap_or_default()];
        if self.graph.read_at(self.on, &mut boot, 0).is_err() {
            return;
        }
        for Stage { moved, turn } in stages {
            if let Some(own) = turn.change.iter().rev().find(|patch| patch.offset == 0) {
                boot.clone_from(&own.bytes);
                continue;
            }
            let Some(Movement { from, to, length }) = *moved else { continue };
            let was = boot.clone();
            if grub::follow(&mut boot, &(from..from.saturating_add(length)), to) {
                turn.was.push(Patch::new(0, was, "boot sector"));
                turn.change.push(Patch::new(0, boot.clone(), "boot sector"));
            }
        }
    }
}
