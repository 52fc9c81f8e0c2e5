//! Layers against every method of a store: each request reaches the layer's purpose, and nothing
//! goes around it or is lost on the way.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use trueline_geom::audit::io::{IoAudit, IoKind};
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::{Properties, Run, Store};
use trueline_geom::base::topology::{Grain, Placement, Topology, is_whole};
use trueline_geom::class::nop::fault::{FaultPlan, Rule};
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::mapping::route::Route;
use trueline_geom::probe::Limits;
use trueline_host::disk::memory::Memory;
use trueline_serve::layer::counted::{Counted, Counters};
use trueline_serve::layer::emulated::{Clock, Drives, Emulated, Speed};
use trueline_serve::layer::faulty::{Faults, Faulty};
use trueline_serve::layer::offset::Offset;
use trueline_serve::layer::overlay::{self, Base, Overlay};
use trueline_serve::layer::recorded::{Recorded, Recorder};
use trueline_serve::layer::sectored::Sectored;
use trueline_serve::layer::strict::{Refused, Strict};
use trueline_serve::layer::watched::Watched;
use trueline_serve::retaste::trigger::RetasteTrigger;
use trueline_sim::model::Model;
use trueline_sim::world::{Schedule, World};

const LENGTH: u64 = 1 << 20;
/// The range of every request.
const AT: u64 = 64 << 10;
const BYTES: usize = 8192;

/// A disk in memory that notes which of its methods were called, with which ranges.
#[derive(Clone)]
struct Spy {
    memory: Arc<Memory>,
    unit: u64,
    calls: Arc<Mutex<Vec<Call>>>,
}

/// A call: the method, the first byte and the number of bytes.
type Call = (&'static str, u64, u64);

impl Spy {
    fn new(unit: u64) -> Spy {
        let memory = Memory::new(LENGTH).unwrap();
        memory.write_at(&vec![0x55; usize::try_from(LENGTH).unwrap()], 0).unwrap();
        Spy { memory: Arc::new(memory), unit, calls: Arc::default() }
    }

    fn note(&self, method: &'static str, offset: u64, length: usize) -> &Memory {
        self.calls.lock().unwrap().push((method, offset, length as u64));
        &self.memory
    }

    fn noted(&self) -> Vec<Call> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }
}

fn index(length: u64) -> usize {
    usize::try_from(length).unwrap()
}

impl Store for Spy {
    fn length(&self) -> u64 {
        LENGTH
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        self.note("read_at", offset, buffer.len()).read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.note("write_at", offset, bytes.len()).write_at(bytes, offset)
    }

    fn flush(&self) -> Result<(), Errno> {
        self.note("flush", 0, 0).flush()
    }

    fn discard(&self, offset: u64, length: u64) -> Result<(), Errno> {
        self.note("discard", offset, index(length)).discard(offset, length)
    }

    fn properties(&self) -> Properties {
        let own = Properties { unit: self.unit, depth: 7, ..Properties::default() };
        Properties { write_back: true, non_blocking: true, ..own }
    }

    fn write_through(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.note("write_through", offset, bytes.len()).write_through(bytes, offset)
    }

    fn zero(&self, offset: u64, length: u64) -> Result<(), Errno> {
        self.note("zero", offset, index(length)).zero(offset, length)
    }

    fn try_zero(&self, offset: u64, length: u64, keep: bool) -> Result<(), Errno> {
        self.note("try_zero", offset, index(length)).try_zero(offset, length, keep)
    }

    fn try_read(&self, buffer: &mut [u8], offset: u64) -> Result<bool, Errno> {
        self.note("try_read", offset, buffer.len()).try_read(buffer, offset)
    }

    fn borrow(&self, offset: u64, length: u64) -> Result<Option<&[AtomicU8]>, Errno> {
        self.note("borrow", offset, index(length)).borrow(offset, length)
    }

    fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        self.note("extent", offset, index(length)).extent(offset, length)
    }

    fn prefetch(&self, offset: u64, length: u64) {
        self.note("prefetch", offset, index(length)).prefetch(offset, length);
    }

    fn start_writeback(&self, offset: u64, length: u64) {
        self.note("start_writeback", offset, index(length)).start_writeback(offset, length);
    }
}

/// Asks for a range; `false`: declined, to be asked for in another way.
type Ask = fn(&dyn Store, u64) -> Result<bool, Errno>;

/// The methods that carry bytes or make them durable.
const DATA: [(&str, Ask); 9] = [
    ("read_at", |store, at| store.read_at(&mut [0; BYTES], at).map(|()| true)),
    ("try_read", |store, at| store.try_read(&mut [0; BYTES], at)),
    ("borrow", |store, at| store.borrow(at, BYTES as u64).map(|borrowed| borrowed.is_some())),
    ("write_at", |store, at| store.write_at(&[1; BYTES], at).map(|()| true)),
    ("write_through", |store, at| store.write_through(&[2; BYTES], at).map(|()| true)),
    ("zero", |store, at| store.zero(at, BYTES as u64).map(|()| true)),
    ("try_zero", |store, at| match store.try_zero(at, BYTES as u64, true) {
        Err(Errno::Unsupported) => Ok(false),
        done => done.map(|()| true),
    }),
    ("discard", |store, at| store.discard(at, BYTES as u64).map(|()| true)),
    ("flush", |store, _| store.flush().map(|()| true)),
];

/// The methods that tell, or ask for no bytes.
const HINTS: [(&str, Ask); 3] = [
    ("extent", |store, at| store.extent(at, BYTES as u64).map(|run| run.length == BYTES as u64)),
    ("prefetch", |store, at| {
        store.prefetch(at, BYTES as u64);
        Ok(true)
    }),
    ("start_writeback", |store, at| {
        store.start_writeback(at, BYTES as u64);
        Ok(true)
    }),
];

fn all() -> impl Iterator<Item = (&'static str, Ask)> {
    DATA.into_iter().chain(HINTS)
}

fn ask(store: &dyn Store, method: &str) -> Result<bool, Errno> {
    let found = all().find(|(name, _)| *name == method);
    found.unwrap().1(store, AT)
}

fn counted(spy: &Spy) -> (Counted, Arc<Counters>) {
    let disk = Disk::new("", Box::new(Memory::new(LENGTH).unwrap()), Topology::new(512, LENGTH));
    let graph = Graph::taste(vec![disk], Limits::default());
    let counters = Arc::new(Counters::new(
        IoAudit::new(&graph, 0),
        Arc::new(RetasteTrigger::new(graph.read_set())),
    ));
    (Counted::new(Arc::new(spy.clone()), counters.clone(), Box::new(|| ())), counters)
}

fn recorded(spy: &Spy, path: &Path) -> (Recorded, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::new(
        std::fs::File::create(path).unwrap(),
        "",
        Box::new(|error| panic!("{error}")),
    ));
    (Recorded::new(Arc::new(spy.clone()), 0, recorder.clone()), recorder)
}

fn strict(spy: &Spy, phase: u64) -> Strict {
    Strict::new(
        Arc::new(spy.clone()),
        "p1".into(),
        Grain::new(4096, phase).unwrap(),
        false,
        true,
        Arc::new(Refused::default()),
    )
}

fn faulty(spy: &Spy, rules: &[&str]) -> Faulty {
    let rules = rules.iter().map(|rule| Rule::parse(rule).unwrap()).collect();
    Faulty::new(Arc::new(spy.clone()), 512, Arc::new(Faults::new(FaultPlan { rules, seed: 1 })))
}

/// A clock that jumps to where it is waited for.
struct Jumping(AtomicU64);

impl Clock for Jumping {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn wait(&self, until: &AtomicU64) {
        self.0.fetch_max(until.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

fn emulated(spy: &Spy) -> (Emulated, Arc<Drives>) {
    let model = Model::parse(Model::named("wd10ears").unwrap()).unwrap();
    let world = World::new(vec![(model.drive(1), model.logical_block_size)], Schedule::Fifo);
    let drives = Arc::new(Drives::new(
        world,
        32,
        Speed::parse("1").unwrap(),
        Box::new(Jumping(AtomicU64::new(1))),
    ));
    (
        Emulated::new(
            Arc::new(spy.clone()),
            Route::store(0, LENGTH),
            Grain::new(512, 0),
            drives.clone(),
        ),
        drives,
    )
}

fn overlaid(spy: &Spy) -> Overlay {
    let base = Base { name: "base".into(), store: Box::new(spy.clone()), changed: None };
    overlay::in_memory(vec![base]).unwrap().remove(0)
}

fn watched(spy: &Spy) -> Watched {
    Watched::new(Box::new(spy.clone()), "disk".into(), Arc::new(|_: &_| {}))
}

/// Every layer in a state in which it lets everything by, and where its first byte lies beneath.
fn idle(spy: &Spy, scratch: &Path) -> Vec<(&'static str, Box<dyn Store>, u64)> {
    let spied = || Arc::new(spy.clone());
    vec![
        ("counted", Box::new(counted(spy).0), 0),
        ("recorded", Box::new(recorded(spy, &scratch.join("trace")).0), 0),
        ("strict", Box::new(strict(spy, 0)), 0),
        ("faulty", Box::new(faulty(spy, &[])), 0),
        ("sectored", Box::new(Sectored::new(spied(), 512).unwrap()), 0),
        ("offset", Box::new(Offset::new(spied(), 4096, 256 << 10).unwrap()), 4096),
        ("emulated", Box::new(emulated(spy).0), 0),
        ("overlay", Box::new(overlaid(spy)), 0),
        ("watched", Box::new(watched(spy)), 0),
    ]
}

#[test]
fn every_layer_is_tested() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/layer");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file());
    let stores = files.filter(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        text.contains("impl Store for") || text.contains("impl Filter for")
    });
    let layers: BTreeSet<String> =
        stores.map(|path| path.file_stem().unwrap().to_str().unwrap().to_string()).collect();
    let scratch = crate::Scratch::new();
    let tested =
        idle(&Spy::new(1), &scratch.0).into_iter().map(|(name, ..)| name.to_string()).collect();
    assert_eq!(layers, tested);
}

/// Layers that change nothing now are as if they were not there: each method arrives as itself.
#[test]
fn what_a_layer_has_nothing_to_do_with_arrives_as_it_was_asked() {
    let (spy, scratch) = (Spy::new(1), crate::Scratch::new());
    for (name, layer, start) in idle(&spy, &scratch.0) {
        if matches!(name, "overlay" | "emulated") {
            continue;
        }
        assert_eq!(
            layer.properties(),
            Properties { unit: if name == "sectored" { 512 } else { 1 }, ..spy.properties() },
            "{name}"
        );
        for (method, ask) in all() {
            assert_eq!(ask(&*layer, AT), Ok(true), "{name} {method}");
            let (offset, length) =
                if method == "flush" { (0, 0) } else { (AT + start, BYTES as u64) };
            // Zeros are tried first: if that is declined they are written.
            let beneath = if method == "zero" && name != "offset" { "try_zero" } else { method };
            assert_eq!(spy.noted(), [(beneath, offset, length)], "{name} {method}");
        }
    }
}

#[test]
fn every_request_is_counted_once() {
    for (method, ask) in DATA {
        let spy = Spy::new(1);
        let (store, counters) = counted(&spy);
        ask(&store, AT).unwrap();
        let counts = counters.counts();
        let of = |kind| {
            counts
                .cells
                .iter()
                .map(|(_, tally)| {
                    Placement::ALL.map(|fit| tally.count(kind, fit)).iter().sum::<u64>()
                })
                .sum::<u64>()
        };
        let all = (IoKind::ALL.map(of), counts.flushes);
        let want = match method {
            "read_at" | "try_read" | "borrow" => ([1, 0, 0, 0], 0),
            "write_at" | "write_through" => ([0, 1, 0, 0], 0),
            "discard" => ([0, 0, 1, 0], 0),
            "zero" | "try_zero" => ([0, 0, 0, 1], 0),
            _ => ([0; 4], 1),
        };
        assert_eq!(all, want, "{method}");
    }
}

#[test]
fn every_request_is_recorded_once() {
    let scratch = crate::Scratch::new();
    for (method, ask) in DATA {
        let (spy, path) = (Spy::new(1), scratch.0.join(method));
        let (store, recorder) = recorded(&spy, &path);
        ask(&store, AT).unwrap();
        assert!(recorder.finish());
        let mut text = String::new();
        std::fs::File::open(&path).unwrap().read_to_string(&mut text).unwrap();
        let lines: Vec<String> = text
            .lines()
            .skip(1)
            .map(|line| line.trim_start_matches("# ").split_once(' ').unwrap().1.into())
            .collect();
        let want = match method {
            "read_at" | "try_read" | "borrow" => "R 65536 8192",
            "write_at" => "W 65536 8192",
            "write_through" => "WF 65536 8192",
            "discard" => "discard 65536 8192",
            "zero" | "try_zero" => "zero 65536 8192",
            _ => "F 0 0",
        };
        assert_eq!(lines, [want], "{method}");
    }
}

#[test]
fn nothing_off_the_grain_goes_past_a_strict_layer() {
    for (method, ask) in DATA {
        let spy = Spy::new(1);
        let done = ask(&strict(&spy, 512), AT);
        let passes = matches!(method, "discard" | "flush");
        assert_eq!(
            (done, spy.noted().len()),
            if passes { (Ok(true), 1) } else { (Err(Errno::Unaligned), 0) },
            "{method}"
        );
    }
}

#[test]
fn nothing_goes_around_a_fault() {
    for (method, ask) in DATA {
        let spy = Spy::new(1);
        let done = ask(&faulty(&spy, &["*:error=eio"]), AT);
        // A fault is of the request that waits.
        let declined = matches!(method, "try_read" | "borrow" | "try_zero");
        assert_eq!(done, if declined { Ok(false) } else { Err(Errno::Io) }, "{method}");
        assert_eq!(spy.noted(), [], "{method}");
        let properties = faulty(&spy, &["*:error=eio"]).properties();
        assert!(!properties.write_back && !properties.non_blocking);
    }
}

#[test]
fn every_request_takes_the_time_of_its_drive() {
    for (method, ask) in all() {
        let spy = Spy::new(1);
        let (store, drives) = emulated(&spy);
        let done = ask(&store, AT);
        let counters = drives.counters()[0];
        let took = (counters.reads, counters.writes, counters.flushes);
        let want = match method {
            "read_at" => (Ok(true), (1, 0, 0)),
            "write_at" | "write_through" | "zero" => (Ok(true), (0, 1, 0)),
            "flush" => (Ok(true), (0, 0, 1)),
            "try_read" | "borrow" | "try_zero" => (Ok(false), (0, 0, 0)),
            _ => (Ok(true), (0, 0, 0)),
        };
        assert_eq!((done, took), want, "{method}");
        assert_eq!(spy.noted().is_empty(), done == Ok(false), "{method}");
    }
    let properties = emulated(&Spy::new(1)).0.properties();
    assert_eq!(properties, Properties { depth: 32, ..Properties::default() });
}

/// Sectors of 512 bytes on a disk of 4096: whatever is asked, the disk is asked for whole sectors
/// of its own.
#[test]
fn every_request_beneath_a_sectored_layer_is_whole_sectors() {
    for (method, ask) in DATA {
        let spy = Spy::new(4096);
        let store = Sectored::new(Arc::new(spy.clone()), 512).unwrap();
        let done = ask(&store, AT + 512);
        assert_eq!(done, Ok(method != "borrow"), "{method}");
        let calls = spy.noted();
        assert!(
            calls
                .iter()
                .all(|&(_, offset, length)| is_whole(offset, 4096) && is_whole(length, 4096)),
            "{method} {calls:?}"
        );
        assert_eq!(calls.is_empty(), method == "borrow", "{method}");
        if method.contains("zero") {
            let mut read = [9; BYTES + 1024];
            spy.memory.read_at(&mut read, AT).unwrap();
            assert!(
                read[..512] == [0x55; 512]
                    && read[512..][..BYTES] == [0; BYTES]
                    && read[BYTES + 512..] == [0x55; 512],
                "{method}"
            );
        }
    }
}

/// The base is only read, and what was changed is read from the overlay.
#[test]
fn nothing_is_written_beneath_an_overlay() {
    for (method, ask) in all() {
        let spy = Spy::new(1);
        let store = overlaid(&spy);
        ask(&store, AT).unwrap();
        let mut read = [9; BYTES];
        store.read_at(&mut read, AT).unwrap();
        let want = match method {
            "write_at" => 1,
            "write_through" => 2,
            "zero" | "try_zero" | "discard" => 0,
            _ => 0x55,
        };
        assert_eq!(read, [want; BYTES], "{method}");
        let only_reads = |calls: Vec<Call>| {
            calls
                .iter()
                .all(|(call, ..)| matches!(*call, "read_at" | "try_read" | "extent" | "prefetch"))
        };
        assert!(only_reads(spy.noted()), "{method}");
        let mut base = [9; BYTES];
        spy.memory.read_at(&mut base, AT).unwrap();
        assert_eq!(base, [0x55; BYTES], "{method}");
    }
}

/// A method arrives beneath all layers at once, in the order in which a server stacks them.
#[test]
fn a_stack_of_layers_loses_nothing() {
    let (spy, scratch) = (Spy::new(1), crate::Scratch::new());
    let sectored = Sectored::new(Arc::new(spy.clone()), 512).unwrap();
    let faulty = Faulty::new(
        Arc::new(sectored),
        512,
        Arc::new(Faults::new(FaultPlan { rules: Vec::new(), seed: 1 })),
    );
    let strict = Strict::new(
        Arc::new(faulty),
        "p1".into(),
        Grain::new(4096, 0).unwrap(),
        false,
        true,
        Arc::default(),
    );
    let recorder = Arc::new(Recorder::new(
        std::fs::File::create(scratch.0.join("trace")).unwrap(),
        "",
        Box::new(|_| ()),
    ));
    let recorded = Recorded::new(Arc::new(strict), 0, recorder);
    let stack = Offset::new(Arc::new(recorded), 4096, 256 << 10).unwrap();
    assert!(stack.properties().non_blocking);
    for (method, _) in all() {
        assert_eq!(ask(&stack, method), Ok(true), "{method}");
        assert_eq!(spy.noted().len(), 1, "{method}");
    }
}
