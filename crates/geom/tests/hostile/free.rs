//! Free space of hostile file systems: a doubt, or ranges in order and inside, after a bounded
//! number of reads.

use crate::btrfs::{self, LENGTH};
use crate::free_ranges::{disk, free, hold};
use crate::mutate::{Random, mutate};
use crate::repair::repair;
use crate::{disks, wanted};
use std::ops::Range;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::format::btrfs::KIND;
use trueline_geom::format::free_space::Unsure;

/// Place of the second superblock of a Btrfs.
const MIRROR: u64 = 64 << 20;

fn btrfs_free(disk: &Sparse) -> Result<Vec<Range<u64>>, Unsure> {
    free(KIND, disk).expect("a format with free space")
}

#[test]
fn mutants_are_in_doubt_or_bounded() {
    for (nth, (name, originals)) in disks().iter().enumerate() {
        let mut random = Random::new(nth as u64 + 2000);
        for _ in 0..wanted(20) {
            let mutant = mutate(&originals[0], 512, &mut random);
            assert!(hold(&mutant).1 > 0, "{name}");
        }
    }
}

#[test]
fn a_btrfs_of_right_checksums_is_in_doubt_or_bounded() {
    let mut random = Random::new(3000);
    let (mut sound, mut doubted) = (0, 0);
    let count = wanted(3000);
    for _ in 0..count {
        let mut data = vec![u8::try_from(random.below(2)).unwrap()];
        for _ in 0..=random.below(3) {
            let edges = [0, 1, 2, 0x10, 0x7f, 0x80, 0xff];
            // Heads and items are in front, the data behind.
            let place = [random.below(256), random.below(820), 3500 + random.below(588)];
            let place = u16::try_from(random.pick(&place)).unwrap();
            data.push(random.pick(&[0, 1, 2, 3, 4, 5, 6, 7]));
            data.extend(place.to_le_bytes());
            let [low, high] = [random.pick(&edges), random.pick(&edges)];
            data.extend(
                [[low, 0, 0, 0, 0, 0, 0, 0], [low, high, 0, 0, 0, 0, 0, 0], [high; 8]]
                    [usize::try_from(random.below(3)).unwrap()],
            );
        }
        match free(KIND, &disk(&data)).expect("a format with free space") {
            Ok(_) => sound += 1,
            Err(_) => doubted += 1,
        }
    }
    assert!(sound > count / 50 && doubted > count / 2, "{sound} and {doubted}");
}

#[test]
fn a_btrfs_of_either_kind_has_free_what_no_extent_covers() {
    for has_group_tree in [false, true] {
        let disk = btrfs::disk(has_group_tree);
        let mut used = vec![0..1 << 20, 64 << 20..(64 << 20) + 65536];
        for range in btrfs::used(has_group_tree) {
            let length = range.end - range.start;
            used.extend(btrfs::places(range.start).iter().map(|&at| at..at + length));
        }
        used.sort_by_key(|range| range.start);
        let (mut at, mut wanted) = (0, Vec::new());
        for range in used.into_iter().chain(std::iter::once(LENGTH..LENGTH)) {
            if range.start > at {
                wanted.push(at..range.start);
            }
            at = range.end.max(at);
        }
        assert_eq!(btrfs_free(&disk), Ok(wanted));
    }
}

/// One of two copies of a node, changed: the other counts.
#[test]
fn a_btrfs_has_two_copies_of_its_nodes() {
    let sound = btrfs_free(&btrfs::disk(false));
    for copy in 0..2 {
        let mut disk = btrfs::disk(false);
        disk.put(btrfs::places(btrfs::EXTENT)[copy] + 120, b"noise");
        assert_eq!(btrfs_free(&disk), sound);
    }
    let mut disk = btrfs::disk(false);
    btrfs::put(&mut disk, btrfs::EXTENT + 120, b"noise");
    assert!(btrfs_free(&disk).unwrap_err().to_string().contains("of its tree 2"));
}

/// The first superblock counts: without the second, which cannot be read, what is free is the same.
#[test]
fn a_btrfs_needs_no_second_superblock() {
    let disk = btrfs::disk(false);
    for (errno, is_passed) in [(Errno::Io, true), (Errno::NoDevice, false)] {
        let mut found = Vec::new();
        let mut read = |at: u64, out: &mut [u8]| match (at..at + out.len() as u64).contains(&MIRROR)
        {
            true => Err(errno),
            false => disk.read_at(out, at),
        };
        let came = KIND.format.free(KIND, LENGTH, &mut read, &mut |range| found.push(range));
        match came.expect("a format with free space") {
            Ok(()) => assert!(is_passed && Ok(found) == btrfs_free(&disk)),
            Err(why) => assert_eq!((why, is_passed), (Unsure::Failed(MIRROR, errno), false)),
        }
    }
}

/// Contradictions under right checksums: bytes at a place of the first superblock, or of a node.
#[test]
fn contradictions_of_a_btrfs_are_refused() {
    let plain = btrfs::disk(false);
    let item = |node, nth| btrfs::item(&plain, node, nth);
    let [front, back] = btrfs::LEAVES;
    let (used_key, used_data) = item(front, 2);
    let chunk = item(btrfs::CHUNK, 3).1;
    let number = |n: u64| n.to_le_bytes().to_vec();
    let superblock: [(u64, Vec<u8>, &str); 20] = [
        (56, number(5), "errors were met"),
        (56, number(1 << 32 | 1), "flags 0x100000001"),
        (56, number(1 << 38 | 1), "flags"),
        (72, number(6), "numbers of its superblock"),
        (72, number(8), "of its tree 1"),
        (80, number(btrfs::ROOT + 512), "numbers of its superblock"),
        (80, number(btrfs::DEV), "of its tree 1"),
        (96, number(btrfs::ROOT), "its log has to be replayed"),
        (120, number(1), "used bytes in its superblock"),
        (136, number(2), "it is on 2 devices"),
        (148, vec![0, 8], "numbers of its superblock"),
        (160, vec![255, 255], "numbers of its superblock"),
        (160, vec![100], "chunks in its superblock"),
        (180, number(8), "lacks a tree, or has one too many"),
        (180, number(16), "features 0x341 and 0x10"),
        (188, number(0x341 | 1 << 12), "features 0x1341"),
        (188, number(0x341 | 1 << 13), "features 0x2341"),
        (188, number(0x341 | 1 << 17), "features 0x20341"),
        (196, vec![1], "the checksum of its superblock"),
        (201 + 8, number(LENGTH + 4096), "numbers of its superblock"),
    ];
    let nodes: [(u64, Vec<u8>, &str); 29] = [
        (btrfs::ROOT + 48, number(btrfs::DEV), "of its tree 1"),
        (btrfs::ROOT + 56, vec![0], "of its tree 1"),
        (btrfs::DEV + 64, vec![8; 16], "of its tree 4"),
        (btrfs::DEV + 80, number(6), "of its tree 4"),
        (btrfs::DEV + 88, number(5), "of its tree 4"),
        (btrfs::DEV + 96, number(5000), "of its tree 4"),
        (btrfs::DEV + 96, vec![0], "its device tree has fewer chunks"),
        (btrfs::EXTENT + 100, vec![2], "of its tree 2"),
        (btrfs::EXTENT + 96, vec![0], "keys of node"),
        // Both pointers to one leaf; and the root to itself.
        (btrfs::EXTENT + 101 + 33 + 17, number(front), "keys of node"),
        (btrfs::EXTENT + 101 + 17, number(btrfs::EXTENT), "of its tree 2"),
        (btrfs::EXTENT + 101 + 33, vec![0; 8], "keys of node"),
        (used_key, number(1 << 40), "keys of node"),
        (used_key + 17, vec![0, 0], "keys of node"),
        (item(front, 0).0 + 8, vec![200], "keys of node"),
        (used_data, number(0), "the extent at"),
        (item(front, 1).1, number(77), "used bytes of the block group"),
        (item(back, 3).1 + 16, vec![2], "the extent at"),
        (item(back, 4).1 + 16, vec![4], "the block group at"),
        (item(btrfs::ROOT, 3).1 + 176, number(btrfs::GROUP), "is in its free space"),
        (item(back, 5).0 + 9, number(3 << 20), "the extent at"),
        (item(back, 5).0 + 9, number(0), "the extent at"),
        (item(back, 6).0 + 9, number(4096), "used bytes of the block group at"),
        (item(back, 6).0 + 9, number(13 << 20 | 4096), "the extent at"),
        (chunk + 24, vec![0x11], "profile 0x11"),
        (chunk + 24, vec![8 | 1], "profile 0x9"),
        (chunk + 48, vec![2], "on another device"),
        (chunk + 56, number(14 << 20), "two chunks have byte"),
        (item(btrfs::DEV, 1).1 + 24, number(77), "its device tree and its chunks"),
    ];
    let refused = |disk: &mut Sparse, wanted: &str, at: u64| {
        repair(disk, 512);
        match btrfs_free(disk) {
            Ok(_) => panic!("{at}: {wanted}"),
            Err(why) => assert!(why.to_string().contains(wanted), "{at}: {wanted}: {why}"),
        }
    };
    for (at, bytes, wanted) in superblock {
        let mut disk = plain.clone();
        disk.put(65536 + at, &bytes);
        refused(&mut disk, wanted, at);
    }
    for (at, bytes, wanted) in nodes {
        let mut disk = plain.clone();
        btrfs::put(&mut disk, at, &bytes);
        refused(&mut disk, wanted, at);
    }
    // Used bytes of the device in the superblock alone: Linux left them as they were.
    let mut disk = plain.clone();
    disk.put(65536 + 201 + 16, &number(77));
    repair(&mut disk, 512);
    assert_eq!(btrfs_free(&disk), btrfs_free(&plain));
    // Newer than the first.
    let mut disk = plain.clone();
    disk.put((64 << 20) + 72, &number(8));
    refused(&mut disk, "at byte 67108864 is newer", 0);
    let mut disk = plain.clone();
    disk.put((64 << 20) + 72, &number(6));
    repair(&mut disk, 512);
    assert!(btrfs_free(&disk).is_ok());
}
