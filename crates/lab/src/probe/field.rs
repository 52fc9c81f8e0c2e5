//! The field of a search: the grains that are looked for, and the requests that can tell them
//! apart.

use trueline_geom::base::topology::Grain;

/// Grains and places of one search.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) grains: Vec<Grain>,
    pub(super) lengths: Vec<u64>,
    pub(super) positions: Vec<u64>,
    /// The distance in bytes between the starts of places that requests are made at: a multiple of
    /// every grain's size, and twice the largest.
    pub(super) pitch: u64,
    /// Half of the distance between two boundaries that the positions cannot tell apart; 0 if they
    /// tell all apart.
    pub(super) blur: u64,
}

/// The doublings of `first` up to `last`.
pub(super) fn doublings(first: u64, last: u64) -> Vec<u64> {
    std::iter::successors(Some(first), |at| at.checked_mul(2))
        .take_while(|&at| at <= last)
        .collect()
}

/// All grains of `size` bytes whose phases are `first` and steps of `step` bytes behind it.
fn phases(size: u64, first: u64, step: u64) -> impl Iterator<Item = Grain> {
    (0..size / step.max(1)).filter_map(move |nth| Grain::new(size, first + nth * step))
}

impl Field {
    /// All grains from two sectors up to `largest` bytes, at every sector.
    pub(super) fn fine(sector: u64, largest: u64) -> Field {
        let sizes = doublings(sector * 2, largest);
        Field {
            grains: sizes.iter().flat_map(|&size| phases(size, 0, sector)).collect(),
            lengths: doublings(sector * 2, largest * 2),
            positions: (0..largest * 2 / sector).map(|nth| nth * sector).collect(),
            pitch: largest * 4,
            blur: 0,
        }
    }

    /// The same field for a medium that turns: a cut costs a turn whatever the length, so the
    /// longest requests tell all sizes apart.
    pub(super) fn of_turns(self) -> Field {
        let lengths = self.lengths.last().copied().into_iter().collect();
        Field { lengths, ..self }
    }

    /// Grains of more than one unit of `inner` up to `largest` bytes, at its boundaries.
    pub(super) fn above(inner: Grain, largest: u64) -> Field {
        let (unit, first) = (inner.size(), inner.phase());
        let sizes = doublings(unit * 2, largest);
        Field {
            grains: sizes.iter().flat_map(|&size| phases(size, first, unit)).collect(),
            lengths: doublings(unit, largest * 2),
            positions: (0..largest * 2 / unit).map(|nth| first + nth * unit).collect(),
            pitch: largest * 8,
            blur: 0,
        }
    }

    /// Grains above `least` bytes up to `largest`, at steps of `least` from one boundary of
    /// `inner` on.
    pub(super) fn coarse(inner: Grain, least: u64, largest: u64) -> Field {
        let sizes = doublings(least * 2, largest);
        let first = inner.phase();
        let half = least / 2;
        Field {
            grains: sizes.iter().flat_map(|&size| phases(size, first + half, least)).collect(),
            lengths: doublings(least * 2, (largest / 4).clamp(least * 2, 4 << 20)),
            positions: (0..largest * 2 / least).map(|nth| first + nth * least).collect(),
            pitch: largest * 4,
            blur: half,
        }
    }

    /// Grains above `least` bytes up to `largest`, at steps of half of `least` from byte 0 on: most
    /// chunks begin there. Requests are short: longer ones are faster where two drives share them;
    /// and two steps long or more, so that each boundary is inside of one.
    pub(super) fn of_sets(least: u64, largest: u64) -> Field {
        let sizes = doublings(least * 2, largest);
        let (half, quarter) = (least / 2, least / 4);
        Field {
            grains: sizes.iter().flat_map(|&size| phases(size, 0, half)).collect(),
            lengths: doublings(least, least * 2),
            positions: (0..largest * 2 / half).map(|nth| quarter + nth * half).collect(),
            pitch: largest * 4,
            blur: quarter,
        }
    }

    /// Grains of the size of `found` around its phase, a sector apart, within `blur` bytes.
    pub(super) fn around(found: Grain, blur: u64, sector: u64) -> Field {
        let size = found.size();
        // From a boundary on, so that no phase is below 0.
        let first = found.phase() + size - blur;
        let steps = 2 * blur / sector;
        let near: Vec<u64> = (0..=steps).map(|nth| first + nth * sector).collect();
        let lengths = vec![blur * 2];
        let start = first - blur * 2;
        Field {
            grains: near.iter().filter_map(|&phase| Grain::new(size, phase)).collect(),
            lengths,
            positions: (0..2 * steps).map(|nth| start + nth * sector).collect(),
            pitch: size * 4,
            blur: 0,
        }
    }
}
