//! How fast the simulation is: `cargo run --release -p trueline-sim --example speed`.
//!
//! Operations of the medium and events a second of real time on one core, for random reads chosen
//! from 32 and for random writes chosen from a full cache of 16 384 extents; for streams; and what
//! reading a model takes.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::print_stdout,
    reason = "it measures"
)]

use std::time::Instant;
use toml::Value;
use trueline_sim::drive::{Command, Completion, Op};
use trueline_sim::model::{Model, Range};
use trueline_sim::random::Random;

/// Keeps `depth` commands of 4 KiB in a drive.
fn run(name: &str, set: &[(&str, i64)], op: Op, depth: usize, commands: u64) {
    let text = Model::named("wd10ears").unwrap_or_default();
    let end = Model::parse(text).map_or(1, |model| model.size / 4096);
    let mut random = Random::new(1);
    drive(name, set, op, depth, (0..commands).map(|_| (random.below(end) * 4096, 4096)));
}

/// Keeps `depth` of the commands in a drive.
fn drive(
    name: &str,
    set: &[(&str, i64)],
    op: Op,
    depth: usize,
    commands: impl Iterator<Item = (u64, u64)>,
) {
    let set: Vec<(String, Value)> =
        set.iter().map(|&(key, value)| (key.to_owned(), Value::Integer(value))).collect();
    let text = Model::named("wd10ears").unwrap_or_default();
    let Ok(model) = Model::parse_with(text, &set) else { return };
    let mut drive = model.drive(1);
    let (mut done, mut open, mut now) = (Vec::<Completion>::new(), 0, 0);
    let begun = Instant::now();
    for (tag, (offset, length)) in (0..).zip(commands) {
        drive.submit(now, Command { tag, op, offset, length, fua: false });
        open += 1;
        while open >= depth {
            let Some(at) = drive.next() else { break };
            now = at;
            done.clear();
            drive.advance(now, &mut done);
            open -= done.len();
        }
    }
    let (seconds, counters) = (begun.elapsed().as_secs_f64(), drive.counters(now));
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    let [ops, events, simulated] =
        [counters.media_ops, counters.events, now].map(|count| count as f64);
    println!(
        "{name:40} {:6.2} M media operations/s {:6.2} M events/s {:8.0} x real time",
        ops / seconds / 1e6,
        events / seconds / 1e6,
        simulated / 1e12 / seconds
    );
}

/// Reads a model with the keys that a sweep sets, as every point of one does.
fn read() {
    const TIMES: u32 = 200;
    let text = Model::named("wd10ears").unwrap_or_default();
    let Ok(model) = Model::parse(text) else { return };
    let middle = |[least, most]: [f64; 2]| f64::midpoint(least, most);
    let value = |key: &str, ends| {
        if key.ends_with("_ms") || key.ends_with("ratio") {
            Value::Float(middle(ends))
        } else {
            Value::Integer(32_768)
        }
    };
    let set: Vec<(String, Value)> = model
        .range
        .iter()
        .filter_map(|(key, range)| match range {
            &Range::Numbers(ends) => Some((key.clone(), value(key, ends))),
            Range::Words(_) => None,
        })
        .collect();
    let begun = Instant::now();
    let read = (0..TIMES).filter(|_| Model::parse_with(text, &set).is_ok()).count();
    println!(
        "{:40} {:6.0} us each, of {read}",
        format!("a model with {} keys set", set.len()),
        begun.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES)
    );
}

fn main() {
    read();
    run("random reads, SPTF over 32", &[("tags", 32)], Op::Read, 32, 2_000_000);
    run(
        "random writes, 16 384 dirty extents",
        &[("slots", 16_384), ("cache_bytes", 1 << 30)],
        Op::Write,
        1,
        2_000_000,
    );
    run("random writes, 24 dirty extents", &[], Op::Write, 1, 2_000_000);
    for (name, from) in [("a stream of writes of 64 KiB", 0), ("the same, 512 bytes off", 512)] {
        drive(name, &[], Op::Write, 1, (0..2_000_000).map(|k| (from + k * 65_536, 65_536)));
    }
}
