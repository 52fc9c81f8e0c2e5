//! The summary of `serve`, and the table of `--top`.

use crate::command::serve::summary::{Blame, Export, Layer, Row, Served};
use crate::style::Style;
use crate::words::columns::{self, Cell, Spare};
use crate::words::width::columns_of;
use crate::words::{self, escape, size};
use anstyle::{AnsiColor, Style as Colour};
use std::io;
use std::time::Duration;

/// Most layers with a line of their own; those that miss most come first.
const LISTED: usize = 24;

/// Writes the counters, and the reason and cost of every miss.
pub(crate) fn write(served: &Served, style: Style, out: &mut dyn io::Write) -> io::Result<()> {
    let rows = served.merged();
    columns::line(&head(served), style.width, out)?;
    write_table(&worst_first(&rows), None, style.width, out)?;
    if rows.len() > LISTED {
        writeln!(out, "and {} more", rows.len() - LISTED)?;
    }
    for row in worst_first(&rows) {
        for (colour, line) in says(row) {
            let name = name(&row.all);
            let head = format!("{colour}{name}{colour:#}: ");
            columns::wrap(&head, columns_of(&name) + 2, &line, 2, style.width, out)?;
        }
    }
    Ok(())
}

/// True if there is anything to report.
pub(crate) fn is_worth_saying(served: &Served) -> bool {
    !served.layers.is_empty() || served.exports.iter().any(|e| e.errors.sum() + e.flush_errors > 0)
}

/// The contents of the table at some moment.
pub(crate) struct Moment<'a> {
    pub served: &'a Served,
    /// The counters at the moment before.
    pub before: &'a Served,
    /// Lines above the table: the ways in, and the last notice.
    pub said: &'a [String],
}

/// Writes the table of a moment: rates since the one before, and verdicts since the start. The
/// table has at most `lines` lines, less those above it.
pub(crate) fn write_top(
    moment: &Moment<'_>,
    style: Style,
    lines: usize,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let (rows, old) = (moment.served.merged(), moment.before.merged());
    let since = moment.served.duration_ns.saturating_sub(moment.before.duration_ns);
    let since = Duration::from_nanos(since).as_secs_f64().max(0.001);
    let above: Vec<String> =
        std::iter::once(head(moment.served)).chain(moment.said.iter().cloned()).collect();
    // A terminal breaks lines that are too long for it.
    let taken: usize = above
        .iter()
        .map(|line| style.width.map_or(1, |width| columns_of(line).div_ceil(width.max(1)).max(1)))
        .sum();
    // The line that names columns left out may continue on a second line.
    let gone = style.width.map_or(0, |_| 2);
    let mut shown = worst_first(&rows);
    shown.truncate(lines.saturating_sub(taken + 2 + gone));
    // A layer keeps its place from one second to the next.
    shown.sort_by_key(|row| row.all.id);
    above.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    write_table(&shown, Some((&old, since)), style.width, out)
}

/// Layers in the order of their misaligned requests, most first.
fn worst_first(rows: &[Row]) -> Vec<&Row> {
    let mut sorted: Vec<&Row> = rows.iter().collect();
    sorted
        .sort_by_key(|row| (std::cmp::Reverse(row.all.requests.verdicts().misaligned), row.all.id));
    sorted.truncate(LISTED);
    sorted
}

/// The line of totals: time, requests, bytes.
fn head(served: &Served) -> String {
    let sum = |of: fn(&Export) -> u64| served.exports.iter().map(of).sum::<u64>();
    let seconds = Duration::from_nanos(served.duration_ns).as_secs_f64();
    let errors = sum(|e| e.errors.sum() + e.flush_errors);
    let mut parts = vec![
        format!("{seconds:.1} s"),
        format!(
            "{} ({})",
            count(sum(|e| e.requests.reads), "read", "s"),
            size::human(sum(|e| e.bytes.reads))
        ),
        format!(
            "{} ({})",
            count(sum(|e| e.requests.writes), "write", "s"),
            size::human(sum(|e| e.bytes.writes))
        ),
        count(sum(|e| e.flushes), "flush", "es"),
    ];
    // Without cuts or copies, a piece is a request.
    let pieces = sum(|e| e.pieces.sum());
    parts.extend(
        (pieces != sum(|e| e.requests.sum()))
            .then(|| count(pieces, "piece", "s") + " on the disks"),
    );
    let most = served.exports.iter().map(|e| e.most_waiting).max().unwrap_or(0);
    parts.extend((most > 0).then(|| format!("at most {most} at the device at a time")));
    parts.extend((errors > 0).then(|| format!("{errors} failed")));
    format!("served {}: {}", escape::plain(&served.target), parts.join(", "))
}

fn count(n: u64, noun: &str, plural: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { plural })
}

/// The rows before, and the seconds since.
type Before<'a> = Option<(&'a [Row], f64)>;

fn write_table(
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
        Cell::left(name(layer)),
        Cell::left(layer.content.clone()),
        Cell::left(disks(row)).colour(if row.worst().is_some() { red } else { Colour::new() }),
        Cell::right(units(row)),
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
fn units(row: &Row) -> String {
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
fn name(layer: &Layer) -> String {
    format!("{}{}", words::name(&layer.provider), if layer.gone { " (gone)" } else { "" })
}

/// The rate in whole numbers a second.
#[allow(clippy::cast_precision_loss, reason = "a rate for people")]
fn rate(count: u64, seconds: f64) -> String {
    format!("{:.0}", count as f64 / seconds)
}

/// Lines on misses of a unit: their reason and their cost.
fn says(row: &Row) -> Vec<(Colour, String)> {
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
            bad,
            format!(
                "{} off the {unit}, because {why}{cost}: trueline explain {rule}",
                of_all(blamed, all.sum())
            ),
        ));
    }
    let own = all.misaligned.saturating_sub(blamed);
    if own > 0 {
        let why = "because the client sends them so: no layer shifts them";
        lines.push((bad, format!("{} off the {unit}, {why}", of_all(own, all.sum()))));
    }
    let small = layer.requests.writes.partial;
    if small > 0 {
        let why = "which is read first for each: trueline explain TL0004";
        let line = format!(
            "{small} of {} writes are smaller than the {unit}, {why}",
            layer.requests.writes.sum()
        );
        lines.push((AnsiColor::Yellow.on_default(), line));
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

fn reason(blame: &Blame) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn the_summary_says_what_missed_and_why() {
        let (served, _) = samples::served();
        samples::golden("served.txt", &samples::text(|out| write(&served, Style::default(), out)));
    }

    #[test]
    fn a_moment_is_rates_and_fits_its_lines() {
        let (served, _) = samples::served();
        let mut before = served.clone();
        before.duration_ns -= 500_000_000;
        before.layers[1].requests.writes.misaligned -= 10;
        let said = ["at nbd://127.0.0.1:10809/, http://127.0.0.1:9100/".to_owned()];
        let moment = Moment { served: &served, before: &before, said: &said };
        let wide = |width, lines| {
            samples::text(|out| write_top(&moment, Style { width, ..Style::default() }, lines, out))
        };
        let of = |lines| wide(None, lines);
        let line = |text: &str, name: &str| {
            text.lines()
                .find(|l| l.starts_with(name))
                .map(|l| l.split_whitespace().map(str::to_owned).collect())
        };
        let (all, row): (String, Option<Vec<String>>) = (of(10), line(&of(10), "s4b"));
        assert_eq!(row.unwrap()[2..5], ["4K", "0", "20"], "{all}");
        // Of more layers than fit, those that miss most.
        let one = of(5);
        assert!(
            one.lines().count() <= 4 && one.contains("s4b") && !one.contains("\ndisk"),
            "{one}"
        );
        // The ways in are named, and take the lines that the terminal makes of them.
        assert_eq!(one.lines().nth(1), Some(said[0].as_str()));
        assert_eq!(
            [wide(Some(40), 24), wide(Some(40), 7)]
                .map(|text| text.lines().filter(|l| l.starts_with("disk")).count()),
            [1, 0]
        );
    }

    #[test]
    fn hostile_names_stay_on_their_line() {
        let (mut served, _) = samples::served();
        served.layers[0].provider = "s4\u{1b}[2J\n".into();
        let text = samples::text(|out| write(&served, Style::default(), out));
        assert!(!text.contains("\u{1b}[2J") && text.contains(r"s4\u{1b}[2J\n"), "{text}");
    }

    #[test]
    fn what_is_not_there_any_more_is_told_from_what_has_its_name_now() {
        let (mut served, _) = samples::served();
        let now = Layer { id: 9, content: "ext4".into(), ..served.layers[1].clone() };
        served.layers[1].gone = true;
        served.layers.push(now);
        let text = samples::text(|out| write(&served, Style::default(), out));
        let begins = |with: &[&str]| {
            text.lines().any(|line| {
                line.split_whitespace().zip(with).filter(|(a, b)| a == *b).count() == with.len()
            })
        };
        assert!(begins(&["s4b", "(gone)"]) && begins(&["s4b", "ext4"]), "{text}");
        assert!(text.contains("\ns4b (gone): 90 of ") && text.contains("\ns4b: 90 of "), "{text}");
    }
}
