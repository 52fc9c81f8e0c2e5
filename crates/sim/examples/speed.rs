//! How fast the simulation is: `cargo run --release -p trueline-sim --example speed`.
//!
//! Operations of the medium and events a second of real time on one core, for random reads chosen from 32 and for random writes
//! chosen from a full cache of 16 384 extents.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, clippy::disallowed_macros, clippy::print_stdout, reason = "it measures")]

use std::time::Instant;
use toml::Value;
use trueline_sim::drive::{Command, Completion, Op};
use trueline_sim::model::Model;
use trueline_sim::random::Random;

/// Keeps `depth` commands of 4 KiB in a drive.
fn run(name: &str, set: &[(&str, i64)], op: Op, depth: usize, commands: u64) {
    let set: Vec<(String, Value)> = set.iter().map(|&(key, value)| (key.to_owned(), Value::Integer(value))).collect();
    let text = Model::named("wd10ears").unwrap_or_default();
    let Ok(model) = Model::parse_with(text, &set) else { return };
    let mut drive = model.drive(1);
    let (mut random, mut done, mut open, mut now) = (Random::new(1), Vec::<Completion>::new(), 0, 0);
    let begun = Instant::now();
    for tag in 0..commands {
        let offset = random.below(model.size / 4096) * 4096;
        drive.submit(now, Command { tag, op, offset, length: 4096, fua: false });
        open += 1;
        while open >= depth {
            let Some(at) = drive.next() else { break };
            now = at;
            done.clear();
            drive.advance(now, &mut done);
            open -= done.len();
        }
    }
    let (seconds, counters) = (begun.elapsed().as_secs_f64(), drive.counters());
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    let [ops, events, simulated] = [counters.media_ops, counters.events, now].map(|count| count as f64);
    println!(
        "{name:40} {:6.2} M media operations/s {:6.2} M events/s {:8.0} x real time",
        ops / seconds / 1e6,
        events / seconds / 1e6,
        simulated / 1e12 / seconds
    );
}

fn main() {
    run("random reads, SPTF over 32", &[("tags", 32)], Op::Read, 32, 2_000_000);
    run("random writes, 16 384 dirty extents", &[("slots", 16_384), ("cache_bytes", 1 << 30)], Op::Write, 1, 2_000_000);
    run("random writes, 24 dirty extents", &[], Op::Write, 1, 2_000_000);
}
