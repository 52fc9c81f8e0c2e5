//! The model of ZFS against a recording of the real one: the same requests, and what its disk for
//! data was asked for each of them.
//!
//! `zfs.txt` was written by `tests/kernel/zfs.sh`, whose head says how, and what its words mean.

use crate::modelled::{counted, plans, sum};
use trueline_lab::layer::steps::Steps;
use trueline_lab::layer::zfs::Zfs;
use trueline_lab::layer::{FLUSH, Layer, ask};
use trueline_lab::rig::Op;
use trueline_lab::streams::Ask;

const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/layers/zfs.txt");

/// Labels and the room for a boot loader before the data, labels behind them.
const BEFORE: u64 = 4 << 20;
const BEHIND: u64 = 512 << 10;

#[test]
fn every_request_asks_for_what_zfs_asked() {
    let recording = std::fs::read_to_string(RECORDING).expect("the recording");
    let size: u64 = recording
        .lines()
        .find_map(|line| line.strip_suffix(" bytes")?.rsplit(' ').next()?.parse().ok())
        .expect("the size of the disk");
    let mut layer: Option<Zfs> = None;
    let (mut parts, mut requests, mut asked) = (0, 0, 0);
    for (line, number) in recording.lines().zip(1..) {
        if let Some(keys) = line.strip_prefix("# layer ") {
            layer = Some(made(keys, size));
            parts += 1;
        } else if line.starts_with("# end") {
            layer = None;
        } else if let Some(layer) = &mut layer {
            let (request, real) = line.split_once(" >").unwrap_or((line, ""));
            let mut steps = Steps::default();
            match requested(request) {
                Some(ask) => layer.plan(ask, &mut steps),
                None => layer.end_group(&mut steps),
            }
            .expect("a plan");
            let modelled: Vec<String> = steps.asks().map(|ask| word(ask, size)).collect();
            assert_eq!(expanded(real), modelled, "zfs.txt:{number}: {request}, real left");
            requests += 1;
            asked += modelled.len();
        }
    }
    assert_eq!((parts, requests, asked), (11, 1431, 3148), "what the manual says was compared");
}

#[test]
fn a_rig_counts_what_the_layer_plans() {
    let keys = "record = 16384\nsize = 8388608\nflush = \"group\"";
    let write = |n: u64| ask(Op::Write, n * 37 % 500 * 16384 + 512, 20000 / 512 * 512);
    let asks: Vec<Ask> = (0..100).map(|n| if n % 10 == 9 { FLUSH } else { write(n) }).collect();
    let counts = counted(&[("zfs", keys)], 1 << 30, &asks);
    assert_eq!(counts[0].made, sum(&plans("zfs", keys, 1 << 30, &asks)));
    // Each write covers two records in part; a group has a flush on each side of its uberblocks.
    assert_eq!((counts[0].asked.writes, counts[0].asked.flushes), (90, 10));
    assert_eq!((counts[0].caused_reads, counts[0].made.flushes), (counts[0].made.reads, 20));
    assert!(counts[0].made.reads > 0 && counts[0].made.writes > 2 * 90);
}

/// A layer of these keys over a disk of `size` bytes.
fn made(keys: &str, size: u64) -> Zfs {
    let keys = toml::from_str(&keys.replace(", ", "\n")).expect("keys");
    let mut layer = Zfs::new(keys).expect("a layer");
    layer.attach(size, 512).expect("it stands there");
    layer
}

/// The request of a line: `r OFFSET LENGTH`, `w`, `d` for a synchronous write, `fsync`; `None` for
/// `s`, the end of a group.
fn requested(line: &str) -> Option<Ask> {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |at: usize| words[at].parse().expect("a number");
    Some(match words[0] {
        "r" => ask(Op::Read, number(1), number(2)),
        "w" => ask(Op::Write, number(1), number(2)),
        "d" => Ask { fua: true, ..ask(Op::Write, number(1), number(2)) },
        "fsync" => FLUSH,
        "s" => return None,
        other => panic!("'{other}'"),
    })
}

/// A request as the recording has it.
fn word(Ask { op, offset, length, .. }: Ask, size: u64) -> String {
    match op {
        Op::Read => format!("R{length}"),
        Op::Write if offset < BEFORE || offset >= size - BEHIND => format!("L{length}"),
        Op::Write => format!("W{length}"),
        Op::Flush => "F".to_owned(),
    }
}

/// The words of a line, each as often as the number before it says.
fn expanded(words: &str) -> Vec<String> {
    let many = |word: &str| {
        let at = word.find(char::is_alphabetic).expect("a word");
        let (number, word) = word.split_at(at);
        vec![word.to_owned(); number.parse().unwrap_or(1)]
    };
    words.split_whitespace().flat_map(many).collect()
}
