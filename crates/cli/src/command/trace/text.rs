//! The report of a trace, and the table of `--top`.

use crate::command::trace::causes::Cause;
use crate::command::trace::document::{ProcessDocument, Traced, VerdictLatencies};
use crate::command::trace::histogram;
use crate::command::trace::what_if::ratio_of;
use crate::render::report::text::write_fixes;
use crate::render::spent;
use crate::render::traffic::{self, Miss, count, worst_first, write_table};
use crate::style::Style;
use crate::traffic::{Latency, Row, rows};
use crate::words::columns::{self, Cell, Spare};
use crate::words::quantity::time;
use crate::words::width::columns_of;
use crate::words::{escape, size};
use anstyle::{AnsiColor, Style as Colour};
use std::io;
use std::time::Duration;

/// Processes with a line of their own, at most.
const LISTED: usize = 12;

/// Writes the counts: layers and why they miss, sizes and alignments (if `whole`, all of them),
/// how long requests took, whose they are.
pub(super) fn write(
    traced: &Traced,
    whole: bool,
    style: Style,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    columns::line(&head(traced), style.width, out)?;
    if let Some(line) = lost(traced) {
        columns::line(&line, style.width, out)?;
    }
    if traced.layers.is_empty() {
        return Ok(());
    }
    let explain = |row: &Row, miss: Option<Miss>, out: &mut dyn io::Write| {
        let own = |cause: &&Cause| cause.id == row.all.id && cause.miss == miss;
        let mut causes = traced.causes.iter().filter(own);
        causes.try_for_each(|cause| write_cause(row, cause, style, out))
    };
    traffic::write_explained(&rows(&traced.layers), &explain, style, out)?;
    histogram::write(&traced.layers, whole, style, out)?;
    let latencies = latencies(traced);
    if latencies.len() > 1 {
        writeln!(out)?;
        columns::write(&latencies, &Spare(&[2, 5], "--json"), style.width, out)?;
    }
    if !traced.processes.is_empty() {
        writeln!(out)?;
        write_processes(traced, LISTED, style, out)?;
    }
    write_drives(traced, style, out)
}

/// Writes a cause and its fixes; the line of a layer's start has said why already.
fn write_cause(row: &Row, cause: &Cause, style: Style, out: &mut dyn io::Write) -> io::Result<()> {
    let head = if cause.known { "because: " } else { "suspected: " };
    let message = escape::plain(&cause.message);
    let yellow = AnsiColor::Yellow.on_default();
    match cause.miss {
        Some(Miss::Stack) => {}
        Some(_) => {
            let (head, shown) = (format!("  {head}"), head.len() + 2);
            columns::wrap(&head, shown, &message, 4, style.width, out)?;
        }
        None => traffic::write_said(row, yellow, &format!("{head}{message}"), style, out)?,
    }
    let indent = if matches!(cause.miss, Some(Miss::Client | Miss::Small)) { 4 } else { 2 };
    write_fixes((&cause.commands, &cause.fix), indent, out, style)
}

/// Writes the time that simulated drives took, and where it went.
fn write_drives(traced: &Traced, style: Style, out: &mut dyn io::Write) -> io::Result<()> {
    if traced.drives.is_empty() {
        return Ok(());
    }
    let heads = ["DRIVE", "LAYOUT", "TIME", "RATIO"];
    let heading = heads
        .iter()
        .enumerate()
        .map(|(nth, head)| if nth < 2 { Cell::left(*head) } else { Cell::right(*head) });
    let mut rows = vec![heading.collect::<Vec<_>>()];
    #[allow(clippy::cast_precision_loss, reason = "times for people")]
    let float = |ns: u64| ns as f64;
    for run in &traced.drives {
        let ratio = ratio_of(run, &traced.drives).map(|ratio| format!("{ratio:.2} x"));
        rows.push(vec![
            Cell::left(escape::plain(&run.drive)),
            Cell::left(run.variant),
            Cell::right(time(float(run.duration_ns))),
            Cell::right(ratio.unwrap_or_default()),
        ]);
    }
    writeln!(out)?;
    columns::write(&rows, &Spare::NONE, style.width, out)?;
    let names: Vec<String> =
        traced.drives.iter().map(|run| format!("{}, {}", run.drive, run.variant)).collect();
    let spends: Vec<_> =
        names.iter().zip(&traced.drives).map(|(name, run)| (name.as_str(), &run.spent)).collect();
    writeln!(out)?;
    spent::write(&spends, style, out)
}

/// Writes the table of a moment: rates since the one before, verdicts since the start, and whose
/// requests they are, in at most `lines` lines.
pub(super) fn write_top(
    traced: &Traced,
    before: &Traced,
    style: Style,
    lines: usize,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let (shown, old) = (rows(&traced.layers), rows(&before.layers));
    let since = traced.duration_ns.saturating_sub(before.duration_ns);
    let since = Duration::from_nanos(since).as_secs_f64().max(0.001);
    let above: Vec<String> = std::iter::once(head(traced)).chain(lost(traced)).collect();
    // A terminal breaks lines that are too long for it.
    let taken: usize = above
        .iter()
        .map(|line| style.width.map_or(1, |width| columns_of(line).div_ceil(width.max(1)).max(1)))
        .sum();
    // The heading, the lines of columns left out, and the row of the cursor.
    let left = lines.saturating_sub(taken + 4);
    let mut table = worst_first(&shown);
    table.truncate(left.min(left / 2 + 1));
    table.sort_by_key(|row| row.all.id);
    above.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    write_table(&table, Some((&old, since)), style.width, out)?;
    // An empty line, a heading and the line of columns left out.
    let left = left.saturating_sub(table.len() + 4);
    if left == 0 || traced.processes.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    write_processes(traced, left, style, out)
}

/// The line of totals: time, requests, bytes.
pub(super) fn head(traced: &Traced) -> String {
    let seconds = Duration::from_nanos(traced.duration_ns).as_secs_f64();
    let sized = |n: u64, noun: &str, bytes: u64| {
        format!("{} ({})", count(n, noun, "s"), size::human(bytes))
    };
    let mut parts = vec![
        format!("{seconds:.1} s"),
        sized(traced.requests.reads, "read", traced.bytes.reads),
        sized(traced.requests.writes, "write", traced.bytes.writes),
    ];
    let more = [
        (traced.requests.trims, "trim", traced.bytes.trims),
        (traced.requests.zeroes, "zero write", traced.bytes.zeroes),
    ];
    parts.extend(more.into_iter().filter(|of| of.0 > 0).map(|(n, noun, of)| sized(n, noun, of)));
    parts.push(count(traced.flushes, "flush", "es"));
    let more = [(traced.other, "other command"), (traced.outside, "request")];
    let [other, outside] = more.map(|(n, noun)| (n > 0).then(|| count(n, noun, "s")));
    parts.extend(other);
    parts.extend(outside.map(|outside| outside + " outside of it"));
    format!("traced {}: {}", escape::plain(&traced.target), parts.join(", "))
}

/// The line on events that are missing.
pub(super) fn lost(traced: &Traced) -> Option<String> {
    let red = AnsiColor::Red.on_default().bold();
    (traced.lost > 0).then(|| {
        let events = count(traced.lost, "event", "s");
        format!(
            "{red}{events} lost{red:#}: the buffers of the kernel were full; all counts are too low"
        )
    })
}

/// The table of latencies, with its heading.
fn latencies(traced: &Traced) -> Vec<Vec<Cell>> {
    let heads = ["LATENCY", "REQUESTS", "MEAN", "P50", "P99", "MAX"];
    let heading = heads
        .iter()
        .enumerate()
        .map(|(nth, head)| if nth == 0 { Cell::left(*head) } else { Cell::right(*head) });
    let mut rows = vec![heading.collect()];
    let kinds = [("reads", &traced.latency_ns.reads), ("writes", &traced.latency_ns.writes)];
    for (kind, of) in kinds {
        let VerdictLatencies { aligned, misaligned, partial, unknown } = of;
        let verdicts = [
            ("aligned", aligned),
            ("misaligned", misaligned),
            ("partial", partial),
            ("unknown", unknown),
        ];
        for (verdict, latency) in verdicts {
            rows.extend(
                latency.as_ref().map(|latency| row(&format!("{kind}, {verdict}"), latency)),
            );
        }
    }
    rows
}

fn row(name: &str, latency: &Latency) -> Vec<Cell> {
    #[allow(clippy::cast_precision_loss, reason = "a time for people")]
    let shown = |ns: u64| Cell::right(time(ns as f64));
    vec![
        Cell::left(name),
        Cell::right(latency.count.to_string()),
        shown(latency.mean),
        shown(latency.p50),
        shown(latency.p99),
        shown(latency.max),
    ]
}

fn write_processes(
    traced: &Traced,
    most: usize,
    style: Style,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let heads = [
        "PROCESS",
        "PID",
        "READS",
        "WRITES",
        "TRIMS+ZEROES",
        "ALIGNED",
        "MISALIGNED",
        "PARTIAL",
        "UNKNOWN",
        "BYTES",
    ];
    let heading = heads
        .iter()
        .enumerate()
        .map(|(nth, head)| if nth == 0 { Cell::left(*head) } else { Cell::right(*head) });
    let mut rows = vec![heading.collect::<Vec<_>>()];
    rows.extend(traced.processes.iter().take(most).map(process));
    columns::write(&rows, &Spare(&[4, 9, 1, 8, 2], "--json"), style.width, out)?;
    let hidden = traced.processes.iter().skip(most).map(|process| process.verdicts().sum());
    let hidden = hidden.sum::<u64>() + traced.other_processes;
    if hidden > 0 {
        let more = count(hidden, "request", "s");
        columns::line(&format!("and {more} of other processes"), style.width, out)?;
    }
    Ok(())
}

fn process(process: &ProcessDocument) -> Vec<Cell> {
    let all = process.verdicts();
    let red = if all.misaligned > 0 { AnsiColor::Red.on_default().bold() } else { Colour::new() };
    let some = |n: u64| Cell::right(if n == 0 { String::new() } else { n.to_string() });
    vec![
        Cell::left(escape::plain(&process.name)),
        Cell::right(process.pid.to_string()),
        Cell::right(process.reads.sum().to_string()),
        Cell::right(process.writes.sum().to_string()),
        some(process.trims.sum() + process.zeroes.sum()),
        Cell::right(all.aligned.to_string()),
        Cell::right(all.misaligned.to_string()).colour(red),
        Cell::right(all.partial.to_string()),
        some(all.unknown),
        Cell::right(size::human(process.bytes.sum())),
    ]
}
