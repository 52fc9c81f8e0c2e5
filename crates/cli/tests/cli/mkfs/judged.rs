//! File systems of every kind on partitions, judged by the tools that repair them.

use super::{DISK, KINDS, MEG, here, text, tool};
use crate::{list, run, scratch, zeroes};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

const SIZE: u64 = 400 << 20;
const NEAR: usize = 65536;

/// A disk `disk` with a partition, on the grain, full of old data as far as matters; the
/// partition's name and first byte.
fn partitioned(directory: &Path, scheme: &str, options: &str) -> (&'static str, u64) {
    zeroes(directory, "disk", DISK);
    let name = if scheme == "gpt" { "p1" } else { "s1" };
    run(directory, &format!("part create -s {scheme} {options} disk")).ended(0);
    run(directory, &format!("part add -t linux-data -s 400MiB {options} disk")).ended(0);
    let shown = run(directory, &format!("check {options} --json disk")).json();
    let providers = list(&shown["targets"][0], "providers");
    let start = providers
        .iter()
        .find(|p| p["provider"] == name)
        .and_then(|p| p["start"].as_u64())
        .expect("a partition");
    let file = File::options().write(true).open(directory.join("disk")).expect("the disk");
    let fill = |byte: u8, length: usize, at: u64| {
        file.write_all_at(&vec![byte; length], at).expect("a write")
    };
    fill(0xaa, 4 << 20, start);
    (start..start + SIZE).step_by(8 << 20).for_each(|at| fill(0xaa, NEAR, at));
    fill(0xaa, NEAR, start + SIZE - NEAR as u64);
    fill(0x55, 4096, start - 4096);
    fill(0x55, NEAR, start + SIZE);
    (name, start)
}

/// Bytes of the disk outside the partition.
fn outside(directory: &Path, start: u64) -> Vec<u8> {
    let file = File::open(directory.join("disk")).expect("the disk");
    let read = |at: u64, length: u64| {
        let mut bytes = vec![0; usize::try_from(length).expect("some")];
        file.read_exact_at(&mut bytes, at).expect("a read");
        bytes
    };
    [read(0, start), read(start + SIZE, DISK - start - SIZE)].concat()
}

/// A sparse copy of the partition.
fn copy(directory: &Path, start: u64) -> String {
    zeroes(directory, "part", SIZE);
    let (from, to) = (directory.join("disk"), directory.join("part"));
    let (from, to) = (
        File::open(from).expect("the disk"),
        File::options().write(true).open(&to).expect("a copy"),
    );
    let (mut piece, zero) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    for at in (0..SIZE).step_by(1 << 20) {
        from.read_exact_at(&mut piece, start + at).expect("a read");
        if piece != zero {
            to.write_all_at(&piece, at).expect("a write");
        }
    }
    directory.join("part").display().to_string()
}

fn made_and_judged(kind: &str, checks: &[&[&str]], scheme: &str, options: &str) {
    let scratch = scratch();
    let directory = scratch.path();
    let which = format!("{kind} on {scheme} {options}");
    let (name, start) = partitioned(directory, scheme, options);
    let before = outside(directory, start);
    // mkfs.xfs makes so many groups of a striped set that its least log does not fit into one of so
    // small a volume.
    let own = if kind == "xfs" && options.contains("raid") { "-- -d agcount=4" } else { "" };
    let ran = run(directory, &format!("mkfs {kind} --overwrite {options} disk#{name} {own}"));
    if kind == "exfat" && options.contains("--logical 4096") {
        assert!(ran.refused().contains("losetup --sector-size 4096"), "{}", ran.stderr);
        return;
    }
    if kind == "exfat" && options.contains("raid64kx3") {
        // Its boundary is a power of two, and a row of three chunks is none.
        assert!(
            ran.code == Some(0) && ran.stderr.contains("past a 196608-byte full stripe"),
            "{which}: {}",
            ran.stderr
        );
        return;
    }
    // mkntfs has a warning about clusters of more than 4096 bytes, and it is passed on.
    let doubts: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|line| !line.contains("Windows cannot use compression"))
        .collect();
    assert_eq!((ran.code, doubts), (Some(0), vec![]), "{which}");
    assert!(
        outside(directory, start) == before,
        "{which}: something outside of the partition changed"
    );
    let checked = run(directory, &format!("check {options} disk"));
    assert_eq!(
        (checked.code, checked.stderr.as_str()),
        (Some(0), ""),
        "{which}: {}",
        checked.stdout
    );
    let verdict = run(directory, &format!("check {options} --json disk")).json();
    assert_eq!(verdict["verdict"], "aligned", "{which}: {verdict:#}");
    let (offset, length) = (start.to_string(), SIZE.to_string());
    let disk = directory.join("disk").display().to_string();
    if let Some(probed) =
        tool(&["blkid", "-p", "-O", &offset, "-S", &length, "-o", "value", "-s", "TYPE", &disk])
    {
        assert_eq!(text(&probed).trim(), kind, "{which}");
    }
    let part = copy(directory, start);
    for check in checks {
        let Some(judged) = tool(&[check, [part.as_str()].as_slice()].concat()) else { continue };
        assert!(judged.status.success(), "{which}: {check:?}: {}", text(&judged));
    }
    if options.contains("raid64kx3") {
        knows_the_stripe(kind, &part, &which);
    }
}

/// Asserts that the tools read back chunks of 64 KiB on three disks, in blocks of 4096.
fn knows_the_stripe(kind: &str, part: &str, which: &str) {
    let (words, wanted): (&[&str], &[&str]) = match kind {
        "ext4" => (
            &["dumpe2fs", "-h", part],
            &["RAID stride:              16", "RAID stripe width:        48"],
        ),
        "xfs" => (
            &["xfs_db", "-r", "-f", "-c", "sb 0", "-c", "print unit width", part],
            &["unit = 16", "width = 48"],
        ),
        _ => return,
    };
    let Some(said) = tool(words).map(|output| text(&output)) else { return };
    assert!(wanted.iter().all(|line| said.contains(line)), "{which}: {said}");
}

/// Every kind on partitions of both schemes, for `options`.
fn every_kind(options: &str) {
    for (kind, maker, checks) in KINDS {
        if !here(&[maker]) {
            continue;
        }
        for (scheme, sector) in [("gpt", 512), ("mbr", 4096)] {
            made_and_judged(kind, checks, scheme, &format!("--logical {sector} {options}"));
        }
    }
}

#[test]
fn on_the_usual_unit() {
    every_kind("--physical 4096");
}

#[test]
fn on_a_striped_set() {
    every_kind("--for raid64kx3");
}

#[test]
fn on_units_of_16k() {
    every_kind("--for ssd-16k");
}

#[test]
fn on_a_unit_with_a_phase() {
    every_kind("--physical 16384+12288");
}

#[test]
fn fat_of_every_kind_has_its_clusters_on_the_unit() {
    if !here(&["mkfs.vfat"]) {
        return;
    }
    // A partition at LBA 63 or 2049, which only FAT can make up for.
    for (length, start) in [(8 * MEG, 63), (60 * MEG, 2049), (SIZE, 63)] {
        for options in ["--physical 4096", "--for ssd-16k", "--physical 4096+3584"] {
            let scratch = scratch();
            zeroes(scratch.path(), "disk", DISK);
            run(scratch.path(), &format!("part create -s mbr {options} disk")).ended(0);
            let added = run(
                scratch.path(),
                &format!("part add -t fat32 -b {start}s -s {}MiB {options} disk", length / MEG),
            );
            assert_eq!(added.code, Some(0), "{}", added.stderr);
            if tool(&["mkfs.vfat", "--help"]).is_none() {
                return;
            }
            let made = run(scratch.path(), &format!("mkfs vfat {options} disk#s1"));
            assert_eq!(made.code, Some(0), "{}", made.stderr);
            let document = run(scratch.path(), &format!("check {options} --json disk")).json();
            let providers = list(&document["targets"][0], "providers");
            let data = providers.iter().find(|p| p["provider"] == "s1.data").expect("a data area");
            assert_eq!(data["verdict"], "aligned", "{length} at {start}, {options}: {data:#}");
            fs::rename(scratch.path().join("disk"), scratch.path().join("whole"))
                .expect("a rename");
        }
    }
}
