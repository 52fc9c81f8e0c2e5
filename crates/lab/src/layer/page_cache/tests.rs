use super::*;
use crate::layer::stack::LayerStack;
use crate::rig::Request;
use crate::workload::recorder::{Recorder, ran};
use crate::workload::{Parameters, random};

/// 4 GiB, all blocks of which fit the cache.
const SIZE: u64 = 4 << 30;

fn writes(inner: &mut Recorder, offset: u64, sync: Sync) -> u64 {
    let mut rig = PageCache::alone(sync, 1 << 30, inner).unwrap();
    let writes = crate::workload::recorder::made(
        &random::WRITE,
        &Parameters { offset, count: Some(200), ..Parameters::default() },
    );
    let run = writes.run(&mut rig, 1, &mut |_| true).unwrap();
    assert_eq!((run.ops, run.errors), (200, 0));
    rig.caused_reads()
}

/// Reads, and bytes read and written.
fn seen(inner: &Recorder) -> (usize, u64, u64) {
    let bytes =
        |op: Op| inner.asked.iter().filter(|(own, ..)| *own == op).map(|(_, _, bytes)| bytes).sum();
    (
        inner.asked.iter().filter(|(op, ..)| *op == Op::Read).count(),
        bytes(Op::Read),
        bytes(Op::Write),
    )
}

#[test]
fn two_hundred_writes_a_sector_off_read_four_hundred_pages() {
    let mut inner = Recorder::new(SIZE);
    assert_eq!(writes(&mut inner, 512, Sync::Drive), 400);
    assert_eq!(seen(&inner), (400, 400 * 4096, 3200 * 512));
    let mut inner = Recorder::new(SIZE);
    assert_eq!(writes(&mut inner, 0, Sync::Drive), 0);
    assert_eq!(seen(&inner), (0, 0, 1600 * 512));
}

#[test]
fn on_a_device_of_an_odd_size_the_drive_sees_what_was_asked() {
    let mut inner = Recorder::new(SIZE + 512);
    assert_eq!(writes(&mut inner, 512, Sync::Drive), 0);
    assert_eq!(seen(&inner), (0, 0, 1600 * 512));
    assert!(inner.asked.iter().all(|(_, at, _)| at % 4096 == 512));
    let blocks = [SIZE, SIZE + 2048, SIZE + 1024, SIZE + 512].map(|length| block_of(length, 512));
    assert_eq!(
        (blocks, block_of(SIZE, 4096), block_of(512, 4096)),
        ([4096, 2048, 1024, 512], 4096, 4096)
    );
}

#[test]
fn pages_are_read_one_by_one_and_then_written_together() {
    let mut inner = Recorder::new(1 << 20);
    let mut rig = PageCache::alone(Sync::Medium, 1 << 20, &mut inner).unwrap();
    let mut done = Vec::new();
    let write = |tag, offset, length| Request { tag, op: Op::Write, offset, length, fua: false };
    rig.push(write(7, 512, 8192)).unwrap();
    rig.wait(1, &mut done).unwrap();
    // What is in the cache by then is not read again, and the last block only grows.
    rig.push(write(8, 1024, 8192 + 4096)).unwrap();
    rig.wait(1, &mut done).unwrap();
    let asked = [
        (Op::Read, 0, 4096),
        (Op::Read, 8192, 4096),
        (Op::Write, 0, 12288),
        (Op::Flush, 0, 0),
        (Op::Read, 12288, 4096),
        (Op::Write, 0, 16384),
        (Op::Flush, 0, 0),
    ];
    assert_eq!(done.iter().map(|d| (d.tag, d.at)).collect::<Vec<_>>(), [(7, 4000), (8, 7000)]);
    assert_eq!(inner.asked, asked);
}

#[test]
fn reads_ask_for_whole_blocks_that_are_not_there() {
    let mut inner = Recorder::new(1 << 20);
    let mut rig = PageCache::alone(Sync::Drive, 1 << 20, &mut inner).unwrap();
    let mut done = Vec::new();
    let read = |tag, offset, length| Request { tag, op: Op::Read, offset, length, fua: false };
    for (tag, offset, length) in [(1, 512, 4096), (2, 0, 8192), (3, 4096, 8192)] {
        rig.push(read(tag, offset, length)).unwrap();
        rig.wait(1, &mut done).unwrap();
    }
    assert_eq!(rig.push(read(4, 1 << 20, 512)), Err(Errno::Range));
    assert_eq!((done.len(), rig.caused_reads()), (3, 0));
    assert_eq!(inner.asked, [(Op::Read, 0, 8192), (Op::Read, 8192, 4096)]);
}

#[test]
fn a_small_cache_forgets() {
    let mut inner = Recorder::new(1 << 20);
    let mut rig = PageCache::alone(Sync::Drive, 8192, &mut inner).unwrap();
    let mut done = Vec::new();
    for at in [512, 4096 + 512, 8192 + 512, 512] {
        rig.push(Request { tag: at, op: Op::Write, offset: at, length: 512, fua: false }).unwrap();
        rig.wait(1, &mut done).unwrap();
    }
    assert_eq!(rig.caused_reads(), 4);
}

#[test]
fn several_at_a_time_are_each_done_once() {
    let mut inner = Recorder::new(SIZE);
    let mut rig = PageCache::alone(Sync::Medium, 1 << 30, &mut inner).unwrap();
    let deep = Parameters { offset: 512, count: Some(500), qd: Some(8), ..Parameters::default() };
    let run = crate::workload::recorder::made(&random::WRITE, &deep)
        .run(&mut rig, 3, &mut |_| true)
        .unwrap();
    assert_eq!((run.ops, run.errors, run.bytes), (500, 0, 500 * 4096));
    let mut plain = Recorder::new(SIZE);
    ran(&random::WRITE, &deep, &mut plain);
    assert_eq!(plain.asked.len(), 500);
}

#[test]
fn the_end_of_a_device_that_fills_no_block_is_not_touched() {
    for (kind, keys) in [("page-cache", "block = 1024"), ("loop", "")] {
        let length = 65536 - 512;
        let mut inner = Recorder::new(length);
        let stack = LayerStack::new(vec![(kind.into(), keys.parse().unwrap())]).unwrap();
        let mut rig = stack.over(&mut inner).unwrap();
        let shown = rig.length();
        let mut done = Vec::new();
        for (op, offset, length) in
            [(Op::Write, shown - 512, 512), (Op::Read, shown - 1024, 1024), (Op::Flush, 0, 0)]
        {
            rig.push(Request { tag: 1, op, offset, length, fua: false }).unwrap();
            rig.wait(1, &mut done).unwrap();
        }
        assert!(done.iter().all(|end| end.error.is_none()), "{kind}: {done:?}");
        assert!(shown < length && inner.asked.iter().all(|&(_, at, bytes)| at + bytes <= shown));
    }
}
