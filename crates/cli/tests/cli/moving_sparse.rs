//! `move` of sparse images, what is discarded behind it, and sectors that cannot be read.

use crate::counters::here;
use crate::free_space::shell;
use crate::moving::{MIB, disk, done, has, refused};
use crate::skip::skip;
use crate::{golden, run, run_with, scratch, zeroes};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// Bytes that a file takes on its disk.
fn taken(directory: &Path, name: &str) -> u64 {
    fs::metadata(directory.join(name)).expect("a file").blocks() * 512
}

#[test]
fn a_large_sparse_image_moves_in_the_time_of_what_is_in_it() {
    let scratch = scratch();
    let directory = scratch.path();
    zeroes(directory, "disk.img", 64 << 30);
    done(directory, "part create -s mbr disk.img");
    done(directory, "part add -t linux-data -b 63 -s 60g disk.img");
    let file = File::options().read(true).write(true).open(directory.join("disk.img"));
    let file = file.expect("an image");
    let numbers: Vec<u8> = (0..2_u32 << 20).map(|at| (at / 7).to_le_bytes()[0] | 1).collect();
    let (start, gib) = (63 * 512, 1_u64 << 30);
    let places = [0, gib + 4096, 17 * gib, 60 * gib - (2 << 20)];
    places.iter().for_each(|at| file.write_all_at(&numbers, start + at).expect("a write"));
    let before = taken(directory, "disk.img");
    if before > 64 << 20 {
        skip("no holes here");
        return;
    }
    let dry = done(directory, "move --align --dry-run disk.img#s1");
    assert!(dry.contains(" MiB of it: the rest is free or holes"), "{dry}");
    // The plan of a whole disk counts what it copies, not 60 GiB, for which it would say 30 min.
    let dry = done(directory, "move --align --dry-run disk.img");
    assert!(
        dry.contains("1 move of 60 GiB, ")
            && dry.contains(" MiB without holes and what is free, ")
            && dry.contains(" MiB of them by way of the journal; under a minute where"),
        "{dry}"
    );
    let json = run(directory, "move --align --json disk.img#s1").json();
    let copied = json["copied"].as_u64().expect("a number");
    assert!(copied < 12 << 20, "{copied}");
    let mut there = vec![0; numbers.len()];
    for at in places {
        file.read_exact_at(&mut there, MIB as u64 + at).expect("it is inside");
        assert!(there == numbers, "{at}");
    }
    // The ends and what is left of the old place.
    let after = taken(directory, "disk.img");
    assert!(after <= before + (8 << 20), "{before} {after}");
}

/// The chunks of a set are short and its holes are long: a question, and a punch, for each would
/// take minutes of this one.
#[test]
fn a_sparse_set_moves_in_the_time_of_what_is_in_it() {
    let scratch = golden("seed-003-default");
    let directory = scratch.path();
    let before = taken(directory, "disk") + taken(directory, "disk1");
    if before > 64 << 20 {
        skip("no holes here");
        return;
    }
    let set = "disk,disk1#stripe/datas1";
    let dry = done(directory, &format!("move --to 1040384 --dry-run {set}"));
    assert!(dry.contains(" KiB of it: the rest is free or holes"), "{dry}");
    done(directory, &format!("move --to 1040384 {set}"));
    let after = taken(directory, "disk") + taken(directory, "disk1");
    assert!(after <= before + (1 << 20), "{before} {after}");
    let start = run(directory, "check -n -b -o NAME,START disk,disk1").stdout;
    assert!(start.contains("1040384") && start.contains("1048576"), "{start}");
}

#[test]
fn the_old_place_is_discarded_when_the_new_one_is_on_the_disk() {
    let scratch = scratch();
    let directory = scratch.path();
    let bytes = disk(directory);
    shell(directory, "truncate -s 200M disk.img");
    let full = taken(directory, "disk.img");
    done(directory, "move --discard --align disk.img#s1");
    assert!(has(directory, MIB, &bytes) && has(directory, 63 * 512, &[0; 31 * 512]));
    done(directory, "move --discard --to 100MiB disk.img#s1");
    assert!(has(directory, 100 * MIB, &bytes));
    let image = fs::read(directory.join("disk.img")).expect("an image");
    assert!(image[MIB..65 * MIB].iter().all(|&byte| byte == 0));
    assert!(taken(directory, "disk.img") <= full, "no more than before");
    // Two partitions; behind the first there is room that belongs to the second afterwards.
    done(directory, "part delete -i 1 disk.img");
    done(directory, "part add -t linux-data -b 63 -s 20m disk.img");
    done(directory, "part add -t linux-data -b 41023 -s 30m disk.img");
    let mut image = fs::read(directory.join("disk.img")).expect("an image");
    let numbers: Vec<u8> = (0..50 * MIB).map(|at| (at / 511).to_le_bytes()[0] | 1).collect();
    image[63 * 512..][..50 * MIB].copy_from_slice(&numbers);
    fs::write(directory.join("disk.img"), &image).expect("an image");
    done(directory, "move --discard --align disk.img");
    let (first, second) = numbers.split_at(20 * MIB);
    assert!(has(directory, MIB, first) && has(directory, 21 * MIB, second));
    assert!(has(directory, 63 * 512, &[0; 512]));
}

#[test]
fn a_device_is_told_what_it_need_not_keep() {
    if !here(&["losetup"]) {
        return;
    }
    let scratch = scratch();
    let directory = scratch.path();
    let bytes = disk(directory);
    shell(directory, "truncate -s 200M disk.img");
    let device = shell(directory, "losetup -f --show disk.img || true");
    let device = device.trim();
    if device.is_empty() {
        skip("no loop device");
        return;
    }
    let ran = run(directory, &format!("move --discard --to 100MiB {device}#s1"));
    shell(directory, &format!("losetup -d {device}"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(has(directory, 100 * MIB, &bytes));
    let image = fs::read(directory.join("disk.img")).expect("an image");
    assert!(image[63 * 512..64 * MIB].iter().all(|&byte| byte == 0));
}

/// A spot that cannot be read stops the move, which goes on when that is named.
#[test]
fn sectors_that_cannot_be_read_are_passed_over_by_name() {
    let trueline = env!("CARGO_BIN_EXE_trueline");
    for (options, how, readable) in [
        ("--to 1MiB", "60003-60006,59999", 2048),
        ("--to 70MiB", "59999-60006", 3072),
        ("--to 9MiB", "list", 0),
    ] {
        let scratch = scratch();
        let directory = scratch.path();
        let mut bytes = disk(directory);
        shell(directory, "truncate -s 200M disk.img");
        let (from, to) = (60_002 * 512, 60_004 * 512);
        fs::write(directory.join("list"), "# Bad\n60002\n\n60003-60003\n").expect("a list");
        let served = |command: &str| {
            let fault = format!("read:error=eio,offset={from}..{to}");
            let command = format!("'{trueline}' {command} >out 2>said");
            let ran = run_with(
                directory,
                &["serve", "disk.img", "--no-counters", "--fault", &fault, "--run", &command],
            );
            (ran.code, fs::read_to_string(directory.join("said")).expect("what it said"))
        };
        // Behind the first MiB of the partition, which is one of its ends.
        let inside = (60_002 - 63) * 512;
        let begin = format!("move {options} --journal j \"$uri#s1\"");
        let (code, said) = served(&begin);
        let found =
            "input/output error at byte 30721024 (LBA 60002), which --skip-bad 60002 passes";
        assert!(code == Some(2) && said.contains(found), "{options}: {said}");
        let (command, is_begun) = if directory.join("j").exists() {
            // Without the list it stops there again, and loses nothing.
            let (code, said) = served("move --resume j \"$uri\"");
            assert!(code == Some(2) && said.contains("--skip-bad 60002"), "{said}");
            // A list that was given once is in the journal.
            let (code, said) = served("move --resume j --skip-bad 60002 \"$uri\"");
            assert!(code == Some(2) && said.contains("--skip-bad 60003"), "{said}");
            (format!("move --resume j --skip-bad {how} \"$uri\""), true)
        } else {
            (format!("{begin} --skip-bad {how}"), false)
        };
        let (code, said) = served(&command);
        assert_eq!(code, Some(0), "{options}: {said}");
        let line = "1024 bytes at byte 30721024 (LBA 60002) cannot be read: zeros at";
        assert!(said.contains(line), "{said}");
        // What the list has more can be read, and is there.
        let kept = format!("{readable} bytes of the list could be read after all");
        assert_eq!(said.contains(&kept), readable > 0, "{how}: {said}");
        assert_eq!(is_begun, !options.contains("70"));
        bytes[inside..inside + 1024].fill(0);
        let at = options.trim_start_matches("--to ").trim_end_matches("MiB");
        let at = at.parse::<usize>().expect("a number") * MIB;
        assert!(has(directory, at, &bytes), "{options}");
    }
    let scratch = scratch();
    let directory = scratch.path();
    disk(directory);
    for (list, found) in [
        ("7-5", "not sectors"),
        ("1,,2", "not sectors"),
        ("nothing-there", "no such file"),
        ("99999999999999999999", "not sectors"),
    ] {
        let said = refused(directory, &format!("move --align --skip-bad {list} disk.img#s1"));
        assert!(said.to_lowercase().contains(found), "{list}: {said}");
    }
}

/// As of one partition: of a whole disk the list counts at the old place of each.
#[test]
fn a_whole_disk_is_moved_around_sectors_that_cannot_be_read() {
    let trueline = env!("CARGO_BIN_EXE_trueline");
    for (sector, is_first) in [(60_002, true), (131_135 + 9_000, false)] {
        let scratch = scratch();
        let directory = scratch.path();
        disk(directory);
        done(directory, "part add -t linux-data -b 131135 -s 20m disk.img");
        let mut bytes = fs::read(directory.join("disk.img")).expect("an image");
        let second = 131_135 * 512..131_135 * 512 + 20 * MIB;
        for (n, chunk) in (0u64..).zip(bytes[second.clone()].chunks_mut(8)) {
            chunk.copy_from_slice(&(n << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
        }
        fs::write(directory.join("disk.img"), &bytes).expect("an image");
        let (from, to) = (sector * 512, (sector + 2) * 512);
        let served = |command: &str| {
            let fault = format!("read:error=eio,offset={from}..{to}");
            let command = format!("'{trueline}' {command} >out 2>said");
            let ran = run_with(
                directory,
                &["serve", "disk.img", "--no-counters", "--fault", &fault, "--run", &command],
            );
            (ran.code, fs::read_to_string(directory.join("said")).expect("what it said"))
        };
        let (code, said) = served("move --align --journal j \"$uri\"");
        let found = format!("which --skip-bad {sector} passes over");
        assert!(code == Some(2) && said.contains(&found), "{said}");
        let (code, said) = served("move --resume j \"$uri\"");
        assert!(code == Some(2) && said.contains(&found), "{said}");
        // The list is in the journal from then on; one sector of it can be read.
        let (code, said) = served(&format!("move --resume j --skip-bad {sector} \"$uri\""));
        assert!(code == Some(2) && said.contains(&format!("--skip-bad {}", sector + 1)), "{said}");
        let (code, said) =
            served(&format!("move --resume j --skip-bad {},{} \"$uri\"", sector + 1, sector + 7));
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("512 bytes of the list could be read after all"), "{said}");
        let new = if is_first { MIB + from - 63 * 512 } else { 65 * MIB + from - second.start };
        let note = format!("1024 bytes at byte {from} (LBA {sector}) cannot be read: zeros at");
        assert!(said.contains(&format!("{note} byte {new} ")), "{said}");
        bytes[from..to].fill(0);
        assert!(has(directory, MIB, &bytes[63 * 512..][..64 * MIB]), "{sector}");
        assert!(has(directory, 65 * MIB, &bytes[second]), "{sector}");
    }
}
