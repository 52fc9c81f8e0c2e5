//! Free space of file systems, held to their own tools: what is called free is what the tool calls
//! free, and the file system does not miss it when all of it is overwritten.

mod btrfs;
mod exfat;
mod fat_files;
mod moved;

use crate::counters::{here, path};
use crate::scratch;
use crate::skip::skip;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use trueline_geom::base::error::Errno;
use trueline_geom::format::FormatKind;
use trueline_geom::format::btrfs::KIND as BTRFS;
use trueline_geom::format::exfat::KIND as EXFAT;
use trueline_geom::format::ext::EXT4;
use trueline_geom::format::free_space::Unsure;
use trueline_geom::format::{fat, ntfs, xfs};

/// The standard output of a shell command that succeeds.
pub(super) fn shell(directory: &Path, command: &str) -> String {
    let ran = Command::new("sh")
        .args(["-ec", command])
        .env("PATH", path())
        .env("LC_ALL", "C")
        .current_dir(directory)
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{command}: {said}{}", String::from_utf8_lossy(&ran.stderr));
    said
}

/// What `kind` calls free in the file system of an image, in order and joined.
pub(super) fn free(kind: FormatKind, image: &Path) -> Result<Vec<Range<u64>>, Unsure> {
    let file = File::open(image).expect("an image");
    let length = file.metadata().expect("its length").len();
    let mut found: Vec<Range<u64>> = Vec::new();
    let mut read = |at: u64, out: &mut [u8]| file.read_exact_at(out, at).map_err(|_| Errno::Range);
    let mut add = |range: Range<u64>| match found.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        last => {
            assert!(last.is_none_or(|last| last.end < range.start), "{range:?}");
            found.push(range);
        }
    };
    kind.format.free(kind, length, &mut read, &mut add).expect("a format with free space")?;
    Ok(found)
}

/// Overwrites `ranges` of an image with bytes that mean nothing.
pub(super) fn scribble(image: &Path, ranges: &[Range<u64>]) {
    let file = File::options().write(true).open(image).expect("an image");
    let noise = vec![0xa5; 1 << 20];
    for range in ranges {
        let mut at = range.start;
        while at < range.end {
            let length = (range.end - at).min(noise.len() as u64);
            let part = &noise[..usize::try_from(length).expect("a mebibyte")];
            file.write_all_at(part, at).expect("a write");
            at += length;
        }
    }
}

/// A directory `files` with files of many sizes; some of them are to be removed again.
pub(super) fn files(directory: &Path, most: usize) {
    let files = directory.join("files");
    fs::create_dir(&files).expect("a directory");
    fs::create_dir(files.join("inner")).expect("a directory");
    for n in 0..60_usize {
        let length = (n * n * 7919 + 13) % most;
        let bytes: Vec<u8> = (0..length).map(|at| (at * 31 + n * 7).to_le_bytes()[0]).collect();
        let place = if n % 3 == 0 { "inner" } else { "." };
        let name = if n % 4 == 1 { format!("gone{n}") } else { format!("kept{n}") };
        fs::write(files.join(place).join(name), bytes).expect("a file");
    }
}

/// Bytes of real file systems, changed at random where they are looked at: what comes of it is a
/// doubt, or ranges in order and inside.
#[test]
fn mutants_of_file_systems_are_in_doubt_or_bounded() {
    let mut state = 7_u64;
    let mut random = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for (kind, maker, command) in [
        (EXT4, "mke2fs", "mke2fs -q -F -t ext4 -O ^metadata_csum,uninit_bg fs.img 40M"),
        (
            EXT4,
            "mke2fs",
            "mke2fs -q -F -t ext4 -O ^metadata_csum,^uninit_bg,meta_bg,^resize_inode fs.img 40M",
        ),
        (fat::KIND, "mkfs.vfat", "truncate -s 40M fs.img; mkfs.vfat -F 32 fs.img"),
        (fat::KIND, "mkfs.vfat", "truncate -s 4M fs.img; mkfs.vfat -F 12 fs.img"),
        (ntfs::KIND, "mkntfs", "truncate -s 40M fs.img; mkntfs -qFQ fs.img"),
        (BTRFS, "mkfs.btrfs", "truncate -s 300M fs.img; mkfs.btrfs -q fs.img"),
        (EXFAT, "mkfs.exfat", "truncate -s 40M fs.img; mkfs.exfat fs.img"),
        (xfs::XFS, "mkfs.xfs", "truncate -s 300M fs.img; mkfs.xfs -q -m crc=0 fs.img"),
    ] {
        if !here(&[maker]) {
            continue;
        }
        let scratch = scratch();
        let directory = scratch.path();
        shell(directory, command);
        let file = File::open(directory.join("fs.img")).expect("an image");
        let length = file.metadata().expect("its length").len();
        let mut looked: Vec<(u64, u64)> = Vec::new();
        let mut first = |at: u64, out: &mut [u8]| {
            looked.push((at, out.len() as u64));
            file.read_exact_at(out, at).map_err(|_| Errno::Range)
        };
        let sound = kind.format.free(kind, length, &mut first, &mut |_| {});
        assert_eq!(sound, Some(Ok(())), "{command}");
        let mut doubted = 0;
        for _ in 0..300 {
            let changes: Vec<(u64, u8)> = (0..=random(3))
                .map(|_| {
                    let nth = usize::try_from(random(looked.len().min(40) as u64)).expect("few");
                    let (at, count) = looked[nth];
                    let value = [0, 1, 0x7f, 0x80, 0xff, 3][usize::try_from(random(6)).expect("6")];
                    (at + random(count.min(700)), value)
                })
                .collect();
            let mut read = |at: u64, out: &mut [u8]| {
                file.read_exact_at(out, at).map_err(|_| Errno::Range)?;
                for &(place, value) in &changes {
                    let index = place.checked_sub(at).and_then(|index| usize::try_from(index).ok());
                    if let Some(byte) = index.and_then(|index| out.get_mut(index)) {
                        *byte = value;
                    }
                }
                Ok(())
            };
            let mut end = 0;
            let mut add = |range: Range<u64>| {
                assert!(range.start >= end && range.end > range.start && range.end <= length);
                end = range.end;
            };
            let came = kind.format.free(kind, length, &mut read, &mut add).expect("it is known");
            doubted += u32::from(came.is_err());
        }
        assert!(doubted > 2, "{command}: {doubted} in doubt");
    }
}

/// The free ranges that `dumpe2fs` lists, in bytes.
fn dumped(directory: &Path) -> Vec<Range<u64>> {
    let said = shell(directory, "dumpe2fs fs.img 2>/dev/null");
    let number = |text: &str| text.trim().parse::<u64>().expect("a number");
    let line = |name: &str| said.lines().find_map(|line| line.strip_prefix(name)).map(number);
    let block = line("Block size:").expect("a size");
    // The last block of a range is the first of a cluster.
    let cluster = line("Cluster size:").unwrap_or(block);
    let mut found: Vec<Range<u64>> = Vec::new();
    for line in said.lines().filter_map(|line| line.strip_prefix("  Free blocks: ")) {
        for part in line.split(',').filter(|part| !part.trim().is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let range = number(first) * block..number(last) * block + cluster;
            match found.last_mut().filter(|last| last.end == range.start) {
                Some(last) => last.end = range.end,
                None => found.push(range),
            }
        }
    }
    found
}

const EXT: [&str; 16] = [
    "-t ext2 -b 1024 fs.img 50M",
    "-t ext2 -b 4096 -O ^sparse_super,^resize_inode fs.img 300M",
    "-t ext3 -b 2048 -g 8192 fs.img 80M",
    "-t ext3 -b 1024 fs.img 64M",
    "-t ext4 fs.img 64M",
    "-t ext4 fs.img 3G",
    "-t ext4 -O ^64bit fs.img 700M",
    "-t ext4 -O ^flex_bg -b 1024 fs.img 100M",
    "-t ext4 -O ^metadata_csum,uninit_bg fs.img 1G",
    "-t ext4 -O ^metadata_csum,^uninit_bg fs.img 500M",
    "-t ext4 -O meta_bg,^resize_inode -b 1024 fs.img 400M",
    "-t ext4 -O meta_bg,^resize_inode,^64bit -b 1024 -g 1024 fs.img 200M",
    "-t ext4 -O bigalloc -C 65536 fs.img 600M",
    "-t ext4 -O bigalloc -b 1024 -C 16384 fs.img 200M",
    "-t ext4 -O sparse_super2,^resize_inode -E num_backup_sb=2 fs.img 2G",
    "-t ext4 -O metadata_csum_seed,large_dir,^has_journal -I 512 fs.img 900M",
];

#[test]
fn ext_says_what_dumpe2fs_says_and_misses_nothing() {
    if !here(&["mke2fs", "dumpe2fs", "debugfs", "e2fsck"]) {
        return;
    }
    for options in EXT {
        let scratch = scratch();
        let directory = scratch.path();
        files(directory, 700_000);
        let image = directory.join("fs.img");
        shell(directory, &format!("mke2fs -q -F -d files {options}"));
        shell(
            directory,
            "for f in files/gone* files/inner/gone*; do echo rm ${f#files}; rm $f; done >gone
             debugfs -w -f gone fs.img 2>/dev/null >&2",
        );
        let found = free(EXT4, &image).unwrap_or_else(|why| panic!("{options}: {why}"));
        assert!(found == dumped(directory), "{options}: {found:?} {:?}", dumped(directory));
        assert!(found.len() > 2, "{options}");
        scribble(&image, &found);
        shell(directory, "e2fsck -fn fs.img; mkdir out; debugfs -R 'rdump / out' fs.img");
        shell(directory, "rm -r out/lost+found; diff -r files out");
    }
}

#[test]
fn an_ext_that_is_in_doubt_is_refused() {
    if !here(&["mke2fs", "debugfs"]) {
        return;
    }
    let scratch = scratch();
    let directory = scratch.path();
    let image = directory.join("fs.img");
    let doubts = |damage: &str| {
        shell(directory, "mke2fs -q -F -t ext4 -b 4096 fs.img 300M");
        shell(directory, damage);
        free(EXT4, &image).expect_err("a doubt").to_string()
    };
    let debugfs = |request: &str| doubts(&format!("debugfs -w -R '{request}' fs.img 2>/dev/null"));
    assert!(debugfs("feature needs_recovery").contains("its journal has to be replayed"));
    assert!(debugfs("ssv state 0").contains("not unmounted"));
    assert!(debugfs("ssv state 3").contains("errors were found"));
    assert!(debugfs("set_bg 1 free_blocks_count 7").contains("checksum of the descriptor"));
    assert!(debugfs("set_bg 1 block_bitmap 999999999").contains("descriptor of group 1"));
    // A bit of the first bitmap, whose block debugfs names.
    let found = doubts(
        "dumpe2fs fs.img 2>/dev/null | sed -n 's/.*Block bitmap at \\([0-9]*\\).*/\\1/p' >all
         at=$(head -1 all)
         printf '\\377' | dd of=fs.img bs=1 seek=$((at * 4096 + 4000)) conv=notrunc 2>/dev/null",
    );
    assert!(found.contains("the checksum of the block bitmap of group 0"), "{found}");
    let found = doubts("printf 7 | dd of=fs.img bs=1 seek=1200 conv=notrunc 2>/dev/null");
    assert!(found.contains("checksum of its superblock"), "{found}");
    shell(
        directory,
        "mke2fs -q -F -t ext4 -O ^metadata_csum fs.img 300M
         debugfs -w -R 'set_bg 1 free_blocks_count 7' fs.img 2>/dev/null",
    );
    let found = free(EXT4, &image).expect_err("a doubt").to_string();
    assert!(found.contains("free blocks of group 1"), "{found}");
    let file = File::options().write(true).open(&image).expect("an image");
    file.set_len(100 << 20).expect("a shorter image");
    assert!(free(EXT4, &image).expect_err("a doubt").to_string().contains("numbers"));
}

/// Mounts `fs.img` of `directory` on `out`, has the shell run `command` in it, and unmounts it.
/// False if this host cannot mount it.
pub(super) fn mounted(directory: &Path, kind: &str, command: &str) -> bool {
    let out = directory.join("out");
    fs::create_dir_all(&out).expect("a directory");
    let mount = format!("mount -t {kind} -o loop fs.img out");
    let mut sh = Command::new("sh");
    let ran = sh.args(["-c", &mount]).env("PATH", path()).current_dir(directory).output();
    let ran = ran.expect("a shell");
    if !ran.status.success() {
        skip(&format!("{mount}: {}", String::from_utf8_lossy(&ran.stderr)));
        return false;
    }
    let ran =
        Command::new("sh").args(["-ec", command]).current_dir(&out).output().expect("a shell");
    // A mount namespace that another test made meanwhile keeps it, and its loop device, for a time.
    shell(directory, "umount out; timeout 60 sh -c 'while losetup -j fs.img | grep .; do :; done'");
    assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
    true
}

/// Files in a mounted file system, some of which are removed again.
const FILL: &str = "cp -r ../files . && sync && rm files/gone* files/inner/gone* && sync
    cp -r ../files again && rm -r again && sync";
/// The same files, still there.
const COMPARE: &str = "rm -f ../files/gone* ../files/inner/gone*; diff -r ../files files";

#[test]
fn a_fat_says_what_its_checker_counts_and_misses_nothing() {
    if !here(&["mkfs.vfat", "fsck.vfat"]) {
        return;
    }
    for (options, size) in [
        ("-F 12 -s 16", "30M"),
        ("-F 12", "1440K"),
        ("-F 16", "100M"),
        ("-F 16 -f 1 -s 1", "30M"),
        ("-F 32", "300M"),
        ("-F 32 -S 4096", "1200M"),
    ] {
        let scratch = scratch();
        let directory = scratch.path();
        let image = directory.join("fs.img");
        shell(directory, &format!("truncate -s {size} fs.img; mkfs.vfat {options} fs.img"));
        let taken = fat_files::fill(&image);
        let found = free(fat::KIND, &image).unwrap_or_else(|why| panic!("{options}: {why}"));
        // "fs.img: 24 files, 72/5678 clusters": used, and all.
        let said = shell(directory, "fsck.vfat -nv fs.img");
        let number = |text: &str| text.trim().parse::<u64>().expect("a number");
        let last = said.lines().last().and_then(|line| line.split_once(" 24 files, "));
        let counts = last.and_then(|(_, rest)| rest.split_once(' ')).expect("counts").0;
        let (used, all) = counts.split_once('/').expect("two numbers");
        let cluster = taken[0].end - taken[0].start;
        let bytes: u64 = found.iter().map(|range| range.end - range.start).sum();
        assert_eq!(bytes, (number(all) - number(used)) * cluster, "{options}: {said}");
        let claims = |range: &Range<u64>| {
            found.iter().any(|free| free.start < range.end && range.start < free.end)
        };
        assert!(found.len() > 8 && !taken.iter().any(claims), "{options}");
        scribble(&image, &found);
        shell(directory, "fsck.vfat -n fs.img");
        // Marked as mounted.
        let at = if options.contains("32") { 65 } else { 37 };
        let file = File::options().write(true).open(&image).expect("an image");
        file.write_all_at(&[1], at).expect("a byte");
        let found = free(fat::KIND, &image).expect_err("a doubt").to_string();
        assert!(found.contains("not unmounted: its boot sector"), "{options}: {found}");
    }
}

#[test]
fn a_fat_that_is_in_doubt_is_refused() {
    if !here(&["mkfs.vfat"]) {
        return;
    }
    let scratch = scratch();
    let directory = scratch.path();
    let image = directory.join("fs.img");
    let doubts = |at: u64, with: &[u8]| {
        shell(directory, "rm -f fs.img; truncate -s 100M fs.img; mkfs.vfat -F 16 -R 4 fs.img");
        let file = File::options().write(true).open(&image).expect("an image");
        file.write_all_at(with, at).expect("a write");
        free(fat::KIND, &image).expect_err("a doubt").to_string()
    };
    let (fat, fat32) = (4 * 512, 32 * 512);
    assert!(doubts(fat + 1001, &[7]).contains("copies of its FAT differ"));
    shell(directory, "truncate -s 100M one.img; mkfs.vfat -F 16 -f 1 -R 4 one.img");
    let file = File::options().write(true).open(directory.join("one.img")).expect("an image");
    for (at, with, found) in [
        (fat + 1000, [0xf0, 0xff], "cluster 500 leads to 65520"),
        (fat + 1000, [0x01, 0x00], "cluster 500 leads to 1"),
        (fat, [0xf1, 0xff], "that of no medium"),
        (fat + 2, [0xff, 0x7f], "not unmounted: its FAT"),
        (fat + 2, [0xff, 0xbf], "errors were met"),
    ] {
        file.write_all_at(&with, at).expect("a write");
        let said = free(fat::KIND, &directory.join("one.img")).expect_err("a doubt").to_string();
        assert!(said.contains(found), "{said}");
        let sound: [u8; 2] = match at - fat {
            0 => [0xf8, 0xff],
            2 => [0xff, 0xff],
            _ => [0, 0],
        };
        file.write_all_at(&sound, at).expect("a write");
    }
    shell(directory, "truncate -s 100M wide.img; mkfs.vfat -F 32 -R 32 wide.img");
    let image = directory.join("wide.img");
    let file = File::options().read(true).write(true).open(&image).expect("an image");
    let mut size = [0; 4];
    file.read_exact_at(&mut size, 36).expect("a number");
    let second = fat32 + u64::from(u32::from_le_bytes(size)) * 512;
    // One FAT is in use by its flags, and Linux writes to the first.
    file.write_all_at(&[0x81], 40).expect("a write");
    assert!(free(fat::KIND, &image).is_ok());
    file.write_all_at(&[7], second + 1000).expect("a write");
    let said = free(fat::KIND, &image).expect_err("a doubt").to_string();
    assert!(said.contains("copies of its FAT differ"), "{said}");
    file.write_all_at(&[0], second + 1000).expect("a write");
    for place in [fat32, second] {
        file.write_all_at(&[0; 4], place + 8).expect("a write");
    }
    let said = free(fat::KIND, &image).expect_err("a doubt").to_string();
    assert!(said.contains("calls the root directory free"), "{said}");
}

#[test]
fn an_xfs_says_what_xfs_db_says_and_misses_nothing() {
    if !here(&["mkfs.xfs", "xfs_db", "xfs_repair", "mount"]) {
        return;
    }
    for (options, size) in [
        ("", "400M"),
        ("-m crc=0 -b size=1024", "350M"),
        ("-s size=4096 -d agcount=7", "900M"),
        ("-b size=512 -m crc=0 -n size=4096", "320M"),
    ] {
        let scratch = scratch();
        let directory = scratch.path();
        files(directory, 300_000);
        let image = directory.join("fs.img");
        // Kernels no longer mount version 4: mkfs.xfs puts the files there.
        let is_mounted = !options.contains("crc=0");
        let made = "printf '/x\\n0 0\\nd--755 0 0\\n' >list
            for f in files/kept*; do echo ${f#files/} ---644 0 0 $f >>list; done; echo $ >>list";
        let files = if is_mounted { "" } else { "-p list" };
        let make = format!("truncate -s {size} fs.img; mkfs.xfs -q {options} {files} fs.img");
        shell(directory, &format!("{made}; {make}"));
        assert!(free(xfs::XFS, &image).is_ok(), "{options}, as mkfs.xfs leaves it");
        if is_mounted && !mounted(directory, "xfs", FILL) {
            return;
        }
        let found = free(xfs::XFS, &image).unwrap_or_else(|why| panic!("{options}: {why}"));
        // Lines of: group, first block, blocks.
        let said = shell(
            directory,
            "xfs_db -r -c 'sb 0' -c 'p blocksize' -c 'p agblocks' -c 'freesp -d' fs.img",
        );
        let numbers = |line: &str| {
            line.split_whitespace().map(|word| word.parse::<u64>().ok()).collect::<Option<Vec<_>>>()
        };
        let named = |name: &str| {
            let line = said.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.trim_start_matches([' ', '=']).parse::<u64>().ok())
        };
        let (block, group) = (named("blocksize").expect("a size"), named("agblocks").expect("it"));
        let mut told: Vec<Range<u64>> = said
            .lines()
            .filter_map(numbers)
            .filter(|line| line.len() == 3)
            .map(|line| {
                let start = line[0] * group + line[1];
                start * block..(start + line[2]) * block
            })
            .collect();
        told.sort_by_key(|range| range.start);
        // xfs_db also counts what the free lists keep for the trees.
        let is_told = |range: &Range<u64>| {
            told.iter().any(|other| other.start <= range.start && range.end <= other.end)
        };
        assert!(!found.is_empty() && found.iter().all(is_told), "{options}: {found:?} {told:?}");
        let bytes = |list: &[Range<u64>]| list.iter().map(|r| r.end - r.start).sum::<u64>();
        let missing = bytes(&told) - bytes(&found);
        assert!(missing <= 16 * 10 * block, "{options}: {missing} bytes are not found");
        scribble(&image, &found);
        shell(directory, "xfs_repair -n fs.img");
        if is_mounted {
            assert!(mounted(directory, "xfs", COMPARE));
            // Copied while it is mounted: its log has to be replayed.
            let busy = "cp -r ../files more; sync; cp --sparse=always ../fs.img ../busy.img";
            assert!(mounted(directory, "xfs", busy));
            let busy = directory.join("busy.img");
            let said = free(xfs::XFS, &busy).expect_err("a doubt").to_string();
            assert!(said.contains("its log has to be replayed"), "{options}: {said}");
        }
        // A byte of the first head of free space.
        let sector = if options.contains("-s size=4096") { 4096 } else { 512 };
        let file = File::options().write(true).open(&image).expect("an image");
        file.write_all_at(&[7], sector + 55).expect("a write");
        let said = free(xfs::XFS, &image).expect_err("a doubt").to_string();
        let found = if is_mounted { "head of the free" } else { "number of free" };
        assert!(said.contains(found), "{options}: {said}");
    }
}

#[test]
fn an_ntfs_says_what_its_tools_count_and_misses_nothing() {
    if !here(&["mkntfs", "ntfsinfo", "ntfsfix", "ntfscp", "ntfscat", "ntfsresize"]) {
        return;
    }
    for (options, size) in [("", "100M"), ("-c 512", "40M"), ("-c 65536", "700M"), ("", "2M")] {
        let scratch = scratch();
        let directory = scratch.path();
        files(directory, if size == "2M" { 9_000 } else { 300_000 });
        let image = directory.join("fs.img");
        shell(directory, &format!("truncate -s {size} fs.img; mkntfs -qFQ {options} fs.img"));
        shell(
            directory,
            "cd files; for f in kept1* inner/kept*; do ntfscp -q ../fs.img $f ${f#*/}; done",
        );
        let found = free(ntfs::KIND, &image).unwrap_or_else(|why| panic!("{options}: {why}"));
        let said = shell(directory, "ntfsinfo -m fs.img");
        let number = |name: &str| {
            let line = said.lines().find(|line| line.contains(name)).expect("a line");
            let word = line.rsplit(':').next().expect("a number").trim();
            word.split(' ').next().and_then(|word| word.parse::<u64>().ok()).expect("a number")
        };
        let bytes: u64 = found.iter().map(|range| range.end - range.start).sum();
        assert_eq!(bytes, number("Free Clusters:") * number("Cluster Size:"), "{said}");
        // A cluster at either end of each range has no owner.
        scribble(&image, &found);
        shell(
            directory,
            "ntfsfix -n fs.img; ntfsresize -i -f fs.img; cd files
             for f in kept1* inner/kept*; do ntfscat ../fs.img ${f#*/} | cmp - $f; done",
        );
    }
}
