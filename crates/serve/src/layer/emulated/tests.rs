use super::*;
use trueline_geom::base::store::Sparse;
use trueline_lab::rig::Rig;
use trueline_lab::rig::simulated::Simulated;
use trueline_sim::model::Model;
use trueline_sim::random::Random;
use trueline_sim::world::Schedule;

/// A clock that jumps to where it is waited for.
#[derive(Default)]
struct Jumping(AtomicU64);

impl Clock for Arc<Jumping> {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn wait(&self, until: &AtomicU64) {
        self.0.fetch_max(until.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

const SIZE: u64 = 1 << 30;

fn world(model: &str) -> World {
    let model = Model::parse(Model::named(model).unwrap()).unwrap();
    World::new(vec![(model.drive(1), model.logical_block_size)], Schedule::Fifo)
}

fn emulated(model: &str, speed: &str) -> (Emulated, Arc<Jumping>) {
    let clock = Arc::new(Jumping(AtomicU64::new(5_000)));
    let drives =
        Drives::new(world(model), 32, Speed::parse(speed).unwrap(), Box::new(clock.clone()));
    let below = Arc::new(trueline_host::disk::memory::Memory::new(SIZE).unwrap());
    (Emulated::new(below, Route::store(0, SIZE), Grain::new(512, 0), Arc::new(drives)), clock)
}

/// Offsets of 200 writes of 4096 bytes, `shift` bytes past multiples of that.
fn offsets(shift: u64) -> Vec<u64> {
    let mut random = Random::new(7);
    (0..200).map(|_| random.below(SIZE / 4096 - 1) * 4096 + shift).collect()
}

/// ns that they take one after another, the last being on the medium.
fn taken(speed: &str, shift: u64) -> (u64, Counters) {
    let (store, clock) = emulated("wd10ears", speed);
    let start = clock.now();
    offsets(shift).into_iter().for_each(|offset| store.write_at(&[1; 4096], offset).unwrap());
    store.flush().unwrap();
    (clock.now() - start, store.drives.counters()[0])
}

#[test]
fn it_takes_as_long_as_in_virtual_time() {
    for shift in [0, 512] {
        let mut rig = Simulated::new(world("wd10ears"), Route::store(0, SIZE), 512, 0);
        let ask = |op, offset, length| Request { tag: 0, op, offset, length, fua: false };
        let requests = offsets(shift)
            .into_iter()
            .map(|offset| ask(Op::Write, offset, 4096))
            .chain([ask(Op::Flush, 0, 0)]);
        for request in requests {
            rig.push(request).unwrap();
            rig.wait(1, &mut Vec::new()).unwrap();
        }
        let (virtually, (really, counters)) = (rig.now(), taken("1", shift));
        // The clock of the emulated drive has whole ns: of 201 requests, so many at most.
        assert!(really >= virtually && really - virtually <= 201, "{really} ns for {virtually}");
        assert_eq!((counters.writes, counters.rmw > 0), (200, shift > 0));
        assert_eq!(counters.rmw, rig.counters()[0].rmw);
    }
}

#[test]
fn ten_times_as_fast_is_a_tenth_of_the_time() {
    let (one, ten, tenth) = (taken("1", 512).0, taken("10", 512).0, taken("0.1", 512).0);
    assert!(ten.abs_diff(one / 10) <= 201, "{one} {ten}");
    assert!(tenth.abs_diff(one * 10) <= 2010, "{one} {tenth}");
}

/// A file that a drive holds may end inside of its last sector, which the drive reads whole.
#[test]
fn the_last_sector_of_a_file_may_be_short() {
    let drives = Drives::new(
        world("wd10ears"),
        32,
        Speed::parse("1").unwrap(),
        Box::new(Arc::new(Jumping::default())),
    );
    let below = Arc::new(trueline_host::disk::memory::Memory::new(1000).unwrap());
    let sector = Grain::new(512, 0);
    let store = Emulated::new(below, Route::store(0, 1000), sector, Arc::new(drives));
    store.read_at(&mut [0; 88], 912).unwrap();
    store.write_at(&[1; 400], 600).unwrap();
    let Counters { reads, bytes_read, bytes_written, .. } = store.drives.counters()[0];
    assert_eq!((reads, bytes_read, bytes_written), (2, 1024, 512));
    assert_eq!(store.read_at(&mut [0; 89], 912), Err(Errno::Unaligned));
}

#[test]
fn what_is_served_is_what_is_below() {
    let (store, clock) = emulated("wd10ears", "1");
    store.write_at(b"twelve bytes", 1020).unwrap();
    // A part of a sector, across two: they are read, then written.
    let Counters { reads, writes, bytes_written, .. } = store.drives.counters()[0];
    assert_eq!((reads, writes, bytes_written), (1, 1, 1024));
    let mut read = [0; 12];
    store.read_at(&mut read, 1020).unwrap();
    assert_eq!(&read, b"twelve bytes");
    store.write_through(&[7; 512], SIZE - 512).unwrap();
    assert!(!store.properties().write_back && store.try_read(&mut read, 1000) == Ok(false));
    let before = clock.now();
    assert_eq!(store.read_at(&mut [0; 512], SIZE - 511), Err(Errno::Unaligned));
    assert_eq!(store.write_at(&[0; 512], SIZE), Err(Errno::Unaligned));
    assert_eq!((store.read_at(&mut [], 1), store.extent(0, 10).unwrap().length), (Ok(()), 10));
    assert_eq!(clock.now(), before, "what is refused or nothing takes no time");
}

#[test]
fn an_error_below_is_told_after_the_drive_is_done() {
    let (mut store, clock) = emulated("wd10ears", "1");
    store.below = Arc::new(Sparse::new(SIZE));
    let before = clock.now();
    assert_eq!(store.write_through(&[0; 4096], 0), Err(Errno::ReadOnly));
    assert!(clock.now() > before);
}

/// A command that is longer than the drive's buffer.
#[test]
fn the_longest_request_comes_to_an_end() {
    for model in ["wd10ears", "qlc-16k", "sd-4m", "md"] {
        let (store, clock) = emulated(model, "1");
        store.write_at(&vec![1; 32 << 20], 512).unwrap();
        store.read_at(&mut vec![1; 32 << 20], 512).unwrap();
        assert!(clock.now() > 10_000, "{model}: {} ns", clock.now());
    }
}

/// Whichever thread leads, all are answered: threads that ask at once, each of them many times.
#[test]
fn many_threads_are_all_answered() {
    let (store, _) = emulated("wd10ears", "1");
    thread::scope(|scope| {
        for nth in 0..16 {
            let store = &store;
            scope.spawn(move || {
                let mut random = Random::new(nth);
                for _ in 0..100 {
                    store.write_at(&[1; 4096], random.below(SIZE / 4096) * 4096).unwrap();
                }
                store.flush().unwrap();
            });
        }
    });
    let counters = store.drives.counters()[0];
    assert_eq!((counters.writes, counters.flushes, counters.rmw), (1600, 16, 0));
    assert!(store.drives.state().open.is_empty() && store.drives.state().leader.is_none());
}

/// ns of 2000 writes one after another, each 100 µs of the machine after the last was done, and
/// what is told of them.
fn streamed(speed: &str, shift: u64) -> (u64, RequestPace) {
    let (store, clock) = emulated("wd10ears", speed);
    let start = clock.now();
    for nth in 0..2000 {
        store.write_at(&[1; 65536], (1 << 20) + shift + nth * 65536).unwrap();
        clock.0.fetch_add(100_000, Ordering::Relaxed);
    }
    let taken = clock.now() - start;
    let streamed =
        store.drives.kinds().into_iter().find(|kind| kind.write && kind.sequential).unwrap();
    (taken, streamed)
}

/// The machine's own time is so many times as much of the drive's as that is faster, and that is
/// measured.
#[test]
fn the_machines_part_is_told() {
    // Virtual µs between 1999 pairs of writes; the clock has whole ns.
    let told = |(speed, us): (&str, u64)| {
        let (_, kind) = streamed(speed, 0);
        let machine = kind.machine / 1_000_000;
        assert!(
            kind.requests == 1999 && (machine * 999 / 1000..=machine).contains(&(1999 * us)),
            "{speed}: {kind:?}"
        );
        (kind.share().unwrap(), kind.is_the_drives())
    };
    let [tenth, one, ten] = [("0.1", 10), ("1", 100), ("10", 1000)].map(told);
    assert!(tenth.1 && !ten.1 && tenth.0 < one.0 && one.0 < ten.0, "{tenth:?} {one:?} {ten:?}");
}

#[test]
fn a_host_managed_drive_keeps_its_bytes_from_a_write_it_refuses() {
    const ZONE: u64 = 256 << 20;
    let text = Model::named("smr-hm-14tb").unwrap();
    let text = text.replace("conventional_zones = 524", "conventional_zones = 1");
    let model = Model::parse(&text).unwrap();
    let world = World::new(vec![(model.drive(1), 512)], Schedule::Fifo);
    let clock = Box::new(Arc::new(Jumping::default()));
    let drives = Arc::new(Drives::new(world, 32, Speed::parse("1").unwrap(), clock));
    let below = Arc::new(trueline_host::disk::memory::Memory::new(SIZE).unwrap());
    let store = Emulated::new(below, Route::store(0, SIZE), Grain::new(512, 0), drives);
    let byte = |at| {
        let mut read = [0];
        store.inner().read_at(&mut read, at).unwrap();
        read[0]
    };
    assert_eq!(store.write_at(&[1; 4096], ZONE), Ok(()));
    for at in [ZONE, ZONE + 8192] {
        let before = byte(at);
        assert!(matches!(store.write_at(&[2; 4096], at), Err(Errno::Zone(_))), "{at}");
        assert_eq!(byte(at), before);
    }
    assert_eq!(store.write_at(&[3; 4096], ZONE + 4096), Ok(()));
    assert_eq!(store.write_at(&[4; 512], 63 * 512), Ok(()), "the first zone is conventional");
    store.discard(ZONE, ZONE).unwrap();
    assert_eq!((store.write_at(&[5; 4096], ZONE), byte(ZONE)), (Ok(()), 5));
}
