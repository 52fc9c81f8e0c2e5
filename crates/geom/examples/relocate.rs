//! `relocate`: moves a partition of a disk in memory from sector 63 to sector 2048, with a journal
//! in memory.
//!
//! The move is interrupted half-way, resumed from disk and journal alone, and every byte is
//! compared.

#![allow(clippy::disallowed_macros, reason = "an example is a program of its own")]

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use trueline_geom::base::error::Errno;
use trueline_geom::base::ondisk::Guid;
use trueline_geom::base::patch::{Patch, changes};
use trueline_geom::base::store::Store;
use trueline_geom::base::topology::Topology;
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::probe::Limits;
use trueline_geom::registry;
use trueline_geom::relocate::bad::BadSectors;
use trueline_geom::relocate::gaps::Gaps;
use trueline_geom::relocate::{Interrupted, Journal, Move, Sizes, Standing, Start, carry, ends};
use trueline_geom::table::scheme::{New, Scheme, TableSite};
use trueline_geom::table::{Request, Rules, Wanted};

const SECTOR: u64 = 512;
const DISK: u64 = 16 << 20;
const LENGTH: u64 = 8 << 20;
const FROM: u64 = 63 * SECTOR;
const TO: u64 = 2048 * SECTOR;
/// Pieces of 1 MiB, so that there are several; a disk is given [`trueline_geom::relocate::SIZES`].
const PIECES: Sizes = Sizes { end: 64 << 10, piece: 1 << 20, near: 64 << 10, far: 4 << 20 };

/// Bytes in memory; a clone is the same bytes.
#[derive(Clone)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn new(length: usize) -> Memory {
        Memory(Arc::new(Mutex::new(vec![0; length])))
    }

    /// Does something with the `length` bytes at `offset`, if they are inside.
    fn with(&self, offset: u64, length: usize, act: impl FnOnce(&mut [u8])) -> Result<(), Errno> {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let from = usize::try_from(offset).map_err(|_| Errno::Range)?;
        let end = from.checked_add(length).ok_or(Errno::Range)?;
        bytes.get_mut(from..end).map(act).ok_or(Errno::Range)
    }

    fn read(&self, offset: u64, length: u64) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| Errno::Range)?];
        self.read_at(&mut bytes, offset).map(|()| bytes)
    }
}

impl Store for Memory {
    fn length(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        self.with(offset, buffer.len(), |bytes| buffer.copy_from_slice(bytes))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.with(offset, bytes.len(), |old| old.copy_from_slice(bytes))
    }

    fn flush(&self) -> Result<(), Errno> {
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> Result<(), Errno> {
        Ok(())
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let (disk, content) = (disk()?, content());
    let plan = decide(&disk)?;
    plan.check()?;
    // Its size is known before the first byte is written.
    let (_, size) = Journal::head(&plan, "p1").ok_or("the journal would be too long")?;
    let paper = Memory::new(usize::try_from(size)?);
    let half = plan.steps() / 2;
    interrupt(&plan, &disk, &paper, half)?;
    println!("interrupted before step {half} of {}; p1 begins at {:?}", plan.steps(), start(&disk));
    resume(&disk, &paper)?;
    println!("resumed; p1 begins at {:?}", start(&disk));
    if start(&disk) != Some(TO) || disk.read(TO, LENGTH)? != content {
        return Err("something was lost".into());
    }
    println!("all {LENGTH} bytes are there");
    Ok(())
}

/// Bytes of the partition, of which no two sectors are alike.
fn content() -> Vec<u8> {
    (0..LENGTH / 8)
        .flat_map(|word: u64| word.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
        .collect()
}

/// A disk with a GPT, and a partition at sector 63 with [`content`] in it.
fn disk() -> Result<Memory, Box<dyn Error>> {
    let disk = Memory::new(usize::try_from(DISK)?);
    let graph = taste(&disk);
    let (gpt, ground) = (scheme()?, ground(&graph));
    let empty = gpt.create(&graph.probe(0), &ground, &New::default())?;
    let mut full = empty.clone();
    let place = Request { start: Some(FROM), size: Some(LENGTH), align: None };
    let kind = gpt.kind("linux-data").ok_or("no type of this name")?;
    let uuid = Some(Guid([1; 16]));
    full.add(
        &ground,
        Wanted { kind, place, index: None, label: None, uuid, attributes: 0 },
        Rules::Aligned,
    )?;
    for patch in gpt.render(&empty, &full) {
        disk.write_at(&patch.bytes, patch.offset)?;
    }
    disk.write_at(&content(), FROM)?;
    Ok(disk)
}

/// The scheme of the table.
fn scheme() -> Result<&'static dyn Scheme, &'static str> {
    registry::scheme_named("gpt").ok_or("no scheme of this name")
}

fn taste(disk: &Memory) -> Graph {
    Graph::taste(
        vec![Disk::new("", Box::new(disk.clone()), Topology::new(SECTOR, DISK))],
        Limits::default(),
    )
}

fn ground(graph: &Graph) -> TableSite<'_> {
    TableSite { topology: &graph.providers[0].topology, base: 0, kind: None }
}

/// The first byte of the partition, by its table.
fn start(disk: &Memory) -> Option<u64> {
    let graph = taste(disk);
    graph.find("p1").and_then(|id| graph.providers[id].start)
}

/// The move: what changes in the table, and what is kept in the journal of the partition's ends.
fn decide(disk: &Memory) -> Result<Move, Box<dyn Error>> {
    let graph = taste(disk);
    let gpt = scheme()?;
    let before = gpt.read(&graph.probe(0)).ok_or("no table")?;
    let mut after = before.clone();
    after.relocate(&ground(&graph), 1, Some(TO))?;
    let table = changes(gpt.render(&before, &after), &mut |at, out| disk.read_at(out, at))?;
    let was = |patch: &Patch| {
        disk.read(patch.offset, patch.bytes.len() as u64)
            .map(|bytes| Patch { bytes, ..patch.clone() })
    };
    let was = table.iter().map(was).collect::<Result<Vec<Patch>, Errno>>()?;
    let (front, back) = ends(LENGTH, PIECES.end);
    Ok(Move {
        id: *b"one move of many",
        medium: DISK,
        sector: SECTOR,
        from: FROM,
        to: TO,
        length: LENGTH,
        sizes: PIECES,
        front: disk.read(FROM, front)?,
        back: disk.read(FROM + LENGTH - back, back)?,
        // What file systems say of where they begin: `rebase` finds it.
        rebased: Vec::new(),
        table,
        was,
        gaps: Gaps::default(),
        bad: BadSectors::default(),
    })
}

/// Begins the move, and ends it before step `half`.
fn interrupt(plan: &Move, disk: &Memory, paper: &Memory, half: u64) -> Result<(), Box<dyn Error>> {
    let journal = Journal::create(paper, plan, "p1")?;
    let mut step = 0;
    let stopped = carry(plan, disk, Some(&journal), Start::default(), &mut |_| {
        step += 1;
        step <= half
    });
    if stopped == Err(Interrupted::Asked) {
        Ok(())
    } else {
        Err(format!("not interrupted: {stopped:?}").into())
    }
}

/// The way on from an interruption: where the move was, and the rest of it.
fn resume(disk: &Memory, paper: &Memory) -> Result<(), Box<dyn Error>> {
    let (journal, plan, _) =
        Journal::open(paper).map_err(|why| format!("open the journal: {why:?}"))?;
    let Standing::Half(start) =
        plan.standing(&journal, disk).map_err(|why| format!("read: {why:?}"))?
    else {
        return Err("it is not half done".into());
    };
    carry(&plan, disk, Some(&journal), start, &mut |_| true)
        .map(|_| ())
        .map_err(|why| format!("go on: {why:?}").into())
}
