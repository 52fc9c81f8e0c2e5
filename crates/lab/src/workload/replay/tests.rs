use super::*;
use crate::trace::own;
use crate::workload::recorder::{Recorder, ran, refused};

/// A trace of our own in a file.
struct Written(PathBuf);

impl Written {
    fn new(name: &str, lines: &str) -> Written {
        let path =
            std::env::temp_dir().join(format!("trueline-replay-{name}-{}", std::process::id()));
        std::fs::write(&path, format!("{}\n{lines}", own::HEAD)).unwrap();
        Written(path)
    }

    fn parameters(&self) -> Parameters {
        Parameters { file: Some(self.0.clone()), ..Parameters::default() }
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const LINES: &str = "1000000 R 0 4096\n1000500 W 8192 512\n1004000 F 0 0\n1010000 R 512 512\n";

#[test]
fn as_fast_as_answered_the_order_is_the_traces() {
    let (trace, mut rig) = (Written::new("fast", LINES), Recorder::new(1 << 20));
    let run = ran(&KIND, &Parameters { offset: 512, ..trace.parameters() }, &mut rig);
    assert_eq!(
        rig.asked,
        [(Op::Read, 512, 4096), (Op::Write, 8704, 512), (Op::Flush, 0, 0), (Op::Read, 1024, 512)]
    );
    assert_eq!(
        (run.ops, run.bytes, run.ns, rig.times.clone()),
        (4, 5120, 4000, vec![0, 1000, 2000, 3000])
    );
    let mut rig = Recorder::new(1 << 20);
    ran(&KIND, &Parameters { qd: Some(4), ..trace.parameters() }, &mut rig);
    assert_eq!(rig.most, 4);
}

#[test]
fn at_its_times_each_is_asked_when_it_was_whatever_is_in_flight() {
    let (trace, mut rig) = (Written::new("timed", LINES), Recorder::new(1 << 20));
    let run = ran(&KIND, &Parameters { timed: true, ..trace.parameters() }, &mut rig);
    assert_eq!((rig.times.clone(), rig.most), (vec![0, 500, 4000, 10_000], 2));
    // The second waited for the first, a microsecond a request.
    assert_eq!(
        (run.ops, run.ns, run.waited_ns, run.longest_ns),
        (4, 11_000, 1000 + 1500 + 1000 + 1000, 1500)
    );
}

#[test]
fn what_lies_past_the_target_is_counted_and_refused_or_folded() {
    let trace = Written::new("past", "0 R 0 512\n1 R 100352 512\n2 W 1048576 4096\n");
    let words = refused(&KIND, &trace.parameters(), &mut Recorder::new(65536));
    let wanted = "2 of 3 requests end past the target's 65536 bytes, the first at line 3";
    assert!(words.ends_with(wanted), "{words}");
    let mut rig = Recorder::new(65536);
    let run = ran(&KIND, &Parameters { wrap: true, ..trace.parameters() }, &mut rig);
    // Folded by 61440 bytes, whole pages, so that what was aligned stays so.
    assert_eq!(
        rig.asked,
        [
            (Op::Read, 0, 512),
            (Op::Read, 100_352 - 61440, 512),
            (Op::Write, 1_048_576 % 61440, 4096)
        ]
    );
    assert_eq!(run.errors, 0);
    let words =
        refused(&KIND, &Parameters { wrap: true, ..trace.parameters() }, &mut Recorder::new(4096));
    assert!(words.ends_with("it is too small for the longest of them"), "{words}");
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let words = refused(&KIND, &Parameters::default(), &mut Recorder::new(4096));
    assert_eq!(words, "replay: there is no trace");
    let empty = Written::new("empty", "5 F 0 0\n");
    let words = refused(&KIND, &empty.parameters(), &mut Recorder::new(4096));
    assert!(words.ends_with("it has no queued read or write"), "{words}");
    let bad = Written::new("bad", "5 R 0 512\n6 R 0\n");
    let words = refused(&KIND, &bad.parameters(), &mut Recorder::new(4096));
    assert!(words.ends_with("line 3: not NS OP OFFSET LENGTH"), "{words}");
    let long = Written::new("long", "5 R 0 67108864\n6 R 0 67108865\n");
    let words = refused(&KIND, &long.parameters(), &mut Recorder::new(1 << 40));
    assert!(words.ends_with("line 3: a request of 67108865 bytes: 67108864 at most"), "{words}");
}

/// The counts of an emulated drive: a trace that `--record` wrote of a client with requests of any
/// length.
#[test]
fn odd_bytes_are_their_whole_sectors() {
    let (trace, mut rig) = (
        Written::new("odd", "5 R 0 512\n6 R 100 512\n7 WF 1023 2\n8 W 1024 512\n9 W 3 3\n"),
        Recorder::new(4096),
    );
    let run = ran(&KIND, &trace.parameters(), &mut rig);
    let read_and_written =
        |offset, length| [(Op::Read, offset, length), (Op::Write, offset, length)];
    let mut want = vec![(Op::Read, 0, 512), (Op::Read, 0, 1024)];
    want.extend(read_and_written(512, 1024));
    want.push((Op::Write, 1024, 512));
    want.extend(read_and_written(0, 512));
    assert_eq!((rig.asked.clone(), run.errors), (want, 0));
    let Needs::Blocks(make) = KIND.needs else { panic!("it runs on blocks") };
    let told = make(&trace.parameters()).unwrap().warning().unwrap();
    assert_eq!(
        told,
        "3 of 5 requests of the trace are not whole sectors: all sectors that they touch are read and, for a write, written back"
    );
}

#[test]
fn what_is_passed_over_is_told() {
    let path = std::env::temp_dir().join(format!("trueline-replay-trim-{}", std::process::id()));
    std::fs::write(
        &path,
        "fio version 2 iolog\na add\na open\na read 0 512\na trim 0 4096\na sync\na close\n",
    )
    .unwrap();
    let Needs::Blocks(make) = KIND.needs else { panic!("it runs on blocks") };
    let told = make(&Parameters { file: Some(path.clone()), ..Parameters::default() })
        .map(|work| work.warning());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(
        told.unwrap().as_deref(),
        Some("1 of 3 requests of the trace are discards, which are skipped")
    );
    let trace = Written::new("none", LINES);
    assert_eq!(make(&trace.parameters()).unwrap().warning(), None);
}

/// The last request is 584 years after the first: virtual time ends before, and an observer can end
/// the run.
#[test]
fn a_pause_of_centuries_ends() {
    use crate::rig::simulated::Simulated;
    use trueline_geom::mapping::route::Route;
    use trueline_sim::model::Model;
    use trueline_sim::world::{Schedule, World};

    let trace = Written::new("pause", "0 R 0 512\n18446744073709551615 R 512 512\n");
    let Needs::Blocks(make) = KIND.needs else { panic!("it runs on blocks") };
    let work = make(&Parameters { timed: true, ..trace.parameters() }).unwrap();
    let md = Model::parse(Model::named("md").unwrap()).unwrap();
    let rig = || {
        Simulated::new(
            World::new(vec![(md.drive(1), 512)], Schedule::Fifo),
            Route::store(0, 4096),
            512,
            0,
        )
    };
    let run = work.run(&mut rig(), 1, &mut |_| true).unwrap();
    assert_eq!((run.ops, run.errors), (1, 1));
    let mut looks = 0;
    let run = work.run(&mut rig(), 1, &mut |_| {
        looks += 1;
        looks < 20
    });
    assert_eq!((run.unwrap().ops, looks), (1, 20));
}
