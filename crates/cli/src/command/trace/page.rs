//! `trace --html`: a trace as one self-contained page, without a script.
//!
//! | file | what |
//! |---|---|
//! | `causes.rs` | causes, their evidence, and what to do |
//! | `heat.rs` | requests by size and alignment, as a picture |
//! | `latency.rs` | the latencies of each verdict |
//! | `shares.rs` | verdicts of a row as a bar |

mod causes;
mod heat;
mod latency;
mod shares;

use crate::command::lab::page::STYLE as CHARTS;
use crate::command::trace::document::{ProcessDocument, Traced};
use crate::command::trace::text::{head, lost};
use crate::command::trace::what_if::{DriveRun, ratio_of};
use crate::render::charts::lanes::text_of;
use crate::render::charts::{HATCH, spent};
use crate::render::made::Made;
use crate::render::report::page;
use crate::render::traffic::{layer_name, units_of, worst_first};
use crate::traffic::{Row, rows};
use crate::words::quantity::time;
use crate::words::{escape, size};
use std::io::{self, Write};

const STYLE: &str = include_str!("page/trace.css");

/// Processes with a line of their own, at most.
const LISTED: usize = 24;

/// Writes the page of a trace.
pub(super) fn write(traced: &Traced, made: &Made, out: &mut dyn Write) -> io::Result<()> {
    page::open(&format!("Trueline trace: {}", traced.target), &[CHARTS, STYLE], out)?;
    let (class, verdict) = verdict(traced);
    let target = text_of(&traced.target);
    writeln!(out, "<header>\n<h1><span class=\"{class}\">{verdict}</span>: {target}</h1>")?;
    writeln!(out, "{}\n<p>{}</p>", made.html(), numbers(&head(traced)))?;
    if let Some(lost) = lost(traced) {
        writeln!(
            out,
            "<p class=\"error\"><b>{}</b></p>",
            text_of(&anstream::adapter::strip_str(&lost).to_string())
        )?;
    }
    writeln!(out, "</header>\n{HATCH}<main>")?;
    let rows = rows(&traced.layers);
    let shown = worst_first(&rows);
    causes::write(traced, &shown, out)?;
    write_layers(&shown, out)?;
    heat::write(&traced.layers, &shown, out)?;
    latency::write(&traced.latency_ns, out)?;
    write_processes(traced, out)?;
    write_drives(&traced.drives, out)?;
    writeln!(out, "</main>")?;
    page::write_pages_of_rules(traced.causes.iter().filter_map(|cause| cause.rule), out)?;
    writeln!(out, "</body>\n</html>")
}

/// The class and the sentence of the headline.
fn verdict(traced: &Traced) -> (&'static str, String) {
    let all = traced.layers.iter().map(|layer| layer.requests);
    let all = all.fold(Default::default(), crate::traffic::Requests::merge);
    let (verdicts, writes) = (all.verdicts(), all.writes);
    let of = |some: u64, whole: u64, noun: &str| {
        format!("{} of {} {noun}", grouped(some), grouped(whole))
    };
    let small = of(writes.partial, writes.sum(), "writes are smaller than a unit");
    let misses = of(verdicts.misaligned, verdicts.sum(), "requests miss the grain");
    if verdicts.misaligned > 0 && writes.partial > 0 {
        ("misaligned", format!("✗ {misses}, {small}"))
    } else if verdicts.misaligned > 0 {
        ("misaligned", format!("✗ {misses}"))
    } else if writes.partial > 0 {
        ("warning", format!("△ {small}"))
    } else if verdicts.unknown > 0 {
        (
            "unknown",
            format!("? {}", of(verdicts.unknown, verdicts.sum(), "requests on no known unit")),
        )
    } else if verdicts.sum() == 0 {
        ("unknown", "no reads or writes".into())
    } else {
        ("aligned", "✓ no request misses the grain".into())
    }
}

/// A section with its heading, whose id is `id`.
fn section(id: &str, title: &str, about: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{title}</h2>")?;
    if about.is_empty() { Ok(()) } else { writeln!(out, "<p class=\"lead-in\">{about}</p>") }
}

/// A table's heading: names with their classes.
fn write_heading(name: &str, columns: &[(&str, &str)], out: &mut dyn Write) -> io::Result<()> {
    write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{name}\">\
            <table class=\"wide\">\n<thead><tr>"
    )?;
    for (head, class) in columns {
        write!(out, "<th scope=\"col\" class=\"{class}\">{head}")?;
    }
    writeln!(out, "</tr></thead>\n<tbody>")
}

fn write_layers(shown: &[&Row], out: &mut dyn Write) -> io::Result<()> {
    let about = "The deepest layer that a request begins in, and the boundary that judges it. \
        The cost is that of its writes on a drive of whole units, relative to those needed.";
    section("layers", "Layers", about, out)?;
    let columns = [
        ("Layer", ""),
        ("Content", ""),
        ("Unit", "num"),
        ("Reads", "num"),
        ("Writes", "num"),
        ("Verdicts", "shares"),
        ("Aligned", "num"),
        ("Misaligned", "num"),
        ("Partial", "num"),
        ("Unknown", "num"),
        ("Cost", "num"),
    ];
    write_heading("Layers", &columns, out)?;
    for row in shown {
        let (layer, all) = (&row.all, row.all.requests.verdicts());
        let cost = if layer.device_operations.writes_needed == 0 {
            String::new()
        } else {
            format!("{:.2} ×", layer.rmw_factor)
        };
        let bad = if all.misaligned > 0 { " misaligned" } else { "" };
        write!(
            out,
            "<tr><td class=\"name\">{}<td>{}<td class=\"num\">{}<td class=\"num\">{}<td \
                class=\"num\">{}<td class=\"shares\">{}",
            text_of(&layer_name(layer)),
            text_of(&layer.content),
            text_of(&units_of(row)),
            grouped(layer.requests.reads.sum()),
            grouped(layer.requests.writes.sum()),
            shares::bar(all)
        )?;
        writeln!(
            out,
            "<td class=\"num\">{}<td class=\"num{bad}\">{}<td class=\"num\">{}<td \
                class=\"num\">{}<td class=\"num\">{cost}</tr>",
            grouped(all.aligned),
            grouped(all.misaligned),
            grouped(all.partial),
            some(all.unknown)
        )?;
    }
    writeln!(out, "</tbody></table></div>\n{}</section>", shares::LEGEND)
}

fn write_processes(traced: &Traced, out: &mut dyn Write) -> io::Result<()> {
    if traced.processes.is_empty() {
        return Ok(());
    }
    let about = "The threads that handed requests to the driver. Writes of files are most often \
        handed on by the kernel's own.";
    section("processes", "Processes", about, out)?;
    let columns = [
        ("Process", ""),
        ("PID", "num"),
        ("Reads", "num"),
        ("Writes", "num"),
        ("Verdicts", "shares"),
        ("Misaligned", "num"),
        ("Partial", "num"),
        ("Bytes", "num"),
    ];
    write_heading("Processes", &columns, out)?;
    for process in traced.processes.iter().take(LISTED) {
        write_process(process, out)?;
    }
    writeln!(out, "</tbody></table></div>")?;
    let hidden = traced.processes.iter().skip(LISTED).map(|process| process.verdicts().sum());
    let hidden = hidden.sum::<u64>() + traced.other_processes;
    if hidden > 0 {
        writeln!(out, "<p class=\"dim\">and {} requests of other processes</p>", grouped(hidden))?;
    }
    writeln!(out, "</section>")
}

fn write_process(process: &ProcessDocument, out: &mut dyn Write) -> io::Result<()> {
    let all = process.verdicts();
    let bad = if all.misaligned > 0 { " misaligned" } else { "" };
    writeln!(
        out,
        "<tr><td class=\"name\">{}<td class=\"num\">{}<td class=\"num\">{}<td \
            class=\"num\">{}<td class=\"shares\">{}<td class=\"num{bad}\">{}<td \
            class=\"num\">{}<td class=\"num\">{}</tr>",
        text_of(&process.name),
        process.pid,
        grouped(process.reads.sum()),
        grouped(process.writes.sum()),
        shares::bar(all),
        grouped(all.misaligned),
        grouped(all.partial),
        size::human(process.bytes.sum())
    )
}

fn write_drives(drives: &[DriveRun], out: &mut dyn Write) -> io::Result<()> {
    if drives.is_empty() {
        return Ok(());
    }
    let about = "Simulated drives take the same requests, one after the other: as they were \
        traced, and with the start of every layer on the drive's grain.";
    section("drives", "The same requests on simulated drives", about, out)?;
    let columns =
        [("Drive", ""), ("Layout", ""), ("Requests", "num"), ("Time", "num"), ("Ratio", "num")];
    write_heading("Drives", &columns, out)?;
    #[allow(clippy::cast_precision_loss, reason = "times for people")]
    let shown = |ns: u64| time(ns as f64);
    for run in drives {
        let ratio = ratio_of(run, drives).map(|ratio| format!("{ratio:.2} ×"));
        writeln!(
            out,
            "<tr><td class=\"name\">{}<td>{}<td class=\"num\">{}<td class=\"num\">{}<td \
                class=\"num\">{}</tr>",
            text_of(&run.drive),
            run.variant,
            grouped(run.requests),
            shown(run.duration_ns),
            ratio.unwrap_or_default()
        )?;
    }
    writeln!(out, "</tbody></table></div>")?;
    // Each drive has a scale of its own: a disk would hide every SSD beside it.
    let mut models: Vec<&str> = drives.iter().map(|run| run.drive.as_str()).collect();
    models.dedup();
    for model in models {
        let own = drives.iter().filter(|run| run.drive == model);
        let known: Vec<_> = own.map(|run| (run.variant, &run.spent)).collect();
        if let Some(chart) = spent::seconds_of(model, &known) {
            let caption = format!("Where each second of {} went", text_of(model));
            writeln!(
                out,
                "<figure class=\"chart\"><figcaption>{caption}</figcaption>\n{chart}</figure>"
            )?;
        }
    }
    writeln!(out, "</section>")
}

/// A number in groups of three digits; a copied one has no gaps.
fn grouped(n: u64) -> String {
    numbers(&n.to_string())
}

/// A number as [`grouped`]; nothing for 0.
fn some(n: u64) -> String {
    if n == 0 { String::new() } else { grouped(n) }
}

/// Text with its long numbers in groups of three digits.
fn numbers(text: &str) -> String {
    escape::grouped(&escape::xml(text), "<i>", "</i>")
}

#[cfg(test)]
mod tests;
