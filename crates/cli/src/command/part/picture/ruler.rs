//! One start, magnified: the bytes around it, above the units beneath them.

use super::Start;
use crate::render::gpart::Shown;
use crate::style::Style;
use crate::words::width::columns_of;
use crate::words::{self, escape, size};
use anstyle::AnsiColor;
use std::cmp::Ordering;
use std::io;
use std::ops::Range;
use trueline_geom::base::topology::{Fact, is_whole};

/// Columns for the names of rows.
const NAMES: usize = 18;

/// Most units shown: one before the boundary, the others after it.
const UNITS: usize = 4;

/// A window of a few units of equal width, from bytes to columns.
pub(super) struct Ruler {
    /// The byte at the left edge; negative if it is before byte 0 of the provider.
    from: i128,
    unit: u64,
    /// Columns of a unit.
    columns: usize,
    units: usize,
    /// The start, and its distance from the boundary in bytes and columns.
    at: u64,
    past: (u64, usize),
}

impl Ruler {
    pub(super) fn new(start: &Start<'_>, fact: &Fact, width: usize) -> Ruler {
        let unit = fact.grain.size();
        let room = width.saturating_sub(NAMES + 1);
        // Every boundary has its address beneath it.
        let address =
            start.entry.partition.start.saturating_add(unit.saturating_mul(3)).to_string().len()
                + 2;
        let units = (room / address).clamp(2, UNITS);
        let columns = room / units;
        let past = match start.remainder {
            0 => 0,
            // A start off a boundary is never drawn on one.
            bytes => scaled(i128::from(bytes), columns, unit).clamp(1, columns - 1),
        };
        let from = i128::from(start.entry.partition.start)
            - i128::from(start.remainder)
            - i128::from(unit);
        Ruler {
            from,
            unit,
            columns,
            units,
            at: start.entry.partition.start,
            past: (start.remainder, past),
        }
    }

    fn width(&self) -> usize {
        self.columns * self.units
    }

    /// Column of the start.
    fn start(&self) -> usize {
        self.columns + self.past.1
    }

    /// Column of a byte. Bytes before the start stay before it, bytes after it behind it.
    fn column(&self, byte: u64) -> usize {
        let column = match i128::from(byte) - self.from {
            before if before <= 0 => 0,
            bytes => scaled(bytes, self.columns, self.unit).min(self.width()),
        };
        match byte.cmp(&self.at) {
            Ordering::Less => column.min(self.start()),
            Ordering::Equal => self.start(),
            Ordering::Greater => column.max(self.start() + 1),
        }
    }

    /// The boundaries in view: column and address.
    fn boundaries(&self) -> impl Iterator<Item = (usize, Option<u64>)> {
        let address = |nth: usize| {
            i128::try_from(nth).ok().map(|nth| self.from + nth * i128::from(self.unit))
        };
        (0..=self.units)
            .map(move |nth| (nth * self.columns, address(nth).and_then(|a| u64::try_from(a).ok())))
    }

    /// Writes the bytes around the start, the units, the miss and the addresses.
    pub(super) fn write(
        &self,
        shown: Shown<'_>,
        start: &Start<'_>,
        fact: &Fact,
        out: &mut dyn io::Write,
        style: Style,
    ) -> io::Result<()> {
        let red = AnsiColor::Red.on_default();
        writeln!(
            out,
            "{:NAMES$}{}",
            "  what is there",
            self.surroundings(shown, start, style).trim_end()
        )?;
        let unit = format!("  {}", size::human(self.unit));
        writeln!(out, "{unit:NAMES$}{}", self.units(style))?;
        if self.past.0 > 0 {
            writeln!(
                out,
                "{:NAMES$}{red}{}{red:#}",
                format!("  {}", words::unit(fact.why)).chars().take(NAMES - 1).collect::<String>(),
                self.miss(style)
            )?;
        }
        let sector = shown.table.sector;
        writeln!(out, "{:NAMES$}{}", "  byte", self.labels(|byte| Some(byte.to_string())))?;
        writeln!(
            out,
            "{:NAMES$}{}",
            "  (LBA)",
            self.labels(|byte| is_whole(byte, sector).then(|| format!("({})", byte / sector)))
        )
    }

    /// The line of the partition and its surroundings.
    fn surroundings(&self, shown: Shown<'_>, start: &Start<'_>, style: Style) -> String {
        let table = shown.table;
        let mut cells = vec![' '; self.width()];
        let glyph = |unicode: char, ascii: char| if style.ascii { ascii } else { unicode };
        let mut paint = |range: &Range<u64>, with: char, name: &str| {
            let (from, to) = (self.column(range.start), self.column(range.end));
            cells[from..to.max(from)].fill(with);
            let name = format!(" {name} ");
            if name.len() > 2 && columns_of(&name) + 2 <= to.saturating_sub(from) {
                name.chars().enumerate().for_each(|(i, c)| cells[from + 1 + i] = c);
            }
        };
        paint(&(0..table.length), glyph('▓', '#'), "");
        table.free().iter().for_each(|r| paint(r, glyph('░', '.'), ""));
        let others =
            table.entries.iter().filter(|e| e.partition.index != start.entry.partition.index);
        others.for_each(|e| {
            paint(&(e.partition.range()), glyph('─', '-'), &escape::plain(&shown.scheme.suffix(e)))
        });
        paint(&(start.entry.partition.start..start.entry.partition.end()), glyph('═', '='), "");
        let (edge, end) = (self.start(), self.column(start.entry.partition.end()));
        cells[edge] = glyph('╞', '|');
        let name = format!(" {} ", start.name);
        if columns_of(&name) + 1 < end.saturating_sub(edge) {
            name.chars().enumerate().for_each(|(i, c)| cells[edge + 2 + i] = c);
        }
        cells.into_iter().collect()
    }

    /// The line of units, with a mark at each boundary.
    fn units(&self, style: Style) -> String {
        let last = self.width();
        let glyph = |column: usize| match column {
            0 => style.glyph("├", "|"),
            c if c == last => style.glyph("┤", "|"),
            c if is_column(c, self.columns) => style.glyph("┼", "+"),
            _ => style.glyph("─", "-"),
        };
        (0..=last).map(glyph).collect()
    }

    /// The line of the bytes from the boundary to the start.
    fn miss(&self, style: Style) -> String {
        let (open, close) = (style.glyph("└", "`"), style.glyph("┘", "'"));
        let (indent, inner) = (" ".repeat(self.columns), self.past.1.saturating_sub(1));
        let says = format!(" {} ", self.past.0);
        match inner.checked_sub(says.len()) {
            Some(rest) => {
                let dash = |n| style.glyph("─", "-").repeat(n);
                format!("{indent}{open}{}{says}{}{close}", dash(rest / 2), dash(rest - rest / 2))
            }
            None => format!(
                "{indent}{open}{}{close}{}",
                style.glyph("─", "-").repeat(inner),
                says.trim_end()
            ),
        }
    }

    /// The line of labels that `says` gives for the addresses of boundaries, as far as there is
    /// room.
    fn labels(&self, says: impl Fn(u64) -> Option<String>) -> String {
        let mut line = String::new();
        for (column, address) in self.boundaries() {
            let Some(text) = address.and_then(&says) else { continue };
            if (line.is_empty() || line.len() < column) && column + text.len() <= self.width() + 1 {
                line = format!("{line:column$}{text}");
            }
        }
        line
    }
}

/// The column of `bytes`, if a unit has `columns`.
fn scaled(bytes: i128, columns: usize, unit: u64) -> usize {
    let columns = i128::try_from(columns).unwrap_or(1);
    usize::try_from(bytes.saturating_mul(columns) / i128::from(unit.max(1))).unwrap_or(usize::MAX)
}

/// True if a boundary is drawn at `column`.
fn is_column(column: usize, columns: usize) -> bool {
    let wide = |n: usize| u64::try_from(n).unwrap_or(0);
    is_whole(wide(column), wide(columns))
}
