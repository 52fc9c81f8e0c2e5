//! `move --used-only`: partitions with file systems, around what those call free.

use super::{fat_files, files, free, scribble, shell};
use crate::counters::here;
use crate::moving::{MIB, done, refused};
use crate::moving_interrupted::served;
use crate::scratch;
use std::fs;
use std::ops::Range;
use std::path::Path;
use trueline_geom::format::FormatKind;
use trueline_geom::format::ext::EXT4;
use trueline_geom::format::fat;

/// Puts `fs.img` as a partition at sector 63 of a disk that has noise everywhere else; what it
/// calls free is noise of another kind. Returns that.
pub(super) fn embed(directory: &Path, kind: FormatKind) -> Vec<Range<u64>> {
    let image = directory.join("fs.img");
    let found = free(kind, &image).expect("a file system");
    scribble(&image, &found);
    let inside = fs::read(&image).expect("an image");
    let mut disk = vec![0x5a; inside.len() + 40 * MIB];
    disk[..MIB / 2].fill(0);
    fs::write(directory.join("disk.img"), &disk).expect("a disk");
    done(directory, "part create --overwrite -s mbr disk.img");
    let sectors = inside.len() / 512;
    done(directory, &format!("part add -t linux-data -b 63 -s {sectors} disk.img"));
    let mut disk = fs::read(directory.join("disk.img")).expect("a disk");
    disk[63 * 512..][..inside.len()].copy_from_slice(&inside);
    fs::write(directory.join("disk.img"), &disk).expect("a disk");
    found
}

/// Moves the partition to byte `to`, and takes it out into `fs.img` again. What is free and lies
/// outside of the old place has the noise that was there.
pub(super) fn moved(directory: &Path, to: usize, found: &[Range<u64>]) {
    let length = fs::read(directory.join("fs.img")).expect("an image").len();
    let said = done(directory, &format!("move --used-only --json --to {to} disk.img#s1"));
    let json: serde_json::Value = serde_json::from_str(&said).expect("a document");
    let free: u64 = found.iter().map(|range| range.end - range.start).sum();
    let copied = json["copied"].as_u64().expect("a number");
    assert!(copied < length as u64 - free / 2, "{copied} of {length}, {free} free");
    let after = fs::read(directory.join("disk.img")).expect("a disk");
    let inside = &after[to..][..length];
    let index = |at: u64| usize::try_from(at).expect("it is in memory");
    for range in found.iter().filter(|range| range.end - range.start > 4 << 20) {
        // Ends are always copied, and holes and short ranges are no gaps.
        let middle = index(range.start + (1 << 20))..index(range.end - (1 << 20));
        let outside = middle.start.max((63 * 512 + length).saturating_sub(to))..middle.end;
        let noise = inside.get(outside).unwrap_or_default();
        assert!(noise.iter().all(|&byte| byte == 0x5a), "{range:?}");
    }
    fs::write(directory.join("fs.img"), inside).expect("an image");
}

/// Moves the partition to byte `to`, and fails on the way there and while it is gone on with.
pub(super) fn interrupted(directory: &Path, to: usize) {
    let first = format!("move --used-only --to {to} --journal disk.img.journal \"$uri#s1\"");
    served(directory, 3, &first);
    served(directory, 2, "move --resume disk.img.journal \"$uri\"");
    done(directory, "move --resume disk.img.journal disk.img");
}

/// Takes the partition at byte `at` out of the disk into `fs.img`, which has its length.
pub(super) fn taken_out(directory: &Path, at: usize) {
    let length = fs::read(directory.join("fs.img")).expect("an image").len();
    let disk = fs::read(directory.join("disk.img")).expect("a disk");
    fs::write(directory.join("fs.img"), &disk[at..][..length]).expect("an image");
}

#[test]
fn an_ext4_moves_without_what_it_does_not_use() {
    if !here(&["mke2fs", "e2fsck", "debugfs"]) {
        return;
    }
    for to in [MIB, 9 * MIB, 200 * MIB] {
        let scratch = scratch();
        let directory = scratch.path();
        files(directory, 700_000);
        shell(directory, "mke2fs -q -F -t ext4 -d files fs.img 180M");
        let found = embed(directory, EXT4);
        if to > 180 * MIB {
            shell(directory, "truncate -s 400M disk.img");
        }
        moved(directory, to, if to > 180 * MIB { &[] } else { &found });
        shell(directory, "e2fsck -fn fs.img; mkdir out; debugfs -R 'rdump / out' fs.img");
        shell(directory, "rm -r out/lost+found; diff -r files out");
    }
}

#[test]
fn a_fat_moves_without_what_it_does_not_use() {
    if !here(&["mkfs.vfat", "fsck.vfat"]) {
        return;
    }
    for (bits, size) in [(16, "90M"), (32, "300M")] {
        let scratch = scratch();
        let directory = scratch.path();
        let image = directory.join("fs.img");
        shell(directory, &format!("truncate -s {size} fs.img; mkfs.vfat -F {bits} fs.img"));
        let taken = fat_files::fill(&image);
        let before = fs::read(&image).expect("an image");
        let found = embed(directory, fat::KIND);
        moved(directory, MIB, &found);
        shell(directory, "fsck.vfat -n fs.img");
        let after = fs::read(&image).expect("an image");
        let index = |at: u64| usize::try_from(at).expect("it is in memory");
        for range in taken.iter().map(|range| index(range.start)..index(range.end)) {
            assert!(before[range.clone()] == after[range.clone()], "{bits}: {range:?}");
        }
    }
}

#[test]
fn what_is_in_doubt_is_refused_and_what_is_not_known_is_copied() {
    if !here(&["mke2fs", "debugfs"]) {
        return;
    }
    let scratch = scratch();
    let directory = scratch.path();
    shell(directory, "mke2fs -q -F -t ext4 fs.img 64M");
    embed(directory, EXT4);
    shell(
        directory,
        "dd if=disk.img of=fs.img skip=63 count=131072 2>/dev/null
         debugfs -w -R 'feature needs_recovery' fs.img 2>/dev/null
         dd if=fs.img of=disk.img seek=63 conv=notrunc 2>/dev/null",
    );
    for target in ["disk.img#s1", "disk.img"] {
        let said = refused(directory, &format!("move --align --used-only {target}"));
        assert!(said.contains("what the ext4 of s1 uses is not known: it was not unm"), "{said}");
    }
    let whole = crate::moving::disk(directory);
    let ran = crate::run(directory, "move --align --used-only disk.img#s1");
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("nothing of s1 is known to be free: all of it is copied"));
    assert!(crate::moving::has(directory, MIB, &whole));
}
