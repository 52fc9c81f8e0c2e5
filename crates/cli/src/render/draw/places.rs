//! Partitions on lines to scale, one line above the other: where they are, and where they will be.

use super::scale::{Range, Scale};
use crate::style::Style;
use crate::words::width::columns_of;
use std::io;

/// Partition on a line.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    /// Name that is written into it.
    pub name: String,
    /// First byte of its range.
    pub start: u64,
    /// Byte behind its range.
    pub end: u64,
}

/// Columns of a line where the output is no terminal.
const USUAL: usize = 80;
/// Least columns of a partition, and of the line of all.
const LEAST: usize = 3;
const NARROW: usize = 20;

/// Writes a line for each of `lines`, which have the same bytes in the same column: from 0 to
/// `length`.
pub(crate) fn write(
    lines: &[(&str, Vec<Spot>)],
    length: u64,
    style: Style,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let margin = lines.iter().map(|(label, _)| columns_of(label)).max().unwrap_or(0) + 2;
    let width = style.width.unwrap_or(USUAL).saturating_sub(margin + 1).max(NARROW);
    let all = lines.iter().flat_map(|(_, places)| places);
    let ranges: Vec<Range> =
        all.map(|p| Range { start: p.start, end: p.end, least: LEAST }).collect();
    let scale = Scale::new(length, &ranges, width);
    let free = style.glyph("·", ".");
    for (label, places) in lines {
        let mut line = String::new();
        let mut at = 0;
        for place in places {
            let (from, to) = (scale.cell(place.start), scale.cell(place.end));
            line.push_str(&free.repeat(from.saturating_sub(at)));
            line.push_str(&drawn(&place.name, to.saturating_sub(from.max(at)), style));
            at = to.max(at);
        }
        line.push_str(&free.repeat(scale.width().saturating_sub(at)));
        writeln!(out, "{label:<margin$}{line}")?;
    }
    Ok(())
}

/// A partition in `width` columns: its name between its ends, as far as there is room.
fn drawn(name: &str, width: usize, style: Style) -> String {
    let (open, line, close) = (style.glyph("├", "["), style.glyph("─", "-"), style.glyph("┤", "]"));
    let inside = match width {
        0 => return String::new(),
        1 => return style.glyph("│", "|").into(),
        width => width - 2,
    };
    let mut shown = String::new();
    for character in name.chars() {
        if columns_of(&shown) + columns_of(&character.to_string()) > inside {
            break;
        }
        shown.push(character);
    }
    let rest = inside.saturating_sub(columns_of(&shown));
    format!("{open}{shown}{}{close}", line.repeat(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str, start: u64, end: u64) -> Spot {
        Spot { name: name.into(), start, end }
    }

    #[test]
    fn both_lines_are_to_one_scale_and_as_wide() {
        for width in [8, 20, 40, 80, 132] {
            let before = vec![place("s1", 63, 1000), place("s2", 1000, 5000)];
            let after = vec![place("s1", 64, 1001), place("s2", 1008, 5008)];
            let style = Style { width: Some(width), ascii: false };
            let mut out = Vec::new();
            write(&[("before", before), ("after", after)], 6000, style, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(columns_of(lines[0]), columns_of(lines[1]), "{text}");
            assert!(width < 40 || columns_of(lines[0]) < width, "{text}");
            assert!(width < 40 || text.matches("s2").count() == 2, "{text}");
        }
    }
}
