use super::*;
use crate::workload::recorder::{Recorder, made, ran, refused};
use trueline_geom::base::topology::is_whole;

fn parameters(offset: u64) -> Parameters {
    Parameters { offset, count: Some(200), ..Parameters::default() }
}

fn offsets(parameters: &Parameters, seed: u64) -> Vec<u64> {
    let mut rig = Recorder::new(1 << 30);
    made(&WRITE, parameters).run(&mut rig, seed, &mut |_| true).unwrap();
    assert!(rig.asked.iter().all(|&(op, _, bytes)| op == Op::Write && bytes == 4096));
    rig.asked.iter().map(|(_, at, _)| *at).collect()
}

#[test]
fn requests_are_at_multiples_and_the_offset_is_all_that_differs() {
    let (aligned, moved) = (offsets(&parameters(0), 1), offsets(&parameters(512), 1));
    assert!(aligned.iter().all(|at| is_whole(*at, 4096)));
    assert_eq!(aligned.iter().map(|at| at + 512).collect::<Vec<_>>(), moved);
    assert_eq!(aligned, offsets(&parameters(0), 1), "a seed gives the same for ever");
    assert_ne!(aligned, offsets(&parameters(0), 2));
    assert_eq!(aligned.len(), 200);
}

#[test]
fn the_program_of_2010_asks_for_what_it_asked_for() {
    let of_2010 = Parameters {
        count: Some(3),
        generator: Generator::Glibc,
        blocks: Some(200_000_000),
        ..parameters(512)
    };
    let mut rig = Recorder::new(1_000_204_886_016);
    ran(&WRITE, &of_2010, &mut rig);
    let wanted = [1_804_289_383_u64, 846_930_886, 1_681_692_777]
        .map(|r| (Op::Write, r % 200_000_000 * 4096 + 512, 4096));
    assert_eq!(rig.asked, wanted);
    let small = refused(&WRITE, &of_2010, &mut Recorder::new(1 << 30));
    assert_eq!(small, "200000000 random blocks of 4096 bytes at 512: the target has 262143");
}

#[test]
fn the_last_block_is_inside_and_what_is_too_small_is_refused() {
    let mut rig = Recorder::new(8192);
    let run = ran(&READ, &parameters(3584), &mut rig);
    assert_eq!((run.errors, run.ops), (0, 200));
    assert!(rig.asked.iter().all(|&(op, at, _)| (op, at) == (Op::Read, 3584)));
    let words = refused(&READ, &parameters(512), &mut Recorder::new(4096));
    assert_eq!(
        words,
        "random blocks of 4096 bytes at 512: the target has 4096 bytes, and at least 8192 are needed, as one block stays free to move the others"
    );
    // What it says it takes is what it takes.
    ran(&READ, &parameters(512), &mut Recorder::new(8192));
    refused(&READ, &parameters(512), &mut Recorder::new(8191));
}

/// Pages of 16384 bytes on a grid of 4096 begin anywhere on it, inside the target.
#[test]
fn a_grid_is_finer_than_the_blocks() {
    let mut rig = Recorder::new(1 << 20);
    let parameters =
        Parameters { bs: Some(16384), grid: Some(4096), count: Some(500), ..Parameters::default() };
    made(&WRITE, &parameters).run(&mut rig, 1, &mut |_| true).unwrap();
    assert!(rig.asked.iter().all(|&(_, offset, length)| offset % 4096 == 0 && length == 16384));
    for phase in [0, 4096, 8192, 12288] {
        assert!(rig.asked.iter().any(|(_, offset, _)| offset % 16384 == phase), "{phase}");
    }
    let none = Parameters { grid: Some(0), ..parameters };
    assert!(made(&WRITE, &none).run(&mut rig, 1, &mut |_| true).is_err());
}
