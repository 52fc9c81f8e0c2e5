//! One row of a lab: its values, its seconds by cause, its latencies, its layout, and its note.

use super::standing::compared;
use super::{anchor, bars, latency, medium};
use crate::render::charts::lanes::text_of;
use crate::render::charts::quantity::{digits, percent, seconds, value};
use crate::render::charts::spent;
use crate::words::size;
use std::io::{self, Write};
use trueline_lab::result::{LabResult, Row};

/// The bars of a row's drives; `None` if nothing is known of them.
fn seconds_of(row: &Row) -> Option<String> {
    let known: Vec<_> =
        row.variants.iter().filter_map(|v| Some((v.name.as_str(), v.drives.as_ref()?))).collect();
    spent::seconds_of(&row.title, &known)
}

/// Writes a row of a lab.
pub(super) fn write(lab: &LabResult, row: &Row, out: &mut dyn Write) -> io::Result<()> {
    let id = anchor(&lab.lab, &row.row);
    let dead = if row.ours.is_none() { " dead" } else { "" };
    writeln!(out, "<article class=\"row{dead}\" id=\"{id}\" data-row=\"{}\">", text_of(&row.row))?;
    writeln!(out, "<h3>{} {}</h3>", text_of(&row.title), pill(row))?;
    let seed =
        row.seed.as_ref().map_or(String::new(), |seed| format!("document {} · ", text_of(seed)));
    writeln!(out, "<p class=\"id\">{seed}<code>{}</code></p>", text_of(&row.row))?;
    let right = [
        chart("Where each second went", seconds_of(row)),
        chart("The layout on the medium", medium::layouts(row)),
    ]
    .concat();
    let left = chart(
        if row.published.is_some() { "Published and ours" } else { "Aligned and unaligned" },
        Some(bars::bars(row)),
    ) + &chart("Share of requests done within a time", latency::curves(row));
    // The note stands beside the bars if nothing else does.
    let note = note(row);
    if right.is_empty() {
        writeln!(out, "<div class=\"charts\"><div>{left}</div><div>{note}</div></div>")?;
    } else {
        writeln!(out, "{note}<div class=\"charts\"><div>{left}</div><div>{right}</div></div>")?;
    }
    write_numbers(row, out)?;
    writeln!(out, "</article>")
}

/// The note of a row, as a paragraph.
fn note(row: &Row) -> String {
    match (&row.ours, row.note.as_str()) {
        (None, "") => "<p class=\"say\"><b>Not predicted.</b></p>\n".into(),
        (None, note) => format!("<p class=\"say\"><b>Not predicted:</b> {}</p>\n", text_of(note)),
        (Some(_), "") => String::new(),
        (Some(_), note) => format!("<p class=\"say\">{}</p>\n", text_of(note)),
    }
}

fn chart(title: &str, chart: Option<String>) -> String {
    chart.map_or(String::new(), |chart| {
        format!("<figure class=\"chart\"><figcaption>{title}</figcaption>\n{chart}</figure>\n")
    })
}

/// The distance of our value from the published one, in a few words.
fn pill(row: &Row) -> String {
    let Some(found) = compared(row.published.as_ref(), row.ours.as_ref()) else {
        let word = match (&row.ours, row.predicted) {
            (None, _) => "not predicted",
            (Some(_), false) => "measured here",
            (Some(_), true) => "predicted, nothing published",
        };
        return format!("<span class=\"pill\">{word}</span>");
    };
    let error = format!(
        "{} {}",
        if found.of_ratios { "ratio" } else { "level" },
        percent(found.factor - 1.0)
    );
    let level = level(row)
        .filter(|_| found.of_ratios)
        .map_or(String::new(), |level| format!(" <span class=\"pill\">{level}</span>"));
    if row.is_calibrated() {
        return format!("<span class=\"pill\">calibrated, {error}</span>{level}");
    }
    let within = row.bound.map_or(String::new(), |b| percent(b).trim_start_matches('+').to_owned());
    match row.keeps_bound() {
        Some(true) => format!("<span class=\"pill good\">✓ {error}, within {within}</span>{level}"),
        Some(false) => {
            format!("<span class=\"pill error\">✗ {error}, not within {within}</span>{level}")
        }
        None => format!("<span class=\"pill\">{error}</span>{level}"),
    }
}

/// The distance of our values from the published ones, if the ratio alone has a bound.
fn level(row: &Row) -> Option<String> {
    let off = |name: &str, error: Option<f64>| {
        error.filter(|error| error.is_finite()).map(|error| format!("{name} {}", percent(error)))
    };
    let levels = row.published?.level_errors(row.ours?);
    let both = [off("aligned", levels.aligned), off("unaligned", levels.unaligned)];
    let parts: Vec<String> = both.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("level: {}", parts.join(", ")))
}

/// Writes all values as tables, for readers of numbers and of screens without charts.
fn write_numbers(row: &Row, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<details><summary>The numbers</summary>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"numbers\">"
    )?;
    writeln!(
        out,
        "<table><thead><tr><td><th scope=\"col\" class=\"num\">aligned<th scope=\"col\" class=\"num\">unaligned<th scope=\"col\" class=\"num\">ratio<th scope=\"col\" class=\"num\">{range}<th scope=\"col\" class=\"num\">error</tr></thead><tbody>",
        range = if row.is_measured_here() { "interval" } else { "range" }
    )?;
    let of = |v: Option<f64>| v.map_or("–".into(), |v| text_of(&value(v, &row.unit)));
    let ratio = |v: Option<f64>| v.map_or("–".into(), digits);
    let mut line = |name: &str, cells: [String; 5]| {
        writeln!(
            out,
            "<tr><th scope=\"row\">{}<td class=\"num\">{}</tr>",
            text_of(name),
            cells.join("<td class=\"num\">")
        )
    };
    let dash = || "–".to_owned();
    if let Some(p) = &row.published {
        line("published", [of(p.aligned), of(p.unaligned), ratio(p.ratio), dash(), dash()])?;
    }
    if let Some(null) = &row.null_model {
        let error = null.error.map_or_else(dash, percent);
        line("null model", [dash(), dash(), digits(null.ratio), dash(), error])?;
    }
    let own = row.ours.iter().map(|o| (row.personality.as_deref(), o, row.error));
    let others = row.alternatives.iter().map(|a| (Some(a.personality.as_str()), &a.ours, a.error));
    for (personality, o, error) in own.chain(others) {
        let name = personality.map_or_else(|| "ours".into(), |p| format!("ours, {p}"));
        let interval = o
            .low
            .zip(o.high)
            .map_or_else(dash, |(low, high)| format!("{} … {}", digits(low), digits(high)));
        line(
            &name,
            [
                of(o.aligned),
                of(o.unaligned),
                ratio(o.ratio),
                interval,
                error.map_or_else(dash, percent),
            ],
        )?;
    }
    writeln!(out, "</tbody></table>")?;
    if !row.variants.is_empty() {
        write_variants(row, out)?;
    }
    writeln!(out, "</div></details>")
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn write_variants(row: &Row, out: &mut dyn Write) -> io::Result<()> {
    let heads = [
        "target", "time", "requests", "bytes", "p50", "p99", "longest", "setup", "seek", "rotate",
        "transfer", "idle",
    ];
    writeln!(
        out,
        "<table><thead><tr><td><th scope=\"col\">{}</tr></thead><tbody>",
        heads.join("<th scope=\"col\" class=\"num\">")
    )?;
    for v in &row.variants {
        let waited = |share: f64| {
            v.latency.iter().find(|(q, _)| *q >= share - 1e-9).filter(|(_, ns)| *ns > 0)
        };
        let at =
            |share: f64| waited(share).map_or("–".into(), |(_, ns)| seconds(*ns as f64 / 1e9));
        let part = |s: Option<f64>| s.map_or("–".into(), seconds);
        let d = v.drives.as_ref();
        let mut cells =
            vec![text_of(&v.target), seconds(v.seconds), v.ops.to_string(), size::human(v.bytes)];
        cells.extend([at(0.5), at(0.99), at(1.0)]);
        cells.extend(
            [
                d.map(|d| d.setup),
                d.map(|d| d.seek),
                d.map(|d| d.rotate),
                d.map(|d| d.transfer),
                d.map(|d| d.idle),
            ]
            .map(part),
        );
        writeln!(
            out,
            "<tr><th scope=\"row\">{}<td>{}</tr>",
            text_of(&v.name),
            cells.join("<td class=\"num\">")
        )?;
    }
    writeln!(out, "</tbody></table>")
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use trueline_lab::result::Published;

    #[test]
    fn a_ratio_within_its_bound_does_not_hide_how_far_the_levels_are_off() {
        let mut row = sample::document().labs.remove(0).rows.remove(0);
        let ours = row.ours.as_mut().unwrap();
        (ours.aligned, ours.unaligned) =
            (ours.aligned.map(|v| v / 2.7), ours.unaligned.map(|v| v / 2.7));
        let both = pill(&row);
        assert!(
            both.contains("✓ ratio +1.8 %, within 5 %")
                && both.contains("level: aligned −62 %, unaligned −61 %"),
            "{both}"
        );
        (row.published, row.error) =
            (row.published.map(|p| Published { unaligned: None, ratio: None, ..p }), None);
        assert!(
            pill(&row).contains("level −62 %") && !pill(&row).contains("ratio"),
            "{}",
            pill(&row)
        );
    }
}
