//! Partition tables as the specifications and the real tools write them, whole and damaged.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "tables/labels.rs"]
mod labels;

use trueline_geom::base::finding::{Finding, Severity};
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::Topology;
use trueline_geom::class::gpt;
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::mapping::route::Route;
use trueline_geom::mapping::slices::{Dialect, PartitionType};
use trueline_geom::probe::{Budget, Limits, Probe};

const SECTORS: u64 = 488_397_168; // seed 004's disk

fn disk(sectors: u64) -> Sparse {
    Sparse::new(sectors * 512)
}

fn taste_as(disk: &Sparse, sector: u64, start: Option<u64>) -> Graph {
    let topology = Topology::new(sector, disk.length());
    let disk = Disk { start, ..Disk::new("", Box::new(disk.clone()), topology) };
    Graph::taste(vec![disk], Limits::default())
}

fn taste(disk: &Sparse) -> Graph {
    taste_as(disk, 512, Some(0))
}

/// `name class first-sector sectors`, without the disk itself.
fn tree(graph: &Graph) -> Vec<String> {
    let line = |p: &trueline_geom::graph::Provider| {
        format!("{} {} {} {}", p.name, p.class, p.base() / 512, p.topology.length / 512)
    };
    graph.providers.iter().skip(1).map(line).collect()
}

fn findings(graph: &Graph) -> Vec<&Finding> {
    graph.providers.iter().flat_map(|p| &p.findings).collect()
}

fn rules(graph: &Graph) -> Vec<(&'static str, Severity)> {
    findings(graph).into_iter().map(|f| (f.rule.id, f.severity)).collect()
}

fn sector_of(disk: &Sparse, sector: u64) -> Option<u64> {
    let (route, stores) =
        (Route::store(0, disk.length()), vec![Box::new(disk.clone()) as Box<dyn Store>]);
    gpt::sector_of(&Probe::new(
        &route,
        &stores,
        &Budget::new(Limits::default()),
        sector,
        Some(0),
        None,
    ))
}

// MBR

/// Entries are (type, start, sectors).
fn mbr(disk: &mut Sparse, at: u64, entries: &[(u8, u32, u32)]) {
    let mut table = [0; 72];
    table[70..].copy_from_slice(&[0x55, 0xaa]);
    table[..4].copy_from_slice(&0x1234_5678_u32.to_le_bytes());
    for (slot, (kind, start, size)) in entries.iter().enumerate() {
        let entry = &mut table[6 + 16 * slot..][..16];
        entry[4] = *kind;
        entry[8..12].copy_from_slice(&start.to_le_bytes());
        entry[12..].copy_from_slice(&size.to_le_bytes());
    }
    disk.put(at * 512 + 440, &table);
}

/// Seed 000's kind of disk: a primary at 63, an extended one with two logical ones.
fn chained() -> Sparse {
    let mut d = disk(100_000);
    mbr(&mut d, 0, &[(0x83, 63, 9937), (0x05, 10_000, 50_000)]);
    mbr(&mut d, 10_000, &[(0x83, 63, 4937), (0x05, 5000, 5000)]);
    mbr(&mut d, 15_000, &[(0x82, 63, 4000)]);
    d
}

#[test]
fn logical_partitions_are_numbered_along_the_chain() {
    let g = taste(&chained());
    assert_eq!(
        tree(&g),
        ["s1 mbr 63 9937", "s2 mbr 10000 50000", "s5 mbr 10063 4937", "s6 mbr 15063 4000"]
    );
    assert!(findings(&g).is_empty(), "{:?}", findings(&g));
    assert_eq!(g.providers[0].slices().unwrap().usable, 63 * 512..100_000 * 512);
    assert_eq!(
        (g.providers[4].kind, g.providers[4].uuid.as_deref()),
        (Some(PartitionType::Mbr(0x82)), Some("12345678-06"))
    );
}

#[test]
fn a_damaged_chain_keeps_what_stands_before_it() {
    let mut d = chained();
    mbr(&mut d, 15_000, &[(0x82, 63, 4000), (0x05, 0, 5000)]);
    let g = taste(&d);
    assert_eq!((tree(&g).len(), rules(&g)), (4, vec![("TL0011", Severity::Error)]));
    assert!(findings(&g)[0].message.contains("leads back"), "{:?}", findings(&g));

    mbr(&mut d, 15_000, &[(0x82, 63, 4000), (0x05, 60_000, 5000)]);
    assert!(findings(&taste(&d))[0].message.contains("outside the extended partition"));
    mbr(&mut d, 15_000, &[(0x82, 63, 4000), (0x05, 50_000, 5000)]);
    assert!(findings(&taste(&d))[0].message.contains("outside the extended partition"));
    d.put(15_000 * 512 + 510, &[0, 0]);
    let g = taste(&d);
    assert_eq!((tree(&g).len(), rules(&g)), (3, vec![("TL0011", Severity::Error)]));

    // A chain longer than any kernel follows.
    mbr(&mut d, 0, &[(0x0f, 1000, 90_000)]);
    for i in 0..300 {
        mbr(
            &mut d,
            1000 + 100 * i,
            &[(0x83, 1, 50), (0x05, u32::try_from(100 * (i + 1)).unwrap(), 100)],
        );
    }
    let g = taste(&d);
    assert_eq!((tree(&g).len(), rules(&g)), (129, vec![("TL0011", Severity::Error)]));
}

#[test]
fn the_third_entry_of_an_ebr_counts_only_where_it_fits() {
    let mut d = chained();
    for (start, logicals) in [(49_000, 2), (20_000, 3)] {
        mbr(&mut d, 10_000, &[(0x83, 63, 4937), (0x05, 5000, 5000), (0x83, start, 2000)]);
        let g = taste(&d);
        assert_eq!((tree(&g).len(), findings(&g).len()), (2 + logicals, 0), "{:?}", tree(&g));
    }
}

#[test]
fn usable_space_begins_before_what_is_there_and_ends_where_32_bits_do() {
    let mut d = disk(1 << 33);
    mbr(&mut d, 0, &[(0x83, 8, 1000)]);
    assert_eq!(taste(&d).providers[0].slices().unwrap().usable, 512..u64::from(u32::MAX) * 512);
}

#[test]
fn overlaps_are_found_and_an_extended_partition_may_hold_its_own() {
    let mut d = chained();
    // A logical partition that covers the next EBR (util-linux issue 3925).
    mbr(&mut d, 10_000, &[(0x83, 63, 4938), (0x05, 5000, 5000)]);
    let g = taste(&d);
    assert_eq!((tree(&g).len(), rules(&g)), (4, vec![("TL0010", Severity::Error)]));
    assert!(
        findings(&g)[0].message.contains("s5 and the EBR 2 of s2 share 512 bytes"),
        "{:?}",
        findings(&g)
    );
    mbr(&mut d, 0, &[(0x83, 63, 9938), (0x83, 10_000, 50_000)]);
    assert_eq!(rules(&taste(&d)), [("TL0010", Severity::Error)]);
}

#[test]
fn what_only_ends_like_an_mbr_is_none() {
    let mut d = disk(100_000);
    // FreeBSD's boot1.
    mbr(&mut d, 0, &[(0, 0, 0), (0, 0, 0), (0, 0, 0), (0xa5, 0, 50_000)]);
    assert_eq!((tree(&taste(&d)).len(), rules(&taste(&d)).len()), (0, 0));
    // Boot code where the table would be.
    d.put(446, &[0x80; 64]);
    assert!(taste(&d).providers[0].table.is_none());
    // A FAT boot sector with text there, and one with a table that makes sense.
    for (entries, partitions) in
        [(vec![(0x6e, 0x2064_6e61, 0x6572_7000)], 0), (vec![(0x83, 63, 1000)], 1)]
    {
        let mut d = disk(100_000);
        d.put(0, b"\xeb\x3c\x90mkfs.fat\x00\x02\x04");
        mbr(&mut d, 0, &entries);
        let g = taste(&d);
        assert_eq!((tree(&g).len(), rules(&g).len()), (partitions, 0));
    }
}

#[test]
fn entries_past_the_end() {
    let mut d = disk(20_000);
    mbr(
        &mut d,
        0,
        &[(0x83, 63, 1000), (0x83, 10_000, 20_000), (0x83, 50_000, 100), (0x83, 20_000, 1)],
    );
    let g = taste(&d);
    assert_eq!(tree(&g), ["s1 mbr 63 1000", "s2 mbr 10000 10000"]);
    assert_eq!(rules(&g), [("TL0009", Severity::Error); 3]);
    mbr(&mut d, 0, &[(0x83, 50_000, 100)]);
    assert_eq!((tree(&taste(&d)).len(), rules(&taste(&d))), (0, vec![("TL0009", Severity::Error)]));
    // The same table on 4096-byte sectors fits only in units of 512.
    let mut d = disk(20_000);
    mbr(&mut d, 0, &[(0x83, 2048, 1000), (0x83, 10_000, 1000)]);
    let g = taste_as(&d, 4096, Some(0));
    assert_eq!((tree(&g).len(), rules(&g)), (0, vec![("TL0007", Severity::Error)]));
}

// GPT

fn header(own: u64, alternate: u64, first: u64, last: u64, table: u64, crc: u32) -> [u8; 92] {
    let mut h = [0; 92];
    h[..8].copy_from_slice(b"EFI PART");
    for (at, value) in [(8, 0x1_0000), (12, 92), (16, crc), (80, 128), (84, 128), (88, 0xab54_d286)]
    {
        h[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    for (at, value) in [(24, own), (32, alternate), (40, first), (48, last), (72, table)] {
        h[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    h
}

/// What `gpart create -s GPT` writes on seed 004's disk, but for the GUID; the CRCs are the
/// published ones.
fn empty_gpt() -> Sparse {
    let mut d = disk(SECTORS);
    mbr(&mut d, 0, &[(0xee, 1, 0x1d1c_596f)]);
    d.put(512, &header(1, SECTORS - 1, 40, 488_397_127, 2, 0x4b9e_555f));
    d.put((SECTORS - 1) * 512, &header(SECTORS - 1, 1, 40, 488_397_127, 488_397_135, 0x94b3_a71f));
    d
}

/// Both copies of a GPT for sectors of `unit` bytes; entries are (type, first, last).
fn gpt(disk: &mut Sparse, unit: u64, entries: &[(u8, u64, u64)]) {
    let mut table = vec![0; 128 * 128];
    for (i, (kind, first, last)) in entries.iter().enumerate() {
        let entry = &mut table[128 * i..][..128];
        entry[..16].fill(*kind);
        entry[32..40].copy_from_slice(&first.to_le_bytes());
        entry[40..48].copy_from_slice(&last.to_le_bytes());
    }
    let sectors = disk.length() / unit;
    let room = 16384 / unit;
    for (own, other, at) in [(1, sectors - 1, 2), (sectors - 1, 1, sectors - 1 - room)] {
        let mut h = header(own, other, 2 + room, sectors - 2 - room, at, 0);
        h[88..].copy_from_slice(&crc32fast::hash(&table).to_le_bytes());
        let crc = crc32fast::hash(&h);
        h[16..20].copy_from_slice(&crc.to_le_bytes());
        disk.put(own * unit, &h);
        disk.put(at * unit, &table);
    }
    mbr(disk, 0, &[(0xee, 1, u32::try_from(sectors - 1).unwrap())]);
}

#[test]
fn the_published_gpt_is_whole() {
    let d = empty_gpt();
    let g = taste(&d);
    assert!(findings(&g).is_empty(), "{:?}", findings(&g));
    assert_eq!(g.providers[0].slices().unwrap().usable, 40 * 512..488_397_128 * 512);
    assert_eq!(sector_of(&d, 512), Some(512));
}

#[test]
fn a_damaged_copy_is_named_with_both_sums() {
    let mut d = empty_gpt();
    d.put(512 + 60, b"X");
    let g = taste(&d);
    assert_eq!(rules(&g), [("TL0008", Severity::Warning)]);
    assert!(
        findings(&g)[0].message.starts_with("primary header CRC is 4b9e555f, computed "),
        "{:?}",
        findings(&g)
    );
    assert!(g.providers[0].table.is_some());

    let mut t = empty_gpt();
    t.put((SECTORS - 33) * 512, b"X");
    assert!(findings(&taste(&t))[0].message.starts_with("backup table CRC is ab54d286, computed "));

    d.put((SECTORS - 1) * 512 + 60, b"X");
    let g = taste(&d);
    assert_eq!(
        (rules(&g), g.providers[0].table.is_none()),
        (vec![("TL0008", Severity::Error)], true)
    );
}

#[test]
fn a_header_is_believed_only_where_it_belongs() {
    let last = 3999;
    // The backup's header in the primary's place; one that is its own other copy; tables over the
    // header and the partitions.
    let wrong = [
        (header(last, 1, 34, 3965, 3967, 0), "is in LBA 1 and says it is in LBA 3999"),
        (header(1, 1, 34, 3965, 2, 0), "names itself as the backup"),
        (header(1, last, 34, 3965, 100, 0), "lies over its header or among the partitions"),
        (header(1, last, 34, 3965, 1, 0), "lies over its header or among the partitions"),
        (header(1, last, 1, 3965, 2, 0), "usable LBA 1 to 3965"),
    ];
    for (mut h, what) in wrong {
        let mut d = disk(4000);
        gpt(&mut d, 512, &[]);
        let crc = crc32fast::hash(&h);
        h[16..20].copy_from_slice(&crc.to_le_bytes());
        d.put(512, &h);
        let g = taste(&d);
        assert_eq!(rules(&g)[0], ("TL0008", Severity::Warning));
        assert!(findings(&g)[0].message.contains(what), "{:?}", findings(&g));
    }
}

#[test]
fn a_disk_that_grew_or_was_cut() {
    let mut small = disk(4000);
    gpt(&mut small, 512, &[(7, 40, 99), (7, 100, 3000)]);
    let mut big = disk(6000);
    small.runs().for_each(|(at, bytes)| big.put(at, bytes));
    assert_eq!(rules(&taste(&big)), [("TL0023", Severity::Warning)]);
    // With the primary gone too, the protective entry still knows where the backup was.
    big.put(512, &[0; 512]);
    let g = taste(&big);
    assert_eq!(
        (tree(&g).len(), rules(&g)),
        (2, vec![("TL0008", Severity::Warning), ("TL0023", Severity::Warning)])
    );
    let mut cut = disk(2000);
    small.runs().for_each(|(at, bytes)| {
        if at < cut.length() {
            cut.put(at, bytes)
        }
    });
    let g = taste(&cut);
    assert_eq!(
        (tree(&g), rules(&g)),
        (
            vec!["p1 gpt 40 60".to_string()],
            vec![("TL0008", Severity::Warning), ("TL0009", Severity::Error)]
        )
    );
}

#[test]
fn a_gpt_for_another_sector_size_is_named() {
    for (made, here) in [(4096, 512), (512, 4096), (2048, 512)] {
        let mut d = disk(40_000);
        gpt(&mut d, made, &[(7, 64, 99), (7, 100, 150)]);
        let g = taste_as(&d, here, Some(0));
        assert_eq!((tree(&g).len(), rules(&g)), (0, vec![("TL0007", Severity::Error)]));
        let message = &findings(&g)[0].message;
        let at = format!("2 partitions, the first at byte {} (LBA 64)", 64 * made);
        assert!(message.contains(&at) && message.contains(&format!("{made}-byte")), "{message}");
        assert_eq!(sector_of(&d, here), Some(made));
        assert_eq!(tree(&taste_as(&d, made, Some(0))).len(), 2);
    }
}

#[test]
fn entries_that_cannot_be() {
    let mut d = disk(4000);
    gpt(
        &mut d,
        512,
        &[
            (7, 40, 99),
            (7, 90, 200),
            (7, 300, 250),
            (7, 3000, u64::MAX),
            (7, u64::MAX, u64::MAX),
            (7, 10, 20),
        ],
    );
    let g = taste(&d);
    assert_eq!(tree(&g), ["p1 gpt 40 60", "p2 gpt 90 111", "p6 gpt 10 11"]);
    let found = [
        ("TL0009", Severity::Error),
        ("TL0009", Severity::Error),
        ("TL0009", Severity::Error),
        ("TL0009", Severity::Warning),
    ];
    assert_eq!(rules(&g), [&found[..], &[("TL0010", Severity::Error)]].concat());
    // Thousands of findings are a handful.
    let all: Vec<_> = (0..128).map(|i| (7, u64::MAX - i, u64::MAX)).collect();
    gpt(&mut d, 512, &all);
    let g = taste(&d);
    assert!(
        findings(&g).len() == 16 && findings(&g)[15].message.ends_with("; and 112 more like it"),
        "{:?}",
        findings(&g)
    );
}

#[test]
fn an_mbr_beside_a_gpt() {
    let mut d = disk(4000);
    gpt(&mut d, 512, &[(7, 40, 99)]);
    // Hybrid: the same partition; then another one.
    mbr(&mut d, 0, &[(0xee, 1, 39), (0xaf, 40, 60)]);
    assert_eq!((tree(&taste(&d)).len(), rules(&taste(&d))), (1, vec![("TL0021", Severity::Note)]));
    for other in [(0xaf, 41, 60), (0xaf, 40, 59)] {
        mbr(&mut d, 0, &[(0xee, 1, 39), other]);
        assert_eq!(
            (tree(&taste(&d)).len(), rules(&taste(&d))),
            (1, vec![("TL0021", Severity::Error)])
        );
    }
    // Linux takes a protective entry only from LBA 1.
    mbr(&mut d, 0, &[(0xee, 2, 3998)]);
    assert_eq!(
        (tree(&taste(&d)).len(), rules(&taste(&d))),
        (1, vec![("TL0008", Severity::Warning)])
    );
    // A real MBR hides the GPT.
    mbr(&mut d, 0, &[(0x83, 63, 100)]);
    let g = taste(&d);
    assert_eq!(
        (tree(&g), rules(&g)),
        (vec!["s1 mbr 63 100".to_string()], vec![("TL0014", Severity::Warning)])
    );
    assert_eq!(sector_of(&d, 512), None);
    // Without any MBR Linux sees nothing, and a backup alone is what an old table left.
    d.put(0, &[0; 512]);
    assert_eq!(
        (tree(&taste(&d)).len(), rules(&taste(&d))),
        (1, vec![("TL0008", Severity::Warning)])
    );
    d.put(512, &[0; 512]);
    assert_eq!(
        (tree(&taste(&d)).len(), rules(&taste(&d))),
        (0, vec![("TL0014", Severity::Warning)])
    );
    // A protective entry and nothing behind it.
    let mut d = disk(4000);
    mbr(&mut d, 0, &[(0xee, 1, 3999)]);
    assert_eq!(rules(&taste(&d)), [("TL0008", Severity::Error)]);
}

// BSD

/// No table makes anything but `Slices`, which the laws are tried on.
#[test]
fn every_table_is_slices() {
    let mut g = empty_gpt();
    g.put(0, &[]);
    for disk in [chained(), g] {
        let graph = taste(&disk);
        let (_, geom) = graph.providers[0].table.clone().unwrap();
        assert!(geom.table().is_some());
    }
}
