use super::*;
use crate::workload::recorder::Recorder;
use trueline_sim::random::Random;

const GB: u64 = 1_000_000_000;

/// A file system of 10.24 GB with blocks of 16 KiB, as seed 000's.
fn mounted<'a>(rig: &'a mut Recorder, fsize: u64) -> OpenbsdFfs<'a> {
    OpenbsdFfs::new(rig, Parameters { fsize, ..Parameters::default() }).unwrap()
}

/// Operation, first byte, bytes, and whether the host waited for it before it asked for anything
/// else.
fn asked(rig: &Recorder) -> Vec<(Op, u64, u64, bool)> {
    let waited = |n: usize| rig.times.get(n + 1).is_some_and(|&next| next > rig.times[n]);
    rig.asked
        .iter()
        .enumerate()
        .map(|(n, &(op, offset, length))| (op, offset, length, waited(n)))
        .collect()
}

#[test]
fn newfs_of_2009() {
    let shape = FfsLayout::new(10_240_000_000, 512, 2048, 16384).unwrap();
    // A group is as large as its map fits one block.
    assert_eq!((shape.groups, shape.frag), (54, 8));
    assert!((180..200).contains(&((u64::from(shape.per_group) * 2048) >> 20)), "{shape:?}");
    // Superblock and its backup, the map, the inodes: each in whole blocks.
    assert_eq!((shape.map, shape.inode_table, shape.data % 8), (16, 24, 0));
    assert_eq!(shape.inode_block(0), 24 * 2048);
    assert_eq!(shape.inode_block(128), 24 * 2048 + 16384);
}

#[test]
fn what_newfs_would_refuse() {
    for (length, fsize, bsize) in [
        (10 * GB, 2048, 32768),
        (10 * GB, 3000, 24000),
        (10 * GB, 256, 2048),
        (100_000, 2048, 16384),
        (10 * GB, 0, 0),
    ] {
        assert!(FfsLayout::new(length, 512, fsize, bsize).is_err(), "{length} {fsize} {bsize}");
    }
    assert!(FfsLayout::new(10 * GB, 4096, 2048, 16384).is_err());
}

#[test]
fn a_file_waits_for_its_inode_and_its_name() {
    let mut rig = Recorder::new(10 * GB);
    let mut files = mounted(&mut rig, 2048);
    let (root, data) =
        (files.directory_buffer(ROOT, 0).unwrap(), files.shape.byte(u64::from(files.shape.data)));
    let (inodes, map) = (files.shape.inode_block(3), files.shape.map_of(0));
    assert_eq!(root, (data, 2048));
    let file = files.create("a").unwrap();
    files.write(file, 0, 3000).unwrap();
    files.close(file).unwrap();
    files.set_times("a").unwrap();
    // Two fragments after the root's one.
    assert_eq!(files.extents("a").unwrap(), [(data + 2048, 4096)]);
    files.think(9 * S);
    files.stat("a").unwrap();
    files.think(2 * S);
    files.stat("a").unwrap();
    files.think(20 * S);
    files.stat("a").unwrap();
    drop(files);
    assert_eq!(
        asked(&rig),
        [
            (Op::Read, map, 16384, true),
            (Op::Read, inodes, 16384, true),
            (Op::Write, inodes, 16384, true),
            (Op::Read, data, 2048, true),
            (Op::Write, data, 2048, true),
            // The device's buffers are due after 10 s, the file's after 30 s; none is waited for.
            (Op::Write, map, 16384, false),
            (Op::Write, inodes, 16384, true),
            (Op::Write, data + 2048, 4096, false),
        ]
    );
}

#[test]
fn a_directory_waits_four_times() {
    let mut rig = Recorder::new(10 * GB);
    let mut files = mounted(&mut rig, 2048);
    files.make_directory("d").unwrap();
    let own = files.names.get("d").unwrap();
    let (number, body) =
        (files.names.node(own).unwrap().number, files.directory_buffer(own, 0).unwrap());
    let (inodes, root) =
        (files.shape.inode_block(number), files.directory_buffer(ROOT, 0).unwrap());
    let above = files.shape.inode_block(2);
    drop(files);
    let writes: Vec<_> = asked(&rig)
        .into_iter()
        .filter(|asked| asked.0 == Op::Write)
        .map(|(_, at, length, _)| (at, length))
        .collect();
    assert_eq!(writes, [(above, 16384), (inodes, 16384), body, root]);
}

#[test]
fn a_directory_grows_by_fragments_and_its_inode_is_written_then() {
    let mut rig = Recorder::new(10 * GB);
    let mut files = mounted(&mut rig, 2048);
    // Entries of 20 bytes: 24 in the first 512 bytes after . and .., 25 in each that follows.
    for n in 0..24 + 25 * 4 + 1 {
        let file = files.create(&format!("{n:010}")).unwrap();
        files.close(file).unwrap();
    }
    drop(files);
    let mut writes: Vec<u64> = rig
        .asked
        .iter()
        .filter(|asked| asked.0 == Op::Write)
        .map(|&(_, _, length)| length)
        .collect();
    // All but the last five: inode, name; where a new 512 bytes begin, the directory's inode.
    let grown = |at: u64| [16384, at, 16384];
    let mut expected: Vec<u64> = (0..24).flat_map(|_| [16384, 2048]).collect();
    for block in 1..=4u64 {
        let length = (block * 512 + 512).div_ceil(2048) * 2048;
        expected.extend(grown(length));
        expected.extend((0..24).flat_map(|_| [16384, length]));
    }
    expected.extend(grown(4096));
    writes.truncate(expected.len());
    assert_eq!(writes, expected);
}

#[test]
fn a_long_file_goes_in_clusters_of_64_kib() {
    let mut rig = Recorder::new(10 * GB);
    let mut files = mounted(&mut rig, 2048);
    let file = files.create("long").unwrap();
    for at in 0..1024 {
        files.write(file, at * 4096, 4096).unwrap();
    }
    files.close(file).unwrap();
    let extents = files.extents("long").unwrap();
    // 12 blocks, the indirect block, the rest.
    assert_eq!(
        extents.iter().map(|extent| extent.1).collect::<Vec<_>>(),
        [12 * 16384, 244 * 16384]
    );
    assert_eq!(extents[1].0, extents[0].0 + 13 * 16384);
    drop(files);
    let clusters =
        rig.asked.iter().filter(|&&asked| asked.0 == Op::Write && asked.2 == 65536).count();
    assert_eq!(clusters, 64);
}

#[test]
fn reading_brings_whole_clusters_and_the_next_one() {
    let mut rig = Recorder::new(10 * GB);
    let mut files = mounted(&mut rig, 2048);
    let file = files.create("long").unwrap();
    files.write(file, 0, 1 << 20).unwrap();
    files.forget().unwrap();
    let before = files.queue.now();
    for at in 0..256 {
        files.read(file, at * 4096, 4096).unwrap();
    }
    // From memory nothing is asked.
    let after = files.queue.now();
    files.read(file, 4096, 4096).unwrap();
    assert!(before < after && files.queue.now() == after);
    drop(files);
    let reads: Vec<u64> = rig
        .asked
        .iter()
        .filter(|asked| asked.0 == Op::Read && asked.2 > 16384)
        .map(|&(_, _, length)| length)
        .collect();
    assert_eq!(reads.iter().sum::<u64>(), 1 << 20);
    assert!(reads.iter().all(|&length| length == 65536 || length == 49152), "{reads:?}");
}

/// Whatever is made and removed, all blocks lie inside the file system, no two files share one, and
/// removal frees all.
#[test]
fn placement_laws() {
    for fsize in [2048, 4096, 16384] {
        let mut rig = Recorder::new(300 << 20);
        let mut files = mounted(&mut rig, fsize);
        let free = files.free_blocks;
        let mut random = Random::new(fsize);
        let mut there: Vec<String> = Vec::new();
        files.make_directory("d").unwrap();
        for n in 0..3000 {
            if random.below(3) == 0 && !there.is_empty() {
                let at = usize::try_from(random.below(there.len() as u64)).unwrap();
                files.remove(&there.swap_remove(at)).unwrap();
                continue;
            }
            let name = format!("d/{n}");
            let file = files.create(&name).unwrap();
            let mut at = 0;
            for _ in 0..1 + random.below(4) {
                let length = 1 + random.below(30_000);
                files.write(file, at, length).unwrap();
                at += length;
            }
            files.close(file).unwrap();
            assert_eq!(files.stat(&name).unwrap(), at);
            there.push(name);
        }
        let mut taken = Vec::new();
        for name in &there {
            let bytes: u64 = files.extents(name).unwrap().iter().map(|extent| extent.1).sum();
            assert!(bytes >= files.stat(name).unwrap());
            taken.extend(files.extents(name).unwrap());
        }
        let shape = files.shape;
        taken.sort_unstable();
        assert!(
            taken.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0),
            "overlap at fsize {fsize}"
        );
        assert!(
            taken
                .iter()
                .all(|&(at, length)| at % fsize == 0 && at + length <= shape.byte(shape.size))
        );
        let data =
            |at: u64| at % (u64::from(shape.per_group) * fsize) >= u64::from(shape.data) * fsize;
        assert!(taken.iter().all(|&(at, _)| data(at)), "file data in a table at fsize {fsize}");
        for name in &there {
            files.remove(name).unwrap();
        }
        files.remove_directory("d").unwrap();
        assert_eq!(files.free_blocks, free);
        files.forget().unwrap();
        assert_eq!(files.buffers.dirty(), 0);
    }
}

#[test]
fn a_full_file_system_says_so() {
    let mut rig = Recorder::new(8 << 20);
    let mut files = mounted(&mut rig, 2048);
    let file = files.create("full").unwrap();
    let error = (0..).find_map(|n| files.write(file, n * 65536, 65536).err()).unwrap();
    assert_eq!(error.message, "write: no space left on the file system");
    files.close(file).unwrap();
    files.remove("full").unwrap();
    let file = files.create("again").unwrap();
    files.write(file, 0, 1 << 20).unwrap();
}

#[test]
fn names_that_are_not_there() {
    let mut rig = Recorder::new(1 << 30);
    let mut files = mounted(&mut rig, 2048);
    assert_eq!(files.open("a").unwrap_err().message, "open a: no such file");
    assert_eq!(files.create("a/b").unwrap_err().message, "open a: no such directory");
    files.create("a").unwrap();
    assert_eq!(files.create("a").unwrap_err().message, "create a: it is there already");
    assert!(files.create("a/b").is_err());
    assert!(files.remove_directory("a").is_err());
    files.make_directory("d").unwrap();
    files.create("d/f").unwrap();
    assert_eq!(
        files.remove_directory("d").unwrap_err().message,
        "remove d: the directory is not empty"
    );
    assert!(files.remove("d").is_err());
}
