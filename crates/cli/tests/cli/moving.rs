//! `move`: partitions of real file systems, killed at any moment, and what is refused.

use crate::counters::here;
use crate::{run, run_with, scratch, zeroes};
use std::fs;
use std::path::Path;
use std::process::Command;

pub(super) const MIB: usize = 1 << 20;

pub(super) fn done(directory: &Path, command: &str) -> String {
    let ran = run(directory, command);
    assert_eq!(ran.code, Some(0), "{command}: {}{}", ran.stdout, ran.stderr);
    ran.stdout
}

/// Message with which `command` is refused; the disk stays as it is.
pub(super) fn refused(directory: &Path, command: &str) -> String {
    let before = fs::read(directory.join("disk.img")).expect("an image");
    let ran = run(directory, command);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{command}: {}", ran.stderr);
    assert!(fs::read(directory.join("disk.img")).expect("an image") == before, "{command}");
    ran.stderr
}

/// A disk of 96 MiB with a partition of 64 MiB at sector 63, full of numbers.
pub(super) fn disk(directory: &Path) -> Vec<u8> {
    zeroes(directory, "disk.img", 96 << 20);
    done(directory, "part create -s mbr disk.img");
    done(directory, "part add -t linux-data -b 63 -s 64m disk.img");
    let mut bytes = fs::read(directory.join("disk.img")).expect("an image");
    let numbers: Vec<u8> = (0..64 * MIB / 8)
        .flat_map(|n| (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
        .collect();
    bytes[63 * 512..][..64 * MIB].copy_from_slice(&numbers);
    // A part of it is sparse, and is so again.
    bytes[20 * MIB..40 * MIB].fill(0);
    fs::write(directory.join("disk.img"), &bytes).expect("an image");
    bytes[63 * 512..][..64 * MIB].to_vec()
}

pub(super) fn has(directory: &Path, at: usize, bytes: &[u8]) -> bool {
    fs::read(directory.join("disk.img")).expect("an image")[at..][..bytes.len()] == *bytes
}

#[test]
fn there_and_back_again() {
    let scratch = scratch();
    let directory = scratch.path();
    let bytes = disk(directory);
    let said = done(directory, "move --align disk.img#s1");
    assert_eq!(
        said,
        "disk.img#s1: 64 MiB moved from byte 32256 (LBA 63) to byte 1048576 (LBA 2048)\n"
    );
    assert!(has(directory, MIB, &bytes) && !directory.join("disk.img.journal").exists());
    // Its contents are nothing that is recognised, so nothing is said of them but where they begin.
    let checked = done(directory, "check disk.img");
    assert!(
        checked.contains("(2048)")
            && checked.contains("1 unknown")
            && !checked.contains("misaligned"),
        "{checked}"
    );
    assert!(done(directory, "move --align disk.img#s1").contains("nothing was moved"));
    let mut json = run(directory, "move --to 63s --json disk.img#s1").json();
    // Its zeros are a hole now, if the file system has holes.
    let copied = json["copied"].take().as_u64().expect("a number");
    assert!((44 << 20..=64 << 20).contains(&copied), "{copied}");
    let wanted = serde_json::json!({
        "format": "trueline/move/1", "target": "disk.img#s1", "for": null, "from": 1 << 20,
        "to": 32256, "length": 64 << 20, "copied": null, "notes": []
    });
    assert_eq!(json, wanted);
    assert!(has(directory, 63 * 512, &bytes));
    // Far enough for pieces that are not saved, both ways.
    for to in ["24MiB", "8388608"] {
        done(directory, &format!("move --to {to} disk.img#s1"));
    }
    assert!(has(directory, 8 * MIB, &bytes));
    done(directory, "part resize -i 1 -s 30m disk.img");
    // Apart: the old bytes stay.
    done(directory, "move --to 50MiB disk.img#s1");
    assert!(
        has(directory, 50 * MIB, &bytes[..30 * MIB]) && has(directory, 8 * MIB, &bytes[..30 * MIB])
    );
}

#[test]
fn what_cannot_be_moved_is_said() {
    let scratch = scratch();
    let directory = scratch.path();
    disk(directory);
    done(directory, "part add -t linux-data -b 140000 -s 4m disk.img");
    let all = [
        ("move --to 100 disk.img#s1", "use whole sectors"),
        ("move --to 1x disk.img#s1", "not an offset"),
        ("move --to 63s disk.img#s1", "already"),
        ("move --to 0 disk.img#s1", "do not lie where partitions may"),
        ("move --to 10MiB disk.img#s1", "overlap index 2"),
        ("move --to 90MiB disk.img#s1", "partitions lie from"),
        ("move --to 1MiB disk.img", "can be edited: name one after a #: disk.img#s1"),
        ("move --rollback disk.img", "no move of it is under way"),
        ("move --align disk.img#s3", "no provider 's3'"),
        ("move --resume disk.img", "no move of it is under way"),
        ("move --resume", "name the disk or the journal"),
    ];
    for (command, found) in all {
        let said = refused(directory, command);
        assert!(said.contains(found), "{command}: {said}");
    }
    // An older journal is not written over.
    fs::write(directory.join("disk.img.journal"), "of another").expect("a file");
    assert!(refused(directory, "move --align disk.img#s1").contains("--resume"));
    assert!(
        done(directory, "move --align --dry-run disk.img#s1")
            .contains("saved in the journal first")
    );
}

/// Numbers of a label that count from the disk are those of the new place; FreeBSD's count from the
/// slice.
#[test]
fn a_label_comes_along_wherever_it_counts_from() {
    let scratch = scratch();
    let directory = scratch.path();
    for (dialect, kind) in [("freebsd", "freebsd-ufs"), ("openbsd", "!7"), ("netbsd", "!7")] {
        zeroes(directory, "disk.img", 96 << 20);
        done(directory, "part create -s mbr disk.img");
        done(directory, &format!("part add -t {dialect} -b 63 -s 64m disk.img"));
        done(directory, &format!("part create -s bsd --dialect {dialect} disk.img#s1"));
        done(directory, &format!("part add -t {kind} -b 1m -s 30m disk.img#s1"));
        done(directory, &format!("part add -t {kind} -b 31m -s 20m disk.img#s1"));
        let before = fs::read(directory.join("disk.img")).expect("an image");
        let listed = |at: usize| {
            let all = done(directory, "show -o NAME,START,SIZE -b -n disk.img");
            for (name, inside, size) in [("a", 1, 30), ("b", 31, 20)] {
                let (start, size) = (at + inside * MIB, size * MIB);
                let found = all.lines().any(|line| {
                    line.split_whitespace().eq([
                        format!("disk.img#s1{name}").as_str(),
                        &start.to_string(),
                        &size.to_string(),
                    ])
                });
                assert!(found, "{dialect}: no {name} at {start}: {all}");
            }
        };
        listed(63 * 512);
        done(directory, "move --to 1MiB disk.img#s1");
        listed(MIB);
        assert!(done(directory, "check disk.img").contains("aligned"), "{dialect}");
        done(directory, "move --to 63s disk.img#s1");
        let after = fs::read(directory.join("disk.img")).expect("an image");
        assert!(after[63 * 512..][..64 * MIB] == before[63 * 512..][..64 * MIB], "{dialect}");
        // All of the disk, as its label has it.
        done(directory, "move --align disk.img");
        listed(MIB);
    }
}

/// Fields that hold the start have the new one, and checkers of file systems find no fault.
#[test]
fn file_systems_are_whole_where_they_are_now() {
    let checks: [(&str, &str, &[&str]); 4] = [
        ("vfat -- -h 63", "mkfs.vfat", &["fsck.vfat", "-n"]),
        ("ntfs -- -p 63", "mkntfs", &["ntfsresize", "-i", "-f"]),
        ("exfat", "mkfs.exfat", &["fsck.exfat", "-n"]),
        ("ext4", "mke2fs", &["e2fsck", "-fn"]),
    ];
    for (kind, maker, check) in checks {
        if !here(&[maker, check[0]]) {
            continue;
        }
        let scratch = scratch();
        let directory = scratch.path();
        zeroes(directory, "disk.img", 96 << 20);
        done(directory, "part create -s mbr disk.img");
        done(directory, "part add -t ntfs -b 63 -s 64m disk.img");
        let words: Vec<&str> = kind.split_whitespace().collect();
        let (kind, own) = words.split_first().expect("a type");
        let ran = run_with(directory, &[&["mkfs", kind, "disk.img#s1"], own].concat());
        assert_eq!(ran.code, Some(0), "{kind}: {}", ran.stderr);
        let before = fs::read(directory.join("disk.img")).expect("an image")[63 * 512..]
            [..64 * MIB]
            .to_vec();
        let said = run(directory, "move --align disk.img#s1");
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let after =
            fs::read(directory.join("disk.img")).expect("an image")[MIB..][..64 * MIB].to_vec();
        fs::write(directory.join("fs.img"), &after).expect("a copy");
        let mut checker = Command::new(check[0]);
        let checked = checker
            .args(&check[1..])
            .arg("fs.img")
            .env("PATH", crate::counters::path())
            .current_dir(directory)
            .output()
            .expect("it runs");
        assert!(checked.status.success(), "{kind}: {}", String::from_utf8_lossy(&checked.stdout));
        let word = |bytes: &[u8], at: usize| {
            u32::from_le_bytes(*bytes[at..].first_chunk().expect("four bytes"))
        };
        match *kind {
            "vfat" | "ntfs" => {
                assert_eq!((word(&before, 28), word(&after, 28)), (63, 2048), "{kind}");
                let changed = before.iter().zip(&after).filter(|(old, new)| old != new).count();
                // The low and the next byte of the number, there and in the copy.
                assert!((2..=4).contains(&changed), "{kind}: {changed}");
            }
            _ => assert!(before == after, "{kind}"),
        }
    }
}

/// Tables inside of what is moved count from its first byte.
#[test]
fn what_is_inside_comes_along() {
    let scratch = scratch();
    let directory = scratch.path();
    zeroes(directory, "disk.img", 96 << 20);
    for command in [
        "part create -s mbr disk.img",
        "part add -t ebr -b 63 -s 40m disk.img",
        "part add -t linux-data -s 10m disk.img#s1",
        "part add -t linux-data -s 20m disk.img#s1",
    ] {
        done(directory, command);
    }
    let lengths = |directory: &Path| -> Vec<(String, u64, u64)> {
        let json = run(directory, "check --json disk.img").json();
        let providers = json["targets"][0]["providers"].as_array().expect("providers").clone();
        let number = |p: &serde_json::Value, key: &str| p[key].as_u64().expect("a number");
        providers
            .iter()
            .skip(1)
            .map(|p| {
                (
                    p["provider"].as_str().expect("a name").into(),
                    number(p, "start"),
                    number(p, "length"),
                )
            })
            .collect()
    };
    let before = lengths(directory);
    // Its partitions are on the grain, though it is not.
    assert!(done(directory, "move --align disk.img#s1").contains("nothing was moved"));
    done(directory, "move --to 1MiB disk.img#s1");
    let moved = (1 << 20) - 63 * 512;
    assert_eq!(
        lengths(directory),
        before
            .into_iter()
            .map(|(name, start, length)| (name, start + moved, length))
            .collect::<Vec<_>>()
    );
    assert!(
        refused(directory, "move --to 20MiB disk.img#s5")
            .contains("move the extended partition, s1")
    );
}
