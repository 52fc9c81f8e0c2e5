//! Sectors that may be unreadable: each is tried, what fails is zero, and what one run has read or
//! passed over is so for the next one.

use crate::case::{SECTOR, SIZES, disk, paper, plan};
use crate::medium::Medium;
use std::ops::Range;
use trueline_geom::base::error::Errno;
use trueline_geom::base::patch::lay_over;
use trueline_geom::base::store::Store;
use trueline_geom::relocate::bad::{BadSectors, ROOM};
use trueline_geom::relocate::{Interrupted, Journal, Move, Standing, Start, carry};

const FROM: u64 = 8 * SECTOR;
const LENGTH: u64 = 60 * SECTOR;
/// New places, of moves of every kind: interlaced, saved and in pieces, up and down, and apart.
const PLACES: [u64; 8] = [2, 4, 6, 7, 9, 10, 13, 80];

fn index(at: u64) -> usize {
    usize::try_from(at).unwrap()
}

fn sectors(numbers: &[u64]) -> Vec<Range<u64>> {
    numbers.iter().map(|n| n * SECTOR..(n + 1) * SECTOR).collect()
}

/// The range from one sector to another.
fn many(first: u64, end: u64) -> Vec<Range<u64>> {
    std::iter::once(first * SECTOR..end * SECTOR).collect()
}

/// A medium of which sectors at the old place of `plan` cannot be read until they are written.
struct Spotted<'a> {
    medium: &'a Medium,
    from: u64,
    bad: Vec<Range<u64>>,
    errno: Errno,
}

impl Store for Spotted<'_> {
    fn length(&self) -> u64 {
        self.medium.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let end = offset + buffer.len() as u64;
        let written = self.medium.writes.lock().unwrap().clone();
        let hits = |bad: &Range<u64>| {
            let bad = self.from + bad.start..self.from + bad.end;
            let is_written = written.iter().any(|&(at, _)| bad.contains(&at));
            offset < bad.end && bad.start < end && !is_written
        };
        match self.bad.iter().any(hits) {
            true => Err(self.errno),
            false => self.medium.read_at(buffer, offset),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        // One write a sector, so that each is known.
        for (at, part) in (offset..).step_by(512).zip(bytes.chunks(512)) {
            self.medium.write_at(part, at)?;
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), Errno> {
        self.medium.flush()
    }

    fn discard(&self, offset: u64, length: u64) -> Result<(), Errno> {
        self.medium.discard(offset, length)
    }
}

/// A journal of `plan` with room for what fails.
fn roomy(plan: &Move) -> Medium {
    let mut bytes = paper(plan);
    bytes.resize(bytes.len() + index(ROOM), 0);
    Medium::steady(bytes)
}

/// The new place of `plan` on `after` is what was at the old place, but for zeros in `failed`.
fn is_moved(before: &[u8], after: &[u8], plan: &Move, failed: &[Range<u64>]) -> bool {
    let mut wanted = before[index(plan.from)..][..index(plan.length)].to_vec();
    failed.iter().for_each(|range| wanted[index(range.start)..index(range.end)].fill(0));
    lay_over(&plan.rebased, 0, &mut wanted);
    after[index(plan.to)..][..index(plan.length)] == wanted
}

fn case(to: u64) -> (Vec<u8>, Move) {
    let before = disk(160, FROM);
    let plan = plan(&before, FROM, to * SECTOR, LENGTH, SIZES);
    (before, plan)
}

#[test]
fn a_sector_of_the_list_that_can_be_read_is_kept() {
    for to in PLACES {
        let (before, mut plan) = case(to);
        let (bad, listed) = (sectors(&[17, 41]), many(10, 50));
        let (medium, file) = (Medium::steady(before.clone()), roomy(&plan));
        let spotted = Spotted { medium: &medium, from: FROM, bad: bad.clone(), errno: Errno::Io };
        plan.bad = BadSectors::new(listed.clone());
        let journal = Journal::create(&file, &plan, "").unwrap();
        let journal = plan.overlaps().then_some(&journal);
        let came = carry(&plan, &spotted, journal, Start::default(), &mut |_| true).unwrap();
        assert_eq!((&came.listed, &came.failed), (&listed, &bad), "{to}");
        assert_eq!(plan.readable(&came), 38 * SECTOR);
        assert!(is_moved(&before, &medium.seen(), &plan, &bad), "{to}");
        let kept = Journal::open(&file).unwrap().1.bad;
        assert!(!plan.overlaps() || kept == came, "{to}: {kept:?}");
    }
}

/// An error that is not the medium's, as of a device that is gone, is none of a sector.
#[test]
fn a_device_that_is_gone_is_no_sector_that_fails() {
    let (before, mut plan) = case(9);
    let (medium, file) = (Medium::steady(before), roomy(&plan));
    let gone = Spotted { medium: &medium, from: FROM, bad: sectors(&[20]), errno: Errno::NoDevice };
    plan.bad = BadSectors::new(many(10, 50));
    let journal = Journal::create(&file, &plan, "").unwrap();
    let came = carry(&plan, &gone, Some(&journal), Start::default(), &mut |_| true);
    assert_eq!(came, Err(Interrupted::Unread(FROM + 20 * SECTOR, Errno::NoDevice)));
}

/// One sector fails before an interruption, another behind it: a run that goes on has zeros and
/// bytes where the one before had them, and the list from the journal.
#[test]
fn what_one_run_read_or_passed_over_is_so_for_the_next() {
    let (mut passed, mut kept, mut lost) = (0, 0, 0);
    for to in &PLACES[..7] {
        let to = *to;
        for (first, second) in [(17, 41), (30, 31), (9, 52), (50, 5), (24, 20)] {
            for steps in 1.. {
                let (before, mut plan) = case(to);
                let (medium, file) = (Medium::steady(before.clone()), roomy(&plan));
                let spotted = |n: u64| Spotted {
                    medium: &medium,
                    from: FROM,
                    bad: sectors(&[n]),
                    errno: Errno::Io,
                };
                plan.bad = BadSectors::new(sectors(&[first, second]));
                let journal = Journal::create(&file, &plan, "").unwrap();
                let mut left = steps;
                let stopped =
                    carry(&plan, &spotted(first), Some(&journal), Start::default(), &mut |_| {
                        left -= 1;
                        left > 0
                    });
                if stopped.is_ok() {
                    break;
                }
                let go = |disk: &dyn Store| {
                    let (journal, read, _) = Journal::open(&file).unwrap();
                    assert_eq!(read.bad.listed, plan.bad.listed);
                    match read.standing(&journal, disk)? {
                        Standing::Half(start) => {
                            carry(&read, disk, Some(&journal), start, &mut |_| true)
                        }
                        Standing::Untouched => Err(Interrupted::Asked),
                        other => panic!("{to}, {first} and {second}, {steps}: {other:?}"),
                    }
                };
                let came = match go(&spotted(second)) {
                    Err(Interrupted::Asked) => continue,
                    // It was read before, and the sum of its piece is noted.
                    Err(why) => {
                        let at = FROM + second * SECTOR;
                        assert_eq!(why, Interrupted::Unread(at, Errno::Io), "{to}: {steps}");
                        lost += 1;
                        go(&medium).unwrap()
                    }
                    Ok(came) => came,
                };
                let seen = medium.seen();
                assert!(is_moved(&before, &seen, &plan, &came.failed), "{to}: {steps}: {came:?}");
                passed += u32::from(came.failed.contains(&sectors(&[first])[0]));
                kept += u32::from(!came.failed.iter().any(|r| r.contains(&(second * SECTOR))));
            }
        }
    }
    assert!(passed > 50 && kept > 50 && lost > 5, "{passed}, {kept}, {lost}");
}

/// A journal of the version before has no room for what fails: its list is given again, and not
/// tried, since its sums are those of zeros.
#[test]
fn an_older_journal_goes_on_with_its_list_as_zeros() {
    let (before, mut plan) = case(10);
    let mut bytes = roomy(&plan).seen();
    bytes[7] = 5;
    let (medium, file) = (Medium::steady(before.clone()), Medium::steady(bytes));
    let bad = sectors(&[17, 19]);
    let (journal, mut read, _) = Journal::open(&file).unwrap();
    journal.list(&mut read, &bad).unwrap();
    assert_eq!((&read.bad.listed, &read.bad.failed), (&bad, &bad));
    let mut left = 5;
    let stopped = carry(&read, &medium, Some(&journal), Start::default(), &mut |_| {
        left -= 1;
        left > 0
    });
    assert_eq!(stopped, Err(Interrupted::Asked));
    let (journal, mut read, _) = Journal::open(&file).unwrap();
    assert_eq!(read.bad, BadSectors::default());
    journal.list(&mut read, &bad).unwrap();
    let Standing::Half(start) = read.standing(&journal, &medium).unwrap() else { panic!() };
    carry(&read, &medium, Some(&journal), start, &mut |_| true).unwrap();
    plan.bad = read.bad;
    assert!(is_moved(&before, &medium.seen(), &plan, &bad));
}

/// A write of the list that is torn leaves the list before, and noise in both slots is none.
#[test]
fn a_list_is_whole_or_the_one_before() {
    let (_, mut plan) = case(9);
    let file = roomy(&plan);
    let lists = [sectors(&[3]), sectors(&[3, 7, 11]), sectors(&[3, 7, 11, 20])];
    plan.bad = BadSectors::new(lists[0].clone());
    let journal = Journal::create(&file, &plan, "").unwrap();
    let mut before = (file.seen(), plan.bad.clone());
    for list in &lists[1..] {
        journal.list(&mut plan, list).unwrap();
        let now = file.seen();
        assert_eq!(Journal::open(&file).unwrap().1.bad, plan.bad);
        let changed: Vec<usize> = (0..now.len()).filter(|&at| now[at] != before.0[at]).collect();
        for cut in 0..changed.len() {
            let mut torn = before.0.clone();
            changed[..cut].iter().for_each(|&at| torn[at] = now[at]);
            let (_, read, _) = Journal::open(&Medium::steady(torn)).unwrap();
            assert_eq!(read.bad, before.1, "{cut}");
        }
        before = (now, plan.bad.clone());
    }
    let mut noise = before.0;
    let first = noise.len() - index(ROOM);
    noise[first..].iter_mut().step_by(3).for_each(|byte| *byte ^= 0x55);
    assert_eq!(Journal::open(&Medium::steady(noise)).unwrap().1.bad, BadSectors::default());
}
