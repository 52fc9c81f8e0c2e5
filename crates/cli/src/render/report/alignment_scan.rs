//! `--compat virt-alignment-scan`: the output of that program of guestfs-tools, and its exit
//! status.
//!
//! A line has a partition, its first byte, the largest power of two that divides it, and a word
//! about that. The disks of all targets are those of one guest: `/dev/sda`, `/dev/sdb`, ... Its
//! partitions are those of the tables on the disks, as the guest sees them.
//!
//! # Sources
//! virt-alignment-scan(1) of guestfs-tools 1.48: output, exit status; GNU Parted 3.5, which it asks
//! for partitions.

use crate::report::{Provider, Report, Target};
use std::io;
use trueline_geom::base::topology::largest_grain;
use trueline_geom::registry;

/// Least alignment in bytes that is no fault: clusters of file systems.
const LEAST: u64 = 4096;
/// Least alignment in bytes that every storage is content with.
const GOOD: u64 = 65536;
/// File systems that are partition 1 of a disk without a table, by blkid's names: those of parted's
/// `loop` label.
const PARTED: [&str; 16] = [
    "btrfs", "ext2", "ext3", "ext4", "f2fs", "hfs", "hfsplus", "jfs", "nilfs2", "ntfs", "reiserfs",
    "swap", "udf", "ufs", "vfat", "xfs",
];
/// Exit status of a scan that could not be made.
pub(crate) const FAILED: u8 = 1;

/// A partition of a guest.
struct Partition {
    /// Name of its disk and its number: `sda1`.
    name: String,
    /// First byte on the disk.
    start: u64,
}

/// Writes the lines of all partitions.
pub(crate) fn write(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    for Partition { name, start } in partitions(report) {
        let (alignment, word) = match largest_grain(start) {
            None => ("- ".to_owned(), "ok"),
            Some(grain) => {
                let shown = if grain < 1024 {
                    format!("{grain:12}    ")
                } else {
                    format!("{:12}K   ", grain / 1024)
                };
                (shown, word(grain))
            }
        };
        writeln!(out, "/dev/{name} {start:12} {alignment}{word}")?;
    }
    Ok(())
}

fn word(grain: u64) -> &'static str {
    match grain {
        ..LEAST => "bad (alignment < 4K)",
        LEAST..GOOD => "bad (alignment < 64K)",
        GOOD.. => "ok",
    }
}

/// The exit status, by the worst alignment.
pub(crate) fn status(report: &Report) -> u8 {
    let worst = partitions(report).iter().filter_map(|p| largest_grain(p.start)).min();
    match worst.unwrap_or(GOOD) {
        ..LEAST => 3,
        LEAST..GOOD => 2,
        GOOD.. => 0,
    }
}

/// The partitions of all disks, in the order of their places.
fn partitions(report: &Report) -> Vec<Partition> {
    let disks = report.targets.iter().flat_map(|target| {
        let whole = target.providers.iter().filter(|p| p.parent.is_none() && p.members.is_empty());
        whole.map(move |file| (target, guest_disk(target, file)))
    });
    let mut all = Vec::new();
    for (nth, (target, disk)) in disks.enumerate() {
        let letters = letters(nth);
        let scheme = disk.table.as_ref().map(|table| table.scheme);
        if scheme.is_none() && disk.sign.as_deref().is_some_and(|sign| PARTED.contains(&sign)) {
            all.push(Partition { name: format!("sd{letters}1"), start: 0 });
            continue;
        }
        let mut parts: Vec<&Provider> =
            children(target, disk).filter(|p| Some(p.class) == scheme).collect();
        parts.sort_by_key(|p| p.base);
        all.extend(parts.iter().map(|p| Partition {
            name: format!("sd{letters}{}", number(&p.provider)),
            start: if p.root == disk.root { p.base - disk.base } else { p.base },
        }));
    }
    all
}

/// The disk that a guest sees: what is in a container, through all of them, or the file itself.
fn guest_disk<'a>(target: &'a Target, file: &'a Provider) -> &'a Provider {
    let mut disk = file;
    for _ in 0..target.providers.len() {
        let holds = |p: &&Provider| {
            registry::containers().any(|c| c == p.class && disk.sign.as_deref() == Some(c))
        };
        match children(target, disk).find(holds) {
            Some(contents) => disk = contents,
            None => break,
        }
    }
    disk
}

fn children<'a>(target: &'a Target, p: &'a Provider) -> impl Iterator<Item = &'a Provider> {
    target.providers.iter().filter(|child| child.parent.as_deref() == Some(&p.provider))
}

/// Number of a partition by its name: `s5` is 5, partition `b` of a label 2.
fn number(name: &str) -> u64 {
    let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let letter = || name.bytes().last().map_or(0, |b| u64::from(b.saturating_sub(b'a')) + 1);
    name[digits..].parse().unwrap_or_else(|_| letter())
}

/// Letters of disk number `nth`, from 0, as Linux has them: `a` to `z`, then `aa`.
fn letters(mut nth: usize) -> String {
    let mut letters = Vec::new();
    loop {
        letters.extend(('a'..='z').nth(nth % 26));
        match nth / 26 {
            0 => return letters.into_iter().rev().collect(),
            more => nth = more - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_and_partitions_are_named_as_in_a_guest() {
        assert_eq!([0, 25, 26, 701, 702].map(letters), ["a", "z", "aa", "zz", "aaa"]);
        assert_eq!(["s1", "p12", "ada1s4", "a", "ada0b", ""].map(number), [1, 12, 4, 1, 2, 0]);
    }

    #[test]
    fn words_are_those_of_the_limits() {
        assert_eq!(
            [512, 2048, 4096, 32768, 65536].map(word),
            [
                "bad (alignment < 4K)",
                "bad (alignment < 4K)",
                "bad (alignment < 64K)",
                "bad (alignment < 64K)",
                "ok"
            ]
        );
    }
}
