//! The moves by which a partition comes to begin on the grain, as command lines: room is made for
//! it where there is none.

use super::Cures;
use crate::placed::{Placed, lands_on_grain};
use trueline_geom::base::patch::{self, Patch};
use trueline_geom::base::size::PAGE;
use trueline_geom::base::topology::round_down;
use trueline_geom::graph::Id;
use trueline_geom::mapping::slices::PartitionType;
use trueline_geom::table::scheme::TableSite;
use trueline_geom::table::{Entry, Table};

/// Most entries of a table whose orders of moves are tried.
const ENTRIES: usize = 16;
/// Powers of two that an image grows by: 1 MiB, twice as much, and so on.
const GROWTH: std::ops::Range<u32> = 20..31;
/// A partition that is to move.
pub(super) struct Room<'a> {
    cures: &'a Cures<'a>,
    /// Id of the partition.
    id: Id,
    /// Its entry, in the repaired table if the table has to be repaired first.
    placed: Placed,
    /// The command that repairs the table: the end of a grown image is no room for a GPT before.
    recover: Option<String>,
    /// Distance in bytes from its start to the byte that has to come out on the grain.
    inside: u64,
}

impl<'a> Room<'a> {
    /// Room for partition `id`, so that the first byte of `mended`, which is in it, comes out on
    /// the grain.
    pub(super) fn for_partition(cures: &'a Cures<'a>, id: Id, mended: Id) -> Option<Room<'a>> {
        let mut placed = Placed::find(cures.graph, id).ok()?;
        let damaged = (!placed.table.damage.is_empty()).then_some(placed.on);
        let recover = damaged.and_then(|on| cures.recover(on));
        if recover.is_some() {
            let whole =
                placed.table.scheme.recover(&placed.table, &placed.site(cures.graph)).ok()?;
            let written = placed.table.scheme.render(&placed.table, &whole);
            placed.table =
                placed.table.scheme.read(&cures.graph.probe(placed.on).after(&written))?;
            placed.entry = placed.table.entry(placed.entry.partition.index)?.clone();
        }
        let inside =
            cures.graph.providers[mended].base().checked_sub(cures.graph.providers[id].base())?;
        Some(Room { cures, id, placed, recover, inside })
    }

    /// The fewest commands that move it onto the grain; `None` if no way is known to work.
    pub(super) fn commands(&self) -> Option<Vec<String>> {
        let recovered =
            |commands: Vec<String>| self.recover.iter().cloned().chain(commands).collect();
        let here = self.moved(&self.placed.table).map(recovered);
        here.or_else(|| self.in_image()).or_else(|| self.shrunk().map(recovered))
    }

    fn site(&self) -> TableSite<'_> {
        self.placed.site(self.cures.graph)
    }

    /// The moves that do it on `table`: its own, or those of its neighbours first.
    fn moved(&self, table: &Table) -> Option<Vec<String>> {
        if let Some((own, _)) = self.own(table) {
            return Some(vec![own]);
        }
        if table.entries.len() > ENTRIES {
            return None;
        }
        let sorted: Vec<Entry> = table.by_start().into_iter().cloned().collect();
        let at = sorted
            .iter()
            .position(|entry| entry.partition.index == self.placed.entry.partition.index)?;
        let (before, behind) = (sorted[..at].iter().rev(), sorted[at + 1..].iter());
        let chains: [Vec<Entry>; 2] = [before.cloned().collect(), behind.cloned().collect()];
        chains.iter().find_map(|chain| {
            (1..=chain.len()).find_map(|count| self.after(table, &chain[..count]))
        })
    }

    /// The moves of `others`, the last of them first, and then its own.
    fn after(&self, table: &Table, others: &[Entry]) -> Option<Vec<String>> {
        let (mut table, mut commands) = (table.clone(), Vec::new());
        for other in others.iter().rev() {
            let id = self.provider_of(other)?;
            if other.partition.kind.is_extended()
                || self.is_on_grain(other.partition.start)
                || self.cures.graph.providers[id].slices().is_some()
            {
                return None;
            }
            Placed::find(self.cures.graph, id).ok()?;
            let to = table.relocate(&self.site(), other.partition.index, None).ok()?;
            self.is_apart(&table, other, to).then_some(())?;
            commands.push(self.align(id)?);
        }
        commands.push(self.own(&table)?.0);
        Some(commands)
    }

    /// Its own move on `table`: the command and the byte it goes to.
    fn own(&self, table: &Table) -> Option<(String, u64)> {
        let mut after = table.clone();
        let entry = &self.placed.entry;
        let to =
            after.relocate_inside(&self.site(), entry.partition.index, None, self.inside).ok()?;
        self.is_apart(&after, entry, to).then_some(())?;
        let carried = self.inside > 0
            || entry.partition.kind.is_extended()
            || self.cures.graph.providers[self.id].slices().is_some();
        let command = if carried {
            lands_on_grain(self.cures.graph, self.placed.on, self.id, to).then(|| self.to(to))??
        } else {
            self.align(self.id)?
        };
        Some((command, to))
    }

    /// True if the writes that put `entry` at `to` in the table touch neither its old place nor its
    /// new one.
    fn is_apart(&self, after: &Table, entry: &Entry, to: u64) -> bool {
        let writes = self.placed.table.scheme.render(&self.placed.table, after);
        let graph = self.cures.graph;
        // An image that is still to grow cannot be read up to its new end.
        let changes =
            patch::changes(writes.clone(), &mut |at, out| graph.read_at(self.placed.on, out, at));
        let writes = changes.unwrap_or(writes);
        let own_chain = |patch: &Patch| entry.partition.kind.is_extended() && patch.offset == to;
        let covers = |patch: &Patch| {
            [entry.partition.start, to].iter().any(|&start| {
                patch.offset < start.saturating_add(entry.partition.length) && patch.end() > start
            })
        };
        !writes.iter().any(|patch| covers(patch) && !own_chain(patch))
    }

    /// The provider of another entry of the same table.
    fn provider_of(&self, entry: &Entry) -> Option<Id> {
        let graph = self.cures.graph;
        let start = graph.providers[self.placed.on].base().checked_add(entry.partition.start)?;
        let suffix = self.placed.table.scheme.suffix(entry);
        graph.children(self.placed.on).find(|&id| {
            graph.providers[id].base() == start && graph.providers[id].name.ends_with(&suffix)
        })
    }

    fn is_on_grain(&self, start: u64) -> bool {
        self.site().topology.common().is_some_and(|grain| grain.contains(start))
    }

    fn align(&self, id: Id) -> Option<String> {
        Some(format!("trueline move --align{} {}", self.cures.options, self.cures.target(id)?))
    }

    fn to(&self, to: u64) -> Option<String> {
        Some(format!(
            "trueline move --to {to}{} {}",
            self.cures.options,
            self.cures.target(self.id)?
        ))
    }

    /// The commands for an image: it grows, which makes room.
    fn in_image(&self) -> Option<Vec<String>> {
        let (graph, disks) = (self.cures.graph, self.cures.disks.as_ref()?);
        // The table is the image's own, and the image is a single file with the bytes of the disk.
        let file = disks.only_path()?.metadata().ok().filter(|file| file.is_file())?;
        let p = &graph.providers[self.placed.on];
        if !p.parents.is_empty() || p.topology.length != file.len() {
            return None;
        }
        let (growth, moves) = GROWTH.map(|power| 1u64 << power).find_map(|growth| {
            let mut longer = self.placed.table.clone();
            longer.length = longer.length.checked_add(growth)?;
            longer.usable.end = longer.usable.end.checked_add(growth)?;
            Some((growth, self.moved(&longer)?))
        })?;
        let image = self.cures.named("")?;
        let mut commands = vec![format!("truncate -s +{}M {image}", growth >> 20)];
        // The backup of a GPT is at the end.
        if matches!(self.placed.entry.partition.kind, PartitionType::Gpt(_)) {
            commands.push(format!("trueline part recover{} {image}", self.cures.options));
        }
        Some(commands.into_iter().chain(moves).collect())
    }

    /// The commands for a disk that cannot grow: shrink the file system, if it can, then its
    /// partition, and move it.
    fn shrunk(&self) -> Option<Vec<String>> {
        let (graph, placed) = (self.cures.graph, &self.placed);
        let p = &graph.providers[self.id];
        let [sign] = p.signs.as_slice() else { return None };
        if self.inside > 0 {
            return None;
        }
        let entry = &placed.entry;
        let mut others = placed.table.clone();
        others.entries.retain(|other| other.partition.index != entry.partition.index);
        let end = others.free().into_iter().find(|free| free.contains(&entry.partition.start))?.end;
        let common = self.site().topology.common()?;
        let sector = placed.table.sector.max(1);
        let (to, length) =
            self.site().topology.places(self.site().base).into_iter().find_map(|grain| {
                let to = grain.next(entry.partition.start).filter(|to| common.contains(*to))?;
                let length = round_down(end.checked_sub(to)?, PAGE.max(sector));
                // Half its length hardly holds its contents.
                (length > entry.partition.length / 2 && length < entry.partition.length)
                    .then_some((to, length))
            })?;
        let mut shorter = placed.table.clone();
        shorter
            .entries
            .iter_mut()
            .filter(|e| e.partition.index == entry.partition.index)
            .for_each(|e| e.partition.length = length);
        shorter.relocate(&self.site(), entry.partition.index, Some(to)).ok()?;
        let (target, table) = (self.cures.target(self.id)?, self.cures.target(placed.on)?);
        let options = &self.cures.options;
        let shorten = sign.kind.format.shorten(sign.kind, "\"$file\"", length)?;
        Some(vec![
            format!("trueline serve --fuse \"$(mktemp)\"{options} {target} --run '{shorten}'"),
            format!(
                "trueline part resize -i {} -s {}{options} {table}",
                entry.partition.index,
                length / sector
            ),
            self.to(to)?,
        ])
    }
}
