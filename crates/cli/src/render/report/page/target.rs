//! One target on the page: the findings to read first, its drawing, its findings, its providers.

use super::{leads, numbers, verdict, verdict_of, write_table};
use crate::remembered::Remembered;
use crate::render::draw::stack::Stack;
use crate::render::draw::svg;
use crate::render::report::group::{self, Group};
use crate::render::report::text;
use crate::report::{Finding, Provider, Target, Verdict};
use crate::style::Style;
use crate::words::{self, escape, size};
use std::io;
use trueline_geom::base::finding::{Severity, rule};

/// Most findings of one kind, and most providers, in a table that is not folded.
const LISTED: usize = 8;
const OPEN_ROWS: usize = 40;

/// Number of findings of the same rule and severity besides `f`, and its rank among them, in words.
fn others(t: &Target, f: &Finding) -> Option<String> {
    let kind: Vec<&Finding> =
        t.findings.iter().filter(|o| (o.rule, o.severity) == (f.rule, f.severity)).collect();
    let like = |o: &&&Finding| {
        (o.unit, o.remainder) == (f.unit, f.remainder) && words::cost(o) == words::cost(f)
    };
    let alike = kind.iter().filter(like).count().saturating_sub(1);
    let more = (alike > 0).then(|| format!("and {alike} more like it"));
    let lesser = kind.iter().filter(|o| !like(o)).all(|o| o.rmw_factor < f.rmw_factor);
    let rank = (alike + 1 < kind.len())
        .then(|| format!("{} of {}", if lesser { "the worst" } else { "one" }, kind.len()));
    let parts: Vec<String> = more.into_iter().chain(rank).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Writes a finding in one glance: name, distance, cost, fix.
fn write_lead(t: &Target, f: &Finding, out: &mut dyn io::Write) -> io::Result<()> {
    let p = t.providers.iter().find(|p| p.provider == f.provider);
    let name = escape::xml(&words::name(&f.provider));
    let content = p.map_or(String::new(), |p| escape::xml(&words::and_content(t, p)));
    let others = others(t, f).map_or(String::new(), |others| format!("<br>{others}"));
    let title = rule(f.rule).map_or("", |r| r.title);
    writeln!(out, "<dl class=\"lead {}\">", f.severity)?;
    writeln!(out, "<div><dt>what<dd><b>{name}</b>{content}{others}</div>")?;
    if f.unit > 0 && f.remainder > 0 {
        let (past, unit) = (numbers(&f.remainder.to_string()), numbers(&words::bytes(f.unit)));
        writeln!(
            out,
            "<div><dt>is off by<dd><b class=\"how\">{past} bytes</b><br>past a boundary of {unit}</div>"
        )?;
    } else {
        writeln!(out, "<div><dt>is wrong<dd>{}</div>", escape::xml(title))?;
    }
    if let Some(times) = words::times(f) {
        writeln!(
            out,
            "<div><dt>costs<dd><b class=\"how\">{}</b><br>the device operations</div>",
            times.replace('x', "×")
        )?;
    }
    if let Some(fix) = f.fix.first().filter(|fix| words::is_a_fix(fix)) {
        let whom = if others.is_empty() { String::new() } else { format!(" with {name}") };
        writeln!(out, "<div class=\"do\"><dt>do{whom}<dd>{}</div>", numbers(fix))?;
    }
    writeln!(out, "</dl>")
}

/// Writes one target: the findings to read first, the drawing, every finding, every provider.
pub(crate) fn write_target(
    nth: usize,
    t: &Target,
    alone: bool,
    fold: bool,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    if alone {
        writeln!(out, "<section>")?;
    } else {
        let name = escape::xml(&t.target);
        writeln!(
            out,
            "<section aria-labelledby=\"t{nth}\">\n<h2 id=\"t{nth}\">{}: {name}</h2>",
            verdict_of(t)
        )?;
    }
    let folded = fold
        && t.verdict == Verdict::Aligned
        && t.findings.iter().all(|f| f.severity == Severity::Note);
    if folded {
        writeln!(out, "<details><summary>{}</summary>", words::verdicts(t))?;
    }
    if let Some(judged) = t.judged.as_ref().and_then(Remembered::sentence) {
        writeln!(out, "<p class=\"made\">{}</p>", escape::xml(&judged))?;
    }
    for f in leads(t) {
        write_lead(t, f, out)?;
    }
    writeln!(out, "<figure tabindex=\"0\">")?;
    svg::draw(t, false, out)?;
    writeln!(out, "</figure>")?;
    if !t.findings.is_empty() {
        writeln!(out, "<h3>{}</h3>\n<ul class=\"findings\">", words::severities(&t.findings))?;
        for group in group::groups(&t.findings) {
            write_group(&group, out)?;
        }
        writeln!(out, "</ul>")?;
    }
    write_providers(t, out)?;
    writeln!(out, "{}</section>", if folded { "</details>" } else { "" })
}

fn write_group(group: &Group<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let f = group.first();
    let (severity, id) = (f.severity, f.rule);
    let whom = if group.several() {
        words::count(group.findings.len(), "provider")
    } else {
        words::name(&f.provider)
    };
    let whom = escape::xml(&whom);
    write!(
        out,
        "<li class=\"{severity}\"><p class=\"head\"><b>{severity}</b> <a href=\"#{id}\">{id}</a> <strong>{whom}</strong>: "
    )?;
    writeln!(out, "{}</p>", numbers(&escape::plain(&group.says)))?;
    let mut pairs: Vec<(&str, String)> = Vec::new();
    pairs.extend(words::cost(f).map(|cost| ("costs", cost)));
    let shared = if group.several() { group.shared_fix() } else { Some(&f.fix[..]) };
    if group.several() && shared.is_some() {
        pairs.push(("on", group.names()));
    }
    let (fixes, idle): (Vec<_>, Vec<_>) =
        shared.unwrap_or_default().iter().partition(|fix| words::is_a_fix(fix));
    pairs.extend(fixes.into_iter().map(|fix| ("fix", escape::plain(fix))));
    if !pairs.is_empty() {
        writeln!(out, "<dl class=\"pairs\">")?;
        for (what, text) in pairs {
            writeln!(out, "<dt>{what}<dd>{}", numbers(&text))?;
        }
        writeln!(out, "</dl>")?;
    }
    for fix in idle {
        writeln!(out, "<p>{}</p>", numbers(&escape::plain(fix)))?;
    }
    if shared.is_none() {
        write_each(group, out)?;
    }
    writeln!(out, "</li>")
}

/// Writes the place of each of several findings, and its fix.
fn write_each(group: &Group<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    let many = group.findings.len() > LISTED;
    if many {
        writeln!(out, "<details><summary>{}</summary>", escape::xml(&group.names()))?;
    }
    write_table("Places", &[("Provider", ""), ("Where", ""), ("Fix", "")], out)?;
    for f in &group.findings {
        let (name, place) = (escape::xml(&words::name(&f.provider)), numbers(&group.place(f)));
        writeln!(
            out,
            "<tr><td>{name}<td class=\"where\">{place}<td class=\"long\">{}</tr>",
            numbers(&escape::plain(&f.fix.join("; ")))
        )?;
    }
    writeln!(out, "</tbody></table></div>{}", if many { "</details>" } else { "" })
}

fn write_providers(t: &Target, out: &mut dyn io::Write) -> io::Result<()> {
    let many = t.providers.len() > OPEN_ROWS;
    let count = words::count(t.providers.len(), "provider");
    writeln!(
        out,
        "{}",
        if many {
            format!("<details><summary>{count}</summary>")
        } else {
            format!("<h3>{count}</h3>")
        }
    )?;
    let columns = [
        ("Provider", ""),
        ("Content", ""),
        ("Start, bytes", "num"),
        ("LBA", "num"),
        ("Size", "num"),
        ("Largest grain", "num"),
        ("Verdict", ""),
        ("Label", ""),
    ];
    let labelled = t.providers.iter().any(|p| p.label.is_some());
    write_table("Providers", &columns[..if labelled { 8 } else { 7 }], out)?;
    for (branch, id) in text::branches(&Stack::new(t), Style::default()) {
        write_provider(&branch, t, &t.providers[id], labelled, out)?;
    }
    writeln!(out, "</tbody></table></div>{}", if many { "</details>" } else { "" })
}

fn write_provider(
    branch: &str,
    t: &Target,
    p: &Provider,
    labelled: bool,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let verdict =
        words::shown(p).map_or_else(|| "<span class=\"dim\">carries only</span>".into(), verdict);
    let grain = words::start_grain(p).map_or(String::new(), size::human);
    write!(
        out,
        "<tr><td class=\"name\">{branch}{}<td>{}",
        escape::xml(&words::name(&p.provider)),
        escape::xml(&words::content(t, p))
    )?;
    let lba = words::lba(p).map_or(String::new(), |l| numbers(&l.to_string()));
    write!(out, "<td class=\"num\">{}<td class=\"num\">{lba}", numbers(&words::start_cell(p)))?;
    write!(
        out,
        "<td class=\"num\" title=\"{} bytes\">{}<td class=\"num\">{grain}<td>{verdict}",
        p.length,
        size::human(p.length)
    )?;
    let label = p.label.as_deref().map_or(String::new(), escape::plain);
    writeln!(
        out,
        "{}</tr>",
        if labelled {
            format!("<td class=\"long\">{}", escape::xml(&label))
        } else {
            String::new()
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn only_what_is_alike_is_called_so() {
        let mut target = samples::openbsd();
        let lead = |t: &Target| others(t, leads(t)[0]);
        assert_eq!(lead(&target).as_deref(), Some("the worst of 3"));
        target.findings[0].rmw_factor = 4.0;
        assert_eq!(lead(&target).as_deref(), Some("and 1 more like it, the worst of 3"));
        target.findings[2].rmw_factor = 4.0;
        assert_eq!(lead(&target).as_deref(), Some("and 2 more like it"));
        target.findings[2].remainder = 512;
        assert_eq!(lead(&target).as_deref(), Some("and 1 more like it, one of 3"));
        target.findings.truncate(1);
        assert_eq!(lead(&target), None);
    }
}
