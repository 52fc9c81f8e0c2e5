//! `lab`: published values beside ours, a table for each lab.

use crate::render::layers;
use crate::style::Style;
use crate::words::columns::{Cell, Spare, wrap, write as write_rows};
use crate::words::width::columns_of;
use crate::words::{self, escape};
use anstyle::{AnsiColor, Style as Colour};
use std::io;
use trueline_lab::result::{LabDocument, LabResult, LayerResult, LevelErrors, Nearer, Row};
use trueline_lab::study::Lab;

/// Width of notes where no terminal gives one: they are paragraphs, not lines for a program.
const LINE: usize = 120;

const BOLD: Colour = Colour::new().bold();
const DIM: Colour = Colour::new().dimmed();
const RED: Colour = AnsiColor::Red.on_default();

/// Writes the tables, the notes on their rows, and the number of rows within their bounds.
pub(crate) fn write(
    document: &LabDocument,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    for lab in &document.labs {
        table(lab, out, style)?;
    }
    summary(document, out, style)
}

/// Writes the list of labs, with their rows.
pub(crate) fn list(labs: &[Lab], out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    for lab in labs {
        let head = format!("{BOLD}{}{BOLD:#}  ", escape::plain(lab.name()));
        wrap(&head, columns_of(lab.name()) + 2, &escape::plain(lab.title()), 2, style.width, out)?;
        wrap(
            "  ",
            2,
            &lab.rows().map(escape::plain).collect::<Vec<_>>().join(" "),
            2,
            style.width,
            out,
        )?;
    }
    Ok(())
}

fn table(lab: &LabResult, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    let head = format!("{BOLD}{}{BOLD:#}  ", escape::plain(&lab.lab));
    wrap(&head, columns_of(&lab.lab) + 2, &escape::plain(&lab.title), 2, style.width, out)?;
    if let Some(source) = &lab.source {
        wrap(&format!("{DIM}"), 0, &escape::plain(source), 2, style.width, out)?;
        write!(out, "{DIM:#}")?;
    }
    let mut rows = vec![heading(lab.rows.iter().any(Row::is_measured_here))];
    for row in &lab.rows {
        rows.extend(cells(row, style));
    }
    // The range goes first; the value of the unaligned follows from the ratio.
    write_rows(&rows, &Spare(&[8, 6, 3, 14, 1, 12, 13, 10], "--json"), style.width, out)?;
    for (names, note) in notes(&lab.rows) {
        wrap(
            &format!("  {BOLD}{names}{BOLD:#}: "),
            columns_of(&names) + 4,
            &escape::plain(note),
            4,
            Some(style.width.unwrap_or(LINE)),
            out,
        )?;
    }
    through(lab, out, style)?;
    writeln!(out)
}

/// Writes what the layers of the rows made of their requests.
fn through(lab: &LabResult, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    let variants = lab.rows.iter().flat_map(|row| row.variants.iter().map(move |v| (row, v)));
    let named: Vec<(String, &[LayerResult])> = variants
        .filter(|(_, variant)| !variant.layers.is_empty())
        .map(|(row, variant)| (format!("{} {}", row.row, variant.name), &*variant.layers))
        .collect();
    if named.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let named: Vec<_> = named.iter().map(|(name, layers)| (name.as_str(), *layers)).collect();
    layers::write(&named, style, out)
}

/// The notes, each text once, with the names of its rows.
fn notes(rows: &[Row]) -> Vec<(String, &str)> {
    let mut notes: Vec<(String, &str)> = Vec::new();
    for row in rows.iter().filter(|row| !row.note.is_empty()) {
        let name = escape::plain(&row.row);
        match notes.iter_mut().find(|(_, note)| *note == row.note) {
            Some((names, _)) => *names = format!("{names}, {name}"),
            None => notes.push((name, &row.note)),
        }
    }
    notes
}

/// The heading of a table; the columns of rows that are measured here have intervals.
fn heading(is_measured: bool) -> Vec<Cell> {
    let left = |text: &str| Cell::left(text).colour(BOLD);
    let right = |text: &str| Cell::right(text).colour(BOLD);
    vec![
        left("ROW"),
        left("UNIT"),
        right("PUBLISHED"),
        right("PUB. OFF"),
        right("PUB. RATIO"),
        right("OURS"),
        right("OUR OFF"),
        right("OUR RATIO"),
        left(if is_measured { "INTERVAL" } else { "RANGE" }),
        right("ERROR"),
        left("LEVELS"),
        left("WITHIN"),
        right("NULL"),
        left("NEARER"),
        left("FIRMWARE"),
    ]
}

/// The cells of a row, and of the same row under its other personalities.
fn cells(row: &Row, style: Style) -> Vec<Vec<Cell>> {
    let amount =
        |value: Option<f64>| Cell::right(value.map_or(String::new(), |v| number(v, &row.unit)));
    let published = row.published;
    let [null, nearer] = null_model(row);
    let mut rows = vec![vec![
        Cell::left(escape::plain(&row.row)),
        Cell::left(unit(&row.unit)),
        amount(published.and_then(|p| p.aligned)),
        amount(published.and_then(|p| p.unaligned)),
        Cell::right(ratio(published.and_then(|p| p.ratio))),
        if row.ours.is_none() {
            Cell::right("-").colour(DIM)
        } else {
            amount(row.ours.and_then(|o| o.aligned))
        },
        amount(row.ours.and_then(|o| o.unaligned)),
        Cell::right(ratio(row.ours.and_then(|o| o.ratio))),
        Cell::left(interval(row.ours.and_then(|o| o.low.zip(o.high)))),
        Cell::right(percent(row.error)),
        levels(row),
        within(row, style),
        null,
        nearer,
        Cell::left(row.personality.clone().unwrap_or_default()),
    ]];
    rows.extend(row.alternatives.iter().map(|other| {
        let mut cells = vec![Cell::default(); 15];
        cells[0] = Cell::left(format!("  or {}", escape::plain(&other.personality))).colour(DIM);
        cells[5] = amount(other.ours.aligned);
        cells[6] = amount(other.ours.unaligned);
        cells[7] = Cell::right(ratio(other.ours.ratio));
        cells[8] = Cell::left(interval(other.ours.low.zip(other.ours.high)));
        cells[9] = Cell::right(percent(other.error));
        cells
    }));
    rows
}

/// The errors of both values of a row with a ratio.
fn levels(row: &Row) -> Cell {
    let LevelErrors { aligned, unaligned } = row.level_errors;
    let both = row.published.and_then(|published| published.ratio).and(aligned.zip(unaligned));
    Cell::left(both.map_or(String::new(), |(aligned, unaligned)| {
        format!("{:+.0}, {:+.0} %", aligned * 100.0, unaligned * 100.0)
    }))
}

/// The error of the null model, and the name of the ratio that is nearer to the published one.
fn null_model(row: &Row) -> [Cell; 2] {
    let null = row.null_model;
    let word = match null.and_then(|null| null.nearer) {
        Some(Nearer::Ours) => Cell::left("ours"),
        Some(Nearer::Same) => Cell::left("same"),
        Some(Nearer::Null) => Cell::left("null").colour(RED),
        None => Cell::default(),
    };
    [Cell::right(percent(null.and_then(|null| null.error))), word]
}

/// The bound of a row, with a mark if it keeps it.
fn within(row: &Row, style: Style) -> Cell {
    let Some(bound) = row.bound else { return Cell::default() };
    let bound = format!("{:.0} %", bound * 100.0);
    match row.keeps_bound() {
        Some(true) => Cell::left(format!("{} {bound}", style.glyph("✓", "+"))),
        Some(false) => Cell::left(format!("{} {bound}", style.glyph("✗", "x"))).colour(RED),
        None => Cell::left(bound).colour(DIM),
    }
}

/// Writes the number of rows that are predicted, and of those that keep their bounds.
fn summary(document: &LabDocument, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    let rows = || document.labs.iter().flat_map(|lab| &lab.rows);
    let bounded = rows().filter(|row| row.predicted && row.keeps_bound().is_some()).count();
    let kept = rows().filter(|row| row.predicted && row.keeps_bound() == Some(true)).count();
    let calibrated = rows().filter(|row| row.is_calibrated()).count();
    let free = rows()
        .filter(|row| row.ours.is_some() && !row.is_calibrated() && row.keeps_bound().is_none())
        .count();
    let none = rows().filter(|row| row.ours.is_none() && !row.predicted && !row.skipped).count();
    let skipped = rows().filter(|row| row.skipped).count();
    let failed = rows().filter(|row| row.ours.is_none() && row.predicted).count();
    let mut parts = Vec::new();
    if bounded > 0 {
        let bounds = if bounded == 1 { "its bound" } else { "their bounds" };
        parts.push(format!("{kept} of {} within {bounds}", words::count(bounded, "prediction")));
    }
    let nulls = document.nearer();
    if !nulls.is_empty() {
        let count = |nearer| nulls.iter().filter(|&&other| other == nearer).count();
        let same = match count(Nearer::Same) {
            0 => String::new(),
            same => format!(", {same} as near"),
        };
        let all = words::count(nulls.len(), "ratio");
        parts.push(format!("{} of {all} nearer than the null model{same}", count(Nearer::Ours)));
    }
    let ranges: Vec<bool> =
        rows().filter(|row| row.predicted).filter_map(Row::range_holds).collect();
    if !ranges.is_empty() {
        let held = ranges.iter().filter(|&&held| held).count();
        let all = words::count(ranges.len(), "range");
        let hold = if ranges.len() == 1 { "holds" } else { "hold" };
        parts.push(format!("{held} of {all} {hold} the published ratio"));
    }
    if calibrated > 0 {
        parts.push(format!("{calibrated} calibrated to the document"));
    }
    if free > 0 {
        parts.push(format!("{free} without a published value or a bound"));
    }
    if none > 0 {
        parts.push(format!("{none} that cannot honestly be predicted"));
    }
    if skipped > 0 {
        parts.push(format!("{skipped} skipped on this machine"));
    }
    if failed > 0 {
        parts.push(format!("{failed} not run"));
    }
    wrap("", 0, &parts.join("; "), 2, style.width, out)
}

/// A value in its row's unit, with four digits or so.
fn number(value: f64, unit: &str) -> String {
    let value = if unit == "bytes/s" { value / 1e6 } else { value };
    match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.1}"),
        v if v > 0.0 && v < 0.1 => format!("{value:.4}"),
        _ => format!("{value:.2}"),
    }
}

fn unit(unit: &str) -> &str {
    if unit == "bytes/s" { "MB/s" } else { unit }
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or(String::new(), |ratio| format!("{ratio:.3}"))
}

fn interval(bounds: Option<(f64, f64)>) -> String {
    bounds.map_or(String::new(), |(low, high)| format!("{low:.3}..{high:.3}"))
}

fn percent(error: Option<f64>) -> String {
    error.map_or(String::new(), |error| format!("{:+.1} %", error * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::lab::page::sample;
    use crate::render::samples;

    #[test]
    fn the_tables_fit_every_terminal() {
        for width in 30..140 {
            let style = Style { width: Some(width), ascii: false };
            let text = samples::text(|out| write(&sample::document(), out, style));
            let wide: Vec<&str> =
                text.lines().filter(|line| line.chars().count() > width).collect();
            assert!(wide.is_empty(), "{width}: {wide:?}");
            assert!(text.contains("raidtest-n1") && text.contains("or B"), "{width}\n{text}");
        }
    }

    #[test]
    fn columns_that_are_left_out_are_named_and_no_two_have_one_name() {
        let style = Style { width: Some(80), ascii: false };
        let text = samples::text(|out| write(&sample::document(), out, style));
        let lines: Vec<&str> = text.lines().collect();
        let heading = lines.iter().find(|line| line.contains("PUBLISHED")).expect("a table");
        assert!(heading.contains("PUB. RATIO") && heading.contains("OUR RATIO"), "{heading}");
        assert!(!heading.contains("RANGE") && !heading.contains("OUR OFF"), "{heading}");
        let gone =
            lines.iter().find(|line| line.starts_with("No room for ")).expect("a line beneath it");
        assert!(gone.contains("'OUR OFF', 'RANGE'"), "{gone}");
        let names: Vec<String> =
            super::heading(false).iter().map(|cell| format!("{cell:?}")).collect();
        assert!((1..names.len()).all(|nth| !names[..nth].contains(&names[nth])), "{names:?}");
    }

    #[test]
    fn what_is_skipped_is_not_what_cannot_be_predicted() {
        let mut document = sample::document();
        let rows = document.labs.iter_mut().flat_map(|lab| &mut lab.rows);
        rows.filter(|row| row.ours.is_none()).for_each(|row| row.skipped = true);
        let text = samples::text(|out| summary(&document, out, Style::default()));
        assert!(
            text.ends_with("; 1 skipped on this machine\n") && !text.contains("honestly"),
            "{text}"
        );
    }

    #[test]
    fn what_is_calibrated_is_no_prediction_that_is_kept() {
        let text = samples::text(|out| summary(&sample::document(), out, Style::default()));
        let nulls =
            "4 of 4 ratios nearer than the null model; 3 of 4 ranges hold the published ratio";
        let rest = "2 without a published value or a bound; 1 that cannot honestly be predicted";
        assert_eq!(
            text,
            format!(
                "4 of 4 predictions within their bounds; {nulls}; 4 calibrated to the document; {rest}\n"
            )
        );
    }
}
