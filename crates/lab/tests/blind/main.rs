//! Probes of simulated drives and sets that no one tuned them to: unit, phase, kind, firmware and
//! noise are drawn at random.
//!
//! `TRUELINE_DRAWS=1000 cargo test --release -p trueline-lab --test blind -- --nocapture` prints
//! tables of many, 1000 drives and sets in proportion; without it, a few are drawn, always the
//! same.

mod drawn;
mod noise;
mod sets;

use drawn::{Answer, Drawn};
use sets::DrawnSet;
use std::collections::BTreeMap;

/// The draws of drives without `TRUELINE_DRAWS`, and those of sets: disks, rows and SSDs.
const FEW: u64 = 24;
const FEW_SETS: u64 = 12;
const FEW_ROWS: u64 = 3;
const FEW_SSDS: u64 = 2;

/// Answers of one kind of drive.
#[derive(Default)]
struct Tally {
    right: u64,
    wrong: u64,
    unsure: u64,
    seconds: f64,
}

#[test]
fn units_of_unseen_drives_are_found() {
    tally(FEW, 95, |seed| {
        let drawn = Drawn::new(seed);
        let (answer, seconds) = drawn.probe(seed);
        (drawn.kind().into(), drawn.to_string(), answer, seconds)
    });
}

#[test]
fn chunks_of_unseen_sets_of_disks_are_found() {
    tally(FEW_SETS, 95, |seed| {
        let drawn = DrawnSet::new(seed, &["wd10ears", "wd10eads", "512n", "4kn"]);
        let (answer, seconds) = drawn.probe(seed);
        (drawn.kind(), drawn.to_string(), answer, seconds)
    });
}

/// All that begins a row lies on one drive, which is busy where others are not.
#[test]
fn a_row_is_not_taken_for_a_chunk() {
    tally(FEW_ROWS, 95, |seed| {
        let drawn = DrawnSet::with_rows(seed, &["wd10eads", "512n"]);
        let (answer, seconds) = drawn.probe(seed);
        (drawn.kind(), drawn.to_string(), answer, seconds)
    });
}

/// Two SSDs answer as soon as one: nothing has to be found, and nothing wrong may be.
#[test]
fn chunks_of_unseen_sets_of_ssds_are_found_or_not() {
    tally(FEW_SSDS, 0, |seed| {
        let drawn = DrawnSet::new(seed, &["qlc-16k", "qlc-64k"]);
        let (answer, seconds) = drawn.probe(seed);
        (drawn.kind(), drawn.to_string(), answer, seconds)
    });
}

/// Draws, counts and prints the answers, and holds them to the bounds: kind, description, answer
/// and virtual seconds of the drive of a seed.
fn tally(few: u64, least: u64, of: impl Fn(u64) -> (String, String, Answer, f64)) {
    let draws: Option<u64> =
        std::env::var("TRUELINE_DRAWS").ok().and_then(|text| text.parse().ok());
    let first: u64 =
        std::env::var("TRUELINE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    for seed in first..first + draws.map_or(few, |draws| draws * few / FEW) {
        let (kind, drawn, answer, seconds) = of(seed);
        if answer != Answer::Right {
            println!("{seed}: {answer:?}: {drawn}");
        }
        for key in [kind, "all".into()] {
            let tally = tallies.entry(key).or_default();
            match answer {
                Answer::Right => tally.right += 1,
                Answer::Wrong(_) => tally.wrong += 1,
                Answer::Unsure(_) => tally.unsure += 1,
            }
            tally.seconds += seconds;
        }
    }
    println!("{:24} {:>6} {:>6} {:>12} {:>9}", "drive", "right", "wrong", "cannot tell", "seconds");
    for (name, Tally { right, wrong, unsure, seconds }) in &tallies {
        #[allow(clippy::cast_precision_loss)]
        let mean = seconds / (right + wrong + unsure) as f64;
        println!("{name:24} {right:6} {wrong:6} {unsure:12} {mean:9.1}");
    }
    let Tally { right, wrong, unsure, .. } = &tallies["all"];
    let all = right + wrong + unsure;
    assert!(wrong * 100 <= all, "{wrong} of {all} answers are wrong");
    assert!(right * 100 >= all * least, "{right} of {all} answers are right");
}
