//! Rows of cells in aligned columns.

use anstyle::Style as Colour;
use std::io;

/// One cell.
#[derive(Clone, Default)]
pub(crate) struct Cell {
    text: String,
    colour: Colour,
    right: bool,
}

impl Cell {
    /// Aligned left.
    pub(crate) fn left(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    /// Aligned right: numbers.
    pub(crate) fn right(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), right: true, ..Cell::default() }
    }

    /// In that colour.
    #[must_use]
    pub(crate) fn colour(mut self, colour: Colour) -> Cell {
        self.colour = colour;
        self
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

/// Writes `rows`, of one length each, two spaces apart. Where they do not fit `width`, the columns of `spare` are left out,
/// the first of them first; an empty column always is.
pub(crate) fn write(rows: &[Vec<Cell>], spare: &[usize], width: Option<usize>, out: &mut dyn io::Write) -> io::Result<()> {
    let columns = rows.first().map_or(0, Vec::len);
    // The first row is the heading: a column with nothing under it says nothing.
    let empty = |i: usize| rows.iter().skip(1).all(|r| r[i].text.is_empty());
    let mut widths: Vec<usize> =
        (0..columns).map(|i| if empty(i) { 0 } else { rows.iter().map(|r| r[i].width()).max().unwrap_or(0) }).collect();
    for &i in spare {
        let total: usize = widths.iter().filter(|&&w| w > 0).map(|w| w + 2).sum();
        if width.is_none_or(|width| total <= width + 2) {
            break;
        }
        widths[i] = 0;
    }
    for row in rows {
        let shown = || row.iter().zip(&widths).filter(|(_, w)| **w > 0);
        // No spaces at the end of a line.
        let last = shown().filter(|(c, _)| !c.text.is_empty()).count();
        let mut seen = 0;
        for (nth, (cell, &width)) in shown().enumerate() {
            let pad = " ".repeat(width - cell.width());
            seen += usize::from(!cell.text.is_empty());
            let (colour, text) = (cell.colour, &cell.text);
            let gap = if nth > 0 { "  " } else { "" };
            if cell.right {
                write!(out, "{gap}{pad}{colour}{text}{colour:#}")?;
            } else {
                let pad = if seen >= last { "" } else { &pad };
                write!(out, "{gap}{colour}{text}{colour:#}{pad}")?;
            }
            if seen >= last {
                break;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Writes `text` after `head`, broken between words where it would pass `width`, further lines indented by `indent`.
pub(crate) fn wrap(head: &str, shown: usize, text: &str, indent: usize, width: Option<usize>, out: &mut dyn io::Write) -> io::Result<()> {
    write!(out, "{head}")?;
    let mut at = shown;
    for (nth, word) in words(text).into_iter().enumerate() {
        let length = word.chars().count();
        if nth > 0 && width.is_some_and(|width| at + 1 + length > width) {
            write!(out, "\n{}{word}", " ".repeat(indent))?;
            at = indent + length;
        } else {
            let space = if nth > 0 { " " } else { "" };
            write!(out, "{space}{word}")?;
            at += space.len() + length;
        }
    }
    writeln!(out)
}

/// What may not be broken: words, and a number with what it counts: `byte 32256`, `(LBA 63)`, `4.0 x`, `4 KiB`.
fn words(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = Vec::new();
    let mut from = 0;
    for (at, _) in text.match_indices(' ') {
        let (word, next) = (&text[from..at], &text[at + 1..]);
        let times = next.strip_prefix('x').is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
        let size = word.ends_with(|c: char| c.is_ascii_digit()) && next.get(1..3) == Some("iB");
        let bound = matches!(word, "byte" | "(LBA") || times || size;
        if !bound {
            words.push(word);
            from = at + 1;
        }
    }
    words.push(&text[from..]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::samples;

    #[test]
    fn numbers_stay_with_what_they_count() {
        let text = "starts at byte 32256 (LBA 63), costing 4.0 x the time";
        let at = |width| samples::text(|out| wrap("fix: ", 5, text, 2, width, out));
        assert_eq!(at(Some(20)), "fix: starts at\n  byte 32256\n  (LBA 63), costing\n  4.0 x the time\n");
        assert_eq!(at(None), format!("fix: {text}\n"));
        let text = |width| samples::text(|out| wrap("", 0, "a unit of 4 KiB", 2, width, out));
        assert_eq!(text(Some(11)), "a unit of\n  4 KiB\n");
    }
}
