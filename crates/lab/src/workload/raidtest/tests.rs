use super::*;
use crate::workload::recorder::{Recorder, made, ran, refused};

/// A file of `count` requests of a sector, each at its own number.
struct Requests(std::path::PathBuf);

impl Requests {
    fn new(name: &str, count: u64) -> Requests {
        let path =
            std::env::temp_dir().join(format!("trueline-raidtest-{name}-{}", std::process::id()));
        let op = |nth| if nth % 2 == 0 { Op::Read } else { Op::Write };
        let records: Vec<Record> =
            (0..count).map(|nth| Record { offset: nth * 512, length: 512, op: op(nth) }).collect();
        std::fs::write(&path, file::render(&records)).unwrap();
        Requests(path)
    }

    fn parameters(&self, processes: usize) -> Parameters {
        Parameters { file: Some(self.0.clone()), qd: Some(processes), ..Parameters::default() }
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn places(rig: &Recorder) -> Vec<u64> {
    rig.asked.iter().map(|(_, at, _)| at / 512).collect()
}

#[test]
fn one_process_does_all_in_order() {
    let (file, mut rig) = (Requests::new("one", 7), Recorder::new(1 << 20));
    let run = ran(&KIND, &file.parameters(1), &mut rig);
    assert_eq!((places(&rig), run.ops, rig.most), ((0..7).collect(), 7, 1));
    assert_eq!(rig.asked[1].0, Op::Write);
}

#[test]
fn each_process_has_its_own_run_and_what_is_left_over_is_never_done() {
    let (file, mut rig) = (Requests::new("three", 11), Recorder::new(1 << 20));
    let run = ran(&KIND, &file.parameters(3), &mut rig);
    // 11 div 3 = 3: processes begin at 0, 3 and 6; 9 and 10 are never done.
    assert_eq!(places(&rig), [0, 3, 6, 1, 4, 7, 2, 5, 8]);
    assert_eq!(
        (run.ops, rig.most, made(&KIND, &file.parameters(3)).extent(1 << 20)),
        (9, 3, Some(9))
    );
}

#[test]
fn the_way_can_be_said_and_the_offset_moves_all() {
    let (file, mut rig) = (Requests::new("way", 4), Recorder::new(1 << 20));
    let read = Parameters { op: Some(Way::Read), offset: 1024, ..file.parameters(1) };
    ran(&KIND, &read, &mut rig);
    assert_eq!(rig.asked, [0, 1, 2, 3].map(|nth| (Op::Read, 1024 + nth * 512, 512)));
    assert!(!made(&KIND, &read).writes() && made(&KIND, &file.parameters(1)).writes());
}

#[test]
fn what_reaches_past_the_target_is_counted_and_refused() {
    let file = Requests::new("past", 10);
    let words = refused(&KIND, &file.parameters(1), &mut Recorder::new(8 * 512));
    assert_eq!(
        words,
        "raidtest: 2 of 10 requests end past the target, the first at byte 128 of the file"
    );
    let words = refused(&KIND, &file.parameters(11), &mut Recorder::new(1 << 20));
    assert_eq!(words, "raidtest: 10 requests for 11 processes: each needs one");
}

#[test]
fn a_cut_file_is_named_with_its_byte() {
    let file = Requests::new("cut", 2);
    std::fs::write(&file.0, &std::fs::read(&file.0).unwrap()[..20]).unwrap();
    let words = refused(&KIND, &file.parameters(1), &mut Recorder::new(1 << 20));
    assert!(words.ends_with("byte 16: a record of 4 bytes, cut short: all have 16"), "{words}");
}

#[test]
fn what_is_no_file_is_not_waited_for_and_too_many_requests_are_not_read() {
    let file = Requests::new("long", 0);
    std::fs::File::options()
        .write(true)
        .open(&file.0)
        .unwrap()
        .set_len((file::MOST + 1) * file::RECORD)
        .unwrap();
    let words = refused(&KIND, &file.parameters(1), &mut Recorder::new(1 << 20));
    assert!(words.ends_with(": more than 67108864 bytes of requests"), "{words}");
    std::fs::remove_file(&file.0).unwrap();
    if std::process::Command::new("mkfifo").arg(&file.0).status().is_ok_and(|ended| ended.success())
    {
        let words = refused(&KIND, &file.parameters(1), &mut Recorder::new(1 << 20));
        assert!(words.ends_with(": it is not a regular file"), "{words}");
    }
}

#[test]
fn requests_of_16_kib_lie_on_multiples_of_the_provider() {
    let mut rig = Recorder::new(1 << 30);
    let fixed = Parameters {
        bs: Some(16384),
        op: Some(Way::Read),
        qd: Some(64),
        count: Some(640),
        ..Parameters::default()
    };
    let run = ran(&KIND, &fixed, &mut rig);
    assert!(
        rig.asked.iter().all(|&(op, at, bytes)| (op, at % 16384, bytes) == (Op::Read, 0, 16384))
    );
    assert_eq!((run.ops, rig.most), (640, 64));
}
