//! `move --align` of a whole disk on which contents of a partition are off the grain by different
//! distances: labels of BSD, and disks within a partition.

use crate::moving::{done, refused};
use crate::moving_whole::is_back;
use crate::{golden, run, run_with, scratch, zeroes};
use std::fs;
use std::path::Path;

/// Partitions without a table in them: name, first sector on the disk, sectors.
const PARTITIONS: [(&str, usize, usize); 8] = [
    ("s1a", 63 + 16, 20_000),
    ("s1b", 63 + 20_017, 9_001),
    ("s1d", 63 + 29_020, 10_000),
    ("s2a", 40_063 + 16, 12_000),
    ("s2b", 40_063 + 12_019, 9_003),
    ("s3s1", 65_063 + 63, 10_000),
    ("s3s2", 65_063 + 10_064, 12_000),
    ("s4", 90_066, 9_000),
];

/// A disk with FreeBSD in a slice at sector 63, OpenBSD in one behind it, the disk of a virtual
/// machine in one more, and a partition. Gives the bytes of every partition.
fn disk(directory: &Path) -> Vec<Vec<u8>> {
    zeroes(directory, "disk.img", 72 << 20);
    for command in [
        "part create -s mbr disk.img",
        "part add -t freebsd -b 63 -s 40000 disk.img",
        "part create -s bsd disk.img#s1",
        "part add -t freebsd-ufs -b 16 -s 20000 disk.img#s1",
        "part add -t freebsd-swap -b 20017 -s 9001 disk.img#s1",
        "part add -t freebsd-ufs -b 29020 -s 10000 disk.img#s1",
        "part add -t openbsd -b 40063 -s 25000 disk.img",
        "part create -s bsd disk.img#s2",
        "part add -t 4.2BSD -b 16 -s 12000 disk.img#s2",
        "part add -t swap -b 12019 -s 9003 disk.img#s2",
        "part add -t linux-data -b 65063 -s 25001 disk.img",
        "part add -t linux-data -b 90066 -s 9000 disk.img",
    ] {
        done(directory, command);
    }
    // Tasting finds no MBR in a slice of one, so this is a GPT.
    done(directory, "part create -s gpt disk.img#s3");
    done(directory, "part add -t linux-data -b 63 -s 10000 disk.img#s3");
    done(directory, "part add -t linux-data -b 10064 -s 12000 disk.img#s3");
    let mut bytes = fs::read(directory.join("disk.img")).expect("an image");
    let mut all = Vec::new();
    for (seed, (_, start, sectors)) in (1..).zip(PARTITIONS) {
        let (from, to) = (start * 512, (start + sectors) * 512);
        for (n, chunk) in (0u64..).zip(bytes[from..to].chunks_mut(8)) {
            let number = (n + (seed << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            chunk.copy_from_slice(&number.to_le_bytes());
        }
        // Nothing in it looks like a boot sector.
        bytes[from + 510..from + 512].fill(1);
        all.push(bytes[from..to].to_vec());
    }
    fs::write(directory.join("disk.img"), &bytes).expect("an image");
    all
}

/// The first byte and the length of every partition, as `show` lists them.
fn places(directory: &Path) -> Vec<(String, usize, usize)> {
    let listed = done(directory, "show -o NAME,START,SIZE -b -n disk.img");
    let number = |word: Option<&str>| word.and_then(|word| word.parse().ok());
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.strip_prefix("disk.img#")?.replace('p', "s");
        Some((name, number(words.next())?, number(words.next())?))
    };
    listed.lines().filter_map(line).collect()
}

fn is_moved(directory: &Path, all: &[Vec<u8>]) {
    let bytes = fs::read(directory.join("disk.img")).expect("an image");
    let places = places(directory);
    for ((name, ..), was) in PARTITIONS.iter().zip(all) {
        let found = places.iter().find(|(other, ..)| other == name);
        let (_, start, length) = found.unwrap_or_else(|| panic!("no {name}: {places:?}"));
        assert_eq!(*length, was.len(), "{name}");
        assert!(start.is_multiple_of(4096), "{name} at {start}");
        assert!(bytes[*start..][..was.len()] == was[..], "{name}");
    }
}

#[test]
fn one_command_puts_right_what_is_in_partitions() {
    let scratch = scratch();
    let directory = scratch.path();
    let all = disk(directory);
    let shown = done(directory, "move --align --dry-run disk.img");
    for name in ["s1a ", "s1b ", "s2b ", "s3p1 ", "s3p2 ", "s4 "] {
        assert!(shown.contains(&format!("\n{name} ")), "{shown}");
    }
    assert!(shown.contains("├s1a") && !shown.contains("├s1─"), "{shown}");
    let json = run(directory, "move --align --dry-run --json disk.img").json();
    let planned = json["partitions"].as_array().expect("a list").clone();
    assert_eq!(planned.len(), 11, "{json}");
    let json = run(directory, "move --align --json disk.img").json();
    assert!(json["partitions"].as_array().expect("a list").len() >= 6, "{json}");
    is_moved(directory, &all);
    // Each is where the plan said.
    let places = places(directory);
    for partition in planned {
        let name = partition["provider"].as_str().expect("a name").replace('p', "s");
        let start = usize::try_from(partition["to"].as_u64().expect("a number")).expect("a byte");
        assert!(places.iter().any(|(n, at, _)| *n == name && *at == start), "{name}: {places:?}");
    }
    assert!(!directory.join("disk.img.journal").exists());
    let again = done(directory, "move --align disk.img");
    assert_eq!(again, "disk.img: all on it begin on the grain; nothing was moved\n");
}

#[test]
fn killed_at_any_moment_it_goes_on_or_back_within_partitions() {
    let scratch = scratch();
    let directory = scratch.path();
    for round in 0..3 {
        let all = disk(directory);
        let before = fs::read(directory.join("disk.img")).expect("an image");
        if is_back(directory, round) {
            let after = fs::read(directory.join("disk.img")).expect("an image");
            for (name, start, sectors) in PARTITIONS {
                let range = start * 512..(start + sectors) * 512;
                assert!(after[range.clone()] == before[range], "round {round}: {name}");
            }
            for sector in [0, 64, 40_064, 65_064, 65_065] {
                let range = sector * 512..sector * 512 + 512;
                assert!(after[range.clone()] == before[range], "round {round}: {sector}");
            }
        } else {
            is_moved(directory, &all);
        }
    }
}

/// A flush that fails, later each time; the mark of an inner partition finds the journal.
#[test]
fn an_inner_partition_that_is_half_moved_is_found_by_its_mark() {
    let scratch = scratch();
    let directory = scratch.path();
    let trueline = env!("CARGO_BIN_EXE_trueline");
    let command = format!("'{trueline}' move --align --journal disk.img.journal \"$uri\" 2>said");
    let (mut inner, mut between) = (0, 0);
    for after in (4..).step_by(6) {
        let all = disk(directory);
        let fault = format!("flush:error=eio,after={after}");
        let options = ["--no-counters", "--fault", &fault, "--run", &command];
        let ran = run_with(directory, &[&["serve", "disk.img"][..], &options].concat());
        if ran.code == Some(0) {
            break;
        }
        let checked = run(directory, "check disk.img").stdout;
        let marked = checked.lines().find(|line| line.contains("error TL0026"));
        match marked {
            Some(line) => {
                let is_outer = |n: usize| line.contains(&format!("TL0026 s{n}:"));
                inner += usize::from(!(1..5).any(is_outer));
            }
            None => between += usize::from(checked.contains("TL0026")),
        }
        if checked.contains("was interrupted") {
            for command in ["part modify -i 1 -t swap disk.img#s2", "part delete -i 2 disk.img#s3"]
            {
                let said = refused(directory, command);
                assert!(said.contains("move --resume"), "{said}");
            }
        }
        let ran = run(directory, "move --resume disk.img");
        assert!(ran.code == Some(0) || ran.stderr.contains("was not complete"), "{}", ran.stderr);
        if ran.code == Some(0) {
            is_moved(directory, &all);
        }
    }
    assert!(inner > 0, "{inner} within partitions, {between} between two moves");
}

#[test]
fn without_room_in_a_partition_the_least_that_makes_some_is_named() {
    let scratch = scratch();
    let directory = scratch.path();
    for (scheme, first, sectors) in [("mbr", 1, 81_919), ("gpt", 34, 81_853)] {
        zeroes(directory, "disk.img", 64 << 20);
        done(directory, "part create -s gpt disk.img");
        done(directory, "part add -t linux-data -b 2048 -s 81920 disk.img");
        done(directory, &format!("part create -s {scheme} disk.img#p1"));
        let half = 40_001;
        for (start, sectors) in [(first, half), (first + half, sectors - half)] {
            let add = format!("part add -t linux-data -b {start} -s {sectors} disk.img#p1");
            done(directory, &add);
        }
        let said = refused(directory, "move --align disk.img");
        let found = "there is no room in p1 to put all 2 partitions on the grain";
        assert!(said.contains(found), "{said}");
        let commands = said.split("these make room and move them: ").nth(1).expect("commands");
        let commands = commands.split(": nothing was").next().expect("commands");
        let commands: Vec<&str> = commands.trim().split(" && trueline ").collect();
        assert!(commands.len() == if scheme == "gpt" { 3 } else { 2 }, "{said}");
        // Another partition is put right without it, and a note says what is left.
        done(directory, "part add -t linux-data -b 100001 -s 2000 disk.img");
        let ran = run(directory, "move --align disk.img");
        let note = "note: p1 stays off the grain: there is no room in it to put all 2";
        assert!(ran.code == Some(0) && ran.stderr.contains(note), "{}", ran.stderr);
        assert!(ran.stderr.contains("trueline part resize -i 1 -s "), "{}", ran.stderr);
        for command in commands {
            done(directory, &command.trim_start_matches("trueline ").replace('\'', ""));
        }
        let again = done(directory, "move --align disk.img");
        assert!(again.ends_with("all on it begin on the grain; nothing was moved\n"), "{again}");
    }
}

/// What a label has past its slice would stay behind, so the slice does.
#[test]
fn a_slice_stays_whose_label_reaches_past_it() {
    let scratch = golden("bsd-openbsd");
    for command in ["move --to 1MiB disk#s1", "move --align --for ssd-64k --dry-run disk"] {
        let ran = run(scratch.path(), command);
        let why = "a BSD label in it counts from byte 32768";
        assert!(ran.stderr.contains(why), "{command}: {}", ran.stderr);
    }
}

/// Writes entry `n`, from 0, of OpenBSD's label in the slice that begins at sector `slice`.
fn outside(directory: &Path, slice: usize, entries: &[(usize, u32, u32)]) {
    let mut bytes = fs::read(directory.join("disk.img")).expect("an image");
    let label = &mut bytes[(slice + 1) * 512..(slice + 2) * 512];
    for &(n, start, sectors) in entries {
        let entry = &mut label[148 + n * 16..][..16];
        entry[..4].copy_from_slice(&sectors.to_le_bytes());
        entry[4..8].copy_from_slice(&start.to_le_bytes());
        entry[12] = 8;
    }
    label[136..138].fill(0);
    let count = usize::from(label[138]);
    let words = label[..148 + count * 16].chunks(2);
    let sum = words.fold([0, 0], |sum, word| [sum[0] ^ word[0], sum[1] ^ word[1]]);
    label[136..138].copy_from_slice(&sum);
    fs::write(directory.join("disk.img"), &bytes).expect("an image");
}

/// What a label names outside of its slice is followed, or nothing is put there.
#[test]
fn what_a_label_names_elsewhere_is_followed_or_left_alone() {
    let scratch = scratch();
    let directory = scratch.path();
    zeroes(directory, "disk.img", 48 << 20);
    for command in [
        "part create -s mbr disk.img",
        "part add -t openbsd -b 63 -s 20000 disk.img",
        "part create -s bsd disk.img#s1",
        "part add -t 4.2BSD -b 16 -s 12000 disk.img#s1",
        "part add -t linux-data -b 30063 -s 10000 disk.img",
    ] {
        done(directory, command);
    }
    outside(directory, 63, &[(8, 30_063, 10_000), (9, 40_063, 21_000)]);
    let number = |bytes: &[u8], at: usize| {
        u32::from_le_bytes(*bytes[at..].first_chunk().expect("four bytes"))
    };
    // The start of the slice, and what its label names in the two entries.
    let named = || {
        let bytes = fs::read(directory.join("disk.img")).expect("an image");
        let slice = number(&bytes, 446 + 8) as usize;
        let entries = (slice + 1) * 512 + 148 + 4;
        (slice, [8, 9].map(|n| number(&bytes, entries + n * 16)))
    };
    let refusal = refused(directory, "move --to 30720s disk.img#s2");
    let why = "j of the label in s1 names byte 20512256 (LBA 40063) up to byte 31264256";
    assert!(refusal.contains(why), "{refusal}");
    // The nearest boundary would be sector 30720, and its end in what the label names.
    done(directory, "move --align disk.img#s2");
    assert_eq!(named(), (63, [28_672, 40_063]));
    // The slice moves, and with it the label, which goes on to name both.
    done(directory, "move --align disk.img");
    let (slice, entries) = named();
    assert!(slice != 63 && entries == [28_672, 40_063], "{slice} {entries:?}");
    done(directory, "move --to 63s disk.img#s1");
    done(directory, "move --to 28673s disk.img#s2");
    assert_eq!(named(), (63, [28_673, 40_063]));
    done(directory, "move --align disk.img");
    assert_eq!(named(), (slice, [28_672, 40_063]));
    // A name that is no one partition keeps what it is in where it is.
    outside(directory, slice, &[(8, 28_672, 9_000)]);
    let refusal = refused(directory, "move --to 28673s disk.img#s2");
    assert!(refusal.contains("i of the label in s1 names") && refusal.contains("not follow"));
}
