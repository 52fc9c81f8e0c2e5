//! What the audit makes of disks that no tool here lays out.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

use trueline_geom::audit::{Audit, Verdict, audit, profile};
use trueline_geom::base::finding::{DATA, Fix, START, STRIPE, Severity};
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::{Fact, Topology};
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::probe::Limits;

const SECTORS: u32 = 200_000;

/// A disk of 4096-byte units whose MBR has these entries (type, start, sectors) and that has
/// `bytes` at these sectors.
fn judge(entries: &[(u8, u32, u32)], runs: &[(u32, &[u8])]) -> (Graph, Audit) {
    judge_on(profile::assumed(), entries, runs)
}

/// The same on a disk of these boundaries.
fn judge_on(facts: Vec<Fact>, entries: &[(u8, u32, u32)], runs: &[(u32, &[u8])]) -> (Graph, Audit) {
    let mut store = Sparse::new(u64::from(SECTORS) * 512);
    store.put(440, &[1, 2, 3, 4]);
    store.put(510, &[0x55, 0xaa]);
    for (at, (kind, start, size)) in (446..).step_by(16).zip(entries) {
        store.put(
            at,
            &[&[0, 0, 0, 0, *kind, 0, 0, 0][..], &start.to_le_bytes(), &size.to_le_bytes()]
                .concat(),
        );
    }
    for (sector, bytes) in runs {
        store.put(u64::from(*sector) * 512, bytes);
    }
    let mut topology = Topology::new(512, store.length());
    topology.facts = facts;
    let graph = Graph::taste(vec![Disk::new("", Box::new(store), topology)], Limits::default());
    let audit = audit(&graph);
    (graph, audit)
}

/// A FAT16 volume whose first cluster is at its sector 289, in clusters of that many sectors.
fn fat16(cluster: u8) -> Vec<u8> {
    let mut boot = vec![0; 512];
    boot[..3].copy_from_slice(&[0xeb, 0x3c, 0x90]);
    boot[11..25].copy_from_slice(&[0, 2, cluster, 1, 0, 2, 0, 2, 0, 0, 0xf8, 128, 0, 0]);
    boot[32..36].copy_from_slice(&65536u32.to_le_bytes());
    boot[510..].copy_from_slice(&[0x55, 0xaa]);
    boot
}

#[test]
fn a_start_at_which_the_next_partition_begins_is_not_free() {
    let fix = |entries: &[(u8, u32, u32)]| {
        let (_, audit) = judge(entries, &[]);
        audit.findings.iter().find(|(id, f)| *id == 1 && *f.rule == START).unwrap().1.fix.clone()
    };
    assert_eq!(fix(&[(0x83, 63, 1), (0x83, 64, 1)]), [Fix::StartAt(vec![])]);
    assert_eq!(fix(&[(0x83, 63, 2), (0x83, 65, 7)]), [Fix::StartAt(vec![64 * 512])]);
    assert_eq!(fix(&[(0x83, 63, 1)]), [Fix::StartAt(vec![2048 * 512, 64 * 512])]);
}

/// An EFI system partition is hardly ever written, so its clusters may be anywhere; but one that
/// begins off the grain was put there without thought, and so is told.
#[test]
fn the_inside_of_an_efi_system_partition_is_harmless_if_it_begins_where_it_should() {
    let data = |kind, start| {
        let (_, audit) = judge(&[(kind, start, 100_000)], &[(start, &fat16(8))]);
        let (id, finding) = audit.findings.iter().find(|(_, f)| *f.rule == DATA).unwrap().clone();
        (audit.verdicts[id], finding.severity)
    };
    assert_eq!(data(0xef, 64), (Verdict::Aligned, Severity::Note));
    assert_eq!(data(0xef, 65), (Verdict::Misaligned, Severity::Error));
    assert_eq!(data(0x0e, 64), (Verdict::Misaligned, Severity::Error));
}

/// The clusters of a volume are written in its data area: they are the block by which that is
/// judged.
#[test]
fn a_data_area_is_judged_by_the_block_of_its_format() {
    let factor = |cluster| {
        let (_, audit) = judge(&[(0x0e, 64, 100_000)], &[(64, &fat16(cluster))]);
        audit.findings.iter().find(|(_, f)| *f.rule == DATA).unwrap().1.cost.unwrap().rmw_factor
    };
    // Of 4 KiB clusters every one takes two units, each read first; of 32 KiB ones nine units for
    // eight, two read first.
    assert_eq!((factor(8), factor(64)), (4.0, 11.0 / 8.0));
}

/// An EROFS of 4096-byte blocks, from its byte 1024 on.
fn erofs() -> Vec<u8> {
    let mut sb = vec![0; 128];
    sb[..4].copy_from_slice(&[0xe2, 0xe1, 0xf5, 0xe0]);
    sb[12] = 12;
    sb
}

/// Formats that are never written are excused from units that are read before they are written, and
/// from nothing else.
#[test]
fn every_boundary_is_excused_by_itself() {
    let raid = || profile::named("raid64kx4").unwrap().1;
    let judged = |facts: Vec<Fact>, start: u32| {
        let (_, audit) = judge_on(facts, &[(0x83, start, 100_000)], &[(start + 2, &erofs())]);
        let starts = audit.findings.iter().filter(|(id, f)| *id == 1 && *f.rule == START);
        (audit.verdicts[1], starts.map(|(_, f)| (f.severity, f.unit)).collect::<Vec<_>>())
    };
    // 2056 misses the chunk alone, and the row that nothing writes; 2057 the unit as well.
    assert_eq!(
        judged(raid(), 2056),
        (Verdict::Misaligned, vec![(Severity::Warning, 65536), (Severity::Note, 262_144)])
    );
    assert_eq!(
        judged(raid(), 2057),
        (Verdict::Misaligned, vec![(Severity::Warning, 65536), (Severity::Note, 4096)])
    );
    assert_eq!(judged(raid(), 2048 + 128), (Verdict::Aligned, vec![(Severity::Note, 262_144)]));
    assert_eq!(judged(raid(), 2048), (Verdict::Aligned, vec![]));
    assert_eq!(judged(profile::assumed(), 2057), (Verdict::Aligned, vec![(Severity::Note, 4096)]));
}

/// The superblock of an ext4 of 4096-byte blocks with a stride, from its byte 1024 on.
fn ext4(stride: u16) -> Vec<u8> {
    let mut sb = vec![0; 1024];
    for (at, value) in [(4, 1000), (24, 2), (28, 2), (76, 1), (96, 0x40), (356, u32::from(stride))]
    {
        sb[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
    }
    sb[56..58].copy_from_slice(&[0x53, 0xef]);
    sb
}

#[test]
fn a_recorded_chunk_that_the_start_cannot_hold_is_a_note() {
    let noted = |facts: Vec<Fact>, start: u32, stride| {
        let (_, audit) = judge_on(facts, &[(0x83, start, 100_000)], &[(start + 2, &ext4(stride))]);
        let found = audit.findings.iter().find(|(id, f)| *id == 1 && *f.rule == STRIPE);
        (audit.verdicts[1], found.map(|(_, f)| (f.severity, f.unit, f.remainder)))
    };
    assert_eq!(
        noted(profile::assumed(), 2056, 16),
        (Verdict::Aligned, Some((Severity::Note, 65536, 4096)))
    );
    assert_eq!(noted(profile::assumed(), 2048, 16), (Verdict::Aligned, None));
    assert_eq!(noted(profile::assumed(), 2056, 0), (Verdict::Aligned, None));
    // Where the set is known it is judged by: TL0001 says so.
    assert_eq!(
        noted(profile::named("raid64kx4").unwrap().1, 2056, 16),
        (Verdict::Misaligned, None)
    );
}
