//! `bench` on exports of NBD servers: our own, and qemu-nbd, which takes one client.
//!
//! Without qemu-nbd its test is skipped, and that is said; with `TRUELINE_ORACLE=all` it is a
//! failure.

use crate::serve_chain::while_served;
use crate::serve_tls::{has, shell};
use crate::{run, scratch, zeroes};
use serde_json::Value;
use std::fs;

/// Options of a short measurement.
const SHORT: &str = "--runs 2 --warmup 0 --count 40 --json";

#[test]
fn reads_and_writes_go_through_with_many_in_flight() {
    let scratch = scratch();
    for (workload, ops) in
        [("random-read -n 16", 40), ("random-write -n 16", 40), ("dd --bs 3m -n 2", 4)]
    {
        let command = format!("bench {workload} URI --runs 2 --warmup 0 --json --count {ops}");
        let ran = while_served(scratch.path(), "md:16m", &command);
        let found = ran.ended(0).json();
        for (nth, offset) in [0, 512].into_iter().enumerate() {
            let variant = &found["variants"][nth];
            assert_eq!((&variant["engine"], &variant["offset"]), (&"nbd".into(), &offset.into()));
            assert_eq!(variant["runs"].as_array().map(Vec::len), Some(2), "{workload}");
            assert_eq!(variant["runs"][0]["ops"], ops, "{workload}");
        }
        assert_eq!(found["time"], "real");
    }
}

/// What a server announces is what requests keep to: its least block, and its grain.
#[test]
fn the_blocks_of_an_export_are_kept() {
    let scratch = scratch();
    let served = |target: &str, more: &str| {
        let command = format!("bench random-read URI {SHORT} {more}");
        while_served(scratch.path(), target, &command)
    };
    let drive = served("drive:wd10ears@16m", "");
    let lies = |found: &Value, nth: usize| found["variants"][nth]["aligned"].clone();
    let found = drive.ended(0).json();
    assert_eq!((lies(&found, 0), lies(&found, 1)), (true.into(), false.into()));
    assert_eq!(found["variants"][1]["missed"]["why"], "physical");
    let set = served("drive:4kn@16m", "");
    assert_eq!(set.ended(0).json()["variants"][1]["offset"], 4096);
}

#[test]
fn what_is_on_an_export_is_lost_only_if_that_is_said() {
    let scratch = crate::golden("bsd-freebsd");
    let before = fs::read(scratch.path().join("disk")).expect("the disk");
    let write = |target: &str, more: &str| {
        while_served(scratch.path(), target, &format!("bench random-write {SHORT} {more}"))
    };
    for (target, more, why) in [
        ("disk", "URI", "there is an MBR with 1 partition: say --destructive to lose it: nothing"),
        ("-r disk", "URI --destructive", "its server exports it read-only"),
        ("disk", "URI --destructive --buffered", "--buffered is for files and devices"),
        ("disk", "URI --destructive --allow-busy", "--allow-busy is for files and devices"),
        ("disk", "URI,disk#mirror/m --destructive", "an export is measured alone"),
    ] {
        let ran = write(target, more);
        // A note of the server may stand before it.
        assert!(ran.code == Some(2) && ran.stderr.contains(why), "{more}: {}", ran.stderr);
        assert!(before == fs::read(scratch.path().join("disk")).expect("the disk"), "{more}");
    }
    let ran = write("disk", "URI --destructive --offset 0");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(before != fs::read(scratch.path().join("disk")).expect("the disk"), "nothing written");
}

/// Reads and writes at a time: a warning says that writes wait.
#[test]
fn a_mixed_workload_says_that_its_writes_wait() {
    let scratch = scratch();
    let mixed = "bench raidtest URI -n 8 --bs 64k --runs 2 --warmup 0 --count 80 --offset 0";
    let ran = while_served(scratch.path(), "md:16m", mixed);
    assert!(ran.ended(0).stdout.contains("a write is sent when the reads before it are answered"));
    let reads = while_served(scratch.path(), "md:16m", &format!("{mixed} -r"));
    assert!(!reads.ended(0).stdout.contains("a write is sent"), "{}", reads.stdout);
}

#[test]
fn a_server_of_a_single_client_is_measured() {
    if !has("qemu-nbd") {
        return;
    }
    let scratch = scratch();
    zeroes(scratch.path(), "disk", 16 << 20);
    let program = env!("CARGO_BIN_EXE_trueline");
    let lines = format!(
        "qemu-nbd --format raw --socket \"$PWD/s\" --persistent --fork --pid-file pid disk\n\
        trap 'kill $(cat pid)' EXIT\n\
        for w in random-read random-write; do \
        '{program}' bench $w -n 16 {SHORT} \"nbd+unix:///?socket=$PWD/s\"; done"
    );
    let said = shell(scratch.path(), &lines);
    assert_eq!(said.matches("\"engine\": \"nbd\"").count(), 4, "{said}");
    let refused = run(scratch.path(), "bench random-read nbd+unix:///?socket=none");
    assert!(refused.refused().contains("connect to"), "{}", refused.stderr);
}
