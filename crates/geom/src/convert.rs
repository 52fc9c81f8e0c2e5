//! Conversion of a disk between sizes of logical sectors: tables and file systems that count in
//! sectors are written anew, and everything else stays at its byte.
//!
//! A [`Conversion`] is planned purely from a graph and says everything that stands in its way at
//! once. It is a list of [`Write`]s, which may read what others of them write: so they are done
//! into another store, or by a [`Rewrite`](rewrite::Rewrite), which holds old and new bytes before
//! the first of them.
//!
//! # Limits
//! Sectors of 512 and of 4096 bytes; GPT and MBR, also in partitions of each other, eight
//! deep. Decision 0062 has the rules and what they were compared with.

use crate::base::resize::{Aim, Origin, Resized, Tables, Write};
use crate::base::store::Store;
use crate::format::Inside;
use crate::graph::provider_store::Through;
use crate::graph::{Graph, Id};
use crate::registry;
use crate::table::{Refusal, Table};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

pub mod owned;
mod places;
mod relabel;
pub mod rewrite;

/// Bytes of an MBR before its entries that a BIOS runs.
const BOOT_CODE: usize = 440;

/// Most tables inside each other.
const DEEPEST: usize = 8;
/// Most bytes of known contents that a plan holds.
const LARGEST: u64 = 128 << 20;

/// Partition that is kept, with its range before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Provider that is the partition.
    pub id: Id,
    /// Bytes of the disk that it has.
    pub before: Range<u64>,
    /// Bytes of the disk that it will have: only its end may differ.
    pub after: Range<u64>,
}

/// Fact that stands in the way of a conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Provider that it concerns.
    pub id: Id,
    /// Its description and what to do.
    pub refusal: Refusal,
}

/// Plan by which a disk is converted.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// Sizes of sectors, before and after.
    pub aim: Aim,
    /// Length of the disk in bytes.
    pub before: u64,
    /// Length that it will have in bytes: longer where its backup table needs room.
    pub after: u64,
    /// Partitions in order of their starts.
    pub partitions: Vec<Kept>,
    /// Formats that are written anew, by their providers.
    pub rewritten: Vec<Id>,
    /// Writes to the disk, apart from each other, in order of offset.
    pub writes: Vec<Write>,
    /// Facts that the user should know, in words.
    pub notes: Vec<(Id, String)>,
}

impl Conversion {
    /// Bytes that its writes have together.
    pub fn bytes(&self) -> u64 {
        self.writes.iter().fold(0, |sum: u64, write| sum.saturating_add(write.length()))
    }
}

/// Plans the conversion of `disk`, a provider that lies in no other. `grows` tells if it can be
/// made longer. Errors: everything that stands in the way.
pub fn plan(graph: &Graph, disk: Id, aim: Aim, grows: bool) -> Result<Conversion, Vec<Obstacle>> {
    let before = graph.providers[disk].topology.length;
    let mut planner = Planner {
        graph,
        disk,
        aim,
        kept: BTreeMap::new(),
        obstacles: Vec::new(),
        notes: Vec::new(),
        writes: Vec::new(),
    };
    let after = planner.lay(disk, before, grows, 1);
    planner.require_known([before, after]);
    let rewritten = planner.contents(after);
    let Planner { mut writes, notes, obstacles, kept, .. } = planner;
    writes.sort_by_key(|write| write.at);
    if !obstacles.is_empty() {
        return Err(obstacles);
    }
    let apart = writes.windows(2).all(|pair| pair[0].end() <= pair[1].at);
    if !apart || writes.last().is_some_and(|last| last.end() > after.max(before)) {
        let refusal = Refusal::new("what would be written lies over itself", "check the disk");
        return Err(vec![Obstacle { id: disk, refusal }]);
    }
    let mut partitions: Vec<Kept> =
        kept.into_values().filter(|kept| !is_chain(graph, kept.id)).collect();
    partitions.sort_by_key(|kept| (kept.before.start, Reverse(kept.before.end)));
    Ok(Conversion { aim, before, after, partitions, rewritten, writes, notes })
}

fn is_chain(graph: &Graph, id: Id) -> bool {
    graph.providers[id].is_extended()
}

struct Planner<'a> {
    graph: &'a Graph,
    disk: Id,
    aim: Aim,
    /// Partitions of all tables, those that hold a chain too.
    kept: BTreeMap<Id, Kept>,
    obstacles: Vec<Obstacle>,
    notes: Vec<(Id, String)>,
    writes: Vec<Write>,
}

impl Planner<'_> {
    fn refuse(&mut self, id: Id, refusal: Refusal) {
        self.obstacles.push(Obstacle { id, refusal });
    }

    /// Its first byte on the disk.
    fn place(&self, id: Id) -> u64 {
        let base = self.graph.providers[self.disk].base();
        self.graph.providers[id].base().saturating_sub(base)
    }

    /// The provider whose table a partition is in; that of a logical one has the extended one.
    fn around(&self, id: Id) -> Option<Id> {
        let &[parent] = self.graph.providers[id].parents.as_slice() else { return None };
        if is_chain(self.graph, parent) && !is_chain(self.graph, id) {
            return self.around(parent);
        }
        Some(parent)
    }

    /// True if it is the disk, or a partition of it without a set or a format's data in between.
    fn is_plain(&self, id: Id) -> bool {
        let mut at = id;
        loop {
            let p = &self.graph.providers[at];
            match p.parents.as_slice() {
                _ if at == self.disk => return true,
                &[parent] if !p.is_set && !p.is_data_area() && !p.is_contents => at = parent,
                _ => return false,
            }
        }
    }

    /// Adds the writes of the table on `on`, which will have `length` bytes, and of those in its
    /// partitions. Returns the length that `on` needs; with `grows` it may be longer.
    fn lay(&mut self, on: Id, length: u64, grows: bool, depth: usize) -> u64 {
        if depth > DEEPEST {
            let found = format!("it lies in {DEEPEST} other tables");
            self.refuse(on, Refusal::new(found, "copy what is in it"));
            return length;
        }
        let (refused, written) = (self.obstacles.len(), self.writes.len());
        let table = self.table(on);
        let tail = table.as_ref().map_or(0, |table| table.scheme.tail(table, &self.aim));
        let (partitions, after) = self.places(on, length, tail, grows);
        let base = self.place(on);
        let end = |kept: &Kept| (kept.after.start - base, kept.after.end.saturating_sub(base));
        let ends: BTreeMap<u64, u64> = partitions.iter().map(end).collect();
        // A table of places that were refused would be refused once more.
        if let Some(table) = table.as_ref().filter(|_| self.obstacles.len() == refused) {
            let through = Through::new(self.graph, on);
            let read = |at: u64, out: &mut [u8]| through.read_at(out, at);
            let tables = Tables { aim: &self.aim, length: after, ends: &ends, read: &read };
            match table.scheme.convert(table, &tables) {
                Ok(writes) => {
                    self.writes.extend(writes.into_iter().map(|write| write.shift(base)));
                }
                Err(refusal) => self.refuse(on, refusal),
            }
            self.note_reader(on, table);
        }
        self.require_apart(&partitions);
        // A guest lies in a partition that leaves room for it, as it knows itself.
        if table.is_none_or(|table| !table.scheme.is_guest()) {
            self.require_room(&partitions, written);
        }
        for kept in partitions {
            let inner = self.graph.providers[kept.id].table.is_some();
            let length = kept.after.end - kept.after.start;
            if inner && !is_chain(self.graph, kept.id) {
                self.lay(kept.id, length, false, depth + 1);
            }
            self.kept.insert(kept.id, kept);
        }
        after
    }

    /// Notes readers of a table that will not find what they look for: boot code, and machines to
    /// which a partition is a disk.
    fn note_reader(&mut self, on: Id, table: &Table) {
        if self.aim.universal {
            return;
        }
        let code = self.graph.probe(on).bytes(0, BOOT_CODE).unwrap_or_default();
        if code.iter().any(|&byte| byte != 0) {
            let note = format!(
                "the boot code in its first sector finds its next stage by sectors of {} bytes: \
                 install the boot loader anew",
                self.aim.from
            );
            self.notes.push((on, note));
        }
        if on != self.disk && !table.scheme.is_guest() {
            let note = format!(
                "its {} will count sectors of {} bytes: a virtual machine that has it as a disk \
                 needs logical sectors of that size",
                table.scheme, self.aim.to
            );
            self.notes.push((on, note));
        }
    }

    /// Adds the writes of all contents, and returns the providers that have any. The disk will have
    /// `length` bytes.
    fn contents(&mut self, length: u64) -> Vec<Id> {
        let graph = self.graph;
        let mut rewritten = Vec::new();
        let mut held = 0_u64;
        // Sets that are partly on it, and all that is in those, too.
        let mut on = vec![false; graph.providers.len()];
        for id in 0..graph.providers.len() {
            on[id] = id == self.disk
                || graph.providers[id].parents.iter().any(|&p| on.get(p) == Some(&true));
        }
        for id in (0..graph.providers.len()).filter(|&id| on[id]) {
            let p = &graph.providers[id];
            if let Some((class, _)) = p.table.as_ref().filter(|_| !self.is_plain(id)) {
                let found = format!("a table of {class} inside a set, or in a format's data");
                let advice = "copy what is in it onto a disk of the other sectors";
                self.refuse(id, Refusal::new(found, advice));
                continue;
            }
            if let Some((class, _)) =
                p.member.as_ref().filter(|(class, _)| registry::lies_by_sectors(class))
            {
                let own = if id == self.disk { length } else { p.topology.length };
                let kept = self.kept.get(&id).map(|kept| kept.after.end - kept.after.start);
                match self.relabel(id, class, kept.unwrap_or(own)) {
                    Ok(writes) => {
                        let base = self.place(id);
                        rewritten.extend((!writes.is_empty()).then_some(id));
                        self.writes.extend(writes.into_iter().map(|write| write.shift(base)));
                    }
                    Err(refusal) => self.refuse(id, refusal),
                }
                continue;
            }
            if let Err(refusal) = self.require_no_label(id) {
                self.refuse(id, refusal);
                continue;
            }
            let own = if id == self.disk { length } else { p.topology.length };
            let kept = self.kept.get(&id).map(|kept| kept.after.end - kept.after.start);
            let within = self.around(id).map_or(0, |outer| graph.providers[outer].base());
            let resized = Resized {
                from: self.aim.from,
                to: self.aim.grid(),
                starts: [p.base(), p.base().saturating_sub(within)],
                length: kept.unwrap_or(own),
            };
            if let Some(sign) = p.in_use().find(|sign| sign.inside == Inside::Container) {
                let found = format!("{}: its bytes are a container's", sign.kind);
                self.refuse(id, Refusal::new(found, "convert the disk that is in it"));
                continue;
            }
            for sign in p.in_use() {
                let through = Through::new(graph, id);
                let mut read = |at: u64, out: &mut [u8]| through.read_at(out, at);
                match sign.kind.format.convert(sign, resized, &mut read) {
                    Ok(writes) if writes.is_empty() => {}
                    Ok(_) if p.route().medium().is_none() || p.is_set => {
                        let found = format!("its {} would be written anew inside a set", sign.kind);
                        self.refuse(id, Refusal::new(found, "copy its files out and back"));
                    }
                    Ok(writes) if held.saturating_add(known(&writes)) > LARGEST => {
                        let found = format!("its {} is too large to be written anew", sign.kind);
                        self.refuse(id, Refusal::new(found, "copy its files"));
                    }
                    Ok(writes) => {
                        let base = self.place(id);
                        held = held.saturating_add(known(&writes));
                        rewritten.push(id);
                        self.writes.extend(writes.into_iter().map(|write| write.shift(base)));
                    }
                    Err(refusal) => {
                        let found = format!("{}: {}", sign.kind, refusal.found);
                        self.refuse(id, Refusal::new(found, refusal.advice));
                    }
                }
            }
            if let Some(kind) = graph.veil(id).filter(|_| p.in_use().next().is_some()) {
                let note = format!("what is in it was not looked at: only {kind} can tell");
                self.notes.push((id, note));
            }
        }
        rewritten
    }
}

/// Bytes of known contents in `writes`.
fn known(writes: &[Write]) -> u64 {
    let bytes = |write: &Write| match &write.origin {
        Origin::Bytes(bytes) => bytes.len() as u64,
        Origin::Copied(..) => 0,
    };
    writes.iter().map(bytes).fold(0, u64::saturating_add)
}
