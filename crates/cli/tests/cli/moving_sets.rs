//! `move` of disks that are sets, and of one in a qcow2: interrupted, gone on with, and the same
//! bytes in the end.

use crate::counters::here;
use crate::moving::{MIB, done};
use crate::moving_interrupted::served_from;
use crate::skip::skip;
use crate::{golden, run, run_with, scratch, zeroes};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Lets a shell's `command` have the served `target` as `$uri`; returns what it prints.
fn with(directory: &Path, target: &str, command: &str) -> String {
    let ran = run_with(directory, &["serve", target, "--no-counters", "--run", command]);
    assert_eq!(ran.code, Some(0), "{target}: {command}: {}{}", ran.stdout, ran.stderr);
    ran.stdout
}

/// Makes two partitions on `target` that follow each other from sector 63 on, full of numbers.
fn parted(directory: &Path, target: &str) -> Vec<u8> {
    let numbers: Vec<u8> = (0..20 * MIB / 8)
        .flat_map(|n| (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
        .collect();
    fs::write(directory.join("numbers"), &numbers).expect("a file");
    let trueline = env!("CARGO_BIN_EXE_trueline");
    for (command, number) in [
        ("part create --overwrite -s mbr", ""),
        ("part add -t linux-data -b 63 -s 20m", "s1"),
        ("part add -t linux-data -b 41023 -s 20m", "s2"),
    ] {
        with(directory, target, &format!("'{trueline}' {command} \"$uri\""));
        if !number.is_empty() {
            let partition = match target.split_once('#') {
                Some(_) => format!("{target}{number}"),
                None => format!("{target}#{number}"),
            };
            with(directory, &partition, "nbdcopy numbers \"$uri\"");
        }
    }
    numbers
}

/// Asserts that `target` has the numbers in both of its partitions, on the grain.
fn moved(directory: &Path, target: &str, numbers: &[u8]) {
    with(directory, target, "nbdcopy \"$uri\" out");
    let out = fs::read(directory.join("out")).expect("a copy");
    for (at, nth) in [(MIB, 1), (21 * MIB, 2)] {
        assert!(out[at..][..numbers.len()] == *numbers, "{target}: partition {nth}");
    }
}

#[test]
fn a_set_is_arranged_as_a_disk_is() {
    if !here(&["nbdcopy"]) {
        return skip("moves of sets: no nbdcopy here");
    }
    for (class, options) in [("mirror", ""), ("stripe", "-s 65536 "), ("concat", "")] {
        let scratch = scratch();
        let directory = scratch.path();
        ["a.img", "b.img"].iter().for_each(|name| zeroes(directory, name, (64 << 20) + 512));
        done(directory, &format!("{class} label {options}data a.img b.img"));
        let target = format!("a.img,b.img#{class}/data");
        let numbers = parted(directory, &target);
        let plan = done(directory, &format!("move --align --dry-run {target}"));
        assert!(plan.contains("2 moves of 40 MiB"), "{plan}");
        let command = "move --align --journal j \"$uri\"";
        served_from(directory, &target, 9, command);
        done(directory, &format!("move --resume j {target}"));
        moved(directory, &target, &numbers);
        let [a, b] = ["a.img", "b.img"].map(|name| fs::read(directory.join(name)).expect("it"));
        // All but the metadata of each.
        assert!(class != "mirror" || a[..63 * MIB] == b[..63 * MIB], "the copies differ");
        // Back again, whole.
        done(directory, &format!("move --to 63s {target}s1"));
        let json = run(directory, &format!("move --align --json {target}")).json();
        assert_eq!(json["partitions"][0]["to"], 1 << 20, "{json}");
        moved(directory, &target, &numbers);
    }
}

/// A volume of LVM that lies on two disks, one part after the other, and one on a partition.
#[test]
fn a_volume_of_lvm_is_arranged_as_a_disk_is() {
    if !here(&["nbdcopy"]) {
        return skip("moves in a volume of LVM: no nbdcopy here");
    }
    for (name, disks, volume, beside) in [
        ("lvm-striped-two", "disk,disk1", "vg/linear", "vg/striped"),
        ("lvm-rhel", "disk", "rhel/root", "rhel/swap"),
    ] {
        let scratch = golden(name);
        let directory = scratch.path();
        let target = format!("{disks}#{volume}");
        let beside = || {
            with(directory, &format!("{disks}#{beside}"), "nbdcopy \"$uri\" out");
            fs::read(directory.join("out")).expect("a copy")
        };
        let before = beside();
        let numbers = parted(directory, &target);
        served_from(directory, &target, 9, "move --align --journal j \"$uri\"");
        done(directory, &format!("move --resume j {target}"));
        moved(directory, &target, &numbers);
        done(directory, &format!("move --to 63s {target}s1"));
        let json = run(directory, &format!("move --align --json {target}")).json();
        assert_eq!(json["partitions"][0]["to"], 1 << 20, "{json}");
        moved(directory, &target, &numbers);
        assert!(beside() == before, "{target}: the volume beside it changed");
    }
}

/// Boot code finds a FAT by its start, which is one on the set.
#[test]
fn a_fat_in_a_set_says_where_it_is_on_the_set() {
    if !here(&["nbdcopy", "mkfs.fat"]) {
        return skip("a FAT in a set: no nbdcopy or mkfs.fat here");
    }
    let scratch = scratch();
    let directory = scratch.path();
    ["a.img", "b.img"].iter().for_each(|name| zeroes(directory, name, (64 << 20) + 512));
    done(directory, "mirror label data a.img b.img");
    let target = "a.img,b.img#mirror/data";
    parted(directory, target);
    let command = "mkfs.fat -h 63 -C fat 20480 >said && nbdcopy fat \"$uri\"";
    with(directory, &format!("{target}s1"), command);
    // It goes where its clusters are on the grain.
    let json = run(directory, &format!("move --align --json {target}")).json();
    let mut moved = json["partitions"].as_array().expect("a list").iter();
    let first = moved.find(|moved| moved["from"] == 63 * 512).expect("the first partition");
    let to = first["to"].as_u64().expect("a number");
    with(directory, &format!("{target}s1"), "nbdcopy \"$uri\" out");
    let out = fs::read(directory.join("out")).expect("a copy");
    assert_eq!(u64::from(u32::from_le_bytes([out[28], out[29], out[30], out[31]])), to / 512);
}

#[test]
fn a_disk_in_a_qcow2_is_arranged_while_it_is_served() {
    if !here(&["nbdcopy", "qemu-img"]) {
        return skip("moves in a qcow2: no nbdcopy or qemu-img here");
    }
    let scratch = scratch();
    let directory = scratch.path();
    let qemu = |arguments: &str| {
        let words = arguments.split_whitespace();
        let ran = Command::new("qemu-img").args(words).current_dir(directory).output();
        let ran = ran.expect("qemu-img runs");
        assert!(ran.status.success(), "{arguments}: {}", String::from_utf8_lossy(&ran.stderr));
    };
    qemu("create -q -f qcow2 vm.qcow2 64M");
    let numbers = parted(directory, "vm.qcow2");
    let ran = run(directory, "move --align vm.qcow2");
    assert!(
        ran.code == Some(2)
            && ran.stderr.contains("trueline serve vm.qcow2 --run 'trueline ... \"$uri\"'"),
        "{}",
        ran.stderr
    );
    let plan = done(directory, "move --align --dry-run vm.qcow2");
    assert!(plan.contains("2 moves of 40 MiB"), "{plan}");
    served_from(directory, "vm.qcow2", 9, "move --align --journal j \"$uri\"");
    qemu("check -q vm.qcow2");
    let trueline = env!("CARGO_BIN_EXE_trueline");
    with(directory, "vm.qcow2", &format!("'{trueline}' move --resume j \"$uri\""));
    moved(directory, "vm.qcow2", &numbers);
    qemu("check -q vm.qcow2");
    qemu("convert -O raw vm.qcow2 raw");
    let raw = fs::read(directory.join("raw")).expect("an image");
    assert!(raw[MIB..][..numbers.len()] == numbers && raw[21 * MIB..][..numbers.len()] == numbers);
    assert!(!directory.join("j").exists());
}
