//! `lab run --html`: published values beside ours, as one self-contained page of charts, without a
//! script.
//!
//! | file | what |
//! |---|---|
//! | `accuracy.rs` | ours against the published, all rows in one chart |
//! | `row.rs` | one row, with the charts below |
//! | `bars.rs` | its values and their ratio |
//! | `latency.rs` | latencies of requests |
//! | `medium.rs` | the layout on the medium |
//! | `standing.rs` | the cost of a row, and its distance from the published value |
//!
//! Their parts, and each second by its cause, are in `render/charts`.

mod accuracy;
mod bars;
mod latency;
mod medium;
mod row;
mod standing;

#[cfg(test)]
pub(crate) mod sample;

use crate::render::charts::lanes::text_of;
use crate::render::charts::quantity::{percent, times};
use crate::render::charts::{HATCH, track};
use crate::render::made::Made;
use crate::render::report::page;
use crate::words;
use standing::{Tally, dearest, farthest, tally, tally_all};
use std::io::{self, Write};
use trueline_lab::result::{LabDocument, LabResult, Nearer, Row};

/// Styles of the charts, with the colours of `page::STYLE`.
pub(crate) const STYLE: &str = include_str!("page/lab.css");

/// Most rows in all that are not folded by lab: a page of fifty is as long as sixty screens.
const OPEN: usize = 4;

/// Writes the page of a document.
pub(crate) fn write(document: &LabDocument, made: &Made, out: &mut dyn Write) -> io::Result<()> {
    page::open("Trueline lab: what misalignment costs", &[STYLE], out)?;
    writeln!(
        out,
        "<header>\n<h1>What misalignment costs</h1>\n{}\n{}</header>",
        made.html(),
        summary(document)
    )?;
    writeln!(out, "{HATCH}<main>")?;
    write_labs(document, out)?;
    writeln!(out, "</main>\n</body>\n</html>")
}

/// Writes everything below the heading of a page: the cards, the contents, the chart of all rows,
/// every lab.
pub(crate) fn write_labs(document: &LabDocument, out: &mut dyn Write) -> io::Result<()> {
    let fold = document.labs.iter().map(|lab| lab.rows.len()).sum::<usize>() > OPEN;
    write_cards(document, out)?;
    if fold {
        write_contents(document, out)?;
    }
    accuracy::write(document, out)?;
    document.labs.iter().try_for_each(|lab| write_lab(lab, fold, out))
}

/// Writes a list of links to every lab and row; the browser unfolds the target of a link.
fn write_contents(document: &LabDocument, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "<nav aria-label=\"contents\"><details class=\"contents\"><summary>Contents</summary>\n<ul>"
    )?;
    for lab in &document.labs {
        write!(out, "<li><a href=\"#{}\">{}</a>: ", anchor(&lab.lab, ""), text_of(&lab.lab))?;
        let link = |row: &Row| {
            format!("<a href=\"#{}\">{}</a>", anchor(&lab.lab, &row.row), text_of(&row.row))
        };
        writeln!(out, "{}", lab.rows.iter().map(link).collect::<Vec<_>>().join(" · "))?;
    }
    writeln!(out, "</ul>\n</details></nav>")
}

/// Writes the rows of all labs, and nothing around them.
pub(crate) fn write_rows(document: &LabDocument, out: &mut dyn Write) -> io::Result<()> {
    let mut rows = document.labs.iter().flat_map(|lab| lab.rows.iter().map(move |row| (lab, row)));
    rows.try_for_each(|(lab, row)| row::write(lab, row, out))
}

/// A summary of the document in a sentence.
pub(crate) fn summary(document: &LabDocument) -> String {
    let all = tally_all(document);
    let mut text = format!(
        "<p>{} of {}",
        words::count(all.rows, "row"),
        words::count(document.labs.len(), "lab")
    );
    if all.bounded > 0 {
        text.push_str(&format!(
            ": <b>{} of {}</b> predictions that promise a bound keep it",
            all.kept, all.bounded
        ));
    }
    let nulls = document.nearer();
    if !nulls.is_empty() {
        let nearer = nulls.iter().filter(|&&nearer| nearer == Nearer::Ours).count();
        let ratios = words::count(nulls.len(), "ratio");
        text.push_str(&format!("; <b>{nearer} of {ratios}</b> nearer than a constant's"));
    }
    if all.calibrated > 0 {
        text.push_str(&format!("; {} calibrated to the document", all.calibrated));
    }
    if all.without > 0 {
        text.push_str(&format!("; {} cannot honestly be predicted, and say why", all.without));
    }
    text + ".</p>\n"
}

/// Writes a card for each lab; labs that repeat no document's values have a heading of their own.
fn write_cards(document: &LabDocument, out: &mut dyn Write) -> io::Result<()> {
    let (published, own): (Vec<&LabResult>, Vec<&LabResult>) =
        document.labs.iter().partition(|lab| lab.is_published());
    let both = !published.is_empty() && !own.is_empty();
    for (labs, heading) in [(published, false), (own, both)] {
        if labs.is_empty() {
            continue;
        }
        if heading {
            writeln!(out, "<h3>Without a document: nothing published to compare with</h3>")?;
        }
        writeln!(out, "<ul class=\"cards\">")?;
        labs.into_iter().try_for_each(|lab| write_card(lab, out))?;
        writeln!(out, "</ul>")?;
    }
    Ok(())
}

/// Writes a lab in one figure: the highest cost of misalignment; without ratios, the largest error
/// of its values.
fn write_card(lab: &LabResult, out: &mut dyn Write) -> io::Result<()> {
    let (anchor, name, tally) = (anchor(&lab.lab, ""), text_of(&lab.lab), tally(lab));
    writeln!(
        out,
        "<li><a href=\"#{anchor}\" title=\"{}\"><span class=\"name\">{name}</span>",
        text_of(&lab.title)
    )?;
    let mut below = vec![bounds(&tally)];
    if let Some((row, cost, ours)) = dearest(lab) {
        write_cost(row, cost, ours, out)?;
        if let Some(published) = row.published.and_then(|p| p.ratio).filter(|_| ours) {
            below.insert(0, format!("published {}", times(standing::cost(row, published))));
        } else if ours {
            below.insert(0, "simulated only: no published value".into());
        }
    } else if let Some(off) = farthest(lab) {
        writeln!(
            out,
            "<span class=\"figure\">{}</span><span class=\"what\">at most, off the published values</span>",
            percent(off)
        )?;
    } else {
        writeln!(
            out,
            "<span class=\"figure\">–</span><span class=\"what\">{}</span>",
            text_of(&lab.title)
        )?;
    }
    writeln!(out, "<span class=\"below\">{}</span></a></li>", below.join("<br>"))
}

/// Writes the figure of a card, with two bars as long as the same work takes.
fn write_cost(row: &Row, cost: f64, ours: bool, out: &mut dyn Write) -> io::Result<()> {
    let interval = row.ours.and_then(|o| o.low.zip(o.high)).filter(|_| ours);
    let none = interval.is_some_and(|(low, high)| low <= 1.0 && high >= 1.0);
    let (class, verb) = match cost {
        _ if none => ("al", "no difference can be shown on"),
        cost if cost > 1.05 => ("un", "misaligned costs the most on"),
        _ => ("al", "as good as no cost, even on"),
    };
    let (al, un) = if cost >= 1.0 { (100.0 / cost, 100.0) } else { (100.0, 100.0 * cost) };
    let mut track = track::Track::new(16);
    track.rect((0.0, al), (0, 6), "al", "aligned");
    track.rect((0.0, un), (9, 6), "un hatch", "unaligned");
    let whose = if ours { "" } else { ", as published" };
    writeln!(out, "<span class=\"figure {class}\">{}</span>{}", times(cost), track.finish())?;
    writeln!(out, "<span class=\"what\">{verb} <b>{}</b>{whose}</span>", text_of(&row.row))
}

/// Number of rows that keep their bounds, in words.
fn bounds(tally: &Tally) -> String {
    let mut parts = Vec::new();
    if tally.bounded > 0 {
        let mark = if tally.kept == tally.bounded {
            "<span class=\"good\">✓</span>"
        } else {
            "<span class=\"error\">✗</span>"
        };
        parts.push(format!("{mark} {} of {} within bounds", tally.kept, tally.bounded));
    }
    if tally.calibrated > 0 {
        parts.push(format!("{} calibrated", tally.calibrated));
    }
    if tally.without > 0 {
        parts.push(format!("{} not predicted", tally.without));
    }
    if parts.is_empty() { words::count(tally.rows, "row") } else { parts.join(" · ") }
}

fn write_lab(lab: &LabResult, fold: bool, out: &mut dyn Write) -> io::Result<()> {
    let anchor = anchor(&lab.lab, "");
    writeln!(
        out,
        "<section class=\"lab\" aria-labelledby=\"{anchor}\">\n<h2 id=\"{anchor}\">{}</h2>",
        text_of(&lab.title)
    )?;
    let source =
        lab.source.as_ref().map_or(String::new(), |s| format!(" · published in: {}", text_of(s)));
    writeln!(
        out,
        "<p class=\"dim\"><b>{}</b>{source} · {}</p>",
        text_of(&lab.lab),
        bounds(&tally(lab))
    )?;
    if fold {
        writeln!(
            out,
            "<details class=\"rows\"><summary>{}</summary>",
            words::count(lab.rows.len(), "row")
        )?;
    }
    for row in &lab.rows {
        row::write(lab, row, out)?;
    }
    writeln!(out, "{}</section>", if fold { "</details>" } else { "" })
}

/// The id of a lab, or of a row of it, in the page.
fn anchor(lab: &str, row: &str) -> String {
    let clean = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(60).collect()
    };
    if row.is_empty() {
        format!("lab-{}", clean(lab))
    } else {
        format!("row-{}-{}", clean(lab), clean(row))
    }
}

/// Style class of a variant.
fn class_of(variant: &str) -> &'static str {
    if variant == "aligned" { "al" } else { "un" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(document: &LabDocument) -> String {
        crate::render::samples::text(|out| write(document, &Made::sample(), out))
    }

    #[test]
    fn hostile_strings_stay_text_and_nothing_is_fetched() {
        let mut document = sample::document();
        let bad = "\"><script>alert(1)</script><img src=http://x onerror=y>\u{202e}\0";
        for lab in &mut document.labs {
            (lab.lab, lab.title, lab.source) = (bad.into(), bad.into(), Some(bad.into()));
            for row in &mut lab.rows {
                (row.row, row.title, row.unit, row.note) =
                    (bad.into(), bad.into(), bad.into(), bad.into());
                (row.seed, row.personality) = (Some(bad.into()), Some(bad.into()));
                row.alternatives.iter_mut().for_each(|a| a.personality = bad.into());
                for variant in &mut row.variants {
                    (variant.name, variant.target) = (bad.into(), bad.into());
                    variant
                        .layout
                        .iter_mut()
                        .flat_map(|l| &mut l.layers)
                        .for_each(|(name, _)| *name = bad.into());
                }
            }
        }
        let page = page(&document);
        assert!(
            !page.contains("<script")
                && !page.contains("<img")
                && !page.contains('\u{202e}')
                && !page.contains('\0'),
            "{page}"
        );
        assert!(!page.contains("@import") && !page.replace("url(#hatch)", "").contains("url("));
    }

    #[test]
    fn hostile_numbers_are_drawn_and_none_is_not_a_number() {
        for odd in [f64::NAN, f64::INFINITY, f64::MAX, -1.0, 0.0, 1e-320] {
            let mut document = sample::document();
            for row in document.labs.iter_mut().flat_map(|lab| &mut lab.rows) {
                (row.bound, row.error) = (Some(odd), Some(odd));
                if let Some(ours) = &mut row.ours {
                    (ours.aligned, ours.ratio, ours.low, ours.high) =
                        (Some(odd), Some(odd), Some(odd), Some(odd));
                }
                for variant in &mut row.variants {
                    variant.latency.iter_mut().for_each(|(q, ns)| (*q, *ns) = (odd, u64::MAX));
                    variant.drives.iter_mut().for_each(|d| (d.seek, d.rotate) = (odd, odd));
                    variant
                        .layout
                        .iter_mut()
                        .for_each(|l| (l.unit, l.phase) = (u64::MAX, u64::MAX));
                }
            }
            let page = page(&document);
            assert!(
                !page.contains("NaN") && !page.contains("inf%") && !page.contains("\"inf"),
                "{odd}"
            );
        }
    }

    #[test]
    fn bars_of_the_null_model_stand_where_it_is() {
        let mut document = sample::document();
        let rows = document.labs.iter_mut().flat_map(|lab| &mut lab.rows);
        // Far beyond every dot, and each farther than the one before.
        let nulls = rows.filter(|row| row.predicted).filter_map(|row| row.null_model.as_mut());
        nulls.zip([0.8, 1.2, 1.8, 2.4]).for_each(|(null, error)| null.error = Some(error));
        let page = page(&document);
        let bars = page.split("<rect ").filter(|rect| rect.contains("class=\"null\""));
        let places: Vec<f64> = bars
            .filter_map(|rect| rect.strip_prefix("x=\"")?.split('%').next()?.parse().ok())
            .collect();
        assert_eq!(places.len(), 4, "{places:?}");
        assert!(places.windows(2).all(|two| two[0] + 2.0 < two[1]), "{places:?}");
        assert!(places.iter().all(|at| (0.0..=100.0).contains(at)), "{places:?}");
    }

    #[test]
    fn every_row_is_there_and_can_be_linked_to() {
        let document = sample::document();
        let empty = page(&LabDocument { format: "", labs: vec![] });
        let page = page(&document);
        for lab in &document.labs {
            for row in &lab.rows {
                assert_eq!(
                    page.matches(&format!("id=\"{}\"", anchor(&lab.lab, &row.row))).count(),
                    1,
                    "{}",
                    row.row
                );
            }
        }
        assert!(
            page.contains("nothing can be predicted from that")
                && page.contains("<b>4 of 4</b> predictions that promise a bound keep it")
        );
        // Folded, with contents that lead to every row, and a line with time and command line.
        assert_eq!(page.matches("<details class=\"rows\">").count(), document.labs.len());
        for row in document.labs.iter().flat_map(|lab| &lab.rows) {
            assert!(
                page.matches(&format!("-{}\">{}</a>", row.row, text_of(&row.row))).count() >= 1,
                "{}",
                row.row
            );
        }
        assert!(
            page.contains("2024-02-29 12:34 UTC · trueline ")
                && page.contains("<code>trueline check"),
            "{page}"
        );
        // Its line in the chart of predictions says what it is; none of its dots is there.
        assert!(
            page.contains("calibrated to the document</text>")
                && !page.contains("the same through an MBR slice: +1.7")
        );
        assert_eq!(empty.matches("<article").count(), 0);
    }
}
