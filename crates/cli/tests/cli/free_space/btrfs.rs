//! Free space of Btrfs, held to its own tools and to the kernel.

use super::moved::{embed, interrupted, moved, taken_out};
use super::{files, free, mounted, scribble, shell};
use crate::counters::here;
use crate::moving::{MIB, done};
use crate::scratch;
use std::fs;
use std::ops::Range;
use std::path::Path;
use trueline_geom::format::btrfs::KIND;

const TOOLS: [&str; 3] = ["mkfs.btrfs", "btrfs", "mount"];
/// Files with and without compression, preallocated, in snapshots that stay and that go.
const FILL: &str = "cp -r ../files . && btrfs property set . compression zstd && sync
    cp -r ../files packed && head -c 300000 /dev/urandom >noise && fallocate -l 3M ahead
    btrfs subvolume snapshot . snap && btrfs subvolume create other && cp -r ../files other
    sync && rm files/gone* files/inner/gone* && sync && cp -r ../files again && sync
    rm -r again && btrfs subvolume snapshot -r . gone && btrfs subvolume delete -c gone other
    btrfs subvolume sync . && sync";
const COMPARE: &str = "diff -r ../all packed && diff -r ../all snap/files && diff -r ../files files
    btrfs scrub start -Br . && cat ahead noise snap/packed/inner/* >/dev/null";

/// Numbers of a line, which stand between other words.
fn numbers(line: &str) -> Vec<u64> {
    line.split(|c: char| !c.is_ascii_alphanumeric()).filter_map(|word| word.parse().ok()).collect()
}

/// Chunks that `btrfs` lists: first logical address, bytes, places on the device.
fn chunks(directory: &Path) -> Vec<(u64, u64, Vec<u64>)> {
    let said = shell(directory, "btrfs inspect-internal dump-tree -t 3 fs.img");
    let mut found: Vec<(u64, u64, Vec<u64>)> = Vec::new();
    for line in said.lines().map(str::trim) {
        if line.contains("CHUNK_ITEM ") {
            found.push((numbers(line)[1], 0, Vec::new()));
        } else if let Some((_, length, places)) = found.last_mut() {
            if line.starts_with("length ") {
                *length = numbers(line)[0];
            } else if line.starts_with("stripe ") {
                places.push(numbers(line)[2]);
            }
        }
    }
    found
}

/// The parts of `range` outside of `holes`, which are in order.
fn outside(range: Range<u64>, holes: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let (mut at, mut found) = (range.start, Vec::new());
    for hole in holes {
        if hole.start > at {
            found.push(at..hole.start.min(range.end));
        }
        at = at.max(hole.end);
    }
    found.push(at..range.end);
    found.retain(|range| range.start < range.end);
    found
}

/// Free ranges of the device by the extents and the chunks that `btrfs` lists; and those that the
/// kernel's own tree of free space has, unless it has bitmaps of them.
fn dumped(directory: &Path, length: u64) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
    let said = shell(directory, "btrfs inspect-internal dump-tree -t 2 fs.img");
    let node = shell(directory, "btrfs inspect-internal dump-super fs.img");
    let node = node.lines().find_map(|line| line.strip_prefix("nodesize")).map(numbers);
    let node = node.expect("a size")[0];
    let mut used: Vec<Range<u64>> = Vec::new();
    for line in said.lines().filter(|line| line.contains(" key (")) {
        let [_, start, length, ..] = numbers(line)[..] else { continue };
        if line.contains(" EXTENT_ITEM ") {
            used.push(start..start + length);
        } else if line.contains(" METADATA_ITEM ") {
            used.push(start..start + node);
        }
    }
    let said = shell(directory, "btrfs inspect-internal dump-tree -t 10 fs.img 2>/dev/null || :");
    let known = said.lines().filter(|line| line.contains(" FREE_SPACE_EXTENT ")).map(numbers);
    let known: Vec<Range<u64>> = known.map(|line| line[1]..line[1] + line[2]).collect();
    let kept = [0..1 << 20, 64 << 20..(64 << 20) + 65536, 256 << 30..(256 << 30) + 65536];
    let (mut free, mut told, mut taken) = (Vec::new(), Vec::new(), Vec::new());
    for (start, length, places) in chunks(directory) {
        let own = used.iter().filter(|range| (start..start + length).contains(&range.start));
        let own = outside(start..start + length, own.cloned());
        for place in places {
            taken.push(place..place + length);
            let moved = |range: &Range<u64>| range.start - start + place..range.end - start + place;
            free.extend(own.iter().map(moved));
            let inside = |range: &&Range<u64>| (start..start + length).contains(&range.start);
            told.extend(known.iter().filter(inside).map(moved));
        }
    }
    taken.sort_by_key(|range| range.start);
    free.extend(outside(0..length, taken.into_iter()));
    free.sort_by_key(|range| range.start);
    let mut all: Vec<Range<u64>> = Vec::new();
    for range in free.into_iter().flat_map(|range| outside(range, kept.iter().cloned())) {
        match all.last_mut().filter(|last| last.end == range.start) {
            Some(last) => last.end = range.end,
            None => all.push(range),
        }
    }
    (all, told)
}

/// Has `btrfs` check all of it, and compares every file.
fn is_whole(directory: &Path) {
    shell(directory, "btrfs check --check-data-csum fs.img");
    assert!(mounted(directory, "btrfs", COMPARE));
    shell(directory, "btrfs check fs.img");
}

#[test]
fn a_btrfs_says_what_its_trees_say_and_misses_nothing() {
    if !here(&TOOLS) {
        return;
    }
    for (options, size) in [
        ("", "400M"),
        ("-m single", "300M"),
        ("-m dup -d dup", "500M"),
        ("-M", "150M"),
        ("-n 4096 -R ^free-space-tree", "300M"),
        ("-n 65536 -O ^no-holes,^skinny-metadata", "400M"),
        ("--csum xxhash", "300M"),
        ("--csum sha256", "300M"),
        ("--csum blake2", "300M"),
    ] {
        let scratch = scratch();
        let directory = scratch.path();
        files(directory, 200_000);
        shell(directory, &format!("truncate -s {size} fs.img; mkfs.btrfs -q {options} fs.img"));
        let image = directory.join("fs.img");
        let length = fs::metadata(&image).expect("an image").len();
        let found = free(KIND, &image).unwrap_or_else(|why| panic!("{options}: {why}"));
        assert!(found == dumped(directory, length).0, "{options}, as mkfs.btrfs leaves it");
        if !mounted(directory, "btrfs", FILL) {
            return;
        }
        let found = free(KIND, &image).unwrap_or_else(|why| panic!("{options}: {why}"));
        let (wanted, told) = dumped(directory, length);
        assert!(found == wanted, "{options}: {found:?} {wanted:?}");
        let is_found = |range: &Range<u64>| {
            found.iter().any(|free| free.start <= range.start && range.end <= free.end)
        };
        let missing: Vec<_> = told.iter().filter(|range| !is_found(range)).collect();
        // A range of both copies of a chunk has a superblock in one.
        assert!(missing.len() <= 1 && found.len() > 8, "{options}: {missing:?} {found:?}");
        scribble(&image, &found);
        shell(directory, "cp -r files all && rm files/gone* files/inner/gone*");
        is_whole(directory);
    }
}

#[test]
fn superblocks_of_a_large_btrfs_are_not_free() {
    if !here(&TOOLS) {
        return;
    }
    let scratch = scratch();
    let directory = scratch.path();
    shell(directory, "truncate -s 300G fs.img; mkfs.btrfs -q -K fs.img");
    let found = free(KIND, &directory.join("fs.img")).expect("a file system");
    assert!(found == dumped(directory, 300 << 30).0, "{found:?}");
    assert!(found.iter().any(|range| range.end == 256 << 30), "{found:?}");
}

#[test]
fn a_btrfs_that_is_in_doubt_is_refused() {
    if !here(&TOOLS) || !here(&["btrfstune"]) {
        return;
    }
    let scratch = scratch();
    let directory = scratch.path();
    let doubts = |command: &str| {
        shell(directory, &format!("rm -f fs.img b.img; truncate -s 300M fs.img b.img; {command}"));
        free(KIND, &directory.join("fs.img")).expect_err("a doubt").to_string()
    };
    let said = doubts("mkfs.btrfs -q fs.img b.img");
    assert!(said.contains("it is on 2 devices"), "{said}");
    let said = doubts("mkfs.btrfs -q fs.img; btrfstune -S 1 fs.img");
    assert!(said.contains("not understood: flags 0x100000001"), "{said}");
    let said = doubts("mkfs.btrfs -q fs.img; truncate -s 299M fs.img");
    assert!(said.contains("the numbers of its superblock"), "{said}");
    let damage = |at: &str| {
        format!(
            "mkfs.btrfs -q -m single fs.img
             printf '\\007' | dd of=fs.img bs=1 seek={at} conv=notrunc 2>/dev/null"
        )
    };
    let said = doubts(&damage("$((65536 + 700))"));
    assert!(said.contains("the checksum of its superblock"), "{said}");
    for tree in [2, 3, 4] {
        let place = format!(
            "$(at=$(btrfs inspect-internal dump-tree -t {tree} fs.img \
                | sed -n 's/^leaf \\([0-9]*\\) items.*/\\1/p')
               at=$(btrfs-map-logical -l $at fs.img | sed -n 's/.*physical \\([0-9]*\\) .*/\\1/p')
               echo $((at + 3000)))"
        );
        let said = doubts(&damage(&place));
        assert!(said.contains(&format!("of its tree {tree}")), "{said}");
    }
    // A newer superblock behind the first.
    shell(directory, "mkfs.btrfs -qf fs.img; cp fs.img old.img");
    let change = "for n in 1 2 3; do echo $n >f; sync; done";
    if !mounted(directory, "btrfs", change) {
        return;
    }
    shell(directory, "dd if=old.img of=fs.img bs=4096 skip=16 seek=16 count=1 conv=notrunc 2>&1");
    let said = free(KIND, &directory.join("fs.img")).expect_err("a doubt").to_string();
    assert!(said.contains("superblock at byte 67108864 is newer"), "{said}");
    // Written and synchronised, but not in a transaction yet.
    shell(directory, "mkfs.btrfs -qf fs.img");
    let busy = "echo 1 >f; sync; dd if=/dev/zero of=f bs=4k count=1 conv=fsync 2>/dev/null
        cp --sparse=always ../fs.img ../busy.img";
    assert!(mounted(directory, "btrfs", busy));
    let said = free(KIND, &directory.join("busy.img")).expect_err("a doubt").to_string();
    assert!(said.contains("its log has to be replayed"), "{said}");
}

#[test]
fn a_btrfs_moves_without_what_it_does_not_use() {
    if !here(&TOOLS) {
        return;
    }
    for (options, to) in [("", MIB), ("-M -n 4096", 9 * MIB)] {
        let scratch = scratch();
        let directory = scratch.path();
        files(directory, 200_000);
        shell(directory, &format!("truncate -s 250M fs.img; mkfs.btrfs -q {options} fs.img"));
        if !mounted(directory, "btrfs", FILL) {
            return;
        }
        shell(directory, "cp -r files all && rm files/gone* files/inner/gone*");
        let found = embed(directory, KIND);
        moved(directory, to, &found);
        is_whole(directory);
        embed(directory, KIND);
        interrupted(directory, to);
        taken_out(directory, to);
        is_whole(directory);
        // And back: the disk has what it had before it was taken out.
        done(directory, "move --used-only --to 63s disk.img#s1");
        taken_out(directory, 63 * 512);
        shell(directory, "btrfs check --check-data-csum fs.img");
    }
}
