//! Free space of exFAT, held to its checker. No system here mounts one, so files are written by the
//! test's own arithmetic.

use super::moved::{embed, interrupted, moved, taken_out};
use super::{free, scribble, shell};
use crate::counters::here;
use crate::moving::MIB;
use crate::scratch;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use trueline_geom::base::error::Errno;
use trueline_geom::format::exfat::KIND;

/// An exFAT in a file: places in bytes, clusters from 2 on.
struct Volume {
    file: File,
    sector: u64,
    cluster: u64,
    fat: u64,
    heap: u64,
    clusters: u64,
    root: u64,
    bitmap: u64,
}

impl Volume {
    fn open(image: &Path) -> Volume {
        let file = File::options().read(true).write(true).open(image).expect("an image");
        let mut boot = [0; 512];
        file.read_exact_at(&mut boot, 0).expect("a boot sector");
        let wide = |at: usize| {
            u64::from(u32::from_le_bytes([boot[at], boot[at + 1], boot[at + 2], boot[at + 3]]))
        };
        let sector = 1 << boot[108];
        let mut volume = Volume {
            sector,
            cluster: sector << boot[109],
            fat: wide(80) * sector,
            heap: wide(88) * sector,
            clusters: wide(92),
            root: wide(96),
            bitmap: 0,
            file,
        };
        // Label, bitmap, up-case table, as mkfs.exfat writes them.
        let mut entry = [0; 4];
        let at = volume.place(volume.root) + 32 + 20;
        volume.file.read_exact_at(&mut entry, at).expect("an entry");
        volume.bitmap = volume.place(u64::from(u32::from_le_bytes(entry)));
        volume
    }

    fn place(&self, cluster: u64) -> u64 {
        self.heap + (cluster - 2) * self.cluster
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        self.file.write_all_at(bytes, at).expect("a write");
    }

    fn byte(&self, at: u64) -> u8 {
        let mut byte = [0];
        self.file.read_exact_at(&mut byte, at).expect("a byte");
        byte[0]
    }

    /// Notes clusters as used, in a chain of the FAT if they do not follow each other.
    fn take(&self, own: &[u64]) -> bool {
        let is_chain = own.windows(2).any(|two| two[1] != two[0] + 1);
        for (n, &cluster) in own.iter().enumerate() {
            let next = own.get(n + 1).map_or(u32::MAX, |&next| u32::try_from(next).expect("one"));
            if is_chain {
                self.put(self.fat + cluster * 4, &next.to_le_bytes());
            }
            self.mark(cluster, true);
        }
        is_chain
    }

    /// Has the allocation bitmap call a cluster used, or free.
    fn mark(&self, cluster: u64, is_used: bool) {
        let (at, bit) = (self.bitmap + (cluster - 2) / 8, 1 << ((cluster - 2) % 8));
        let byte = self.byte(at);
        self.put(at, &[if is_used { byte | bit } else { byte & !bit }]);
    }

    /// Writes a file of these clusters into the directory `at`, as entry set `nth`.
    fn add(&self, at: u64, nth: u64, own: &[u64]) {
        let noise = vec![0x80 | nth.to_le_bytes()[0]; usize::try_from(self.cluster).expect("it")];
        own.iter().for_each(|&cluster| self.put(self.place(cluster), &noise));
        let is_chain = self.take(own);
        let length = own.len() as u64 * self.cluster - 7;
        let name = format!("FILE{nth:02}");
        self.put(at, &entries(&name, 0x20, (own[0], length), is_chain));
    }

    /// Writes a directory with one file into the root directory, behind `sets` others; gives the
    /// clusters of both.
    fn nest(&self, sets: u64, own: u64) -> [u64; 2] {
        self.put(self.place(own), &vec![0; usize::try_from(self.cluster).expect("it")]);
        self.take(&[own]);
        let at = self.place(self.root) + 96 + sets * 96;
        self.put(at, &entries("INSIDE", 0x10, (own, self.cluster), false));
        self.add(self.place(own), 77, &[own + 2]);
        [own, own + 2]
    }

    /// Writes files, whose clusters lie apart, into an empty volume, and one in a directory; how
    /// many, and the bytes that all take.
    fn fill(&self) -> (u64, Vec<Range<u64>>) {
        let files = 24.min((self.cluster / 32 - 7) / 3);
        // Behind the bitmap, the up-case table and the root directory.
        let (mut next, mut taken) = (self.root + 1, Vec::<Range<u64>>::new());
        for nth in 0..files {
            let mut own = Vec::new();
            for _ in 0..=nth % 5 {
                own.push(next);
                next += 1 + nth % 3 + u64::from(nth == 11 && own.len() == 1) * self.clusters / 3;
            }
            taken.extend(own.iter().map(|&n| self.place(n)..self.place(n + 1)));
            self.add(self.place(self.root) + 96 + nth * 96, nth, &own);
            next += 1;
        }
        let nested = self.nest(files, next + 1);
        taken.extend(nested.iter().map(|&n| self.place(n)..self.place(n + 1)));
        (files + 1, taken)
    }
}

/// The sum of a name, or of a set of entries.
fn sum(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum: u16, &byte| sum.rotate_right(1).wrapping_add(byte.into()))
}

/// The set of entries of a file or a directory with a name of six letters, whose first cluster and
/// length are `place`.
fn entries(name: &str, attributes: u8, place: (u64, u64), is_chain: bool) -> [u8; 96] {
    let wide: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let (first, length) = (place.0.to_le_bytes(), place.1.to_le_bytes());
    let mut set = [0; 96];
    (set[0], set[1], set[4]) = (0x85, 2, attributes);
    // 1 January 2020, three times.
    [8, 12, 16].iter().for_each(|&at| set[at..at + 4].copy_from_slice(&[0, 0, 0x21, 0x50]));
    (set[32], set[33], set[35]) = (0xc0, if is_chain { 1 } else { 3 }, 6);
    set[36..38].copy_from_slice(&sum(&wide).to_le_bytes());
    set[40..48].copy_from_slice(&length);
    set[52..56].copy_from_slice(&first[..4]);
    set[56..64].copy_from_slice(&length);
    set[64] = 0xc1;
    set[66..66 + wide.len()].copy_from_slice(&wide);
    seal(&mut set);
    set
}

fn seal(set: &mut [u8; 96]) {
    let sum = sum(&[&set[..2], &set[4..]].concat());
    set[2..4].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn an_exfat_says_what_its_tools_count_and_misses_nothing() {
    if !here(&["mkfs.exfat", "fsck.exfat", "dump.exfat"]) {
        return;
    }
    for (options, size) in [
        ("", "100M"),
        ("-c 512", "40M"),
        ("-c 32K", "300M"),
        ("-c 1M --pack-bitmap", "700M"),
        ("-b 1M", "7M"),
    ] {
        let scratch = scratch();
        let directory = scratch.path();
        let image = directory.join("fs.img");
        shell(directory, &format!("truncate -s {size} fs.img; mkfs.exfat {options} fs.img"));
        let volume = Volume::open(&image);
        let (files, taken) = volume.fill();
        let found = free(KIND, &image).unwrap_or_else(|why| panic!("{options}: {why}"));
        let said = shell(directory, "dump.exfat fs.img");
        let number = |name: &str| {
            let line = said.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
            line.trim().parse::<u64>().expect("a number")
        };
        let bytes: u64 = found.iter().map(|range| range.end - range.start).sum();
        assert_eq!(bytes, number("Free Clusters:") * number("Cluster size:"), "{options}: {said}");
        let claims = |range: &Range<u64>| {
            found.iter().any(|free| free.start < range.end && range.start < free.end)
        };
        assert!(found.len() as u64 >= files && !taken.iter().any(claims), "{options}: {found:?}");
        scribble(&image, &found);
        let said = shell(directory, "fsck.exfat -n fs.img");
        assert!(said.contains(&format!("clean. directories 2, files {files}")), "{said}");
        doubts(&volume, &image);
        claims_of_free_clusters(&volume, &image, &taken);
    }
}

/// A change of a set of entries.
type Change<'a> = &'a dyn Fn(&mut [u8; 96]);

/// Has the bitmap call each cluster of a file or a directory free in turn: the checker finds the
/// same, and what is free is not known.
fn claims_of_free_clusters(volume: &Volume, image: &Path, taken: &[Range<u64>]) {
    let sound = free(KIND, image);
    for range in taken {
        let cluster = (range.start - volume.heap) / volume.cluster + 2;
        volume.mark(cluster, false);
        let said = free(KIND, image).expect_err("a doubt").to_string();
        assert!(said.contains("calls a cluster of the file at cluster"), "{cluster}: {said}");
        volume.mark(cluster, true);
    }
    let directory = image.parent().expect("a directory");
    let last = (taken.last().expect("a file").start - volume.heap) / volume.cluster + 2;
    volume.mark(last, false);
    let said = shell(directory, "fsck.exfat -n fs.img 2>&1 || true");
    assert!(!said.contains("clean."), "{said}");
    volume.mark(last, true);
    // Directories in themselves, and entries that contradict themselves; each is put right again.
    let entry = volume.place(volume.root) + 96;
    let mut before = [0; 96];
    volume.file.read_exact_at(&mut before, entry).expect("an entry");
    let root = volume.root.to_le_bytes();
    let changes: [(&str, Change<'_>); 8] = [
        ("more clusters than there are", &|set| {
            (set[4], set[33]) = (0x10, 1);
            set[52..56].copy_from_slice(&root[..4]);
            set[56..64].copy_from_slice(&volume.cluster.to_le_bytes());
        }),
        ("the length of a directory", &|set| (set[4], set[56]) = (0x10, 1)),
        ("a file of", &|set| {
            set[33] = 3;
            set[52..56].copy_from_slice(&(volume.clusters + 1).to_le_bytes()[..4]);
            set[56..64].copy_from_slice(&(2 * volume.cluster).to_le_bytes());
        }),
        ("more clusters than there are", &|set| (set[33], set[60], set[61]) = (3, 1, 1)),
        ("leads to", &|set| {
            set[33] = 1;
            set[52..56].fill(0xff);
        }),
        ("is not whole", &|set| set[32] = 0x40),
        ("type 0x86", &|set| set[0] = 0x86),
        ("belongs to none before it", &|set| set[0] = 0xc0),
    ];
    for (wanted, change) in changes {
        let mut set = before;
        change(&mut set);
        seal(&mut set);
        volume.put(entry, &set);
        let said = free(KIND, image).expect_err(wanted).to_string();
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    volume.put(entry + 10, &[1]);
    volume.put(entry, &before[..10]);
    let said = free(KIND, image).expect_err("a doubt").to_string();
    assert!(said.contains("the checksum of a set of entries"), "{said}");
    volume.put(entry, &before);
    assert_eq!(free(KIND, image), sound);
}

/// A file whose chain goes to and fro in the FAT costs a read of each 64 KiB of it.
#[test]
fn the_fat_of_an_exfat_is_read_once() {
    if !here(&["mkfs.exfat", "fsck.exfat"]) {
        return;
    }
    let scratch = scratch();
    let directory = scratch.path();
    let image = directory.join("fs.img");
    shell(directory, "truncate -s 60M fs.img; mkfs.exfat -c 512 fs.img");
    let volume = Volume::open(&image);
    let half = volume.clusters / 2;
    let own: Vec<u64> = (0..2000).map(|n| volume.root + 1 + n / 2 + half * (n % 2)).collect();
    volume.add(volume.place(volume.root) + 96, 0, &own);
    let said = shell(directory, "fsck.exfat -n fs.img");
    assert!(said.contains("clean. directories 1, files 1"), "{said}");
    let (mut reads, fat) = (0, volume.fat..volume.heap);
    let mut read = |at: u64, out: &mut [u8]| {
        reads += u32::from(fat.contains(&at));
        volume.file.read_exact_at(out, at).map_err(|_| Errno::Range)
    };
    let length = fs::metadata(&image).expect("an image").len();
    KIND.format.free(KIND, length, &mut read, &mut |_| {}).expect("it is known").expect("sound");
    assert!((1..=8).contains(&reads), "{reads} reads");
}

/// Has a volume damaged in each place that is looked at, and put right again.
fn doubts(volume: &Volume, image: &Path) {
    let entries = volume.place(volume.root);
    let mut first = [0; 4];
    volume.file.read_exact_at(&mut first, entries + 32 + 20).expect("an entry");
    let bitmap = u64::from(u32::from_le_bytes(first));
    for (at, with, wanted) in [
        (106, 2, "it was not unmounted"),
        (106, 4, "errors were met"),
        (106, 1, "FATs"),
        (11 * volume.sector, 1, "checksum of its boot sectors"),
        (92, 1, "checksum of its boot sectors"),
        (entries + 32, 5, "lacks its allocation bitmap"),
        (entries + 64, 0x81, "two of a kind"),
        (entries + 32 + 26, 0xff, "the length of its allocation bitmap"),
        (volume.fat + volume.root * 4, 0, "a chain of its FAT leads to"),
        (volume.fat + bitmap * 4, 1, "a chain of its FAT leads to"),
        (volume.bitmap, 0, "calls itself or the root directory free"),
    ] {
        let before = volume.byte(at);
        volume.put(at, &[with]);
        // A chain goes on where its last cluster did: what is wrong is its length or its end.
        let said = match free(KIND, image) {
            Err(why) => why.to_string(),
            Ok(_) => panic!("{at}: {wanted}"),
        };
        let is_chain = wanted.contains("chain");
        assert!(said.contains(wanted) || is_chain && said.contains("FAT"), "{at}: {said}");
        volume.put(at, &[before]);
    }
    // Two bytes more than its clusters need, as on cards that are sold.
    let (found, length) = (free(KIND, image), volume.byte(entries + 32 + 24));
    volume.put(entries + 32 + 24, &[length + 2]);
    assert_eq!(free(KIND, image), found);
    assert!(found.is_ok());
    volume.put(entries + 32 + 24, &[length]);
}

#[test]
fn an_exfat_moves_without_what_it_does_not_use() {
    if !here(&["mkfs.exfat", "fsck.exfat"]) {
        return;
    }
    let scratch = scratch();
    let directory = scratch.path();
    let image = directory.join("fs.img");
    shell(directory, "truncate -s 120M fs.img; mkfs.exfat fs.img");
    let (files, taken) = Volume::open(&image).fill();
    let before = fs::read(&image).expect("an image");
    let is_whole = || {
        let said = shell(directory, "fsck.exfat -n fs.img");
        assert!(said.contains(&format!("clean. directories 2, files {files}")), "{said}");
        let after = fs::read(&image).expect("an image");
        let index = |at: u64| usize::try_from(at).expect("it is in memory");
        for range in taken.iter().map(|range| index(range.start)..index(range.end)) {
            assert!(before[range.clone()] == after[range.clone()], "{range:?}");
        }
    };
    let found = embed(directory, KIND);
    moved(directory, MIB, &found);
    is_whole();
    embed(directory, KIND);
    interrupted(directory, 9 * MIB);
    taken_out(directory, 9 * MIB);
    is_whole();
}
