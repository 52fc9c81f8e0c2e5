use super::*;
use crate::random::Random;
use crate::time::{MS, US};
use toml::Value;
use trueline_geom::base::topology::{amplification, gcd, is_whole};

mod cards;
mod collecting;

/// A model that is built in, discarded as a whole, with some keys set.
fn model(name: &str, set: &[(&str, i64)]) -> Model {
    let set: Vec<_> = set.iter().map(|&(key, value)| (key, Value::Integer(value))).collect();
    model_with(name, &set)
}

/// As `model`, with values of any type.
fn model_with(name: &str, set: &[(&str, Value)]) -> Model {
    let fresh = ("precondition", Value::String("none".to_owned()));
    let set: Vec<(String, Value)> =
        [fresh].iter().chain(set).map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    Model::parse_with(Model::named(name).unwrap(), &set).unwrap()
}

/// Runs commands on a drive, `depth` at one time, and then lets it come to rest. When the last was
/// done; what was counted.
fn run(
    model: &Model,
    depth: usize,
    commands: impl IntoIterator<Item = (Op, u64, u64)>,
) -> (Ps, Counters) {
    let (mut drive, mut done, mut last, mut sent, mut seen) = (model.drive(0), Vec::new(), 0, 0, 0);
    let mut now = 0;
    for (op, offset, length) in commands {
        while sent - seen >= depth {
            now = drive.next().expect("a drive that has commands does something");
            drive.advance(now, &mut done);
            seen += done.len();
            last = done.drain(..).map(|c| c.at).max().unwrap_or(last);
        }
        drive.submit(now, Command { tag: sent as u64, op, offset, length, fua: false });
        sent += 1;
    }
    while let Some(next) = drive.next() {
        now = next;
        drive.advance(now, &mut done);
        seen += done.len();
        last = done.drain(..).map(|c| c.at).max().unwrap_or(last);
    }
    assert_eq!(seen, sent, "every command is done, and once");
    let counters = drive.counters(now);
    assert_eq!(
        counters.setup + counters.transfer + counters.idle,
        now,
        "every moment is explained"
    );
    (last, counters)
}

fn writes(offsets: impl IntoIterator<Item = u64>, length: u64) -> Vec<(Op, u64, u64)> {
    offsets.into_iter().map(|offset| (Op::Write, offset, length)).collect()
}

#[allow(clippy::cast_precision_loss, reason = "a ratio for a test")]
fn amplified(counters: &Counters) -> f64 {
    counters.media_written as f64 / counters.bytes_written as f64
}

const K: u64 = 1024;

#[test]
fn the_table_of_writes_on_units_of_16_kib() {
    let model = model("qlc-16k", &[]);
    let far = |nth: u64| nth * 100 * 16 * K;
    // 4 KiB in place: 4 times as much is written, and one read each. 16 KiB: as much. 16 KiB at 4
    // KiB: twice as much, two reads each.
    for (shift, length, want, reads) in [
        (0, 4 * K, 4.0, 1),
        (4 * K, 4 * K, 4.0, 1),
        (0, 16 * K, 1.0, 0),
        (4 * K, 16 * K, 2.0, 2),
        (0, 64 * K, 1.0, 0),
    ] {
        let (_, counters) = run(&model, 4, writes((0..500).map(|n| far(n) + shift), length));
        assert!(
            (amplified(&counters) - want).abs() < 1e-9,
            "{length} at {shift}: {}",
            amplified(&counters)
        );
        assert_eq!(
            (counters.rmw_reads, counters.rmw),
            (500 * reads, 500 * reads),
            "{length} at {shift}"
        );
    }
    // At random on 4 KiB, every place as often as it is likely: 1.75 and 1.19.
    for (length, want) in [(16 * K, 1.75), (64 * K, 1.1875)] {
        let (_, counters) =
            run(&model, 4, writes((0..400).map(|n| far(n) + n % 4 * 4 * K), length));
        assert!((amplified(&counters) - want).abs() < 1e-9, "{length}: {}", amplified(&counters));
    }
    let mut random = Random::new(1);
    let (_, counters) =
        run(&model, 32, writes((0..4000).map(|n| far(n) + random.below(4) * 4 * K), 16 * K));
    assert!((amplified(&counters) - 1.75).abs() < 0.02, "{}", amplified(&counters));
}

#[test]
fn the_drive_does_what_the_formula_says() {
    for (unit, phase) in [(4096, 0), (8192, 512), (16384, 0), (16384, 4096), (65536, 1024)] {
        let model = model(
            "qlc-16k",
            &[
                ("physical_block_size", unit),
                ("page_bytes", 4096),
                ("alignment_offset", phase),
                ("size", 1 << 40),
            ],
        );
        let (unit, phase) = (unit.unsigned_abs(), phase.unsigned_abs());
        for grid in [512, 4096, 12288, 16384] {
            for length in [512, 4096, 5120, 16384, 65536, 81920] {
                // Every place of a period, far from one another.
                let places = unit / gcd(grid, unit);
                let offset = |n: u64| n * grid + n * 64 * (grid / gcd(grid, unit)) * unit;
                let (_, counters) = run(&model, 8, writes((0..places).map(offset), length));
                let remainder = (unit - phase) % unit;
                let want = amplification(length, grid, unit, remainder).unwrap();
                let found = amplified(&counters);
                assert!(
                    (found - want).abs() < 1e-9,
                    "{length} on {grid} over {unit}+{phase}: {found}, and the formula {want}"
                );
                let touched = |n: u64| {
                    let at = offset(n) + remainder;
                    (at + length - 1) / unit - at / unit + 1
                };
                assert_eq!(counters.media_written, (0..places).map(touched).sum::<u64>() * unit);
                // The expectation of MODEL's formula, where it holds: whole places of the grid.
                if length % grid == 0 && unit % grid == 0 && remainder % grid == 0 {
                    #[allow(clippy::cast_precision_loss, reason = "a ratio for a test")]
                    let mean = (length + unit - grid) as f64 / unit as f64;
                    #[allow(clippy::cast_precision_loss, reason = "a ratio for a test")]
                    let found = counters.media_written as f64 / unit as f64 / places as f64;
                    assert!(
                        (found - mean).abs() < 1e-9,
                        "{length} on {grid} over {unit}: {found}, and the expectation {mean}"
                    );
                }
            }
        }
    }
}

#[test]
fn nothing_is_read_first_where_nothing_is_off_the_unit() {
    let mut random = Random::new(2);
    for depth in [1, 16] {
        let offsets: Vec<u64> =
            (0..1000).map(|_| random.below(1 << 30) * 16 * K % (1 << 43)).collect();
        let (_, counters) = run(&model("qlc-16k", &[]), depth, writes(offsets, 32 * K));
        assert_eq!((counters.rmw, counters.rmw_reads, counters.media_read), (0, 0, 0));
    }
}

#[test]
fn a_stream_off_the_unit_pays_only_at_its_ends() {
    for (length, depth) in [(4 * K, 1), (16 * K, 1), (16 * K, 8), (100 * K, 4), (128 * K, 32)] {
        let (_, counters) = run(
            &model("qlc-16k", &[]),
            depth,
            writes((0..2000).map(|n| 4 * K + n * length), length),
        );
        let ends = if is_whole(2000 * length + 4 * K, 16 * K) { 1 } else { 2 };
        assert_eq!(counters.rmw, ends, "{length} at depth {depth}");
        let units = (4 * K + 2000 * length).div_ceil(16 * K);
        assert_eq!(counters.media_written, units * 16 * K);
    }
}

#[test]
fn the_rest_of_a_unit_is_not_read_where_it_is_in_memory() {
    let halves = || (0..200).flat_map(|n| [n * 160 * K, n * 160 * K + 8 * K]);
    let (_, counters) = run(&model("qlc-16k", &[]), 1, writes(halves(), 8 * K));
    assert_eq!(
        (counters.rmw, counters.media_written),
        (0, 200 * 16 * K),
        "both halves come before it is programmed"
    );
    // Far apart in time only a cache helps.
    let apart = |cache: i64| {
        let model = model("qlc-16k", &[("merge_ns", 0), ("cache_bytes", cache)]);
        let (mut drive, mut done) = (model.drive(0), Vec::new());
        for nth in 0..20 {
            drive.submit(
                nth * 100 * MS,
                Command {
                    tag: nth,
                    op: Op::Write,
                    offset: nth % 2 * 8 * K,
                    length: 8 * K,
                    fua: false,
                },
            );
            drive.advance((nth + 1) * 100 * MS, &mut done);
        }
        (done.len(), drive.counters(0).rmw)
    };
    assert_eq!((apart(0), apart(1 << 20)), ((20, 20), (20, 1)));
}

#[test]
fn a_flush_waits_for_the_medium_where_power_can_be_lost() {
    let text = |protected: bool| {
        let set = [
            ("power_loss_protection", Value::Boolean(protected)),
            ("merge_ns", Value::Integer(1_000_000_000)),
        ];
        model_with("qlc-16k", &set)
    };
    let commands =
        || writes((0..64).map(|n| n * 160 * K), 4 * K).into_iter().chain([(Op::Flush, 0, 0)]);
    let (with, _) = run(&text(true), 128, commands());
    let (without, counters) = run(&text(false), 128, commands());
    assert!(with < 200 * US, "{with}");
    // A read of the rest, then a program: 90 us and 2487 us, and the way over the channel.
    assert!(without > 2577 * US && without < 2917 * US, "{without}");
    assert_eq!((counters.rmw, counters.flushes), (64, 1));
    // FUA, alike.
    let fua = |model: &Model| {
        let (mut drive, mut done) = (model.drive(0), Vec::new());
        drive.submit(0, Command { tag: 0, op: Op::Write, offset: 0, length: 16 * K, fua: true });
        drive.advance(S, &mut done);
        done[0].at
    };
    assert!(fua(&text(true)) < 20 * US && fua(&text(false)) > 2487 * US);
    // A flush of nothing is soon done.
    let (empty, _) = run(&text(false), 1, [(Op::Flush, 0, 0)]);
    assert!(empty < 10 * US);
}

#[test]
fn published_rates_of_the_class_are_met() {
    let model = model("qlc-16k", &[]);
    #[allow(clippy::cast_precision_loss, reason = "a rate for a test")]
    let rate = |(last, counters): (Ps, Counters)| {
        (counters.bytes_read + counters.bytes_written) as f64 / crate::time::seconds(last) / 1e6
    };
    let sequential = |op| rate(run(&model, 32, (0..40_000).map(|n| (op, n * 128 * K, 128 * K))));
    let (read, write) = (sequential(Op::Read), sequential(Op::Write));
    assert!((read / 7000.0 - 1.0).abs() < 0.03, "{read} MB/s read");
    assert!((write / 3300.0 - 1.0).abs() < 0.03, "{write} MB/s written");
    let mut random = Random::new(3);
    let (last, counters) =
        run(&model, 256, (0..50_000).map(|_| (Op::Read, random.below(1 << 31) * 4 * K, 4 * K)));
    #[allow(clippy::cast_precision_loss, reason = "a rate for a test")]
    let iops = counters.reads as f64 / crate::time::seconds(last);
    assert!((iops / 1_005_000.0 - 1.0).abs() < 0.03, "{iops} reads a second");
}

/// flashbench's README, `--open-au`: blocks written in turn to as many allocation units, in MiB a
/// second.
#[test]
fn a_card_slows_down_as_flashbench_saw() {
    const M: u64 = 1 << 20;
    let model = model("sd-4m", &[]);
    let rate = |units: u64, block: u64| {
        let rounds = (0..4).flat_map(|round| (0..4 * M / block).map(move |nth| (round, nth)));
        let offsets = rounds.flat_map(|(round, nth)| {
            (0..units).map(move |unit| (round * units + unit) * 4 * M + nth * block)
        });
        let (last, counters) = run(&model, 1, writes(offsets, block));
        #[allow(clippy::cast_precision_loss, reason = "a rate for a test")]
        let rate = counters.bytes_written as f64 / crate::time::seconds(last) / M as f64;
        rate
    };
    // Calibrated: that of 4 MiB. With two open, smaller blocks cost hardly more; the README has
    // 6.27 for 256 KiB.
    assert!((rate(2, 4 * M) / 8.79 - 1.0).abs() < 0.02, "{}", rate(2, 4 * M));
    assert!(rate(2, M / 4) > 6.27, "{}", rate(2, M / 4));
    // Predicted: the third unit has another closed and copied every time.
    for (block, published) in
        [(4 * M, 7.75), (2 * M, 5.03), (M, 3.24), (M / 2, 1.76), (M / 4, 0.912)]
    {
        let found = rate(3, block);
        assert!(
            (found / published - 1.0).abs() < 0.20,
            "{block}: {found} MiB/s, published {published}"
        );
    }
    let (last, _) = run(&model, 1, [(Op::Read, 1 << 30, K)]);
    assert!((crate::time::seconds(last) / 735e-6 - 1.0).abs() < 0.02, "a read of 1 KiB: {last} ps");
}

#[test]
fn random_writes_on_a_card_copy_allocation_units() {
    let mut random = Random::new(4);
    let (_, counters) = run(
        &model("sd-4m", &[]),
        1,
        writes((0..200).map(|_| random.below(1800) * (4 << 20) + 8 * K), 4 * K),
    );
    // 4 KiB of a 16 KiB page, then nearly 4 MiB of the unit that is closed for it.
    assert!(
        amplified(&counters) > 900.0 && amplified(&counters) < 1025.0,
        "{}",
        amplified(&counters)
    );
}

#[test]
fn a_factor_multiplies_what_is_written() {
    let set = [("spare_percent", Value::Integer(0)), ("gc_factor", Value::Float(2.5))];
    let model = model_with("qlc-16k", &set);
    let (_, counters) = run(&model, 8, writes((0..4000).map(|n| n * 16 * K), 16 * K));
    assert!((amplified(&counters) - 2.5).abs() < 0.01, "{}", amplified(&counters));
}

#[test]
fn a_drive_without_room_for_what_comes_still_finishes() {
    for (buffer, merge, unit) in [
        (16384, 1_000_000_000, 16384),
        (65536, 0, 16384),
        (0, 5, 16384),
        (4096, 5, 4096),
        (16384, 1_000_000_000, 4096),
    ] {
        let model = model(
            "qlc-16k",
            &[
                ("physical_block_size", unit),
                ("buffer_bytes", buffer),
                ("merge_ns", merge),
                ("dies", 1),
                ("planes", 3),
            ],
        );
        let mut random = Random::new(5);
        let any = |_| match random.below(8) {
            0 => (Op::Flush, 0, 0),
            1 | 2 => (Op::Read, random.below(1 << 18) * 512, 512 + random.below(64) * 512),
            _ => (Op::Write, random.below(1 << 18) * 512, 512 + random.below(512) * 512),
        };
        run(&model, 64, (0..400).map(any));
    }
}

#[test]
fn the_same_commands_are_done_at_the_same_picosecond() {
    let digest = |name: &str, depth: usize| {
        let (model, mut random) = (model(name, &[]), Random::new(6));
        let (mut drive, mut done, mut digest, mut now) =
            (model.drive(0), Vec::new(), 0xcbf2_9ce4_8422_2325_u64, 0);
        let mut in_flight = 0;
        for tag in 0..2000 {
            let op = [Op::Read, Op::Write, Op::Write, Op::Flush]
                [usize::try_from(random.below(4)).unwrap()];
            let (offset, length) = (random.below(1 << 22) * 512, (1 + random.below(128)) * 512);
            drive.submit(now, Command { tag, op, offset, length, fua: random.below(8) == 0 });
            in_flight += 1;
            while in_flight >= depth {
                now = drive.next().unwrap();
                drive.advance(now, &mut done);
                for completion in done.drain(..) {
                    in_flight -= 1;
                    for word in [completion.tag, completion.at] {
                        digest = (digest ^ word).wrapping_mul(0x100_0000_01b3);
                    }
                }
            }
        }
        digest
    };
    // Another number means that a drive does something else, or that a model has changed.
    let found = [digest("qlc-16k", 16), digest("qlc-64k", 1), digest("sd-4m", 1)];
    assert_eq!(
        found,
        [2_447_538_185_151_826_723, 15_828_175_985_334_067_406, 12_463_331_079_646_587_589]
    );
}

/// A drive whose pages of 16 KiB hold four units of 4 KiB.
fn packing(set: &[(&str, i64)]) -> Model {
    model("qlc-16k", &[&[("physical_block_size", 4096)], set].concat())
}

#[test]
fn units_share_a_page() {
    let mut random = Random::new(8);
    let offsets: Vec<u64> = (0..4000).map(|_| random.below(1 << 30) * 4 * K).collect();
    let (_, counters) = run(&packing(&[]), 32, writes(offsets, 4 * K));
    assert_eq!((counters.media_written, counters.padded), (4000 * 4 * K, 0));
    assert_eq!((counters.media_ops, counters.rmw), (1000, 0), "a program for four of them");
    // 2 KiB is half of a unit, and a read of the page that it lies in.
    let (_, counters) = run(&packing(&[]), 32, writes((0..400).map(|n| n * 100 * K), 2 * K));
    assert_eq!((counters.rmw, counters.media_read), (400, 400 * 4 * K));
    assert_eq!((counters.media_written, counters.padded), (400 * 4 * K, 0));
    // A page is read once for the units in it.
    let reads = (0..100).map(|n| (Op::Read, n * 16 * K, 16 * K));
    assert_eq!(run(&packing(&[]), 8, reads).1.media_ops, 100);
}

#[test]
fn a_page_that_cannot_wait_is_padded() {
    // Five units: a full page, and one that waits in vain.
    let (_, counters) = run(&packing(&[]), 8, writes((0..5).map(|n| n * 100 * K), 4 * K));
    assert_eq!((counters.media_written, counters.padded), (32 * K, 12 * K));
    // Where power can be lost, a flush behind each write leaves every page to one unit.
    let set =
        [("power_loss_protection", Value::Boolean(false)), ("physical_block_size", 4096.into())];
    let lossy = model_with("qlc-16k", &set);
    let flushed = |every: u64| {
        let commands = (0..64).flat_map(|n| {
            let flush = ((n + 1) % every == 0).then_some((Op::Flush, 0, 0));
            [(Op::Write, n * 100 * K, 4 * K)].into_iter().chain(flush)
        });
        run(&lossy, 1, commands.collect::<Vec<_>>()).1
    };
    for (every, pages) in [(1, 64), (2, 32), (4, 16), (8, 16)] {
        let counters = flushed(every);
        assert_eq!(counters.media_written, pages * 16 * K, "a flush behind {every} writes");
        assert_eq!(counters.padded, pages * 16 * K - 64 * 4 * K);
    }
    // Without a buffer a write waits for its own page.
    let (_, counters) =
        run(&packing(&[("buffer_bytes", 0)]), 1, writes((0..8).map(|n| n * 100 * K), 4 * K));
    assert_eq!((counters.media_written, counters.padded), (128 * K, 96 * K));
}
