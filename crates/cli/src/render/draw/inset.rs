//! A start that misses its grain, magnified on a terminal: the layer's first blocks above the units
//! they lie across.

use super::miss::{Miss, View};
use crate::style::Style;
use crate::words::{self, columns, escape, size};
use anstyle::AnsiColor;
use std::io;

/// Columns for the names of rows.
const NAMES: usize = 26;
/// Most blocks that are drawn one by one.
const BLOCKS: u64 = 16;

/// Writes a miss in lines of at most `width` columns.
pub(super) fn write(
    miss: &Miss<'_>,
    width: usize,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    let red = AnsiColor::Red.on_default().bold();
    let (mark, title) = (style.glyph("✗", "x"), miss.title());
    write!(out, "{red}")?;
    columns::wrap(&format!("{mark} "), 2, &title, 2, style.width, out)?;
    write!(out, "{red:#}")?;
    let view = View::new(miss);
    let ruler = Ruler::new(&view, width.saturating_sub(NAMES + 1));
    // Without room for the ruler, words have to do.
    if NAMES + ruler.column(view.shown) < width {
        write_ruler(miss, &view, &ruler, width, out, style)?;
    }
    if let Some(cost) = miss.finding.and_then(words::cost) {
        columns::wrap("costs: ", 7, &cost, 7, style.width, out)?;
    }
    for (nth, fix) in miss.finding.iter().flat_map(|f| f.fix.iter().enumerate()) {
        let head = words::fix_head(nth);
        columns::wrap(head, head.len(), &escape::plain(fix), head.len(), style.width, out)?;
    }
    Ok(())
}

/// The blocks above the units, with the addresses of the boundaries.
fn write_ruler(
    miss: &Miss<'_>,
    view: &View,
    ruler: &Ruler,
    width: usize,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    let red = AnsiColor::Red.on_default().bold();
    let lba = words::sector(miss.offset, miss.provider)
        .map_or(String::new(), |lba| format!(" (LBA {lba})"));
    let says = format!("{}: byte {}{lba}", words::name(&miss.provider.provider), miss.offset);
    let (arrow, at) = (style.glyph("↓", "v"), NAMES + ruler.column(view.start));
    // The label goes beside the arrow, on the side that has room.
    if at + 2 + says.chars().count() > width {
        writeln!(out, "{says:>0$} {arrow}", at.saturating_sub(1))?;
    } else {
        writeln!(out, "{:at$}{arrow} {says}", "")?;
    }
    let blocks = draw_blocks(view, ruler, style);
    writeln!(out, "{:NAMES$}{red}{blocks}{red:#}", fit(miss.blocks()))?;
    write_operations(miss, view, out)?;
    let units: String = ruler.draw(view.boundaries().chain([view.shown]), '─', style);
    writeln!(out, "{:NAMES$}{units}", fit(format!("{} of {}", miss.what, size::human(view.unit))))?;
    write_addresses(miss, view, ruler, width, out)
}

fn fit(name: String) -> String {
    name.chars().take(NAMES - 1).collect()
}

/// A scale from bytes to columns, with units of equal width.
struct Ruler {
    unit: u64,
    columns: usize,
}

impl Ruler {
    fn new(view: &View, room: usize) -> Ruler {
        Ruler { unit: view.unit, columns: (room / view.boundaries().count().max(1)).max(4) }
    }

    fn column(&self, byte: u64) -> usize {
        let columns = u128::try_from(self.columns).unwrap_or(1);
        usize::try_from(u128::from(byte) * columns / u128::from(self.unit)).unwrap_or(0)
    }

    /// A line from the first of `edges` to the last, with a mark at each.
    fn draw(&self, edges: impl Iterator<Item = u64>, dash: char, style: Style) -> String {
        let at: Vec<usize> = edges.map(|byte| self.column(byte)).collect();
        let (Some(&first), Some(&last)) = (at.first(), at.last()) else { return String::new() };
        let glyph = |column: usize| match column {
            c if c == first => style.glyph("├", "|"),
            c if c == last => style.glyph("┤", "|"),
            c if at.contains(&c) => style.glyph("┼", "+"),
            _ if dash == '─' => style.glyph("─", "-"),
            _ => style.glyph("═", "="),
        };
        " ".repeat(first) + &(first..=last).map(glyph).collect::<String>()
    }
}

/// The line of blocks; each that touches too many units says how many it touches and needs.
fn draw_blocks(view: &View, ruler: &Ruler, style: Style) -> String {
    if view.count() > BLOCKS {
        return ruler.draw([view.start, view.shown].into_iter(), '═', style);
    }
    let blocks = view.blocks(BLOCKS);
    let edges = blocks.iter().map(|b| b.0).chain([view.shown]);
    let mut line: Vec<char> = ruler.draw(edges, '═', style).chars().collect();
    for &block in &blocks {
        let (from, to) = (ruler.column(block.0), ruler.column(block.1.min(view.shown)));
        let (touched, needed) = view.touches(block);
        let says =
            [format!(" touches {touched}, needs {needed} "), format!(" {touched} for {needed} ")];
        let Some(says) = says.into_iter().find(|says| touched > needed && says.len() < to - from)
        else {
            continue;
        };
        let at = from + 1 + (to - from - 1 - says.len()) / 2;
        says.chars().enumerate().for_each(|(i, c)| line[at + i] = c);
    }
    line.into_iter().collect()
}

/// The device operations for a write of a block across a boundary; a unit that is written in part
/// is read first.
fn write_operations(miss: &Miss<'_>, view: &View, out: &mut dyn io::Write) -> io::Result<()> {
    let across = view
        .blocks(BLOCKS)
        .into_iter()
        .find(|&block| view.touches(block).0 > view.touches(block).1);
    let Some(block) = across.filter(|_| miss.rmw && miss.block >= miss.unit) else { return Ok(()) };
    let parts = view.parts(block);
    let reads = parts.iter().filter(|(_, part)| *part).count();
    let operations =
        format!("{}, {}", words::count(reads, "read"), words::count(parts.len(), "write"));
    writeln!(out, "{:NAMES$}{operations}", fit("writing one takes".into()))
}

/// The addresses under the boundaries: the starts that a fix names first, then as many as there is
/// room for.
fn write_addresses(
    miss: &Miss<'_>,
    view: &View,
    ruler: &Ruler,
    width: usize,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let address =
        |from: u64| u64::try_from(miss.boundary() + i128::from(from) - i128::from(view.unit)).ok();
    let mut marks: Vec<(usize, u64, bool)> = view
        .boundaries()
        .filter_map(|from| address(from).map(|a| (ruler.column(from), a, miss.mends(a.into()))))
        .collect();
    marks.sort_by_key(|&(column, _, mends)| (!mends, column));
    let mut shown: Vec<(usize, String, String)> = Vec::new();
    for (column, address, _) in marks {
        let lba =
            words::sector(address, miss.provider).map_or(String::new(), |lba| format!("({lba})"));
        let bytes = address.to_string();
        let end = column + bytes.len().max(lba.len()) + 2;
        let free = shown.iter().all(|(other, bytes, lba)| {
            end <= *other || other + bytes.len().max(lba.len()) + 2 <= column
        });
        if free && NAMES + end <= width + 2 {
            shown.push((column, bytes, lba));
        }
    }
    shown.sort();
    let line = |of: &dyn Fn(&(usize, String, String)) -> String| {
        shown.iter().fold(String::new(), |line, mark| format!("{line:0$}{1}", mark.0, of(mark)))
    };
    let set = if miss.provider.start.is_none() {
        format!("byte of {}", words::name(&miss.provider.root))
    } else {
        "byte".into()
    };
    writeln!(out, "{:NAMES$}{}", fit(set), line(&|mark| mark.1.clone()))?;
    writeln!(out, "{:NAMES$}{}", "(LBA)", line(&|mark| mark.2.clone()))
}
