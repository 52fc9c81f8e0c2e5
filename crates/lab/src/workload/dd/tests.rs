use super::*;
use crate::rig::Op;
use crate::workload::Way;
use crate::workload::recorder::{Recorder, made, ran, refused};

fn parameters(offset: u64, bs: u64) -> Parameters {
    Parameters { offset, bs: Some(bs), ..Parameters::default() }
}

#[test]
fn blocks_follow_one_another_to_the_end() {
    let mut rig = Recorder::new(10_000 / 512 * 512);
    let run = ran(&KIND, &parameters(512, 4096), &mut rig);
    assert_eq!(rig.asked, [(Op::Read, 512, 4096), (Op::Read, 4608, 4096)]);
    assert_eq!((run.ops, run.bytes, run.ns, rig.most), (2, 8192, 2000, 1));
}

#[test]
fn by_count_it_ends_with_the_count_and_by_time_it_begins_again() {
    let mut rig = Recorder::new(16384);
    ran(
        &KIND,
        &Parameters { count: Some(3), op: Some(Way::Write), ..parameters(0, 4096) },
        &mut rig,
    );
    assert_eq!(rig.asked, [0, 4096, 8192].map(|at| (Op::Write, at, 4096)));
    let mut rig = Recorder::new(16384);
    ran(&KIND, &Parameters { seconds: Some(5.5e-6), ..parameters(4096, 4096) }, &mut rig);
    let offsets: Vec<u64> = rig.asked.iter().map(|(_, at, _)| *at).collect();
    assert_eq!(offsets, [4096, 8192, 12288, 4096, 8192, 12288]);
}

#[test]
fn as_many_are_in_flight_as_were_asked_for() {
    let mut rig = Recorder::new(1 << 20);
    ran(&KIND, &Parameters { qd: Some(4), ..parameters(0, 4096) }, &mut rig);
    assert_eq!((rig.most, rig.asked.len()), (4, 256));
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let mut rig = Recorder::new(4096);
    let words = refused(&KIND, &parameters(512, 4096), &mut rig);
    assert_eq!(words, "dd of 4096 bytes at 512: the target has 4096 bytes");
    let words = refused(&KIND, &parameters(0, 1000), &mut rig);
    assert_eq!(
        words,
        "dd of 1000 bytes at an offset of 0: the target takes only whole sectors of 512 bytes"
    );
    for odd in [
        Parameters { bs: Some(0), ..Parameters::default() },
        Parameters { bs: Some(u64::MAX), ..Parameters::default() },
        Parameters { qd: Some(0), ..Parameters::default() },
        Parameters { qd: Some(usize::MAX), ..Parameters::default() },
        Parameters { count: Some(0), ..Parameters::default() },
        Parameters { seconds: Some(-1.0), ..Parameters::default() },
        Parameters { seconds: Some(f64::NAN), ..Parameters::default() },
        Parameters { seconds: Some(1.0), count: Some(1), ..Parameters::default() },
    ] {
        assert!(make(&odd).is_err(), "{odd:?}");
    }
}

#[test]
fn the_watcher_can_end_it() {
    let mut rig = Recorder::new(1 << 20);
    let run = made(&KIND, &parameters(0, 4096)).run(&mut rig, 1, &mut |asked| asked < 7).unwrap();
    assert_eq!((run.ops, rig.asked.len()), (7, 7));
}
