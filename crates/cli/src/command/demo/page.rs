//! The page of `demo`: one disk from its findings to its cost and back, then what `check --html`
//! and `lab run --html` have.

use crate::command::demo::story::Story;
use crate::command::lab::page as lab_page;
use crate::render::charts::HATCH;
use crate::render::charts::quantity::{times, value};
use crate::render::draw::canvas;
use crate::render::made::Made;
use crate::render::report::page as report_page;
use crate::report::Report;
use crate::words::escape;
use std::io::{self, Write};
use trueline_lab::result::{LabDocument, Row};

/// The contents of the page.
pub(crate) struct Page<'a> {
    /// One disk before and after.
    pub story: &'a Story,
    /// Text of the layout that it was laid out again with.
    pub layout: &'a str,
    /// The disks of all documents.
    pub report: &'a Report,
    /// The documents' measurements, made again.
    pub labs: Option<&'a LabDocument>,
    /// Time and command line of the page.
    pub made: Made,
}

/// Writes the page of a demo.
pub(crate) fn write(page: &Page<'_>, out: &mut dyn Write) -> io::Result<()> {
    report_page::open(
        "Trueline: check, cost, layout, cost again",
        &[canvas::STYLE, lab_page::STYLE],
        out,
    )?;
    let name = escape::xml(&page.story.found.target);
    writeln!(out, "<header>\n<h1>Check, cost, layout, cost again</h1>\n{}", page.made.html())?;
    writeln!(out, "<p>{name}: what is wrong with it, what that costs,")?;
    writeln!(
        out,
        "and the same disk on the grain. Then the disks of all five documents, and what they measured.</p>"
    )?;
    writeln!(out, "</header>\n{}<main>", HATCH)?;
    write_contents(page, out)?;
    write_story(page, out)?;
    writeln!(
        out,
        "<section aria-labelledby=\"disks\">\n<h2 id=\"disks\">The disks of the five documents</h2>"
    )?;
    report_page::write_overview(page.report, out)?;
    writeln!(out, "</section>")?;
    if let Some(labs) = page.labs {
        writeln!(
            out,
            "<section aria-labelledby=\"labs\">\n<h2 id=\"labs\">What the documents measured, and what we find</h2>"
        )?;
        writeln!(out, "{}", lab_page::summary(labs))?;
        lab_page::write_labs(labs, out)?;
        writeln!(out, "</section>")?;
    }
    for (nth, target) in page.report.targets.iter().enumerate() {
        report_page::write_target(nth, target, false, false, out)?;
    }
    writeln!(out, "</main>")?;
    report_page::write_rules(page.report, out)?;
    writeln!(out, "</body>\n</html>")
}

/// Writes links to the parts of the page.
fn write_contents(page: &Page<'_>, out: &mut dyn Write) -> io::Result<()> {
    let parts = [
        ("check", "1. Check"),
        ("cost", "2. Cost"),
        ("layout", "3. Layout"),
        ("again", "4. Cost again"),
        ("disks", "The disks"),
    ];
    let labs = page.labs.map(|_| ("labs", "What the documents measured"));
    let link = |(to, name): (&str, &str)| format!("<a href=\"#{to}\">{name}</a>");
    let links: Vec<String> =
        parts.into_iter().chain(labs).chain([("rules", "What the rules mean")]).map(link).collect();
    writeln!(out, "<nav aria-label=\"contents\"><p>{}</p></nav>", links.join(" · "))
}

fn write_story(page: &Page<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (story, alone) = (page.story, true);
    writeln!(out, "<h2 id=\"check\">1. Check: what is there</h2>")?;
    report_page::write_target(0, &story.found, alone, false, out)?;
    writeln!(out, "<h2 id=\"cost\">2. Cost: what that does to a drive</h2>\n<ul class=\"cards\">")?;
    for row in rows(story) {
        write_card(row, false, out)?;
    }
    writeln!(out, "</ul>\n<h2 id=\"layout\">3. Layout: the same partitions on the grain</h2>")?;
    writeln!(
        out,
        "<p>Made by <code>trueline part apply layout.toml disk</code>; what is on the partitions has still to be put there.</p>"
    )?;
    writeln!(
        out,
        "<details><summary>layout.toml</summary><pre>{}</pre></details>",
        escape::xml(page.layout)
    )?;
    report_page::write_target(0, &story.again, alone, false, out)?;
    writeln!(
        out,
        "<h2 id=\"again\">4. Cost again: the same work, on the same drive</h2>\n<ul class=\"cards\">"
    )?;
    for row in rows(story) {
        write_card(row, true, out)?;
    }
    writeln!(out, "</ul>")?;
    lab_page::write_rows(&story.cost, out)
}

fn rows(story: &Story) -> impl Iterator<Item = &Row> {
    story.cost.labs.iter().flat_map(|lab| &lab.rows)
}

/// Writes a card with the value of a row, before or after.
fn write_card(row: &Row, again: bool, out: &mut dyn Write) -> io::Result<()> {
    let Some(ours) = &row.ours else { return Ok(()) };
    let (shown, class) = if again { (ours.aligned, "al") } else { (ours.unaligned, "un") };
    let shown = shown.map_or_else(|| "–".into(), |v| value(v, &row.unit));
    let (id, title) = (escape::xml(&row.row), escape::xml(&row.title));
    writeln!(
        out,
        "<li><a href=\"#row-demo-{id}\"><span class=\"name\">{id}</span><span class=\"figure {class}\">{shown}</span>"
    )?;
    let before = ours
        .ratio
        .filter(|_| again)
        .map_or(String::new(), |ratio| format!("as it was: {}", times(ratio)));
    writeln!(
        out,
        "<span class=\"what\">{title}</span><span class=\"below\">{before}</span></a></li>"
    )
}
