//! A disk that was written to between two stages of a plan: what it had then is not lost.

use crate::medium::{Medium, Random};
use crate::whole::{SECTOR, SIZES, fill, part};
use trueline_geom::base::patch::Patch;
use trueline_geom::base::store::Store;
use trueline_geom::relocate::bad::ROOM;
use trueline_geom::relocate::sequence::{
    Adapted, Goal, Movement, Sequence, Stage, Stop, Tried, run,
};
use trueline_geom::relocate::{Interrupted, Mismatch};
use trueline_geom::table::turn::Turn;

/// Between two stages a table within a partition may be edited, and then the rest of the plan is
/// of another disk.
#[test]
fn a_table_in_a_partition_that_was_changed_is_not_gone_on_with() {
    let mut random = Random(3);
    let mut before = vec![0; 96 * 512];
    fill(&mut before, 0, 96, &mut random);
    let sector = |disk: &[u8], n: u64| part(disk, n * SECTOR, SECTOR);
    let stage = |moved: [u64; 3], at: u64, was: Vec<u8>, now: u8| {
        let [from, to, length] = moved.map(|sectors| sectors * SECTOR);
        let patch = |bytes| vec![Patch::new(at * SECTOR, bytes, "table")];
        let turn = Turn { change: patch(vec![now; 512]), was: patch(was), ..Turn::default() };
        Stage { moved: Some(Movement { from, to, length }), turn }
    };
    // The partition goes to where it does not overlap, and what is in it moves there.
    let stages = vec![
        stage([10, 50, 12], 0, sector(&before, 0), 1),
        stage([54, 55, 6], 51, sector(&before, 11), 2),
    ];
    let (medium, sizes) = (before.len() as u64, SIZES);
    let sequence = Sequence {
        id: *b"one in another 1",
        medium,
        sector: SECTOR,
        sizes,
        stages,
        listed: Vec::new(),
    };
    sequence.check().unwrap();
    let (mut head, size) = sequence.head("words").unwrap();
    head.resize(usize::try_from(size - 2 * ROOM).unwrap(), 0);
    let (disk, file) = (Medium::steady(before), Medium::steady(head));
    let (sequence, _, room) = Sequence::open(&file).unwrap();
    let go = |disk: &Medium, until: usize| {
        let mut contents = |_: Movement| Ok(Adapted::default());
        let files = (&file as &dyn Store, room);
        run(&sequence, disk, files, Goal::Forward, &mut contents, &mut |at| at.stages < until)
    };
    assert_eq!(go(&disk, 1), Err(Stop::Interrupted(Interrupted::Asked)));
    let whole = disk.seen();
    disk.write_at(&[9; 100], 51 * SECTOR).unwrap();
    let changed = disk.seen();
    assert_eq!(go(&disk, 9), Err(Stop::Other(Mismatch::Table)));
    assert!(disk.seen() == changed);
    let disk = Medium::steady(whole);
    assert_eq!(go(&disk, 9), Ok(Tried::default()));
    assert!(sequence.is_at(Goal::Forward, &disk).unwrap());
}
