//! `move --align` of a whole disk: one of 2009, interrupted and taken back, and one without room.

use crate::moving::{MIB, done, refused};
use crate::moving_interrupted::served;
use crate::{run, scratch, zeroes};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Partitions of the disk: name, first sector, sectors.
const PARTITIONS: [(&str, usize, usize); 5] = [
    ("s1", 63, 40_000),
    ("s2", 40_063, 30_001),
    ("s5", 70_064 + 63, 20_000),
    ("s6", 90_127 + 63, 25_003),
    ("s4", 125_066, 12_345),
];

/// A disk without a gap: two primary partitions, an extended one with two logical ones, one more.
/// Gives the bytes of every partition.
pub(super) fn disk(directory: &Path) -> Vec<Vec<u8>> {
    zeroes(directory, "disk.img", 72 << 20);
    done(directory, "part create -s mbr disk.img");
    done(directory, "part add -t linux-data -b 63 -s 40000 disk.img");
    done(directory, "part add -t ntfs -b 40063 -s 30001 disk.img");
    done(directory, "part add -t ebr -b 70064 -s 55002 disk.img");
    done(directory, "part create -s ebr disk.img#s3");
    done(directory, "part add -t linux-data -b 63 -s 20000 disk.img#s3");
    done(directory, "part add -t linux-data -b 20126 -s 25003 disk.img#s3");
    done(directory, "part add -t freebsd -b 125066 -s 12345 disk.img");
    let mut bytes = fs::read(directory.join("disk.img")).expect("an image");
    let mut all = Vec::new();
    for (seed, (_, start, sectors)) in (1..).zip(PARTITIONS) {
        let (from, to) = (start * 512, (start + sectors) * 512);
        for (n, chunk) in (0u64..).zip(bytes[from..to].chunks_mut(8)) {
            chunk.copy_from_slice(
                &(n + (seed << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes(),
            );
        }
        // Nothing in it looks like a boot sector, and part of it is sparse.
        bytes[from + 510..from + 512].fill(1);
        bytes[from + MIB..from + 3 * MIB].fill(0);
        all.push(bytes[from..to].to_vec());
    }
    fs::write(directory.join("disk.img"), &bytes).expect("an image");
    all
}

/// Every partition is on the grain, whole, and as long as it was.
pub(super) fn is_moved(directory: &Path, all: &[Vec<u8>]) {
    let bytes = fs::read(directory.join("disk.img")).expect("an image");
    let listed = done(directory, "show -o NAME,START,SIZE -b -n disk.img");
    for ((name, _, sectors), was) in PARTITIONS.iter().zip(all) {
        let line = listed.lines().find(|line| line.starts_with(&format!("disk.img#{name} ")));
        let line = line.unwrap_or_else(|| panic!("no {name}: {listed}"));
        let words: Vec<usize> = line.split_whitespace().skip(1).flat_map(str::parse).collect();
        assert_eq!(words[1], sectors * 512, "{line}");
        assert!(words[0].is_multiple_of(4096), "{line}");
        assert!(bytes[words[0]..][..was.len()] == was[..], "{name}");
    }
}

#[test]
fn a_disk_without_a_gap_is_put_right_by_one_command() {
    let scratch = scratch();
    let directory = scratch.path();
    let all = disk(directory);
    let before = fs::read(directory.join("disk.img")).expect("an image");
    let shown = done(directory, "move --align --dry-run disk.img");
    assert!(
        shown.contains("s1         19.5 MiB  byte 32256 (LBA 63)         byte 1048576 (LBA 2048)")
            && shown.contains("\nbefore  ")
            && shown.contains("\nafter   ")
            && shown.contains("disk.img: 5 moves of 62.2 MiB"),
        "{shown}"
    );
    assert!(fs::read(directory.join("disk.img")).expect("an image") == before);
    let json = run(directory, "move --align --dry-run --json disk.img").json();
    assert_eq!(json["format"], "trueline/move-disk/1");
    assert_eq!(json["partitions"][2]["provider"], "s5");
    assert_eq!(json["partitions"][0]["to"], 1 << 20);
    let said = done(directory, "move --align disk.img");
    assert!(said.ends_with("disk.img: 5 partitions moved, 62.2 MiB\n"), "{said}");
    is_moved(directory, &all);
    assert!(!directory.join("disk.img.journal").exists());
    let again = done(directory, "move --align disk.img");
    assert_eq!(again, "disk.img: all on it begin on the grain; nothing was moved\n");
    // Other readers find what this one does.
    if let Ok(listed) = Command::new("sfdisk").arg("-V").arg(directory.join("disk.img")).output() {
        let said = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(said.contains("No errors detected"), "{said}");
    }
}

/// Arranges a disk by commands that are killed, each later than the one before, until one ends; in
/// round 1 they turn round. True if the disk went back.
pub(super) fn is_back(directory: &Path, round: u64) -> bool {
    let (mut words, mut kills) = (vec!["move", "--align", "disk.img"], 0);
    for attempt in 0.. {
        let mut child = Command::new(env!("CARGO_BIN_EXE_trueline"));
        let child = child.args(&words).current_dir(directory);
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
        let wait = 10 * (attempt + 1) + 7 * round;
        std::thread::sleep(Duration::from_millis(wait * (1 + attempt / 8)));
        let _ = child.kill();
        if child.wait().expect("it ends").success() {
            break;
        }
        kills += 1;
        let journal = directory.join("disk.img.journal");
        if !journal.exists() {
            words = vec!["move", "--align", "disk.img"];
            continue;
        }
        let way = if round == 1 && kills > 2 { "--rollback" } else { "--resume" };
        words = vec!["move", way, "disk.img"];
        let ran = run(directory, "move --resume --dry-run disk.img");
        if ran.code == Some(2) {
            assert!(ran.stderr.contains("was not complete"), "{}", ran.stderr);
            refused(directory, "move --resume disk.img");
            assert!(!journal.exists());
            words = vec!["move", "--align", "disk.img"];
        }
    }
    words[1] == "--rollback"
}

#[test]
fn killed_at_any_moment_a_whole_disk_goes_on_or_back() {
    let scratch = scratch();
    let directory = scratch.path();
    for round in 0..3 {
        let all = disk(directory);
        let before = fs::read(directory.join("disk.img")).expect("an image");
        if is_back(directory, round) {
            let after = fs::read(directory.join("disk.img")).expect("an image");
            for (_, start, sectors) in PARTITIONS {
                let range = start * 512..(start + sectors) * 512;
                assert!(after[range.clone()] == before[range], "round {round}");
            }
            assert!(after[..512] == before[..512], "round {round}");
        } else {
            is_moved(directory, &all);
        }
    }
}

#[test]
fn without_room_the_least_that_makes_some_is_named() {
    let scratch = scratch();
    let directory = scratch.path();
    zeroes(directory, "disk.img", 8 << 20);
    done(directory, "part create -s mbr disk.img");
    done(directory, "part add -t linux-data -b 63 -s 8000 disk.img");
    done(directory, "part add -t linux-data -b 8063 -s 8321 disk.img");
    let said = refused(directory, "move --align disk.img");
    assert!(said.contains("truncate -s +1M disk.img && trueline move --align disk.img"), "{said}");
    assert!(!directory.join("disk.img.journal").exists());
    // As it says.
    zeroes(directory, "more", 1 << 20);
    let mut bytes = fs::read(directory.join("disk.img")).expect("an image");
    bytes.extend(fs::read(directory.join("more")).expect("zeroes"));
    fs::write(directory.join("disk.img"), bytes).expect("an image");
    done(directory, "move --align disk.img");
    assert!(done(directory, "check disk.img").contains("aligned"));
}

#[test]
fn what_others_describe_stays_where_it_is() {
    let scratch = scratch();
    let directory = scratch.path();
    zeroes(directory, "disk.img", 16 << 20);
    done(directory, "part create -s mbr disk.img");
    done(directory, "part add -t ms-ldm-data -b 63 -s 30657 disk.img");
    assert!(refused(directory, "move --align disk.img#s1").contains("a database of Windows"));
    let ran = run(directory, "move --align disk.img");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("s1 stays off the grain: its type is ms-ldm-data"));
    // An image that is a file system and has a table besides.
    for file in crate::lay_golden("iso9660-hybrid-mbr", directory) {
        fs::rename(directory.join(file), directory.join("disk.img")).expect("a file");
    }
    for command in ["move --align disk.img", "move --to 120000 disk.img#s2"] {
        let said = refused(directory, command);
        assert!(said.contains("ranges of the iso9660 that all of it holds"), "{said}");
    }
}

#[test]
fn what_a_slice_carries_moves_inside_of_it() {
    let scratch = scratch();
    let directory = scratch.path();
    zeroes(directory, "disk.img", 96 << 20);
    done(directory, "part create -s mbr disk.img");
    done(directory, "part add -t freebsd -b 63 -s 80m disk.img");
    done(directory, "part create -s bsd disk.img#s1");
    done(directory, "part add -t freebsd-ufs -b 16 -s 20m disk.img#s1");
    done(directory, "part add -t freebsd-ufs -b 40977 -s 20m disk.img#s1");
    let said = done(directory, "move --align disk.img#s1 --dry-run");
    assert!(said.contains("disk.img#s1: 2 moves of 40 MiB"), "{said}");
    let said = done(directory, "move --align disk.img");
    assert!(said.ends_with("disk.img: 2 partitions moved, 40 MiB\n"), "{said}");
    let said = done(directory, "move --align disk.img");
    assert!(said.ends_with("all on it begin on the grain; nothing was moved\n"), "{said}");
}

/// The disk that is named is gone on with, and not the one that the journal knew by another name.
#[test]
fn an_interrupted_disk_that_has_another_name_now_goes_on() {
    let scratch = scratch();
    let directory = scratch.path();
    let all = disk(directory);
    let said = served(directory, 9, "move --align --journal disk.img.journal \"$uri\"");
    assert!(said.contains("stages are done") && said.contains("--rollback"), "{said}");
    let half = fs::read(directory.join("disk.img")).expect("an image");
    fs::rename(directory.join("disk.img"), directory.join("other.img")).expect("a file");
    fs::rename(directory.join("disk.img.journal"), directory.join("other.img.journal"))
        .expect("a file");
    // A disk of the same length under the old name stays as it is.
    fs::write(directory.join("disk.img"), vec![0; half.len()]).expect("an image");
    let json = run(directory, "move --resume --json other.img").json();
    assert_eq!(json["format"], "trueline/move-disk/1");
    assert_eq!(json["partitions"].as_array().map(Vec::len), Some(5));
    let named = json["partitions"].as_array().expect("a list").iter();
    assert!(named.map(|p| p["provider"].as_str()).all(|name| name.is_some()), "{json}");
    assert!(fs::read(directory.join("disk.img")).expect("an image").iter().all(|&byte| byte == 0));
    fs::rename(directory.join("other.img"), directory.join("disk.img")).expect("a file");
    is_moved(directory, &all);
}
