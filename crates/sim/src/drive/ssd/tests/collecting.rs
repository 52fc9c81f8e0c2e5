//! Garbage collection on the dies: what comes out, and what it takes from the host.

use super::*;
use crate::drive::ssd::garbage::victim_share;
use crate::time::seconds;

/// A drive of 2 GiB in the steady state of uniform random writes.
fn steady(name: &str, set: &[(&str, Value)]) -> Model {
    let own = [("size", (2_i64 << 30).into()), ("precondition", "random".into())];
    model_with(name, &[&own, set].concat())
}

/// The write amplification of uniform random writes, in closed form.
fn closed_form(spare: f64) -> f64 {
    1.0 / (1.0 - victim_share(1.0 / (1.0 + spare / 100.0)))
}

/// Commands at random multiples of their length.
fn at_random(op: Op, below: u64, length: u64, count: u64) -> Vec<(Op, u64, u64)> {
    let mut random = Random::new(11);
    (0..count).map(|_| (op, random.below(below / length) * length, length)).collect()
}

#[test]
fn write_amplification_comes_out() {
    for (name, unit) in [("qlc-16k", 16 * K), ("tlc-4k", 4 * K)] {
        for spare in [7.0, 12.4, 28.0] {
            let model = steady(name, &[("spare_percent", Value::Float(spare))]);
            let commands = at_random(Op::Write, 2 << 30, unit, 20_000);
            let (_, counters) = run(&model, 64, commands);
            let (found, expected) = (amplified(&counters), closed_form(spare));
            // Greedy on superblocks of some hundred units is up to 3 % better than the limit.
            assert!((found / expected - 1.0).abs() < 0.04, "{name}: {found}, not {expected}");
            assert_eq!(counters.media_written, counters.bytes_written + counters.copied);
            // A page of several units is read once for those of them that are copied.
            #[allow(clippy::cast_precision_loss, reason = "a ratio for a test")]
            let read = counters.media_read as f64 / counters.copied as f64;
            assert!((read - 1.0).abs() < 0.02, "{name}: {read} bytes are read for one copied");
        }
    }
}

#[test]
fn writes_off_the_unit_are_amplified_twice() {
    let model = steady("qlc-16k", &[]);
    let moved = at_random(Op::Write, (2 << 30) - 16 * K, 16 * K, 5_000);
    let moved = moved.into_iter().map(|(op, at, length)| (op, at + 4 * K, length));
    let (_, counters) = run(&model, 64, moved);
    let (found, expected) = (amplified(&counters), 2.0 * closed_form(12.4));
    assert!((found / expected - 1.0).abs() < 0.04, "{found}, not {expected}");
}

#[test]
fn a_stream_is_not_amplified_after_a_stream() {
    let set = [("precondition", "sequential".into())];
    let (_, counters) =
        run(&steady("qlc-16k", &set), 8, writes((0..16_384).map(|n| n * 128 * K), 128 * K));
    assert_eq!((counters.media_written, counters.copied), (counters.bytes_written, 0));
    // And an erase block of each plane for every such block that was filled.
    assert_eq!(counters.erasures, (2 << 30) / (48 << 20) / 4 * 4);
}

/// Copies take their time of the dies: what is left for the host follows from the amplification.
#[test]
fn the_rate_of_random_writes_is_what_copies_leave() {
    let model = steady("qlc-16k", &[("buffer_bytes", (4_i64 << 20).into())]);
    let (last, counters) = run(&model, 256, at_random(Op::Write, 2 << 30, 16 * K, 20_000));
    let ssd = model.ssd.as_ref().unwrap();
    let (amplified, page) = (amplified(&counters), 16384.0 / 1.2e9);
    // Seconds of a die for a write: its share of programs, and a read for each copy.
    let program = (ssd.program_ns / 1e9 + 4.0 * page) / 4.0;
    let die = amplified * program + (amplified - 1.0) * (ssd.read_ns / 1e9 + page);
    let (found, expected) = (20_000.0 / seconds(last), 128.0 / die);
    assert!((found / expected - 1.0).abs() < 0.05, "{found} a second, not {expected}");
}

#[test]
fn reads_wait_for_copies() {
    let took = |state: &str| {
        let mut random = Random::new(12);
        let mut mixed = at_random(Op::Write, 2 << 30, 16 * K, 4_000);
        for (op, ..) in &mut mixed {
            *op = if random.below(2) == 0 { Op::Read } else { Op::Write };
        }
        run(&steady("qlc-16k", &[("precondition", state.into())]), 32, mixed).0
    };
    let (full, fresh) = (took("random"), took("none"));
    assert!(2 * full > 3 * fresh, "{full}, {fresh} on a fresh drive");
}

/// The rates for which spare areas were calibrated, and those that nothing was tuned to.
#[test]
fn published_steady_states() {
    // Without the writes that only fill the buffer.
    let rate = |name: &str, length: u64, set: &[(&str, Value)]| {
        let model = model_with(name, &[&[("precondition", "random".into())], set].concat());
        let last = |count| run(&model, 256, at_random(Op::Write, model.size, length, count)).0;
        12_000.0 / seconds(last(24_000) - last(12_000))
    };
    // Drives in full size: 61.44 TB and 122.88 TB.
    let large = [("size", 122_887_604_273_152_i64.into()), ("program_ns", 2_567_000.into())];
    let fitted = [&large[..], &[("spare_percent", Value::Float(8.0))]].concat();
    // The same flash, of which less is the host's.
    let less = [("size", 6_401_252_745_216_i64.into()), ("spare_percent", Value::Float(29.4))];
    for (found, published, least, most) in [
        (rate("qlc-16k", 16 * K, &[]), 38_000.0, 0.95, 1.05),
        (rate("qlc-16k", 16 * K, &fitted), 25_000.0, 0.95, 1.05),
        (rate("tlc-4k", 4 * K, &[]), 130_000.0, 0.95, 1.05),
        // With the spare area of the smaller drive the larger one would be too fast.
        (rate("qlc-16k", 16 * K, &large), 25_000.0, 1.40, 1.55),
        (rate("tlc-4k", 4 * K, &less), 260_000.0, 1.35, 1.60),
    ] {
        let ratio = found / published;
        assert!((least..most).contains(&ratio), "{found}, published {published}: {ratio}");
    }
}
