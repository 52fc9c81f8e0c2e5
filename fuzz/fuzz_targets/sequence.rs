//! Goes on with the moves of a whole disk, forward or back: the disk and the journal are in the
//! middle of them, changed as the input says, with sums that are right again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trueline_fuzz::input;
use trueline_fuzz::paper::{SECTOR, bytes, change, memory, numbers, part, repair};
use trueline_geom::base::patch::Patch;
use trueline_geom::base::store::Store;
use trueline_geom::relocate::Sizes;
use trueline_geom::relocate::bad::ROOM;
use trueline_geom::relocate::sequence::{Adapted, Goal, Movement, Sequence, Stage, Stop, run};
use trueline_geom::table::turn::Turn;
use trueline_host::disk::memory::Memory;

const DISK: u64 = 96 * SECTOR;
/// Small, so that moves of some kilobytes have everything that those of a disk have.
const SIZES: Sizes =
    Sizes { end: 4 * SECTOR, piece: 4 * SECTOR, near: 2 * SECTOR, far: 3 * SECTOR };
/// Requests before an interruption, at most.
const STEPS: u64 = 80;

fuzz_target!(|data: &[u8]| {
    let (script, changes) = data.split_at(data.len().min(6));
    let mut number = input::numbers(script);
    let sequence = sequence(number(3) + 1, number(2) > 0);
    let (head, size) = sequence.head("words").expect("it is short");
    // Without the room for lists of sectors.
    let size = (size - 2 * ROOM).next_multiple_of(2048);
    let (disk, paper) = (memory(DISK, numbers), Memory::new(size).expect("memory"));
    paper.write_at(&head, 0).expect("there is room");
    let goal = |number: u64| if number == 0 { Goal::Back } else { Goal::Forward };
    for _ in 0..=number(2) {
        // An interruption in one direction, and perhaps one more in the other.
        let _ = carry(&disk, &paper, goal(number(4)), number(STEPS));
    }
    let (last, repaired) = (goal(number(2)), number(4) > 0);
    change(&paper, &disk, changes);
    if repaired {
        repair(&paper);
    }
    let unchanged = changes.len() < 4;
    match carry(&disk, &paper, last, u64::MAX) {
        Some(Ok(())) if unchanged => whole(&sequence, &disk, last),
        done => assert!(!unchanged, "what was interrupted goes on: {done:?}"),
    }
});

/// Carries what the journal says to `goal`, interrupted before step `left`. `None`: the journal is
/// none.
fn carry(disk: &Memory, paper: &Memory, goal: Goal, mut left: u64) -> Option<Result<(), Stop>> {
    let (sequence, _, room) = Sequence::open(paper).ok()?;
    sequence.check().expect("what is opened can be carried out");
    let mut goes_on = |_| {
        left = left.saturating_sub(1);
        left > 0
    };
    let mut contents = |_: Movement| Ok(Adapted::default());
    let came = run(&sequence, disk, (paper, room), goal, &mut contents, &mut goes_on);
    Some(came.map(|_| ()))
}

/// Checks that every partition is at its place, and the table that of `goal`.
fn whole(sequence: &Sequence, disk: &Memory, goal: Goal) {
    assert_eq!(sequence.is_at(goal, disk), Ok(true));
    let disk = bytes(disk);
    for Movement { from, to, length } in sequence.moves() {
        let at = usize::try_from(if goal == Goal::Forward { to } else { from }).unwrap_or(0);
        let was = part(from, length);
        assert!(disk[at..at + was.len()] == was, "something was lost");
    }
}

/// Two partitions that go up by `near` and by seven sectors, or by less than their length in one
/// case and more in the other; between them the table gets a sector at another place if `chain`.
fn sequence(near: u64, chain: bool) -> Sequence {
    let patch = |at: u64, byte: u8| Patch::new(at, vec![byte; 512], "table");
    let was = |at: u64| Patch::new(at, part(at, SECTOR), "table");
    let moved = |from: u64, to: u64, length: u64| {
        Some(Movement { from: from * SECTOR, to: to * SECTOR, length: length * SECTOR })
    };
    let turn = |change: Patch, was: Patch| Turn {
        change: vec![change],
        was: vec![was],
        ..Turn::default()
    };
    let mut stages = vec![
        Stage { moved: moved(72, 84, 10), turn: turn(patch(0, 1), was(0)) },
        Stage { moved: moved(40, 47, 20), turn: turn(patch(0, 2), patch(0, 1)) },
    ];
    if chain {
        let turn = Turn {
            fresh: vec![patch(95 * SECTOR, 9)],
            change: vec![patch(0, 3)],
            was: vec![patch(0, 2)],
            gone: vec![was(SECTOR)],
        };
        stages.push(Stage { moved: None, turn });
    } else {
        stages.push(Stage { moved: None, turn: turn(patch(0, 3), patch(0, 2)) });
    }
    stages.push(Stage { moved: moved(4, 4 + near, 30), turn: turn(patch(0, 4), patch(0, 3)) });
    Sequence {
        id: *b"many moves in 1.",
        medium: DISK,
        sector: SECTOR,
        sizes: SIZES,
        stages,
        listed: Vec::new(),
    }
}
