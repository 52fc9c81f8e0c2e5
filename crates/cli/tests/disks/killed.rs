//! `move --align` of a whole disk as a user runs it, and twenty kills on its way.
//!
//! A kill counts where the move had begun and had not ended: its journal is there, whole, and
//! `--resume` goes on with it.

use crate::guest::{sh, trueline};
use crate::recipe::Scratch;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Number of kills that count.
const KILLS: usize = 20;
/// Fewest states of disk and journal, as far as samples show them, in which it is killed.
const STATES: usize = 3;

/// Puts all of `disk.img` on the grain, by one command that is killed with SIGKILL twenty times.
/// The disk as it was before is `before.img` then.
///
/// # Panics
/// Where the move does not end well, or twenty kills do not find it under way.
pub(crate) fn align(here: &Scratch) {
    sh(here, "cp --sparse=always disk.img before.img");
    let used = fs::metadata(here.path().join("disk.img")).expect("an image").blocks() * 512;
    let mut random = Random(used);
    for attempt in 0..10 {
        if let Some(states) = kill(here, used >> attempt, &mut random) {
            assert!(states >= STATES, "killed in {states} states only");
            return;
        }
        // It ended too soon: again from the beginning, in smaller strides.
        sh(here, "rm -f disk.img.journal; cp --sparse=always before.img disk.img");
    }
    panic!("it was never killed {KILLS} times on its way");
}

/// Kills a move of `used` bytes, then goes on to its end. The number of states in which the disk
/// was found; `None` if the move ended before the last kill.
fn kill(here: &Scratch, used: u64, random: &mut Random) -> Option<usize> {
    let journal = here.path().join("disk.img.journal");
    let before = samples(here, "before.img");
    let all = before.iter().filter(|&&sample| sample != 0).count() as u64;
    let (mut kills, mut states, mut rest) = (0, BTreeSet::new(), all);
    let mut words = ["move", "--align", "disk.img"];
    while kills < KILLS {
        let mut child = Command::new(env!("CARGO_BIN_EXE_trueline"))
            .args(words)
            .current_dir(here.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs");
        // What is left to be written, divided among the kills to come; what is near is written
        // twice, and a step that was cut short once more.
        let left = used / all * rest;
        let after = random.below(left * 3 / (KILLS - kills) as u64).min(left / 10 * 9);
        let later = random.below(10_000) * random.below(2);
        // A machine that is busy kills late: where the move is ahead, the next kill comes at once.
        if rest * KILLS as u64 >= all * (KILLS - kills) as u64 {
            while written(&child) < after && child.try_wait().expect("a child").is_none() {
                std::thread::sleep(Duration::from_micros(200));
            }
            // At once it is in a write; later it waits for a flush, or writes something else.
            std::thread::sleep(Duration::from_micros(later));
        }
        // Standard's kill is SIGKILL.
        let _ = child.kill();
        let status = child.wait().expect("it ends");
        if status.code().is_some() {
            assert!(status.success(), "{words:?} {status}");
            return None;
        }
        if !journal.exists() {
            // Before the journal was made it is begun again; after it was removed it is over.
            if words[1] == "--resume" {
                return None;
            }
            continue;
        }
        let ran = Command::new(env!("CARGO_BIN_EXE_trueline"))
            .args(["move", "--resume", "--dry-run", "disk.img"])
            .current_dir(here.path())
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&ran.stderr);
        if words[1] == "--align" && said.contains("not a complete journal") {
            fs::remove_file(&journal).expect("a file");
            continue;
        }
        assert!(ran.status.success(), "{said}");
        kills += 1;
        words[1] = "--resume";
        let now = samples(here, "disk.img");
        rest = before.iter().zip(&now).filter(|(was, is)| **was != 0 && was == is).count() as u64;
        states.insert((now, samples(here, "disk.img.journal")));
    }
    trueline(here, "move --resume disk.img");
    assert!(!journal.exists());
    Some(states.len())
}

/// Bytes that a child has written so far, to the disk and to the journal.
fn written(child: &Child) -> u64 {
    let told = fs::read_to_string(format!("/proc/{}/io", child.id())).unwrap_or_default();
    let line = told.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(u64::MAX)
}

/// Some bytes of each 64 KiB of a file, as numbers.
fn samples(here: &Scratch, name: &str) -> Vec<u128> {
    let file = File::open(here.path().join(name)).expect("an image");
    let length = file.metadata().expect("its length").len();
    let sample = |at: u64| {
        let mut bytes = [0; 16];
        file.read_exact_at(&mut bytes, at).expect("a read");
        u128::from_le_bytes(bytes)
    };
    (0..length - 16).step_by(1 << 16).map(sample).collect()
}

/// Numbers that look random, the same ones every time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end.max(1)
    }
}
