//! `convert` of a disk in a partition of another, as a virtual machine has it: both tables against
//! `partx`, there and back, in place.

use crate::converting::{is_here, ran};
use crate::moving::{done, refused};
use crate::skip::skip;
use crate::{run, scratch, zeroes};
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

const MIB: u64 = 1 << 20;
/// Place of the guest's disk on the host's, in bytes.
const GUEST: std::ops::Range<u64> = 2 * MIB..50 * MIB;

/// A host's GPT with a partition that is the disk of a guest, with a table of `scheme`, and ext4
/// behind it.
fn host(directory: &Path, scheme: &str) {
    for name in ["disk.img", "out.img", "back.img", "guest.img"] {
        let _ = fs::remove_file(directory.join(name));
    }
    zeroes(directory, "disk.img", 100 * MIB);
    done(directory, "part create -s gpt disk.img");
    done(directory, "part add -t linux-data -b 2m -s 48m disk.img");
    done(directory, "part add -t linux-data disk.img");
    done(directory, &format!("part create -s {scheme} disk.img#p1"));
    done(directory, "part add -t linux-data -b 1m -s 20m disk.img#p1");
    done(directory, "part add -t linux-data -s 20m disk.img#p1");
    let first = if scheme == "gpt" { "p1p1" } else { "p1s1" };
    done(directory, &format!("mkfs vfat disk.img#{first}"));
    done(directory, "mkfs ext4 disk.img#p2");
    let mut bytes = fs::read(directory.join("disk.img")).expect("an image");
    let second = usize::try_from(GUEST.start + 22 * MIB).expect("a place");
    for (n, byte) in bytes[second..second + 9000].iter_mut().enumerate() {
        *byte = (n * 7 % 251).to_le_bytes()[0];
    }
    fs::write(directory.join("disk.img"), bytes).expect("an image");
}

/// Starts and lengths of partitions in bytes, as `partx` finds them in sectors of that size. It
/// prints them in units of 512 bytes.
fn partitions(directory: &Path, image: &str, sector: u64) -> Vec<(u64, u64)> {
    let size = sector.to_string();
    let words = ["partx", "-S", &size, "-g", "-o", "START,SECTORS", image];
    let number = |word: &str| word.parse::<u64>().expect("a number") * 512;
    let line = |line: &str| {
        let mut words = line.split_whitespace().map(number);
        words.next().zip(words.next()).expect("two numbers")
    };
    ran(directory, &words).lines().map(line).collect()
}

/// The guest's disk, taken out of that of the host.
fn guest(directory: &Path, image: &str) {
    let mut bytes = vec![0; usize::try_from(GUEST.end - GUEST.start).expect("a size")];
    let mut disk = fs::File::open(directory.join(image)).expect("an image");
    disk.seek(SeekFrom::Start(GUEST.start)).and_then(|_| disk.read_exact(&mut bytes)).expect("it");
    fs::write(directory.join("guest.img"), bytes).expect("an image");
}

#[test]
fn partx_finds_both_tables_in_new_sectors() {
    if !is_here("partx") {
        return skip("partx is not here: apt-get install util-linux");
    }
    let scratch = scratch();
    let directory = scratch.path();
    for scheme in ["gpt", "mbr"] {
        host(directory, scheme);
        let mut before = partitions(directory, "disk.img", 512);
        guest(directory, "disk.img");
        before.extend(partitions(directory, "guest.img", 512));
        assert_eq!(before.len(), 4, "{before:?}");
        let ran = run(directory, "convert --sector-size 4096 -o out.img disk.img");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let note = format!("note: p1: its {} will count sectors of 4096", scheme.to_uppercase());
        assert!(ran.stderr.contains(&note), "{}", ran.stderr);
        let mut after = partitions(directory, "out.img", 4096);
        guest(directory, "out.img");
        after.extend(partitions(directory, "guest.img", 4096));
        assert_eq!(after, before);
        // In place it is the same image, and back again it is the first one.
        let first = fs::read(directory.join("disk.img")).expect("an image");
        done(directory, "convert --sector-size 4096 disk.img");
        assert!(
            fs::read(directory.join("disk.img")).expect("an image")
                == fs::read(directory.join("out.img")).expect("an image")
        );
        done(directory, "convert --sector-size 512 disk.img");
        let back = fs::read(directory.join("disk.img")).expect("an image");
        let place = |at: u64| usize::try_from(at).expect("a place");
        for (start, length) in [(GUEST.start + 21 * MIB, 20 * MIB), (50 * MIB, 40 * MIB)] {
            let part = place(start)..place(start + length);
            assert!(first[part.clone()] == back[part]);
        }
        let mut then = partitions(directory, "disk.img", 512);
        guest(directory, "disk.img");
        then.extend(partitions(directory, "guest.img", 512));
        assert_eq!(then, before);
    }
}

#[test]
fn what_is_in_the_way_within_is_named() {
    let scratch = scratch();
    let directory = scratch.path();
    host(directory, "gpt");
    // Up to the last sector that the old table leaves: 33 are its own.
    done(directory, "part add -t linux-data -b 45m -s 2m disk.img#p1");
    done(directory, "part resize -i 3 -s 6111 disk.img#p1");
    let message = refused(directory, "convert --sector-size 4096 disk.img");
    assert!(message.contains("p1p3: it ends at byte"), "{message}");
    assert!(message.contains("or make the partition around it longer"), "{message}");
}
