//! Bad input: mutants of every golden disk, and disks built to be hostile. Nothing may panic, read
//! past its budget, or leave its place; `invariants.rs` says what is checked.
//!
//! `TRUELINE_MUTANTS=N` makes N mutants of every disk instead of the few that fit a short test. A
//! disk that fails is written as `hexdump -C` text under `target/tmp/`: put it into `tests/disks/`
//! with what it was as a comment.

#![allow(
    clippy::disallowed_methods,
    reason = "a test reads its disks from files; the crate under test does not"
)]
#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

pub mod btrfs;
pub mod cases;
pub mod conversions;
pub mod edits;
pub mod free;
pub mod free_ranges;
pub mod hexdump;
pub mod invariants;
pub mod members;
pub mod mutate;
pub mod newfs;
pub mod physical;
pub mod repair;
pub mod sequence;
pub mod texts;
pub mod volumes;

use invariants::{SHORT, Subject, again_holds, graph_holds, parser_holds, parsers};
use mutate::{Random, mutate, resized};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use trueline_geom::base::finding::UNREAD;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::{Grain, Topology};
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::probe::Limits;

/// Mutants of every disk, by default.
const MUTANTS: u64 = 200;
/// Mutants whose tables are edited, of every disk.
const SEQUENCES: u64 = 20;
/// How far into a disk it is cut at every sector.
const CUTS: u64 = 40 << 10;

/// How many mutants to make instead of `usual`.
fn wanted(usual: u64) -> u64 {
    std::env::var("TRUELINE_MUTANTS")
        .map_or(usual, |n| n.parse().expect("TRUELINE_MUTANTS is a number"))
}

/// The golden disks and the built-in ones: those of one entry are tasted together.
fn disks() -> Vec<(String, Vec<Sparse>)> {
    let mut found: Vec<(String, Vec<Sparse>)> =
        cases::all().into_iter().map(|(name, disks)| (name.replace(' ', "-"), disks)).collect();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/disks");
    let mut files: Vec<_> = std::fs::read_dir(golden)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "hex"));
    files.sort();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let disks =
            Sparse::from_hexdumps(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        found.push((
            path.file_stem().unwrap().to_string_lossy().into_owned(),
            disks.into_iter().map(|(_, disk)| disk).collect(),
        ));
    }
    found
}

/// Does something with each of all, with its number, on all processors.
fn on_each<T: Sync>(all: &[T], work: impl Fn(usize, &T) + Sync) {
    let next = AtomicUsize::new(0);
    let worker = || {
        while let Some((nth, one)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|nth| Some((nth, all.get(nth)?)))
        {
            work(nth, one);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            if let Err(panic) = worker.join() {
                resume_unwind(panic);
            }
        }
    });
}

/// Runs `check`; if it panics, keeps the disks and says where.
fn keep_if_it_fails(name: &str, subjects: &[Subject], check: impl FnOnce()) {
    let Err(panic) = catch_unwind(AssertUnwindSafe(check)) else { return };
    let mut kept = Vec::new();
    for (nth, subject) in subjects.iter().enumerate().take(8) {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hostile-{name}-{nth}.hex"));
        let text = format!(
            "# {name}, sector {}, unit {:?}\n{}",
            subject.sector,
            subject.physical,
            hexdump::hexdump(&subject.disk)
        );
        std::fs::write(&path, text).unwrap();
        kept.push(path.display().to_string());
    }
    let kept = format!("{name} fails; kept as {}", kept.join(", "));
    match panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or(panic.downcast_ref::<&str>().copied())
    {
        Some(why) => panic!("{kept}: {why}"),
        None => resume_unwind(panic),
    }
}

fn graph(name: &str, subjects: &[Subject], limits: Limits) {
    keep_if_it_fails(name, subjects, || {
        graph_holds(subjects, limits);
        subjects.iter().for_each(edits::edits_hold);
    });
}

#[test]
fn disks_as_they_are() {
    for (name, disks) in disks() {
        for sector in [512, 4096] {
            let subjects: Vec<Subject> =
                disks.iter().map(|disk| Subject::new(disk.clone(), sector)).collect();
            graph(&name, &subjects, Limits::default());
            for which in 0..parsers() {
                keep_if_it_fails(&name, &subjects[..1], || {
                    parser_holds(which, &subjects[0]);
                });
            }
        }
    }
}

#[test]
fn tasting_is_of_what_it_has_looked_at() {
    for (name, disks) in disks() {
        let subjects: Vec<Subject> =
            disks.iter().map(|disk| Subject::new(disk.clone(), 512)).collect();
        keep_if_it_fails(&name, &subjects, || again_holds(&subjects));
    }
}

/// Texts and maps with a few bytes changed, whose checksums are right.
#[test]
fn volume_groups() {
    let (text, maps) = (volumes::TEXT.as_bytes(), volumes::thin_pool());
    let mut random = Random::new(1);
    for number in 0..wanted(MUTANTS) {
        let (mut text, mut maps) = (text.to_vec(), maps.clone());
        for _ in 0..random.below(4) {
            let at = usize::try_from(random.below(text.len() as u64)).unwrap();
            text[at] = b"0179\"[]{}, aim"[usize::try_from(random.below(14)).unwrap()];
        }
        for _ in 0..random.below(6) {
            // What is not zero is in the first half of a block, or where its values begin.
            let (block, half) = (random.below(4) * 4096, random.below(2) * 2016);
            let at = usize::try_from(block + half + random.below(64)).unwrap();
            maps[at] = [0, 1, 2, 0xff][usize::try_from(random.below(4)).unwrap()];
        }
        let subjects = [Subject::new(volumes::group(&text, &maps), 512)];
        graph(&format!("volumes-{number}"), &subjects, Limits::default());
    }
}

/// Sets of md with a few numbers changed, whose checksums are right; as they are, most are whole.
#[test]
fn members_of_sets() {
    let mut random = Random::new(2);
    let mut made = 0;
    for number in 0..wanted(5 * MUTANTS) {
        let length = members::HEAD + usize::try_from(random.below(4)).unwrap() * members::CHANGE;
        let edges = [0, 1, 2, 0x7f, 0x80, 0xff];
        let data: Vec<u8> = (0..length)
            .map(|at| match random.below(2) {
                0 if at > members::HEAD => random.pick(&edges),
                _ => u8::try_from(random.below(256)).unwrap(),
            })
            .collect();
        let disks = members::members(&data).into_iter();
        let subjects: Vec<Subject> = disks.map(|disk| Subject::new(disk, 512)).collect();
        graph(&format!("members-{number}"), &subjects, Limits::default());
        let disk = |(nth, subject): (usize, &Subject)| {
            let topology = Topology::new(512, subject.disk.length());
            Disk::new(format!("d{nth}"), Box::new(subject.disk.clone()), topology)
        };
        let disks = subjects.iter().enumerate().map(disk).collect();
        let graph = Graph::taste(disks, Limits::default());
        made += u64::from(graph.providers.iter().any(|p| p.is_set));
    }
    assert!(made > wanted(5 * MUTANTS) / 3, "{made} sets were made");
}

/// A group may be called as a file that is hidden; only where a class says so is a name a suffix.
#[test]
fn a_name_may_begin_with_a_dot() {
    let text = volumes::TEXT.replacen("vg {", ".vg {", 1);
    let disk = volumes::group(text.as_bytes(), &volumes::thin_pool());
    let topology = Topology::new(512, disk.length());
    let disk = Disk::new("disk", Box::new(disk), topology);
    let graph = Graph::taste(vec![disk], Limits::default());
    assert!(graph.find(".vg/r5").is_some() && graph.find("disk.vg/r5").is_none());
}

/// Volumes of a pool that Linux starts read only, or not at all.
#[test]
fn pools_that_linux_would_not_write_are_read_only() {
    let kept = |flags: u8, transaction: &str| {
        let text = volumes::TEXT.replace("external_origin = \"base\"", "");
        let text = text.replace("transaction_id = 1 ", transaction);
        let mut maps = volumes::thin_pool();
        maps[4] = flags;
        let disk = volumes::group(text.as_bytes(), &maps);
        let topology = Topology::new(512, disk.length());
        let disk = Disk::new("disk", Box::new(disk), topology);
        let graph = Graph::taste(vec![disk], Limits::default());
        let thin = graph.providers.iter().find(|p| p.name == "vg/one").unwrap();
        thin.route().read_only()
    };
    assert_eq!(kept(0, "transaction_id = 1 "), None);
    assert_eq!(kept(0, ""), None);
    assert_eq!(kept(1, "transaction_id = 1 "), Some("the metadata of its pool need a check"));
    let times = "the metadata of its pool and those of its group are of different times";
    assert_eq!(kept(0, "transaction_id = 2 "), Some(times));
}

#[test]
fn volumes_that_are_not_followed_are_named_and_not_read() {
    let graph = |text: &str| {
        let disk = volumes::group(text.as_bytes(), &volumes::thin_pool());
        let topology = Topology::new(512, disk.length());
        Graph::taste(vec![Disk::new("disk", Box::new(disk), topology)], Limits::default())
    };
    let said = |text: &str, name: &str| {
        let graph = graph(text);
        let id = graph.find(name).unwrap_or_else(|| panic!("{name} is not there"));
        let read = graph.read_at(id, &mut [0; 512], 0);
        let findings = graph.providers[id].findings.iter().filter(|f| *f.rule == UNREAD);
        let words: Vec<&str> = findings.map(|f| f.message.as_str()).collect();
        (words.join("; "), read.is_ok())
    };
    let vdo = volumes::TEXT.replace(
        "logical_volumes {",
        r#"logical_volumes {
 vdo0 { status = ["VISIBLE"] segment1 { start_extent = 0 extent_count = 4 type = "vdo"
  vdo_pool = "vpool" vdo_offset = 0 } }
 vpool { status = ["VISIBLE"] segment1 { start_extent = 0 extent_count = 4 type = "vdo-pool"
  data = "base" header_size = 1024 virtual_extents = 4 } }
"#,
    );
    for (name, words) in [("vg/vdo0", "segment type vdo:"), ("vg/vpool", "segment type vdo-pool:")]
    {
        let (found, read) = said(&vdo, name);
        assert!(found.contains(words) && !read, "{name}: {found}");
    }
    // The store of an old snapshot, and a thin snapshot, on their way into their origins.
    assert_eq!(said(volumes::TEXT, "vg/base"), (String::new(), true));
    assert_eq!(said(volumes::TEXT, "vg/one"), (String::new(), true));
    let old = volumes::TEXT.replace("cow_store", "merging_store");
    let thin = volumes::TEXT.replace(
        "logical_volumes {",
        r#"logical_volumes {
 two { status = ["VISIBLE"] segment1 { start_extent = 0 extent_count = 9 type = "thin"
  thin_pool = "pool" device_id = 5 merge = "one" } }
"#,
    );
    for (text, name) in [(old, "vg/base"), (thin, "vg/one")] {
        let (found, read) = said(&text, name);
        assert!(found.contains("is being merged into it") && !read, "{name}: {found}");
    }
}

#[test]
fn disks_cut_at_every_sector() {
    for (name, disks) in disks() {
        for disk in disks.iter().take(1) {
            for length in (0..=CUTS.min(disk.length())).step_by(512) {
                graph(
                    &format!("{name}-cut-{length}"),
                    &[Subject::new(resized(disk, length), 512)],
                    SHORT,
                );
            }
        }
    }
}

#[test]
fn small_limits_are_kept() {
    for (name, disks) in disks() {
        let subjects: Vec<Subject> =
            disks.iter().take(3).map(|disk| Subject::new(disk.clone(), 512)).collect();
        for limits in [
            Limits { bytes: 0, maps: 8192, providers: 8, depth: 16 },
            Limits { bytes: 8192, maps: 8192, providers: 8, depth: 1 },
            Limits { bytes: 1 << 20, maps: 8192, providers: 3, depth: 0 },
        ] {
            graph(&name, &subjects, limits);
        }
    }
}

#[test]
fn mutants() {
    let count = wanted(MUTANTS);
    let disks = disks();
    on_each(&disks, |nth, (name, originals)| {
        let mut random = Random::new(nth as u64);
        for number in 0..count {
            let sector = if random.below(8) == 0 { 4096 } else { 512 };
            let mut subjects: Vec<Subject> = originals
                .iter()
                .take(8)
                .map(|disk| Subject::new(mutate(disk, sector, &mut random), sector))
                .collect();
            match random.below(8) {
                // A unit that no drive has, but a bridge may claim.
                0 => {
                    let size = random.draw() >> random.below(64);
                    subjects[0].physical = Grain::new(size, random.draw());
                }
                // Together with what it was made from: every member of a set twice.
                1 => subjects.push(Subject::new(originals[0].clone(), sector)),
                // Together with another disk.
                2 => {
                    let other =
                        &disks[usize::try_from(random.below(disks.len() as u64)).unwrap()].1[0];
                    subjects.push(Subject::new(mutate(other, sector, &mut random), sector));
                }
                _ => {}
            }
            graph(&format!("{name}-mutant-{number}"), &subjects, SHORT);
        }
    });
}

#[test]
fn edits_of_mutants() {
    let disks = disks();
    for (nth, (name, originals)) in disks.iter().enumerate() {
        let mut random = Random::new(nth as u64 + 1000);
        for number in 0..wanted(SEQUENCES) {
            let sector = if random.below(8) == 0 { 4096 } else { 512 };
            let disk = if number == 0 {
                originals[0].clone()
            } else {
                mutate(&originals[0], sector, &mut random)
            };
            let subject = Subject::new(disk, sector);
            keep_if_it_fails(
                &format!("{name}-edits-{number}"),
                std::slice::from_ref(&subject),
                || {
                    sequence::sequences_hold(&subject, &mut |n| random.below(n));
                },
            );
        }
    }
}

#[test]
fn texts_of_every_kind() {
    let mut random = Random::new(7);
    for number in 0..wanted(60 * MUTANTS) {
        let mut text: Vec<char> = random.pick(&texts::TEXTS).chars().collect();
        for _ in 0..random.below(4) {
            let places: Vec<usize> = (0..=text.len()).collect();
            let (at, from) = (random.pick(&places), random.pick(&places));
            match random.below(5) {
                0 => text.insert(
                    at,
                    random.pick(&[
                        '\n', ' ', ',', ';', ':', '=', '"', '+', '-', '[', ']', '0', '9',
                        '\u{202e}', '\u{20ac}',
                    ]),
                ),
                1 if at < text.len() => drop(text.remove(at)),
                2 => text.truncate(at),
                3 => drop(text.splice(at..at, "18446744073709551615".chars())),
                _ => {
                    let piece: Vec<char> = text[from.min(at)..from.max(at)].to_vec();
                    text.splice(at..at, piece);
                }
            }
        }
        let text: String = text.into_iter().collect();
        if catch_unwind(|| texts::texts_hold(&text)).is_err() {
            panic!("mutant {number}: {text:?}");
        }
    }
}

#[test]
fn a_disk_survives_its_text() {
    for (name, disks) in disks() {
        for disk in disks.iter().take(2).filter(|disk| disk.length() < u64::MAX) {
            let text = hexdump::hexdump(disk);
            let back = Sparse::from_hexdump(&text).unwrap();
            assert_eq!(back.length(), disk.length(), "{name}");
            assert_eq!(hexdump::hexdump(&back), text, "{name}");
        }
    }
}
