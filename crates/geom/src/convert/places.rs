//! Places of partitions in sectors of another size: their ends, and what stands in the way.

use super::{Kept, Planner, is_chain};
use crate::base::finding;
use crate::base::resize::Write;
use crate::base::topology::{is_whole, round_down, round_up};
use crate::graph::Id;
use crate::registry;
use crate::table::{Advice, Refusal, Table};
use std::cmp::Reverse;
use std::ops::Range;

/// Bytes at the end of a partition that are zero if nothing counts from there.
const END: u64 = 64 << 10;
/// Bytes that are read at once.
const PIECE: usize = 64 << 10;

impl Planner<'_> {
    /// The table on `on`; `None` without one, or with one that stands in the way.
    pub(super) fn table(&mut self, on: Id) -> Option<Table> {
        let p = &self.graph.providers[on];
        let (class, _) = p.table.as_ref()?;
        let table = self.read(on);
        if table.is_none() {
            let found = format!("tables of {class} are only read");
            self.refuse(on, Refusal::new(found, "use the tool of their own system"));
        }
        let damage = table.as_ref().map(|table| table.damage.join("; "));
        if let Some(damage) = damage.filter(|damage| !damage.is_empty()) {
            let found = format!("its table is damaged: {damage}");
            self.refuse(on, Refusal::new(found, Advice::Recover));
            return None;
        }
        // A disk that is one or the other is refused before it is planned.
        let is_hybrid = p.findings.iter().any(|found| *found.rule == finding::HYBRID);
        if on != self.disk && is_hybrid {
            let found = "its GPT and its MBR disagree, and only one of them would be changed";
            self.refuse(on, Refusal::new(found, "make them agree first"));
            return None;
        }
        if let Some(sign) = p.in_use().next().filter(|_| on != self.disk) {
            let found = format!("its partitions are ranges of the {} around them", sign.kind);
            self.refuse(on, Refusal::new(found, "make the image anew"));
            return None;
        }
        table
    }

    fn read(&self, on: Id) -> Option<Table> {
        let (class, _) = self.graph.providers[on].table.as_ref()?;
        registry::scheme_of(class)?.read(&self.graph.probe(on))
    }

    /// Partitions of `on` with their new ends in order of their starts, those that hold a chain
    /// too, and the length that `on` needs. `tail` bytes stay free at its end.
    pub(super) fn places(
        &mut self,
        on: Id,
        length: u64,
        tail: u64,
        grows: bool,
    ) -> (Vec<Kept>, u64) {
        let graph = self.graph;
        let grid = self.aim.grid();
        let has_table = graph.providers[on].table.is_some();
        let is_partition = |&id: &Id| {
            let p = &graph.providers[id];
            has_table
                && self.around(id) == Some(on)
                && !p.is_data_area()
                && !p.is_set
                && !p.is_contents
                && p.start.is_some()
        };
        let mut ids: Vec<Id> = (0..graph.providers.len()).filter(is_partition).collect();
        let base = self.place(on);
        let range = |id: Id| {
            let start = self.place(id);
            start..start.saturating_add(graph.providers[id].topology.length)
        };
        ids.sort_by_key(|&id| (range(id).start, Reverse(range(id).end)));
        let ranges: Vec<(Id, Range<u64>)> = ids.into_iter().map(|id| (id, range(id))).collect();
        // Bytes that partitions may take as long as the disk is no longer than it has to be.
        let within = |length: u64| base.saturating_add(length.saturating_sub(tail));
        let fixed = within(round_down(length, grid));
        let mut after = if grows { round_up(length, grid).unwrap_or(length) } else { length };
        if !grows && has_table {
            after = round_down(length, grid);
        }
        let mut kept = Vec::new();
        for (id, before) in ranges {
            if !is_whole(before.start, grid) {
                let found = format!("it begins at byte {}, no multiple of {grid}", before.start);
                self.refuse(id, Refusal::new(found, Advice::Align));
                continue;
            }
            let up = round_up(before.end, grid).unwrap_or(before.end);
            let limit = if grows { within(after).max(fixed) } else { fixed };
            let least = before.start.saturating_add(self.needs(id));
            let down = round_down(limit.min(before.end), grid);
            let end = if up <= limit && (up == before.end || self.is_loose(id)) {
                up
            } else if down >= least && self.is_measured(id, down..before.end) {
                down
            } else if grows && (up == before.end || self.is_loose(id)) {
                after = up.saturating_sub(base).saturating_add(tail);
                up
            } else {
                let longer = match on == self.disk {
                    true => "convert an image, which may get longer",
                    false => "make the partition around it longer",
                };
                self.refuse(id, unfitting(&before, limit, grid, longer));
                continue;
            };
            kept.push(Kept { id, after: before.start..end, before });
        }
        (kept, after)
    }

    /// Bytes that the contents of a partition need from its start on: a file system, a chain, or a
    /// table with its partitions.
    fn needs(&self, id: Id) -> u64 {
        let p = &self.graph.providers[id];
        let sized = p.in_use().filter_map(|sign| sign.size).max();
        let end = |inner: Id| {
            self.place(inner).saturating_add(self.graph.providers[inner].topology.length)
        };
        let has_table = p.table.is_some();
        let inner = self.graph.children(id).filter(|_| has_table).map(end).max();
        let inner = inner.map_or(0, |end| end.saturating_sub(self.place(id)));
        let table = self.read(id).filter(|_| !is_chain(self.graph, id));
        let tail = table.map_or(0, |table| table.scheme.tail(&table, &self.aim));
        let inner = round_up(inner, self.aim.grid()).filter(|_| tail > 0).unwrap_or(inner);
        sized.unwrap_or(0).max(inner.saturating_add(tail))
    }

    /// True if nothing in a partition counts from its end that is not written anew: it holds a
    /// chain, a table, metadata of a set, a file system that knows its own length, or nothing that
    /// is known and zeros at its end.
    fn is_loose(&self, id: Id) -> bool {
        let p = &self.graph.providers[id];
        if is_chain(self.graph, id) {
            return true;
        }
        if let Some((class, _)) = &p.member {
            return registry::relabels_of(class).is_some();
        }
        if p.signs.is_empty() && p.table.is_none() {
            let length = p.topology.length;
            return self.is_zero(id, length.saturating_sub(END)..length);
        }
        self.keeps_to_its_size(id)
    }

    /// True if all that is known on a provider is within the size that it records.
    pub(super) fn keeps_to_its_size(&self, id: Id) -> bool {
        self.graph.providers[id].signs.iter().all(|sign| {
            sign.tail.is_none() && sign.size.is_some() && sign.kind.format.keeps_to_its_size()
        })
    }

    /// True if those bytes of a provider are zero, as far as they can be read.
    pub(super) fn is_zero(&self, id: Id, range: Range<u64>) -> bool {
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
        let is_known = p.member.is_none() && (p.in_use().next().is_some() || p.table.is_some());
        let place = self.place(id);
        let inside = cut.start.saturating_sub(place)..cut.end.saturating_sub(place);
        is_chain(self.graph, id)
            || is_known && self.keeps_to_its_size(id) && self.is_zero(id, inside)
    }

    /// Refuses a disk that would get another length under what counts from its end, and one on
    /// which nothing is known.
    pub(super) fn require_known(&mut self, lengths: [u64; 2]) {
        let disk = &self.graph.providers[self.disk];
        let is_member = disk.member.is_some();
        let stays =
            disk.member.as_ref().is_some_and(|(class, _)| registry::relabels_of(class).is_none());
        if lengths[0] != lengths[1] && (stays || !self.keeps_to_its_size(self.disk)) {
            let found =
                "its length is no multiple of the sector, and what is on it counts from its end";
            self.refuse(self.disk, Refusal::new(found, "copy what is on it"));
        }
        if disk.table.is_none() && disk.signs.is_empty() && !is_member {
            self.refuse(self.disk, Refusal::new("nothing on it is recognised", ""));
        }
    }

    /// Refuses partitions of one table that lie over each other.
    pub(super) fn require_apart(&mut self, partitions: &[Kept]) {
        let leaves: Vec<&Kept> =
            partitions.iter().filter(|kept| !is_chain(self.graph, kept.id)).collect();
        for pair in leaves.windows(2) {
            if pair[1].before.start < pair[0].before.end.max(pair[0].after.end) {
                let found = "it lies over the partition before it";
                self.refuse(pair[1].id, Refusal::new(found, "mend the table first"));
            }
        }
    }

    /// Refuses partitions over the places of their new table, whose writes come from `first` on.
    pub(super) fn require_room(&mut self, partitions: &[Kept], first: usize) {
        for kept in partitions.iter().filter(|kept| !is_chain(self.graph, kept.id)) {
            // What it gives up or gets at its end is no place of its contents.
            let end = kept.before.end.min(kept.after.end);
            let over = |write: &&Write| write.at < end && kept.before.start < write.end();
            let Some(write) = self.writes[first..].iter().find(over) else { continue };
            let found = format!(
                "its bytes from {} are where the {} would be",
                kept.after.start, write.what
            );
            let advice = format!("move it first, to byte {} or further", write.end());
            self.refuse(kept.id, Refusal::new(found, advice));
        }
    }
}

/// The refusal of a partition that ends where it cannot, where `longer` would make room.
fn unfitting(before: &Range<u64>, limit: u64, grid: u64, longer: &str) -> Refusal {
    let end = before.end;
    let found = match is_whole(end, grid) {
        true => format!("it ends at byte {end}, and the table needs what lies behind {limit}"),
        false => format!(
            "it ends at byte {end}, no multiple of {grid}, and what is in it counts from there, \
             or has no room"
        ),
    };
    let least = round_down(limit.min(end), grid);
    let advice = format!(
        "make what is in it, and the partition, end at byte {least} or before; or {longer}"
    );
    Refusal::new(found, advice)
}
