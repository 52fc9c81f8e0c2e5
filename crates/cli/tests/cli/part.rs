//! `part`: what was published comes out again, and what it shows is what is there.

mod busy;
mod edit;
mod grain;
mod held;
mod image;
mod over;
mod power;

use crate::{golden, run, scratch, zeroes};
use std::path::Path;

/// The commands of seed 004 on one disk under gpart's rules, and everything they print.
fn seed_004(here: &Path, disk: &str, release: &str) -> String {
    zeroes(here, disk, 488_397_168 * 512);
    let s1 = format!("{disk}#s1");
    let verbs = [
        format!("create -s GPT {disk}"),
        format!("show {disk}"),
        format!("add -t freebsd -a 574 {disk}"),
        format!("show {disk}"),
        format!("create -s BSD {s1}"),
        format!("show {s1}"),
        format!("add -t freebsd-ufs -s 90g {s1}"),
        format!("show {s1}"),
        format!("delete -i 1 {s1}"),
        format!("destroy {s1}"),
        format!("delete -i 1 {disk}"),
        format!("destroy {disk}"),
        format!("create -s GPT {disk}"),
        format!("add -t freebsd -a 4k {disk}"),
        format!("show {disk}"),
        format!("create -s BSD {s1}"),
        format!("add -t freebsd-ufs -s 90g -a 4k {s1}"),
        format!("show {s1}"),
    ];
    let said = |verb: &String| {
        run(here, &format!("part {verb} --gpart-rules --physical 4096 {release}"))
            .ended(0)
            .stdout
            .clone()
    };
    verbs.iter().map(said).collect()
}

#[test]
fn seed_004_comes_out_as_published() {
    let scratch = scratch();
    let both = ["ada1", "ada2"].map(|disk| seed_004(scratch.path(), disk, "--compat 9"));
    assert_eq!(both.concat(), include_str!("../out/gpart9.txt"));
    assert_eq!(seed_004(scratch.path(), "ada1", ""), include_str!("../out/gpart.txt"));
}

/// Seed 003: two disks striped, and the file system where fdisk and disklabel put it, where its
/// author put it, and where we do.
#[test]
fn seed_003_comes_out_as_published_and_aligned_by_default() {
    let scratch = scratch();
    let here = scratch.path();
    ["ada1", "ada2"].iter().for_each(|disk| zeroes(here, disk, 625_142_448 * 512));
    run(here, "stripe label -s 16384 data ada1 ada2").ended(0);
    let (set, slice) = ("ada1,ada2#stripe/data", "ada1,ada2#stripe/datas1");
    let verb = |verb: &str| run(here, &format!("part {verb}"));
    verb(&format!("create -s mbr {set}")).ended(0);
    // The track and the cylinders are fdisk -I's; bytes 63 * 512 past the first chunk, which is
    // said.
    let added = verb(&format!("add -t freebsd -b 63 -s 1250274627 {set}"));
    assert!(
        added.stderr.starts_with(
            "trueline: warning: ada1,ada2#stripe/datas1 starts at byte 32256 (LBA 63), "
        ),
        "{}",
        added.stderr
    );
    verb(&format!("create -s bsd {slice}")).ended(0);
    let diskinfo = || {
        let info = run(here, &format!("info --json {slice}a")).json();
        ["length", "stripe_size", "stripe_offset"].map(|key| info[key].as_u64())
    };
    let check = || run(here, "check ada1,ada2").code;
    assert_eq!(verb(&format!("add -t freebsd-ufs -b 16 -s 1250274611 {slice}")).code, Some(0));
    assert_eq!(
        (diskinfo(), check()),
        ([640_140_600_832, 16384, 7680].map(Some), Some(1)),
        "the default partitioning of 2009"
    );
    verb(&format!("delete -i 1 {slice}")).ended(0);
    verb(&format!("add -t freebsd-ufs -b 33 -s 1250274578 {slice}")).ended(0);
    assert_eq!(
        (diskinfo(), check()),
        ([640_140_583_936, 16384, 0].map(Some), Some(0)),
        "aligned by hand"
    );
    // By gpart's rules the label finds the stripe, whatever the slice does.
    verb(&format!("delete -i 1 {slice}")).ended(0);
    verb(&format!("add --gpart-rules -t freebsd-ufs {slice}")).ended(0);
    assert_eq!((diskinfo()[2], check()), (Some(0), Some(0)), "gpart's rules");
    // And by ours nothing has to be said, in either table.
    verb(&format!("destroy -F {slice}")).ended(0);
    verb(&format!("delete -i 1 {set}")).ended(0);
    verb(&format!("add -t freebsd {set}")).ended(0);
    verb(&format!("create -s bsd {slice}")).ended(0);
    verb(&format!("add -t freebsd-ufs {slice}")).ended(0);
    assert_eq!((diskinfo()[2], check()), (Some(0), Some(0)), "ours");
    let found = run(here, "check --json ada1,ada2").json();
    let starts: Vec<_> = found["targets"][0]["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|f| &f["rule"])
        .collect();
    assert!(starts.is_empty(), "{starts:?}");
}

#[test]
fn a_picture_shows_what_misses() {
    let scratch = scratch();
    let here = scratch.path();
    zeroes(here, "da0", 1 << 30);
    run(here, "part create -s gpt da0").ended(0);
    let added = run(here, "part add -t freebsd-ufs -b 2049 -s 100m da0");
    assert!(
        added.stderr.contains("512 bytes past a 4096-byte physical unit (assumed)"),
        "{}",
        added.stderr
    );
    let picture = run(here, "part show --picture da0").ended(0).stdout.clone();
    assert!(
        picture.contains(
            "\u{2717} p1 begins at byte 1049088 (LBA 2049), 512 bytes past a boundary of 4 KiB\n"
        ),
        "{picture}"
    );
    let twice = run(here, "part show --picture da0 da0").ended(0).stdout.clone();
    assert_eq!(twice, format!("{picture}\n{picture}"));
    let json = run(here, "part show --json da0").json();
    let p1 = &json["tables"][0]["entries"][0];
    assert_eq!((&p1["aligned"], &p1["misses"][0]["remainder"]), (&false.into(), &512.into()));
}

/// Tables that are never written are shown as the others are, and say so; edits refuse.
#[test]
fn tables_that_are_only_read_are_shown_and_say_so() {
    for (disk, name) in [
        ("sgi-parted", "sgi"),
        ("rdb-parted", "rdb"),
        ("apm-parted", "apm"),
        ("vtoc8-parted", "vtoc8"),
    ] {
        let scratch = golden(disk);
        let here = scratch.path();
        let shown = run(here, "part show disk").ended(0).stdout.clone();
        let head = shown.lines().next().unwrap_or_default();
        assert!(head.starts_with("=>") && head.ends_with(" [READ ONLY]"), "{shown}");
        assert!(head.contains(&format!("  {name}  ")), "{shown}");
        let json = run(here, "part show --json disk").json();
        let table = &json["tables"][0];
        assert_eq!((&table["read_only"], &table["scheme"]), (&true.into(), &name.into()));
        let listed = table["entries"].as_array().map_or(0, Vec::len);
        let checked = run(here, "check --json disk").json();
        let providers = checked["targets"][0]["providers"].as_array().map_or(0, Vec::len);
        assert!(listed > 1 && listed < providers, "{listed} of {providers}: {shown}");
        run(here, "part show --picture disk").ended(0);
        let refused = run(here, "part add -t linux-data disk");
        assert!(refused.refused().contains("tables are only read, never written"));
    }
}
