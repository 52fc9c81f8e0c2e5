//! Written labels are read back, byte for byte where nothing was meant to change.

use super::Bsd;
use crate::base::patch::{self, Patch};
use crate::base::store::{Sparse, Store};
use crate::base::topology::{Topology, is_whole};
use crate::graph::{Disk, Graph};
use crate::mapping::route::Route;
use crate::mapping::slices::{Dialect, PartitionType};
use crate::probe::{Budget, Limits, Probe};
use crate::table::scheme::{Geometry, New, Scheme, TableSite};
use crate::table::{Request, Rules, Table, Wanted};

mod kept;

const MIB: u64 = 1 << 20;

/// A provider: its bytes, its sector, its byte 0 on the medium and what the table above says.
#[derive(Clone)]
struct Slice {
    disk: Sparse,
    sector: u64,
    base: u64,
    kind: Option<PartitionType>,
}

impl Slice {
    fn new(length: u64, sector: u64, base: u64, kind: Option<PartitionType>) -> Slice {
        Slice { disk: Sparse::new(length), sector, base, kind }
    }

    fn topology(&self) -> Topology {
        Topology::new(self.sector, self.disk.length())
    }

    fn probe<T>(&self, look: impl FnOnce(&Probe<'_>) -> T) -> T {
        let (route, stores) = (
            Route::store(0, self.disk.length()),
            vec![Box::new(self.disk.clone()) as Box<dyn Store>],
        );
        look(&Probe::new(
            &route,
            &stores,
            &Budget::new(Limits::default()),
            self.sector,
            Some(self.base),
            self.kind.as_ref(),
        ))
    }

    fn read(&self) -> Option<Table> {
        self.probe(|p| Bsd.read(p))
    }

    fn site<T>(&self, on: impl FnOnce(&TableSite<'_>) -> T) -> T {
        on(&TableSite { topology: &self.topology(), base: self.base, kind: self.kind })
    }

    fn create(&self, new: &New) -> Table {
        self.site(|site| self.probe(|p| Bsd.create(p, site, new))).unwrap()
    }

    /// The patches that change anything, written; and what undoes them.
    fn apply(&mut self, patches: Vec<Patch>) -> Vec<Patch> {
        let mut read = |at: u64, out: &mut [u8]| self.disk.read_at(out, at);
        let patches = patch::changes(patches, &mut read).unwrap();
        let back = patch::undo(&patches, &mut read).unwrap();
        for p in &patches {
            assert!(
                is_whole(p.offset, self.sector) && is_whole(p.bytes.len() as u64, self.sector),
                "{} {}",
                p.offset,
                p.bytes.len()
            );
            self.disk.put(p.offset, &p.bytes);
        }
        back
    }

    fn bytes(&self, at: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.disk.read_at(&mut bytes, at).unwrap();
        bytes
    }

    fn head(&self) -> Vec<u8> {
        self.bytes(0, 16384)
    }

    fn add(
        &self,
        table: &mut Table,
        kind: &str,
        start: Option<u64>,
        size: Option<u64>,
    ) -> Result<u32, crate::table::Refusal> {
        let place = Request { start, size, align: None };
        let kind = Bsd.kind_in(table, kind).unwrap();
        let wanted = Wanted { kind, place, index: None, label: None, uuid: None, attributes: 0 };
        self.site(|site| table.add(site, wanted, Rules::Aligned))
    }
}

/// Asserts that two tables agree in all fields that are on the disk.
fn same(a: &Table, b: &Table) {
    let entry = |t: &Table| -> Vec<_> {
        t.entries
            .iter()
            .map(|e| (e.partition.index, e.partition.start, e.partition.length, e.partition.kind))
            .collect()
    };
    assert_eq!(entry(a), entry(b));
    assert_eq!(
        (&a.usable, a.capacity, &a.kept, &a.taken),
        (&b.usable, b.capacity, &b.kept, &b.taken)
    );
    assert_eq!(
        (a.dialect, a.origin, a.id, a.geometry, &a.damage),
        (b.dialect, b.origin, b.id, b.geometry, &b.damage)
    );
}

#[test]
fn freebsd_label_is_gparts_own() {
    let mut slice = Slice::new(488_397_088 * 512, 512, 40 * 512, None);
    let new = New { geometry: Some(Geometry { sectors: 63, heads: 16 }), ..New::default() };
    let before = slice.create(&new);
    let mut after = before.clone();
    slice.add(&mut after, "freebsd-ufs", Some(0), Some(188_743_680 * 512)).unwrap();
    let patches = Bsd.render(&before, &after);
    assert_eq!(patches.iter().map(|p| (p.offset, p.bytes.len())).collect::<Vec<_>>(), [(512, 512)]);
    let mut want = [0; 512];
    let fields: [(usize, u32); 15] = [
        (0, 0x8256_4557),
        (40, 512),
        (44, 63),
        (48, 16),
        (52, 484_520),
        (56, 1008),
        (60, 488_397_088),
        (72, 3600),
        (132, 0x8256_4557),
        (136, 0x0008_402f),
        (140, 8192),
        (148, 188_743_680),
        (160, 7),
        (180, 488_397_088),
        (184, 0),
    ];
    fields.iter().for_each(|(at, n)| want[*at..*at + 4].copy_from_slice(&n.to_le_bytes()));
    assert_eq!(patches[0].bytes, want);
    slice.apply(patches);
    same(&slice.read().unwrap(), &after);
}

const DIALECTS: [Dialect; 3] = [Dialect::FreeBsd, Dialect::OpenBsd, Dialect::NetBsd];

/// Every dialect and sector, on a whole disk and in slices of a type that says the dialect or does
/// not.
fn product() -> Vec<(Dialect, Slice, New)> {
    let mut all = Vec::new();
    for dialect in DIALECTS {
        for sector in [512, 4096] {
            for (base, said) in
                [(0, false), (63 * sector, true), (63 * sector, false), (MIB, true), (MIB, false)]
            {
                for entries in [None, Some(8), Some(16)] {
                    let byte = match dialect {
                        Dialect::FreeBsd => 0xa5,
                        Dialect::OpenBsd => 0xa6,
                        _ => 0xa9,
                    };
                    let slice = Slice::new(
                        200 * MIB,
                        sector,
                        base,
                        Some(PartitionType::Mbr(byte)).filter(|_| said),
                    );
                    // What is beside the label stays.
                    let mut slice = slice;
                    slice.disk.put(0, &[0x5a; 16384]);
                    let medium = Some(base + 300 * MIB);
                    all.push((
                        dialect,
                        slice,
                        New {
                            dialect: Some(dialect),
                            entries,
                            random: [7; 16],
                            medium,
                            ..New::default()
                        },
                    ));
                }
            }
        }
    }
    all
}

#[test]
fn what_is_made_comes_back_and_can_be_taken_back() {
    for (dialect, mut slice, new) in product() {
        let first = slice.head();
        let created = slice.create(&new);
        slice.apply(Bsd.render(&created, &created));
        let empty = slice.head();
        let changed: Vec<usize> = (0..16384).filter(|&i| first[i] != empty[i]).collect();
        let label =
            if dialect == Dialect::OpenBsd { 512 } else { usize::try_from(slice.sector).unwrap() };
        assert!(
            changed.iter().all(|i| (label..label + 512).contains(i)),
            "{dialect:?} {changed:?}"
        );
        let read = slice.read().unwrap();
        same(&read, &created);
        assert_eq!(read.usable, 0..200 * MIB, "{dialect:?}");
        assert!(slice.apply(Bsd.render(&read, &read)).is_empty());

        let mut table = read.clone();
        for (kind, size) in [("4.2BSD", 64 * MIB), ("swap", 16 * MIB), ("MSDOS", 8 * MIB)] {
            slice.add(&mut table, kind, None, Some(size)).unwrap();
        }
        let sub = |i: u32| i - u32::from(dialect == Dialect::NetBsd && i == 5);
        assert_eq!(
            table.entries.iter().map(|e| sub(e.partition.index)).collect::<Vec<_>>(),
            [1, 2, 4],
            "{dialect:?}"
        );
        let back = slice.apply(Bsd.render(&read, &table));
        assert_eq!(back.len(), 1);
        let full = slice.read().unwrap();
        same(&full, &table);
        tasted_without_findings(&slice, &full);

        // Every field of an entry but what is meant stays as it is.
        let mut edited = full.clone();
        edited
            .resize(
                &TableSite { topology: &slice.topology(), base: slice.base, kind: slice.kind },
                2,
                &Request { size: Some(8 * MIB), ..Request::default() },
                Rules::Aligned,
            )
            .unwrap();
        edited.delete(1).unwrap();
        let again = slice.apply(Bsd.render(&full, &edited));
        same(&slice.read().unwrap(), &edited);
        slice.apply(again);
        same(&slice.read().unwrap(), &full);
        slice.apply(back);
        assert_eq!(slice.head(), empty);

        slice.apply(Bsd.render(&read, &table));
        let full = slice.read().unwrap();
        let mut none = full.clone();
        for index in full.entries.iter().map(|e| e.partition.index) {
            none.delete(index).unwrap();
        }
        slice.apply(Bsd.render(&full, &none));
        assert_eq!(slice.head(), empty, "{dialect:?}");
        slice.apply(Bsd.erase(&none));
        assert!(slice.read().is_none());
    }
}

/// Asserts that a slice is tasted without findings, as the table has it.
fn tasted_without_findings(slice: &Slice, table: &Table) {
    let (disk, name) = match slice.kind {
        None => (slice.disk.clone(), ""),
        Some(PartitionType::Mbr(byte)) => (in_mbr(slice, byte), "s1"),
        Some(other) => panic!("{other:?}"),
    };
    let start = if slice.kind.is_none() { slice.base } else { 0 };
    let topology = Topology::new(slice.sector, disk.length());
    let graph = Graph::taste(
        vec![Disk { start: Some(start), ..Disk::new("", Box::new(disk), topology) }],
        Limits::default(),
    );
    let found: Vec<_> = graph.providers.iter().flat_map(|p| &p.findings).collect();
    assert!(found.is_empty(), "{found:?}");
    let slices = graph.providers[graph.find(name).unwrap()].slices().unwrap();
    let got: Vec<_> = slices
        .entries
        .iter()
        .map(|e| {
            (
                e.partition.index,
                e.partition.start,
                e.partition.length,
                e.partition.kind,
                e.suffix.clone(),
            )
        })
        .collect();
    let want: Vec<_> = table
        .entries
        .iter()
        .map(|e| {
            (
                e.partition.index,
                e.partition.start,
                e.partition.length,
                e.partition.kind,
                Bsd.suffix(e),
            )
        })
        .collect();
    assert_eq!(got, want);
}

/// The disk that has `slice` as its first MBR partition.
fn in_mbr(slice: &Slice, byte: u8) -> Sparse {
    let mut disk = Sparse::new(slice.base + slice.disk.length() + MIB);
    let sectors = |bytes: u64| u32::try_from(bytes / slice.sector).unwrap().to_le_bytes();
    let mut entry = [0; 66];
    entry[4] = byte;
    entry[8..12].copy_from_slice(&sectors(slice.base));
    entry[12..16].copy_from_slice(&sectors(slice.disk.length()));
    entry[64..].copy_from_slice(&[0x55, 0xaa]);
    disk.put(446, &entry);
    slice.disk.runs().for_each(|(at, bytes)| disk.put(slice.base + at, bytes));
    disk
}
