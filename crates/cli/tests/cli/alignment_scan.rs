//! `check --compat virt-alignment-scan`, and the program by that name.

use crate::{Ran, golden, lay_golden, run, scratch, zeroes};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

const COMPAT: &str = "check --compat virt-alignment-scan";

/// A directory with golden disks, each under a name of its own.
fn disks(all: &[(&str, &str)]) -> crate::recipe::Scratch {
    let scratch = scratch();
    for (golden, name) in all {
        let laid = lay_golden(golden, scratch.path());
        fs::rename(scratch.path().join(&laid[0]), scratch.path().join(name)).expect("a file");
    }
    scratch
}

/// Runs the program by the name of the other one.
fn by_name(directory: &Path, arguments: &str) -> Ran {
    let link = directory.join("virt-alignment-scan");
    if !link.exists() {
        symlink(env!("CARGO_BIN_EXE_trueline"), &link).expect("a link");
    }
    let mut command = Command::new(link);
    command.current_dir(directory).args(arguments.split_whitespace());
    Ran::of(&command.output().expect("the program can be run"))
}

#[test]
fn a_provider_and_a_set_are_refused_and_not_called_aligned() {
    let scratch = disks(&[("seed-001-sdd-63", "winxp"), ("gpt-sfdisk", "good")]);
    for target in ["winxp#s1", "winxp,good"] {
        let ran = run(scratch.path(), &format!("{COMPAT} {target}"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{target}");
    }
}

/// The lines of the program's own manual page, for disks that begin where it says.
#[test]
fn lines_and_statuses_are_those_of_the_other_manual() {
    let scratch = disks(&[("seed-001-sdd-63", "winxp"), ("gpt-sfdisk", "good")]);
    let here = scratch.path();
    for (name, start) in [("4k", 4096), ("32k", 32768), ("64k", 65536), ("1k", 1024)] {
        zeroes(here, name, 16 << 20);
        run(here, &format!("part create -s mbr {name}")).ended(0);
        let begin = start / 512;
        let added = run(here, &format!("part add -t linux-data -b {begin} -s 8192 {name}"));
        assert_eq!(added.code, Some(0), "{}", added.stderr);
    }
    for (name, status, line) in [
        ("winxp", 3, "/dev/sda1        32256          512    bad (alignment < 4K)\n"),
        ("1k", 3, "/dev/sda1         1024            1K   bad (alignment < 4K)\n"),
        ("4k", 2, "/dev/sda1         4096            4K   bad (alignment < 64K)\n"),
        ("32k", 2, "/dev/sda1        32768           32K   bad (alignment < 64K)\n"),
        ("64k", 0, "/dev/sda1        65536           64K   ok\n"),
        ("good", 0, "/dev/sda1      1048576         1024K   ok\n"),
    ] {
        let ran = run(here, &format!("{COMPAT} {name}"));
        assert!(ran.ended(status).stdout.starts_with(line), "{name}: {}", ran.stdout);
        assert_eq!(run(here, &format!("{COMPAT} --quiet {name}")).ended(status).stdout, "");
        let named = by_name(here, &format!("-a {name}"));
        assert_eq!(named.ended(status).stdout, ran.stdout, "{name}");
        assert_eq!(by_name(here, &format!("-q --add {name}")).ended(status).stdout, "");
    }
    // The worst counts, of all disks of the guest.
    let ran = by_name(here, "-a 64k -a winxp -a 4k");
    let names: Vec<&str> = ran.ended(3).stdout.lines().map(|line| &line[..9]).collect();
    assert_eq!(names, ["/dev/sda1", "/dev/sdb1", "/dev/sdc1"]);
}

#[test]
fn partitions_are_those_that_a_guest_sees() {
    let scratch = disks(&[
        ("mbr-sfdisk", "mbr"),
        ("qcow2-63", "q"),
        ("bsd-in-gpt", "nested"),
        ("ext-ext2-1k", "whole"),
    ]);
    let here = scratch.path();
    let partitions = |disk: &str| {
        let ran = run(here, &format!("{COMPAT} {disk}"));
        let words = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        ran.stdout.lines().map(words).collect::<Vec<_>>()
    };
    // Lines of virt-alignment-scan 1.48 for this disk: the extended partition, then what is in it.
    let logical = [
        "/dev/sda1 1048576",
        "/dev/sda2 9437184",
        "/dev/sda3 17825792",
        "/dev/sda5 18874368",
        "/dev/sda6 28311552",
        "/dev/sda7 37748736",
    ];
    assert_eq!(partitions("mbr"), logical);
    assert_eq!(partitions("q"), ["/dev/sda1 32256"]);
    // A table in a partition is none of the disk's.
    assert_eq!(partitions("nested"), ["/dev/sda1 20480"]);
    // A file system without a table is one, at the start of the disk.
    let ran = run(here, &format!("{COMPAT} whole"));
    assert_eq!(ran.ended(0).stdout, "/dev/sda1            0 - ok\n");
    // What is said to be raw is no container.
    assert!(by_name(here, "-a q").ended(3).stdout.starts_with("/dev/sda1 "));
    assert_eq!(by_name(here, "--format=raw -a q").ended(0).stdout, "");
    zeroes(here, "blank", 1 << 20);
    assert_eq!(run(here, &format!("{COMPAT} blank")).ended(0).stdout, "");
}

#[test]
fn what_cannot_be_scanned_ends_with_1() {
    let scratch = golden("gpt-sfdisk");
    let here = scratch.path();
    for ran in [
        run(here, &format!("{COMPAT} disk missing")),
        run(here, COMPAT),
        run(here, &format!("{COMPAT} --nonsense disk")),
        by_name(here, "-a missing -a disk"),
        by_name(here, "-d guest"),
        by_name(here, "-a disk --uuid"),
        by_name(here, "--nonsense"),
        by_name(here, "-a disk --blocksize=1"),
        by_name(here, ""),
    ] {
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
        assert!(ran.stderr.starts_with("trueline: ") && ran.stderr.lines().count() == 1);
    }
    assert!(by_name(here, "--help").ended(0).stdout.contains("--add <FILE>"));
    assert!(by_name(here, "-V").ended(0).stdout.starts_with("virt-alignment-scan "));
    // What is about the other program's machine changes nothing.
    let plain = by_name(here, "-a disk").ended(0).stdout.clone();
    let other = by_name(here, "--format=raw --blocksize=512 -P 4 -v -x -a disk");
    assert_eq!(other.ended(0).stdout, plain);
}

/// A profile in the environment makes this disk unreadable: it is of sectors of 512 bytes.
#[test]
fn a_remembered_profile_does_not_hide_a_partition() {
    let scratch = disks(&[("seed-001-sdd-63", "winxp")]);
    let plain = run(scratch.path(), &format!("{COMPAT} winxp"));
    assert_eq!(plain.code, Some(3), "{}", plain.stdout);
    let mut command = crate::program(scratch.path());
    command.env("TRUELINE_FOR", "4kn").args(COMPAT.split(' ')).arg("winxp");
    let judged = Ran::of(&command.output().expect("the program can be run"));
    assert_eq!((judged.code, judged.stdout), (plain.code, plain.stdout));
}
