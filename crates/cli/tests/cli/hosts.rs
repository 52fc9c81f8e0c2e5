//! This host, and others as `lsblk` and `nvme` listed them.

use crate::json::is_target;
use crate::{Ran, golden, list, program, run, scratch, texts};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/tests/fixtures")
}

/// The transcripts of `check --from`, beside this file; `TRUELINE_BLESS=1` rewrites them.
#[test]
fn other_hosts_are_checked_as_before() {
    let bless = std::env::var_os("TRUELINE_BLESS").is_some();
    let mut wrong = Vec::new();
    for name in ["stack.lsblk.json", "jumper.lsblk.json", "qemu.nvme.json"] {
        let ran = run(&fixtures(), &format!("check --from {name}"));
        let status = ran.code.map_or("killed".into(), |code| code.to_string());
        let got = format!(
            "$ trueline check --from {name}\n{}{}exit status {status}\n",
            ran.stdout, ran.stderr
        );
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/cli/{name}.want"));
        let wanted = fs::read_to_string(&path).unwrap_or_default();
        if bless {
            fs::write(&path, got).unwrap();
        } else if got != wanted {
            wrong.push(format!("{name}\n--- wanted\n{wanted}+++ got\n{got}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn other_hosts_are_documents_too() {
    for (name, targets) in
        [("stack.lsblk.json", 9), ("jumper.lsblk.json", 2), ("qemu.nvme.json", 2)]
    {
        let document = run(&fixtures(), &format!("check --json --from {name}")).json();
        let found = list(&document, "targets");
        found.iter().for_each(is_target);
        assert_eq!(found.len(), targets, "{name}");
        for target in found {
            let names = texts(list(target, "providers"), "provider");
            assert_eq!(
                names.iter().collect::<BTreeSet<_>>().len(),
                names.len(),
                "{name}: every provider has a name of its own: {names:?}"
            );
        }
    }
}

#[test]
fn partitions_of_another_host_have_the_numbers_in_their_names() {
    let scratch = scratch();
    let disk = |name: &str, parts: &str| {
        format!(
            r#"{{"name":"{name}","type":"disk","size":68719476736,"phy-sec":4096,"log-sec":512,"pttype":"gpt","children":[{parts}]}}"#
        )
    };
    let part = |name: &str, start: u64| {
        format!(
            r#"{{"name":"{name}","type":"part","size":1048576,"start":{start},"fstype":"ext4"}}"#
        )
    };
    let disks = [
        disk("sda", &[part("sda1", 2048), part("sda12", 8191)].join(",")),
        disk("nvme0n1", &part("nvme0n1p3", 2048)),
        disk("mmcblk0", &part("mmcblk0p2", 2048)),
    ];
    fs::write(
        scratch.path().join("lsblk.json"),
        format!(r#"{{"blockdevices":[{}]}}"#, disks.join(",")),
    )
    .unwrap();
    let document = run(scratch.path(), "check --json --from lsblk.json").ended(1).json();
    let names: Vec<Vec<&str>> = list(&document, "targets")
        .iter()
        .map(|t| texts(list(t, "providers"), "provider"))
        .collect();
    assert_eq!(names, [vec!["", "p1", "p12"], vec!["", "p3"], vec!["", "p2"]]);
    assert_eq!(document["targets"][0]["findings"][0]["provider"], "p12");
    // The list has no types of the table.
    assert!(document["targets"][0]["providers"][1]["type"].is_null());
}

#[test]
fn an_extended_partition_is_known_by_its_length() {
    // Linux shows two sectors of it; lsblk without udev does not say what it is.
    let document = run(&fixtures(), "check --json --from jumper.lsblk.json").json();
    let disk = &document["targets"][0];
    let providers = list(disk, "providers");
    assert_eq!(texts(providers, "provider"), ["", "s1", "s2", "s3", "s5"]);
    assert_eq!(providers[2]["data_bearing"], false);
    assert!(
        list(disk, "findings").iter().all(|f| f["provider"] != "s2" || f["severity"] == "note"),
        "{disk}"
    );
}

#[test]
fn lists_come_from_files_and_from_stdin() {
    let list = fs::read(fixtures().join("jumper.lsblk.json")).unwrap();
    let mut child = program(&fixtures())
        .args(["check", "--json", "--from", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&list).unwrap();
    let piped = Ran::of(&child.wait_with_output().unwrap());
    assert_eq!(
        piped.ended(0).json(),
        run(&fixtures(), "check --json --from jumper.lsblk.json").json()
    );
    // What the user says of the disks counts here as well.
    let said = run(&fixtures(), "check --json --physical 4096 --from jumper.lsblk.json").json();
    assert_ne!(said["targets"][0], piped.json()["targets"][0]);
}

/// A drive's own description judges the images that are for it.
#[test]
fn images_are_judged_by_a_drive_that_is_not_here() {
    let scratch = golden("seed-004-aligned");
    let all: Value = serde_json::from_slice(
        fs::read(fixtures().join("qemu.nvme.json")).unwrap().split(|&b| b == b'\n').next().unwrap(),
    )
    .unwrap();
    let mut drive = all;
    // An indirection unit of 16 KiB: NPWG and NPWA of 32 blocks of 512 bytes, 0's based, valid by
    // NSFEAT.
    for (key, value) in [("nsfeat", 0x10), ("npwg", 31), ("npwa", 31), ("nows", 31)] {
        drive[key] = value.into();
    }
    fs::write(scratch.path().join("id-ns.json"), drive.to_string()).unwrap();
    let judged = run(scratch.path(), "check --json --from id-ns.json disk").ended(1).json();
    let finding = &judged["targets"][0]["findings"][0];
    assert_eq!(
        (&finding["provider"], &finding["unit"], &finding["remainder"]),
        (&"s1a".into(), &16384.into(), &4096.into())
    );
    assert_eq!(run(scratch.path(), "check --json disk").json()["verdict"], "aligned");
    // A list of devices names its own targets.
    fs::write(scratch.path().join("lsblk.json"), r#"{"blockdevices":[]}"#).unwrap();
    assert!(run(scratch.path(), "check --from lsblk.json disk").refused().contains("lsblk.json"));
}

#[test]
fn a_list_that_cannot_be_read_does_not_keep_the_others_back() {
    let scratch = scratch();
    let good = fixtures().join("qemu.nvme.json");
    for (name, content) in [
        ("not-json", "{hello"),
        ("empty", ""),
        ("array", "[1,2]"),
        ("human", r#"{"blockdevices":[{"name":"sda","size":"64M"}]}"#),
    ] {
        fs::write(scratch.path().join(name), content).unwrap();
    }
    fs::write(scratch.path().join("latin1"), b"{\"blockdevices\":[{\"name\":\"\xe9\"}]}").unwrap();
    for bad in ["missing", "not-json", "empty", "array", "human", "latin1"] {
        let ran =
            run(scratch.path(), &format!("check --json --from {bad} --from {}", good.display()));
        assert!(ran.refused().contains(bad), "{}", ran.stderr);
        assert_eq!(ran.json()["targets"].as_array().map(Vec::len), Some(2), "{bad}");
    }
}

#[test]
fn this_host_has_every_device_that_has_a_size() {
    let scratch = scratch();
    let ran = run(scratch.path(), "check --json");
    assert!(matches!(ran.code, Some(0 | 1)) && ran.stderr.is_empty(), "{}", ran.stderr);
    let document = ran.json();
    assert_eq!(document["format"], "trueline/check/1");
    let targets = list(&document, "targets");
    targets.iter().for_each(is_target);
    // The other tests may attach loop devices meanwhile.
    let Ok(block) = fs::read_dir("/sys/block") else { return };
    for entry in block.map(|e| e.unwrap()) {
        let name = entry.file_name().into_string().unwrap();
        let text = |file: &str| fs::read_to_string(entry.path().join(file)).unwrap_or_default();
        if !name.starts_with("loop")
            && text("hidden").trim() != "1"
            && text("size").trim().parse::<u64>().is_ok_and(|sectors| sectors > 0)
        {
            let path = format!("/dev/{}", name.replace('!', "/"));
            // Device mapper's are known by their own names.
            let known = |t: &&Value| t["target"] == path || name.starts_with("dm-");
            assert!(targets.iter().any(|t| known(&t)), "no {path}: {}", ran.stdout);
        }
    }
    for form in ["", "--jsonl", "--sarif", "--prometheus"] {
        assert!(matches!(run(scratch.path(), &format!("check {form}")).code, Some(0 | 1)));
    }
}
