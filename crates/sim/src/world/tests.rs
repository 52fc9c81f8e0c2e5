use super::*;
use crate::drive::memory::Memory;
use crate::model::memory::Parameters;
use crate::time::US;
use std::sync::Arc;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::Topology;
use trueline_geom::mapping::tables::{PAGE, Tables};

fn world(drives: usize, schedule: Schedule) -> World {
    let memory = || {
        Box::new(Memory::new(&Parameters { command_ns: 1000.0, rate_bytes: 0 })) as Box<dyn Drive>
    };
    World::new((0..drives).map(|_| (memory(), 512)).collect(), schedule)
}

fn read(tag: u64, offset: u64, length: u64) -> Request {
    Request { tag, op: Op::Read, offset, length, fua: false }
}

#[test]
fn requests_follow_one_another_and_the_processor_comes_first() {
    let (mut world, route) = (world(1, Schedule::Fifo), Route::store(0, 1 << 20));
    world.submit(&route, read(7, 0, 512), 5 * US).unwrap();
    world.submit(&route, read(8, 512, 512), 5 * US).unwrap();
    let mut done = Vec::new();
    world.wait(2, &mut done);
    assert_eq!(done, [Completion { tag: 7, at: 6 * US }, Completion { tag: 8, at: 11 * US }]);
    assert_eq!(world.in_flight(), 0);
}

#[test]
fn what_is_outside_or_in_parts_of_sectors_is_refused() {
    let (mut world, route) = (world(1, Schedule::Fifo), Route::store(0, 4096));
    for (offset, length) in [(0, 513), (1, 512), (4096, 512), (u64::MAX, 512)] {
        assert_eq!(world.submit(&route, read(0, offset, length), 0), Err(Errno::Range));
    }
    assert_eq!(world.in_flight(), 0);
}

#[test]
fn virtual_time_ends_with_an_error() {
    let route = Route::store(0, 4096);
    for (idle, cost) in [(Ps::MAX, 0), (Ps::MAX / 2, 1), (0, Ps::MAX), (1, Ps::MAX)] {
        let mut world = world(1, Schedule::Fifo);
        world.think(idle);
        world.think(1);
        assert_eq!(world.submit(&route, read(0, 0, 512), cost), Err(Errno::Io), "{idle} {cost}");
    }
}

#[test]
fn reads_pass_writes() {
    let mut queue = Elevator::new(Schedule::ReadsFirst);
    let command = |tag, op, offset| Command { tag, op, offset, length: 512, fua: false };
    for (tag, op, offset) in
        [(0, Op::Write, 5), (1, Op::Write, 9), (2, Op::Read, 7), (3, Op::Read, 1)]
    {
        queue.push(command(tag, op, offset));
    }
    queue.push(command(4, Op::Flush, 0));
    queue.push(command(5, Op::Read, 0));
    let order: Vec<u64> = std::iter::from_fn(|| queue.pop()).map(|c| c.tag).collect();
    assert_eq!(order, [3, 2, 1, 0, 4, 5]);
}

#[test]
fn clook_goes_up_and_begins_again_but_does_not_pass_a_flush() {
    let mut queue = Elevator::new(Schedule::CLook);
    let command = |tag, op, offset| Command { tag, op, offset, length: 512, fua: false };
    for (tag, offset) in [(0, 5), (1, 9), (2, 1)] {
        queue.push(command(tag, Op::Write, offset));
    }
    assert_eq!(queue.pop().map(|c| c.tag), Some(2), "from where the head is");
    queue.push(command(3, Op::Flush, 0));
    queue.push(command(4, Op::Write, 6));
    queue.push(command(5, Op::Write, 0));
    let order: Vec<u64> = std::iter::from_fn(|| queue.pop()).map(|c| c.tag).collect();
    assert_eq!(
        order,
        [0, 1, 3, 4, 5].map(|tag| if tag == 4 {
            5
        } else if tag == 5 {
            4
        } else {
            tag
        })
    );
}

/// A disk of pages whose places stand in a table behind it, eight bytes each.
struct Tabled(u64);

/// Bytes of the disk, behind which its table begins.
const TABLED: u64 = 4 << 20;

impl geom::Geom for Tabled {
    fn providers(&self) -> Vec<geom::Slot> {
        vec![geom::Slot { name: String::new(), length: TABLED, kind: None }]
    }

    fn topology(&self, _: usize, below: &[Topology]) -> Topology {
        below[0].clone()
    }

    fn map(&self, _: usize, _: u64, length: u64, _: geom::Op) -> geom::Extent {
        geom::Extent::Fail { length }
    }

    fn map_by(
        &self,
        _: usize,
        offset: u64,
        length: u64,
        _: geom::Op,
        tables: &Tables<'_>,
    ) -> geom::Extent {
        match tables.bytes::<8>(0, TABLED + offset / PAGE * 8, length) {
            Ok(_) => geom::Extent::At { consumer: 0, offset: offset + self.0, length },
            Err(answer) => answer,
        }
    }
}

/// A page of a table that is in no memory is read before the bytes of the request, and then kept,
/// as far as there is room.
#[test]
fn a_table_is_read_first() {
    let geom: Arc<dyn geom::Geom> = Arc::new(Tabled(0));
    let disk: Box<dyn Store> = Box::new(Sparse::new(2 * TABLED));
    let below = [Route::store(0, 2 * TABLED)];
    let warm = Route::with_tables(&geom, 0, TABLED, &below, &Arc::from([disk]));
    // 512 pages of the disk have their places in one of the table.
    for (pages, reads) in [(8, [2, 1, 2, 1]), (1, [2, 1, 2, 2])] {
        let (route, mut world) = (warm.cold(pages), world(1, Schedule::Fifo));
        for (offset, reads) in [0, PAGE, 512 * PAGE, 2 * PAGE].into_iter().zip(reads) {
            let (begin, mut done) = (world.now(), Vec::new());
            world.submit(&route, read(7, offset, 512), 0).unwrap();
            world.wait(1, &mut done);
            assert_eq!(done, [Completion { tag: 7, at: begin + reads * US }], "{pages} {offset}");
            assert_eq!(world.in_flight(), 0);
        }
    }
}

/// A block that begins inside of a sector takes one sector more, and the file's last one is whole.
#[test]
fn a_sector_of_which_a_container_has_a_part_is_read() {
    let disk: Box<dyn Store> = Box::new(Sparse::new(2 * TABLED));
    let below = [Route::store(0, 2 * TABLED)];
    for (shift, bytes) in [(0, 1024), (8, 1536)] {
        let geom: Arc<dyn geom::Geom> = Arc::new(Tabled(shift));
        let disks = Arc::from([Box::new(Sparse::new(2 * TABLED)) as Box<dyn Store>]);
        let route = Route::with_tables(&geom, 0, TABLED, &below, &disks);
        let mut world = world(1, Schedule::Fifo);
        // The page of the table is read meanwhile.
        route.read_at(&disks, &mut [0; 8], 0).unwrap();
        world.submit(&route, read(7, 0, 1024), 0).unwrap();
        world.wait(1, &mut Vec::new());
        assert_eq!(world.counters()[0].bytes_read, bytes, "{shift}");
        let write = Request { op: Op::Write, ..read(7, 0, 1024) };
        assert_eq!(world.submit(&route, write, 0).is_err(), shift > 0, "{shift}");
    }
    let (mut world, route) = (world(1, Schedule::Fifo), Route::store(0, disk.length() + 100));
    world.submit(&route, read(7, 2 * TABLED, 100), 0).unwrap();
    world.wait(1, &mut Vec::new());
    assert_eq!(world.counters()[0].bytes_read, 512);
    assert_eq!(world.submit(&route, read(0, 1, 99), 0), Err(Errno::Range));
}
