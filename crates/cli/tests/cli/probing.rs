//! `probe`: what it says of simulated drives, and what it leaves of files and directories.
//!
//! How often it is right is tested on drives drawn at random, in `crates/lab/tests/blind`.

use crate::hosts::fixtures;
use crate::terminal::show;
use crate::{Ran, program, scratch, zeroes};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

fn probed(directory: &Path, arguments: &str) -> Ran {
    let arguments = format!("probe {arguments}");
    Ran::of(&program(directory).args(arguments.split(' ')).output().expect("it runs"))
}

#[test]
fn a_simulated_drive_is_seen_through_whatever_it_claims() {
    let scratch = scratch();
    let ran = probed(scratch.path(), "--json drive:wd10ears");
    ran.ended(0);
    let found = ran.json();
    assert_eq!(found["format"], "trueline/probe/1");
    assert_eq!((&found["verdict"], &found["time"]), (&"found".into(), &"virtual".into()));
    let units = found["units"].as_array().expect("units");
    assert_eq!(units.len(), 1, "{units:?}");
    assert_eq!((&units[0]["size"], &units[0]["phase"]), (&4096.into(), &0.into()));
    assert_eq!(units[0]["why"], "physical");
    assert!(units[0]["confidence"].as_f64().expect("a share") > 0.998);
    assert_eq!(found["claimed"]["physical"], 512);
    // The jumper of 2010 shifts all addresses by a sector.
    let ran = probed(scratch.path(), "--json --set jumper=true drive:wd10ears");
    assert_eq!(ran.json()["units"][0]["phase"], 3584);
    // Partitions count from their own start.
    zeroes(scratch.path(), "disk", 4096 * MIB);
    for edit in ["part create -s mbr disk", "part add -t linux-data -b 63 disk"] {
        let ran = program(scratch.path()).args(edit.split(' ')).output().expect("it runs");
        assert!(ran.status.success(), "{edit}: {}", String::from_utf8_lossy(&ran.stderr));
    }
    let ran = probed(scratch.path(), "drive:wd10ears=disk#s1");
    assert!(!ran.ended(0).stdout.contains("claims"), "a partition claims nothing: {}", ran.stdout);
    let ran = probed(scratch.path(), "--json drive:wd10ears=disk#s1");
    assert_eq!(ran.json()["units"][0]["phase"], 512);
}

#[test]
fn the_chunk_of_a_set_is_found_by_reads() {
    let scratch = scratch();
    for disk in ["a", "b"] {
        zeroes(scratch.path(), disk, 4096 * MIB);
    }
    for edit in [
        "stripe label -s 128k st a b",
        "part create -s mbr a,b#stripe/st",
        "part add -t linux-data -b 63 a,b#stripe/st",
    ] {
        let ran = program(scratch.path()).args(edit.split(' ')).output().expect("it runs");
        assert!(ran.status.success(), "{edit}: {}", String::from_utf8_lossy(&ran.stderr));
    }
    for (provider, phase) in [("stripe/st", 0), ("stripe/sts1", 128 * 1024 - 63 * 512)] {
        let drives = format!("drive:512n=a,drive:512n=b#{provider}");
        let found = probed(scratch.path(), &format!("--json {drives}")).ended(0).json();
        assert_eq!((&found["mode"], &found["verdict"]), (&"read".into(), &"found".into()));
        let units = found["units"].as_array().expect("units");
        assert_eq!(units.len(), 1, "{found}");
        let unit = &units[0];
        assert_eq!((&unit["size"], &unit["phase"]), (&131_072.into(), &phase.into()));
        assert_eq!(unit["why"], "chunk");
        assert_eq!(found["claimed"]["chunk"], 131_072);
    }
    let ran = probed(scratch.path(), "drive:512n=a,drive:512n=b#stripe/st");
    assert!(ran.ended(0).stdout.contains("it claims chunks of 128 KiB, which is true\n"));
    let refused = probed(scratch.path(), "drive:512n=a,drive:512n=b");
    assert!(refused.refused().contains("name the provider after a #"));
    // On real disks as well, and never by writes.
    let refused = probed(scratch.path(), "--destructive a,b#stripe/st");
    assert!(refused.refused().contains("probe its disks, or read the set for its chunk"));
    let found = probed(scratch.path(), "--seconds 1 --json a,b#stripe/st").ended(0).json();
    assert_eq!((&found["time"], &found["mode"]), (&"real".into(), &"read".into()));
    // A mirror has no chunk, and what is refused of a set is not advised.
    for disk in ["c", "d"] {
        zeroes(scratch.path(), disk, 64 * MIB);
    }
    let made = program(scratch.path()).args(["mirror", "label", "gm", "c", "d"]).output();
    assert!(made.expect("it runs").status.success());
    let ran = probed(scratch.path(), "--seconds 1 c,d#mirror/gm");
    assert!(!ran.ended(0).stdout.contains("--destructive"), "{}", ran.stdout);
}

#[test]
fn a_drive_without_larger_units_is_told_from_one_that_cannot_be_seen() {
    let scratch = scratch();
    let found = probed(scratch.path(), "--json drive:512n").ended(0).json();
    assert_eq!(found["verdict"], "nothing");
    assert_eq!(found["units"], Value::Array(Vec::new()));
    assert!(found["most_ratio"].as_f64().expect("a ratio") < 1.6, "{found}");
    let found = probed(scratch.path(), "--json --seconds 5 drive:md").ended(0).json();
    assert_ne!(found["verdict"], "nothing", "memory has no medium");
    assert_eq!(found["units"], Value::Array(Vec::new()));
}

#[test]
fn a_drive_that_answers_from_its_buffer_is_seen_by_streams() {
    let scratch = scratch();
    let found = probed(scratch.path(), "--json drive:qlc-64k").ended(0).json();
    assert_eq!(
        (&found["units"][0]["size"], &found["units"][0]["phase"]),
        (&65536.into(), &0.into())
    );
    let durable = found["latency_ns"]["durable"].as_u64().expect("a time");
    assert!(durable < 100_000, "its buffer is protected");
}

/// Single requests to such drives take the same time everywhere: a network, or a medium whose read
/// is short beside what a flush takes.
#[test]
fn single_requests_that_are_alike_prove_nothing() {
    let scratch = scratch();
    for drive in [
        "--set command_ns=450000 drive:qlc-16k",
        "--set power_loss_protection=false --set read_ns=10000 drive:qlc-16k",
    ] {
        let ran = probed(scratch.path(), &format!("--json {drive}"));
        let found = ran.ended(0).json();
        assert_ne!(found["verdict"], "nothing", "{drive}: {found}");
        let units = found["units"].as_array().expect("units");
        assert!(units.iter().all(|unit| unit["size"] == 16384), "{drive}: {found}");
    }
}

#[test]
fn reads_change_nothing_and_say_what_they_cannot_see() {
    let scratch = scratch();
    let bytes: Vec<u8> = (0..32 * MIB).map(|at| u8::try_from(at % 251).expect("small")).collect();
    fs::write(scratch.path().join("disk"), &bytes).expect("a file");
    let ran = probed(scratch.path(), "--seconds 2 disk");
    ran.ended(0);
    assert!(ran.stdout.contains(" reads ("), "{}", ran.stdout);
    assert!(fs::read(scratch.path().join("disk")).expect("a file") == bytes, "it was changed");
    let ran = probed(scratch.path(), "--seconds 2 --json disk");
    let found = ran.json();
    assert_eq!((&found["mode"], &found["origin"]), (&"read".into(), &"target".into()));
    let units = found["units"].as_array().expect("units");
    assert!(units.iter().all(|unit| unit["why"] != "physical"), "reads show no such unit: {found}");
    assert!(!ran.stdout.contains("true\n"), "reads prove no claim");
}

#[test]
fn a_scratch_file_is_gone_afterwards_also_when_it_is_interrupted() {
    let scratch = scratch();
    let directory = scratch.path().join("there");
    fs::create_dir(&directory).expect("a directory");
    fs::write(directory.join("mine"), "kept").expect("a file");
    let left = || {
        let names = fs::read_dir(&directory).expect("a directory");
        names.map(|entry| entry.expect("an entry").file_name()).collect::<Vec<_>>()
    };
    let found = probed(scratch.path(), "--seconds 2 --size 32m --json there").ended(0).json();
    assert_eq!(found["mode"], "write");
    assert!(["device", "file"].map(Value::from).contains(&found["origin"]), "{found}");
    assert_eq!(left(), ["mine"]);
    let mut child = program(scratch.path())
        .args("probe --seconds 600 --size 32m there".split(' '))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let since = Instant::now();
    while left().len() == 1 && since.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(left().len(), 2, "there is a scratch directory");
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status().expect("kill can be run");
    assert!(killed.success());
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(2));
    assert_eq!(left(), ["mine"]);
}

#[test]
fn what_has_no_medium_or_no_room_is_refused() {
    let scratch = scratch();
    zeroes(scratch.path(), "small", 64 << 10);
    for (arguments, said) in [
        ("md:64m", "there is no medium to measure"),
        ("zero:1g", "there is no medium to measure"),
        ("small", "it has 65536 bytes: a probe needs 524288"),
        ("--size 1m .", "a scratch file of 1 MiB is too small: it needs 16 MiB"),
        ("--size 64m small", "--size is for a scratch file in a directory"),
        ("missing", "missing"),
        ("drive:md,drive:md", "several disks: name the provider after a #: #stripe/data"),
        ("--size 4096p .", "a scratch file of"),
    ] {
        let ran = probed(scratch.path(), arguments);
        assert!(ran.refused().contains(said), "{arguments}: {}", ran.stderr);
    }
}

#[test]
fn its_report_fits_any_terminal() {
    let scratch = scratch();
    for width in [40, 60, 80, 100, 132] {
        let shown = show(scratch.path(), width, &["probe", "drive:wd10ears"]);
        assert_eq!(shown.code, Some(0), "{}", shown.text());
        assert!(shown.wider(width).is_empty(), "{width}: {}", shown.text());
        assert!(shown.text().contains("physical"), "{width}: {}", shown.text());
    }
}

/// A drive that claims sectors of 512 bytes, in a listing of another host.
#[test]
fn a_drive_is_judged_by_what_was_measured_of_it() {
    let scratch = scratch();
    let file = scratch.path().join("measured.json");
    let write = |format: &str| {
        let name = r#""model": "QEMU NVMe Ctrl", "serial": "img0""#;
        let drive = format!(r#"{{{name}, "size": 4096, "phase": 512, "confidence": 1}}"#);
        let text = format!(r#"{{"format": "{format}", "drives": [{drive}]}}"#);
        fs::write(&file, text).expect("a file");
    };
    let checked = || {
        let listing = fixtures().join("jumper.lsblk.json");
        let mut command = program(scratch.path());
        command.args(["check", "--json", "--from"]).arg(listing).env("TRUELINE_MEASURED", &file);
        Ran::of(&command.output().expect("it runs"))
    };
    let physical = |ran: &Ran| {
        let document = ran.json();
        let targets = document["targets"].as_array().expect("targets").clone();
        let target = targets.into_iter().find(|of| of["target"] == "/dev/nvme0n1").expect("it");
        let grains = target["providers"][0]["grains"].as_array().expect("grains").clone();
        grains.into_iter().filter(|grain| grain["why"] == "physical").collect::<Vec<_>>()
    };
    let claimed = checked();
    claimed.ended(0);
    assert!(physical(&claimed).iter().all(|grain| grain["source"] != "measured"));
    write("trueline/measured/1");
    let measured = checked();
    measured.ended(0);
    let measured = physical(&measured);
    assert_eq!(measured.len(), 1, "{measured:?}");
    assert_eq!((&measured[0]["size"], &measured[0]["phase"]), (&4096.into(), &512.into()));
    assert_eq!(
        (&measured[0]["source"], &measured[0]["trust"]),
        (&"measured".into(), &"trusted".into())
    );
    write("trueline/measured/2");
    let odd = checked();
    assert_eq!(odd.code, Some(0));
    assert!(odd.stderr.contains("what was measured is not used"), "{}", odd.stderr);
    assert_eq!(physical(&odd), physical(&claimed));
}
