//! The table of layers and their requests, and the lines that say what missed and why.

use crate::style::Style;
use crate::traffic::{Blame, Layer, Row};
use crate::words::columns::{self, Cell, Spare};
use crate::words::width::columns_of;
use crate::words::{self, escape, size};
use anstyle::{AnsiColor, Style as Colour};
use std::io;

/// Most layers with a line of their own; those that miss most come first.
const LISTED: usize = 24;

/// The rows before, and the seconds since.
pub(crate) type Before<'a> = Option<(&'a [Row], f64)>;

/// Misses of a unit that have a line of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Miss {
    /// Requests that miss it through the start of a layer, or the chunks of one.
    Stack,
    /// Requests that miss it as they were sent.
    Client,
    /// Writes of less than a unit.
    Small,
}

/// Writes the table of layers, and the reason and cost of every miss.
pub(crate) fn write(rows: &[Row], style: Style, out: &mut dyn io::Write) -> io::Result<()> {
    write_explained(rows, &|_, _, _| Ok(()), style, out)
}

/// Writer of lines on a miss of a layer, behind the one that says it; `None`: on the layer, behind
/// all of those.
pub(crate) type Explain<'a> = dyn Fn(&Row, Option<Miss>, &mut dyn io::Write) -> io::Result<()> + 'a;

/// As [`write`], with the lines that `explain` adds.
pub(crate) fn write_explained(
    rows: &[Row],
    explain: &Explain<'_>,
    style: Style,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    write_table(&worst_first(rows), None, style.width, out)?;
    if rows.len() > LISTED {
        writeln!(out, "and {} more", rows.len() - LISTED)?;
    }
    for row in worst_first(rows) {
        for (miss, colour, line) in says(row) {
            write_said(row, colour, &line, style, out)?;
            explain(row, Some(miss), out)?;
        }
        explain(row, None, out)?;
    }
    Ok(())
}

/// Writes a line that begins with the name of a layer.
pub(crate) fn write_said(
    row: &Row,
    colour: Colour,
    line: &str,
    style: Style,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let name = layer_name(&row.all);
    let head = format!("{colour}{name}{colour:#}: ");
    columns::wrap(&head, columns_of(&name) + 2, line, 2, style.width, out)
}

/// Layers in the order of their misaligned requests, most first.
pub(crate) fn worst_first(rows: &[Row]) -> Vec<&Row> {
    let mut sorted: Vec<&Row> = rows.iter().collect();
    sorted
        .sort_by_key(|row| (std::cmp::Reverse(row.all.requests.verdicts().misaligned), row.all.id));
    sorted.truncate(LISTED);
    sorted
}

/// A number with its noun: `1 read`, `2 reads`.
pub(crate) fn count(n: u64, noun: &str, plural: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { plural })
}

/// Writes the rows as a table; with those before, the rates since then.
pub(crate) fn write_table(
    shown: &[&Row],
    before: Before<'_>,
    width: Option<usize>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let (reads, writes) =
        if before.is_some() { ("READS/S", "WRITES/S") } else { ("READS", "WRITES") };
    let heads = [
        "LAYER",
        "CONTENT",
        "DISK",
        "UNIT",
        reads,
        writes,
        "TRIMS+ZEROES",
        "ALIGNED",
        "MISALIGNED",
        "PARTIAL",
        "UNKNOWN",
        "COST",
    ];
    let heading = heads
        .iter()
        .enumerate()
        .map(|(nth, head)| if nth < 3 { Cell::left(*head) } else { Cell::right(*head) });
    let mut rows = vec![heading.collect()];
    rows.extend(shown.iter().map(|row| cells(row, before)));
    // A single disk needs no name.
    if rows.len() > 1 {
        columns::write(&rows, &Spare(&[6, 1, 2, 10], "--json"), width, out)?;
    }
    Ok(())
}

fn cells(row: &Row, before: Before<'_>) -> Vec<Cell> {
    let layer = &row.all;
    let old = before.map(|(old, since)| (old.iter().find(|old| old.all.id == layer.id), since));
    let moved = |of: fn(&Layer) -> u64| match old {
        Some((old, since)) => {
            rate(of(layer).saturating_sub(old.map_or(0, |old| of(&old.all))), since)
        }
        None => of(layer).to_string(),
    };
    let all = layer.requests.verdicts();
    let red = if all.misaligned > 0 { AnsiColor::Red.on_default().bold() } else { Colour::new() };
    let some = |n: u64| if n == 0 { String::new() } else { n.to_string() };
    let cost = layer.rmw_factor;
    vec![
        Cell::left(layer_name(layer)),
        Cell::left(layer.content.clone()),
        Cell::left(disks(row)).colour(if row.worst().is_some() { red } else { Colour::new() }),
        Cell::right(units_of(row)),
        Cell::right(moved(|l| l.requests.reads.sum())),
        Cell::right(moved(|l| l.requests.writes.sum())),
        Cell::right(some(layer.requests.trims.sum() + layer.requests.zeroes.sum())),
        Cell::right(all.aligned.to_string()),
        Cell::right(all.misaligned.to_string()).colour(red),
        Cell::right(all.partial.to_string()),
        Cell::right(some(all.unknown)),
        Cell::right(if layer.device_operations.writes_needed == 0 {
            String::new()
        } else {
            format!("{cost:.2} x")
        }),
    ]
}

/// The disk; of several their number, after the name of the one that misses most, if any does.
fn disks(row: &Row) -> String {
    match row.worst() {
        None => escape::plain(&row.all.disk),
        Some(worst) if worst.verdicts().misaligned > 0 => {
            format!("{} of {}", escape::plain(&worst.disk), row.disks.len())
        }
        Some(_) => format!("{} disks", row.disks.len()),
    }
}

/// The units of the disks, each size once.
pub(crate) fn units_of(row: &Row) -> String {
    let mut sizes: Vec<u64> = row.disks.iter().map(|disk| disk.unit).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let shown: Vec<String> = sizes
        .into_iter()
        .map(|unit| if unit == 0 { "?".into() } else { size::short(unit) })
        .collect();
    shown.join(",")
}

/// The name of a layer; `(gone)` tells it from a later provider of that name.
pub(crate) fn layer_name(layer: &Layer) -> String {
    format!("{}{}", words::name(&layer.provider), if layer.gone { " (gone)" } else { "" })
}

/// The rate in whole numbers a second.
#[allow(clippy::cast_precision_loss, reason = "a rate for people")]
fn rate(count: u64, seconds: f64) -> String {
    format!("{:.0}", count as f64 / seconds)
}

/// Lines on misses of a unit: their reason and their cost.
fn says(row: &Row) -> Vec<(Miss, Colour, String)> {
    let layer = &row.all;
    let all = layer.requests.verdicts();
    let disk = if layer.disk.is_empty() {
        String::new()
    } else {
        format!(" of {}", escape::plain(&layer.disk))
    };
    let worst = match row.worst() {
        Some(worst) if worst.verdicts().misaligned > 0 => {
            let (most, of) = (worst.verdicts().misaligned, worst.verdicts().sum());
            format!(
                "s of {} disks, {} most often ({most} of {of} pieces)",
                row.disks.len(),
                escape::plain(&worst.disk)
            )
        }
        Some(_) => format!("s of {} disks", row.disks.len()),
        None => disk,
    };
    let unit =
        format!("{}-byte {} unit{worst}", units_in_words(row), layer.why.unwrap_or("unknown"));
    let (blamed, bad) = (layer.blamed_requests.sum(), AnsiColor::Red.on_default().bold());
    let mut lines = Vec::new();
    if let Some((why, rule)) = reasons(row).filter(|_| blamed > 0) {
        let cost = if layer.device_operations.writes_needed == 0 {
            String::new()
        } else {
            format!("; its writes come to {:.2} x the device operations", layer.rmw_factor)
        };
        lines.push((
            Miss::Stack,
            bad,
            format!(
                "{} off the {unit}, because {why}{cost}: trueline explain {rule}",
                of_all(blamed, all.sum())
            ),
        ));
    }
    let own = all.misaligned.saturating_sub(blamed);
    if own > 0 {
        let why = if layer.blame.is_some() {
            "because the client sends them so: a layer on the grain would not mend them"
        } else {
            "because the client sends them so: no layer shifts them"
        };
        let line = format!("{} off the {unit}, {why}", of_all(own, all.sum()));
        lines.push((Miss::Client, bad, line));
    }
    let small = layer.requests.writes.partial;
    if small > 0 {
        let why = "which is read first for each: trueline explain TL0004";
        let line = format!(
            "{small} of {} writes are smaller than the {unit}, {why}",
            layer.requests.writes.sum()
        );
        lines.push((Miss::Small, AnsiColor::Yellow.on_default(), line));
    }
    lines
}

/// The sizes of the units in bytes, each once, in words.
fn units_in_words(row: &Row) -> String {
    let mut sizes: Vec<u64> = row.disks.iter().map(|disk| disk.unit).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.iter().map(u64::to_string).collect::<Vec<_>>().join("- or ")
}

/// The blamed layers of all disks in words, those of the worst disk first, and the rule of the
/// first.
fn reasons(row: &Row) -> Option<(String, &'static str)> {
    let mut blames: Vec<&Blame> = Vec::new();
    for disk in row.disks.iter().filter(|disk| disk.blamed.sum() > 0) {
        blames.extend(disk.blame.as_ref().filter(|blame| !blames.contains(blame)));
    }
    let first = blames.first()?;
    let more = match blames.len() - 1 {
        0 => String::new(),
        more => format!(" (and {} on other disks)", count(more as u64, "layer", "s")),
    };
    Some((reason(first) + &more, first.rule))
}

/// The way in which the blamed layer leaves the grain, in words.
pub(crate) fn reason(blame: &Blame) -> String {
    let name = words::name(&blame.provider);
    match blame.chunk {
        Some(chunk) => format!("{name} cuts them into chunks of {}", words::bytes(chunk)),
        None => format!("{name} begins {} past a boundary", words::bytes(blame.remainder)),
    }
}

/// `1 of 1 request is`, `3 of 4 requests are`.
fn of_all(some: u64, all: u64) -> String {
    format!("{some} of {all} {}", if all == 1 { "request is" } else { "requests are" })
}
