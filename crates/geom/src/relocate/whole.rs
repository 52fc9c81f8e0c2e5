//! Plan for all partitions of a table: where each comes out on the grain, and in which order they
//! go there.
//!
//! A partition that carries others, or a file system behind a header, is right when what it carries
//! is on the grain. What cannot be moved stays, and the others are arranged around it.

use super::arrange::{Block, MOST, Wanted, arrange, lacking};
use super::schedule::{Moving, Tables, schedule};
use super::sequence::Stage;
use crate::base::topology::{Grain, is_whole};
use crate::class::mbr::shift::{MbrDisk, Which};
use crate::graph::{Graph, Id};
use crate::mapping::slices::place;
use crate::table::scheme::TableSite;
use crate::table::{Advice, Refusal, Table, free_ranges};
use std::ops::Range;

/// Plan for a whole table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    /// Partitions in the order of the disk, with their old places and the new.
    pub partitions: Vec<Planned>,
    /// Stages that bring them there; none if all are on the grain.
    pub stages: Vec<Stage>,
    /// Grain of the new places.
    pub grain: Grain,
}

/// Partition in a plan, with both its places in bytes of the provider with the table.
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
    /// Reason why it has to stay where it is, although it is off the grain.
    pub stays: Option<String>,
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

/// Partitions that `fixed` names a reason for stay where they are; it is asked with a provider.
pub type Fixed<'a> = dyn Fn(Id) -> Option<String> + 'a;

/// The plan for all partitions of `table`, which is on provider `on` of `graph`.
pub fn plan(
    graph: &Graph,
    on: Id,
    table: &Table,
    site: TableSite<'_>,
    fixed: &Fixed<'_>,
) -> Result<Whole, Obstacle> {
    if let [damage, ..] = table.damage.as_slice() {
        let found = format!("the {} is damaged: {damage}", table.scheme);
        return Err(Refusal::new(found, Advice::Recover).into());
    }
    let tables = match table.scheme.name() {
        "MBR" => {
            let mut read = |at: u64, out: &mut [u8]| graph.read_at(on, out, at);
            Tables::Mbr(Box::new(MbrDisk::read(table, &mut read)?))
        }
        _ => {
            let is_own = graph.providers[on].parents.is_empty();
            let mut boot = vec![0; usize::try_from(table.sector).unwrap_or_default()];
            let read = is_own && graph.read_at(on, &mut boot, 0).is_ok();
            Tables::Flat(Box::new(table.clone()), site, read.then_some(boot))
        }
    };
    let common = site.topology.common().ok_or_else(|| {
        let found = "its grains contradict each other: no place is on all of them";
        Refusal::new(found, "")
    })?;
    let mut partitions = Vec::new();
    let mut blocks = Vec::new();
    for (which, now) in tables.partitions() {
        let (planned, block) = block((graph, on), (&tables, which, now), common, fixed)?;
        partitions.push(planned);
        blocks.push(block);
    }
    if blocks.len() > MOST {
        let found = format!("{} partitions: at most {MOST} are moved at once", blocks.len());
        return Err(Refusal::new(found, "").into());
    }
    if let Some(pair) = blocks.windows(2).find(|pair| pair[0].end() > pair[1].start) {
        let found =
            format!("two partitions share bytes from {} on", place(pair[1].start, table.sector));
        return Err(Refusal::new(found, "").into());
    }
    for (partition, block) in partitions.iter_mut().zip(&blocks) {
        partition.stays = partition.stays.take().filter(|_| !block.is_on(common));
    }
    if blocks.iter().all(|block| block.fixed || block.is_on(common)) {
        return Ok(Whole { partitions, stages: Vec::new(), grain: common });
    }
    let first = blocks.first().map_or(table.usable.start, |block| block.start);
    let room = table.usable.start.min(first)..table.usable.end;
    let grains: Vec<Grain> = site
        .topology
        .places(site.base)
        .into_iter()
        .filter(|g| is_whole(g.size(), common.size()))
        .collect();
    let found = grains.iter().find_map(|&grain| {
        let places = arrange(&blocks, &room, &Wanted { good: common, place: grain })?;
        Some((grain, places))
    });
    let Some((grain, places)) = found else {
        let wanted = Wanted { good: common, place: common };
        return Err(Obstacle::Room(Room {
            longer: lacking(&blocks, &room, &wanted),
            shorter: shorter(&blocks, &room, &wanted),
            partitions,
            free: free_ranges(table),
        }));
    };
    for (partition, &to) in partitions.iter_mut().zip(&places) {
        partition.to = to;
    }
    let moving = partitions
        .iter()
        .map(|p| Moving { which: p.which, now: p.now.clone(), to: p.to })
        .collect();
    let stages = schedule(tables, moving)?;
    Ok(Whole { partitions, stages, grain })
}

/// The partition with its provider, and what its arrangement depends on.
fn block(
    (graph, on): (&Graph, Id),
    (tables, which, now): (&Tables<'_>, Which, Range<u64>),
    common: Grain,
    fixed: &Fixed<'_>,
) -> Result<(Planned, Block), Refusal> {
    let base = graph.providers[on].base().saturating_add(now.start);
    let id = graph.partition_at(on, now.start, now.end - now.start).ok_or_else(|| {
        let found = format!("the partition at {} is not seen as its table has it", base);
        Refusal::new(found, "")
    })?;
    // What it carries, at the ends of every branch.
    let mut inside: Option<(u64, &str)> = None;
    let mut differs = None;
    for inner in (id + 1)..graph.providers.len() {
        let p = &graph.providers[inner];
        if p.is_extended() || p.slices().is_some() || !graph.is_within(id, inner) {
            continue;
        }
        let at = p.base().saturating_sub(base);
        match inside {
            Some((first, name)) if common.shift(first) != common.shift(at) => {
                differs = Some((name, p.name.as_str()));
            }
            Some(_) => {}
            None => inside = Some((at, &p.name)),
        }
    }
    let empty = matches!(which, Which::Primary(_)) && graph.providers[id].is_extended();
    let stays = match differs {
        _ if empty => Some("it is an extended partition without others in it".into()),
        Some((one, other)) => {
            Some(format!("no place is right for both {one} and {other} in it: move those first"))
        }
        None => fixed(id),
    };
    let block = Block {
        start: now.start,
        length: now.end - now.start,
        lead: tables.lead(which),
        inside: inside.map_or(0, |(at, _)| at),
        fixed: stays.is_some(),
    };
    let stays = stays.filter(|_| !empty);
    Ok((Planned { id, which, to: now.start, now, stays }, block))
}

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
