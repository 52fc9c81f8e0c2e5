//! Boot loaders that a move does not rewrite are named before it begins, and those that need
//! nothing are not.

use crate::counters::here;
use crate::moving::done;
use crate::{run, scratch, zeroes};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Writes `bytes` to the place `at` of the disk.
fn put(directory: &Path, at: usize, bytes: &[u8]) {
    let path = directory.join("disk.img");
    let mut disk = fs::read(&path).expect("an image");
    disk[at..at + bytes.len()].copy_from_slice(bytes);
    fs::write(path, disk).expect("an image");
}

/// A disk with two partitions without a gap, of these types.
fn disk(directory: &Path, types: [&str; 2]) {
    zeroes(directory, "disk.img", 64 << 20);
    done(directory, "part create -s mbr disk.img");
    let [one, two] = types;
    done(directory, &format!("part add -t {one} -b 63 -s 40001 disk.img"));
    done(directory, &format!("part add -t {two} -b 40064 -s 40001 disk.img"));
}

/// The notes of a dry run: on stderr and, for a whole disk, in the document.
fn notes(directory: &Path, target: &str) -> String {
    let ran = run(directory, &format!("move --align --dry-run {target}"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    if !target.contains('#') {
        let json = run(directory, &format!("move --align --dry-run --json {target}")).json();
        for note in json["notes"].as_array().expect("a list") {
            let note = note.as_str().expect("text");
            assert!(ran.stderr.contains(&format!("note: {note}\n")), "{note}: {}", ran.stderr);
        }
        let count = ran.stderr.matches("is not rewritten").count();
        assert_eq!(json["notes"].as_array().map(Vec::len), Some(count), "{}", ran.stderr);
    }
    ran.stderr
}

#[test]
fn each_is_named_with_what_to_run() {
    let scratch = scratch();
    let directory = scratch.path();
    disk(directory, ["linux-data", "linux-data"]);
    assert_eq!(notes(directory, "disk.img"), "");
    let second = 40_064 * 512;
    put(directory, 6, b"LILO");
    let said = notes(directory, "disk.img");
    assert!(said.contains("note: LILO notes the sectors of its map") && said.contains("run lilo"));
    put(directory, 6, &[0; 4]);
    put(directory, second + 6, b"LILO");
    put(directory, second + 510, &[0x55, 0xaa]);
    assert!(notes(directory, "disk.img").contains("LILO"));
    put(directory, second + 6, &[0; 4]);
    assert_eq!(notes(directory, "disk.img"), "");
    // GRUB 2, in a partition that may be the disk of a virtual machine, and may not.
    let used = [0_u8, 0, 0, 0, 0x83, 0, 0, 0, 63, 0, 0, 0, 99, 0, 0, 0];
    put(directory, second, &[0xeb, 0x63]);
    put(directory, second + 0x5c, &40_164_u64.to_le_bytes());
    put(directory, second + 0x180, b"GRUB ");
    assert_eq!(notes(directory, "disk.img"), "");
    put(directory, second + 446, &used);
    assert!(notes(directory, "disk.img").contains("GRUB 2 in a partition that has a table itself"));
    // The first sector of its core.img is in the partition, which tells.
    put(directory, second + 100 * 512 + 508, &[9, 0, 0x20, 8]);
    assert_eq!(notes(directory, "disk.img"), "");
    put(directory, second, &[0; 2]);
    put(directory, second + 446, &[0; 16]);
    // GRUB 0.97, with its second stage in a partition that moves, and in the gap.
    put(directory, 0, &[0xeb, 0x48]);
    put(directory, 0x3e, &[3]);
    put(directory, 0x180, b"GRUB ");
    put(directory, 0x44, &40_100_u32.to_le_bytes());
    assert!(notes(directory, "disk.img").contains("grub-install"));
    put(directory, 0x44, &1_u32.to_le_bytes());
    assert_eq!(notes(directory, "disk.img"), "");
    // The move itself says it, in text and in JSON.
    put(directory, second + 6, b"LILO");
    let ran = run(directory, "move --align --json disk.img");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("note: LILO"), "{}", ran.stderr);
    assert_eq!(ran.json()["notes"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_bsd_and_a_windows_are_named_by_the_partition_that_moves() {
    let scratch = scratch();
    let directory = scratch.path();
    disk(directory, ["openbsd", "ntfs"]);
    let (first, second) = (63 * 512, 40_064 * 512);
    put(directory, first + 0x150, b"!Loading");
    put(directory, first + 0x170, b"ERR ");
    put(directory, first + 510, &[0x55, 0xaa]);
    let said = notes(directory, "disk.img");
    assert!(said.contains("OpenBSD's biosboot") && said.contains("installboot"), "{said}");
    // Windows on an active partition; its data are on another.
    put(directory, second + 3, b"NTFS    ");
    put(directory, second + 0x188, b"BOOTMGR is missing");
    put(directory, second + 510, &[0x55, 0xaa]);
    assert!(!notes(directory, "disk.img").contains("Windows"));
    done(directory, "part set -a active -i 2 disk.img");
    assert!(notes(directory, "disk.img").contains("bcdboot"));
    // One partition that moves alone, and is none of Windows.
    done(directory, "part resize -i 1 -s 30000 disk.img");
    let said = notes(directory, "disk.img#s1");
    assert!(said.contains("installboot") && !said.contains("Windows"), "{said}");
}

/// SYSLINUX counts its sectors from the volume: after a move its disk is as if it had been
/// installed at the new place.
#[test]
fn syslinux_needs_nothing() {
    if !here(&["syslinux", "mkfs.fat", "mcopy"]) {
        return;
    }
    let scratch = scratch();
    let directory = scratch.path();
    for (name, sectors, offset) in [("disk.img", 63, 32256), ("wanted.img", 2048, 1 << 20)] {
        zeroes(directory, name, 64 << 20);
        done(directory, &format!("part create -s mbr {name}"));
        done(directory, &format!("part add -t fat16 -b {sectors} -s 80000 {name}"));
        let script = format!(
            "mkfs.fat -F 16 -h {sectors} -i 12345678 --invariant --offset {sectors} {name} 40000 \
             && \
             syslinux --install --offset {offset} {name} && \
             mcopy -i {name}@@{offset} ::ldlinux.sys {name}.sys"
        );
        let ran = Command::new("sh")
            .args(["-ec", &script])
            .env("MTOOLS_SKIP_CHECK", "1")
            .current_dir(directory)
            .output()
            .expect("a shell");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
    assert_eq!(notes(directory, "disk.img#s1"), "");
    done(directory, "move --align disk.img#s1");
    let [moved, wanted] =
        ["disk.img", "wanted.img"].map(|name| fs::read(directory.join(name)).expect("an image"));
    let volume = |disk: &[u8]| disk[1 << 20..][..512].to_vec();
    assert!(volume(&moved) == volume(&wanted));
    // The file with the list of its sectors is the same at either place.
    let [one, two] = ["disk.img.sys", "wanted.img.sys"]
        .map(|name| fs::read(directory.join(name)).expect("a file"));
    assert!(one == two && one.len() > 512);
    let at = |disk: &[u8]| disk.windows(512).position(|part| part == &one[..512]);
    assert_eq!(at(&moved).expect("a file"), at(&wanted).expect("a file"));
}
