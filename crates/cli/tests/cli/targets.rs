//! Targets as the command line spells them: `TARGET := DISK[,DISK...][#PROVIDER]`.

use crate::{golden, list, run, run_with, scratch, texts, zeroes};
use serde_json::Value;
use std::fs;

/// The providers of the one target in a document.
fn providers(document: &Value) -> Vec<&str> {
    texts(list(&document["targets"][0], "providers"), "provider")
}

#[test]
fn a_provider_comes_with_what_stands_on_it() {
    let scratch = golden("bsd-in-gpt");
    let check = |target: &str| run_with(scratch.path(), &["check", "--json", target]).json();
    let all = check("disk");
    let all = providers(&all);
    let nested = all.iter().find(|p| p.ends_with('a')).expect("a BSD partition");
    let outer = nested.trim_end_matches('a');
    let report = check(&format!("disk#{outer}"));
    let kept = providers(&report);
    assert!(
        kept[0] == outer && kept.contains(nested) && kept.iter().all(|p| p.starts_with(outer)),
        "{kept:?}"
    );
    assert_eq!(providers(&check(&format!("disk#{nested}"))), [*nested]);
    // The whole disk is the provider without a name.
    assert_eq!(providers(&check("disk#")), all);
    let ran = run(scratch.path(), "check disk#p99");
    assert!(ran.refused().contains("no provider #p99: there are "), "{}", ran.stderr);
    assert!(run(scratch.path(), "info md:1m#s1").refused().contains("there are none"));
}

#[test]
fn a_set_is_named_by_its_disks() {
    let scratch = golden("seed-003-default");
    let document = run(scratch.path(), "check --json disk,disk1#stripe/data").json();
    assert_eq!(providers(&document)[0], "stripe/data");
    assert!(providers(&document).contains(&"stripe/datas1a"));
    let document = run(scratch.path(), "check --json disk1,disk").json();
    assert_eq!(&providers(&document)[..3], ["disk1", "disk", "stripe/data"]);
}

#[test]
fn a_name_with_a_hash_or_a_comma_in_it_is_a_name() {
    let scratch = golden("gpt-sfdisk");
    let names = ["we#ird.img", "a,b.img", "a#p1,b#p2.img", ",", "#"];
    for name in names {
        fs::copy(scratch.path().join("disk"), scratch.path().join(name)).unwrap();
        let check =
            |target: &str| run_with(scratch.path(), &["check", "--json", target]).ended(0).json();
        assert_eq!(providers(&check(name)), ["", "p1", "p2", "p3"], "{name}");
        assert_eq!(providers(&check(&format!("{name}#p2"))), ["p2"], "{name}");
        assert_eq!(providers(&check(&format!("disk,{name}"))).len(), 8, "{name}");
        assert_eq!(providers(&check(&format!("{name},disk#diskp2"))), ["diskp2"], "{name}");
    }
}

#[test]
fn disks_of_one_name_are_told_apart() {
    let scratch = golden("gpt-sfdisk");
    for directory in ["x", "y"] {
        fs::create_dir(scratch.path().join(directory)).unwrap();
        fs::copy(scratch.path().join("disk"), scratch.path().join(directory).join("d.img"))
            .unwrap();
    }
    for target in ["x/d.img,y/d.img", "md:64m,md:64m", "zero:1m,zero:1m,zero:1m"] {
        let document = run(scratch.path(), &format!("check --json {target}")).json();
        let mut names = providers(&document);
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{target}: {names:?}");
    }
    let document = run(scratch.path(), "check --json x/d.img,disk").json();
    assert_eq!(providers(&document)[..2], ["d", "disk"], "the file's name, where that is enough");
    assert!(run(scratch.path(), "check x/d.img,x/d.img").refused().contains("twice"));
}

#[test]
fn memory_and_zeroes_are_disks() {
    let scratch = scratch();
    for (target, length) in [
        ("md:64m", 64 << 20),
        ("zero:1g", 1 << 30),
        ("md:1MiB", 1 << 20),
        ("zero:4096", 4096),
        ("md:2kB", 2000),
        ("zero:1MB", 1_000_000),
        ("zero:90g", 90 << 30),
        ("md:2048s", 1 << 20),
    ] {
        let document = run(scratch.path(), &format!("check --json {target}")).ended(0).json();
        let disk = &document["targets"][0]["providers"][0];
        assert_eq!(
            (disk["length"].as_u64(), &document["verdict"]),
            (Some(length), &Value::from("unknown")),
            "{target}"
        );
    }
    for target in ["md:", "md:x", "md:-1", "md:16e", "zero:1.5g", "zero: 1g", "md:4 k"] {
        assert!(
            run_with(scratch.path(), &["check", target]).refused().contains("is not a size"),
            "{target}"
        );
    }
    // A file of that name is a file.
    zeroes(scratch.path(), "md:64m", 4096);
    let document = run(scratch.path(), "check --json md:64m").json();
    assert_eq!(document["targets"][0]["providers"][0]["length"], 4096);
}

#[test]
fn what_is_not_a_disk_is_refused_in_words() {
    let scratch = golden("gpt-sfdisk");
    #[cfg(not(feature = "cloud"))]
    for target in ["s3://bucket/key", "https://host/disk.img"] {
        let ran = run(scratch.path(), &format!("check {target}"));
        assert!(ran.refused().contains("this build reads no objects"), "{}", ran.stderr);
    }
    for target in ["ftp://host/key", "sftp://host/disk.img"] {
        let ran = run(scratch.path(), &format!("check {target}"));
        assert!(
            ran.refused().contains("this version reads image files and block devices"),
            "{}",
            ran.stderr
        );
    }
    for (target, why) in [
        ("nbd://127.0.0.1:1/export", "connect to nbd://127.0.0.1:1/export: "),
        ("nbd+unix:///p1?socket=none", "connect to nbd+unix:///p1?socket=none: "),
        ("nbd+unix:///p1", "?socket=PATH is missing"),
        ("nbds://host/?tls-certificates=", "tls-certificates= names no directory"),
        ("nbds://host/?tls-certificates=none", "read none/ca-cert.pem: no such file or device"),
    ] {
        let ran = run(scratch.path(), &format!("check {target}"));
        assert!(ran.refused().contains(why), "{}", ran.stderr);
    }
    for target in ["", ",", "disk,", ",disk", "disk,,disk", "#p1"] {
        let ran = run_with(scratch.path(), &["check", target]);
        assert!(ran.refused().contains("the name of a disk is missing"), "{}", ran.stderr);
    }
}

#[test]
fn long_targets_are_refused_soon() {
    let scratch = scratch();
    for mark in [",", "#", "a#,", "md:1m,#"] {
        let target = mark.repeat(120_000 / mark.len());
        run_with(scratch.path(), &["check", &target]).refused();
    }
}

#[test]
fn options_may_come_after_targets() {
    let scratch = golden("gpt-sfdisk");
    let before = run(scratch.path(), "check --json --for ssd-16k disk").ended(0).stdout.clone();
    for order in [
        "check disk --json --for ssd-16k",
        "check --json disk --for=ssd-16k",
        "check --for ssd-16k disk --json --color never",
    ] {
        assert_eq!(run(scratch.path(), order).ended(0).stdout, before, "{order}");
    }
    // And a name that looks like an option goes behind `--`.
    fs::copy(scratch.path().join("disk"), scratch.path().join("--json")).unwrap();
    assert!(
        run(scratch.path(), "check --json -- --json").ended(0).json()["targets"][0]["target"]
            == "--json"
    );
}

#[test]
fn a_thousand_images_keep_their_order() {
    let scratch = scratch();
    let names: Vec<String> = (0..1000).map(|n| format!("{}.img", (n * 7919) % 1000)).collect();
    for name in &names {
        zeroes(scratch.path(), name, 1 << 20);
    }
    let ran = run(scratch.path(), &format!("check --jsonl {}", names.join(" ")));
    ran.ended(0);
    let found: Vec<String> = ran
        .stdout
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["target"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(found, names);
}
