//! Every second, every byte and every command is somewhere.

use super::geometry::Measures;
use super::write_cache::Taken;
use super::*;
use crate::world::{Request, Schedule, World};
use std::collections::BTreeSet;
use trueline_geom::mapping::route::Route;

const PERSONALITIES: [&str; 4] = ["command", "stream", "window", "log"];

/// Commands of every kind, near and far, aligned and not, with pauses; `look` after each step.
fn mixture(
    model: &Model,
    seed: u64,
    count: u64,
    mut look: impl FnMut(&Disk, Ps),
) -> (Disk, Vec<Completion>) {
    let mut disk = Disk::new(model, model.disk.as_ref().unwrap(), seed);
    let (mut random, mut now, mut done, mut sent) = (Random::new(seed), 0, Vec::new(), Vec::new());
    for tag in 0..count {
        let near = random.below(64) * 4096 + random.below(8) * 512;
        let far = random.below(model.size / 4096 / 2) * 4096 * 2;
        let offset = if random.below(3) == 0 { far.min(model.size - (1 << 20)) } else { near };
        let length = 512 * (1 + random.below(40));
        let op = [Op::Read, Op::Read, Op::Write, Op::Write, Op::Write, Op::Write, Op::Flush]
            [random.below(7) as usize];
        let length = if op == Op::Flush { 0 } else { length };
        disk.submit(now, Command { tag, op, offset, length, fua: random.below(9) == 0 });
        sent.push(now);
        let pause = [0, 0, 100_000_000, 5 * MS, 40 * MS][random.below(5) as usize];
        now += pause;
        while let Some(at) = disk.next().filter(|&at| at <= now) {
            disk.advance(at, &mut done);
        }
        disk.advance(now, &mut done);
        look(&disk, now);
    }
    while let Some(at) = disk.next() {
        now = at;
        disk.advance(at, &mut done);
        look(&disk, now);
    }
    let tags: BTreeSet<u64> = done.iter().map(|c| c.tag).collect();
    assert_eq!((tags.len(), done.len() as u64), (done.len(), count), "every command is done once");
    assert!(done.iter().all(|c| c.at >= sent[c.tag as usize]), "none before it came");
    assert!(done.windows(2).all(|pair| pair[0].at <= pair[1].at), "in order of time");
    (disk, done)
}

#[test]
fn every_picosecond_of_the_mechanism_is_explained() {
    for personality in PERSONALITIES {
        for (seed, flush) in (0..4).zip([0.0, 0.0, 3.0, 30.0]) {
            let set = [
                ("personality", t(personality)),
                ("edge_cache_sectors", i(8)),
                ("flush_ms", f(flush)),
            ];
            let model = model("wd10ears", &set);
            mixture(&model, seed, 400, |disk, now| {
                let c = disk.counters(now);
                assert_eq!(
                    c.setup + c.seek + c.rotate + c.transfer + c.idle,
                    now,
                    "{personality} {seed}"
                );
            });
        }
    }
}

#[test]
fn every_byte_is_destaged_overwritten_or_dirty() {
    for personality in PERSONALITIES {
        for seed in 0..4 {
            let model = model("wd10ears", &[("personality", t(personality)), ("slots", i(8))]);
            let (disk, _) = mixture(&model, seed, 400, |_, _| {});
            let (ledger, counters) = (&disk.ledger, disk.counters(0));
            assert_eq!(ledger.written, counters.bytes_written, "{personality} {seed}");
            assert_eq!(
                ledger.written,
                ledger.destaged + ledger.overwritten,
                "an idle drive has nothing dirty"
            );
            assert!(disk.writes.is_empty() && disk.log.is_empty());
            assert!(ledger.overwritten > 0 && counters.cache_hits > 0 && counters.rmw > 0);
        }
    }
}

#[test]
fn a_flush_ends_after_what_it_covers_and_not_after_what_came_later() {
    for personality in PERSONALITIES {
        let model = model("wd10ears", &[("personality", t(personality)), ("idle_ms", f(1000.0))]);
        let mut disk = Disk::new(&model, model.disk.as_ref().unwrap(), 1);
        let (mut done, mut now) = (Vec::new(), 0);
        let write = |tag: u64, block: u64| Command {
            tag,
            op: Op::Write,
            offset: block * 4096 + 512,
            length: 4096,
            fua: false,
        };
        let mut settle = |disk: &mut Disk, until: usize, now: &mut Ps| {
            while done.len() < until {
                *now = disk.next().unwrap();
                disk.advance(*now, &mut done);
            }
            done.last().copied().unwrap()
        };
        (0..8).for_each(|tag| disk.submit(now, write(tag, 1000 + tag * 999)));
        settle(&mut disk, 8, &mut now);
        assert_eq!((disk.ledger.destaged, disk.writes.len()), (0, 8));
        disk.submit(now, Command { tag: 100, op: Op::Flush, offset: 0, length: 0, fua: false });
        (8..12).for_each(|tag| disk.submit(now, write(tag, 500_000 + tag)));
        assert_eq!(
            settle(&mut disk, 13, &mut now).tag,
            100,
            "writes into the cache overtake the flush"
        );
        assert_eq!(disk.ledger.destaged, 8 * 4096, "what came later is not its affair");
        assert_eq!(disk.writes.bytes(), 4 * 4096);
    }
}

#[test]
fn a_flush_of_scattered_writes_takes_as_long_as_writing_them() {
    let model = model("wd10ears", &[]);
    let (mut bench, mut random) = (Bench::new(&model, 1), Random::new(5));
    for (writes, least, most) in [(0, 0.0, 0.2), (8, 70.0, 120.0), (64, 120.0, 480.0)] {
        for _ in 0..writes {
            bench.submit(Op::Write, random.below(model.size / 4096) * 4096, 4096, false);
        }
        bench.wait(0);
        let ms = crate::time::seconds(bench.flush()) * 1000.0;
        assert!((least..most).contains(&ms), "{writes} writes: {ms} ms");
    }
}

#[test]
fn the_fixed_time_of_a_flush_is_taken_once_for_what_was_written() {
    let flush = |fixed: f64, writes: u64| {
        let mut bench = Bench::new(&model("wd10ears", &[("flush_ms", f(fixed))]), 1);
        (0..writes).for_each(|k| bench.submit(Op::Write, k << 33, 4096, false));
        bench.wait(0);
        let first = bench.flush();
        (bench.flush(), first)
    };
    for writes in [1, 8, 64] {
        let (again, first) = flush(28.0, writes);
        assert_eq!(first, flush(0.0, writes).1 + 28 * MS, "{writes} writes");
        assert!(again < MS, "nothing was written since: {again}");
    }
    assert!(flush(28.0, 0).1 < MS, "nothing was written");
}

#[test]
fn the_fixed_time_of_a_flush_is_the_mechanism_s() {
    let mut bench =
        Bench::new(&model("wd10ears", &[("flush_ms", f(500.0)), ("read_ahead_bytes", i(0))]), 1);
    bench.finish(Op::Write, 0, 4096);
    bench.submit(Op::Flush, 0, 0, false);
    bench.pass(100 * MS);
    // A write goes into the cache meanwhile; a read, and the flush of that write, wait.
    bench.submit(Op::Write, 1 << 33, 4096, false);
    bench.submit(Op::Read, 1 << 34, 4096, false);
    bench.submit(Op::Flush, 0, 0, false);
    bench.wait(0);
    let order: Vec<u64> = bench.done.iter().map(|done| done.tag).collect();
    assert_eq!(order, [1, 3, 2, 4, 5]);
    let at = |nth: usize| bench.done[nth].at / MS;
    assert!(at(1) < 102 && (500..530).contains(&at(2)), "{} {}", at(1), at(2));
    assert!((500..560).contains(&at(3)) && (1000..1080).contains(&at(4)), "{} {}", at(3), at(4));
    assert_eq!(bench.counters().setup / (500 * MS), 2, "both are in the account");
}

#[test]
fn forced_unit_access_and_no_write_cache_are_on_the_medium_when_done() {
    for (fua, cache) in [(true, true), (false, false)] {
        let mut bench =
            Bench::new(&model("wd10ears", &[("write_cache", Value::Boolean(cache))]), 1);
        bench.submit(Op::Write, 4096, 4096, fua);
        bench.wait(0);
        assert_eq!(bench.counters().media_written, 4096);
        assert!(bench.flush() < MS, "nothing is left");
    }
}

#[test]
fn what_is_dirty_or_was_read_is_answered_from_memory() {
    let mut bench = Bench::new(&model("wd10ears", &[]), 1);
    bench.finish(Op::Write, 8192, 4096);
    assert!(bench.finish(Op::Read, 8192, 4096) < MS);
    assert!(bench.finish(Op::Read, 1 << 30, 4096) > MS);
    assert!(bench.finish(Op::Read, 1 << 30, 4096) < MS);
    assert_eq!(bench.counters().cache_hits, 2);
    bench.finish(Op::Write, 8192, 4096);
    assert_eq!(bench.counters().cache_hits, 3, "a write that overwrites a dirty one");
}

/// Sectors that are dirty, by brute force.
#[test]
fn the_interval_map_is_what_a_map_of_sectors_is() {
    let geometry = Geometry::new(&Measures {
        sectors: 4096,
        heads: 2,
        zones: 2,
        outer: 16,
        inner: 8,
        rev: 1 << 30,
        head_skew: 9,
        cylinder_skew: 99,
    });
    let (mut cache, mut random) = (WriteCache::new(4096), Random::new(8));
    let mut sectors: Vec<bool> = vec![false; 600];
    let count = |sectors: &[bool]| sectors.iter().filter(|&&dirty| dirty).count() as u64 * 512;
    for seq in 1..4000 {
        let start = random.below(580);
        let end = start + 1 + random.below(20);
        let (a, b) = (start as usize, end as usize);
        let before = count(&sectors[a..b]);
        match random.below(4) {
            0 => {
                sectors[a..b].fill(false);
                assert_eq!(cache.cut(start * 512, end * 512, &geometry).0, before);
            }
            1 => {
                let Some((first, extent)) =
                    cache.within(start * 512, u64::MAX).next().map(|(at, e)| (at, *e))
                else {
                    continue;
                };
                let (until, mut taken) = ((first + 512 * 5).min(extent.end), Vec::new());
                cache.take(first, until, &geometry, &mut taken);
                assert_eq!(taken, [Taken { start: first, end: until, seq: extent.seq, at: first }]);
                sectors[(first / 512) as usize..(until / 512) as usize].fill(false);
            }
            merge => {
                sectors[a..b].fill(true);
                assert_eq!(
                    cache.insert(start * 512, end * 512, seq, &|_| merge == 2, &geometry),
                    before
                );
            }
        }
        assert_eq!(cache.bytes(), count(&sectors));
        let covered = sectors[a..].iter().take_while(|&&dirty| dirty).count() as u64 * 512;
        assert_eq!(cache.covered(start * 512), start * 512 + covered);
        if seq % 50 == 0 {
            cache.cover(seq - random.below(40));
        }
    }
}

#[test]
fn the_nearest_extent_is_the_one_that_a_scan_of_all_finds() {
    let model = model("wd10ears", &[("slots", i(4096))]);
    let mut disk = Disk::new(&model, model.disk.as_ref().unwrap(), 1);
    let mut random = Random::new(3);
    for seq in 1..600 {
        let sector = random.below(model.size / 4096);
        disk.writes.insert(
            sector * 4096,
            sector * 4096 + 4096,
            seq,
            &|_| false,
            &disk.mechanism.geometry,
        );
    }
    for now in (0..400).map(|k| k * 7 * MS) {
        let cost = |start: u64| {
            disk.mechanism.cost(
                now,
                start / 4096,
                &disk.mechanism.geometry.locate(start / 4096),
                true,
            )
        };
        let best = disk.writes.within(0, u64::MAX).map(|(start, _)| cost(start)).min();
        let chosen = disk.writes.choose(Order::Sptf, now, &disk.mechanism, &|_, _| true);
        assert_eq!(chosen.map(cost), best);
        let at = chosen.unwrap() / 4096;
        disk.mechanism.pass(now, at, at + 1, true, false);
        disk.writes.take(at * 4096, at * 4096 + 4096, &disk.mechanism.geometry, &mut Vec::new());
    }
}

#[test]
fn sectors_follow_one_another_on_the_platters_and_what_passed_is_known() {
    let model = model("wd10ears", &[]);
    let disk = Disk::new(&model, model.disk.as_ref().unwrap(), 1);
    let (geometry, mut random) = (&disk.mechanism.geometry, Random::new(2));
    for _ in 0..2000 {
        let sector = random.below(model.size / 4096 - 1);
        let (place, next) = (geometry.locate(sector), geometry.locate(sector + 1));
        assert!(
            place.left_on_track() > 0
                && u64::from(place.cylinder) < geometry.cylinders
                && place.head < 4
        );
        let passing = geometry.passing(&place, 1);
        if next.head == place.head && next.cylinder == place.cylinder {
            assert_eq!((place.angle + passing) % geometry.rev, next.angle);
        } else {
            assert_eq!(
                (next.index, next.cylinder - place.cylinder),
                (0, u32::from(next.head == 0))
            );
        }
        let sectors = 1 + random.below(place.left_on_track());
        let span = geometry.passing(&place, sectors);
        assert_eq!(
            (geometry.passed(&place, span), geometry.passed(&place, span - 1)),
            (sectors, sectors - 1)
        );
    }
}

#[test]
fn a_smaller_drive_is_the_same_drive_cut_off() {
    let (whole, small) = (model("wd10ears", &[]), model("wd10ears", &[("size", i(1 << 30))]));
    let run = |model: &Model| mixture(&model_of(model, 1 << 30), 3, 100, |_, _| {}).1;
    assert_eq!(run(&small), run(&whole));
    let large = model("wd10ears", &[("size", i(4 << 40))]);
    let mut bench = Bench::new(&large, 1);
    assert!(bench.finish(Op::Read, (4 << 40) - 4096, 4096) > MS);
}

/// The same model of which only so many bytes are used.
fn model_of(model: &Model, size: u64) -> Model {
    Model { size, ..model.clone() }
}

#[test]
fn the_time_of_every_drive_of_a_world_adds_up_to_the_time_there() {
    for names in [["wd10ears", "seed-004"], ["wd10ears", "qlc-16k"], ["qlc-16k", "md"]] {
        let models = names.map(|name| model(name, &[]));
        let mut world = World::new(
            models.iter().zip(1..).map(|(m, seed)| (m.drive(seed), 512)).collect(),
            Schedule::Fifo,
        );
        let (mut random, mut done) = (Random::new(3), Vec::new());
        for tag in 0..300 {
            let port = random.below(2) as usize;
            let offset = random.below(models[port].size / 4096) * 4096;
            let op = if tag % 3 == 0 { Op::Read } else { Op::Write };
            world
                .submit(
                    &Route::store(port, models[port].size),
                    Request { tag, op, offset, length: 4096, fua: false },
                    1000,
                )
                .unwrap();
            match random.below(4) {
                0 => world.wait(1, &mut done),
                1 => world.pass(world.now() + random.below(60 * MS)),
                _ => {}
            }
            for (c, name) in world.counters().iter().zip(names) {
                assert_eq!(
                    c.setup + c.seek + c.rotate + c.transfer + c.idle,
                    world.now(),
                    "{name}"
                );
            }
        }
    }
}

/// The digest of a world of two drives.
fn digest(seed: u64) -> u64 {
    let model = model("wd10ears", &[("personality", t("window"))]);
    let mut world =
        World::new(vec![(model.drive(seed), 512), (model.drive(seed + 1), 512)], Schedule::CLook);
    let routes = [Route::store(0, model.size), Route::store(1, model.size)];
    let (mut random, mut done) = (Random::new(seed), Vec::new());
    for tag in 0..2000 {
        let offset = random.below(model.size / 512 - 64) * 512;
        let op = [Op::Read, Op::Write, Op::Write][random.below(3) as usize];
        let request =
            Request { tag, op, offset, length: 512 * (1 + random.below(64)), fua: tag % 50 == 0 };
        world.submit(&routes[random.below(2) as usize], request, 1000).unwrap();
        if world.in_flight() > 20 {
            world.wait(10, &mut done);
        }
    }
    world.wait(usize::MAX, &mut done);
    assert_eq!(done.len(), 2000);
    world.digest()
}

#[test]
fn the_same_seed_gives_the_same_picoseconds_on_every_machine() {
    assert_eq!(digest(1), 10_304_342_232_062_073_910);
    assert_ne!(digest(2), digest(1));
}
