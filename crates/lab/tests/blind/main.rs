//! Probes of simulated drives that no one tuned them to: unit, phase, kind, firmware and noise are
//! drawn at random.
//!
//! `TRUELINE_DRAWS=1000 cargo test --release -p trueline-lab --test blind -- --nocapture` prints a
//! table of many; without it, a few are drawn, always the same.

mod drawn;
mod noise;

use drawn::{Answer, Drawn};
use std::collections::BTreeMap;

/// The draws of a run without `TRUELINE_DRAWS`.
const FEW: u64 = 24;

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
    let draws = std::env::var("TRUELINE_DRAWS").ok().and_then(|text| text.parse().ok());
    let first: u64 =
        std::env::var("TRUELINE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    for seed in first..first + draws.unwrap_or(FEW) {
        let drawn = Drawn::new(seed);
        let (answer, seconds) = drawn.probe(seed);
        if answer != Answer::Right {
            println!("{seed}: {answer:?}: {drawn}");
        }
        for key in [drawn.kind().to_string(), "all".into()] {
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
    assert!(right * 100 >= all * 95, "{right} of {all} answers are right");
}
