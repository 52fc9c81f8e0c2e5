//! Resumes a move: a disk and a journal in the middle of one, changed as the input says, with sums
//! that are right again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trueline_fuzz::input;
use trueline_fuzz::paper::{SECTOR, change, memory, numbers, part, repair};
use trueline_geom::base::patch::Patch;
use trueline_geom::base::store::Store;
use trueline_geom::relocate::bad::BadSectors;
use trueline_geom::relocate::gaps::{Gap, GapKind, Gaps};
use trueline_geom::relocate::{Journal, Move, Sizes, Standing, Start, carry, ends};

const DISK: u64 = 80 * SECTOR;
/// Small, so that a move of some kilobytes has everything that one of a disk has.
const SIZES: Sizes =
    Sizes { end: 4 * SECTOR, piece: 4 * SECTOR, near: 2 * SECTOR, far: 3 * SECTOR };
/// Room for the journal that is made, and for one that says that it is longer.
const ROOM: u64 = 1 << 16;

fuzz_target!(|data: &[u8]| {
    let (script, changes) = data.split_at(data.len().min(4));
    let mut number = input::numbers(script);
    let mut plan = plan(4 * SECTOR, [5, 3, 8, 1][usize::try_from(number(4)).unwrap_or(0)] * SECTOR);
    // The ends have four sectors each.
    let free = (4 + number(8)) * SECTOR..(14 + number(12)) * SECTOR;
    if number(2) > 0 {
        plan.gaps = Gaps::new(vec![Gap { range: free.clone(), kind: GapKind::Free }]);
    }
    let (disk, paper) = (memory(DISK, |at| numbers(at)), memory(ROOM, |_| 0));
    let journal = Journal::create(&paper, &plan, "words").expect("there is room");
    let mut left = number(40);
    let stop = &mut |_| {
        let goes_on = left > 0;
        left = left.saturating_sub(1);
        goes_on
    };
    let done = carry(&plan, &disk, Some(&journal), Start::default(), stop).is_ok();
    let repaired = number(4) > 0;
    change(&paper, &disk, changes);
    if repaired {
        repair(&paper);
    }
    let unchanged = changes.len() < 4;
    let Ok((journal, plan, _)) = Journal::open(&paper) else {
        assert!(!unchanged, "a journal is not read as it was written");
        return;
    };
    plan.check().expect("what is opened can be carried out");
    assert!(
        plan.steps() > 0
            && plan.step(plan.steps()).is_none()
            && plan.step(plan.steps() - 1).is_some()
    );
    if let Ok(Standing::Half(start)) = plan.standing(&journal, &disk) {
        let resumed = carry(&plan, &disk, Some(&journal), start, &mut |_| true);
        assert!(!unchanged || resumed.is_ok());
    }
    if unchanged && (done || plan.standing(&journal, &disk) == Ok(Standing::Done)) {
        let length = usize::try_from(plan.length).unwrap_or(0);
        let mut moved = vec![0; length];
        disk.read_at(&mut moved, plan.to).expect("it is inside");
        assert!(
            moved.iter().zip(plan.from..).all(|(&byte, at)| {
                let is_free = !plan.gaps.list().is_empty() && free.contains(&(at - plan.from));
                is_free || byte == numbers(at)
            }),
            "something was lost"
        );
    }
});

/// The move of 30 sectors; its table is the first sector.
fn plan(from: u64, to: u64) -> Move {
    let length = 30 * SECTOR;
    let (front, back) = ends(length, SIZES.end);
    let was = vec![Patch::new(0, part(0, SECTOR), "table")];
    let table = vec![Patch::new(0, vec![7; 512], "table")];
    let (front, back) = (part(from, front), part(from + length - back, back));
    Move {
        id: *b"one move of many",
        medium: DISK,
        sector: SECTOR,
        from,
        to,
        length,
        sizes: SIZES,
        front,
        back,
        rebased: Vec::new(),
        table,
        was,
        gaps: Gaps::default(),
        bad: BadSectors::default(),
    }
}
