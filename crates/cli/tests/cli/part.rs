//! `part`: what was published comes out again, and what it shows is what is there.

mod busy;
mod edit;
mod held;
mod image;
mod over;
mod power;

use crate::{run, scratch, zeroes};
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
    let said = |verb: &String| run(here, &format!("part {verb} --gpart-rules --physical 4096 {release}")).ended(0).stdout.clone();
    verbs.iter().map(said).collect()
}

#[test]
fn seed_004_comes_out_as_published() {
    let scratch = scratch();
    let both = ["ada1", "ada2"].map(|disk| seed_004(scratch.path(), disk, "--compat 9"));
    assert_eq!(both.concat(), include_str!("../out/gpart9.txt"));
    assert_eq!(seed_004(scratch.path(), "ada1", ""), include_str!("../out/gpart.txt"));
}

#[test]
fn a_picture_shows_what_misses() {
    let scratch = scratch();
    let here = scratch.path();
    zeroes(here, "da0", 1 << 30);
    run(here, "part create -s gpt da0").ended(0);
    let added = run(here, "part add -t freebsd-ufs -b 2049 -s 100m da0");
    assert!(added.stderr.contains("512 bytes past a 4096-byte physical unit (assumed)"), "{}", added.stderr);
    let picture = run(here, "part show --picture da0").ended(0).stdout.clone();
    assert!(picture.contains("\u{2717} p1 begins at byte 1049088 (LBA 2049), 512 bytes past a boundary of 4 KiB\n"), "{picture}");
    let twice = run(here, "part show --picture da0 da0").ended(0).stdout.clone();
    assert_eq!(twice, format!("{picture}\n{picture}"));
    let json = run(here, "part show --json da0").json();
    let p1 = &json["tables"][0]["entries"][0];
    assert_eq!((&p1["aligned"], &p1["misses"][0]["remainder"]), (&false.into(), &512.into()));
}
