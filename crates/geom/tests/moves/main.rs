//! Moves: whatever interrupts one, wherever, and whatever of the writes since the last flush is
//! lost, and resuming loses nothing.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bad;
mod case;
mod changed;
mod converted;
mod gaps;
mod killed;
mod labels;
mod medium;
mod nested;
mod pairs;
mod trial;
mod whole;

use case::{Came, SECTOR, SIZES, check, disk, paper, plan, shown};
use medium::{Medium, Random};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use trueline_geom::base::error::Errno;
use trueline_geom::relocate::bad::ROOM;
use trueline_geom::relocate::{
    Held, Interrupted, Journal, Mark, Mismatch, Move, Note, Standing, Start, Unreadable, VERSION,
    carry,
};

/// Carries a move out with power failures after `powers` requests each, then to its end.
fn interrupted(before: &[u8], plan: &Move, powers: &[u64], random: &mut Random) {
    let (mut disk, mut file) = (before.to_vec(), paper(plan));
    for power in powers.iter().copied().chain([u64::MAX]) {
        // What is read before the power fails is read by a run that has it.
        let (medium, paper) = (Medium::steady(disk.clone()), Medium::steady(file.clone()));
        let (journal, read, words) = Journal::open(&paper).unwrap();
        assert_eq!(
            (words.as_str(), &read),
            (
                "words",
                &Move {
                    table: read.table.clone(),
                    was: read.was.clone(),
                    rebased: read.rebased.clone(),
                    ..plan.clone()
                }
            )
        );
        let start = match read.standing(&journal, &medium).unwrap() {
            Standing::Other(why) => panic!("{why:?}"),
            Standing::Half(start) => start,
            // Its user begins again.
            Standing::Untouched => {
                assert!(disk == before);
                file = case::paper(plan);
                Start::default()
            }
            Standing::Done => return check(before, &disk, plan),
        };
        let power = Arc::new(AtomicU64::new(power));
        let (medium, paper) =
            (Medium::new(disk.clone(), &power), Medium::new(file.clone(), &power));
        let (journal, read, _) = Journal::open(&paper).unwrap();
        let done = carry(&read, &medium, Some(&journal), start, &mut |_| true);
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
    for (length, distances) in [
        (1, vec![1, 3]),
        (2, vec![1, 2, 5]),
        (7, vec![1, 6, 7]),
        (9, vec![1, 2, 9]),
        (30, vec![1, 2, 3, 4, 5, 7, 20, 30, 35]),
    ] {
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
        let done = carry(&plan, &medium, None, Start::default(), &mut |_| true);
        let after = medium.after(&mut random);
        if done.is_ok() {
            return check(&before, &after, &plan);
        }
        assert!(after[2 * 512..40 * 512] == before[2 * 512..40 * 512]);
        shown(&before, &after, &plan);
    }
}

#[test]
fn a_move_that_is_asked_to_end_is_resumed_where_it_was() {
    let before = disk(80, 4 * SECTOR);
    let plan = plan(&before, 4 * SECTOR, 5 * SECTOR, 30 * SECTOR, SIZES);
    let power = Arc::new(AtomicU64::new(u64::MAX));
    let (head, size) = Journal::head(&plan, "").unwrap();
    let (medium, paper) = (
        Medium::new(before.clone(), &power),
        Medium::new(vec![9; usize::try_from(size).unwrap()], &power),
    );
    assert!(head.len() as u64 <= size);
    assert_eq!(
        carry(&plan, &medium, None, Start::default(), &mut |_| true),
        Err(Interrupted::Journal(Errno::Unsupported))
    );
    let journal = Journal::create(&paper, &plan, "").unwrap();
    let mut calls = 0;
    let stopped = carry(&plan, &medium, Some(&journal), Start::default(), &mut |_| {
        calls += 1;
        calls < 4
    });
    assert_eq!(stopped, Err(Interrupted::Asked));
    let (journal, read, _) = Journal::open(&paper).unwrap();
    let Ok(Standing::Half(start)) = read.standing(&journal, &medium) else {
        panic!("it is half done")
    };
    assert!(start.note.unwrap().step > 0 && start.held == Held::Saved);
    let mut seen = Vec::new();
    carry(&read, &medium, Some(&journal), start, &mut |bytes| {
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
    let (medium, file) = (Medium::steady(before.clone()), Medium::steady(paper(&plan)));
    let (journal, _, _) = Journal::open(&file).unwrap();
    let mut calls = 0;
    let stopped = carry(&plan, &medium, Some(&journal), Start::default(), &mut |_| {
        calls += 1;
        calls < 5
    });
    assert_eq!(stopped, Err(Interrupted::Asked));
    let half = medium.seen();
    let stands = |disk: &[u8]| plan.standing(&journal, &Medium::steady(disk.to_vec())).unwrap();
    let Standing::Half(Start { note: Some(Note { step, .. }), .. }) = stands(&half) else {
        panic!("it is half done")
    };
    assert_eq!(stands(&before), Standing::Other(Mismatch::Unmarked));
    for (at, why) in [
        (5, Mismatch::Table),
        (520, Mismatch::Table),
        (4 * 512, Mismatch::Trace),
        (4 * 512 + 70, Mismatch::Trace),
    ] {
        let mut other = half.clone();
        other[at] ^= 1;
        assert_eq!(stands(&other), Standing::Other(why), "{at}");
    }
    // The table of a step that has not begun.
    let mut other = half.clone();
    plan.table.iter().for_each(|patch| {
        other[usize::try_from(patch.offset).unwrap()..][..512].copy_from_slice(&patch.bytes)
    });
    assert_eq!(stands(&other), Standing::Other(Mismatch::Table));
    // The mark of another step, and of another history of this one.
    for (other_step, seal, why) in [
        (step + 1, 0, Mismatch::Apart { disk: step + 1, journal: Some(step) }),
        (step - 2, 0, Mismatch::Apart { disk: step - 2, journal: Some(step) }),
        (step, 0, Mismatch::Seal(step)),
        (step - 1, 0, Mismatch::Seal(step - 1)),
    ] {
        let mut mark = plan.mark(&Note::default());
        mark.sealed = Some(trueline_geom::relocate::Sealed { step: other_step, seal });
        let mut other = half.clone();
        other[4 * 512..][..512].copy_from_slice(&mark.sector(SECTOR));
        assert_eq!(stands(&other), Standing::Other(why));
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
    // A journal of any bytes, and one with any byte changed, is none, or one that can be carried
    // out.
    let (head, size) = Journal::head(&good, "words").unwrap();
    for at in 0..head.len() {
        let mut file = head.clone();
        file.resize(usize::try_from(size - ROOM).unwrap(), 0);
        file[at] ^= 0x80;
        let why = Journal::open(&Medium::steady(file)).err().unwrap();
        let wanted = match at {
            0..7 => Unreadable::Other,
            7 => Unreadable::Version(0x80 | VERSION),
            _ => Unreadable::Damaged,
        };
        assert_eq!(why, wanted, "{at}");
    }
    for length in 0..head.len() {
        assert!(Journal::open(&Medium::steady(head[..length].to_vec())).is_err(), "{length}");
    }
}

/// Whatever numbers a journal has whose sum is right, it is none, or one that can be carried out.
#[test]
fn a_hostile_journal_is_bounded() {
    let before = disk(80, 4 * SECTOR);
    let good = plan(&before, 4 * SECTOR, 5 * SECTOR, 30 * SECTOR, SIZES);
    let (head, size) = Journal::head(&good, "words").unwrap();
    let power = Arc::new(AtomicU64::new(u64::MAX));
    let (mut random, mut opened) = (Random(5), 0);
    for _ in 0..20_000 {
        let mut file = head.clone();
        for _ in 0..=random.next(3) {
            // Most often one of the numbers at the front.
            let at = 20
                + usize::try_from(if random.next(4) > 0 {
                    random.next(64)
                } else {
                    random.next(head.len() as u64 - 20)
                })
                .unwrap();
            file[at] = [0, 1, 0x7f, 0x80, 0xff, 2][usize::try_from(random.next(6)).unwrap()];
        }
        let sum = crc32fast::hash(&file[20..]).to_le_bytes();
        file[16..20].copy_from_slice(&sum);
        file.resize(usize::try_from(size - ROOM).unwrap(), 0);
        let paper = Medium::new(file, &power);
        let Ok((journal, plan, _)) = Journal::open(&paper) else { continue };
        opened += 1;
        plan.check().unwrap();
        assert!(
            plan.steps() > 0
                && plan.step(plan.steps()).is_none()
                && plan.step(plan.steps() - 1).is_some()
        );
        let medium = Medium::new(before.clone(), &power);
        let _ = plan.standing(&journal, &medium);
        if plan.medium == before.len() as u64 {
            let _ = carry(&plan, &medium, Some(&journal), Start::default(), &mut |_| true);
        }
    }
    assert!(opened > 100, "{opened}");
}

/// Notes with any numbers and right sums, on a disk in the middle of the move: the move is refused,
/// or goes on inside of its bounds.
#[test]
fn hostile_notes_are_bounded() {
    const CRC: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);
    let before = disk(80, 4 * SECTOR);
    let plan = plan(&before, 4 * SECTOR, 5 * SECTOR, 30 * SECTOR, SIZES);
    let (medium, file) = (Medium::steady(before.clone()), Medium::steady(paper(&plan)));
    let (journal, _, _) = Journal::open(&file).unwrap();
    let mut calls = 0;
    let stopped = carry(&plan, &medium, Some(&journal), Start::default(), &mut |_| {
        calls += 1;
        calls < 5
    });
    assert_eq!(stopped, Err(Interrupted::Asked));
    let (half, noted) = (medium.seen(), file.seen());
    let notes: Vec<usize> =
        (0..noted.len()).step_by(2048).filter(|&at| noted[at..].starts_with(b"TLMN")).collect();
    assert_eq!(notes.len(), 4);
    let (mut random, mut went_on) = (Random(6), 0);
    for _ in 0..5_000 {
        let mut file = noted.clone();
        for &at in &notes {
            for _ in 0..random.next(3) {
                let byte = at + 4 + usize::try_from(random.next(36)).unwrap();
                file[byte] =
                    [0, 1, 2, 3, 4, 5, 0x80, 0xff][usize::try_from(random.next(8)).unwrap()];
            }
            let sum = CRC.checksum(&file[at..at + 40]).to_le_bytes();
            file[at + 40..at + 44].copy_from_slice(&sum);
        }
        let (medium, file) = (Medium::steady(half.clone()), Medium::steady(file));
        let came = case::resume(&medium, &file);
        assert!(came != Came::Done || case::is_moved(&before, &medium.seen(), &plan));
        went_on += usize::from(came == Came::Done);
    }
    assert!((1..4_000).contains(&went_on), "{went_on}");
}

/// A mark that an older trueline wrote is known for what it is, and not resumed here.
#[test]
fn a_mark_without_a_step_is_one_of_version_1() {
    // Magic, version, identity, from, to, length, CRC-32C: as `tests/disks/moving-half.hex` had it.
    let mut sector = b"TRUELINE-MOVING\0\x01\0\0\0\x8d\xda\x9f\x40\xec\xe4\x48\x9a\x39\xdf\x14\xd2\x41\x0c\x4e\x0d".to_vec();
    [32_256_u64, 1 << 20, 8 << 20].iter().for_each(|number| sector.extend(number.to_le_bytes()));
    sector.extend([0x47, 0x24, 0x8b, 0x9a]);
    sector.resize(512, 0);
    let mark = Mark::read(&sector).unwrap();
    assert_eq!((mark.from, mark.to, mark.length, mark.sealed), (32_256, 1 << 20, 8 << 20, None));
    sector[50] ^= 1;
    assert_eq!(Mark::read(&sector), None);
}
