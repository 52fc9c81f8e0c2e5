//! `--html`: one self-contained page, without a script and without a network.

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

const STYLE: &str = "\
:root{color-scheme:light dark;--bg:#fff;--ink:#1f2933;--dim:#5b6875;--line:#d5dce3;--soft:#f4f6f8;--bad:#b3261e;--warn:#7a5600;--good:#246b4b}\
@media (prefers-color-scheme:dark){:root{--bg:#12171d;--ink:#e3e8ed;--dim:#9aa8b5;--line:#313c46;--soft:#1b222a;--bad:#ff8a80;--warn:#e2b54a;--good:#6fd3a4}}\
*{box-sizing:border-box}body{margin:0 auto;max-width:1080px;padding:24px 20px 60px;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\
h1{font-size:25px;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}h2{font-size:20px;line-height:1.3;margin:48px 0 10px;padding-top:14px;border-top:2px solid var(--line);overflow-wrap:anywhere}h3{font-size:15px;margin:24px 0 6px}h4{font-size:14px;margin:14px 0 4px}\
p{margin:4px 0}.made{color:var(--dim);font-size:13px;overflow-wrap:anywhere}a{color:inherit}i{font-style:normal;margin-left:.17em}.dim{color:var(--dim)}.aligned,.good{color:var(--good)}.misaligned,.error{color:var(--bad)}.unknown,.warning{color:var(--warn)}.note{color:var(--dim)}\
.verdict{font-weight:600;white-space:nowrap}.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:13.5px}table.wide{min-width:640px}\
th{text-align:left;font-weight:600;color:var(--dim);border-bottom:2px solid var(--line)}td{border-bottom:1px solid var(--line);vertical-align:top}th,td{padding:5px 16px 5px 0}th:last-child,td:last-child{padding-right:0}\
th.num,td.num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}.name{white-space:pre;font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:13px}.long{overflow-wrap:anywhere}.Targets td:first-child{min-width:11em;overflow-wrap:break-word}.where{white-space:nowrap}\
.lead{display:flex;flex-wrap:wrap;margin:10px 0;border:1px solid var(--line);border-left:5px solid currentColor;border-radius:6px;background:var(--soft)}\
.lead div{flex:1 1 150px;padding:8px 14px 10px}.lead div.do{flex:2 1 300px}.lead dt{font-size:12.5px}.lead dd{color:var(--ink);line-height:1.4}.lead dd b{font-size:18px}.lead .how{color:inherit}\
figure{margin:12px 0;border:1px solid var(--line);border-radius:6px;overflow-x:auto}figure svg{display:block;width:100%;min-width:760px;height:auto}\
ul.findings{list-style:none;padding:0;margin:0}ul.findings>li{border-left:5px solid currentColor;background:var(--soft);border-radius:0 6px 6px 0;padding:8px 14px;margin:8px 0}ul.findings>li>*{color:var(--ink)}ul.findings p.head b{text-transform:capitalize}\
.error>p.head b{color:var(--bad)}.warning>p.head b{color:var(--warn)}.note>p.head b{color:var(--dim)}ul.findings p{overflow-wrap:anywhere}ul.findings td{padding-top:2px;padding-bottom:2px}ul.findings tr:last-child td{border-bottom:0}\
dl{margin:4px 0}dl.pairs{display:grid;grid-template-columns:max-content 1fr;gap:2px 12px}dt{color:var(--dim)}dd{margin:0;overflow-wrap:anywhere}\
details{margin:6px 0}summary{cursor:pointer}details.rule{border-bottom:1px solid var(--line);padding:4px 0}pre{background:var(--soft);padding:10px 12px;border-radius:6px;overflow-x:auto;font-size:13px}code{background:var(--soft);padding:1px 4px;border-radius:3px;font-size:13px;font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace}\
@media (max-width:600px){body{padding:16px 12px 40px}th,td{padding-right:10px}.where{white-space:normal}table.Places{min-width:0}table.Targets{min-width:0}.Targets thead{display:none}.Targets tr{display:block;border-bottom:1px solid var(--line);padding:7px 0}.Targets td{display:inline-block;border:0;padding:0 12px 0 0}.Targets td.long{display:block}}\
@media print{body{max-width:none;padding:0;font-size:12px}table{font-size:11px}table.wide{min-width:0}.scroll,figure{overflow:visible}figure svg{min-width:0}figure,ul.findings>li,tr,.lead{break-inside:avoid}h2,h3,thead{break-after:avoid}.lead,ul.findings>li,figure svg{print-color-adjust:exact;-webkit-print-color-adjust:exact}details:not(.rule)::details-content{content-visibility:visible;height:auto}}";

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
            writeln!(out, "<li class=\"long\">{}</li>", escape::xml(&escape::plain(error)))?;
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
    let ids: BTreeSet<&str> =
        report.targets.iter().flat_map(|t| &t.findings).map(|f| f.rule).collect();
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
        report.errors = vec!["open <x>: no".into()];
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
