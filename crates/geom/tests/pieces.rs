//! Sizes that a file system writes, judged against every unit, and compared with a model that looks
//! at each byte range.
//!
//! The model knows no closed form: it lays the writes of a whole period out and looks which units
//! each of them fills.

#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "in a test a panic is the answer, and counts are small"
)]

use trueline_geom::audit::{Audit, Verdict, audit};
use trueline_geom::base::finding::{Finding, Rule, SMALL, START, Severity};
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::{Fact, Grain, Source, Topology, Trust, Why};
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::probe::Limits;

const SECTORS: u32 = 200_000;
const PAGE: u64 = 4096;

/// A disk with one partition from `start`, in sectors, that holds `runs`, on units of `unit` bytes
/// from `phase`.
fn judge(start: u32, runs: &[(u64, Vec<u8>)], unit: u64, phase: u64) -> Audit {
    let mut store = Sparse::new(u64::from(SECTORS) * 512);
    store.put(440, &[1, 2, 3, 4]);
    store.put(510, &[0x55, 0xaa]);
    store.put(
        446,
        &[&[0, 0, 0, 0, 0xa5, 0, 0, 0][..], &start.to_le_bytes(), &(SECTORS - start).to_le_bytes()]
            .concat(),
    );
    for (at, bytes) in runs {
        store.put(u64::from(start) * 512 + at, bytes);
    }
    let grain = Grain::new(unit, phase).unwrap();
    let fact = Fact { grain, why: Why::Physical, source: Source::User, trust: Trust::Trusted };
    let topology = Topology::new(512, store.length()).with(fact);
    audit(&Graph::taste(vec![Disk::new("", Box::new(store), topology)], Limits::default()))
}

/// The superblock of a UFS2.
fn ufs(block: u64, fragment: u64) -> Vec<(u64, Vec<u8>)> {
    let mut fs = vec![0; 1376];
    let fields = [(48, block), (52, fragment), (56, block / fragment), (1372, 0x1954_0119)];
    for (at, value) in fields {
        fs[at..at + 4].copy_from_slice(&u32::try_from(value).unwrap().to_le_bytes());
    }
    fs[1000..1008].copy_from_slice(&65536u64.to_le_bytes());
    vec![(65536, fs)]
}

/// The superblock of an ext4, with clusters if they are larger than its blocks.
fn ext4(block: u64, cluster: u64) -> Vec<(u64, Vec<u8>)> {
    let mut sb = vec![0; 1024];
    let log = |size: u64| size.trailing_zeros() - 10;
    let bigalloc = if cluster > block { 0x200 } else { 0 };
    for (at, value) in
        [(4, 1024), (24, log(block)), (28, log(cluster)), (76, 1), (96, 0x40), (100, bigalloc)]
    {
        sb[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    sb[56..58].copy_from_slice(&[0x53, 0xef]);
    vec![(1024, sb)]
}

/// One write, on a medium whose units are all the byte ranges between `boundaries`.
struct Write {
    touched: u64,
    partial: u64,
}

/// The units that a write of `from..to` touches; addresses count from a boundary.
fn write(from: u64, to: u64, unit: u64) -> Write {
    let units = from / unit..(to - 1) / unit + 1;
    let partial = units.clone().filter(|u| u * unit < from || (u + 1) * unit > to).count() as u64;
    Write { touched: units.end - units.start, partial }
}

/// The writes of `size` at its multiples from `past` a boundary on, until everything repeats.
fn writes(size: u64, unit: u64, past: u64) -> Vec<Write> {
    (0..unit).map(|k| write(past + k * size, past + (k + 1) * size, unit)).take(1024).collect()
}

fn operations(writes: &[Write]) -> f64 {
    writes.iter().map(|w| w.touched + w.partial).sum::<u64>() as f64 / writes.len() as f64
}

/// The cost of writes of `size`, relative to the same on the grain.
fn factor(size: u64, unit: u64, past: u64) -> f64 {
    operations(&writes(size, unit, past)) / operations(&writes(size, unit, 0))
}

/// The cost of pieces of `size` in their place, relative to as many whole units; `None` where they
/// fill what they touch.
fn in_place(size: u64, unit: u64) -> Option<f64> {
    let all = writes(size, unit, 0);
    all.iter().any(|w| w.partial > 0).then(|| operations(&all) / size.div_ceil(unit) as f64)
}

fn found<'a>(audit: &'a Audit, rule: &Rule) -> Vec<&'a Finding> {
    audit.findings.iter().filter(|(id, f)| *id == 1 && f.rule == rule).map(|(_, f)| f).collect()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

/// Compares what the audit says of a file system with the model: `block`, and the smaller piece of
/// data it writes too.
fn compare(audit: &Audit, block: u64, fragment: Option<u64>, unit: u64, past: u64, place: &str) {
    let small = |size: u64| in_place(size, unit).map(|factor| (size, factor));
    let expected: Vec<(u64, f64)> =
        [Some(block), fragment].into_iter().flatten().filter_map(small).collect();
    let smalls = found(audit, &SMALL);
    assert_eq!(smalls.len(), expected.len(), "{place}: {smalls:?}");
    for (size, factor) in &expected {
        let finding =
            smalls.iter().find(|f| f.message.contains(&format!(" of {size} bytes on a "))).unwrap();
        assert!(close(finding.cost.unwrap().rmw_factor, *factor), "{place}: {finding:?}");
        let severity = if *size < PAGE { Severity::Error } else { Severity::Note };
        assert_eq!((finding.severity, finding.unit), (severity, unit), "{place}");
    }
    let starts = found(audit, &START);
    assert_eq!(starts.len(), usize::from(past != 0), "{place}: {starts:?}");
    if let [start] = starts[..] {
        assert!(
            close(start.cost.unwrap().rmw_factor, factor(block, unit, past)),
            "{place}: {start:?}"
        );
        let worst = fragment
            .into_iter()
            .chain([block])
            .map(|size| factor(size, unit, past))
            .fold(0.0, f64::max);
        assert_eq!(
            start.severity,
            if worst >= 1.5 { Severity::Error } else { Severity::Warning },
            "{place}: {start:?}"
        );
        assert_eq!(start.remainder, past, "{place}");
    }
    let misaligned = past != 0 || expected.iter().any(|(size, _)| *size < PAGE);
    assert_eq!(
        audit.verdicts[1],
        if misaligned { Verdict::Misaligned } else { Verdict::Aligned },
        "{place}"
    );
}

const UNITS: [u64; 5] = [4096, 8192, 16384, 32768, 65536];
const STARTS: [u32; 5] = [34, 63, 64, 2048, 2056];

/// Bytes past a boundary at which a partition from `start` begins.
fn past(start: u32, unit: u64, phase: u64) -> u64 {
    (u64::from(start) * 512 + unit - phase % unit) % unit
}

fn grid(mut each: impl FnMut(u64, u64, u32)) {
    for unit in UNITS {
        for phase in [0, 3584, unit / 2] {
            for start in STARTS {
                each(unit, phase, start);
            }
        }
    }
}

#[test]
fn blocks_and_fragments_are_each_compared_with_the_unit() {
    for (block, parts) in
        [(4096, 8), (8192, 1), (8192, 8), (16384, 4), (16384, 8), (32768, 8), (65536, 8)]
    {
        let fragment = block / parts;
        let disk = ufs(block, fragment);
        grid(|unit, phase, start| {
            let (audit, past) = (judge(start, &disk, unit, phase), past(start, unit, phase));
            let place = format!("ufs {block}/{fragment} at {start} on {unit}+{phase}");
            compare(&audit, block, (parts > 1).then_some(fragment), unit, past, &place);
            // The end of a file is any run of fragments within a block. Nothing is found exactly if
            // all of them fill what they touch.
            let runs = (1..=parts).flat_map(|long| {
                (0..=parts - long).map(move |first| (first * fragment, (first + long) * fragment))
            });
            let whole = (0..unit).take(64).all(|k| {
                runs.clone().all(|(a, b)| {
                    write(past + k * block + a, past + k * block + b, unit).partial == 0
                })
            });
            let silent = found(&audit, &SMALL).is_empty() && found(&audit, &START).is_empty();
            assert_eq!(whole, silent, "{place}");
        });
    }
}

/// Blocks are what is written; a cluster is room for them.
#[test]
fn clusters_are_no_unit_of_io() {
    for (block, cluster) in [
        (1024, 1024),
        (1024, 16384),
        (2048, 32768),
        (4096, 4096),
        (4096, 16384),
        (4096, 65536),
        (65536, 65536),
    ] {
        let disk = ext4(block, cluster);
        grid(|unit, phase, start| {
            let (audit, past) = (judge(start, &disk, unit, phase), past(start, unit, phase));
            compare(
                &audit,
                block,
                None,
                unit,
                past,
                &format!("ext4 {block}/{cluster} at {start} on {unit}+{phase}"),
            );
        });
    }
    let dear = judge(63, &ext4(4096, 65536), 4096, 0);
    assert!(close(found(&dear, &START)[0].cost.unwrap().rmw_factor, 4.0));
}

/// UFS with 2 KiB fragments: as wrong on a unit larger than its blocks as on one of their size.
#[test]
fn a_fragment_is_not_forgotten_where_the_block_is_too_small_as_well() {
    for unit in [4096, 16384, 32768, 65536] {
        assert_eq!(
            judge(2048, &ufs(16384, 2048), unit, 0).verdicts[1],
            Verdict::Misaligned,
            "{unit}"
        );
    }
    assert_eq!(judge(2048, &ufs(32768, 4096), 65536, 0).verdicts[1], Verdict::Aligned);
}
