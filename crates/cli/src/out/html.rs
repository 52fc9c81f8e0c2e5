//! `--html`: one self-contained page, without a script and without a network.

use super::{Style, escape, markdown, size, stack::Stack, svg, text, words};
use crate::report::{Finding, Provider, Report, Target, Verdict};
use std::collections::BTreeSet;
use std::io;
use trueline_geom::finding::rule;

/// Beyond so many targets, those with nothing to complain of are folded.
const OPEN: usize = 8;

const STYLE: &str = "\
:root{color-scheme:light dark;--bg:#fff;--ink:#1f2933;--dim:#5b6875;--line:#d5dce3;--soft:#f4f6f8;--bad:#b3261e;--warn:#7a5600;--good:#246b4b}\
@media (prefers-color-scheme:dark){:root{--bg:#12171d;--ink:#e3e8ed;--dim:#9aa8b5;--line:#313c46;--soft:#1b222a;--bad:#ff8a80;--warn:#e2b54a;--good:#6fd3a4}}\
*{box-sizing:border-box}body{margin:0 auto;max-width:1080px;padding:24px 20px 60px;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}\
h1{font-size:24px;margin:0 0 4px}h2{font-size:19px;margin:44px 0 8px;padding-top:12px;border-top:1px solid var(--line);overflow-wrap:anywhere}h3{font-size:15px;margin:22px 0 6px}h4{font-size:14px;margin:14px 0 4px}\
p{margin:4px 0}a{color:inherit}.dim{color:var(--dim)}.aligned,.good{color:var(--good)}.misaligned,.error{color:var(--bad)}.unknown,.warning{color:var(--warn)}.note{color:var(--dim)}\
.verdict{font-weight:600;white-space:nowrap}.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;min-width:660px;font-size:13.5px}\
th{text-align:left;font-weight:600;color:var(--dim);border-bottom:2px solid var(--line)}td{border-bottom:1px solid var(--line);vertical-align:top}th,td{padding:5px 14px 5px 0}th:last-child,td:last-child{padding-right:0}\
.num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}.name{white-space:pre;font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:13px}.long{overflow-wrap:anywhere}\
figure{margin:12px 0;border:1px solid var(--line);border-radius:6px;overflow-x:auto}figure svg{display:block;width:100%;min-width:720px;height:auto}\
ul.findings{list-style:none;padding:0;margin:0}ul.findings>li{border-left:4px solid currentColor;background:var(--soft);border-radius:0 6px 6px 0;padding:8px 14px;margin:8px 0}ul.findings>li>*{color:var(--ink)}ul.findings p.head b{text-transform:capitalize}\
.error>p.head b{color:var(--bad)}.warning>p.head b{color:var(--warn)}.note>p.head b{color:var(--dim)}ul.findings p{overflow-wrap:anywhere}ul.findings .dim{color:var(--dim)}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 12px;margin:4px 0}dt{color:var(--dim)}dd{margin:0;overflow-wrap:anywhere}\
details{margin:6px 0}summary{cursor:pointer}details.rule{border-bottom:1px solid var(--line);padding:4px 0}pre{background:var(--soft);padding:10px 12px;border-radius:6px;overflow-x:auto;font-size:13px}code{background:var(--soft);padding:1px 4px;border-radius:3px;font-size:13px;font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace}\
@media print{body{max-width:none;padding:0}figure,ul.findings>li,tr{break-inside:avoid}h2,h3{break-after:avoid}figure{overflow:visible}figure svg{min-width:0}}";

/// Writes the page.
pub(crate) fn write(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    let title = format!("Trueline check: {}", words::verdict(report.verdict));
    writeln!(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(out, r#"<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">"#)?;
    writeln!(out, r#"<meta name="viewport" content="width=device-width, initial-scale=1">"#)?;
    writeln!(out, "<title>{title}</title>\n<style>{STYLE}\n{}</style>\n</head>\n<body>", svg::STYLE)?;
    write_summary(report, out)?;
    writeln!(out, "<main>")?;
    for (nth, target) in report.targets.iter().enumerate() {
        write_target(nth, target, report.targets.len() > OPEN, out)?;
    }
    writeln!(out, "</main>")?;
    write_rules(report, out)?;
    writeln!(out, "</body>\n</html>")
}

fn write_summary(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "<header>\n<h1>Trueline check: {}</h1>", verdict(report.verdict))?;
    let of = |v| report.targets.iter().filter(|t| t.verdict == v).count();
    let all = [Verdict::Misaligned, Verdict::Unknown, Verdict::Aligned].map(|v| (of(v), v));
    let said: Vec<String> =
        all.iter().filter(|(n, _)| *n > 0).map(|(n, v)| format!("<span class=\"{0}\">{n} {0}</span>", words::verdict(*v))).collect();
    writeln!(out, "<p class=\"dim\">{}: {}</p>\n</header>", words::count(report.targets.len(), "target"), said.join(", "))?;
    write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Targets\"><table>\n<thead><tr><th scope=\"col\">Target<th scope=\"col\">Verdict"
    )?;
    writeln!(out, "<th scope=\"col\">What does I/O<th scope=\"col\">Findings<th scope=\"col\">The worst</tr></thead>\n<tbody>")?;
    for (nth, t) in report.targets.iter().enumerate() {
        let worst = t.findings.first().map_or(String::new(), |f| {
            format!(
                "<span class=\"{}\">{}</span> {}: {}",
                f.severity,
                f.rule,
                escape::xml(&words::name(&f.provider)),
                escape::xml(&f.message)
            )
        });
        let name = escape::xml(&t.target);
        write!(out, "<tr><td class=\"long\"><a href=\"#t{nth}\">{name}</a><td>{}", verdict(t.verdict))?;
        writeln!(out, "<td>{}<td>{}<td class=\"long\">{worst}</tr>", words::verdicts(t), words::severities(&t.findings))?;
    }
    writeln!(out, "</tbody></table></div>")
}

/// A verdict with its mark and colour.
fn verdict(v: Verdict) -> String {
    let word = words::verdict(v);
    format!("<span class=\"verdict {word}\">{} {word}</span>", words::mark(v, Style::default()))
}

fn write_target(nth: usize, t: &Target, fold: bool, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "<section aria-labelledby=\"t{nth}\">\n<h2 id=\"t{nth}\">{} {}</h2>", escape::xml(&t.target), verdict(t.verdict))?;
    let folded = fold && t.verdict == Verdict::Aligned && t.findings.iter().all(|f| f.severity == "note");
    if folded {
        writeln!(out, "<details><summary>{}</summary>", words::verdicts(t))?;
    }
    writeln!(out, "<figure tabindex=\"0\">")?;
    svg::draw(t, false, out)?;
    writeln!(out, "</figure>")?;
    if !t.findings.is_empty() {
        writeln!(out, "<h3>Findings</h3>\n<ul class=\"findings\">")?;
        for f in &t.findings {
            write_finding(f, out)?;
        }
        writeln!(out, "</ul>")?;
    }
    write_providers(t, out)?;
    writeln!(out, "{}</section>", if folded { "</details>" } else { "" })
}

fn write_finding(f: &Finding, out: &mut dyn io::Write) -> io::Result<()> {
    let (severity, id, name) = (f.severity, f.rule, escape::xml(&words::name(&f.provider)));
    write!(out, "<li class=\"{severity}\"><p class=\"head\"><b>{severity}</b> <a href=\"#{id}\">{id}</a> <strong>{name}</strong>: ")?;
    writeln!(out, "{}</p>", escape::xml(&f.message))?;
    if words::cost(f).is_some() || !f.fix.is_empty() {
        writeln!(out, "<dl>")?;
        if let Some(cost) = words::cost(f) {
            writeln!(out, "<dt>costs<dd>{}", escape::xml(&cost))?;
        }
        for fix in &f.fix {
            writeln!(out, "<dt>fix<dd>{}", escape::xml(fix))?;
        }
        writeln!(out, "</dl>")?;
    }
    writeln!(out, "</li>")
}

fn write_providers(t: &Target, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(
        out,
        "<h3>Providers</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Providers\"><table>\n<thead><tr>"
    )?;
    for (head, class) in [
        ("Provider", ""),
        ("Content", ""),
        ("Start", "num"),
        ("LBA", "num"),
        ("Size", "num"),
        ("Largest grain", "num"),
        ("Verdict", ""),
        ("Label", ""),
    ] {
        write!(out, "<th scope=\"col\" class=\"{class}\">{head}")?;
    }
    writeln!(out, "</tr></thead>\n<tbody>")?;
    for (branch, id) in text::branches(&Stack::new(t), Style::default()) {
        write_provider(&branch, t, &t.providers[id], out)?;
    }
    writeln!(out, "</tbody></table></div>")
}

fn write_provider(branch: &str, t: &Target, p: &Provider, out: &mut dyn io::Write) -> io::Result<()> {
    let verdict = if p.data_bearing { verdict(p.verdict) } else { "<span class=\"dim\">carries only</span>".into() };
    let grain = p.largest_grain.map_or(String::new(), size::human);
    let label = p.label.as_deref().map_or(String::new(), escape::plain);
    write!(out, "<tr><td class=\"name\">{branch}{}<td>{}", escape::xml(&words::name(&p.provider)), escape::xml(&words::content(t, p)))?;
    write!(out, "<td class=\"num\">{}<td class=\"num\">{}", words::start(p), words::lba(p).map_or(String::new(), |l| l.to_string()))?;
    write!(out, "<td class=\"num\" title=\"{} bytes\">{}<td class=\"num\">{grain}", p.length, size::human(p.length))?;
    writeln!(out, "<td>{verdict}<td class=\"long\">{}</tr>", escape::xml(&label))
}

/// The pages of the rules that were broken.
fn write_rules(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    let ids: BTreeSet<&str> = report.targets.iter().flat_map(|t| &t.findings).map(|f| f.rule).collect();
    if ids.is_empty() {
        return Ok(());
    }
    writeln!(out, "<section aria-labelledby=\"rules\">\n<h2 id=\"rules\">What the rules mean</h2>")?;
    for rule in ids.into_iter().filter_map(rule) {
        let title = escape::xml(rule.title);
        writeln!(out, "<details class=\"rule\" id=\"{}\"><summary><strong>{}</strong> {title}</summary>", rule.id, rule.id)?;
        writeln!(out, "{}</details>", markdown::html(rule.page))?;
    }
    writeln!(out, "</section>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::samples;

    #[test]
    fn hostile_strings_stay_text_and_nothing_is_fetched() {
        let mut report = samples::report(vec![samples::openbsd(), samples::fat()]);
        report.targets[0].target = "<img src=x onerror=alert(1)>".into();
        report.targets[0].findings[0].message = "\"><script>".into();
        let page = samples::text(|out| write(&report, out));
        assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
        assert!(!page.replace("http://www.w3.org/2000/svg", "").contains("http:"));
        assert!(!page.contains("url(") && !page.contains("@import"));
    }
}
