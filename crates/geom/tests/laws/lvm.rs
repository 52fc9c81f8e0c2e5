//! Logical volumes of LVM as cases of the laws.

use super::{Case, combinations};
use trueline_geom::class::lvm::chunks::{Chunks, Run, push};
use trueline_geom::mapping::segments::{Places, Segments};

/// Volumes of pieces, and volumes in chunks without and with an origin.
pub(super) fn cases(cases: &mut Vec<Case>) {
    for grains in combinations(2, &[1, 2, 3, 4, 6]) {
        let volumes = volumes().into_iter();
        cases.extend(volumes.map(|volume| Case::new("lvm", volume, &[30, 30], &grains)));
    }
    for grains in combinations(1, &[1, 2, 3, 4, 5, 6, 8, 9, 12]) {
        for (chunk, base) in [(6, 0), (6, 3), (8, 4), (12, 0)] {
            let volume = in_chunks(chunk, base, |_| true);
            cases.push(Case::new("lvm", volume, &[123], &grains));
        }
    }
    for grains in combinations(2, &[1, 2, 3, 4, 6]) {
        let volume = in_chunks(6, 3, |n| n % 3 != 1).over_origin(120);
        cases.push(Case::new("lvm", volume, &[123, 120], &grains));
    }
}

/// A thin volume of 120 bytes whose chunks lie in no order on a store of 123 bytes; one with an
/// origin has only those in its store for which `is_mapped` is true.
fn in_chunks(chunk: u64, base: u64, is_mapped: fn(u64) -> bool) -> Chunks {
    let count = (123 - base) / chunk;
    let mut runs = Vec::new();
    for first in (0..count).filter(|&first| is_mapped(first)) {
        // 3 is prime to every count here.
        let store = Some((first * 3 + 2) % count);
        push(&mut runs, Run { first, count: 1, store, is_shared: false });
    }
    Chunks::new("v/t".into(), count * chunk, chunk, base, runs)
}

/// Logical volumes of two physical ones with 30 bytes each: one range of each, stripes off their
/// starts, copies in unlike places, and stripes before a range.
fn volumes() -> Vec<Segments> {
    let range = |consumer, from| Places::Striped(0, vec![(consumer, from)]);
    let pieces = [
        vec![(27, range(0, 3)), (27, range(1, 2))],
        vec![(15, range(0, 0)), (24, range(1, 4)), (15, range(0, 15))],
        vec![(48, Places::Striped(4, vec![(0, 4), (1, 2)]))],
        vec![(29, Places::Copies(vec![(0, 0), (1, 1)]))],
        vec![(24, Places::Striped(3, vec![(1, 0), (0, 3)])), (15, range(0, 15))],
    ];
    let volume = |pieces| Segments::new("v/l".into(), pieces).unwrap();
    pieces.into_iter().map(volume).collect()
}
