//! Requests by size and alignment as pictures: a cell has the share of each verdict as its width,
//! and the number of requests as its strength.

use super::section;
use crate::command::trace::histogram::{Line, VERDICTS, lines, size_of};
use crate::render::charts::lanes::text_of;
use crate::render::traffic::layer_name;
use crate::traffic::{Layer, Row};
use crate::words::size;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use trueline_geom::audit::io::{CLASSES, class_of, class_start};

/// Layers with pictures of their own, at most: those that miss most.
const DRAWN: usize = 8;
/// Width and height of a cell, and the room on the left and below, in pixels.
const CELL: (usize, usize) = (34, 25);
const LEFT: usize = 52;
const BELOW: usize = 40;
/// Room above the cells for the name of a unit's line, in pixels.
const ABOVE: usize = 16;

/// Room that the name of a unit's line takes, in pixels.
const NAME: usize = 130;

/// Requests of one size and alignment, in the order of [`VERDICTS`].
type ByVerdict = [u64; VERDICTS.len()];

/// Pictures of one kind of requests of a layer.
struct Map<'a> {
    title: &'a str,
    /// Cells by class of size and of alignment.
    cells: BTreeMap<(usize, usize), ByVerdict>,
    /// The unit in bytes, where alignments and sizes are measured by it: a power of two, the first
    /// of which is at byte 0 of the disk.
    unit: Option<u64>,
}

/// Writes the pictures of each layer that has any.
pub(super) fn write(layers: &[Layer], rows: &[&Row], out: &mut dyn Write) -> io::Result<()> {
    let all = lines(layers);
    if all.is_empty() {
        return Ok(());
    }
    let about = "Up: the size of a read or a write, from the power of two that is named to below \
        the next. Across: the largest power of two that divides its first byte on the disk. The \
        widths in a cell are the shares of its verdicts; the more requests, the stronger.";
    section("sizes", "Size and alignment", about, out)?;
    for row in rows.iter().take(DRAWN) {
        let is_own = |line: &&Line| layers[line.layer].id == row.all.id;
        let own: Vec<&Line> = all.iter().filter(is_own).collect();
        if own.is_empty() {
            continue;
        }
        writeln!(out, "<h3>{}</h3>\n<div class=\"maps\">", text_of(&layer_name(&row.all)))?;
        let unit = Some(row.all.unit).filter(|unit| {
            row.disks.iter().all(|disk| disk.unit == *unit && disk.phase == 0)
                && unit.is_power_of_two()
        });
        for (kind, title) in ["Writes", "Reads"].into_iter().enumerate() {
            let map = Map::new(title, own.iter().filter(|line| line.kind == kind), unit);
            if !map.cells.is_empty() {
                writeln!(
                    out,
                    "<figure class=\"heat\"><figcaption>{title}</figcaption>\n{}</figure>",
                    map.draw()
                )?;
            }
        }
        writeln!(out, "</div>")?;
    }
    if rows.len() > DRAWN {
        writeln!(out, "<p class=\"dim\">and {} more layers</p>", rows.len() - DRAWN)?;
    }
    writeln!(out, "</section>")
}

impl<'a> Map<'a> {
    fn new<'l>(
        title: &'a str,
        lines: impl Iterator<Item = &'l &'l Line>,
        unit: Option<u64>,
    ) -> Map<'a> {
        let mut cells: BTreeMap<(usize, usize), ByVerdict> = BTreeMap::new();
        for line in lines {
            for (class, &count) in line.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                let cell = cells.entry((class_of(line.size), class)).or_default();
                cell[line.verdict] += count;
            }
        }
        Map { title, cells, unit }
    }

    /// Classes from the least to the greatest that has a request, or the unit's boundary.
    fn range(&self, of: impl Fn(&(usize, usize)) -> usize) -> (usize, usize) {
        let unit = self.unit.map(class_of);
        let used = self.cells.keys().map(of).chain(unit);
        let (least, most) = used.fold((CLASSES, 0), |(a, b), n| (a.min(n), b.max(n)));
        // One that is not used shows that there is nothing.
        (least.saturating_sub(1).max(1.min(least)), most)
    }

    fn draw(&self) -> String {
        let (sizes, alignments) = (self.range(|cell| cell.0), self.range(|cell| cell.1));
        let (across, up) = (alignments.1 - alignments.0 + 1, sizes.1 - sizes.0 + 1);
        let (width, height) = (LEFT + across * CELL.0 + 8, ABOVE + up * CELL.1 + BELOW);
        let x = |class: usize| LEFT + (class - alignments.0) * CELL.0;
        let y = |class: usize| ABOVE + (sizes.1 - class) * CELL.1;
        let most = self.cells.values().map(|cell| cell.iter().sum()).max().unwrap_or(1);
        let mut drawn = String::new();
        for size in sizes.0..=sizes.1 {
            for alignment in alignments.0..=alignments.1 {
                let place = (x(alignment), y(size));
                let cell = self.cells.get(&(size, alignment));
                draw_cell(
                    place,
                    cell.map(|cell| (cell, title_of(size, alignment, cell))),
                    most,
                    &mut drawn,
                );
            }
            let name = size_of(class_start(size));
            put(
                &mut drawn,
                format_args!(
                    "<text class=\"edge\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
                    LEFT - 6,
                    y(size) + CELL.1 / 2 + 4,
                    text_of(&name)
                ),
            );
        }
        let foot = ABOVE + up * CELL.1;
        for alignment in alignments.0..=alignments.1 {
            let name = size_of(class_start(alignment));
            put(
                &mut drawn,
                format_args!(
                    "<text class=\"edge\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                    x(alignment) + CELL.0 / 2,
                    foot + 16,
                    text_of(&name)
                ),
            );
        }
        put(
            &mut drawn,
            format_args!(
                "<text class=\"edge\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">first byte at a \
                multiple of</text>",
                LEFT + across * CELL.0 / 2,
                foot + 33
            ),
        );
        if let Some(unit) = self.unit {
            let at = class_of(unit);
            let (left, low) = (x(at), y(at) + CELL.1);
            let right = LEFT + across * CELL.0;
            let (anchor, from) = if left + NAME > right { ("end", right) } else { ("start", left) };
            put(
                &mut drawn,
                format_args!(
                    "<path class=\"unit\" d=\"M{left} {ABOVE}V{low}H{right}\"/>\
                        <text class=\"edge\" \
                    x=\"{from}\" y=\"11\" text-anchor=\"{anchor}\">a unit ({}) and more</text>",
                    size::short(unit)
                ),
            );
        }
        format!(
            "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
                role=\"img\" aria-label=\"{}\">{drawn}</svg>\n",
            text_of(&self.label())
        )
    }

    /// The picture in words, for readers without sight.
    fn label(&self) -> String {
        let cell = |(&(size, alignment), cell): (&(usize, usize), &ByVerdict)| {
            title_of(size, alignment, cell)
        };
        let cells: Vec<String> = self.cells.iter().map(cell).collect();
        format!("{} by size and alignment; {}", self.title, cells.join("; "))
    }
}

/// `8K at multiples of 512: 20 misaligned, 3 aligned`.
fn title_of(size: usize, alignment: usize, cell: &ByVerdict) -> String {
    let counts = VERDICTS.iter().zip(cell).filter(|(_, count)| **count > 0);
    let counts: Vec<String> = counts.map(|(name, count)| format!("{count} {name}")).collect();
    format!(
        "{} at multiples of {}: {}",
        size_of(class_start(size)),
        size_of(class_start(alignment)),
        counts.join(", ")
    )
}

/// Draws one cell; an empty one if nothing is in it.
fn draw_cell(
    (x, y): (usize, usize),
    cell: Option<(&ByVerdict, String)>,
    most: u64,
    drawn: &mut String,
) {
    let (wide, high) = (CELL.0 - 2, CELL.1 - 2);
    put(
        drawn,
        format_args!(
            "<rect class=\"empty\" x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{high}\"/>"
        ),
    );
    let Some((counts, title)) = cell else { return };
    let whole: u64 = counts.iter().sum();
    put(
        drawn,
        format_args!("<g class=\"l{}\"><title>{}</title>", level(whole, most), text_of(&title)),
    );
    let mut from = 0;
    for (name, &count) in VERDICTS.iter().zip(counts).filter(|(_, count)| **count > 0) {
        let left = place(from, whole, wide);
        from += count;
        let right = place(from, whole, wide);
        put(
            drawn,
            format_args!(
                "<rect class=\"v-{name}\" x=\"{:.1}\" y=\"{y}\" width=\"{:.1}\" \
                    height=\"{high}\"/>",
                many(x) + left,
                right - left
            ),
        );
    }
    put(
        drawn,
        format_args!(
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text></g>",
            x + wide / 2,
            y + high / 2 + 4,
            short(whole)
        ),
    );
}

/// The pixels of a cell of `wide` ones that `some` of `whole` requests take.
fn place(some: u64, whole: u64, wide: usize) -> f64 {
    super::shares::percent(some, whole) / 100.0 * many(wide)
}

#[allow(clippy::cast_precision_loss, reason = "pixels of a drawing")]
fn many(n: usize) -> f64 {
    n as f64
}

/// The strength of a cell of so many requests, from 1 to 4, in equal steps of the logarithm.
#[allow(clippy::cast_precision_loss, reason = "for a drawing")]
fn level(count: u64, most: u64) -> u8 {
    let share = (count as f64 + 1.0).ln() / (most as f64 + 1.0).ln();
    [0.25, 0.5, 0.75].iter().fold(1, |level, edge| level + u8::from(share > *edge))
}

/// A count of at most four characters: `999`, `1.2k`, `34k`, `5.6M`.
fn short(count: u64) -> String {
    let units = [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (1000, "k")];
    let Some((by, letter)) = units.into_iter().find(|(by, _)| count >= *by) else {
        return count.to_string();
    };
    let (whole, tenth) = (count / by, count % by / (by / 10));
    if whole < 10 { format!("{whole}.{tenth}{letter}") } else { format!("{whole}{letter}") }
}

fn put(drawn: &mut String, element: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = drawn.write_fmt(element);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_at_most_four_characters() {
        let all = [0, 7, 999, 1000, 1299, 9999, 10_000, 999_999, 5_600_000, 1 << 40];
        let short = all.map(short);
        assert_eq!(short, ["0", "7", "999", "1.0k", "1.2k", "9.9k", "10k", "999k", "5.6M", "1.0T"]);
    }

    #[test]
    fn more_requests_are_never_weaker() {
        let levels: Vec<u8> = (0..20).map(|power| level(1 << power, 1 << 19)).collect();
        assert!(levels.is_sorted() && levels[0] == 1 && levels[19] == 4, "{levels:?}");
        assert_eq!(level(1, 1), 4);
    }
}
