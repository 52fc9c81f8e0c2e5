//! `show --picture`: each disk and set as a line of the terminal, what stands on it above it, to scale.
//!
//! A piece too small for its columns is drawn wider, and the picture says so; nothing vanishes. What has no room for its
//! name is named below.

use super::scale::{Range, Scale};
use super::stack::{Piece, Stack};
use super::{Style, escape, size, text, words};
use crate::report::{Provider, Report, Target, Verdict};
use anstyle::Style as Colour;
use std::io;

/// The width where there is no terminal.
const WIDTH: usize = 100;

/// Columns a piece is given at least: two ends and a mark.
const LEAST: usize = 3;

/// Columns a piece may have beyond its share where there is room, so that its name fits.
const ROOM: usize = 10;

/// Writes a picture of every target.
pub(crate) fn write(report: &Report, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    for (nth, target) in report.targets.iter().enumerate() {
        if nth > 0 {
            writeln!(out)?;
        }
        let bold = Colour::new().bold();
        writeln!(out, "{bold}{}{bold:#}", escape::plain(&target.target))?;
        let stack = Stack::new(target);
        // What stands on others is above them: sets over their members.
        for &root in stack.roots.iter().rev() {
            write_root(target, &stack, root, out, style)?;
        }
    }
    Ok(())
}

fn write_root(target: &Target, stack: &Stack<'_>, root: usize, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    let whole = &target.providers[root];
    let pieces = stack.pieces(root);
    let width = style.width.unwrap_or(WIDTH).max(20);
    let leaves = pieces.iter().filter(|p| p.leaf).count().max(1);
    let room = (width / 2 / leaves).clamp(LEAST, ROOM);
    let ranges: Vec<Range> = pieces.iter().map(|p| Range { start: p.start, end: p.end, least: if p.leaf { room } else { 1 } }).collect();
    let scale = Scale::new(whole.length.max(1), &ranges, width);
    let rows = pieces.iter().filter_map(|p| p.row).max().unwrap_or(0);
    let mut nameless = Vec::new();
    for row in (0..=rows).rev() {
        let mut at = 0;
        for piece in pieces.iter().filter(|p| p.row == Some(row)) {
            let (from, to) = (scale.cell(piece.start), scale.cell(piece.end));
            let p = &target.providers[piece.provider];
            let (line, named) = bar(target, p, to - from, style);
            if !named {
                nameless.push(piece);
            }
            let colour = if p.data_bearing { text::colour(p.verdict) } else { Colour::new() };
            write!(out, "{}{colour}{line}{colour:#}", " ".repeat(from - at))?;
            at = to;
        }
        writeln!(out)?;
    }
    nameless.extend(pieces.iter().filter(|p| p.row.is_none()));
    write_legend(target, whole, &scale, out)?;
    for piece in nameless {
        write_nameless(target, piece, out, style)?;
    }
    Ok(())
}

/// A piece as a measuring line with its name on it, and whether the name found room.
fn bar(target: &Target, p: &Provider, width: usize, style: Style) -> (String, bool) {
    let (open, dash, close) = (style.glyph("├", "|"), style.glyph("─", "-"), style.glyph("┤", "|"));
    let mark = if p.data_bearing && p.verdict != Verdict::Aligned { words::mark(p.verdict, style) } else { "" };
    let name = words::name(&p.provider);
    let full = format!(" {mark}{name} {} {} ", words::content(target, p), size::human(p.length));
    let short = format!("{mark}{name}");
    let fits = |s: &String| s.chars().count() + 2 <= width;
    match width {
        0 => (String::new(), false),
        1 => (style.glyph("│", "|").into(), false),
        _ => {
            let (label, named) = [full, short].into_iter().find(fits).map_or((mark.to_owned(), false), |label| (label, true));
            let label = if label.chars().count() + 2 <= width { label } else { String::new() };
            let rest = width - 2 - label.chars().count();
            let before = rest.min(1);
            (format!("{open}{}{label}{}{close}", dash.repeat(before), dash.repeat(rest - before)), named)
        }
    }
}

fn write_legend(target: &Target, whole: &Provider, scale: &Scale, out: &mut dyn io::Write) -> io::Result<()> {
    let columns = u64::try_from(scale.width()).unwrap_or(u64::MAX).max(1);
    let dim = Colour::new().dimmed();
    let over = if whole.members.is_empty() { String::new() } else { format!("over {}; ", escape::plain(&whole.members.join(", "))) };
    let scaled = match scale.widened {
        0 => format!("to scale: a column is {}", size::human(whole.length / columns)),
        1 => "to scale but for one narrow stretch, which is drawn wider".into(),
        n => format!("to scale but for {n} narrow stretches, which are drawn wider"),
    };
    let verdict = if target.providers.len() == 1 { format!("; {}", words::verdict(whole.verdict)) } else { String::new() };
    writeln!(out, "{dim}{over}{scaled}{verdict}{dim:#}")
}

fn write_nameless(target: &Target, piece: &Piece, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    let p = &target.providers[piece.provider];
    let mark = if p.data_bearing { words::mark(p.verdict, style) } else { "-" };
    let (name, content, at) = (words::name(&p.provider), words::content(target, p), words::start(p));
    writeln!(out, "  {mark} {name} {content}, {} at byte {at}", size::human(p.length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::samples;

    #[test]
    fn a_disk_and_what_stands_on_it() {
        let report = samples::report(vec![samples::openbsd(), samples::gpt()]);
        let text = samples::text(|out| write(&report, out, Style { width: Some(78), ascii: false }));
        samples::golden("picture.txt", &text);
        let ascii = samples::text(|out| write(&report, out, Style { width: Some(78), ascii: true }));
        assert!(ascii.is_ascii());
    }

    #[test]
    fn a_crowd_is_named_in_full() {
        let report = samples::report(vec![samples::crowded(2000)]);
        let text = samples::text(|out| write(&report, out, Style { width: Some(80), ascii: false }));
        assert!((1..=2000).all(|i| [" ", "─", "┤"].iter().any(|end| text.contains(&format!("p{i}{end}")))));
    }
}
