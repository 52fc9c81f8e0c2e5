//! Cost of I/O off a boundary, counted over one period in closed form.
//!
//! An operation is a read or write of one unit. A unit written only in part is read first where it
//! is a read-modify-write unit. Relative to the same I/O on the grain, these are the two numbers of
//! every finding.
//!
//! # Writes that a file system makes
//! | file system | size | begins on | |
//! |---|---|---|---|
//! | of blocks | a block | a multiple of the block | one write, [`cost`] |
//! | of blocks and fragments (UFS) | a block | a multiple of the block | [`cost`] |
//! | | 1 to 7 fragments | a multiple of the fragment, within one block | [`cost`] of the fragment: every end is one of a fragment |
//! | of blocks and clusters (ext4 bigalloc) | a block | a multiple of the block | [`cost`] of the block: a cluster is room, not a write |
//!
//! Each size is compared with each unit by itself ([`in_place_cost`]): a unit that a block does not
//! fill a fragment fills still less. No mix of sizes is invented: the share of fragments among the
//! writes depends on the workload.

use super::gcd;

/// Cost of writing in blocks of a layer's own size on a unit beneath it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Share of naturally aligned I/Os that touch one unit more than they need, from 0 to 1.
    pub straddle: f64,
    /// Device operations per such write, relative to the same write on the grain.
    pub rmw_factor: f64,
}

/// Counts over one period of writes of one size at naturally aligned places on a unit.
struct Fall {
    /// Positions in one period.
    positions: u64,
    /// Positions that touch a unit more than needed.
    straddling: u64,
    /// Units touched, summed over the positions.
    touched: u64,
    /// Units touched only in part, summed over the positions.
    partial: u64,
}

/// Counts for writes of `block` bytes at `remainder + k × block` on units of `unit` bytes.
fn fall(block: u64, unit: u64, remainder: u64) -> Fall {
    let g = gcd(block, unit);
    let positions = unit / g;
    let rest = remainder % g;
    let need = block.div_ceil(unit);
    // Position j begins `rest + g·j` past a boundary and needs one unit more when that is past the
    // slack.
    let slack = need * unit - block;
    let straddling = positions - slack / g - u64::from(rest == 0);
    // Both ends lie on a boundary at one position each, and only if the rest is 0.
    let clean = u64::from(rest == 0);
    let partial = if block < unit { positions + straddling } else { 2 * (positions - clean) };
    Fall { positions, straddling, touched: positions * need + straddling, partial }
}

/// A ratio of two counts; both are far below 2^53 for any block and unit in use.
#[allow(clippy::cast_precision_loss, reason = "a share for people, not an address")]
pub(super) fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b as f64
}

/// The cost of a layer that does I/O in `block` bytes and begins `remainder` bytes past a boundary
/// of `unit` bytes.
///
/// `rmw`: units written in part are read first (a physical sector, an indirection unit); otherwise
/// a unit touched is simply one operation more (a chunk of a stripe). `None` for sizes no device
/// has (0, or above 2^48).
pub fn cost(block: u64, unit: u64, remainder: u64, rmw: bool) -> Option<Cost> {
    let sane = |v: u64| (1..=1 << 48).contains(&v);
    (sane(block) && sane(unit)).then_some(())?;
    let (off, on) = (fall(block, unit, remainder), fall(block, unit, 0));
    let ops = |f: &Fall| f.touched + if rmw { f.partial } else { 0 };
    Some(Cost {
        straddle: ratio(off.straddling, off.positions),
        rmw_factor: ratio(ops(&off), ops(&on)),
    })
}

/// The cost of writing pieces of `piece` bytes, each in its natural place, on a read-modify-write
/// unit that does not divide them. A unit written in part is read first; the cost is relative to
/// writes of as many whole units. `None` for whole units.
pub fn in_place_cost(piece: u64, unit: u64) -> Option<Cost> {
    (piece > 0 && unit > 0 && piece <= 1 << 48 && unit <= 1 << 48 && !piece.is_multiple_of(unit))
        .then_some(())?;
    let f = fall(piece, unit, 0);
    let factor = ratio(f.touched + f.partial, f.positions * piece.div_ceil(unit));
    Some(Cost { straddle: ratio(f.straddling, f.positions), rmw_factor: factor })
}

/// Write amplification: bytes that a device writes for one of a layer. Writes of `write` bytes
/// begin on any multiple of `grid` past `remainder`; units of `unit` bytes are written whole only.
/// `None` for sizes no device has, as in [`cost`].
///
/// A 4096-byte write on a 16384-byte indirection unit comes to 4. Where a file system hands out
/// blocks smaller than what is written, `grid` is its block: a 16384-byte page on a grid of 4096
/// bytes comes to 1.75 on such a unit, in place to 1.
pub fn amplification(write: u64, grid: u64, unit: u64, remainder: u64) -> Option<f64> {
    let sane = |v: u64| (1..=1 << 48).contains(&v);
    (sane(write) && sane(grid) && sane(unit)).then_some(())?;
    let g = gcd(grid, unit);
    let (positions, rest) = (unit / g, remainder % g);
    let need = write.div_ceil(unit);
    let slack = need * unit - write;
    // Position j begins `rest + g·j` past a boundary; up to the slack it touches no more than it
    // needs.
    let fitting = if rest > slack { 0 } else { (slack - rest) / g + 1 };
    let touched =
        u128::from(positions) * u128::from(need) + u128::from(positions - fitting.min(positions));
    // Units touched by one write, on average; then their bytes.
    let mean = ratio(u64::try_from(touched).ok()?, positions);
    Some(mean * ratio(unit, write))
}
