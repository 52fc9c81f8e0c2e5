//! Moves with gaps: holes are zero at the new place, what is free is never read or written, and
//! everything else is there whatever interrupts the move.

use crate::case::{self, Came, SECTOR, SIZES, disk, paper, plan, shown};
use crate::medium::{Medium, Random};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use trueline_geom::base::error::Errno;
use trueline_geom::base::patch::lay_over;
use trueline_geom::base::store::{Content, Run, Store};
use trueline_geom::relocate::bad::BadSectors;
use trueline_geom::relocate::gaps::{Gap, GapKind, Gaps, holes};
use trueline_geom::relocate::{Interrupted, Journal, Move, SIZES as REAL, Standing, Start, carry};

const FROM: u64 = 8 * SECTOR;
const LENGTH: u64 = 60 * SECTOR;

fn index(at: u64) -> usize {
    usize::try_from(at).unwrap()
}

/// A disk and a move on it whose gaps are at random; holes are zero.
fn gapped(from: u64, to: u64, random: &mut Random) -> (Vec<u8>, Move) {
    let mut before = disk(160, from);
    let (mut list, mut at) = (Vec::new(), random.next(9));
    while at < LENGTH / SECTOR {
        let end = (at + 1 + random.next(24)).min(LENGTH / SECTOR);
        let kind = if random.next(2) == 0 { GapKind::Hole } else { GapKind::Free };
        let range = at * SECTOR..end * SECTOR;
        // The middle and the last sector are adapted.
        if !range.contains(&(LENGTH / 2)) && end < LENGTH / SECTOR {
            list.push(Gap { range, kind });
        }
        at = end + random.next(12);
    }
    for gap in list.iter().filter(|gap| gap.kind == GapKind::Hole) {
        before[index(from + gap.range.start)..index(from + gap.range.end)].fill(0);
    }
    let mut plan = plan(&before, from, to, LENGTH, SIZES);
    plan.gaps = Gaps::new(list);
    plan.check().unwrap();
    (before, plan)
}

/// True if `after` has, in the new place, all that is not free, and around both places what was
/// there. The ends are always copied.
fn is_moved(before: &[u8], after: &[u8], plan: &Move) -> bool {
    let mut wanted = before.to_vec();
    lay_over(&plan.table, 0, &mut wanted);
    let mut bytes = before[index(plan.from)..index(plan.from + plan.length)].to_vec();
    lay_over(&plan.rebased, 0, &mut bytes);
    wanted[index(plan.to)..][..bytes.len()].copy_from_slice(&bytes);
    let middle = SIZES.end..plan.length - SIZES.end;
    for Gap { range, kind } in plan.gaps.list() {
        let part = range.start.max(middle.start)..range.end.min(middle.end);
        if *kind == GapKind::Free && part.start < part.end {
            let there = index(plan.to + part.start)..index(plan.to + part.end);
            wanted[there.clone()].copy_from_slice(&after[there]);
        }
    }
    let (old, new) = (plan.from..plan.from + plan.length, plan.to..plan.to + plan.length);
    (0..after.len() as u64).filter(|at| !old.contains(at) || new.contains(at)).all(|at| {
        // What is left of the old place is of no interest.
        wanted[index(at)] == after[index(at)]
    })
}

/// The bytes that a move must never read or write: what is free at either place, and is not of
/// something else at the other.
fn carried(before: &[u8], plan: &Move, budgets: &[(u64, bool)], random: &mut Random) {
    let power = Arc::new(AtomicU64::new(0));
    let mut medium = Medium::new(before.to_vec(), &power);
    let mut file = Medium::new(paper(plan), &power);
    let mut begins = true;
    for &(budget, killed) in budgets.iter().chain([&(u64::MAX, false); 2]) {
        power.store(budget, Ordering::Relaxed);
        let came = if begins {
            let (journal, read, _) = Journal::open(&file).unwrap();
            assert_eq!(read.gaps, plan.gaps);
            match carry(&read, &medium, Some(&journal), Start::default(), &mut |_| true) {
                Ok(_) => Came::Done,
                Err(_) => Came::Failed,
            }
        } else {
            case::resume(&medium, &file)
        };
        match came {
            Came::Done => {
                let after = medium.after(random);
                assert!(is_moved(before, &after, plan), "{} to {}", plan.from, plan.to);
                return;
            }
            Came::Refused => panic!("refused: {budgets:?}"),
            Came::Untouched | Came::Failed => {}
        }
        begins = came == Came::Untouched;
        if !killed {
            shown(before, &medium.after(random), plan);
            medium = Medium::new(medium.after(random), &power);
            file = Medium::new(file.after(random), &power);
        }
        if begins {
            file = Medium::new(paper(plan), &power);
        }
    }
    panic!("it never ended: {budgets:?}");
}

#[test]
fn what_is_used_is_there_wherever_a_move_with_gaps_is_interrupted() {
    let mut random = Random(21);
    let mut passed = 0;
    for distance in [1, 2, 3, 5, 8, 30, 59] {
        for (from, to) in [(FROM, FROM + distance * SECTOR), (FROM + distance * SECTOR, FROM)] {
            for _ in 0..12 {
                let (before, plan) = gapped(from, to, &mut random);
                let whole = Move { gaps: Gaps::default(), ..plan.clone() };
                passed += whole.steps() - plan.steps();
                carried(&before, &plan, &[], &mut random);
                for _ in 0..40 {
                    let budgets: Vec<_> = (0..1 + random.next(4))
                        .map(|_| (random.next(90), random.next(2) == 0))
                        .collect();
                    carried(&before, &plan, &budgets, &mut random);
                }
            }
        }
    }
    assert!(passed > 100, "{passed} steps passed over");
}

#[test]
fn what_is_free_is_neither_read_nor_written() {
    let mut random = Random(22);
    for _ in 0..40 {
        for (from, to) in [(FROM, FROM + 2 * SECTOR), (FROM, FROM + 70 * SECTOR)] {
            let (before, plan) = gapped(from, to, &mut random);
            let (medium, file) = (Medium::steady(before.clone()), Medium::steady(paper(&plan)));
            let (journal, ..) = Journal::open(&file).unwrap();
            let journal = plan.overlaps().then_some(&journal);
            let mut seen = Vec::new();
            let told = &mut |bytes| {
                seen.push(bytes);
                true
            };
            carry(&plan, &medium, journal, Start::default(), told).unwrap();
            assert!(seen.is_sorted() && seen.last() == Some(&(LENGTH - 2 * SIZES.end)));
            let after = medium.seen();
            assert!(is_moved(&before, &after, &plan));
            let looked = medium.looked.lock().unwrap();
            let middle = from + SIZES.end..from + LENGTH - SIZES.end;
            for Gap { range, .. } in plan.gaps.list() {
                let old = from + range.start..from + range.end;
                let new = to + range.start..to + range.end;
                let inside = |at: &u64| middle.contains(at);
                assert!(!old.filter(inside).any(|at| looked[index(at)]));
                // Apart, what is free at the new place keeps its bytes.
                let is_kept = new
                    .filter(|at| inside(&(at - to + from)))
                    .all(|at| after[index(at)] == before[index(at)]);
                let is_hole = plan
                    .gaps
                    .list()
                    .iter()
                    .any(|gap| gap.kind == GapKind::Hole && gap.range == *range);
                assert!(plan.overlaps() || is_hole || is_kept);
            }
        }
    }
}

/// Memory of any length in which what was never written is a hole, and which counts.
#[derive(Default)]
struct Holey {
    length: u64,
    /// Pages that hold data.
    pages: Mutex<BTreeMap<u64, Vec<u8>>>,
    read: AtomicU64,
    requests: AtomicU64,
}

const PAGE: u64 = 4096;

impl Holey {
    fn new(length: u64, data: &[Range<u64>]) -> Holey {
        let disk = Holey { length, ..Holey::default() };
        for range in data {
            for at in range.clone().step_by(index(PAGE)) {
                let byte = u8::try_from(at / PAGE % 251).unwrap() + 1;
                disk.write_at(&[byte; 4096], at).unwrap();
            }
        }
        disk
    }

    fn pages(&self) -> Vec<u64> {
        self.pages.lock().unwrap().keys().copied().collect()
    }
}

impl Store for Holey {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        self.read.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        let pages = self.pages.lock().unwrap();
        for (at, byte) in (offset..).zip(buffer) {
            *byte = pages.get(&(at / PAGE)).map_or(0, |page| page[index(at % PAGE)]);
        }
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let mut pages = self.pages.lock().unwrap();
        for (at, byte) in (offset..).zip(bytes) {
            pages.entry(at / PAGE).or_insert_with(|| vec![0; 4096])[index(at % PAGE)] = *byte;
        }
        Ok(())
    }

    fn zero(&self, offset: u64, length: u64) -> Result<(), Errno> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let mut pages = self.pages.lock().unwrap();
        let whole = offset.div_ceil(PAGE)..(offset + length) / PAGE;
        pages.retain(|page, _| !whole.contains(page));
        for (page, bytes) in &mut *pages {
            for at in 0..PAGE {
                if (offset..offset + length).contains(&(page * PAGE + at)) {
                    bytes[index(at)] = 0;
                }
            }
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), Errno> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> Result<(), Errno> {
        Ok(())
    }

    fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        let pages = self.pages.lock().unwrap();
        let end = offset + length;
        let next = pages.range(offset / PAGE..).next().map_or(end, |(page, _)| page * PAGE);
        if next > offset {
            return Ok(Run { content: Content::Hole, length: next.min(end) - offset });
        }
        let mut to = offset;
        while pages.contains_key(&(to / PAGE)) {
            to = (to / PAGE + 1) * PAGE;
        }
        Ok(Run { content: Content::Data, length: to.min(end) - offset })
    }
}

/// A sparse image of 64 GiB with 8 MiB in it: the holes are not read, cost no step, and stay holes,
/// near, far and apart.
#[test]
fn holes_of_a_large_image_cost_nothing_and_stay_holes() {
    let (gib, mib) = (1_u64 << 30, 1_u64 << 20);
    let (from, length) = (4 * mib, 30 * gib);
    let data = [
        0..4096,
        from..from + 2 * mib,
        from + gib..from + gib + 3 * mib,
        from + 7 * gib + 64 * 1024..from + 7 * gib + 3 * mib,
        from + length - 4096..from + length,
    ];
    for to in [from + mib, from - mib, from + 3 * gib, from + 32 * gib] {
        let disk = Holey::new(64 * gib, &data);
        let before = disk.pages();
        let bytes = |at: u64, length: u64| {
            let mut bytes = vec![0; index(length)];
            disk.read_at(&mut bytes, at).unwrap();
            bytes
        };
        let was = vec![trueline_geom::base::patch::Patch::new(0, bytes(0, 512), "table")];
        let mut table = was.clone();
        table[0].bytes[0] ^= 1;
        let plan = Move {
            id: *b"one move of many",
            medium: disk.length,
            sector: SECTOR,
            from,
            to,
            length,
            sizes: REAL,
            front: bytes(from, mib),
            back: bytes(from + length - mib, mib),
            rebased: Vec::new(),
            table,
            was,
            gaps: Gaps::plan(&holes(&disk, from, length, SECTOR).unwrap(), &[], &[], SECTOR),
            bad: BadSectors::default(),
        };
        plan.check().unwrap();
        assert!(plan.amount() < 9 * mib, "{}", plan.amount());
        let read = disk.read.load(Ordering::Relaxed);
        let (_, size) = Journal::head(&plan, "").unwrap();
        let file = Medium::steady(vec![0; index(size)]);
        let journal = Journal::create(&file, &plan, "").unwrap();
        let journal = plan.overlaps().then_some(&journal);
        carry(&plan, &disk, journal, Start::default(), &mut |_| true).unwrap();
        assert_eq!(
            journal.map(|journal| plan.standing(journal, &disk)),
            journal.map(|_| Ok(Standing::Done))
        );
        let (read, requests) =
            (disk.read.load(Ordering::Relaxed) - read, disk.requests.load(Ordering::Relaxed));
        assert!(read < 9 * mib, "{read} bytes read");
        assert!(requests < 4000, "{requests} requests");
        // The same bytes, further on, and no page more but those of the ends.
        let new = disk.pages();
        for page in before.iter().filter(|&&page| page * PAGE >= from) {
            let mut moved = [0; 4096];
            disk.read_at(&mut moved, page * PAGE - from + to).unwrap();
            assert_eq!(moved, [u8::try_from(page % 251).unwrap() + 1; 4096], "{page}");
        }
        let ends = 4 * mib / PAGE;
        let left = |page: &&u64| {
            let at = *page * PAGE;
            (from..from + length).contains(&at) && !(to..to + length).contains(&at)
        };
        let old = before.iter().filter(left).count() as u64;
        assert!(new.len() as u64 <= before.len() as u64 + old + ends, "{} pages", new.len());
    }
}

/// A medium with a sector that cannot be read.
struct Spotted<'a> {
    medium: &'a Medium,
    bad: Range<u64>,
}

impl Store for Spotted<'_> {
    fn length(&self) -> u64 {
        self.medium.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let end = offset + buffer.len() as u64;
        let hits = offset < self.bad.end && self.bad.start < end;
        if hits { Err(Errno::Io) } else { self.medium.read_at(buffer, offset) }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.medium.write_at(bytes, offset)
    }

    fn flush(&self) -> Result<(), Errno> {
        self.medium.flush()
    }

    fn discard(&self, offset: u64, length: u64) -> Result<(), Errno> {
        self.medium.discard(offset, length)
    }
}

/// The move stops at the very sector, and goes on where that is named; it is zero then.
#[test]
fn a_sector_that_cannot_be_read_is_named_and_then_passed_over() {
    for (from, to) in [(FROM, FROM + SECTOR), (FROM + 5 * SECTOR, FROM), (FROM, FROM + 70 * SECTOR)]
    {
        for nth in [4, 17, 31, 50, 55] {
            let before = disk(160, from);
            let mut plan = plan(&before, from, to, LENGTH, SIZES);
            let bad = nth * SECTOR..(nth + 1) * SECTOR;
            let (medium, file) = (Medium::steady(before.clone()), Medium::steady(paper(&plan)));
            let spot = from + bad.start..from + bad.end;
            let spotted = Spotted { medium: &medium, bad: spot.clone() };
            let (journal, ..) = Journal::open(&file).unwrap();
            let journal = plan.overlaps().then_some(&journal);
            let stopped = carry(&plan, &spotted, journal, Start::default(), &mut |_| true);
            assert_eq!(stopped, Err(Interrupted::Unread(spot.start, Errno::Io)));
            plan.bad = BadSectors::new(vec![bad.clone()]);
            // A journal without room for what fails: the list counts as zeros.
            if let Some(journal) = journal {
                journal.list(&mut plan, &[]).unwrap();
            }
            let start = match journal.map(|journal| plan.standing(journal, &spotted).unwrap()) {
                Some(Standing::Half(start)) => start,
                None | Some(Standing::Untouched) => Start::default(),
                other => panic!("{other:?}"),
            };
            carry(&plan, &spotted, journal, start, &mut |_| true).unwrap();
            let mut wanted = before.clone();
            wanted[index(spot.start)..index(spot.end)].fill(0);
            // What is adapted is written there too.
            assert!(is_moved(&wanted, &medium.seen(), &plan), "{nth}: {from} to {to}");
        }
    }
}
