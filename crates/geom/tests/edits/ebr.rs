//! EBR: chains as we and as others write them, and what an edit leaves of them wherever it stops.

use crate::crash::{Cut, every_state};
use crate::disk::{found, probe, written};
use crate::mbr::{bare, bytes, disk, part, try_add};
use trueline_geom::base::patch::Patch;
use trueline_geom::base::store::Sparse;
use trueline_geom::class::mbr::Ebr;
use trueline_geom::mapping::slices::PartitionType;
use trueline_geom::table::scheme::{New, Scheme};
use trueline_geom::table::{Request, Rules, Table, Wanted};

mod foreign;

const MIB: u64 = 1 << 20;
/// Where the extended partition is, and its size; 8 GiB up, so that no field of 32 bits holds a
/// byte address.
const AT: u64 = 8 << 30;
const SIZE: u64 = 64 * MIB;

/// A disk with one extended partition, seen whole and from inside.
struct Chain {
    disk: Sparse,
    sector: u64,
    size: u64,
}

impl Chain {
    fn sized(sector: u64, size: u64) -> Chain {
        Chain {
            disk: disk(AT + size + MIB, sector, [part("83", MIB, MIB), part("ebr", AT, size)]),
            sector,
            size,
        }
    }

    fn new(sector: u64) -> Chain {
        Chain::sized(sector, SIZE)
    }

    /// The extended partition alone.
    fn inside(&self) -> Sparse {
        let mut inside = Sparse::new(self.size);
        for (at, run) in self.disk.runs() {
            if let Some(at) = at.checked_sub(AT) {
                inside.put(at, run);
            } else if let Some(tail) = run.get(usize::try_from(AT - at).unwrap()..) {
                inside.put(0, tail);
            }
        }
        inside
    }

    fn table(&self) -> Table {
        probe(&self.inside(), self.sector, Some(PartitionType::Mbr(5)), |probe| Ebr.read(probe))
            .unwrap()
    }

    /// The disk as those patches leave it.
    fn after(&self, patches: &[Patch]) -> Chain {
        Chain { disk: written(&self.disk, &outside(patches)), ..*self }
    }

    /// One edit: what is read back is what was meant, and every state on the way is one or the
    /// other.
    fn edit(&mut self, change: impl FnOnce(&mut Table)) -> Vec<Patch> {
        let before = self.table();
        assert_eq!(before.damage, Vec::<String>::new());
        assert!(Ebr.render(&before, &before).is_empty());
        let mut after = before.clone();
        change(&mut after);
        let patches = Ebr.render(&before, &after);
        let then = self.after(&patches);
        let read = then.table();
        assert_eq!(
            (bare(&read), &read.taken, &read.damage),
            (bare(&after), &after.taken, &Vec::new())
        );
        every_state(&self.disk, &outside(&patches), self.sector, Cut::Sector);
        self.disk = then.disk;
        patches
    }

    fn add(&mut self, start: u64, size: u64) -> Vec<Patch> {
        self.edit(|table| {
            try_add(table, part("83", start, size), Rules::Aligned).unwrap();
        })
    }

    /// Start and size in sectors, along the chain.
    fn places(&self) -> Vec<(u64, u64)> {
        self.table()
            .entries
            .iter()
            .map(|e| (e.partition.start / self.sector, e.partition.length / self.sector))
            .collect()
    }

    fn ebr(&mut self, at: u64, entries: &[(u8, u32, u32)]) {
        let mut table = [0; 66];
        table[64..].copy_from_slice(&[0x55, 0xaa]);
        for (slot, (kind, start, size)) in entries.iter().enumerate() {
            table[16 * slot + 4] = *kind;
            table[16 * slot + 8..16 * slot + 12].copy_from_slice(&start.to_le_bytes());
            table[16 * slot + 12..16 * slot + 16].copy_from_slice(&size.to_le_bytes());
        }
        self.disk.put(AT + at * self.sector + 446, &table);
    }
}

fn outside(patches: &[Patch]) -> Vec<Patch> {
    patches.iter().map(|p| Patch { offset: p.offset + AT, ..p.clone() }).collect()
}

/// What is at, by whom it is written and after which flush.
fn steps(patches: &[Patch], sector: u64) -> Vec<(u64, &'static str, bool)> {
    patches.iter().map(|p| (p.offset / sector, p.what, p.after_flush)).collect()
}

#[test]
fn a_new_partition_is_written_where_no_link_leads_and_then_linked() {
    for sector in [512, 4096] {
        let mut chain = Chain::new(sector);
        let grain = MIB / sector;
        assert_eq!(steps(&chain.add(MIB, 4 * MIB), sector), [(0, "EBR that leads to it", false)]);
        assert_eq!(
            steps(&chain.add(6 * MIB, 4 * MIB), sector),
            [(5 * grain, "new EBR", false), (0, "EBR that leads to it", true)],
            "an EBR lies 1 MiB before its partition"
        );
        // No room for that: the sector before.
        let third = chain.add(10 * MIB + sector, 4 * MIB);
        assert_eq!(
            steps(&third, sector),
            [(10 * grain, "new EBR", false), (5 * grain, "EBR that leads to it", true)]
        );
        assert_eq!(
            chain.places(),
            [(grain, 4 * grain), (6 * grain, 4 * grain), (10 * grain + 1, 4 * grain)]
        );
        assert_eq!(
            chain.table().entries.iter().map(|e| e.partition.index).collect::<Vec<_>>(),
            [5, 6, 7]
        );
        assert_eq!(found(&chain.disk, sector).len(), 5);
    }
}

#[test]
fn partitions_by_default_begin_on_the_grain_and_fill_what_is_free() {
    let mut chain = Chain::new(4096);
    for size in [Some(10 * MIB), Some(MIB / 2), None] {
        let wanted = Wanted { place: Request { size, ..Request::default() }, ..part("83", 0, 0) };
        chain.edit(|table| assert!(try_add(table, wanted, Rules::Aligned).is_ok()));
    }
    let grain = MIB / 4096;
    assert_eq!(
        chain.places(),
        [(grain, 10 * grain), (12 * grain, grain / 2), (13 * grain, 51 * grain)]
    );
}

#[test]
fn a_deleted_partition_is_skipped_and_those_behind_it_are_renumbered() {
    for sector in [512, 4096] {
        let mut chain = Chain::new(sector);
        let grain = MIB / sector;
        for n in 0..4 {
            chain.add((1 + 10 * n) * MIB, 4 * MIB);
        }
        chain.edit(|t| t.mark(Some(7), &Ebr.attributes()[0], true).unwrap());
        assert_eq!(chain.edit(|t| assert!(t.delete(6).is_ok())).len(), 1);
        assert_eq!(
            chain.places(),
            [(grain, 4 * grain), (21 * grain, 4 * grain), (31 * grain, 4 * grain)]
        );
        assert_eq!(chain.table().entries[1].attributes, 0x80);
        // The first EBR stays and takes over the next partition.
        assert_eq!(
            steps(&chain.edit(|t| assert!(t.delete(5).is_ok())), sector),
            [(0, "EBR", false)]
        );
        assert_eq!(chain.places(), [(21 * grain, 4 * grain), (31 * grain, 4 * grain)]);
        // What comes before it takes the first EBR; it gets one of its own, in the sector before
        // it.
        let patches = chain.add(MIB, 20 * MIB - sector);
        assert_eq!(
            steps(&patches, sector),
            [(21 * grain - 1, "new EBR", false), (0, "EBR that leads to it", true)]
        );
        assert_eq!(
            chain.places(),
            [(grain, 20 * grain - 1), (21 * grain, 4 * grain), (31 * grain, 4 * grain)]
        );
        // That sector is kept for it, whatever else there is.
        let mut kept = chain.after(&[]);
        kept.edit(|t| assert!(t.delete(5).is_ok()));
        assert!(try_add(&mut kept.table(), part("83", MIB, 20 * MIB), Rules::Aligned).is_err());
        // The last, the only one: an empty EBR is left.
        for index in [7, 6, 5] {
            chain.edit(|t| assert!(t.delete(index).is_ok()));
        }
        assert_eq!(bytes(&chain.disk, AT + 446, 66)[..64], [0; 64]);
        assert!(chain.table().is_bare_chain());
        chain.add(sector, MIB);
    }
}

#[test]
fn no_partition_takes_the_sector_another_needs() {
    let mut chain = Chain::new(512);
    chain.add(10 * MIB, MIB);
    for (start, size, why) in [
        (0, MIB, "overlap"),
        (MIB, 9 * MIB, "overlap"),
        (11 * MIB, MIB, "overlap"),
        (63 * MIB, MIB + 512, "do not lie"),
    ] {
        let refused =
            try_add(&mut chain.table(), part("83", start, size), Rules::Aligned).unwrap_err();
        assert!(refused.found.contains(why), "{start} {size}: {refused}");
    }
    for kind in ["ebr", "extended-lba", "85", "ee"] {
        assert!(
            try_add(&mut chain.table(), part(kind, 20 * MIB, MIB), Rules::Aligned).is_err(),
            "{kind}"
        );
    }
    // A number is where a partition is in the chain, and not a choice.
    let numbered = |index, start| {
        try_add(
            &mut chain.table(),
            Wanted { index: Some(index), ..part("83", start, MIB) },
            Rules::Aligned,
        )
    };
    assert_eq!(
        (numbered(6, 20 * MIB), numbered(7, 20 * MIB).is_err(), numbered(6, MIB).is_err()),
        (Ok(6), true, true)
    );
}

#[test]
fn what_others_wrote_stays_as_it_is() {
    // Links not in order, a first EBR that is a pure link, links of types 0f and 85 in odd places
    // with odd sizes, data in the third entry, boot code.
    let mut chain = Chain::new(512);
    chain.ebr(0, &[(0x05, 50_000, 7), (0, 0, 0)]);
    chain.ebr(50_000, &[(0x0f, 9_000, 5_000), (0x83, 63, 1_000)]);
    chain.ebr(9_000, &[(0x83, 1, 100), (0x85, 20_000, 40_000), (0x82, 200, 100), (0, 9, 0)]);
    chain.ebr(20_000, &[(0x07, 2_048, 8_000)]);
    chain.disk.put(AT + 9_000 * 512, b"boot code");
    chain.disk.put(AT + 20_000 * 512 + 446 + 33, &[1, 2, 3]);
    let places = [(50_063, 1_000), (9_001, 100), (9_200, 100), (22_048, 8_000)];
    assert_eq!(chain.places(), places);
    let was = chain.disk.clone();
    let changed = |chain: &Chain| -> Vec<u64> {
        (0..SIZE / 512)
            .filter(|s| bytes(&chain.disk, AT + s * 512, 512) != bytes(&was, AT + s * 512, 512))
            .collect()
    };
    // The third one behind the second: nothing but the entry goes.
    let mut third = chain.after(&[]);
    third.edit(|t| assert!(t.delete(7).is_ok()));
    assert_eq!(
        (third.places(), changed(&third)),
        (vec![places[0], places[1], places[3]], vec![9_000])
    );
    let mut wanted = bytes(&was, AT + 9_000 * 512, 512);
    wanted[446 + 32..446 + 48].fill(0);
    assert_eq!(bytes(&third.disk, AT + 9_000 * 512, 512), wanted);
    // Both of an EBR: it is skipped, by a link that keeps its type and place.
    let mut both = chain.after(&[]);
    both.edit(|t| assert!(t.delete(7).is_ok() && t.delete(6).is_ok()));
    assert_eq!((both.places(), changed(&both)), (vec![places[0], places[3]], vec![50_000]));
    assert_eq!(bytes(&both.disk, AT + 50_000 * 512 + 446 + 4, 1), [0x0f]);
    // A new one, in order of the disk as far as there is one; all others stay where they are.
    let mut more = chain.after(&[]);
    more.add(60_000 * 512, 512 * 512);
    more.add(12_000 * 512, 512 * 512);
    more.add(2_048 * 512, 512 * 512);
    assert_eq!(more.places()[0], (2_048, 512), "a pure link is used where something comes first");
    let mut all = more.places();
    all.retain(|p| places.contains(p));
    assert_eq!(all, places);
    // Growing one in the third entry, which counts only where its EBR's link makes room for it.
    let mut grown = chain.after(&[]);
    grown.disk.put(AT + 50_000 * 512 + 446 + 12, &300_u32.to_le_bytes());
    assert_eq!(grown.places(), places);
    let patches = grown.edit(|t| {
        t.resize(
            &ground(&grown_topology()),
            7,
            &Request { size: Some(3_000 * 512), ..Request::default() },
            Rules::Aligned,
        )
        .unwrap();
    });
    assert_eq!(steps(&patches, 512), [(50_000, "EBR", false), (9_000, "EBR", true)]);
}

fn grown_topology() -> trueline_geom::base::topology::Topology {
    trueline_geom::base::topology::Topology::new(512, SIZE)
}

fn ground(
    topology: &trueline_geom::base::topology::Topology,
) -> trueline_geom::table::scheme::TableSite<'_> {
    trueline_geom::table::scheme::TableSite {
        topology,
        base: AT,
        kind: Some(PartitionType::Mbr(5)),
    }
}

#[test]
fn an_ebr_that_holds_more_than_a_partition_is_linked_to_not_taken_over() {
    for extra in [0, 446 + 33] {
        let mut chain = Chain::new(512);
        chain.add(MIB, MIB);
        chain.add(10 * MIB, MIB);
        chain.disk.put(AT + 9 * MIB + extra, b"!");
        let patches = chain.edit(|t| assert!(t.delete(5).is_ok()));
        assert_eq!(steps(&patches, 512), [(0, "EBR", false)]);
        // A link in the first entry and nothing in the second: what FreeBSD calls a link, too.
        let first = bytes(&chain.disk, AT + 446, 64);
        assert_eq!(
            (first[4], first[8..12].to_vec(), &first[16..]),
            (5, (9 * 2048_u32).to_le_bytes().to_vec(), &[0; 48][..])
        );
        assert_eq!(bytes(&chain.disk, AT + 9 * MIB + extra, 1), b"!");
        chain.add(2 * MIB, MIB);
        assert_eq!(chain.places(), [(4096, 2048), (20_480, 2048)]);
    }
}

#[test]
fn a_broken_chain_is_only_cut_when_that_is_asked_for() {
    for link in [(5, 100_000, 3_000), (5, 0, 9), (5, 20_000, 9), (5, u32::MAX, u32::MAX)] {
        let mut chain = Chain::new(512);
        chain.add(MIB, MIB);
        chain.add(10 * MIB, MIB);
        chain.ebr(9 * 2048, &[(0x83, 2048, 2048), link]);
        let before = chain.table();
        assert_eq!((before.damage.len(), before.entries.len()), (1, 2), "{link:?}");
        assert!(before.clone().delete(5).is_err());
        assert!(Ebr.render(&before, &before).is_empty());
        let whole = Ebr.recover(&before, &ground(&grown_topology())).unwrap();
        let patches = Ebr.render(&before, &whole);
        assert_eq!(steps(&patches, 512), [(9 * 2048, "EBR", false)]);
        let then = chain.after(&patches);
        assert_eq!((bare(&then.table()), then.table().damage), (bare(&before), Vec::new()));
    }
    let mut chain = Chain::new(512);
    chain.ebr(0, &[(0x83, 63, u32::MAX)]);
    assert!(
        Ebr.recover(&chain.table(), &ground(&grown_topology())).is_err(),
        "a partition that leaves its extended one"
    );
}

#[test]
fn a_second_link_that_is_not_followed_never_takes_the_place_of_the_first() {
    let mut chain = Chain::new(512);
    chain.ebr(0, &[(5, 20_000, 9), (0x0f, 30_000, 9), (0x85, 40_000, 9)]);
    chain.ebr(20_000, &[(0x83, 2048, 2048)]);
    chain.ebr(30_000, &[(0x83, 2048, 2048)]);
    assert_eq!(chain.places(), [(22_048, 2048)]);
    let mut before = chain.after(&[]);
    before.add(MIB, MIB);
    assert_eq!(before.places(), [(2048, 2048), (22_048, 2048)]);
    chain.edit(|t| assert!(t.delete(5).is_ok()));
    assert_eq!(chain.places(), []);
    chain.ebr(0, &[(5, 0, 9), (0x0f, 30_000, 9)]);
    let broken = chain.table();
    let whole = Ebr.recover(&broken, &ground(&grown_topology())).unwrap();
    assert_eq!(chain.after(&Ebr.render(&broken, &whole)).table().damage, Vec::<String>::new());
}

#[test]
fn more_links_than_are_followed_are_not_made() {
    let mut chain = Chain::sized(512, 1 << 30);
    let mut table = chain.table();
    let before = table.clone();
    for n in 0..128 {
        let index =
            try_add(&mut table, part("83", (2 * n + 2) * MIB, MIB), Rules::Aligned).unwrap();
        assert_eq!(u64::from(index), n + 5);
    }
    assert!(try_add(&mut table, part("83", 300 * MIB, MIB), Rules::Aligned).is_err());
    let patches = Ebr.render(&before, &table);
    assert_eq!((patches.len(), patches.iter().filter(|p| p.after_flush).count()), (128, 1));
    chain = chain.after(&patches);
    assert_eq!((bare(&chain.table()), chain.table().damage), (bare(&table), Vec::new()));
}

#[test]
fn a_new_chain_replaces_what_is_no_chain() {
    let mut chain = Chain::new(4096);
    let create = |chain: &Chain, new: &New| {
        let inside = chain.inside();
        probe(&inside, 4096, Some(PartitionType::Mbr(5)), |probe| {
            Ebr.create(probe, &ground(&grown_topology()), new)
        })
    };
    chain.disk.put(AT, &[7; 4096]);
    assert!(probe(&chain.inside(), 4096, Some(PartitionType::Mbr(5)), |p| Ebr.read(p)).is_none());
    let table = create(&chain, &New::default()).unwrap();
    let mut after = table.clone();
    try_add(&mut after, part("83", MIB, MIB), Rules::Aligned).unwrap();
    try_add(&mut after, part("83", 3 * MIB, MIB), Rules::Aligned).unwrap();
    assert_eq!(steps(&Ebr.render(&table, &table), 4096), [(0, "EBR that leads to it", false)]);
    let patches = Ebr.render(&table, &after);
    every_state(&chain.disk, &outside(&patches), 4096, Cut::Sector);
    chain = chain.after(&patches);
    assert_eq!(bare(&chain.table()), bare(&after));
    assert_eq!(bytes(&chain.disk, AT, 446), [0; 446]);
    assert!(create(&chain, &New::default()).is_err(), "there is one");
    let gone = chain.after(&Ebr.erase(&after));
    assert!(create(&gone, &New::default()).is_ok());
    assert!(create(&gone, &New { entries: Some(7), ..New::default() }).is_err());
}

#[test]
fn by_gparts_rules_an_ebr_lies_a_track_before_its_partition() {
    let mut chain = Chain::sized(512, 1 << 30);
    for _ in 0..2 {
        chain.edit(|table| {
            let place = Request { size: Some(63 * 100 * 512), ..Request::default() };
            try_add(table, Wanted { place, ..part("freebsd", 0, 0) }, Rules::Gpart).unwrap();
        });
    }
    assert_eq!(chain.places(), [(63, 63 * 99), (63 * 101, 63 * 99)]);
    let table = chain.table();
    assert_eq!(table.taken, [0..63 * 512, 6300 * 512..6363 * 512]);
    assert_eq!(
        table.entries.iter().map(|e| table.counted(e)).collect::<Vec<_>>(),
        [0..6300 * 512, 6300 * 512..12_600 * 512]
    );
    assert_eq!(
        bytes(&chain.disk, AT + 446, 8)[5..],
        [0x23, 0x3f, 0x01],
        "by gpart's geometry of 1 GiB: 63 sectors, 64 heads"
    );
}
