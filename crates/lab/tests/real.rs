//! Workloads on what is there: files, sets of files, loop devices, memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use skip::skip;
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;
use trueline_geom::base::topology::Topology;
use trueline_geom::class::stripe::Raid0;
use trueline_geom::mapping::geom::{self, Extent, Geom, Slot};
use trueline_geom::mapping::route::Route;
use trueline_host::disk::file::{self, Access, Medium};
use trueline_host::disk::memory::Memory;
use trueline_host::engine::Choice;
use trueline_host::engine::open_file::{Cache, OpenFile};
use trueline_lab::rig::real::{Real, RigSetup};
use trueline_lab::rig::stored::Stored;
use trueline_lab::rig::{Op, Request, Rig};
use trueline_lab::streams::{Ask, Limit, run};
use trueline_sim::random::Random;

#[path = "../../../tests/skip.rs"]
mod skip;

const SECTOR: u64 = 512;
const LENGTH: u64 = 1 << 20;

/// Files that go with the test.
struct Files(PathBuf);

impl Files {
    fn new() -> Files {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "trueline-lab-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(&dir).unwrap();
        Files(dir)
    }

    /// A file of [`LENGTH`] zeros.
    fn zeros(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, vec![0; usize::try_from(LENGTH).unwrap()]).unwrap();
        path
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn opened(path: &Path) -> Medium {
    file::open_for(path, Access::Write).unwrap().store
}

/// A rig over `media`; past the page cache where the files here can be read so by the sector, which
/// on tmpfs and Btrfs they cannot.
fn rig(route: &Route, media: &[Medium], largest: u64, engine: Choice) -> Real {
    let handle = |medium: &Medium| {
        let named = |cache| OpenFile::new(medium, cache, Path::new("image"));
        named(Cache::Around)
            .ok()
            .filter(|handle| handle.grain() <= SECTOR)
            .unwrap_or_else(|| named(Cache::Through).unwrap())
    };
    Real::new(
        route.clone(),
        SECTOR,
        media.iter().map(handle).collect(),
        RigSetup { depth: 32, largest, engine },
    )
    .unwrap()
}

/// The end of a provider, from a byte of it, and whether it says that it is.
struct From(u64, bool);

impl Geom for From {
    fn providers(&self) -> Vec<Slot> {
        Vec::new()
    }

    fn topology(&self, _slot: usize, below: &[Topology]) -> Topology {
        below[0].clone()
    }

    fn map(&self, _slot: usize, offset: u64, length: u64, _op: geom::Op) -> Extent {
        Extent::At { consumer: 0, offset: offset + self.0, length }
    }

    fn shift(&self, _slot: usize) -> Option<u64> {
        self.1.then_some(self.0)
    }
}

/// Two files as a stripe, and a partition on it that begins on sector 63.
fn partition_of_a_set() -> Route {
    let chunk = 16 << 10;
    let set: Arc<dyn Geom> = Arc::new(Raid0::new("stripe/data".into(), chunk, 2, LENGTH).unwrap());
    let set = Route::new(&set, 0, 2 * LENGTH, &[Route::store(0, LENGTH), Route::store(1, LENGTH)]);
    let slice: Arc<dyn Geom> = Arc::new(From(63 * SECTOR, true));
    Route::new(&slice, 0, 2 * LENGTH - 63 * SECTOR, &[set])
}

/// The sectors of a provider that hold anything.
fn written(route: &Route, media: &[Medium]) -> BTreeSet<u64> {
    let stores: Vec<Box<dyn Store>> =
        media.iter().map(|medium| Box::new(again(medium)) as Box<dyn Store>).collect();
    let mut sector = [0; 512];
    let mut holds = |n: &u64| {
        route.read_at(&stores, &mut sector, n * SECTOR).unwrap();
        sector.iter().any(|&byte| byte != 0)
    };
    (0..route.length() / SECTOR).filter(|n| holds(n)).collect()
}

/// The same bytes, as they are now.
fn again(medium: &Medium) -> Memory {
    let memory = Memory::new(medium.length()).unwrap();
    let mut bytes = vec![0; usize::try_from(medium.length()).unwrap()];
    medium.read_at(&mut bytes, 0).unwrap();
    memory.write_at(&bytes, 0).unwrap();
    memory
}

#[test]
fn requests_over_a_set_land_where_the_route_says() {
    let files = Files::new();
    let route = partition_of_a_set();
    // Memory for less than a request takes, and for all of it.
    for (engine, largest) in
        [(Choice::Best, 16 << 10), (Choice::Best, 1 << 20), (Choice::Sync, 16 << 10)]
    {
        let media = [opened(&files.zeros("a")), opened(&files.zeros("b"))];
        let mut rig = rig(&route, &media, largest, engine);
        let requests = [(0, 1), (10, 8), (31, 33), (100, 200), (500, 7), (4032, 1)];
        let (mut want, mut done) = (BTreeSet::new(), Vec::new());
        for (tag, &(first, sectors)) in requests.iter().enumerate() {
            let (offset, length) = (first * SECTOR, sectors * SECTOR);
            rig.push(Request { tag: tag as u64, op: Op::Write, offset, length, fua: tag == 2 })
                .unwrap();
            want.extend(first..first + sectors);
        }
        rig.push(Request { tag: 99, op: Op::Flush, offset: 0, length: 0, fua: false }).unwrap();
        rig.wait(usize::MAX, &mut done).unwrap();
        assert!(done.iter().all(|done| done.error.is_none()), "{done:?}");
        let tags: Vec<u64> = done.iter().map(|done| done.tag).collect();
        assert_eq!(
            (tags.len(), tags.iter().copied().collect()),
            (7, BTreeSet::from([0, 1, 2, 3, 4, 5, 99]))
        );
        assert_eq!(written(&route, &media), want, "{engine:?}, {largest}");
        let outside = Request {
            tag: 1,
            op: Op::Read,
            offset: route.length() - SECTOR,
            length: 2 * SECTOR,
            fua: false,
        };
        assert_eq!(rig.push(outside), Err(Errno::Range));
        done.clear();
        rig.wait(1, &mut done).unwrap();
        assert_eq!(done, []);
    }
}

/// A request of more transfers than the engine does at a time, and more requests than the rig says
/// it takes.
#[test]
fn requests_longer_than_all_memory_are_answered_once() {
    let files = Files::new();
    let route = partition_of_a_set();
    for engine in [Choice::Best, Choice::Sync] {
        let media = [opened(&files.zeros("a")), opened(&files.zeros("b"))];
        let handles = media
            .iter()
            .map(|medium| OpenFile::new(medium, Cache::Through, Path::new("image")).unwrap())
            .collect();
        let mut rig =
            Real::new(route.clone(), SECTOR, handles, RigSetup { depth: 1, largest: 4096, engine })
                .unwrap();
        assert_eq!(rig.depth(), 1);
        let (mut want, mut done) = (BTreeSet::new(), Vec::new());
        for tag in 0..4 {
            let (first, sectors) = (tag * 300, 200);
            rig.push(Request {
                tag,
                op: Op::Write,
                offset: first * SECTOR,
                length: sectors * SECTOR,
                fua: false,
            })
            .unwrap();
            want.extend(first..first + sectors);
        }
        // The second half of it is outside: what was asked for before is not left behind.
        let outside = Request {
            tag: 9,
            op: Op::Read,
            offset: route.length() - 8 * SECTOR,
            length: 16 * SECTOR,
            fua: false,
        };
        assert_eq!(rig.push(outside), Err(Errno::Range));
        for least in 1..=4 {
            rig.wait(1, &mut done).unwrap();
            assert!(done.len() >= least, "{done:?}");
        }
        let mut tags: Vec<u64> = done.iter().map(|done| done.tag).collect();
        tags.sort_unstable();
        assert_eq!(tags, [0, 1, 2, 3]);
        assert!(done.iter().all(|done| done.error.is_none()), "{done:?}");
        assert_eq!(written(&route, &media), want, "{engine:?}");
        rig.wait(1, &mut done).unwrap();
        assert_eq!(done.len(), 4);
    }
}

/// Whether a request is one transfer, and goes straight down, is of no consequence to its answer.
#[test]
fn a_plain_range_answers_like_any_route() {
    let files = Files::new();
    for engine in [Choice::Best, Choice::Sync] {
        let answered = [true, false].map(|plain| {
            let end: Arc<dyn Geom> = Arc::new(From(63 * SECTOR, plain));
            let route = Route::new(&end, 0, LENGTH - 63 * SECTOR, &[Route::store(0, LENGTH)]);
            assert_eq!(route.medium().is_some(), plain);
            let media = [opened(&files.zeros("a"))];
            let mut rig = rig(&route, &media, 4096, engine);
            let (mut random, mut answers, mut done) = (Random::new(11), Vec::new(), Vec::new());
            for tag in 0..400 {
                // Reads last: what they bring would be written by what follows.
                let moves = if tag < 200 { Op::Write } else { Op::Read };
                let op = if random.below(4) == 0 { Op::Flush } else { moves };
                // Up to twice what is one transfer; some end outside, and some begin there.
                let (sector, sectors) =
                    (random.below(route.length() / SECTOR + 20), 1 + random.below(16));
                let (offset, length) =
                    if op == Op::Flush { (0, 0) } else { (sector * SECTOR, sectors * SECTOR) };
                match rig.push(Request { tag, op, offset, length, fua: tag % 7 == 0 }) {
                    Ok(()) => {}
                    Err(errno) => answers.push((tag, Some(errno))),
                }
                if tag % 5 == 0 {
                    rig.wait(1, &mut done).unwrap();
                }
            }
            let far = Request {
                tag: 400,
                op: Op::Read,
                offset: u64::MAX - 511,
                length: 4096,
                fua: false,
            };
            answers.push((400, rig.push(far).err()));
            rig.wait(usize::MAX, &mut done).unwrap();
            answers.extend(done.iter().map(|done| (done.tag, done.error)));
            answers.sort_by_key(|&(tag, _)| tag);
            (answers, written(&route, &media))
        });
        let [(plain, by_plain), (other, by_other)] = answered;
        assert_eq!((&plain, by_plain), (&other, by_other), "{engine:?}");
        assert_eq!(
            plain.iter().map(|&(tag, _)| tag).collect::<Vec<_>>(),
            (0..=400).collect::<Vec<_>>()
        );
        assert!(plain.iter().any(|&(_, error)| error == Some(Errno::Range)));
        assert!(plain.iter().any(|&(_, error)| error.is_none()));
    }
}

/// Random reads of 4 KiB.
fn reads(length: u64) -> impl FnMut(usize) -> Option<Ask> {
    let mut random = Random::new(3);
    move |_| {
        Some(Ask {
            op: Op::Read,
            offset: random.below(length / 4096) * 4096,
            length: 4096,
            fua: false,
        })
    }
}

#[test]
fn streams_are_counted_to_the_request() {
    let files = Files::new();
    let medium = [opened(&files.zeros("a"))];
    for engine in [Choice::Best, Choice::Sync] {
        let mut rig = rig(&Route::store(0, LENGTH), &medium, 4096, engine);
        let run = run(&mut rig, 32, Limit::Count(3000), &mut reads(LENGTH)).unwrap();
        assert_eq!(
            (run.ops, run.bytes, run.errors, run.latency.len()),
            (3000, 3000 * 4096, 0, 3000)
        );
        assert!(run.ns > 0 && !rig.is_virtual());
    }
}

#[test]
fn a_file_cut_short_in_a_run_is_counted_and_the_run_ends() {
    let files = Files::new();
    for engine in [Choice::Best, Choice::Sync] {
        let path = files.zeros("a");
        let medium = [opened(&path)];
        let mut rig = rig(&Route::store(0, LENGTH), &medium, 4096, engine);
        let (mut source, mut asked) = (reads(LENGTH), 0);
        let mut cutting = |stream| {
            asked += 1;
            if asked == 500 {
                OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
            }
            source(stream)
        };
        let run = run(&mut rig, 32, Limit::Count(1000), &mut cutting).unwrap();
        assert_eq!(run.ops + run.errors, 1000);
        assert!(run.ops >= 400 && run.errors > 300, "{} done, {} failed", run.ops, run.errors);
        assert!(run.first_error.unwrap().ends_with(": outside the device"));
    }
}

/// A disk of larger sectors than the workload knows: time alone would never end the run, because
/// nothing takes any.
#[test]
fn a_run_of_which_every_request_is_refused_ends() {
    let stores: [Box<dyn Store>; 1] = [Box::new(Memory::new(LENGTH).unwrap())];
    let mut rig = Stored::new(&stores, Route::store(0, LENGTH), 4096);
    let mut unaligned = |_| Some(Ask { op: Op::Read, offset: 512, length: 4096, fua: false });
    let run = run(&mut rig, 1, Limit::Time(1_000_000), &mut unaligned).unwrap();
    assert_eq!(
        (run.ops, run.errors, run.first_error.as_deref()),
        (0, 1000, Some("read at 512: not in whole sectors of the device"))
    );
}

fn losetup(options: &[&str], on: &Path) -> Option<PathBuf> {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let ran = Command::new("losetup").env("PATH", path).args(options).arg(on).output().ok()?;
    ran.status.success().then(|| PathBuf::from(String::from_utf8_lossy(&ran.stdout).trim()))
}

#[test]
fn a_device_that_goes_away_in_a_run_is_counted_and_the_run_ends() {
    let files = Files::new();
    let path = files.zeros("a");
    let Some(device) = losetup(&["--find", "--show"], &path) else {
        return skip("no loop devices here (root, losetup and the loop driver)");
    };
    for engine in [Choice::Best, Choice::Sync] {
        files.zeros("a");
        losetup(&["--set-capacity"], &device).unwrap();
        let medium = [file::open(&device).unwrap().store];
        let mut rig = rig(&Route::store(0, LENGTH), &medium, 4096, engine);
        let (mut source, mut asked) = (reads(LENGTH), 0);
        let mut unplugging = |stream| {
            asked += 1;
            if asked == 500 {
                OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
                losetup(&["--set-capacity"], &device).unwrap();
            }
            source(stream)
        };
        let run = run(&mut rig, 32, Limit::Count(1000), &mut unplugging);
        let run = run.unwrap();
        assert_eq!(run.ops + run.errors, 1000);
        assert!(
            run.ops >= 400 && run.errors > 300 && run.first_error.is_some(),
            "{} done, {} failed",
            run.ops,
            run.errors
        );
    }
    losetup(&["--detach"], &device).unwrap();
}

/// A lock of this program on an image stays while handles come and go.
#[test]
fn an_image_stays_locked_while_it_is_measured() {
    let files = Files::new();
    let path = files.zeros("a");
    let medium = opened(&path);
    drop(OpenFile::new(&medium, Cache::Through, &path).unwrap());
    let handle = OpenFile::new(&medium, Cache::Through, &path).unwrap();
    // A lock of one's own does not hold oneself off: another process has to ask.
    let locked = || {
        let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(&path).unwrap());
        fs::read_to_string("/proc/locks")
            .unwrap()
            .lines()
            .any(|line| line.contains("OFDLCK") && line.contains(&format!(":{inode} ")))
    };
    assert!(locked());
    drop(handle);
}

#[test]
fn memory_is_a_rig() {
    let stores: [Box<dyn Store>; 1] = [Box::new(Memory::new(LENGTH).unwrap())];
    let mut rig = Stored::new(&stores, Route::store(0, LENGTH), SECTOR);
    let write = Request { tag: 1, op: Op::Write, offset: 1024, length: 512, fua: true };
    rig.push(write).unwrap();
    assert_eq!(rig.push(Request { offset: 1025, ..write }), Err(Errno::Unaligned));
    assert_eq!(rig.push(Request { offset: LENGTH, ..write }), Err(Errno::Range));
    let mut done = Vec::new();
    rig.wait(1, &mut done).unwrap();
    assert_eq!((done.len(), done[0].tag, done[0].error), (1, 1, None));
    let mut around = [0; 1536];
    stores[0].read_at(&mut around, 512).unwrap();
    let holds: Vec<bool> =
        around.chunks(512).map(|sector| sector.iter().any(|&byte| byte != 0)).collect();
    assert_eq!(holds, [false, true, false]);
    let run = run(&mut rig, 32, Limit::Count(100), &mut reads(LENGTH)).unwrap();
    assert_eq!((run.ops, run.errors, run.latency.len()), (100, 0, 100));
}
