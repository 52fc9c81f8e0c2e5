//! The model of Linux's page cache before a block device against this kernel's: the same writes,
//! and what the device has seen of them.
//!
//! It takes root and a loop device; without them it is skipped, and that is said.

use crate::device::{LoopDevice, issued};
use crate::modelled::{memory, mixed, plans, sorted};
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use trueline_geom::base::store::Store;
use trueline_geom::mapping::route::Route;
use trueline_host::device::stat::{self, IoCounts};
use trueline_host::disk::file::{self, Access};
use trueline_host::engine::Choice;
use trueline_host::engine::open_file::{Cache, OpenFile};
use trueline_lab::layer::page_cache::{PageCache, Sync};
use trueline_lab::rig::real::{Real, RigSetup};
use trueline_lab::rig::{Op, Rig};
use trueline_lab::workload::{self, Needs, Parameters};

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
    let mut inner = memory(size);
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

#[test]
fn each_request_becomes_the_requests_of_this_kernel() {
    const NEAR: u64 = 1 << 20;
    let devices = [(SIZE, 1), (SIZE, 2), (SIZE + 512, 3), (SIZE + 1024, 4), (SIZE + 2048, 5)];
    let all = devices.map(|(size, seed)| (size, seed, false)).into_iter().chain([(SIZE, 6, true)]);
    for (size, seed, waits) in all {
        let mut asks = mixed(seed, NEAR);
        // Where blocks are smaller than pages, a read fetches what a folio of several pages lacks,
        // and folios are not modelled.
        asks.retain(|ask| size == SIZE || ask.op != Op::Read);
        // A write that waits writes what else is dirty of its folios, so all wait or none does.
        asks.iter_mut().for_each(|ask| ask.fua = waits && ask.op == Op::Write);
        let planned = sorted(plans("page-cache", "", size, &asks));
        // Another program's sync(2) writes what is dirty before its time, so a sequence is repeated
        // that differs; a model that is wrong differs each time.
        let mut differs = Vec::new();
        for _ in 0..3 {
            let Some(device) = LoopDevice::new(size) else { return };
            let file = File::options().read(true).write(true).open(&device.path).expect("our own");
            fadvise(&file, 0, None, Advice::Random).expect("a file has advice");
            let Some(found) = issued(&device.path, &file, &asks) else { return };
            differs = asks.iter().zip(found.into_iter().zip(&planned)).collect();
            differs.retain(|(_, (found, planned))| found != *planned);
            if differs.is_empty() {
                break;
            }
        }
        assert!(differs.is_empty(), "{size} bytes, seed {seed}: {:?}", differs[0]);
    }
}
