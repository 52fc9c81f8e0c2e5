//! `show --picture`: each disk and set as a line of the terminal, with its layers above it, to
//! scale.
//!
//! A piece too small for its columns is drawn wider, and the picture says so; nothing vanishes.
//! Pieces without room for their names are named below. A legend of the marks follows, then every
//! start that misses, magnified.

use super::scale::{Range, Scale};
use super::stack::{Piece, Stack};
use super::{inset, miss};
use crate::render::report::{group, text};
use crate::report::{Provider, Report, Target, Verdict};
use crate::style::Style;
use crate::words::width::columns_of;
use crate::words::{self, columns, escape, size};
use anstyle::Style as Colour;
use std::io;

/// Width in columns without a terminal.
const WIDTH: usize = 100;

/// Least columns of a piece: two ends and a mark.
const LEAST: usize = 3;

/// Most columns that a piece gets beyond its share, so that its name fits.
const ROOM: usize = 10;

/// Most magnifications written; the other misses are counted.
const INSETS: usize = 3;

/// Most pieces without room for their names that are listed one by one.
const LISTED: usize = 16;

/// Writes a picture of every target.
pub(crate) fn write(report: &Report, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    for (nth, target) in report.targets.iter().enumerate() {
        if nth > 0 {
            writeln!(out)?;
        }
        let bold = Colour::new().bold();
        writeln!(out, "{bold}{}{bold:#}", escape::plain(&target.target))?;
        if let Some(judged) = &target.judged {
            judged.write(style.width, out)?;
        }
        let stack = Stack::new(target);
        for root in stack.top_down() {
            write_root(target, &stack, root, out, style)?;
        }
        write_marks(target, out, style)?;
        let misses = miss::misses(target);
        for miss in misses.iter().take(INSETS) {
            writeln!(out)?;
            inset::write(miss, style.width.unwrap_or(WIDTH), out, style)?;
        }
        let more: usize = misses.iter().skip(INSETS).map(|m| m.all.len()).sum();
        if more > 0 {
            writeln!(out, "\n{more} more begin off a boundary: `trueline check` names them")?;
        }
    }
    Ok(())
}

/// Writes a legend of the marks in the picture.
fn write_marks(target: &Target, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    let bears = |v| target.providers.iter().any(|p| words::shown(p) == Some(v));
    let shown: Vec<String> = [Verdict::Misaligned, Verdict::Unknown, Verdict::Aligned]
        .into_iter()
        .filter(|v| bears(*v))
        .map(|v| format!("{} {}", words::mark(v, style), words::verdict(v)))
        .chain(
            target
                .providers
                .iter()
                .any(|p| words::shown(p).is_none())
                .then(|| "no mark: only carries what stands on it".to_owned()),
        )
        .collect();
    let dim = Colour::new().dimmed();
    let line = shown.join("   ");
    let fits = style.width.is_none_or(|width| columns_of(&line) <= width);
    writeln!(out, "{dim}{}{dim:#}", if fits { line } else { shown.join("\n") })
}

fn write_root(
    target: &Target,
    stack: &Stack<'_>,
    root: usize,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    let whole = &target.providers[root];
    let pieces = stack.pieces(root);
    let width = style.width.unwrap_or(WIDTH).max(20);
    let leaves = pieces.iter().filter(|p| p.leaf).count().max(1);
    let room = (width / 2 / leaves).clamp(LEAST, ROOM);
    let ranges: Vec<Range> = pieces
        .iter()
        .map(|p| Range { start: p.start, end: p.end, least: if p.leaf { room } else { 1 } })
        .collect();
    let scale = Scale::new(whole.length.max(1), &ranges, width);
    // With more pieces than columns, the columns are shared out, and some pieces get none.
    let column = |byte| scale.cell(byte) * width / scale.width().max(width);
    let rows = pieces.iter().filter_map(|p| p.row).max().unwrap_or(0);
    let mut nameless = Vec::new();
    for row in (0..=rows).rev() {
        let mut at = 0;
        for piece in pieces.iter().filter(|p| p.row == Some(row)) {
            let (from, to) = (column(piece.start), column(piece.end));
            let p = &target.providers[piece.provider];
            let (line, named) = bar(target, p, to - from, style);
            if !named {
                nameless.push(piece);
            }
            let colour = words::shown(p).map_or(Colour::new(), text::colour);
            write!(out, "{}{colour}{line}{colour:#}", " ".repeat(from - at))?;
            at = to;
        }
        writeln!(out)?;
    }
    nameless.extend(pieces.iter().filter(|p| p.row.is_none()));
    write_scale(whole, &scale, out, style)?;
    if nameless.len() > LISTED {
        return write_many(target, &nameless, out, style);
    }
    for piece in nameless {
        write_nameless(target, piece, out, style)?;
    }
    Ok(())
}

/// A piece as a measuring line with its name on it; true if the name found room.
fn bar(target: &Target, p: &Provider, width: usize, style: Style) -> (String, bool) {
    let mark = words::shown(p).map_or("", |v| words::mark(v, style));
    let name = words::name(&p.provider);
    let content = words::and_content(target, p);
    let gap = if mark.is_empty() { "" } else { " " };
    let full = format!(" {mark}{gap}{name}{content} {} ", size::human(p.length));
    measure([full, format!("{mark}{name}{content} "), format!("{mark}{name}")], mark, width, style)
}

/// A measuring line with the first of `labels` that has room, else with `mark`; true if a label had
/// room.
pub(crate) fn measure(
    labels: [String; 3],
    mark: &str,
    width: usize,
    style: Style,
) -> (String, bool) {
    let (open, dash, close) = (style.glyph("├", "|"), style.glyph("─", "-"), style.glyph("┤", "|"));
    let fits = |s: &String| columns_of(s) + 2 <= width;
    match width {
        0 => (String::new(), false),
        1 => (style.glyph("│", "|").into(), false),
        _ => {
            let (label, named) = labels
                .into_iter()
                .find(fits)
                .map_or((mark.to_owned(), false), |label| (label, true));
            let label = if fits(&label) { label } else { String::new() };
            let rest = width - 2 - columns_of(&label);
            let before = rest.min(1);
            (
                format!(
                    "{open}{}{label}{}{close}",
                    dash.repeat(before),
                    dash.repeat(rest - before)
                ),
                named,
            )
        }
    }
}

fn write_scale(
    whole: &Provider,
    scale: &Scale,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    let cells = u64::try_from(scale.width()).unwrap_or(u64::MAX).max(1);
    let dim = Colour::new().dimmed();
    let over = if whole.members.is_empty() {
        String::new()
    } else {
        format!(
            "{} over {}; ",
            words::name(&whole.provider),
            escape::plain(&whole.members.join(", "))
        )
    };
    let scaled = match scale.widened {
        0 => format!("to scale: a column is {}", size::human(whole.length / cells)),
        1 => "to scale, but for one narrow stretch drawn wider".into(),
        n => format!("to scale, but for {n} narrow stretches drawn wider"),
    };
    write!(out, "{dim}")?;
    columns::wrap("", 0, &format!("{over}{scaled}"), 0, style.width, out)?;
    write!(out, "{dim:#}")
}

fn write_nameless(
    target: &Target,
    piece: &Piece,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    let p = &target.providers[piece.provider];
    let mark = words::shown(p).map_or("-", |v| words::mark(v, style));
    let (name, content, at) =
        (words::name(&p.provider), words::content(target, p), words::start_cell(p));
    let says = format!("{mark} {name} {content}, {} at byte {at}", size::human(p.length));
    columns::wrap("  ", 2, &says, 4, style.width, out)
}

/// Writes the names of very many pieces, by verdict.
fn write_many(
    target: &Target,
    pieces: &[&Piece],
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    for verdict in [Verdict::Misaligned, Verdict::Unknown, Verdict::Aligned] {
        let here = pieces
            .iter()
            .map(|piece| &target.providers[piece.provider])
            .filter(|p| p.verdict == verdict);
        let names: Vec<String> = here.map(|p| words::name(&p.provider)).collect();
        if !names.is_empty() {
            let head = format!(
                "  {} {} {}: ",
                words::mark(verdict, style),
                names.len(),
                words::verdict(verdict)
            );
            columns::wrap(
                &head,
                columns_of(&head),
                &group::runs(names.into_iter()),
                4,
                style.width,
                out,
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn a_disk_and_what_stands_on_it() {
        let report = samples::report(vec![samples::openbsd(), samples::gpt()]);
        let text =
            samples::text(|out| write(&report, out, Style { width: Some(78), ascii: false }));
        samples::golden("picture.txt", &text);
        let ascii =
            samples::text(|out| write(&report, out, Style { width: Some(78), ascii: true }));
        assert!(ascii.is_ascii());
    }

    #[test]
    fn a_crowd_is_named_in_full() {
        let report = samples::report(vec![samples::crowded(2000)]);
        let text =
            samples::text(|out| write(&report, out, Style { width: Some(80), ascii: false }));
        assert!(text.contains(" p2000") || text.contains("to p2000"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
