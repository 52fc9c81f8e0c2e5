//! `--html`: one self-contained page, without a script and without a network.

pub(crate) mod fleet;
mod target;

use crate::render::draw::canvas;
use crate::render::made::Made;
use crate::report::{Finding, Report, Target, Verdict};
use crate::style::Style;
use crate::words::{self, escape, markdown};
use std::collections::BTreeSet;
use std::io;
pub(crate) use target::write_target;
use trueline_geom::base::finding::{Severity, rule};

/// Most targets that are all unfolded; with more, those without errors and warnings are folded.
const OPEN: usize = 8;

const STYLE: &str = include_str!("page/report.css");

/// Writes the page of a report.
pub(crate) fn write(report: &Report, made: &Made, out: &mut dyn io::Write) -> io::Result<()> {
    let whom = report
        .targets
        .first()
        .filter(|_| is_alone(report))
        .map_or(String::new(), |only| format!(": {}", only.target));

    open(
        &format!("Trueline check: {}{whom}", words::verdict(report.verdict)),
        &[canvas::STYLE],
        out,
    )?;
    write_summary(report, made, out)?;
    writeln!(out, "<main>")?;
    for (nth, target) in report.targets.iter().enumerate() {
        write_target(nth, target, is_alone(report), report.targets.len() > OPEN, out)?;
    }
    writeln!(out, "</main>")?;
    write_rules(report, out)?;
    writeln!(out, "</body>\n</html>")
}

/// Begins a page, up to the inside of its body. Its policy forbids scripts and fetches. `styles`
/// follow [`STYLE`].
pub(crate) fn open(title: &str, styles: &[&str], out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(
        out,
        r#"<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">"#
    )?;
    writeln!(out, r#"<meta name="viewport" content="width=device-width, initial-scale=1">"#)?;
    writeln!(
        out,
        "<title>{}</title>\n<style>{STYLE}\n{}</style>\n</head>\n<body>",
        escape::xml(title),
        styles.join("\n")
    )
}

/// True if the page is about one target and nothing else.
fn is_alone(report: &Report) -> bool {
    report.targets.len() == 1 && report.errors.is_empty()
}

fn write_summary(report: &Report, made: &Made, out: &mut dyn io::Write) -> io::Result<()> {
    if let Some(only) = report.targets.first().filter(|_| is_alone(report)) {
        return writeln!(
            out,
            "<header>\n<h1>{}: {}</h1>\n{}\n</header>",
            verdict_of(only),
            escape::xml(&only.target),
            made.html()
        );
    }
    writeln!(
        out,
        "<header>\n<h1>{}: {}</h1>",
        verdict(report.verdict),
        words::count(report.targets.len(), "target")
    )?;
    writeln!(out, "{}", made.html())?;
    let of = |v| report.targets.iter().filter(|t| t.verdict == v).count();
    let all = [Verdict::Misaligned, Verdict::Unknown, Verdict::Aligned].map(|v| (of(v), v));
    let parts: Vec<String> = all
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, v)| {
            format!(
                "<span class=\"{1}\">{0} {n} {1}</span>",
                words::mark(*v, Style::default()),
                words::verdict(*v)
            )
        })
        .collect();
    if !parts.is_empty() {
        writeln!(out, "<p>{}</p>", parts.join(" · "))?;
    }
    if !report.errors.is_empty() {
        writeln!(
            out,
            "<p class=\"error\"><b>{} could not be read:</b></p>\n<ul class=\"error\">",
            report.errors.len()
        )?;
        for error in &report.errors {
            writeln!(out, "<li class=\"long\">{}</li>", escape::xml(&escape::plain(&error.why)))?;
        }
        writeln!(out, "</ul>")?;
    }
    writeln!(out, "</header>")?;
    if report.targets.is_empty() { Ok(()) } else { write_overview(report, out) }
}

/// Writes a table of the targets, the worst first.
pub(crate) fn write_overview(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    write_table(
        "Targets",
        &[
            ("Target", ""),
            ("Verdict", ""),
            ("Costs", "num"),
            ("The worst of it", ""),
            ("Findings", ""),
        ],
        out,
    )?;
    // The drawings below keep the order of the command line.
    let mut order: Vec<(usize, &Target)> = report.targets.iter().enumerate().collect();
    let dearest = |t: &Target| t.findings.iter().map(|f| f.rmw_factor).fold(0.0, f64::max);
    let rank =
        |t: &Target| if words::errors(t).is_some() { Verdict::Misaligned } else { t.verdict };
    order.sort_by(|(_, a), (_, b)| rank(b).cmp(&rank(a)).then(dearest(b).total_cmp(&dearest(a))));
    for (nth, t) in order {
        let lead = leads(t).into_iter().next();
        let worst = lead.map_or(String::new(), |f| {
            format!(
                "<span class=\"{}\">{}</span> {}: {}",
                f.severity,
                f.rule,
                escape::xml(&words::name(&f.provider)),
                numbers(&escape::plain(&f.message))
            )
        });
        let worst = if worst.is_empty() { words::verdicts(t) } else { worst };
        let name = escape::xml(&t.target);
        let costs =
            lead.and_then(words::times).map_or(String::new(), |times| times.replace('x', "×"));
        write!(
            out,
            "<tr><td class=\"long\"><a href=\"#t{nth}\">{name}</a><td>{}<td class=\"num\">{costs}",
            verdict_of(t)
        )?;
        writeln!(out, "<td class=\"long\">{worst}<td>{}</tr>", words::severities(&t.findings))?;
    }
    writeln!(out, "</tbody></table></div>")
}

/// Opens a table that scrolls if it is too wide; `columns` are headings with their classes.
fn write_table(name: &str, columns: &[(&str, &str)], out: &mut dyn io::Write) -> io::Result<()> {
    write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{name}\"><table class=\"wide {name}\">\n<thead><tr>"
    )?;
    for (head, class) in columns {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        write!(out, "<th scope=\"col\"{class}>{head}")?;
    }
    writeln!(out, "</tr></thead>\n<tbody>")
}

/// Text with its long numbers in groups of three digits; a copied number has no gaps.
fn numbers(text: &str) -> String {
    escape::grouped(&escape::xml(text), "<i>", "</i>")
}

/// The findings to read first: a risk to data, and the start that costs the most.
fn leads(t: &Target) -> Vec<&Finding> {
    let grave = |f: &&Finding| f.severity != Severity::Note;
    let risk = t.findings.iter().filter(grave).find(|f| words::cost(f).is_none());
    let costs = |f: &&Finding| grave(f) && words::cost(f).is_some();
    // The first of the costliest: `max_by` alone would give the last.
    let dear =
        t.findings.iter().filter(costs).rev().max_by(|a, b| a.rmw_factor.total_cmp(&b.rmw_factor));
    risk.into_iter().chain(dear).collect()
}

/// A verdict with its mark and colour.
fn verdict(v: Verdict) -> String {
    let word = words::verdict(v);
    format!("<span class=\"verdict {word}\">{} {word}</span>", words::mark(v, Style::default()))
}

/// The verdict on a target; an aligned one with errors does not look all-clear.
fn verdict_of(t: &Target) -> String {
    match words::errors(t).filter(|_| t.verdict == Verdict::Aligned) {
        Some(errors) => format!(
            "<span class=\"verdict error\">{} aligned, but {errors}</span>",
            words::mark(t.verdict, Style::default())
        ),
        None => verdict(t.verdict),
    }
}

/// Writes the pages of the rules that were broken.
pub(crate) fn write_rules(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    write_pages_of_rules(report.targets.iter().flat_map(|t| &t.findings).map(|f| f.rule), out)
}

/// Writes the pages of these rules, each once.
pub(crate) fn write_pages_of_rules<'a>(
    ids: impl Iterator<Item = &'a str>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let ids: BTreeSet<&str> = ids.collect();
    if ids.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<section aria-labelledby=\"rules\">\n<h2 id=\"rules\">What the rules mean</h2>"
    )?;
    for rule in ids.into_iter().filter_map(rule) {
        let title = escape::xml(rule.title);
        writeln!(
            out,
            "<details class=\"rule\" id=\"{}\"><summary><strong>{}</strong> {title}</summary>",
            rule.id, rule.id
        )?;
        writeln!(out, "{}</details>", markdown::html(rule.page))?;
    }
    writeln!(out, "</section>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn hostile_strings_stay_text_and_nothing_is_fetched() {
        let mut report = samples::report(vec![samples::openbsd(), samples::fat()]);
        report.targets[0].target = "<img src=x onerror=alert(1)>".into();
        report.targets[0].findings[0].message = "\"><script>".into();
        let page = samples::text(|out| write(&report, &Made::sample(), out));
        assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
        assert!(!page.replace("http://www.w3.org/2000/svg", "").contains("http:"));
        assert!(!page.contains("url(") && !page.contains("@import"));
    }

    #[test]
    fn an_error_on_what_is_aligned_and_what_was_not_read_are_at_the_top() {
        let mut bad = samples::gpt();
        bad.target = "bad".into();
        bad.findings = samples::openbsd().findings.drain(..1).collect();
        let mut report = samples::report(vec![samples::gpt(), bad]);
        report.errors = vec!["open <x>: no".to_owned().into()];
        let page = samples::text(|out| write(&report, &Made::sample(), out));
        let at = |what: &str| page.find(what).unwrap_or_else(|| panic!("{what} in {page}"));
        assert!(
            at("open &lt;x&gt;: no") < at("\">bad</a>")
                && at("\">bad</a>") < at("\">/dev/nvme0n1</a>")
        );
        assert!(page.contains("✓ aligned, but 1 error"));
        assert!(
            page.contains("2024-02-29 12:34 UTC · trueline ")
                && page.contains("<code>trueline check &#39;a b.img&#39;"),
            "{page}"
        );
    }

    #[test]
    fn that_there_is_nothing_to_do_is_no_fix() {
        let page = |fixes: &[&str]| {
            let mut target = samples::openbsd();
            target.findings.truncate(1);
            target.findings[0].fix = fixes.iter().map(|&fix| fix.to_owned()).collect();
            let report = samples::report(vec![target]);
            samples::text(|out| write(&report, &Made::sample(), out))
        };
        let idle = page(&["nothing to do: it is judged by itself"]);
        assert!(idle.contains("<p>nothing to do: it is judged by itself</p>"), "{idle}");
        assert!(!idle.contains("<dt>fix") && !idle.contains("<dt>do"), "{idle}");
        let mended = page(&["start it at byte 4096", "nothing to do: it is judged by itself"]);
        assert_eq!(
            (mended.matches("<dt>fix<dd>").count(), mended.matches("<dt>do<dd>").count()),
            (1, 1),
            "{mended}"
        );
    }

    #[test]
    fn every_finding_of_a_kind_is_there() {
        let mut target = samples::openbsd();
        let found = |i: u64| {
            let (rule, severity, provider) = ("TL0001", Severity::Error, format!("p{i}"));
            let message = format!(
                "starts at byte {} (LBA {i}), 512 bytes past a 4096-byte physical unit",
                i * 512
            );
            let fix = vec![format!("start it at byte {}", i * 512 + 3584)];
            Finding {
                rule,
                severity,
                provider,
                offset: i * 512,
                unit: 4096,
                remainder: 512,
                straddle: 1.0,
                rmw_factor: 4.0,
                message,
                fix,
                commands: Vec::new(),
            }
        };
        target.findings = (0..200).map(found).collect();
        let report = samples::report(vec![target]);
        let page = samples::text(|out| write(&report, &Made::sample(), out));
        assert_eq!(page.matches("<li class").count(), 1);
        assert!((0..200).all(|i| page.contains(&format!("<tr><td>p{i}<td"))), "{page}");
    }
}
