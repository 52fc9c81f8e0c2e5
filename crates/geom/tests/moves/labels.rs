//! Labels that name what is outside of their slices: a neighbour that moves is followed, and what
//! the table around calls free is taken, however the plan is interrupted.

use crate::medium::{Medium, Random};
use crate::nested::{Case, case_on, made, open, plain};
use crate::trial::Trial;
use crate::whole::{SECTOR, fill, part};
use trueline_geom::base::error::Errno;
use trueline_geom::relocate::sequence::{Adapted, Goal, Movement, Sequence};

/// Places of a label's magic, checksum, number of entries and first entry, and bytes of an entry.
const LABEL: usize = 512;
const SUM: usize = 136;
const COUNT: usize = 138;
const ENTRIES: usize = 148;
const ENTRY: usize = 16;

/// Entry of a label for something outside of its slice: number from 0, first sector, sectors.
type Outside = (usize, u64, u64);

/// Writes `entries` into the label of the slice that begins at sector `slice`.
fn put(disk: &mut [u8], slice: u64, entries: &[Outside]) {
    let at = usize::try_from(slice * SECTOR).unwrap() + LABEL;
    let label = &mut disk[at..at + 512];
    let count = usize::from(u16::from_le_bytes([label[COUNT], label[COUNT + 1]]));
    for &(n, start, sectors) in entries {
        assert!(n < count);
        let entry = &mut label[ENTRIES + n * ENTRY..][..ENTRY];
        entry[..4].copy_from_slice(&u32::try_from(sectors).unwrap().to_le_bytes());
        entry[4..8].copy_from_slice(&u32::try_from(start).unwrap().to_le_bytes());
        // MSDOS, and a fragment's size that has to stay.
        (entry[12], entry[13]) = (8, 3);
    }
    label[SUM..SUM + 2].fill(0);
    let words = label[..ENTRIES + count * ENTRY].chunks(2);
    let sum = words.fold([0, 0], |sum, word| [sum[0] ^ word[0], sum[1] ^ word[1]]);
    label[SUM..SUM + 2].copy_from_slice(&sum);
}

/// First sector that entry `n` of the label in the slice at byte `slice` names.
fn named(disk: &[u8], slice: u64, n: usize) -> u64 {
    let at = usize::try_from(slice).unwrap() + LABEL + ENTRIES + n * ENTRY;
    u64::from(u32::from_le_bytes(*disk[at + 4..].first_chunk().unwrap()))
}

/// Plan with a label that names what is outside of its slice.
struct Labelled {
    case: Case,
    /// First sector of each slice with a label, and what that names.
    labels: Vec<(u64, Vec<Outside>)>,
}

impl Labelled {
    /// First byte of what now begins at sector `start` and has as many sectors, in the end.
    fn goes(&self, start: u64, sectors: u64) -> u64 {
        let range = start * SECTOR..(start + sectors) * SECTOR;
        let own = self.case.whole.partitions.iter().find(|p| p.now == range);
        own.map_or(range.start, |p| p.to)
    }

    /// First byte of the slice that begins at sector `start`, in the end.
    fn slice(&self, start: u64) -> u64 {
        let own = self.case.whole.partitions.iter().find(|p| p.now.start == start * SECTOR);
        own.map_or(start * SECTOR, |p| p.to)
    }
}

impl Trial for Labelled {
    fn name(&self) -> &str {
        self.case.name()
    }

    fn before(&self) -> &[u8] {
        self.case.before()
    }

    fn sequence(&self) -> &Sequence {
        self.case.sequence()
    }

    fn adapted(&self, disk: &Medium, moved: Movement) -> Result<Adapted, Errno> {
        self.case.adapted(disk, moved)
    }

    fn shown(&self, disk: &[u8]) {
        self.case.shown(disk);
        self.free(disk);
    }

    fn check(&self, disk: &[u8], goal: Goal) {
        self.case.check(disk, goal);
        self.free(disk);
        for (slice, entries) in &self.labels {
            let at = if goal == Goal::Forward { self.slice(*slice) } else { slice * SECTOR };
            if goal == Goal::Back {
                let label = part(self.before(), at + SECTOR, 512);
                assert!(part(disk, at + SECTOR, 512) == label, "{}: a label", self.name());
                continue;
            }
            for &(n, start, sectors) in entries {
                let wanted = self.goes(start, sectors) / SECTOR;
                assert_eq!(named(disk, at, n), wanted, "{}: entry {n} of {slice}", self.name());
            }
        }
    }
}

impl Labelled {
    /// Checks that what labels name, and what no partition is at, is as it was.
    fn free(&self, disk: &[u8]) {
        for &(_, start, sectors) in self.labels.iter().flat_map(|(_, entries)| entries) {
            let range = start * SECTOR..(start + sectors) * SECTOR;
            if self.case.whole.partitions.iter().all(|p| p.now != range) {
                let (at, length) = (start * SECTOR, sectors * SECTOR);
                let own = part(self.before(), at, length);
                assert!(part(disk, at, length) == own, "{}: sector {start}", self.name());
            }
        }
    }
}

fn labelled(
    name: &'static str,
    (sectors, parts): (u64, Vec<crate::nested::Made>),
    labels: Vec<(u64, Vec<Outside>)>,
) -> Labelled {
    let mut random = Random(name.len() as u64);
    let mut disk = made("mbr", sectors, parts, &mut random);
    for (slice, entries) in &labels {
        put(&mut disk, *slice, entries);
        for &(_, start, sectors) in entries {
            if part(&disk, start * SECTOR, sectors * SECTOR).iter().all(|&byte| byte == 0) {
                fill(&mut disk, start, sectors, &mut random);
            }
        }
    }
    Labelled { case: case_on(name, disk), labels }
}

/// Entries of an OpenBSD slice of 130 sectors at sector 63.
fn own(start: u64) -> crate::nested::Made {
    let inside = vec![plain("4.2BSD", 17, 30), plain("swap", 48, 21), plain("4.2BSD", 70, 33)];
    open(start, 130, inside)
}

/// The same, on the grain wherever the slice is.
fn even(start: u64) -> crate::nested::Made {
    open(start, 130, vec![plain("4.2BSD", 16, 30), plain("swap", 48, 21)])
}

fn cases() -> Vec<Labelled> {
    let data = |start, sectors| plain("linux-data", start, sectors);
    vec![
        labelled(
            "a neighbour behind, both up",
            (300, vec![even(63), data(193, 40)]),
            vec![(63, vec![(8, 193, 40)])],
        ),
        labelled(
            "a short neighbour behind, all in the new place",
            (300, vec![even(65), data(195, 2), data(197, 50)]),
            vec![(65, vec![(8, 195, 2), (9, 197, 50)])],
        ),
        labelled(
            "a neighbour before, both down",
            (210, vec![data(9, 54), even(63), data(193, 10)]),
            vec![(63, vec![(8, 9, 54), (9, 193, 10)])],
        ),
        labelled(
            "a short neighbour before, both down",
            (197, vec![data(60, 3), even(65)]),
            vec![(65, vec![(8, 60, 3)])],
        ),
        labelled(
            "and partitions within",
            (300, vec![data(9, 54), own(63), data(193, 40)]),
            vec![(63, vec![(8, 9, 54), (9, 193, 40)])],
        ),
        labelled(
            "a slice that stays",
            (300, vec![data(9, 50), even(64), data(195, 40)]),
            vec![(64, vec![(8, 9, 50), (9, 195, 40)])],
        ),
        labelled(
            "two labels that name each other",
            (400, vec![even(63), even(193), data(323, 20)]),
            vec![(63, vec![(8, 193, 130), (9, 323, 20)]), (193, vec![(8, 63, 130), (9, 323, 20)])],
        ),
        labelled(
            "what the MBR calls free",
            (300, vec![data(9, 44), even(65), data(203, 36)]),
            vec![(65, vec![(8, 195, 8), (9, 53, 11), (10, 244, 40)])],
        ),
        labelled(
            "free and followed",
            (400, vec![data(9, 47), even(65), data(203, 41), data(301, 40)]),
            vec![(65, vec![(8, 195, 8), (9, 9, 47), (10, 301, 40), (11, 250, 50)])],
        ),
    ]
}

#[test]
fn labels_follow_their_neighbours_and_take_what_they_name() {
    let mut random = Random(1);
    for case in cases() {
        assert!(!case.case.whole.stages.is_empty(), "{}", case.name());
        case.go(&[], &mut random);
        case.go(&[(Goal::Forward, u64::MAX, false), (Goal::Back, u64::MAX, false)], &mut random);
    }
}

#[test]
fn labels_go_back_wherever_they_are_interrupted() {
    let mut random = Random(2);
    for case in cases() {
        for _ in 0..8 {
            let goals: Vec<_> = (0..1 + random.next(4))
                .map(|_| {
                    let goal = if random.next(2) == 0 { Goal::Back } else { Goal::Forward };
                    (goal, random.next(300), random.next(3) == 0)
                })
                .collect();
            case.go(&goals, &mut random);
            case.go(&[goals.as_slice(), &[(Goal::Back, u64::MAX, false)]].concat(), &mut random);
        }
        for (n, budget) in case.table_writes().into_iter().enumerate() {
            let back = [(Goal::Forward, budget, false), (Goal::Back, budget, false)];
            case.go(&back[..1 + n % 2], &mut random);
        }
    }
}
