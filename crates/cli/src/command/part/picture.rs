//! `part show --picture`: a table as a line of the terminal, to scale, and every start against the
//! units beneath it.
//!
//! At the scale of a disk no unit is visible. Starts off a unit, and the first few on one, are
//! therefore magnified: the same bytes on a line above a ruler of units. Every partition is named,
//! whether or not its name fits the bar.

use crate::command::part::text::PAGE;
use crate::render::draw::picture;
use crate::render::draw::scale::{Range, Scale};
use crate::render::gpart::Shown;
use crate::style::Style;
use crate::words::width::columns_of;
use crate::words::{self, columns, escape, size};
use anstyle::{AnsiColor, Style as Colour};
use ruler::Ruler;
use std::io;
use trueline_geom::base::topology::{Fact, Trust, largest_grain};
use trueline_geom::mapping::slices::place;
use trueline_geom::table::scheme::TableSite;
use trueline_geom::table::{Entry, types};

mod ruler;

/// Width in columns without a terminal, and the least width of a ruler.
const WIDTH: usize = 100;
const NARROW: usize = 60;

/// Least columns of a partition on the bar, and most columns beyond its share so that its name
/// fits.
const LEAST: usize = 3;
const ROOM: usize = 10;

/// Most rulers for starts that miss and for those that do not, and most further starts with a line
/// each.
const MISSES: usize = 4;
const HITS: usize = 2;
const LISTED: usize = 32;

/// Rows of the bar: partitions overlap in damaged tables only.
const ROWS: usize = 4;

/// The start of a partition, against the boundary that it misses at the highest cost, else the
/// largest that counts.
struct Start<'a> {
    entry: &'a Entry,
    /// Its name without the provider's.
    name: String,
    fact: Option<Fact>,
    /// Distance past a boundary in bytes.
    remainder: u64,
}

impl<'a> Start<'a> {
    fn new(shown: Shown<'_>, site: &TableSite<'_>, entry: &'a Entry) -> Start<'a> {
        let topology = site.topology.shift(entry.partition.start, entry.partition.length);
        let missed = topology.missed(PAGE).first().map(|(fact, _)| *fact);
        let fact = missed.or_else(|| topology.counting().max_by_key(|f| f.grain.size()).copied());
        let remainder = fact.map_or(0, |f| f.grain.remainder(0));
        Start { entry, name: escape::plain(&shown.scheme.suffix(entry)), fact, remainder }
    }

    fn mark(&self, style: Style) -> &'static str {
        match self.fact {
            None => "?",
            Some(_) if self.remainder > 0 => style.glyph("✗", "x"),
            Some(_) => style.glyph("✓", "+"),
        }
    }

    fn colour(&self) -> Colour {
        match self.fact {
            None => AnsiColor::Yellow.on_default(),
            Some(_) if self.remainder > 0 => AnsiColor::Red.on_default(),
            Some(_) => AnsiColor::Green.on_default(),
        }
    }

    /// `s1 begins at byte 293888 (LBA 574), 3072 bytes past a boundary of 4 KiB`.
    fn says(&self, shown: Shown<'_>, site: &TableSite<'_>) -> String {
        let (name, at) = (&self.name, place(self.entry.partition.start, shown.table.sector));
        let medium = site.base.saturating_add(self.entry.partition.start);
        let on = if site.base > 0 { format!(", byte {medium} of the disk") } else { String::new() };
        let against = match self.fact {
            None => "; no unit beneath it is known".into(),
            Some(fact) if self.remainder > 0 => {
                format!(
                    ", {} past a boundary of {}",
                    words::bytes(self.remainder),
                    size::human(fact.grain.size())
                )
            }
            Some(fact) => {
                let more = largest_grain(medium).filter(|&g| g > fact.grain.size());
                let more = more.map_or(String::new(), |g| format!(" and of {}", size::human(g)));
                format!(", on a boundary of {}{more}", size::human(fact.grain.size()))
            }
        };
        format!("{name} begins at {at}{on}{against}")
    }
}

/// Writes a picture of the table.
pub(crate) fn write(
    shown: Shown<'_>,
    site: &TableSite<'_>,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    let width = style.width.unwrap_or(WIDTH).max(NARROW);
    let starts: Vec<Start<'_>> =
        shown.table.by_start().into_iter().map(|e| Start::new(shown, site, e)).collect();
    write_head(shown, site, width, out)?;
    write_bar(shown, &starts, width, out, style)?;
    let (mut misses, mut hits, mut listed, mut left) = (0, 0, 0, 0);
    let mut apart = true;
    for start in &starts {
        let (drawn, most) =
            if start.remainder > 0 { (&mut misses, MISSES) } else { (&mut hits, HITS) };
        let fact = start.fact.filter(|_| *drawn < most);
        if fact.is_none() && listed == LISTED {
            left += 1;
            continue;
        }
        if fact.is_some() || apart {
            writeln!(out)?;
        }
        apart = fact.is_some();
        *(if apart { drawn } else { &mut listed }) += 1;
        let colour = start.colour();
        write!(out, "{colour}")?;
        columns::wrap(
            &format!("{} ", start.mark(style)),
            2,
            &start.says(shown, site),
            2,
            Some(width),
            out,
        )?;
        write!(out, "{colour:#}")?;
        if let Some(fact) = fact {
            Ruler::new(start, &fact, width).write(shown, start, &fact, out, style)?;
        }
    }
    if left > 0 {
        writeln!(out, "{left} more: `trueline part show` lists them")?;
    }
    Ok(())
}

/// Writes the name of the table, and the units it is measured against.
fn write_head(
    shown: Shown<'_>,
    site: &TableSite<'_>,
    width: usize,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let bold = Colour::new().bold();
    let mut units: Vec<String> = site.topology.counting().map(name_of).collect();
    units.dedup();
    let units = if units.is_empty() { "no unit known beneath it".into() } else { units.join(", ") };
    let damaged = if shown.table.damage.is_empty() { "" } else { ", damaged" };
    let text = format!(
        "{}  {}{damaged}  {}  {units}",
        escape::plain(shown.name.text()),
        shown.scheme.name(),
        size::human(shown.table.length)
    );
    write!(out, "{bold}")?;
    columns::wrap("", 0, &text, 2, Some(width), out)?;
    write!(out, "{bold:#}")
}

/// `physical unit of 4 KiB (assumed)`.
fn name_of(fact: &Fact) -> String {
    let assumed = if fact.trust == Trust::Assumed { " (assumed)" } else { "" };
    format!("{} of {}{assumed}", words::unit(fact.why), size::human(fact.grain.size()))
}

/// Writes the table to scale: partitions, free space between them, and the table's own sectors;
/// below them each start.
fn write_bar(
    shown: Shown<'_>,
    starts: &[Start<'_>],
    width: usize,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    let (table, free) = (shown.table, shown.table.free());
    let room = (width / 2 / starts.len().max(1)).clamp(LEAST, ROOM);
    let clip = |at: u64| at.min(table.length);
    let range = |start, end, least| Range { start: clip(start), end: clip(end), least };
    let mut ranges: Vec<Range> = starts
        .iter()
        .map(|s| range(s.entry.partition.start, s.entry.partition.end(), room))
        .collect();
    ranges.extend(free.iter().map(|r| range(r.start, r.end, 1)));
    ranges.push(range(table.usable.start, table.usable.end, 1));
    let scale = Scale::new(table.length.max(1), &ranges, width);
    // With more pieces than columns, the columns are shared out, and some pieces get none.
    let column = |byte: u64| scale.cell(clip(byte)) * width / scale.width().max(width);

    let mut rows: Vec<Vec<&Start<'_>>> = Vec::new();
    for start in starts {
        let fits = |row: &Vec<&Start<'_>>| {
            row.last().is_none_or(|last| {
                column(last.entry.partition.end()) <= column(start.entry.partition.start)
            })
        };
        match rows.iter().position(fits) {
            Some(row) => rows[row].push(start),
            None if rows.len() < ROWS => rows.push(vec![start]),
            None => {}
        }
    }
    let base: Vec<&'static str> = {
        let (own, none) = (style.glyph("▓", "#"), style.glyph("░", "."));
        let mut cells = vec![own; width];
        for r in &free {
            cells[column(r.start)..column(r.end)].fill(none);
        }
        cells
    };
    for row in rows.iter().skip(1).rev() {
        write_row(row, &vec![" "; width], &column, out, style)?;
    }
    write_row(rows.first().map_or(&[][..], Vec::as_slice), &base, &column, out, style)?;
    write_starts(starts, &column, width, out, style)?;
    let dim = Colour::new().dimmed();
    let scaled = if scale.widened == 0 {
        format!(
            "to scale: a column is {}",
            size::human(table.length / u64::try_from(width).unwrap_or(1))
        )
    } else {
        "to scale, but narrow stretches are drawn wider".into()
    };
    let (none, own) = (style.glyph("░", "."), style.glyph("▓", "#"));
    let free = if base.contains(&none) { format!("; {none} free") } else { String::new() };
    let all = table.usable.start == 0 && table.usable.end >= table.length && table.taken.is_empty();
    let own = if !all { format!("; {own} the table's own") } else { String::new() };
    let says = format!("{scaled}{free}{own}");
    write!(out, "{dim}")?;
    columns::wrap("", 0, &says, 0, Some(width), out)?;
    write!(out, "{dim:#}")
}

/// Writes a row of partitions over the cells beneath them.
fn write_row(
    row: &[&Start<'_>],
    base: &[&str],
    column: &impl Fn(u64) -> usize,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    let mut at = 0;
    for start in row {
        let (from, to) =
            (column(start.entry.partition.start).max(at), column(start.entry.partition.end()));
        write!(out, "{}", base[at..from].concat())?;
        let (name, mark, colour) = (&start.name, start.mark(style), start.colour());
        let (kind, size) = (type_name(start.entry), size::human(start.entry.partition.length));
        let labels = [
            format!(" {mark} {name} {kind} {size} "),
            format!("{mark}{name} {kind} "),
            format!("{mark}{name}"),
        ];
        let (line, _) = picture::measure(labels, mark, to.saturating_sub(from), style);
        write!(out, "{colour}{line}{colour:#}")?;
        at = from.max(to);
    }
    writeln!(out, "{}", base[at..].concat().trim_end())
}

/// Name of its type, gpart(8)'s if it has one.
fn type_name(entry: &Entry) -> String {
    let name = types::gpart_name(entry.partition.kind);
    if name.starts_with('!') { types::name(entry.partition.kind) } else { name }
}

/// Writes the first byte of each partition under its edge, where there is room.
fn write_starts(
    starts: &[Start<'_>],
    column: &impl Fn(u64) -> usize,
    width: usize,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    let label = |start: &Start<'_>| {
        (
            column(start.entry.partition.start),
            format!("{}{}", start.mark(style), start.entry.partition.start),
        )
    };
    let mut shown: Vec<(usize, String)> = Vec::new();
    // Misses go first: they are what a reader looks for.
    let (off, on): (Vec<_>, Vec<_>) = starts.iter().partition(|s| s.remainder > 0);
    for (at, text) in off.into_iter().chain(on).map(label) {
        let end = at + columns_of(&text);
        let free = |(other, with): &(usize, String)| end < *other || other + columns_of(with) < at;
        if end <= width && shown.len() < width && shown.iter().all(free) {
            shown.push((at, text));
        }
    }
    shown.sort();
    let line = shown.into_iter().fold(String::new(), |line, (at, text)| {
        let gap = at - columns_of(&line);
        line + &" ".repeat(gap) + &text
    });
    if line.is_empty() { Ok(()) } else { writeln!(out, "{line}") }
}

#[cfg(test)]
#[path = "picture/tests.rs"]
mod tests;
