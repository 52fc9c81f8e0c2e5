//! Times that can be worked out with a pencil.

use super::*;
use crate::world::{Request, Schedule, World};
use std::sync::Arc;
use trueline_geom::class::stripe::Raid0;
use trueline_geom::mapping::geom::Geom;
use trueline_geom::mapping::route::Route;

/// A revolution at 5400 rpm.
const REV: Ps = 11_111_111_111;

/// No set-up, no settling, no reading ahead, the speed it says.
fn bare(more: &[(&str, Value)]) -> Model {
    let mut set = vec![
        ("setup_ms", f(0.0)),
        ("write_settle_ms", f(0.0)),
        ("rpm_spread_percent", f(0.0)),
        ("read_ahead_bytes", i(0)),
    ];
    set.extend(more.iter().map(|(key, value)| (*key, value.clone())));
    model("wd10ears", &set)
}

#[allow(clippy::cast_precision_loss, reason = "a mean")]
fn mean(span: Ps, count: u64) -> f64 {
    span as f64 / count as f64
}

#[test]
fn the_mean_wait_is_half_a_revolution_and_the_mean_seek_the_average() {
    let model = bare(&[]);
    let (mut bench, mut random) = (Bench::new(&model, 3), Random::new(9));
    let ops = 6000;
    for _ in 0..ops {
        bench.finish(Op::Read, random.below(model.size / 4096) * 4096, 4096);
    }
    let counters = bench.counters();
    let wait = revolutions(counters.rotate, 5400.0) / 6000.0;
    assert!((wait - 0.5).abs() < 0.01, "{wait}");
    // Bytes are denser outside, so random bytes are nearer each other than random cylinders.
    let seek = mean(counters.seek, ops) / 1e9;
    assert!((seek / 9.5 - 1.0).abs() < 0.03, "{seek} ms");
}

#[test]
fn seeks_are_the_track_to_track_time_at_least_and_the_average_over_all_pairs_of_cylinders() {
    let model = bare(&[]);
    let parameters = model.disk.as_ref().unwrap();
    let disk = Disk::new(&model, parameters, 1);
    let cylinders = disk.mechanism.geometry.cylinders;
    assert_eq!(disk.mechanism.seek(0), 0);
    assert!(disk.mechanism.seek(1).abs_diff(MS) <= 1, "{}", disk.mechanism.seek(1));
    // Of all ordered pairs, 2 (c - d) are d apart.
    let all: u128 = (1..cylinders)
        .map(|d| u128::from(2 * (cylinders - d)) * u128::from(disk.mechanism.seek(d)))
        .sum();
    #[allow(clippy::cast_precision_loss, reason = "a mean")]
    let mean = all as f64 / (cylinders as f64).powi(2) / 1e9;
    assert!((mean - 9.5).abs() < 0.02, "{mean} ms");
}

/// The time and the counters of one write of `length` at `offset`, forced to the medium.
fn through(model: &Model, offset: u64, length: u64) -> (Ps, Counters) {
    let mut bench = Bench::new(model, 7);
    bench.finish(Op::Write, offset, length);
    (bench.now, bench.counters())
}

#[test]
fn a_read_modify_write_is_one_revolution_more_exactly() {
    for personality in ["command", "stream", "window", "log"] {
        let model =
            bare(&[("write_cache", Value::Boolean(false)), ("personality", t(personality))]);
        let at = 123_456 * 4096;
        for ((offset, length), whole, sectors) in [
            ((512, 4096), 8192, 2),
            ((512, 16_384), 20_480, 2),
            ((0, 2048), 4096, 1),
            ((1024, 512), 4096, 1),
        ] {
            let (aligned, none) = through(&model, at, whole);
            let (ragged, counters) = through(&model, at + offset, length);
            assert_eq!(ragged, aligned + REV, "{personality}: {length} at {offset}");
            assert_eq!(
                (counters.rmw, counters.rmw_reads, counters.media_ops, counters.lost_revolutions),
                (sectors, 1, 2, 1)
            );
            assert_eq!(
                (none.rmw, none.rmw_reads, none.media_ops, none.lost_revolutions),
                (0, 0, 1, 0)
            );
            assert_eq!(counters.media_written, whole);
        }
    }
}

#[test]
fn settling_is_hidden_in_the_revolution_of_a_read_modify_write() {
    // The read does not settle, the write after it has not moved.
    let model = bare(&[("write_cache", Value::Boolean(false)), ("write_settle_ms", f(0.4))]);
    let (mut saved, at) = (false, 123_456 * 4096);
    for k in 0..64 {
        let (aligned, ragged) = (
            through(&model, at + k * 20_480, 8192).0,
            through(&model, at + k * 20_480 + 512, 4096).0,
        );
        assert!(ragged == aligned + REV || ragged == aligned, "{k}: {ragged} {aligned}");
        saved |= ragged == aligned;
    }
    assert!(saved, "of 64 sectors some pass while the arm settles");
}

#[test]
fn a_stream_without_a_write_cache_loses_a_revolution_a_command() {
    let model = bare(&[("write_cache", Value::Boolean(false))]);
    let mut bench = Bench::new(&model, 1);
    let commands = 2000;
    for k in 0..commands {
        bench.finish(Op::Write, k * 4096, 4096);
    }
    let each = revolutions(bench.now, 5400.0) / 2000.0;
    assert!((1.0..1.06).contains(&each), "{each} revolutions");
    assert!(bench.counters().lost_revolutions > commands * 9 / 10);
}

/// The set of `members` drives of a model in chunks of `chunk`.
fn striped(model: &Model, members: usize, chunk: u64, seed: u64) -> (World, Route) {
    let geom: Arc<dyn Geom> =
        Arc::new(Raid0::new("stripe/data".into(), chunk, members, model.size).unwrap());
    let below: Vec<Route> = (0..members).map(|member| Route::store(member, model.size)).collect();
    let length = geom.providers()[0].length;
    let drives = (seed * 8..)
        .take(members)
        .map(|seed| (model.drive(seed), model.logical_block_size))
        .collect();
    (World::new(drives, Schedule::CLook), Route::new(&geom, 0, length, &below))
}

/// Random reads: `count` times `length` bytes at multiples of it below `below`, moved by `offset`,
/// `depth` at a time.
#[derive(Clone, Copy)]
struct Reads {
    offset: u64,
    length: u64,
    below: u64,
    depth: u64,
    count: u64,
    seed: u64,
}

/// The total time, and the sum of the drives' counters.
fn random_reads((mut world, route): (World, Route), reads: Reads) -> (Ps, Counters) {
    let Reads { offset, length, below, depth, count, seed } = reads;
    let (mut random, mut done, mut open) = (Random::new(seed), Vec::new(), 0);
    for tag in 0..count {
        let at = random.below(below / length - 1) * length + offset;
        world
            .submit(&route, Request { tag, op: Op::Read, offset: at, length, fua: false }, 0)
            .unwrap();
        open += 1;
        if open == depth {
            done.clear();
            world.wait(1, &mut done);
            open -= done.len() as u64;
        }
    }
    world.wait(count as usize, &mut done);
    let mut sum = Counters::default();
    world.counters().into_iter().for_each(|counters| sum += counters);
    (world.now(), sum)
}

/// A model with no delay but rotation.
fn still(spread: f64) -> Model {
    let still = ["average_seek_ms", "track_to_track_ms", "head_switch_ms", "command_overhead_ms"];
    let mut set: Vec<(&str, Value)> = still.into_iter().map(|key| (key, f(0.0))).collect();
    set.extend([
        ("rpm_spread_percent", f(spread)),
        ("read_segments", i(0)),
        ("link_rate_bytes", i(1 << 40)),
    ]);
    bare(&set)
}

#[test]
fn the_slowest_of_k_drives_waits_k_of_k_plus_1_revolutions() {
    for members in [1_usize, 2, 4] {
        let (model, chunk) = (still(0.137), 8192);
        let mut all = 0;
        for seed in 0..64 {
            let reads = Reads {
                offset: 0,
                length: chunk * members as u64,
                below: model.size,
                depth: 1,
                count: 250,
                seed,
            };
            all += random_reads(striped(&model, members, chunk, seed), reads).0;
        }
        // The two sectors themselves take 2/314 of a revolution outside, twice that inside.
        let wait = revolutions(all, 5400.0) / 16_000.0 - 0.0087;
        #[allow(clippy::cast_precision_loss, reason = "a few")]
        let expected = members as f64 / (members + 1) as f64;
        assert!((wait / expected - 1.0).abs() < 0.02, "{members} drives: {wait}, not {expected}");
    }
}

#[test]
fn as_many_requests_straddle_as_chance_says() {
    // (block, chunk, moved by, share): none where it is moved by whole blocks, else block/chunk.
    for (block, chunk, moved, share) in [
        (4096, 65_536, 512, 1.0 / 16.0),
        (16_384, 131_072, 512, 1.0 / 8.0),
        (16_384, 16_384, 7680, 1.0),
        (4096, 65_536, 8192, 0.0),
    ] {
        let model = model("512n", &[("read_segments", i(0)), ("read_ahead_bytes", i(0))]);
        let (_, counters) = random_reads(
            striped(&model, 2, chunk, 1),
            Reads { offset: moved, length: block, below: 1 << 40, depth: 1, count: 8000, seed: 2 },
        );
        #[allow(clippy::cast_precision_loss, reason = "a share")]
        let straddling = (counters.media_ops - 8000) as f64 / 8000.0;
        assert!(
            (straddling - share).abs() < 0.01,
            "{block} on {chunk} moved by {moved}: {straddling}"
        );
    }
}

#[test]
fn straddling_halves_a_stripe_as_its_queue_deepens() {
    for (depth, expected) in [(1, 0.86), (2, 0.70), (8, 0.63), (32, 0.58), (128, 0.55)] {
        let model = model("seed-003", &[]);
        let [mut aligned, mut straddling] = [0, 0];
        for seed in 0..4 {
            // Of 24 GB at the beginning, where a file of the seed's benchmark lies.
            let reads =
                Reads { offset: 0, length: 16_384, below: 24 << 30, depth, count: 1500, seed };
            aligned += random_reads(striped(&model, 2, 16_384, seed), reads).0;
            straddling +=
                random_reads(striped(&model, 2, 16_384, seed), Reads { offset: 7680, ..reads }).0;
        }
        let ratio = mean(aligned, straddling);
        assert!((ratio - expected).abs() < 0.04, "depth {depth}: {ratio:.3}, not {expected}");
    }
}

#[test]
fn what_is_aligned_is_never_read_first() {
    for personality in ["command", "stream", "window", "log"] {
        let set = [("personality", t(personality)), ("jumper", Value::Boolean(true))];
        for (model, offset) in [
            (bare(&set[..1]), 0),
            (bare(&set), 3584),
            (model("512n", &set[..1]), 512),
            (model("4kn", &set[..1]), 4096),
        ] {
            let (mut bench, mut random) = (Bench::new(&model, 1), Random::new(4));
            for _ in 0..300 {
                let block = random.below(model.size / 65_536 - 2);
                bench.finish(Op::Write, block * 65_536 + offset, 4096 * (1 + random.below(4)));
            }
            for k in 0..100 {
                bench.finish(Op::Write, offset + k * 65_536, 65_536);
            }
            bench.flush();
            bench.pass(10 * S);
            let counters = bench.counters();
            assert_eq!((counters.rmw, counters.rmw_reads), (0, 0), "{personality} {}", model.name);
        }
    }
}

#[test]
fn the_jumper_moves_every_boundary_and_the_topology_says_so() {
    let jumper = model("wd10ears", &[("jumper", Value::Boolean(true))]);
    assert_eq!(jumper.phase(), 3584);
    let grains: Vec<u64> =
        jumper.topology(jumper.size).facts.iter().map(|fact| fact.grain.phase()).collect();
    assert!(grains.contains(&3584), "{grains:?}");
    let moved = model("wd10ears", &[("alignment_offset", i(3584))]);
    for model in [&jumper, &moved] {
        for (offset, rmw) in [(0, 2), (3584, 0), (3584 + 512, 2)] {
            let mut bench = Bench::new(model, 1);
            bench.finish(Op::Write, 4096 * 50 + offset, 4096);
            bench.flush();
            assert_eq!(bench.counters().rmw, rmw, "{offset}");
        }
    }
}
