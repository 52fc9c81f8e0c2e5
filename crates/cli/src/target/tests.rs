//! Tests of parsing targets.

use super::*;
use crate::disk_options::DiskOptions;
use std::path::PathBuf;
use std::{env, fs, process};

/// A new directory of a test, which removes it.
fn directory(test: &str) -> PathBuf {
    let path = env::temp_dir().join(format!("trueline-{test}-{}", process::id()));
    fs::create_dir_all(&path).unwrap();
    path
}

/// The disks and the provider of a target, as texts.
fn parts(typed: &str) -> (Vec<String>, Option<String>) {
    let target = Target::parse(typed);
    let disks = target.sources().iter().map(|source| source.typed().to_owned()).collect();
    (disks, target.provider().map(str::to_owned))
}

#[test]
fn marks_divide_a_target_unless_a_file_has_them_in_its_name() {
    let dir = directory("marks");
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let (comma, hash) = (path("a,b.img"), path("c#d.img"));
    fs::write(&comma, [0; 512]).unwrap();
    fs::write(&hash, [0; 512]).unwrap();
    let found = parts(&format!("{comma},{hash}#s1"));
    assert_eq!(found, (vec![comma, hash], Some("s1".into())));
    let one = |text: &str| text.to_owned();
    assert_eq!(parts("no,none#p1"), (vec![one("no"), one("none")], Some("p1".into())));
    assert_eq!(parts("zero:1m,md:2m"), (vec![one("zero:1m"), one("md:2m")], None));
    assert_eq!(parts("drive:md@1g=#s1"), (vec![one("drive:md@1g=")], Some("s1".into())));
    assert_eq!(parts(""), (vec![String::new()], None));
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_target_means_what_it_meant_when_it_was_typed() {
    let dir = directory("moment");
    let disk = dir.join("a.img");
    fs::write(&disk, vec![0; 1 << 20]).unwrap();
    let disk = disk.to_str().unwrap();
    let (on, kind) = (Target::parse(&format!("{disk}#s1")), Target::parse("zero:1m"));
    let overrides = DiskOverrides::new(&DiskOptions::default()).unwrap();
    // A file appears that has the name of the whole text.
    fs::write(format!("{disk}#s1"), vec![0; 2 << 20]).unwrap();
    assert_eq!(Target::parse(on.typed()).provider(), None, "parsed now, it is that file");
    assert_eq!((on.provider(), on.paths()), (Some("s1"), vec![Path::new(disk)]));
    let graph = open::open(&on, &overrides).unwrap();
    assert_eq!(graph.providers[0].topology.length, 1 << 20);
    assert_eq!(on.known_disks().as_deref(), Some(disk));
    assert_eq!(on.to_string(), format!("{disk}#s1"));
    assert!(kind.sources()[0].is_made_up() && kind.paths().is_empty());
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_title_names_no_disk() {
    let title = Target::title("/dev/null");
    assert_eq!((title.known_disks(), title.paths()), (None, Vec::new()));
    assert!(!title.is_simulated() && !title.is_remote() && title.only_path().is_none());
}
