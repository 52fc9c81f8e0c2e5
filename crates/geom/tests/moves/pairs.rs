//! A journal and a disk of two moments, and journals with a flipped bit: the right bytes come out,
//! or the move is refused and nothing is written. Nothing else ever.

use crate::case::{Came, found, is_moved, paper, resume, tabled};
use crate::medium::{Medium, Random};
use std::collections::BTreeSet;
use std::sync::Mutex;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;
use trueline_geom::relocate::{Journal, Move, Start, carry};

/// States of a disk and a journal in the order in which they came about: the caches too.
type Moments = Mutex<Vec<(Vec<u8>, Vec<u8>)>>;

/// A medium that keeps what both it and its companion look like after every request.
struct Watched<'a> {
    disk: &'a Medium,
    paper: &'a Medium,
    is_disk: bool,
    moments: &'a Moments,
    random: &'a Mutex<Random>,
}

impl Watched<'_> {
    fn own(&self) -> &Medium {
        if self.is_disk { self.disk } else { self.paper }
    }

    fn keep(&self) {
        let random = &mut *self.random.lock().unwrap();
        let mut moments = self.moments.lock().unwrap();
        moments.push((self.disk.seen(), self.paper.seen()));
        for _ in 0..3 {
            moments.push((self.disk.after(random), self.paper.after(random)));
        }
    }
}

impl Store for Watched<'_> {
    fn length(&self) -> u64 {
        self.own().length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        self.own().read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.own().write_at(bytes, offset)?;
        self.keep();
        Ok(())
    }

    fn flush(&self) -> Result<(), Errno> {
        self.own().flush()?;
        self.keep();
        Ok(())
    }

    fn discard(&self, offset: u64, length: u64) -> Result<(), Errno> {
        self.own().discard(offset, length)
    }
}

/// What a disk and its journal look like at every moment of a move, what a loss of power then
/// leaves, too.
fn moments(before: &[u8], plan: &Move) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (disk, paper) = (Medium::steady(before.to_vec()), Medium::steady(paper(plan)));
    let (moments, random) = (Mutex::new(vec![(disk.seen(), paper.seen())]), Mutex::new(Random(7)));
    let watched = |is_disk| Watched {
        disk: &disk,
        paper: &paper,
        is_disk,
        moments: &moments,
        random: &random,
    };
    let (on_disk, on_paper) = (watched(true), watched(false));
    let (journal, read, _) = Journal::open(&on_paper).unwrap();
    carry(&read, &on_disk, Some(&journal), Start::default(), &mut |_| true).unwrap();
    moments.into_inner().unwrap()
}

/// Moves up and down on sectors of both sizes, with both tables: by one sector (saved in the
/// journal), by two (interlaced) and far (nothing is saved).
fn cases() -> Vec<(String, Vec<u8>, Move)> {
    let mut cases = Vec::new();
    for (scheme, sector, low, high) in [
        ("mbr", 512, 40, 41),
        ("mbr", 512, 40, 42),
        ("mbr", 512, 40, 44),
        ("mbr", 512, 40, 59),
        ("gpt", 512, 40, 42),
        ("gpt", 512, 40, 44),
        ("gpt", 4096, 8, 9),
        ("gpt", 4096, 8, 10),
        ("gpt", 4096, 8, 12),
    ] {
        for (from, to) in [(low, high), (high, low)] {
            let (before, plan) = tabled(scheme, sector, from, to);
            assert_eq!(plan.saves(), high - low < 3);
            assert_eq!(plan.is_interlaced(), high - low == 2);
            cases.push((format!("{scheme}, {sector}: {from} to {to}"), before, plan));
        }
    }
    cases
}

/// Resumes the pair; `None` if it is refused. A pair that is gone on with ends right.
fn outcome(before: &[u8], plan: &Move, disk: &[u8], paper: &[u8]) -> Result<Came, String> {
    let (medium, file) = (Medium::steady(disk.to_vec()), Medium::steady(paper.to_vec()));
    let came = resume(&medium, &file);
    let after = medium.seen();
    match came {
        Came::Done if !is_moved(before, &after, plan) => {
            Err("status 0, and the disk differs".into())
        }
        Came::Done if found(&after, plan.sector) != Some(plan.to) => {
            Err("status 0, and the table shows another place".into())
        }
        Came::Refused | Came::Untouched if after != disk => Err("refused, and written to".into()),
        Came::Untouched if disk != before => Err("not begun, and the disk differs".into()),
        came => Ok(came),
    }
}

#[test]
fn a_journal_and_a_disk_of_two_moments_are_never_taken_for_one() {
    for (name, before, plan) in cases() {
        let moments = moments(&before, &plan);
        let disks: BTreeSet<&[u8]> = moments.iter().map(|(disk, _)| disk.as_slice()).collect();
        let papers: BTreeSet<&[u8]> = moments.iter().map(|(_, paper)| paper.as_slice()).collect();
        let own: BTreeSet<(&[u8], &[u8])> =
            moments.iter().map(|(disk, paper)| (disk.as_slice(), paper.as_slice())).collect();
        let (mut right, mut refused) = (0, 0);
        for disk in &disks {
            for paper in &papers {
                let came = outcome(&before, &plan, disk, paper)
                    .unwrap_or_else(|found| panic!("{name}: {found}"));
                let is_own = own.contains(&(*disk, *paper));
                assert!(
                    came != Came::Failed && (!is_own || came != Came::Refused),
                    "{name}: {came:?}"
                );
                if came == Came::Done { right += 1 } else { refused += 1 }
            }
        }
        // A pair of its own moment ends right, and most others are refused.
        assert!(right >= 10 && refused > right, "{name}: {right} right, {refused} refused");
    }
}

/// Only bytes that a resume reads can change what it does: all others are passed over.
#[test]
fn a_flipped_bit_in_a_journal_is_found_or_does_nothing() {
    for (name, before, plan) in
        cases().into_iter().filter(|(_, _, plan)| plan.sector == 512 && plan.table.len() == 1)
    {
        let moments = moments(&before, &plan);
        let (mut right, mut refused) = (0, 0);
        // In the middle of a copy, in the last steps, and at the end.
        let head = Journal::head(&plan, "words").unwrap().0.len();
        for moment in [
            moments.len() / 2,
            moments.len() / 2 + 6,
            moments.len() * 4 / 5,
            moments.len() - 24,
            moments.len() - 1,
        ] {
            let (disk, paper) = &moments[moment];
            let (medium, file) = (Medium::steady(disk.clone()), Medium::steady(paper.clone()));
            resume(&medium, &file);
            let looked = file.looked.into_inner().unwrap();
            // The head is the same at every moment.
            let first = if moment == moments.len() / 2 { 0 } else { head };
            // Behind the notes is what was saved, under one sum: a bit of each byte will do.
            let saved = head.next_multiple_of(4096) + 2 * 4096;
            for at in (first..looked.len()).filter(|&at| looked[at]) {
                for bit in if at < saved { 0..8 } else { at % 8..at % 8 + 1 } {
                    let mut flipped = paper.clone();
                    flipped[at] ^= 1 << bit;
                    match outcome(&before, &plan, disk, &flipped) {
                        Ok(Came::Done) => right += 1,
                        Ok(_) => refused += 1,
                        Err(found) => {
                            panic!("{name}: bit {bit} of byte {at}, moment {moment}: {found}")
                        }
                    }
                }
            }
        }
        assert!(right > 0 && refused > 0, "{name}: {right} right, {refused} refused");
    }
}

/// A bad block that takes one copy of the last note takes nothing else.
#[test]
fn a_note_that_is_lost_once_is_there_twice() {
    let (before, plan) = tabled("mbr", 512, 40, 41);
    let moments = moments(&before, &plan);
    let (disk, paper) = &moments[moments.len() / 2];
    let mut lost = paper.clone();
    let notes: Vec<usize> =
        (0..paper.len()).step_by(4096).filter(|&at| paper[at..].starts_with(b"TLMN")).collect();
    assert_eq!(notes.len(), 2);
    notes.iter().for_each(|&at| lost[at..at + 512].fill(0));
    assert_eq!(outcome(&before, &plan, disk, &lost), Ok(Came::Done));
    notes.iter().for_each(|&at| lost[at + 2048..][..512].fill(0));
    assert_eq!(outcome(&before, &plan, disk, &lost), Ok(Came::Refused));
}
