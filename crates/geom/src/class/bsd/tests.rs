//! What is written comes back, byte for byte where nothing was meant to change.

use super::Bsd;
use crate::graph::{Disk, Graph};
use crate::patch::{self, Patch};
use crate::probe::{Budget, Limits, Probe};
use crate::route::Route;
use crate::scheme::{Geometry, Ground, Id, New, Scheme};
use crate::slices::{Dialect, Kind};
use crate::store::{Sparse, Store};
use crate::table::{Request, Rules, Table, Wanted};
use crate::topology::{Grain, Topology};

const MIB: u64 = 1 << 20;

/// A provider: its bytes, its sector, its byte 0 on the medium and what the table above says.
#[derive(Clone)]
struct Slice {
    disk: Sparse,
    sector: u64,
    base: u64,
    kind: Option<Kind>,
}

impl Slice {
    fn new(length: u64, sector: u64, base: u64, kind: Option<Kind>) -> Slice {
        Slice { disk: Sparse::new(length), sector, base, kind }
    }

    fn topology(&self) -> Topology {
        Topology::new(self.sector, self.disk.length())
    }

    fn probe<T>(&self, look: impl FnOnce(&Probe<'_>) -> T) -> T {
        let (route, stores) = (Route::store(0, self.disk.length()), vec![Box::new(self.disk.clone()) as Box<dyn Store>]);
        look(&Probe::new(&route, &stores, &Budget::new(Limits::default()), self.sector, Some(self.base), self.kind.as_ref()))
    }

    fn read(&self) -> Option<Table> {
        self.probe(|p| Bsd.read(p))
    }

    fn ground<T>(&self, on: impl FnOnce(&Ground<'_>) -> T) -> T {
        on(&Ground { topology: &self.topology(), base: self.base, kind: self.kind })
    }

    fn create(&self, new: &New) -> Table {
        self.ground(|ground| self.probe(|p| Bsd.create(p, ground, new))).unwrap()
    }

    /// The patches that change anything, written; and what undoes them.
    fn apply(&mut self, patches: Vec<Patch>) -> Vec<Patch> {
        let mut read = |at: u64, out: &mut [u8]| self.disk.read_at(out, at);
        let patches = patch::changes(patches, &mut read).unwrap();
        let back = patch::undo(&patches, &mut read).unwrap();
        for p in &patches {
            assert!(p.offset % self.sector == 0 && p.bytes.len() as u64 % self.sector == 0, "{} {}", p.offset, p.bytes.len());
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

    fn add(&self, table: &mut Table, kind: &str, start: Option<u64>, size: Option<u64>) -> Result<u32, crate::table::Refusal> {
        let place = Request { start, size, align: None };
        let kind = Bsd.kind_in(table, kind).unwrap();
        let wanted = Wanted { kind, place, index: None, label: None, uuid: None, attributes: 0 };
        self.ground(|ground| table.add(&Bsd, ground, wanted, Rules::Aligned))
    }
}

/// What both tables say, as far as it is on the disk.
fn same(a: &Table, b: &Table) {
    let entry = |t: &Table| -> Vec<_> { t.entries.iter().map(|e| (e.index, e.start, e.length, e.kind)).collect() };
    assert_eq!(entry(a), entry(b));
    assert_eq!((&a.usable, a.capacity, &a.kept, &a.taken), (&b.usable, b.capacity, &b.kept, &b.taken));
    assert_eq!((a.dialect, a.origin, a.id, a.geometry, &a.damage), (b.dialect, b.origin, b.id, b.geometry, &b.damage));
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
