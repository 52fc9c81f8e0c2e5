//! Ours against the published, for every prediction that can be compared: the one chart that shows
//! the trust we deserve.

use super::bars::whisker;
use super::standing::{Compared, compared};
use crate::render::charts::axis::Axis;
use crate::render::charts::lanes::text_of;
use crate::render::charts::quantity::{self, percent, plain, times};
use crate::render::charts::track::{Anchor, Track};
use std::io::{self, Write};
use trueline_lab::result::{LabDocument, Row};

/// Most values that are named along the top.
const TICKS: usize = 8;
/// Factors beyond which a dot becomes an arrow: a wild row must not press all others into a point.
const WILD: (f64, f64) = (0.25, 4.0);
const RULES: &str = "<svg class=\"rules\" aria-hidden=\"true\"><use href=\"#rules\"/></svg>";

/// Writes the chart; nothing if no row can be compared.
pub(super) fn write(document: &LabDocument, out: &mut dyn Write) -> io::Result<()> {
    let of =
        |row: &Row| compared(row.published.as_ref(), row.ours.as_ref()).filter(|_| row.predicted);
    let all: Vec<Compared> =
        document.labs.iter().flat_map(|lab| &lab.rows).filter_map(of).collect();
    if all.is_empty() {
        return Ok(());
    }
    let ends = all
        .iter()
        .flat_map(|c| [Some(c.factor), c.interval.map(|i| i.0), c.interval.map(|i| i.1)])
        .flatten();
    let rows = document.labs.iter().flat_map(|lab| &lab.rows);
    let ends = ends.chain(rows.filter_map(|row| null_factor(row, &of(row)?)));
    let Some(axis) = Axis::log(ends.map(|v| v.clamp(WILD.0, WILD.1)).chain([0.8, 1.25])) else {
        return Ok(());
    };
    writeln!(
        out,
        "<section aria-labelledby=\"accuracy\">\n<h2 id=\"accuracy\">How near ours is to what was published</h2>"
    )?;
    writeln!(
        out,
        "<p class=\"lead-in\">A dot on the line is a perfect prediction; on the right we find a \
            greater ratio, on the left a lesser one. The grey band is what is promised of a row, \
            and of a hollow dot nothing is; the whisker is what the ranges of the drive's \
            parameters make of it. The bar is the null model, a constant for the class of the \
            drive: a prediction must be nearer.</p>"
    )?;
    writeln!(out, "{}<table class=\"accuracy\">", grid(&axis))?;
    writeln!(
        out,
        "<thead><tr><th scope=\"col\">Row<th scope=\"col\" class=\"plot\">{}<th scope=\"col\" class=\"num\">published<th scope=\"col\" class=\"num\">ours<th scope=\"col\" class=\"num\">error</tr></thead>",
        ticks(&axis)
    )?;
    for lab in document.labs.iter().filter(|lab| lab.rows.iter().any(|row| row.published.is_some()))
    {
        writeln!(
            out,
            "<tbody><tr class=\"of\"><th scope=\"rowgroup\">{}<td class=\"plot\">{RULES}<td><td><td></tr>",
            text_of(&lab.lab)
        )?;
        for row in &lab.rows {
            let anchor = super::anchor(&lab.lab, &row.row);
            match of(row) {
                Some(found) => write_row(row, &anchor, &found, &axis, out)?,
                None if row.published.is_some() => write_without(row, &anchor, out)?,
                None => {}
            }
        }
        writeln!(out, "</tbody>")?;
    }
    writeln!(out, "</table>\n</section>")
}

/// The null model's ratio over the published one, where ratios are compared.
fn null_factor(row: &Row, found: &Compared) -> Option<f64> {
    let null = row.null_model.filter(|_| found.of_ratios)?;
    null.error.map(|error| 1.0 + error).filter(|factor| factor.is_finite())
}

fn write_row(
    row: &Row,
    anchor: &str,
    found: &Compared,
    axis: &Axis,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut track = Track::new(24);
    if let Some(bound) = row.bound.filter(|b| (0.0..1.0).contains(b)) {
        let band = (axis.at(1.0 - bound), axis.at(1.0 + bound));
        track.rect(
            band,
            (3, 18),
            "bound",
            &format!("promised: within {}", percent(bound).trim_start_matches('+')),
        );
    }
    // The null model's factor, where it can be drawn: the dot should be nearer to the line.
    if let Some(null) = null_factor(row, found).filter(|null| (WILD.0..=WILD.1).contains(null)) {
        let at = axis.at(null);
        let title = format!("null model: {}", percent(null - 1.0));
        track.rect((at - 0.3, at + 0.3), (3, 18), "null", &title);
    }
    if let Some(interval) = found.interval {
        whisker(&mut track, axis, interval, "");
    }
    let verdict = match row.keeps_bound() {
        Some(true) => "our",
        Some(false) => "our missed",
        None => "our free",
    };
    let error = percent(found.factor - 1.0);
    if found.factor < WILD.0 {
        track.text(1.0, 17.0, "wild", Anchor::Start, "◀");
    } else if found.factor > WILD.1 {
        track.text(97.0, 17.0, "wild", Anchor::Start, "▶");
    } else {
        track.dot(
            axis.at(found.factor),
            12.0,
            5.0,
            &format!("point {verdict}"),
            &format!("{}: {error}", row.title),
        );
    }
    let shown = |ratio: Option<f64>, value: Option<f64>| match (found.of_ratios, ratio, value) {
        (true, Some(ratio), _) => times(ratio),
        (false, _, Some(value)) => quantity::value(value, &row.unit),
        _ => String::new(),
    };
    let theirs = row.published.map_or(String::new(), |p| shown(p.ratio, p.aligned.or(p.unaligned)));
    let own = row.ours.map_or(String::new(), |o| shown(o.ratio, o.aligned.or(o.unaligned)));
    let mark = match row.keeps_bound() {
        Some(true) => "<span class=\"good\">✓</span>",
        Some(false) => "<span class=\"error\">✗</span>",
        None => "",
    };
    write_cells(
        row,
        anchor,
        &track.finish(),
        [&text_of(&theirs), &text_of(&own), &format!("{error} <span class=\"mark\">{mark}</span>")],
        out,
    )
}

/// Writes a row without a prediction, in grey.
fn write_without(row: &Row, anchor: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut track = Track::new(24);
    let why = match &row.ours {
        None => "not predicted",
        Some(_) if row.is_calibrated() => "calibrated to the document",
        Some(_) => "nothing to compare",
    };
    track.text(50.0, 16.0, "none", Anchor::Middle, why);
    let theirs = row.published.and_then(|p| p.ratio).map_or(String::new(), times);
    write_cells(row, anchor, &track.finish(), [&theirs, "–", "–"], out)
}

fn write_cells(
    row: &Row,
    anchor: &str,
    plot: &str,
    [theirs, ours, error]: [&str; 3],
    out: &mut dyn Write,
) -> io::Result<()> {
    let dim = if row.ours.is_none() { " class=\"dim\"" } else { "" };
    let (id, title) = (text_of(&row.row), text_of(&row.title));
    write!(
        out,
        "<tr{dim}><th scope=\"row\"><a href=\"#{anchor}\"><b>{id}</b></a> <span>{title}</span><td class=\"plot\">{RULES}{plot}"
    )?;
    writeln!(
        out,
        "<td class=\"num\" data-of=\"published\">{theirs}<td class=\"num\" data-of=\"ours\">{ours}<td class=\"num\">{error}</tr>"
    )
}

/// The named values along the top.
fn ticks(axis: &Axis) -> String {
    let mut track = Track::new(18);
    for tick in axis.ticks(TICKS).into_iter().filter(|t| (2.0..97.0).contains(&axis.at(*t))) {
        track.text(axis.at(tick), 13.0, "tick", Anchor::Middle, &plain(tick));
    }
    track.finish()
}

/// The lines down the table, defined once and used in cells of any height; the line of 1 is marked.
fn grid(axis: &Axis) -> String {
    let line = |at: f64| {
        let class = if (at - 1.0).abs() < 1e-9 { "one" } else { "grid" };
        format!(
            "<line x1=\"{0:.2}%\" x2=\"{0:.2}%\" y1=\"0\" y2=\"100%\" class=\"{class}\"/>",
            axis.at(at)
        )
    };
    let lines: String = axis
        .ticks(TICKS)
        .into_iter()
        .filter(|t| (t - 1.0).abs() > 1e-9)
        .chain([1.0])
        .map(line)
        .collect();
    format!(
        "<svg class=\"defs\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs><g id=\"rules\">{lines}</g></defs></svg>"
    )
}
