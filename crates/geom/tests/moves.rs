//! Moves: whatever interrupts one, wherever, and whatever of the writes since the last flush is lost, who resumes loses nothing.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use trueline_geom::error::Errno;
use trueline_geom::patch::{Patch, lay_over};
use trueline_geom::realign::{Begun, Interrupted, Journal, Mark, Move, Sizes, Standing, carry, ends};
use trueline_geom::store::Store;

const SECTOR: u64 = 512;
/// Small, so that a move of some kilobytes has everything that one of a disk has.
const SIZES: Sizes = Sizes { end: 4 * SECTOR, piece: 6 * SECTOR, far: 3 * SECTOR };

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % below
    }
}

/// A medium with a cache that loses what was not flushed, in any part, when the power fails: after so many requests.
struct Medium {
    power: Arc<AtomicU64>,
    bytes: Mutex<(Vec<u8>, Cached)>,
}

/// Writes since the last flush: where, what.
type Cached = Vec<(usize, Vec<u8>)>;

impl Medium {
    fn new(bytes: Vec<u8>, power: &Arc<AtomicU64>) -> Medium {
        Medium { power: power.clone(), bytes: Mutex::new((bytes, Vec::new())) }
    }

    fn spend(&self) -> Result<(), Errno> {
        self.power.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).map(|_| ()).map_err(|_| Errno::Io)
    }

    /// What is there when the power is back: of what was not flushed any sectors, the later over the earlier.
    fn after(self, random: &mut Random) -> Vec<u8> {
        let (mut bytes, cached) = self.bytes.into_inner().unwrap();
        let keep = random.next(4);
        for (at, data) in cached {
            for (nth, sector) in data.chunks(512).enumerate() {
                // All of it, nothing of it, most of it, half of it.
                if keep == 0 || keep > 1 && random.next(keep * 4 - 6) != 0 {
                    bytes[at + nth * 512..][..sector.len()].copy_from_slice(sector);
                }
            }
        }
        bytes
    }
}

impl Store for Medium {
    fn length(&self) -> u64 {
        self.bytes.lock().unwrap().0.len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let state = self.bytes.lock().unwrap();
        let from = usize::try_from(offset).unwrap();
        buffer.copy_from_slice(state.0.get(from..from + buffer.len()).ok_or(Errno::Range)?);
        for (at, data) in &state.1 {
            for (n, byte) in data.iter().enumerate() {
                if let Some(place) = (at + n).checked_sub(from).and_then(|place| buffer.get_mut(place)) {
                    *place = *byte;
                }
            }
        }
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.spend()?;
        assert!(offset + bytes.len() as u64 <= self.length());
        self.bytes.lock().unwrap().1.push((usize::try_from(offset).unwrap(), bytes.to_vec()));
        Ok(())
    }

    fn flush(&self) -> Result<(), Errno> {
        self.spend()?;
        let (bytes, cached) = &mut *self.bytes.lock().unwrap();
        for (at, data) in cached.drain(..) {
            bytes[at..at + data.len()].copy_from_slice(&data);
        }
        Ok(())
    }
}

/// Two sectors of a table, which say where the partition is, then sectors of numbers.
fn disk(sectors: u64, from: u64) -> Vec<u8> {
    let mut disk: Vec<u8> =
        (0..sectors * SECTOR).map(|at: u64| u8::try_from((at / SECTOR * 7 + at * 13 + at / 3) % 251).unwrap()).collect();
    for copy in 0..2 {
        disk[copy * 512..][..512].fill(u8::try_from(copy).unwrap());
        disk[copy * 512..][..8].copy_from_slice(&from.to_le_bytes());
    }
    disk
}

/// The move of a partition on `disk`; its first sector says where it begins, and so does its last.
fn plan(disk: &[u8], from: u64, to: u64, length: u64, sizes: Sizes) -> Move {
    let part = |at: u64, length: u64| disk[usize::try_from(at).unwrap()..][..usize::try_from(length).unwrap()].to_vec();
    let (front, back) = ends(length, sizes.end);
    let table = |copy: u64| {
        let mut bytes = part(copy * SECTOR, SECTOR);
        bytes[..8].copy_from_slice(&to.to_le_bytes());
        let patch = Patch::new(copy * SECTOR, bytes, "table");
        if copy > 0 { patch.after_flush() } else { patch }
    };
    let table = vec![table(0), table(1)];
    let was = table.iter().map(|patch| Patch { bytes: part(patch.offset, SECTOR), ..patch.clone() }).collect();
    // In the last sector, and in the middle.
    let rebased =
        vec![Patch::new(length - 8, to.to_le_bytes().to_vec(), "where"), Patch::new(length / 2, to.to_le_bytes().to_vec(), "where")];
    let (front, back) = (part(from, front), part(from + length - back, back));
    Move { id: *b"one move of many", medium: disk.len() as u64, sector: SECTOR, from, to, length, sizes, front, back, rebased, table, was }
}

/// What is to be there in the end: in the new place what was in the old, and around both what was there.
fn check(before: &[u8], after: &[u8], plan: &Move) {
    let index = |at: u64| usize::try_from(at).unwrap();
    let mut wanted = before[index(plan.from)..][..index(plan.length)].to_vec();
    lay_over(&plan.rebased, 0, &mut wanted);
    assert!(after[index(plan.to)..][..index(plan.length)] == wanted, "{} to {}", plan.from, plan.to);
    assert_eq!(after[..8], plan.to.to_le_bytes());
    assert_eq!(after[512..520], plan.to.to_le_bytes());
    let (low, high) = (plan.from.min(plan.to), plan.from.max(plan.to) + plan.length);
    assert!(after[1024..index(low)] == before[1024..index(low)] && after[index(high)..] == before[index(high)..]);
    if !plan.overlaps() {
        assert!(after[index(plan.from)..][..index(plan.length)] == before[index(plan.from)..][..index(plan.length)]);
    }
}

/// What the table shows at any time: the old place with the old bytes, the new one with the new, or the mark.
fn shown(before: &[u8], disk: &[u8], plan: &Move) {
    let says = |copy: usize| u64::from_le_bytes(*disk[copy * 512..].first_chunk().unwrap());
    for start in [says(0), says(1)] {
        let first = &disk[usize::try_from(start).unwrap()..][..512];
        let old = &before[usize::try_from(plan.from).unwrap()..][..512];
        let mut new = old.to_vec();
        lay_over(&plan.rebased, 0, &mut new);
        let marked = Mark::read(first) == Some(plan.mark());
        assert!(marked || first == old || first == new, "{} to {}: {start} shows neither", plan.from, plan.to);
    }
}

/// Carries a move out with power failures after `powers` requests each, then to its end.
fn interrupted(before: &[u8], plan: &Move, powers: &[u64], random: &mut Random) {
    let (head, size) = Journal::head(plan, "words").unwrap();
    let mut disk = before.to_vec();
    let mut file = head;
    file.resize(usize::try_from(size).unwrap(), 0);
    for power in powers.iter().copied().chain([u64::MAX]) {
        let power = Arc::new(AtomicU64::new(power));
        let (medium, paper) = (Medium::new(disk.clone(), &power), Medium::new(file.clone(), &power));
        let (journal, read, words, begun) = Journal::open(&paper).unwrap().unwrap();
        assert_eq!(
            (words.as_str(), &read),
            ("words", &Move { table: read.table.clone(), was: read.was.clone(), rebased: read.rebased.clone(), ..plan.clone() })
        );
        let standing = read.standing(begun, &mut |at, out| medium.read_at(out, at)).unwrap();
        let (journal, begun) = match standing {
            Standing::Other => panic!("{begun:?}"),
            Standing::Half => (journal, begun),
            // Its user begins again.
            Standing::Untouched => {
                assert!(disk == before, "{begun:?}");
                (journal, Begun::default())
            }
            Standing::Done => return check(before, &disk, plan),
        };
        let done = carry(&read, &medium, Some(&journal), begun, &mut |_| true);
        (disk, file) = (medium.after(random), paper.after(random));
        shown(before, &disk, plan);
        if done.is_ok() {
            return check(before, &disk, plan);
        }
    }
    panic!("it never ended");
}

#[test]
fn nothing_is_lost_wherever_the_power_fails() {
    let mut random = Random(1);
    let sectors = 80;
    for (length, distances) in
        [(1, vec![1, 3]), (2, vec![1, 2, 5]), (7, vec![1, 6, 7]), (9, vec![1, 2, 9]), (30, vec![1, 2, 3, 4, 5, 7, 20, 30, 35])]
    {
        for distance in distances {
            for (from, to) in [(4, 4 + distance), (4 + distance, 4)] {
                let (from, to, length) = (from * SECTOR, to * SECTOR, length * SECTOR);
                let before = disk(sectors, from);
                let plan = plan(&before, from, to, length, SIZES);
                plan.check().unwrap();
                // What does not overlap has no journal.
                if !plan.overlaps() {
                    continue;
                }
                interrupted(&before, &plan, &[], &mut random);
                // Where there are no more requests it is done.
                for power in 0..120 {
                    interrupted(&before, &plan, &[power], &mut random);
                    let (twice, thrice) = (random.next(40), random.next(20));
                    interrupted(&before, &plan, &[power, twice, thrice], &mut random);
                }
            }
        }
    }
}

#[test]
fn a_move_apart_needs_no_journal_and_changes_nothing_before_its_end() {
    let before = disk(80, 4 * SECTOR);
    let plan = plan(&before, 4 * SECTOR, 40 * SECTOR, 30 * SECTOR, SIZES);
    let mut random = Random(2);
    for power in 0.. {
        let power = Arc::new(AtomicU64::new(power));
        let medium = Medium::new(before.clone(), &power);
        let done = carry(&plan, &medium, None, Begun::default(), &mut |_| true);
        let after = medium.after(&mut random);
        if done.is_ok() {
            return check(&before, &after, &plan);
        }
        assert!(after[2 * 512..40 * 512] == before[2 * 512..40 * 512]);
        shown(&before, &after, &plan);
    }
}

#[test]
fn who_asks_it_to_end_resumes_where_it_was() {
    let before = disk(80, 4 * SECTOR);
    let plan = plan(&before, 4 * SECTOR, 5 * SECTOR, 30 * SECTOR, SIZES);
    let power = Arc::new(AtomicU64::new(u64::MAX));
    let (head, size) = Journal::head(&plan, "").unwrap();
    let (medium, paper) = (Medium::new(before.clone(), &power), Medium::new(vec![9; usize::try_from(size).unwrap()], &power));
    assert!(head.len() as u64 <= size);
    assert_eq!(carry(&plan, &medium, None, Begun::default(), &mut |_| true), Err(Interrupted::Journal(Errno::Unsupported)));
    let journal = Journal::create(&paper, &plan, "").unwrap();
    let mut calls = 0;
    let stopped = carry(&plan, &medium, Some(&journal), Begun::default(), &mut |_| {
        calls += 1;
        calls < 4
    });
    assert_eq!(stopped, Err(Interrupted::Asked));
    let (journal, read, _, begun) = Journal::open(&paper).unwrap().unwrap();
    assert!(begun.step > 0);
    let mut seen = Vec::new();
    carry(&read, &medium, Some(&journal), begun, &mut |bytes| {
        seen.push(bytes);
        true
    })
    .unwrap();
    assert!(seen.is_sorted() && seen.last() == Some(&(22 * SECTOR)), "{seen:?}");
    check(&before, &medium.after(&mut Random(3)), &plan);
}

#[test]
fn another_disk_or_table_is_not_resumed_on() {
    let before = disk(80, 4 * SECTOR);
    let plan = plan(&before, 4 * SECTOR, 5 * SECTOR, 30 * SECTOR, SIZES);
    let stands = |disk: &[u8], noted: bool, step: u64| {
        let begun = Begun { noted, step, saved: None };
        let mut read = |at: u64, out: &mut [u8]| {
            out.copy_from_slice(&disk[usize::try_from(at).unwrap()..][..out.len()]);
            Ok(())
        };
        plan.standing(begun, &mut read).unwrap()
    };
    let mut marked = before.clone();
    marked[4 * 512..][..512].copy_from_slice(&plan.mark().sector(SECTOR));
    let (last, end) = (plan.steps() - 1, plan.steps());
    for (disk, noted, step, want) in [
        (&before, false, 0, Standing::Untouched),
        (&before, true, 0, Standing::Untouched),
        (&before, true, 3, Standing::Other),
        (&before, true, last, Standing::Done),
        (&marked, true, last, Standing::Half),
        (&marked, true, 3, Standing::Half),
        // The journal is an older copy, or of another move.
        (&marked, false, 0, Standing::Other),
        // An older copy of the disk: what the journal has is not its own.
        (&marked, true, end, Standing::Other),
        (&before, true, end, Standing::Done),
    ] {
        assert_eq!(stands(disk, noted, step), want, "{noted} {step}");
    }
    for at in [5, 520] {
        let mut other = marked.clone();
        other[at] ^= 1;
        assert_eq!(stands(&other, true, 3), Standing::Other, "{at}");
    }
}

#[test]
fn what_cannot_be_carried_out_is_refused() {
    let before = disk(80, 4 * SECTOR);
    let good = plan(&before, 4 * SECTOR, 5 * SECTOR, 30 * SECTOR, SIZES);
    let bad: [&dyn Fn(&mut Move); 10] = [
        &|m| m.to = m.from,
        &|m| m.to = u64::MAX - 511,
        &|m| m.to = 60 * SECTOR,
        &|m| m.length = 0,
        &|m| m.length += 1,
        &|m| m.sector = 0,
        &|m| m.sizes.piece = 0,
        &|m| m.front.clear(),
        &|m| m.rebased[0].offset = m.length,
        &|m| m.was.clear(),
    ];
    for (n, change) in bad.iter().enumerate() {
        let mut plan = good.clone();
        change(&mut plan);
        assert!(plan.check().is_err(), "{n}");
    }
    // A journal of any bytes, and one with any byte changed, is none, or one that can be carried out.
    let (head, size) = Journal::head(&good, "words").unwrap();
    let power = Arc::new(AtomicU64::new(u64::MAX));
    for at in 0..head.len() {
        let mut file = head.clone();
        file.resize(usize::try_from(size).unwrap(), 0);
        file[at] ^= 0x80;
        assert!(Journal::open(&Medium::new(file, &power)).unwrap().is_none(), "{at}");
    }
    for length in 0..head.len() {
        assert!(Journal::open(&Medium::new(head[..length].to_vec(), &power)).unwrap().is_none(), "{length}");
    }
}

/// Whatever numbers a journal has whose sum is right, it is none, or one that can be carried out.
#[test]
fn a_hostile_journal_is_bounded() {
    const CRC: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);
    let before = disk(80, 4 * SECTOR);
    let good = plan(&before, 4 * SECTOR, 5 * SECTOR, 30 * SECTOR, SIZES);
    let (head, size) = Journal::head(&good, "words").unwrap();
    let power = Arc::new(AtomicU64::new(u64::MAX));
    let (mut random, mut opened) = (Random(5), 0);
    for _ in 0..20_000 {
        let mut file = head.clone();
        for _ in 0..=random.next(3) {
            // Most often one of the numbers at the front.
            let at = 20 + usize::try_from(if random.next(4) > 0 { random.next(64) } else { random.next(head.len() as u64 - 20) }).unwrap();
            file[at] = [0, 1, 0x7f, 0x80, 0xff, 2][usize::try_from(random.next(6)).unwrap()];
        }
        let sum = CRC.checksum(&file[20..]).to_le_bytes();
        file[16..20].copy_from_slice(&sum);
        file.resize(usize::try_from(size).unwrap(), 0);
        let paper = Medium::new(file, &power);
        let Some((journal, plan, _, begun)) = Journal::open(&paper).unwrap() else { continue };
        opened += 1;
        plan.check().unwrap();
        assert!(plan.steps() > 0 && plan.step(plan.steps()).is_none() && plan.step(plan.steps() - 1).is_some());
        let medium = Medium::new(before.clone(), &power);
        let _ = plan.standing(begun, &mut |at, out| if at < before.len() as u64 / 2 { medium.read_at(out, at) } else { Err(Errno::Range) });
        if plan.medium == before.len() as u64 {
            let _ = carry(&plan, &medium, Some(&journal), begun, &mut |_| true);
        }
    }
    assert!(opened > 100, "{opened}");
}
