//! Plan for all partitions of a table: where each comes out on the grain, and in which order they
//! go there.
//!
//! A partition that carries others, or a file system behind a header, is right when what it carries
//! is on the grain. Where no place is right for all of that, the table in it is planned too, at the
//! place to which the partition goes (`nested.rs`). What cannot be moved stays, and the others are
//! arranged around it.

use super::arrange::{Block, MOST, Wanted, arrange, lacking};
use super::named::{self, Named};
use super::schedule::{Moving, Tables, schedule};
use super::sequence::{Movement, Stage};
use crate::base::error::Errno;
use crate::base::patch::{Patch, lay_over};
use crate::base::topology::{Grain, Topology, is_whole};
use crate::class::mbr::shift::{MbrDisk, Which};
use crate::graph::{Graph, Id};
use crate::mapping::slices::{PartitionType, place};
use crate::table::scheme::TableSite;
use crate::table::{Advice, Refusal, Table, free_ranges};
use nested::Nest;
use std::ops::Range;

mod labels;
mod nested;

/// Plan for a whole table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    /// Partitions in the order of the disk, with their old places and the new. Those of a table in
    /// a partition that is planned too follow that one.
    pub partitions: Vec<Planned>,
    /// Stages that bring them there; none if all are on the grain.
    pub stages: Vec<Stage>,
    /// Grain of the new places.
    pub grain: Grain,
}

/// Partition in a plan, with its places in bytes of the provider with the outermost table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Provider of the partition itself.
    pub id: Id,
    /// Number in a flat table, or place in an MBR.
    pub which: Which,
    /// Bytes that it has now.
    pub now: Range<u64>,
    /// First byte that it is to have.
    pub to: u64,
    /// Move of it alone; `None` if it stays in its table. What is in a partition goes with it
    /// first.
    pub own: Option<Movement>,
    /// True if the partitions in it are planned too.
    pub carries: bool,
    /// Reason why it has to stay where it is, although it is off the grain.
    pub stays: Option<String>,
    /// Want of room inside of it, for which the partitions in it stay.
    pub room: Option<Box<Room>>,
}

/// Reason for which a table is not arranged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Refusal for a table or a partition.
    Refused(Refusal),
    /// Want of room for all.
    Room(Room),
}

/// Want of room, and how much more would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Provider with the table.
    pub on: Id,
    /// Partitions in the order of the disk, where they are.
    pub partitions: Vec<Planned>,
    /// Bytes by which the usable range would have to be longer; `None` if no length is enough.
    pub longer: Option<u64>,
    /// For each partition the bytes by which it would have to be shorter; `None` if no such size is
    /// enough.
    pub shorter: Vec<Option<u64>>,
    /// Largest free ranges in words.
    pub free: String,
}

impl From<Refusal> for Obstacle {
    fn from(refusal: Refusal) -> Obstacle {
        Obstacle::Refused(refusal)
    }
}

/// Answers about providers that a plan asks for.
#[derive(Clone, Copy)]
pub struct Answers<'a> {
    /// Reason why a partition stays where it is; `None` if it may move.
    pub fixed: &'a dyn Fn(Id) -> Option<String>,
    /// Reason why the table on a provider is not changed; `None` if it may be.
    pub closed: &'a dyn Fn(Id) -> Option<String>,
    /// Patches that adapt a partition, in its own addresses, to a way from one byte of the provider
    /// with the outermost table to another.
    pub adapted: &'a dyn Fn(Id, u64, u64) -> Result<Vec<Patch>, Errno>,
}

/// The plan for all partitions of `table`, which is on provider `on` of `graph`.
pub fn plan(
    graph: &Graph,
    on: Id,
    table: &Table,
    site: TableSite<'_>,
    answers: Answers<'_>,
) -> Result<Whole, Obstacle> {
    let follows = |named: &Named| named.follows(graph, on);
    let (followed, bound): (Vec<Named>, Vec<Named>) =
        named::named(graph).into_iter().partition(follows);
    let level = Level {
        graph,
        bound: &bound,
        outermost: on,
        on,
        at: 0,
        table: table.clone(),
        topology: site.topology.clone(),
        base: site.base,
        kind: site.kind,
        patches: Vec::new(),
        answers,
        depth: 0,
        explains: true,
    };
    let mut whole = level.plan()?;
    if graph.providers[on].parents.is_empty() {
        level.boot(&mut whole.stages);
    }
    level.rename(&mut whole, &followed)?;
    Ok(whole)
}

/// Table at the place to which it goes with what it is in.
struct Level<'a> {
    graph: &'a Graph,
    /// Ranges that labels name outside of their slices, and that they cannot follow.
    bound: &'a [Named],
    /// Provider with the outermost table.
    outermost: Id,
    /// Provider with the table.
    on: Id,
    /// First byte of that provider in the end, on the outermost one.
    at: u64,
    table: Table,
    /// Topology at that place, in addresses of the provider.
    topology: Topology,
    /// Byte of the medium at which the provider begins in the end.
    base: u64,
    kind: Option<PartitionType>,
    /// Bytes that its provider has there and not now, in addresses of the provider.
    patches: Vec<Patch>,
    answers: Answers<'a>,
    /// Number of tables around it.
    depth: usize,
    /// True if a want of room is to say how much shorter each partition would have to be.
    explains: bool,
}

/// Partition that is arranged, with what its arrangement depends on.
struct Item {
    planned: Planned,
    block: Block,
    nest: Option<Nest>,
    /// True if no place is right for all that it carries.
    is_off: bool,
}

impl Level<'_> {
    fn read(&self, at: u64, out: &mut [u8]) -> Result<(), Errno> {
        self.graph.read_at(self.on, out, at)?;
        lay_over(&self.patches, at, out);
        Ok(())
    }

    fn tables(&self) -> Result<Tables<'_>, Refusal> {
        let Table { scheme, sector, damage, .. } = &self.table;
        if let [damage, ..] = damage.as_slice() {
            let found = format!("the {scheme} is damaged: {damage}");
            return Err(Refusal::new(found, Advice::Recover));
        }
        if scheme.name() == "MBR" {
            let disk = MbrDisk::read(&self.table, &mut |at, out| self.read(at, out))?;
            return Ok(Tables::Mbr(Box::new(disk)));
        }
        // The disk in a partition is one of its own, with numbers of its own.
        let is_own = self.graph.providers[self.on].parents.is_empty() || scheme.name() == "GPT";
        let mut boot = vec![0; usize::try_from(*sector).unwrap_or_default()];
        let read = is_own && self.read(0, &mut boot).is_ok();
        let site = TableSite { topology: &self.topology, base: self.base, kind: self.kind };
        Ok(Tables::Flat(Box::new(self.table.clone()), site, read.then_some(boot)))
    }

    fn plan(&self) -> Result<Whole, Obstacle> {
        let table = &self.table;
        let tables = self.tables()?;
        let common = self.topology.common().ok_or_else(|| {
            let found = "its grains contradict each other: no place is on all of them";
            Refusal::new(found, "")
        })?;
        let items =
            tables.partitions().into_iter().map(|(w, now)| self.item(&tables, w, now, common));
        let mut items = items.collect::<Result<Vec<Item>, Refusal>>()?;
        if items.len() > MOST {
            let found = format!("{} partitions: at most {MOST} are moved at once", items.len());
            return Err(Refusal::new(found, "").into());
        }
        if let Some(pair) = items.windows(2).find(|p| p[0].block.end() > p[1].block.start) {
            let at = place(pair[1].block.start, table.sector);
            let found = format!("two partitions share bytes from {at} on");
            return Err(Refusal::new(found, "").into());
        }
        let used = items
            .iter()
            .map(|item| item.block.start.saturating_sub(item.block.lead)..item.block.end());
        let held = named::held(self.graph, self.on, self.bound, used);
        let first = items.first().map_or(table.usable.start, |item| item.block.start);
        let lowest = table.usable.start.max(table.scheme.boot_area());
        let room = lowest.min(first)..table.usable.end;
        let (grain, places) = self.places((&mut items, &held), &room, common)?;
        let moving = items.iter().zip(&places).map(|(item, &to)| {
            let Planned { which, now, .. } = &item.planned;
            Moving { which: *which, now: now.clone(), to }
        });
        let mut whole =
            Whole { partitions: Vec::new(), stages: schedule(tables, moving.collect())?, grain };
        for (mut item, to) in items.into_iter().zip(places) {
            let Range { start: from, end } = item.planned.now;
            let own = Movement { from, to, length: end.saturating_sub(from) };
            (item.planned.to, item.planned.own) = (to, Some(own).filter(|_| from != to));
            item.planned.stays =
                item.planned.stays.filter(|_| item.is_off || !item.block.is_on(common));
            let (id, now) = (item.planned.id, item.planned.now.clone());
            whole.partitions.push(item.planned);
            if let Some(nest) = &item.nest {
                let inside = self.inside(nest, id, to, self.explains)?.plan()?;
                nest.put(inside, now.start, to, &mut whole);
            }
        }
        Ok(whole)
    }

    /// The places of `items` in `room`, with the grain on which those are that move.
    fn places(
        &self,
        (items, held): (&mut [Item], &[Range<u64>]),
        room: &Range<u64>,
        common: Grain,
    ) -> Result<(Grain, Vec<u64>), Obstacle> {
        let among = Among::new(items, held, room);
        let places = self.topology.places(self.base);
        let grains: Vec<Grain> =
            places.into_iter().filter(|g| is_whole(g.size(), common.size())).collect();
        let mut choice = vec![0; items.len()];
        let mut best = None::<((usize, u64), Vec<Block>, Grain, Vec<u64>)>;
        for _ in 0..CHOICES {
            let (mut left, mut bytes) = (0, 0_u64);
            for (item, &choice) in items.iter_mut().zip(&choice) {
                let Some(nest) = &item.nest else { continue };
                let Some(choice) = nest.choices.get(choice) else { continue };
                item.block.inside = choice.inside;
                left += choice.left;
                bytes = bytes.saturating_add(choice.bytes);
            }
            let blocks: Vec<Block> = items.iter().map(|item| item.block).collect();
            let found = match blocks.iter().all(|block| block.fixed || block.is_on(common)) {
                true => Some((common, blocks.iter().map(|block| block.start).collect())),
                false => grains.iter().find_map(|&grain| {
                    let wanted = Wanted { good: common, place: grain };
                    let places = arrange(&among.all(&blocks), room, &wanted)?;
                    Some((grain, among.own(places)))
                }),
            };
            if let Some((grain, places)) = found {
                let moved = blocks.iter().zip(&places).filter(|(block, to)| block.start != **to);
                let bytes = moved.fold(bytes, |sum, (block, _)| sum.saturating_add(block.length));
                if best.as_ref().is_none_or(|(cost, ..)| (left, bytes) < *cost) {
                    best = Some(((left, bytes), blocks, grain, places));
                }
            }
            // The next choices, as an odometer counts.
            let count = |n: usize| items[n].nest.as_ref().map_or(1, |nest| nest.choices.len());
            let Some(next) = (0..choice.len()).find(|&n| choice[n] + 1 < count(n)) else { break };
            choice[next] += 1;
            choice[..next].fill(0);
        }
        if let Some((_, blocks, grain, places)) = best {
            items.iter_mut().zip(blocks).for_each(|(item, block)| item.block = block);
            return Ok((grain, places));
        }
        let blocks: Vec<Block> = items.iter().map(|item| item.block).collect();
        let blocks = among.all(&blocks);
        let wanted = Wanted { good: common, place: common };
        let shorter = match self.explains {
            true => among.own(shorter(&blocks, room, &wanted)),
            false => Vec::new(),
        };
        Err(Obstacle::Room(Room {
            on: self.on,
            longer: lacking(&blocks, room, &wanted),
            shorter,
            partitions: items.iter().map(|item| item.planned.clone()).collect(),
            free: free_ranges(&Table { taken: held.to_vec(), ..self.table.clone() }),
        }))
    }

    /// The partition with its provider, and what its arrangement depends on.
    fn item(
        &self,
        tables: &Tables<'_>,
        which: Which,
        now: Range<u64>,
        common: Grain,
    ) -> Result<Item, Refusal> {
        let graph = self.graph;
        let base = graph.providers[self.on].base().saturating_add(now.start);
        let id = graph.partition_at(self.on, now.start, now.end - now.start).ok_or_else(|| {
            let found = format!("the partition at {base} is not seen as its table has it");
            Refusal::new(found, "")
        })?;
        let carried = nested::carried(graph, id);
        let inside = carried.first().map_or(0, |carried| carried.at);
        let differs = carried.iter().any(|c| common.shift(c.at) != common.shift(inside));
        let empty = matches!(which, Which::Primary(_)) && graph.providers[id].is_extended();
        let mut block = Block {
            start: now.start,
            length: now.end - now.start,
            lead: tables.lead(which),
            inside,
            fixed: true,
        };
        let mut planned = Planned {
            id,
            which,
            to: now.start,
            now,
            own: None,
            carries: false,
            stays: None,
            room: None,
        };
        if empty {
            return Ok(Item { planned, block, nest: None, is_off: false });
        }
        let is_low = block.start < self.table.scheme.boot_area();
        planned.stays = match is_low {
            true => Some("the label and boot code are in its first sectors".into()),
            false => (self.answers.fixed)(id).or_else(|| {
                let binds = self.bound.iter().find(|named| named.binds(graph, id))?;
                Some(format!("{}, which would not follow", binds.reason(graph)))
            }),
        };
        block.fixed = planned.stays.is_some();
        if !differs {
            return Ok(Item { planned, block, nest: None, is_off: false });
        }
        match self.nest(&planned, &carried, common) {
            Ok(nest) => {
                planned.carries = true;
                return Ok(Item { planned, block, nest: Some(nest), is_off: false });
            }
            Err(Obstacle::Refused(why)) => {
                let other = carried.iter().find(|c| common.shift(c.at) != common.shift(inside));
                let names: Vec<&str> = [carried.first(), other]
                    .into_iter()
                    .flatten()
                    .map(|carried| &*graph.providers[carried.id].name)
                    .collect();
                let both = names.join(" and ");
                let found = format!("no place is right for both {both} in it: {}", why.found);
                planned.stays = Some(found);
            }
            Err(Obstacle::Room(room)) => {
                let (count, free) = (room.partitions.len(), &room.free);
                let found = "there is no room in it to put all";
                planned.stays = Some(format!("{found} {count} partitions on the grain ({free})"));
                planned.room = Some(Box::new(room));
            }
        }
        block.fixed = true;
        Ok(Item { planned, block, nest: None, is_off: true })
    }
}

/// Places among the partitions of a table that labels name: they stay as they are.
struct Among {
    /// Blocks that stay where they are.
    held: Vec<Block>,
    /// True for each block of all, in order, that is a partition.
    is_own: Vec<bool>,
}

impl Among {
    fn new(items: &[Item], held: &[Range<u64>], room: &Range<u64>) -> Among {
        let inside = held.iter().map(|h| h.start.max(room.start)..h.end.min(room.end));
        let held: Vec<Block> = inside
            .filter(|range| range.start < range.end)
            .map(|Range { start, end }| Block {
                start,
                length: end - start,
                lead: 0,
                inside: 0,
                fixed: true,
            })
            .collect();
        let own = items.iter().map(|item| (item.block.start, true));
        let mut all: Vec<(u64, bool)> =
            own.chain(held.iter().map(|block| (block.start, false))).collect();
        all.sort_unstable();
        Among { held, is_own: all.into_iter().map(|(_, is_own)| is_own).collect() }
    }

    /// All blocks in order, where those of the partitions are `blocks`.
    fn all(&self, blocks: &[Block]) -> Vec<Block> {
        let (mut own, mut held) = (blocks.iter(), self.held.iter());
        let next = |is_own: &bool| if *is_own { own.next() } else { held.next() };
        self.is_own.iter().filter_map(next).copied().collect()
    }

    /// Parts of `all`, which has one for each block, that are of the partitions.
    fn own<T>(&self, all: Vec<T>) -> Vec<T> {
        all.into_iter().zip(&self.is_own).filter(|(_, own)| **own).map(|(one, _)| one).collect()
    }
}

/// Ways to choose, among places of several partitions that carry others, that are tried.
const CHOICES: usize = 64;

/// For each block the least number of bytes by which it would have to be shorter.
fn shorter(blocks: &[Block], room: &Range<u64>, wanted: &Wanted) -> Vec<Option<u64>> {
    let shorten = |n: usize| {
        let fits = |less: u64| {
            let mut blocks = blocks.to_vec();
            blocks[n].length -= less;
            arrange(&blocks, room, wanted).is_some()
        };
        let size = wanted.place.size();
        let (mut low, mut high) = (0, blocks[n].length.checked_sub(1)? / size);
        if blocks[n].fixed || !fits(high.checked_mul(size)?) {
            return None;
        }
        // More room is never worse.
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if fits(middle * size) { high = middle } else { low = middle }
        }
        Some(high * size)
    };
    (0..blocks.len()).map(shorten).collect()
}
