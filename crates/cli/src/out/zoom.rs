//! A start that misses its grain, magnified: a handful of units, and the layer's first blocks lying across them.
//!
//! Addresses here count from the unit before the one in which the start lies, so that every boundary is a multiple of the
//! unit.

use super::svg::Canvas;
use super::{size, words};
use crate::report::{Finding, Provider};
use trueline_geom::topology::{Grain, gcd};

/// Pixels a magnification takes.
pub(super) const WIDTH: u64 = 466;
pub(super) const HEIGHT: u64 = 132;

/// More blocks than this are drawn as one band, with only those that cross a boundary apart.
const BLOCKS: u64 = 48;

/// What is magnified.
struct View {
    /// Left edge, in pixels.
    x: u64,
    unit: u64,
    /// The start that misses.
    start: u64,
    /// Bytes shown.
    shown: u64,
}

impl View {
    fn new(x: u64, f: &Finding, block: u64) -> View {
        // Two blocks and what surrounds them; of large blocks, their beginning.
        let units = if block <= f.unit.saturating_mul(12) { 2 * block.div_ceil(f.unit) } else { 6 };
        let shown = (units.max(2) + 2).saturating_mul(f.unit);
        View { x, unit: f.unit, start: f.unit.saturating_add(f.remainder), shown }
    }

    fn at(&self, byte: u64) -> u64 {
        let pixels = u128::from(byte.min(self.shown)) * u128::from(WIDTH) / u128::from(self.shown.max(1));
        self.x + u64::try_from(pixels).unwrap_or(0)
    }

    /// Whether `[from, to)` touches more units than its length needs.
    fn crosses(&self, from: u64, to: u64) -> bool {
        let Some(grain) = Grain::new(self.unit, 0) else { return false };
        let (Some(first), Some(last)) = (grain.previous(from), grain.next(to)) else { return false };
        (last - first) / self.unit > (to - from).div_ceil(self.unit)
    }
}

/// Whether a finding can be magnified: something begins past a boundary, in numbers that a drawing can hold.
pub(super) fn shows(f: &Finding) -> bool {
    matches!(f.rule, "TL0001" | "TL0003" | "TL0017") && f.unit > 0 && f.unit < 1 << 48 && (1..f.unit).contains(&f.remainder)
}

/// Draws what `f` says of `p`, with its top left corner at `x`, `y`.
pub(super) fn draw(canvas: &mut Canvas, x: u64, y: u64, f: &Finding, p: Option<&Provider>) {
    let bearing = p.is_none_or(|p| p.data_bearing);
    let known = p.and_then(|p| p.block_size).filter(|b| (1..1 << 48).contains(b));
    let block = known.unwrap_or(f.unit);
    let view = View::new(x, f, block);
    let title = format!("{} begins {} past a boundary of {}", words::name(&f.provider), words::bytes(f.remainder), size::human(f.unit));
    canvas.text(x, y + 12, if bearing { "tl-bad tl-b" } else { "tl-ink tl-b" }, "start", WIDTH, &title);
    let blocks = y + 24;
    if bearing {
        draw_blocks(canvas, &view, blocks, block);
    }
    draw_grid(canvas, &view, blocks - 4, y + 60);
    draw_units(canvas, &view, y + 60, f);
    // From the boundary to the start, between the two rows: the miss itself.
    let (boundary, start) = (view.at(f.unit), view.at(view.start));
    canvas.rect(boundary, y + 50, (start - boundary).max(2), 6, "tl-miss", &format!("{} past the boundary", words::bytes(f.remainder)));
    canvas.line(start, blocks - 4, y + 84, "tl-start");
    let blocks_are = match known {
        _ if !bearing => format!("byte {}; it only carries what stands on it: nothing does I/O from here", f.offset),
        Some(b) => format!("byte {}; above its blocks of {}, below units of {}", f.offset, size::human(b), size::human(f.unit)),
        None => format!(
            "byte {}; above writes of one unit, its block size not being known, below the units of {}",
            f.offset,
            size::human(f.unit)
        ),
    };
    canvas.text(x, y + 116, "tl-dim", "start", WIDTH, &words::cost(f).unwrap_or_default());
    canvas.text(x, y + 130, "tl-dim", "start", WIDTH, &blocks_are);
}

/// The boundaries, carried up through the blocks that lie across them.
fn draw_grid(canvas: &mut Canvas, view: &View, top: u64, bottom: u64) {
    for nth in 1..view.shown / view.unit {
        canvas.line(view.at(nth * view.unit), top, bottom, "tl-grid");
    }
}

/// The layer's own blocks, those that cross a boundary in red.
fn draw_blocks(canvas: &mut Canvas, view: &View, y: u64, block: u64) {
    let room = view.shown.saturating_sub(view.start);
    let count = room.div_ceil(block);
    if count > BLOCKS {
        let (from, to) = (view.at(view.start), view.at(view.shown));
        canvas.rect(from, y, to - from, 22, "tl-block", &format!("blocks of {}", words::bytes(block)));
        // Only the block on each boundary can cross it.
        let mut boundary = view.unit.saturating_mul(2);
        let first = Grain::new(block, view.start);
        while boundary < view.shown {
            if let Some(from) = first.and_then(|g| g.previous(boundary)).filter(|&from| from < boundary) {
                draw_block(canvas, view, y, from, block);
            }
            boundary += view.unit;
        }
        return;
    }
    for nth in 0..count {
        draw_block(canvas, view, y, view.start + nth * block, block);
    }
}

fn draw_block(canvas: &mut Canvas, view: &View, y: u64, from: u64, block: u64) {
    let to = from.saturating_add(block);
    let crosses = view.crosses(from, to);
    // A block larger than a unit is off the grain at both ends even where it touches no unit more than it must.
    let (class, says) =
        if crosses { ("tl-block tl-cross", "crosses a boundary") } else { ("tl-block", "touches no unit more than it must") };
    let (left, right) = (view.at(from), view.at(to));
    canvas.rect(left, y, (right - left).max(3), 22, class, &format!("a block of {}: {says}", words::bytes(block)));
}

/// The units, their boundaries and the addresses of those that have room for one.
fn draw_units(canvas: &mut Canvas, view: &View, y: u64, f: &Finding) {
    // The address of the boundary before the start; on a disk with a phase it may lie before byte 0.
    let boundary = i128::from(f.offset) - i128::from(f.remainder);
    let count = view.shown / view.unit;
    let label = 7 * u64::try_from(boundary.abs().max(1).to_string().len()).unwrap_or(20) + 14;
    let every = label.div_ceil((WIDTH / count).max(1)).max(1);
    for nth in 0..count {
        let (from, to) = (view.at(nth * view.unit), view.at((nth + 1) * view.unit));
        let address = boundary + (i128::from(nth) - 1) * i128::from(view.unit);
        if address >= 0 {
            let class = if gcd(nth, 2) == 2 { "tl-unit" } else { "tl-unit tl-odd" };
            canvas.rect(from, y, to - from, 20, class, &format!("unit of {} at byte {address}", words::bytes(view.unit)));
            // The boundary that counts always has its address.
            if (nth + every - 1).is_multiple_of(every) && from + label <= view.x + WIDTH + 14 {
                canvas.line(from, y, y + 26, "tl-tick");
                canvas.text(from, y + 37, "tl-num", "start", WIDTH, &address.to_string());
            }
        }
    }
}
