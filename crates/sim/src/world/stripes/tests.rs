use super::*;
use crate::model::Model;
use crate::world::{Request, Schedule, World};
use trueline_geom::base::error::Errno;
use trueline_geom::base::topology::{ParityRows, Topology};
use trueline_geom::mapping::geom::{Extent, Op as Way, Slot};

const CHUNK: u64 = 64 << 10;
/// Data of each member begin here, and so off a multiple of 4096 where that is wanted.
const BEGIN: u64 = 1 << 20;

/// A set with parity, left-symmetric, with so many chunks of parity.
struct Set {
    members: u64,
    parity: u64,
}

impl Rows for Set {
    fn chunk(&self) -> u64 {
        CHUNK
    }

    fn data(&self) -> u64 {
        self.members - self.parity
    }

    fn member(&self, row: u64, nth: u64) -> usize {
        let p = self.members - 1 - row % self.members;
        usize::try_from((p + self.parity + nth) % self.members).unwrap()
    }

    fn parity(&self, row: u64) -> [Option<usize>; 2] {
        let p = self.members - 1 - row % self.members;
        let index = |n: u64| usize::try_from(n % self.members).ok();
        [index(p), if self.parity == 2 { index(p + 1) } else { None }]
    }

    fn begin(&self, _member: usize) -> u64 {
        BEGIN
    }
}

impl Geom for Set {
    fn providers(&self) -> Vec<Slot> {
        Vec::new()
    }

    fn topology(&self, _slot: usize, below: &[Topology]) -> Topology {
        below[0].clone()
    }

    fn map(&self, _slot: usize, _offset: u64, length: u64, _op: Way) -> Extent {
        Extent::ReadOnly { length }
    }

    fn rows(&self, _slot: usize) -> Option<&dyn Rows> {
        Some(self)
    }
}

fn stripes(members: u64, parity: u64) -> Stripes {
    let geom: Arc<dyn Geom> = Arc::new(Set { members, parity });
    let below: Arc<[Route]> = (0..usize::try_from(members).unwrap())
        .map(|member| Route::store(member, 1 << 30))
        .collect();
    Stripes::new(&geom, 0, &below).unwrap()
}

/// Commands of each kind and their bytes: reads, writes.
type Sum = ((usize, u64), (usize, u64));

/// Carries a write out, a round at a time: the sums of all its commands, and the tags that ended.
fn carry(stripes: &mut Stripes, first: Next) -> (Sum, Vec<u64>) {
    let (mut sum, mut done) = (Sum::default(), Vec::new());
    let mut rounds = VecDeque::from([first]);
    while let Some(next) = rounds.pop_front() {
        done.extend(next.done);
        for io in next.commands {
            let side = if io.op == Op::Read { &mut sum.0 } else { &mut sum.1 };
            (side.0, side.1) = (side.0 + 1, side.1 + io.length);
            assert_eq!(io.offset % PAGE, 0);
            rounds.push_back(stripes.finish(io.batch));
        }
    }
    (sum, done)
}

fn write(stripes: &mut Stripes, offset: u64, length: u64) -> Sum {
    let first = stripes.write(7, offset, length, false);
    let (sum, done) = carry(stripes, first);
    assert_eq!(done, [7], "{length} bytes at {offset}");
    sum
}

#[test]
fn a_full_row_is_written_without_a_read() {
    for (members, parity) in [(3, 1), (4, 1), (8, 1), (6, 2)] {
        let row = CHUNK * (members - parity);
        let all = usize::try_from(members).unwrap();
        assert_eq!(
            write(&mut stripes(members, parity), 5 * row, row),
            ((0, 0), (all, CHUNK * members))
        );
    }
}

/// The lesser of the two ways is read, and on a tie the rest of the data.
#[test]
fn one_page_is_read_by_the_way_that_reads_less() {
    let pages = |members, parity| write(&mut stripes(members, parity), 0, PAGE).0.0;
    assert_eq!([3, 4, 5, 8].map(|members| pages(members, 1)), [1, 2, 2, 2]);
    assert_eq!([4, 5, 6, 10].map(|members| pages(members, 2)), [1, 2, 3, 3]);
    // Written are the page and its parity in any case.
    assert_eq!(write(&mut stripes(8, 1), 0, PAGE).1, (2, 2 * PAGE));
    assert_eq!(write(&mut stripes(8, 2), 0, PAGE).1, (3, 3 * PAGE));
}

#[test]
fn what_is_in_the_cache_is_not_read_again() {
    let mut set = stripes(8, 1);
    assert_eq!(write(&mut set, 0, PAGE).0.0, 2);
    assert_eq!(write(&mut set, 0, PAGE).0.0, 0);
    // 256 other stripes, and it is read again.
    for row in 1..17 {
        write(&mut set, row * 7 * CHUNK, CHUNK);
    }
    assert_eq!(write(&mut set, 0, PAGE).0.0, 2);
}

/// A page that begins at sector 63 of the set is two pages in parts; both are read first.
#[test]
fn a_page_off_the_grain_is_two() {
    let ((reads, bytes), writes) = write(&mut stripes(8, 1), 63 * 512, PAGE);
    // Two stripes, each the old page and the parity; pages that follow each other are one command.
    assert_eq!((reads, bytes, writes), (2, 4 * PAGE, (2, 4 * PAGE)));
    // Across two chunks they are on two members.
    assert_eq!(write(&mut stripes(8, 1), CHUNK - 512, PAGE).0.1, 4 * PAGE);
}

#[test]
fn a_stripe_under_way_takes_further_writes_together() {
    let mut set = stripes(8, 1);
    let first = set.write(1, 0, PAGE, false);
    // They wait for the stripe: nothing is sent.
    for (tag, chunk) in [(2, 1), (3, 2), (4, 3)] {
        assert!(set.write(tag, chunk * CHUNK, PAGE, true).commands.is_empty());
    }
    let (sum, mut done) = carry(&mut set, first);
    done.sort_unstable();
    assert_eq!(done, [1, 2, 3, 4]);
    // The first by its own old page and parity; the three others are three old pages or four of the
    // rest, with the parity in the cache already.
    assert_eq!(sum, ((2 + 3, 5 * PAGE), (2 + 4, 6 * PAGE)));
}

/// More than the cache holds is written in parts, all of it once.
#[test]
fn a_request_larger_than_the_cache_ends() {
    let length = 40 * 7 * CHUNK;
    assert_eq!(write(&mut stripes(8, 1), 0, length), ((0, 0), (8 * 3, 40 * 8 * CHUNK)));
}

/// Findings on a full stripe off its place say what is carried out here.
#[test]
fn full_stripes_off_their_place_take_what_the_topology_says() {
    for (members, parity) in [(3, 1), (4, 1), (6, 1), (4, 2), (7, 2)] {
        let rows = ParityRows { chunk: CHUNK, data: members - parity, parity };
        let row = rows.full_stripe().unwrap();
        for remainder in (0..row).step_by(24 << 9).chain([512, CHUNK - 512, row - PAGE]) {
            let ((_, read), (_, written)) = write(&mut stripes(members, parity), remainder, row);
            let said = rows.full_write(remainder).unwrap();
            assert_eq!(
                (read, written),
                (said.reads * PAGE, said.writes * PAGE),
                "{rows:?} {remainder}"
            );
        }
    }
}

#[test]
fn a_set_is_not_written_that_has_a_host_managed_member() {
    let drive = |name| Model::parse(Model::named(name).unwrap()).unwrap().drive(1);
    let drives = ["md", "md", "md", "smr-hm-14tb"].map(|name| (drive(name), 512));
    let mut world = World::new(drives.into(), Schedule::Fifo);
    let write = Request { tag: 1, op: Op::Write, offset: 0, length: PAGE, fua: false };
    for (members, told) in [([0, 1, 2], Ok(())), ([0, 1, 3], Err(Errno::Unsupported))] {
        let geom: Arc<dyn Geom> = Arc::new(Set { members: 3, parity: 1 });
        let below = members.map(|member| Route::store(member, 1 << 30));
        assert_eq!(world.submit(&Route::new(&geom, 0, 1 << 30, &below), write, 0), told);
    }
}
