//! Moves of partitions on small disks, and what must come of them.

use crate::medium::Medium;
use trueline_geom::base::ondisk::Guid;
use trueline_geom::base::patch::{Patch, changes, lay_over};
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::Topology;
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::mapping::route::Route;
use trueline_geom::probe::{Budget, Limits, Probe};
use trueline_geom::registry;
use trueline_geom::relocate::bad::{BadSectors, ROOM};
use trueline_geom::relocate::gaps::Gaps;
use trueline_geom::relocate::{Journal, Mark, Move, Sizes, Standing, carry, ends};
use trueline_geom::table::scheme::{New, TableSite};
use trueline_geom::table::{Request, Rules, Wanted};

pub(crate) const SECTOR: u64 = 512;
/// Small, so that a move of some kilobytes has everything that one of a disk has.
pub(crate) const SIZES: Sizes = sizes(SECTOR);

pub(crate) const fn sizes(sector: u64) -> Sizes {
    Sizes { end: 4 * sector, piece: 4 * sector, near: 2 * sector, far: 3 * sector }
}

/// Two sectors of a table, which say where the partition is, then sectors of numbers.
pub(crate) fn disk(sectors: u64, from: u64) -> Vec<u8> {
    let mut disk = numbers(sectors * SECTOR);
    for copy in 0..2 {
        disk[copy * 512..][..512].fill(u8::try_from(copy).unwrap());
        disk[copy * 512..][..8].copy_from_slice(&from.to_le_bytes());
    }
    disk
}

fn numbers(length: u64) -> Vec<u8> {
    (0..length)
        .map(|at: u64| u8::try_from((at / SECTOR * 7 + at * 13 + at / 3) % 251).unwrap())
        .collect()
}

fn part(disk: &[u8], at: u64, length: u64) -> Vec<u8> {
    disk[usize::try_from(at).unwrap()..][..usize::try_from(length).unwrap()].to_vec()
}

/// The move of a partition on `disk`; its first sector says where it begins, and so does its last.
pub(crate) fn plan(disk: &[u8], from: u64, to: u64, length: u64, sizes: Sizes) -> Move {
    let table = |copy: u64| {
        let mut bytes = part(disk, copy * SECTOR, SECTOR);
        bytes[..8].copy_from_slice(&to.to_le_bytes());
        let patch = Patch::new(copy * SECTOR, bytes, "table");
        if copy > 0 { patch.after_flush() } else { patch }
    };
    planned(disk, (from, to, length), (SECTOR, sizes), vec![table(0), table(1)])
}

fn planned(
    disk: &[u8],
    (from, to, length): (u64, u64, u64),
    (sector, sizes): (u64, Sizes),
    table: Vec<Patch>,
) -> Move {
    let (front, back) = ends(length, sizes.end);
    let was = table
        .iter()
        .map(|patch| Patch {
            bytes: part(disk, patch.offset, patch.bytes.len() as u64),
            ..patch.clone()
        })
        .collect();
    // In the last sector, and in the middle.
    let rebased = vec![
        Patch::new(length - 8, to.to_le_bytes().to_vec(), "where"),
        Patch::new(length / 2, to.to_le_bytes().to_vec(), "where"),
    ];
    let (front, back) = (part(disk, from, front), part(disk, from + length - back, back));
    Move {
        id: *b"one move of many",
        medium: disk.len() as u64,
        sector,
        from,
        to,
        length,
        sizes,
        front,
        back,
        rebased,
        table,
        was,
        gaps: Gaps::default(),
        bad: BadSectors::default(),
    }
}

/// A disk with a table of `name`, and the move of its partition of 30 sectors; places are in
/// sectors.
pub(crate) fn tabled(name: &str, sector: u64, from: u64, to: u64) -> (Vec<u8>, Move) {
    let scheme = registry::scheme_named(name).unwrap();
    let length = sector * 30;
    let mut disk = numbers(sector * 96 + 67 * 512);
    disk.truncate(disk.len() / 4096 * 4096);
    let medium = disk.len() as u64;
    disk[..usize::try_from(34 * 512 + sector).unwrap()].fill(0);
    let back = disk.len() - 33 * 512;
    disk[back..].fill(0);
    let topology = Topology::new(sector, medium);
    let ground = TableSite { topology: &topology, base: 0, kind: None };
    let probe = |disk: &[u8], look: &mut dyn FnMut(&Probe<'_>)| {
        let mut sparse = Sparse::new(medium);
        sparse.put(0, disk);
        let (route, stores) = (Route::store(0, medium), [Box::new(sparse) as Box<dyn Store>]);
        look(&Probe::new(&route, &stores, &Budget::new(Limits::default()), sector, Some(0), None));
    };
    let mut table = None;
    probe(&disk, &mut |probe| table = scheme.create(probe, &ground, &New::default()).ok());
    let empty = table.unwrap();
    let mut full = empty.clone();
    let place = Request { start: Some(from * sector), size: Some(length), align: None };
    let kind = scheme.kind("linux-data").unwrap();
    let wanted =
        Wanted { kind, place, index: None, label: None, uuid: Some(Guid([7; 16])), attributes: 0 };
    full.add(&ground, wanted, Rules::Aligned).unwrap();
    lay_over(&scheme.render(&empty, &full), 0, &mut disk);
    let mut read = None;
    probe(&disk, &mut |probe| read = scheme.read(probe));
    let before = read.unwrap();
    let mut after = before.clone();
    after.relocate(&ground, 1, Some(to * sector)).unwrap();
    let mut bytes = |at: u64, out: &mut [u8]| {
        out.copy_from_slice(&part(&disk, at, out.len() as u64));
        Ok(())
    };
    let table = changes(scheme.render(&before, &after), &mut bytes).unwrap();
    let plan = planned(&disk, (from * sector, to * sector, length), (sector, sizes(sector)), table);
    plan.check().unwrap();
    (disk, plan)
}

/// Where the only partition of a disk begins, by its table.
pub(crate) fn found(disk: &[u8], sector: u64) -> Option<u64> {
    let mut sparse = Sparse::new(disk.len() as u64);
    sparse.put(0, disk);
    let disk = Disk {
        start: Some(0),
        ..Disk::new("", Box::new(sparse), Topology::new(sector, disk.len() as u64))
    };
    let graph = Graph::taste(vec![disk], Limits::default());
    graph.providers.get(1).map(trueline_geom::graph::Provider::base)
}

/// The journal of `plan` before its first step, without the room for sectors that fail.
pub(crate) fn paper(plan: &Move) -> Vec<u8> {
    let (mut file, size) = Journal::head(plan, "words").unwrap();
    file.resize(usize::try_from(size - ROOM).unwrap(), 0);
    file
}

/// Whether `after` is what is to be there in the end: in the new place what was in the old, the new
/// table, no mark at the old place, and around all of that what was there.
pub(crate) fn is_moved(before: &[u8], after: &[u8], plan: &Move) -> bool {
    let index = |at: u64| usize::try_from(at).unwrap();
    let mut wanted = before.to_vec();
    lay_over(&plan.table, 0, &mut wanted);
    let mut bytes = part(before, plan.from, plan.length);
    lay_over(&plan.rebased, 0, &mut bytes);
    wanted[index(plan.to)..][..index(plan.length)].copy_from_slice(&bytes);
    // Where the old place and the new overlap, the rest of the old one is lost.
    let rest = if plan.to > plan.from {
        plan.from..plan.to
    } else {
        plan.to + plan.length..plan.from + plan.length
    };
    if plan.overlaps() {
        let rest = index(rest.start)..index(rest.end);
        wanted[rest.clone()].copy_from_slice(&after[rest]);
    }
    let clean = plan.to < plan.from
        || !plan.overlaps()
        || after[index(plan.from)..][..index(plan.sector)].iter().all(|&byte| byte == 0);
    after == wanted && clean
}

pub(crate) fn check(before: &[u8], after: &[u8], plan: &Move) {
    assert!(is_moved(before, after, plan), "{} to {}", plan.from, plan.to);
}

/// What the table shows at any time: the old place with the old bytes, the new one with the new, or
/// the mark.
pub(crate) fn shown(before: &[u8], disk: &[u8], plan: &Move) {
    let says = |copy: usize| u64::from_le_bytes(*disk[copy * 512..].first_chunk().unwrap());
    for start in [says(0), says(1)] {
        let first = &disk[usize::try_from(start).unwrap()..][..512];
        let old = &before[usize::try_from(plan.from).unwrap()..][..512];
        let mut new = old.to_vec();
        lay_over(&plan.rebased, 0, &mut new);
        let marked = Mark::read(first).is_some_and(|mark| mark.id == plan.id);
        assert!(
            marked || first == old || first == new,
            "{} to {}: {start} shows neither",
            plan.from,
            plan.to
        );
    }
}

/// What came of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// The move is done, and the journal is removed.
    Done,
    /// It was refused, and nothing was written.
    Refused,
    /// Nothing of it had begun: its user begins again.
    Untouched,
    /// A request failed.
    Failed,
}

/// `trueline move --resume`.
pub(crate) fn resume(disk: &Medium, paper: &Medium) -> Came {
    let Ok((journal, plan, _)) = Journal::open(paper) else { return Came::Refused };
    let start = match plan.standing(&journal, disk) {
        Ok(Standing::Half(start)) => start,
        Ok(Standing::Done) => return Came::Done,
        Ok(Standing::Untouched) => return Came::Untouched,
        Ok(Standing::Other(_)) => return Came::Refused,
        Err(_) => return Came::Failed,
    };
    match carry(&plan, disk, Some(&journal), start, &mut |_| true) {
        Ok(_) => Came::Done,
        Err(_) => Came::Failed,
    }
}
