use super::super::{FLUSH, ask};
use super::*;
use crate::rig::simulated::Simulated;
use crate::workload::recorder::Recorder;
use trueline_geom::mapping::route::Route;
use trueline_sim::model::Model;
use trueline_sim::world::{Schedule, World};

/// A layer that reads each request's first sector before it passes it on, and shows half.
struct Twice;

impl Layer for Twice {
    fn length(&self, beneath: u64) -> u64 {
        beneath / 2
    }

    fn plan(&mut self, asked: Ask, steps: &mut Steps) -> Result<(), Errno> {
        if asked.op == Op::Write {
            steps.add(ask(Op::Read, asked.offset, 512));
            steps.add(ask(Op::Read, asked.offset + 512, 512));
            steps.then();
        }
        steps.add(asked);
        Ok(())
    }
}

/// A layer that does nothing beneath.
struct Nothing;

impl Layer for Nothing {
    fn plan(&mut self, _: Ask, _: &mut Steps) -> Result<(), Errno> {
        Ok(())
    }
}

fn request(tag: u64, ask: Ask) -> Request {
    let Ask { op, offset, length, fua } = ask;
    Request { tag, op, offset, length, fua }
}

fn twice() -> Vec<(&'static str, Box<dyn Layer>)> {
    vec![("outer", Box::new(Twice)), ("inner", Box::new(Twice))]
}

#[test]
fn phases_wait_for_those_before_through_every_layer() {
    let mut inner = Recorder::new(1 << 20);
    let mut rig = LayerRig::new(twice(), &mut inner).unwrap();
    let mut done = Vec::new();
    rig.push(request(7, ask(Op::Write, 4096, 4096))).unwrap();
    rig.wait(1, &mut done).unwrap();
    let counts: Vec<_> = rig.counts().collect();
    // Two reads of the outer layer; two more of the inner one before the write.
    assert_eq!(
        inner.asked,
        [
            (Op::Read, 4096, 512),
            (Op::Read, 4608, 512),
            (Op::Read, 4096, 512),
            (Op::Read, 4608, 512),
            (Op::Write, 4096, 4096),
        ]
    );
    assert_eq!(inner.times, [0, 0, 2000, 2000, 4000]);
    assert_eq!((done[0].tag, done[0].at, done[0].error), (7, 5000, None));
    let [(outer, above), (beneath, below)] = counts.try_into().unwrap();
    assert_eq!((outer, beneath), ("outer", "inner"));
    assert_eq!((above.asked.reads, above.asked.writes, above.caused_reads), (0, 1, 2));
    assert_eq!((below.asked, below.caused_reads), (above.made, 2));
    // Reads of the outer layer are not caused by the inner one.
    assert_eq!((below.made.reads, below.made.bytes_read), (4, 2048));
    assert_eq!(below.write_amplification(), Some(1.0));
}

#[test]
fn what_lies_outside_or_between_sectors_is_refused() {
    let mut inner = Recorder::new(1 << 20);
    inner.sector = 4096;
    let mut rig = LayerRig::new(twice(), &mut inner).unwrap();
    assert_eq!((rig.length(), rig.sector()), (1 << 18, 4096));
    assert_eq!(rig.push(request(1, ask(Op::Write, (1 << 18) - 4096, 8192))), Err(Errno::Range));
    assert_eq!(rig.push(request(1, ask(Op::Read, u64::MAX - 4095, 8192))), Err(Errno::Range));
    assert_eq!(rig.push(request(1, ask(Op::Write, 512, 4096))), Err(Errno::Unaligned));
    // The outer layer's own read of a sector of 512 bytes is no sector beneath: its request fails.
    let mut done = Vec::new();
    rig.push(request(2, ask(Op::Write, 4096, 4096))).unwrap();
    rig.wait(1, &mut done).unwrap();
    assert_eq!((done.len(), done[0].error), (1, Some(Errno::Unaligned)));
    assert_eq!(inner.asked, []);
}

#[test]
fn a_request_that_asks_nothing_is_done_at_once() {
    let mut inner = Recorder::new(1 << 20);
    let mut rig = LayerRig::new(vec![("nothing", Box::new(Nothing))], &mut inner).unwrap();
    let mut done = Vec::new();
    rig.push(request(1, FLUSH)).unwrap();
    rig.push(request(2, ask(Op::Write, 0, 512))).unwrap();
    rig.wait(2, &mut done).unwrap();
    assert_eq!(done.iter().map(|end| (end.tag, end.at)).collect::<Vec<_>>(), [(1, 0), (2, 0)]);
    assert_eq!(inner.asked, []);
}

#[test]
fn a_run_ends_with_what_caches_hold() {
    let mut inner = Recorder::new(1 << 20);
    let stack = LayerStack::new(vec![("page-cache".into(), Table::new())]).unwrap();
    let mut rig = stack.over(&mut inner).unwrap();
    let mut done = Vec::new();
    rig.push(request(1, ask(Op::Write, 0, 8192))).unwrap();
    rig.wait(1, &mut done).unwrap();
    let mut run = Run::new();
    rig.finish(&mut run).unwrap();
    assert_eq!(run.ns, 2000);
    assert_eq!(inner.asked, [(Op::Write, 0, 8192), (Op::Flush, 0, 0)]);
}

#[test]
fn a_write_that_a_cache_holds_and_the_drive_refuses_fails_the_run() {
    let text = Model::named("smr-hm-14tb").unwrap();
    let model = Model::parse(text).unwrap();
    let (zone, length) = (model.conventional_zones * model.zone_bytes, model.size);
    let world = World::new(vec![(model.drive(1), 512)], Schedule::Fifo);
    let mut drive = Simulated::new(world, Route::store(0, length), 512, 0);
    let stack = LayerStack::new(vec![("page-cache".into(), Table::new())]).unwrap();
    let mut rig = stack.over(&mut drive).unwrap();
    let mut done = Vec::new();
    for (offset, is_taken) in [(zone, true), (zone + 8192, false)] {
        rig.push(request(1, ask(Op::Write, offset, 4096))).unwrap();
        rig.wait(1, &mut done).unwrap();
        assert_eq!(rig.finish(&mut Run::new()).is_ok(), is_taken, "{offset}");
    }
}

#[test]
fn no_more_are_in_flight_than_the_rig_beneath_takes() {
    struct Narrow(Recorder);
    impl Rig for Narrow {
        fn length(&self) -> u64 {
            self.0.length
        }
        fn sector(&self) -> u64 {
            512
        }
        fn depth(&self) -> usize {
            1
        }
        fn now(&mut self) -> u64 {
            self.0.now()
        }
        fn push(&mut self, request: Request) -> Result<(), Errno> {
            self.0.push(request)
        }
        fn wait(&mut self, least: usize, done: &mut Vec<FinishedRequest>) -> Result<(), Errno> {
            self.0.wait(least, done)
        }
        fn think(&mut self, _: u64) {}
        fn rest(&mut self, _: u64) {}
        fn is_virtual(&self) -> bool {
            true
        }
    }
    let mut inner = Narrow(Recorder::new(1 << 20));
    let mut rig = LayerRig::new(twice(), &mut inner).unwrap();
    let mut done = Vec::new();
    for tag in 0..3 {
        rig.push(request(tag, ask(Op::Write, tag * 4096, 4096))).unwrap();
    }
    rig.wait(3, &mut done).unwrap();
    assert_eq!((done.len(), inner.0.asked.len(), inner.0.most), (3, 15, 1));
}

#[test]
fn a_stack_is_checked_as_it_is_typed() {
    let stack = |text: &str| {
        let table: Table = text.parse().unwrap();
        let layers = table.into_iter().map(|(name, keys)| (name, keys.as_table().unwrap().clone()));
        LayerStack::new(layers.collect()).map_err(|e| e.message)
    };
    let message = stack("[pagecache]").unwrap_err();
    assert!(message.starts_with("no layer 'pagecache': there are page-cache, "), "{message}");
    let message = stack("[page-cache]\nblok = 3").unwrap_err();
    assert!(message.starts_with("layer page-cache: unknown field `blok`"), "{message}");
    let message = stack("[loop]\nblock = 3000").unwrap_err();
    assert_eq!(message, "layer loop: block = 3000: a power of two from 512 to 4096 bytes");
    let many = vec![("loop".to_owned(), Table::new()); 17];
    assert_eq!(LayerStack::new(many).unwrap_err().message, "17 layers: at most 16");
    let mut small = Recorder::new(1000);
    let refused = stack("[page-cache]\nblock = 4096").unwrap().over(&mut small).err().unwrap();
    assert_eq!(refused.message, "layer page-cache: 1000 bytes beneath are too few");
}

/// A layer that makes two writes of one.
struct Doubling;

impl Layer for Doubling {
    fn plan(&mut self, asked: Ask, steps: &mut Steps) -> Result<(), Errno> {
        steps.add(asked);
        steps.then();
        steps.add(asked);
        Ok(())
    }
}

#[test]
fn a_stack_that_makes_too_much_of_a_request_is_refused() {
    let mut inner = Recorder::new(1 << 20);
    let layers: Vec<(&'static str, Box<dyn Layer>)> =
        (0..40).map(|_| ("doubling", Box::new(Doubling) as Box<dyn Layer>)).collect();
    let mut rig = LayerRig::new(layers, &mut inner).unwrap();
    let mut done = Vec::new();
    rig.push(request(1, ask(Op::Write, 0, 512))).unwrap();
    while done.is_empty() {
        rig.wait(1, &mut done).unwrap();
    }
    assert_eq!((done.len(), done[0].error), (1, Some(Errno::Unsupported)));
    // Nothing more is taken, and there is a reason.
    assert_eq!(rig.push(request(2, ask(Op::Write, 0, 512))), Err(Errno::Unsupported));
    let message = rig.refused.take().unwrap().message;
    assert_eq!(message, "layer doubling: more than 8192 requests for each that came");
}

#[test]
fn a_client_that_only_looks_has_what_is_done() {
    let mut inner = Recorder::new(1 << 20);
    let mut rig = LayerRig::new(vec![("doubling", Box::new(Doubling))], &mut inner).unwrap();
    let mut done = Vec::new();
    rig.push(request(1, ask(Op::Write, 0, 512))).unwrap();
    rig.wait(0, &mut done).unwrap();
    assert_eq!(done, []);
    rig.think(1000);
    rig.wait(0, &mut done).unwrap();
    rig.think(1000);
    rig.wait(0, &mut done).unwrap();
    assert_eq!(done.iter().map(|end| end.tag).collect::<Vec<_>>(), [1]);
}

#[test]
fn a_run_ends_when_all_of_its_requests_have() {
    let mut inner = Recorder::new(1 << 20);
    let mut rig = LayerRig::new(vec![("doubling", Box::new(Doubling))], &mut inner).unwrap();
    rig.push(request(0, ask(Op::Write, 0, 512))).unwrap();
    let mut run = Run::new();
    rig.finish(&mut run).unwrap();
    // Two writes and two flushes, a microsecond each.
    assert_eq!((run.ns, inner.asked.len()), (4000, 4));
}
