//! The model of Linux's page cache before a block device against this kernel's: the same writes,
//! and what the device has seen of them.
//!
//! It takes root and a loop device; without them it is skipped, and that is said.

use crate::skip::skip;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use trueline_geom::base::store::Store;
use trueline_geom::mapping::route::Route;
use trueline_host::device::stat::{self, IoCounts};
use trueline_host::disk::file::{self, Access};
use trueline_host::engine::Choice;
use trueline_host::engine::open_file::{Cache, OpenFile};
use trueline_lab::layer::page_cache::{PageCache, Sync};
use trueline_lab::rig::Rig;
use trueline_lab::rig::real::{Real, RigSetup};
use trueline_lab::rig::simulated::Simulated;
use trueline_lab::workload::{self, Needs, Parameters};
use trueline_sim::model::Model;
use trueline_sim::world::{Schedule, World};

/// Bytes of the device: many more blocks than are written.
const SIZE: u64 = 1 << 30;

#[test]
fn this_kernel_reads_and_writes_what_the_model_says() {
    for (size, offset) in
        [(SIZE, 0), (SIZE, 512), (SIZE, 3584), (SIZE + 512, 512), (SIZE + 1024, 512)]
    {
        let Some(device) = LoopDevice::new(size) else { return };
        let found = seen(&device, offset, Cache::Through);
        assert_eq!(
            found,
            modelled(size, offset),
            "{size} bytes, writes {offset} past a block, this kernel left, the model right"
        );
        if (size, offset) == (SIZE, 512) {
            // But for blocks that two of the writes share, each writes two pages, and reads both
            // before.
            assert!(
                found.reads > 390
                    && found.bytes_read == found.reads * 4096
                    && found.bytes_written == 3200 * 512,
                "{found:?}"
            );
        }
    }
}

#[test]
fn past_the_page_cache_nothing_is_read() {
    let Some(device) = LoopDevice::new(SIZE) else { return };
    let found = seen(&device, 512, Cache::Around);
    assert_eq!((found.reads, found.bytes_written), (0, 1600 * 512));
}

/// 200 random writes.
fn writes(rig: &mut dyn Rig, offset: u64) {
    let parameters = Parameters { offset, count: Some(200), sync: true, ..Parameters::default() };
    let kind = workload::named("random-write").expect("a workload");
    let Needs::Blocks(make) = kind.needs else { panic!("random-write runs on blocks") };
    let run = make(&parameters)
        .and_then(|work| work.run(rig, 1, &mut |_| true))
        .expect("they are written");
    assert_eq!((run.ops, run.errors), (200, 0), "{:?}", run.first_error);
}

/// What a device sees of them.
fn seen(device: &LoopDevice, offset: u64, cache: Cache) -> IoCounts {
    let opened = file::open_for(&device.path, Access::Write).expect("a loop device of our own");
    let medium = opened.store;
    let file = OpenFile::new(&medium, cache, &device.path).expect("it is open");
    let shape = RigSetup { depth: 1, largest: 4096, engine: Choice::Best };
    let mut rig =
        Real::new(Route::store(0, medium.length()), 512, vec![file], shape).expect("a rig");
    medium.start_writeback(0, 0);
    let before = stat::done(&device.path).expect("sysfs has it");
    writes(&mut rig, offset);
    let after = stat::done(&device.path).expect("sysfs has it");
    IoCounts {
        reads: after.reads - before.reads,
        bytes_read: after.bytes_read - before.bytes_read,
        // A flush is counted as a write here and not there.
        writes: 0,
        bytes_written: after.bytes_written - before.bytes_written,
    }
}

/// What a memory disk sees of them behind the model.
fn modelled(size: u64, offset: u64) -> IoCounts {
    let model = Model::parse(Model::named("md").expect("a model")).expect("a model");
    let world = World::new(vec![(model.drive(1), 512)], Schedule::Fifo);
    let mut inner = Simulated::new(world, Route::store(0, size), 512, 0);
    let mut rig = PageCache::alone(Sync::Medium, 1 << 30, &mut inner).expect("a cache");
    writes(&mut rig, offset);
    let added = rig.caused_reads();
    let drive = inner.counters()[0];
    assert_eq!(drive.reads, added);
    IoCounts {
        reads: drive.reads,
        bytes_read: drive.bytes_read,
        writes: 0,
        bytes_written: drive.bytes_written,
    }
}

/// A loop device over a sparse file, taken away when it is dropped. No other program looks at it
/// meanwhile.
struct LoopDevice {
    path: PathBuf,
    file: PathBuf,
    held: Option<Child>,
}

impl LoopDevice {
    /// One of `size` bytes; `None`, with a word, where none can be had.
    fn new(size: u64) -> Option<LoopDevice> {
        let skipped = |why: &str| skip(&format!("the page cache of this kernel: {why}"));
        let name =
            format!("trueline-page-cache-{}-{:?}", std::process::id(), std::thread::current().id());
        let file = std::env::temp_dir().join(name.replace(['(', ')'], ""));
        std::fs::File::create(&file).and_then(|made| made.set_len(size)).expect("a sparse file");
        let made = Command::new("losetup").args(["--find", "--show"]).arg(&file).output();
        let path = match made {
            Ok(ran) if ran.status.success() => {
                PathBuf::from(String::from_utf8_lossy(&ran.stdout).trim())
            }
            Ok(ran) => {
                skipped(&format!("losetup: {}", String::from_utf8_lossy(&ran.stderr).trim()));
                let _ = std::fs::remove_file(&file);
                return None;
            }
            Err(error) => {
                skipped(&format!("losetup: {error}"));
                let _ = std::fs::remove_file(&file);
                return None;
            }
        };
        let mut device = LoopDevice { path, file, held: None };
        device.held = device.hold();
        if device.held.is_none() {
            skipped("flock(1) does not lock the device");
            return None;
        }
        Some(device)
    }

    /// Keeps udev from it, which looks at a device when it appears, under a shared lock, and waits
    /// where another has it alone (systemd's "Locking Block Device Access"). That the lock was
    /// given says that no program is looking.
    fn hold(&self) -> Option<Child> {
        let mut flock = Command::new("flock");
        flock.arg("--exclusive").arg(&self.path).args(["sh", "-c", "echo held; exec cat"]);
        let mut held = flock.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let mut said = String::new();
        let read = BufReader::new(held.stdout.take()?).read_line(&mut said);
        (read.is_ok() && said == "held\n").then_some(held)
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if let Some(mut held) = self.held.take() {
            // cat ends with its input.
            drop(held.stdin.take());
            let _ = held.wait();
        }
        let _ = Command::new("losetup").arg("--detach").arg(&self.path).status();
        let _ = std::fs::remove_file(Path::new(&self.file));
    }
}
