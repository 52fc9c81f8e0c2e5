//! Contents of containers as cases of the laws.

use super::{Case, combinations, index, shown};
use trueline_geom::base::topology::Translation;
use trueline_geom::class::container::{BlockTable, Contents, Home, Parent, Place};
use trueline_geom::mapping::geom::Extent;
use trueline_geom::mapping::tables::Tables;

/// Table of blocks, each with its first byte in the file; one without a place is its parent's.
#[derive(Clone)]
struct Blocks {
    block: u64,
    places: Vec<Option<u64>>,
}

impl BlockTable for Blocks {
    fn block(&self) -> u64 {
        self.block
    }

    fn find(&self, nth: u64, _length: u64, _tables: &Tables<'_>) -> Result<Place, Extent> {
        Ok(self.places[index(nth)].map_or(Place::Absent, Place::At))
    }
}

impl Blocks {
    /// A disk whose blocks lie one after another from byte `base` of the file, `stride` apart, in
    /// an order that is not theirs.
    fn strewn(block: u64, stride: u64, base: u64, count: u64) -> Blocks {
        // 5 is prime to every count here.
        let places = (0..count).map(|nth| Some(base + (nth * 5 + 2) % count * stride)).collect();
        Blocks { block, places }
    }

    fn contents(self, translation: Translation, parent: Parent) -> Contents<Blocks> {
        let length = self.block * self.places.len() as u64;
        let home = Home::File(FILE);
        Contents { table: self, length, home, parent, sector: None, translation }
    }

    /// What its table says of where blocks are.
    fn looked_at(&self) -> Translation {
        let here = (0..).zip(&self.places);
        let blocks = here.filter_map(|(nth, place)| Some((nth * self.block, (*place)?)));
        Translation::by_table(self.block, blocks)
    }
}

/// Bytes of a file.
const FILE: u64 = 120;

/// Every class of containers has the same geom; what a format says in its header, what a table says
/// that was looked at, and blocks that a parent has.
pub(super) fn cases(cases: &mut Vec<Case>) {
    let shapes = [(4, 4, 0, 12), (4, 4, 3, 12), (4, 6, 1, 12), (6, 6, 6, 11), (6, 8, 2, 8)];
    for class in shown() {
        for grains in combinations(1, &[1, 2, 3, 4, 6, 8, 12]) {
            for (block, stride, base, count) in shapes {
                let blocks = Blocks::strewn(block, stride, base, count);
                let by_format = Translation::by_stride(block, stride, base);
                let by_table = blocks.looked_at();
                for known in [by_format, by_table] {
                    let contents = blocks.clone().contents(known, Parent::None);
                    let case = Case::new(class, contents, &[FILE], &grains);
                    let shape = format!("{block}, {stride}, {base}, {count}");
                    cases.push(Case { what: format!("blocks {shape}: {}", case.what), ..case });
                }
            }
        }
    }
    for grains in combinations(2, &[1, 2, 3, 4, 6]) {
        let mut blocks = Blocks::strewn(6, 6, 3, 8);
        blocks.places.iter_mut().step_by(3).for_each(|place| *place = None);
        let known = Translation::by_format(6, 3);
        let contents = blocks.contents(known, Parent::Here(48));
        cases.push(Case::new("qcow2", contents, &[FILE, 48], &grains));
    }
}
