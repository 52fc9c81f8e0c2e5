//! Conversion of a disk between sizes of logical sectors: tables and file systems that count in
//! sectors are written anew, and everything else stays at its byte.
//!
//! A [`Conversion`] is planned purely from a graph and says everything that stands in its way at
//! once. It is a list of [`Write`]s, which may read what others of them write: so they are done
//! into another store, or by a [`Rewrite`](rewrite::Rewrite), which holds old and new bytes before
//! the first of them.
//!
//! # Limits
//! Sectors of 512 and of 4096 bytes; GPT and MBR. A table inside a partition is not converted, but
//! for the chain of an extended one. Decision 0062 has the rules and what they were compared with.

use crate::base::resize::{Aim, Origin, Resized, Tables, Write};
use crate::base::store::Store;
use crate::base::topology::{is_whole, round_down, round_up};
use crate::format::Inside;
use crate::graph::provider_store::Through;
use crate::graph::{Graph, Id};
use crate::registry;
use crate::table::{Advice, Refusal};
use std::collections::BTreeMap;
use std::ops::Range;

pub mod owned;
pub mod rewrite;

/// Bytes of an MBR before its entries that a BIOS runs.
const BOOT_CODE: usize = 440;

/// Bytes at the end of a partition that are zero if nothing counts from there.
const END: u64 = 64 << 10;
/// Bytes that are read at once.
const PIECE: usize = 64 << 10;
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
    let mut planner =
        Planner { graph, disk, aim, obstacles: Vec::new(), notes: Vec::new(), writes: Vec::new() };
    let table = planner.table();
    let tail = table.as_ref().map_or(0, |table| table.scheme.tail(table, &aim));
    let (partitions, after) = planner.places(before, tail, grows);
    let ends: BTreeMap<u64, u64> =
        partitions.iter().map(|kept| (kept.after.start, kept.after.end)).collect();
    // A table of places that were refused would be refused once more.
    if let Some(table) = table.as_ref().filter(|_| planner.obstacles.is_empty()) {
        match table.scheme.convert(table, &Tables { aim: &aim, length: after, ends: &ends }) {
            Ok(writes) => planner.writes = writes,
            Err(refusal) => planner.refuse(disk, refusal),
        }
    }
    planner.require_sense(&partitions, [before, after]);
    planner.require_room(&partitions);
    planner.note_boot_code();
    let rewritten = planner.contents(&ends, after);
    let Planner { mut writes, notes, obstacles, .. } = planner;
    writes.sort_by_key(|write| write.at);
    if !obstacles.is_empty() {
        return Err(obstacles);
    }
    let apart = writes.windows(2).all(|pair| pair[0].end() <= pair[1].at);
    if !apart || writes.last().is_some_and(|last| last.end() > after.max(before)) {
        let refusal = Refusal::new("what would be written lies over itself", "check the disk");
        return Err(vec![Obstacle { id: disk, refusal }]);
    }
    let partitions = partitions.into_iter().filter(|kept| !is_chain(graph, kept.id)).collect();
    Ok(Conversion { aim, before, after, partitions, rewritten, writes, notes })
}

fn is_chain(graph: &Graph, id: Id) -> bool {
    graph.providers[id].is_extended()
}

struct Planner<'a> {
    graph: &'a Graph,
    disk: Id,
    aim: Aim,
    obstacles: Vec<Obstacle>,
    notes: Vec<(Id, String)>,
    writes: Vec<Write>,
}

impl Planner<'_> {
    fn refuse(&mut self, id: Id, refusal: Refusal) {
        self.obstacles.push(Obstacle { id, refusal });
    }

    /// The table on the disk; `None` for a disk without one, or with one that stands in the way.
    fn table(&mut self) -> Option<crate::table::Table> {
        let disk = &self.graph.providers[self.disk];
        let (class, _) = disk.table.as_ref()?;
        let probe = self.graph.probe(self.disk);
        let table = registry::scheme_of(class).and_then(|scheme| scheme.read(&probe));
        if table.is_none() {
            let found = format!("tables of {class} are only read");
            self.refuse(self.disk, Refusal::new(found, "use the tool of their own system"));
        }
        let damage = table.as_ref().map(|table| table.damage.join("; "));
        if let Some(damage) = damage.filter(|damage| !damage.is_empty()) {
            let found = format!("its table is damaged: {damage}");
            self.refuse(self.disk, Refusal::new(found, Advice::Recover));
            return None;
        }
        table
    }

    /// Partitions with their new ends in order of their starts, those that hold a chain too, and
    /// the length that the disk needs. `tail` bytes stay free at its end.
    fn places(&mut self, length: u64, tail: u64, grows: bool) -> (Vec<Kept>, u64) {
        let graph = self.graph;
        let grid = self.aim.grid();
        let is_partition = |&id: &Id| {
            let p = &graph.providers[id];
            let &[parent] = p.parents.as_slice() else { return false };
            let of_disk = parent == self.disk
                || is_chain(graph, parent) && graph.providers[parent].parents == [self.disk];
            of_disk && !p.is_data_area() && !p.is_set && p.start.is_some()
        };
        let mut ids: Vec<Id> = (0..graph.providers.len()).filter(is_partition).collect();
        if graph.providers[self.disk].table.is_none() {
            ids.clear();
        }
        let range = |id: Id| {
            let p = &graph.providers[id];
            p.base()..p.base().saturating_add(p.topology.length)
        };
        ids.sort_by_key(|&id| (range(id).start, std::cmp::Reverse(range(id).end)));
        // Bytes that partitions may take as long as the disk is no longer than it has to be.
        let fixed = round_down(length, grid).saturating_sub(tail);
        let mut after = if grows { round_up(length, grid).unwrap_or(length) } else { length };
        if !grows && self.graph.providers[self.disk].table.is_some() {
            after = round_down(length, grid);
        }
        let mut kept = Vec::new();
        for id in ids {
            let before = range(id);
            if !is_whole(before.start, grid) {
                let found = format!("it begins at byte {}, no multiple of {grid}", before.start);
                self.refuse(id, Refusal::new(found, Advice::Align));
                continue;
            }
            let up = round_up(before.end, grid).unwrap_or(before.end);
            let limit = if grows { after.saturating_sub(tail).max(fixed) } else { fixed };
            let least = before.start.saturating_add(self.needs(id));
            let end = if up <= limit && (up == before.end || self.is_loose(id)) {
                up
            } else if round_down(limit.min(before.end), grid) >= least
                && self.is_measured(id, round_down(limit.min(before.end), grid)..before.end)
            {
                round_down(limit.min(before.end), grid)
            } else if grows && (up == before.end || self.is_loose(id)) {
                after = up.saturating_add(tail);
                up
            } else {
                self.refuse(id, unfitting(&before, limit, grid, up == before.end));
                continue;
            };
            kept.push(Kept { id, after: before.start..end, before });
        }
        (kept, after)
    }

    /// Bytes that the contents of a partition need from its start on.
    fn needs(&self, id: Id) -> u64 {
        let inside = self.graph.providers[id].in_use().filter_map(|sign| sign.size).max();
        let logical = |inner: &Id| self.graph.providers[*inner].parents == [id];
        let p = &self.graph.providers[id];
        let last = (0..self.graph.providers.len())
            .filter(logical)
            .filter(|_| is_chain(self.graph, id))
            .map(|inner| {
                self.graph.providers[inner].base() + self.graph.providers[inner].topology.length
            })
            .max();
        inside.unwrap_or(0).max(last.map_or(0, |end| end.saturating_sub(p.base())))
    }

    /// True if nothing in a partition counts from its end: it holds a chain, a file system that
    /// knows its own length, or nothing that is known and zeros at its end.
    fn is_loose(&self, id: Id) -> bool {
        let p = &self.graph.providers[id];
        if is_chain(self.graph, id) {
            return true;
        }
        let is_free = p.member.is_none() && p.table.is_none();
        if p.signs.is_empty() {
            let length = p.topology.length;
            return is_free && self.is_zero(id, length.saturating_sub(END)..length);
        }
        is_free && self.keeps_to_its_size(id)
    }

    /// True if all that is known on a provider is within the size that it records.
    fn keeps_to_its_size(&self, id: Id) -> bool {
        self.graph.providers[id].signs.iter().all(|sign| {
            sign.tail.is_none() && sign.size.is_some() && sign.kind.format.keeps_to_its_size()
        })
    }

    /// True if those bytes of a provider are zero, as far as they can be read.
    fn is_zero(&self, id: Id, range: Range<u64>) -> bool {
        let mut bytes = vec![0; PIECE];
        let mut at = range.start;
        while at < range.end {
            let length = usize::try_from(range.end - at).unwrap_or(PIECE).min(PIECE);
            let read = self.graph.read_at(id, &mut bytes[..length], at);
            if read.is_err() || bytes[..length].iter().any(|&byte| byte != 0) {
                return false;
            }
            at += length as u64;
        }
        true
    }

    /// True if a partition may lose the bytes `cut` of the disk at its end: what is in it says that
    /// it is shorter, and they are zero.
    fn is_measured(&self, id: Id, cut: Range<u64>) -> bool {
        let p = &self.graph.providers[id];
        let is_known = p.in_use().next().is_some() && p.member.is_none() && p.table.is_none();
        let inside = cut.start.saturating_sub(p.base())..cut.end.saturating_sub(p.base());
        is_chain(self.graph, id)
            || is_known && self.keeps_to_its_size(id) && self.is_zero(id, inside)
    }

    /// Refuses a disk that would get another length under what counts from its end, one on which
    /// nothing is known, and partitions that lie over each other.
    fn require_sense(&mut self, partitions: &[Kept], lengths: [u64; 2]) {
        let disk = &self.graph.providers[self.disk];
        let is_member = disk.member.is_some();
        if lengths[0] != lengths[1] && (is_member || !self.keeps_to_its_size(self.disk)) {
            let found =
                "its length is no multiple of the sector, and what is on it counts from its end";
            self.refuse(self.disk, Refusal::new(found, "copy what is on it"));
        }
        if disk.table.is_none() && disk.signs.is_empty() && !is_member {
            self.refuse(self.disk, Refusal::new("nothing on it is recognised", ""));
        }
        let leaves: Vec<&Kept> =
            partitions.iter().filter(|kept| !is_chain(self.graph, kept.id)).collect();
        for pair in leaves.windows(2) {
            if pair[1].before.start < pair[0].before.end.max(pair[0].after.end) {
                let found = "it lies over the partition before it";
                self.refuse(pair[1].id, Refusal::new(found, "mend the table first"));
            }
        }
    }

    /// Refuses partitions over the places of the new table.
    fn require_room(&mut self, partitions: &[Kept]) {
        for kept in partitions.iter().filter(|kept| !is_chain(self.graph, kept.id)) {
            // What it gives up or gets at its end is no place of its contents.
            let end = kept.before.end.min(kept.after.end);
            let over = |write: &&Write| write.at < end && kept.before.start < write.end();
            let Some(write) = self.writes.iter().find(over) else { continue };
            let found = format!(
                "its bytes from {} are where the {} would be",
                kept.after.start, write.what
            );
            let advice = format!("move it first, to byte {} or further", write.end());
            self.refuse(kept.id, Refusal::new(found, advice));
        }
    }

    /// Notes boot code that will not find its sectors.
    fn note_boot_code(&mut self) {
        let code = self.graph.probe(self.disk).bytes(0, BOOT_CODE).unwrap_or_default();
        let has_table = self.graph.providers[self.disk].table.is_some();
        if !self.aim.universal && has_table && code.iter().any(|&byte| byte != 0) {
            let note = format!(
                "the boot code in its first sector finds its next stage by sectors of {} bytes: \
                 install the boot loader anew",
                self.aim.from
            );
            self.notes.push((self.disk, note));
        }
    }

    /// Adds the writes of all contents, and returns the providers that have any.
    fn contents(&mut self, ends: &BTreeMap<u64, u64>, length: u64) -> Vec<Id> {
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
            let inner = p.table.as_ref().filter(|_| id != self.disk && !is_chain(graph, id));
            if let Some((class, _)) = inner {
                let found = format!("a table of {class} inside a partition");
                let advice = "copy what is in it onto a disk of the other sectors";
                self.refuse(id, Refusal::new(found, advice));
                continue;
            }
            if let Some((class, _)) =
                p.member.as_ref().filter(|(class, _)| registry::lies_by_sectors(class))
            {
                let found = format!("the metadata of its {class} are in its last sector");
                self.refuse(id, Refusal::new(found, "make the set anew on the other sectors"));
                continue;
            }
            let own = if id == self.disk { length } else { p.topology.length };
            let resized = Resized {
                from: self.aim.from,
                to: self.aim.grid(),
                base: p.base(),
                length: ends.get(&p.base()).map_or(own, |end| end.saturating_sub(p.base())),
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
                        held = held.saturating_add(known(&writes));
                        rewritten.push(id);
                        self.writes.extend(writes.into_iter().map(|write| write.shift(p.base())));
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

/// The refusal of a partition that ends where it cannot, on a disk whose length stays.
fn unfitting(before: &Range<u64>, limit: u64, grid: u64, is_whole: bool) -> Refusal {
    let end = before.end;
    let found = match is_whole {
        true => format!("it ends at byte {end}, and the table needs what lies behind {limit}"),
        false => format!(
            "it ends at byte {end}, no multiple of {grid}, and what is in it counts from there, \
             or has no room"
        ),
    };
    let advice = format!(
        "make what is in it, and the partition, end at byte {} or before; or convert an \
         image, which may get longer",
        round_down(limit.min(end), grid)
    );
    Refusal::new(found, advice)
}
