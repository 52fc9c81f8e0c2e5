//! Whole disks: partitions without a gap, logical ones and a GPT's, put on the grain by one plan
//! that is interrupted, gone on with and taken back, anywhere.

use crate::medium::{Medium, Random};
use crate::nested::planned;
use crate::trial::Trial;
use std::sync::{Arc, atomic::AtomicU64};
use trueline_geom::base::error::Errno;
use trueline_geom::base::ondisk::Guid;
use trueline_geom::base::patch::{Patch, lay_over};
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::{Fact, Grain, Source, Topology, Trust, Why};
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::probe::Limits;
use trueline_geom::registry;
use trueline_geom::relocate::bad::ROOM;
use trueline_geom::relocate::sequence::{Adapted, Goal, Movement, Sequence, Stop, run};
use trueline_geom::relocate::whole::{Obstacle, Whole};
use trueline_geom::relocate::{Mark, Sizes};
use trueline_geom::table::scheme::{New, TableSite};
use trueline_geom::table::{Request, Rules, Wanted};

pub(crate) const SECTOR: u64 = 512;
pub(crate) const SIZES: Sizes = crate::case::SIZES;
const GRAIN: u64 = 4096;

pub(crate) fn topology(length: u64) -> Topology {
    let grain = Grain::multiples(GRAIN);
    let fact = Fact { grain, why: Why::Physical, source: Source::User, trust: Trust::Trusted };
    Topology::new(SECTOR, length).with(fact)
}

pub(crate) fn graph(disk: &[u8]) -> Graph {
    let length = disk.len() as u64;
    let mut sparse = Sparse::new(length);
    sparse.put(0, disk);
    let disk = Disk { start: Some(0), ..Disk::new("", Box::new(sparse), topology(length)) };
    Graph::taste(vec![disk], Limits::default())
}

/// A partition by the sectors of its first and its length.
#[derive(Clone, Debug)]
enum Part {
    Plain(u64, u64),
    /// Extended: its sectors, and for each logical partition the EBR, the first sector and the
    /// length.
    Extended(u64, u64, Vec<(u64, u64, u64)>),
}

fn write_entry(sector: &mut [u8], slot: usize, kind: u8, start: u64, length: u64) {
    let entry = &mut sector[446 + slot * 16..][..16];
    entry[4] = kind;
    entry[8..12].copy_from_slice(&u32::try_from(start).unwrap().to_le_bytes());
    entry[12..16].copy_from_slice(&u32::try_from(length).unwrap().to_le_bytes());
    sector[510..512].copy_from_slice(&[0x55, 0xaa]);
}

fn sector_of(disk: &mut [u8], sector: u64) -> &mut [u8] {
    &mut disk[usize::try_from(sector * SECTOR).unwrap()..][..512]
}

/// Random bytes with a partition's own number, so that no two are the same.
pub(crate) fn fill(disk: &mut [u8], start: u64, length: u64, random: &mut Random) {
    for sector in start..start + length {
        let bytes = sector_of(disk, sector);
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&random.next(u64::MAX).to_le_bytes());
        }
        // Never a table or a boot sector.
        bytes[510..].fill(1);
    }
    let end = sector_of(disk, start + length - 1);
    end[504..].copy_from_slice(&(start * SECTOR).to_le_bytes());
}

fn mbr(parts: &[Part], sectors: u64, random: &mut Random) -> Vec<u8> {
    let mut disk = vec![0; usize::try_from(sectors * SECTOR).unwrap()];
    for (slot, part) in parts.iter().enumerate() {
        match part {
            Part::Plain(start, length) => {
                write_entry(sector_of(&mut disk, 0), slot, 0x83, *start, *length);
                fill(&mut disk, *start, *length, random);
            }
            Part::Extended(start, length, logicals) => {
                write_entry(sector_of(&mut disk, 0), slot, 0x05, *start, *length);
                for (n, &(at, first, length)) in logicals.iter().enumerate() {
                    let ebr = sector_of(&mut disk, at);
                    write_entry(ebr, 0, 0x83, first - at, length);
                    if let Some(&(next, first, length)) = logicals.get(n + 1) {
                        write_entry(ebr, 1, 0x05, next - start, first + length - next);
                    }
                    fill(&mut disk, first, length, random);
                }
            }
        }
    }
    disk
}

/// A GPT, with room for partitions from the first sector of 41 on.
fn gpt(parts: &[(u64, u64)], sectors: u64, random: &mut Random) -> Vec<u8> {
    let mut disk = vec![0; usize::try_from(sectors * SECTOR).unwrap()];
    let scheme = registry::scheme_named("gpt").unwrap();
    let empty = graph(&disk);
    let topology = topology(disk.len() as u64);
    let site = TableSite { topology: &topology, base: 0, kind: None };
    let new = New { random: *b"one disk of many", ..New::default() };
    let before = scheme.create(&empty.probe(0), &site, &new).unwrap();
    let mut after = before.clone();
    for &(start, length) in parts {
        let place =
            Request { start: Some(start * SECTOR), size: Some(length * SECTOR), align: None };
        let kind = scheme.kind("linux-data").unwrap();
        let uuid = Some(Guid([u8::try_from(start % 251).unwrap(); 16]));
        let wanted = Wanted { kind, place, index: None, label: None, uuid, attributes: 0 };
        after.add(&site, wanted, Rules::Aligned).unwrap();
    }
    lay_over(&scheme.render(&before, &after), 0, &mut disk);
    for &(start, length) in parts {
        fill(&mut disk, start, length, random);
    }
    disk
}

/// Disk with its plan.
struct Case {
    name: String,
    before: Vec<u8>,
    whole: Whole,
    sequence: Sequence,
}

fn case(name: String, before: Vec<u8>) -> Option<Case> {
    let whole = match planned(&before) {
        Ok(whole) => whole,
        Err(Obstacle::Room(_)) => return None,
        Err(Obstacle::Refused(why)) => panic!("{name}: {why}"),
    };
    let sequence = Sequence {
        id: *b"sequence of many",
        medium: before.len() as u64,
        sector: SECTOR,
        sizes: SIZES,
        stages: whole.stages.clone(),
        listed: Vec::new(),
    };
    if !sequence.stages.is_empty() {
        sequence.check().unwrap_or_else(|why| panic!("{name}: {why}: {sequence:#?}"));
    }
    Some(Case { name, before, whole, sequence })
}

/// What a partition notes of its own place, in its last bytes.
fn adapted(moved: Movement) -> Adapted {
    let place = Patch::new(moved.length - 8, moved.to.to_le_bytes().to_vec(), "where");
    Adapted { rebased: vec![place], ..Adapted::default() }
}

pub(crate) fn part(disk: &[u8], at: u64, length: u64) -> Vec<u8> {
    disk[usize::try_from(at).unwrap()..][..usize::try_from(length).unwrap()].to_vec()
}

impl Case {
    /// The bytes of partition `n` at its old place or the new.
    fn contents(&self, n: usize, moved: bool) -> (u64, Vec<u8>) {
        let p = &self.whole.partitions[n];
        let length = p.now.end - p.now.start;
        let mut bytes = part(&self.before, p.now.start, length);
        let start = if moved { p.to } else { p.now.start };
        let last = bytes.len() - 8;
        if moved && p.to != p.now.start {
            bytes[last..].copy_from_slice(&start.to_le_bytes());
        }
        (start, bytes)
    }

    /// Every link of a chain covers its EBR and that one's partition.
    fn links(&self, disk: &[u8]) {
        let number =
            |at: usize| u64::from(u32::from_le_bytes(disk[at..at + 4].try_into().unwrap()));
        let sector = |sector: u64| usize::try_from(sector * SECTOR).unwrap();
        let Some(slot) = (0..4).find(|slot| disk[446 + slot * 16 + 4] == 5) else { return };
        let start = number(446 + slot * 16 + 8);
        let mut at = start;
        while disk[sector(at) + 462 + 4] == 5 {
            let link = sector(at) + 462;
            let next = start + number(link + 8);
            let entry = sector(next) + 446;
            let end = next + number(entry + 8) + number(entry + 12);
            assert_eq!(next + number(link + 12), end, "{}: the link at {at}", self.name);
            at = next;
        }
    }
}

impl Trial for Case {
    fn name(&self) -> &str {
        &self.name
    }

    fn before(&self) -> &[u8] {
        &self.before
    }

    fn sequence(&self) -> &Sequence {
        &self.sequence
    }

    fn adapted(&self, _: &Medium, moved: Movement) -> Result<Adapted, Errno> {
        Ok(adapted(moved))
    }

    /// Every partition of the table is whole, in its old place or the new, or begins with a mark;
    /// none is missing.
    fn shown(&self, disk: &[u8]) {
        let graph = graph(disk);
        let mut seen = vec![false; self.whole.partitions.len()];
        for p in graph.providers.iter().skip(1).filter(|p| p.start.is_some() && !p.is_extended()) {
            let own = (0..seen.len()).find(|&n| {
                [false, true].iter().any(|&moved| self.contents(n, moved).0 == p.base())
                    && !seen[n]
                    && self.contents(n, false).1.len() as u64 == p.topology.length
            });
            let n = own.unwrap_or_else(|| panic!("{}: {} at {}", self.name, p.name, p.base()));
            seen[n] = true;
            let first = part(disk, p.base(), 512);
            let whole = [false, true].iter().any(|&moved| {
                let (start, bytes) = self.contents(n, moved);
                start == p.base() && part(disk, start, bytes.len() as u64) == bytes
            });
            assert!(whole || Mark::read(&first).is_some(), "{}: {} is torn", self.name, p.name);
        }
        let missing = seen.iter().position(|seen| !seen);
        // Both copies of a GPT, or an MBR alone, are whole at any time.
        assert_eq!(missing, None, "{}: a partition is missing", self.name);
    }

    fn check(&self, disk: &[u8], goal: Goal) {
        for n in 0..self.whole.partitions.len() {
            let (start, bytes) = self.contents(n, goal == Goal::Forward);
            assert!(
                part(disk, start, bytes.len() as u64) == bytes,
                "{}: partition {n} at {start}",
                self.name
            );
        }
        let after = planned(disk).unwrap();
        if goal == Goal::Forward {
            assert!(after.stages.is_empty(), "{}: {after:?}", self.name);
            self.links(disk);
        } else {
            let table = |disk: &[u8]| -> Vec<Vec<u8>> {
                let turns = self.sequence.stages.iter().flat_map(|stage| &stage.turn.was);
                turns.map(|patch| part(disk, patch.offset, SECTOR)).collect()
            };
            let places = |whole: &Whole| -> Vec<_> {
                whole.partitions.iter().map(|p| (p.which, p.now.clone())).collect()
            };
            assert_eq!(places(&after), places(&self.whole), "{}", self.name);
            assert_eq!(table(disk)[..1], table(&self.before)[..1], "{}", self.name);
        }
    }
}

/// Layouts of the sorts that there are: without gaps, with some, and with room at either end.
fn cases() -> Vec<Case> {
    let mut random = Random(5);
    let mut cases = Vec::new();
    let mut number = 0;
    while cases.len() < 48 {
        number += 1;
        let mut at = 63 + random.next(6);
        let gap = |random: &mut Random| if random.next(2) == 0 { 0 } else { random.next(9) };
        let kind = random.next(4);
        let mut parts = Vec::new();
        let mut flat = Vec::new();
        for _ in 0..1 + random.next(3) {
            at += gap(&mut random);
            let length = 3 + random.next(28);
            parts.push(Part::Plain(at, length));
            flat.push((at, length));
            at += length;
        }
        if kind == 1 || kind == 3 {
            at += gap(&mut random);
            let start = at;
            let mut logicals = Vec::new();
            for _ in 0..1 + random.next(4) {
                let ebr = at;
                at += 1 + random.next(7);
                let length = 3 + random.next(20);
                logicals.push((ebr, at, length));
                at += length + gap(&mut random);
            }
            let length = at - start + gap(&mut random);
            at = start + length;
            parts.push(Part::Extended(start, length, logicals));
            // A primary partition behind it, sometimes.
            if random.next(2) == 0 && parts.len() < 4 {
                let length = 3 + random.next(20);
                parts.push(Part::Plain(at, length));
                at += length;
            }
        }
        let name = format!("{number}: {parts:?}");
        let sectors = at + 40 + random.next(30);
        let disk = match kind {
            2 => gpt(&flat, sectors + 40, &mut random),
            _ => mbr(&parts, sectors, &mut random),
        };
        cases.extend(case(name, disk).filter(|case| !case.sequence.stages.is_empty()));
    }
    cases
}

#[test]
fn every_partition_comes_out_on_the_grain() {
    let mut random = Random(1);
    for case in cases() {
        case.go(&[], &mut random);
        case.go(&[(Goal::Forward, u64::MAX, false), (Goal::Back, u64::MAX, false)], &mut random);
    }
}

#[test]
fn nothing_is_lost_wherever_a_whole_disk_is_interrupted() {
    let mut random = Random(2);
    let (mut runs, mut states) = (0, 0);
    for case in cases() {
        for _ in 0..16 {
            let goals: Vec<_> = (0..1 + random.next(3))
                .map(|_| (Goal::Forward, random.next(400), random.next(3) == 0))
                .collect();
            states += goals.len();
            case.go(&goals, &mut random);
            runs += 1;
        }
    }
    assert!(runs >= 48 * 16 && states > runs, "{runs} runs, {states} interruptions");
}

/// A link must not reach the medium before the EBR that it leads to.
#[test]
fn a_loss_of_power_while_a_table_is_written_loses_nothing() {
    let mut random = Random(4);
    let (mut runs, mut chains) = (0, 0);
    for case in cases() {
        let has_fresh = case.sequence.stages.iter().any(|stage| !stage.turn.fresh.is_empty());
        if !has_fresh && !case.name.len().is_multiple_of(5) {
            continue;
        }
        chains += usize::from(has_fresh);
        for budget in case.table_writes() {
            for _ in 0..4 {
                case.go(&[(Goal::Forward, budget, false)], &mut random);
                runs += 1;
            }
        }
    }
    assert!(chains > 8 && runs > 800, "{chains} chains, {runs} runs");
}

/// Whatever numbers a journal has whose sum is right, it is none, or one whose work is bounded.
#[test]
fn a_hostile_journal_of_a_whole_disk_is_bounded() {
    let mut random = Random(7);
    let mut opened = 0;
    for case in cases().iter().step_by(6) {
        let (head, size) = case.sequence.head("words").unwrap();
        for _ in 0..400 {
            let mut file = head.clone();
            for _ in 0..=random.next(3) {
                let most = if random.next(2) > 0 { 160 } else { head.len() as u64 - 20 };
                let at = 20 + usize::try_from(random.next(most)).unwrap();
                file[at] = [0, 1, 0x7f, 0x80, 0xff, 2][usize::try_from(random.next(6)).unwrap()];
            }
            let sum = crc32fast::hash(&file[20..]).to_le_bytes();
            file[16..20].copy_from_slice(&sum);
            file.resize(usize::try_from(size - 2 * ROOM).unwrap(), 0);
            let file = Medium::steady(file);
            let Ok((sequence, _, room)) = Sequence::open(&file) else { continue };
            opened += 1;
            sequence.check().unwrap();
            if sequence.medium != case.before.len() as u64 || sequence.sector != SECTOR {
                continue;
            }
            let medium = Medium::steady(case.before.clone());
            let mut contents = |moved| Ok(adapted(moved));
            let files = (&file as &dyn Store, room);
            let _ = run(&sequence, &medium, files, Goal::Forward, &mut contents, &mut |_| true);
        }
    }
    assert!(opened > 100, "{opened}");
}

/// A disk with a mark needs the journal of that very move; one without goes on with any.
#[test]
fn a_disk_in_a_move_is_not_gone_on_with_by_another_journal() {
    let mut random = Random(6);
    let (mut refused, mut done) = (0, 0);
    for case in cases().iter().step_by(3) {
        for _ in 0..12 {
            let power = Arc::new(AtomicU64::new(random.next(300)));
            let (medium, file) =
                (Medium::new(case.before.clone(), &power), Medium::new(case.paper(), &power));
            let (read, _, room) = Sequence::open(&file).unwrap();
            let mut contents = |moved| Ok(adapted(moved));
            let files = (&file as &dyn Store, room);
            let _ = run(&read, &medium, files, Goal::Forward, &mut contents, &mut |_| true);
            let disk = medium.after(&mut random);
            let marked =
                graph(&disk).providers.iter().any(trueline_geom::graph::Provider::is_moving);
            // As it was when the sequence began.
            let (medium, file) = (Medium::steady(disk.clone()), Medium::steady(case.paper()));
            let files = (&file as &dyn Store, room);
            let came = run(&read, &medium, files, Goal::Forward, &mut contents, &mut |_| true);
            match came {
                Ok(_) => {
                    assert!(!marked, "{}", case.name);
                    case.check(&medium.seen(), Goal::Forward);
                    done += 1;
                }
                Err(Stop::Other(_)) => {
                    assert!(medium.seen() == disk, "{}", case.name);
                    refused += 1;
                }
                Err(other) => panic!("{}: {other:?}", case.name),
            }
        }
    }
    assert!(refused > 20 && done > 20, "{refused} refused, {done} done");
}

#[test]
fn a_whole_disk_can_be_taken_back_from_anywhere() {
    let mut random = Random(3);
    for case in cases() {
        for _ in 0..8 {
            let goals: Vec<_> = (0..1 + random.next(3))
                .map(|_| {
                    let goal = if random.next(2) == 0 { Goal::Forward } else { Goal::Back };
                    (goal, random.next(400), random.next(3) == 0)
                })
                .collect();
            case.go(&goals, &mut random);
            let back = [goals.as_slice(), &[(Goal::Back, u64::MAX, false)]].concat();
            case.go(&back, &mut random);
        }
    }
}
