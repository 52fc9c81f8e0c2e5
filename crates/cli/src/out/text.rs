//! `check`'s text: per target a tree of providers, what was found, and a line that sums it up.
//!
//! Of many targets, the ones with nothing to complain of have only that line.

use super::columns::{self, Cell};
use super::stack::Stack;
use super::{Style, escape, size, words};
use crate::report::{Finding, Provider, Report, Target, Verdict};
use anstyle::{AnsiColor, Style as Colour};
use std::io;

/// Writes the report for people.
pub(crate) fn write(report: &Report, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    let several = report.targets.len() > 1;
    let mut spaced = true;
    for (nth, target) in report.targets.iter().enumerate() {
        let full = !several || target.verdict != Verdict::Aligned || target.findings.iter().any(|f| f.severity != "note");
        if full {
            if nth > 0 && spaced {
                writeln!(out)?;
            }
            write_target(target, out, style)?;
        }
        write_summary(target, out, style)?;
        spaced = true;
        if full && several && nth + 1 < report.targets.len() {
            writeln!(out)?;
            spaced = false;
        }
    }
    if several { write_total(report, out) } else { Ok(()) }
}

/// The colour of a verdict.
pub(super) fn colour(verdict: Verdict) -> Colour {
    let colour = match verdict {
        Verdict::Aligned => AnsiColor::Green,
        Verdict::Unknown => AnsiColor::Yellow,
        Verdict::Misaligned => AnsiColor::Red,
    };
    colour.on_default()
}

/// What hangs in front of every provider's name, and the provider's place: depth first, by start.
pub(super) fn branches(stack: &Stack<'_>, style: Style) -> Vec<(String, usize)> {
    let mut rows = Vec::new();
    // Depth first with a list of our own: (what the children's lines begin with, what this line begins with, who).
    let mut todo: Vec<(String, String, usize)> = stack.roots.iter().rev().map(|&r| (String::new(), String::new(), r)).collect();
    while let Some((under, branch, id)) = todo.pop() {
        rows.push((branch, id));
        let children = stack.children(id);
        for (nth, &child) in children.iter().enumerate().rev() {
            let last = nth + 1 == children.len();
            let tee = if last { style.glyph("└─", "`-") } else { style.glyph("├─", "|-") };
            let bar = if last { "  " } else { style.glyph("│ ", "| ") };
            todo.push((format!("{under}{bar}"), format!("{under}{tee}"), child));
        }
    }
    rows
}

fn write_target(target: &Target, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    let bold = Colour::new().bold();
    writeln!(out, "{bold}{}{bold:#}", escape::plain(&target.target))?;
    let stack = Stack::new(target);
    let heading = Colour::new().dimmed();
    let left = |s: &str| Cell::left(s).colour(heading);
    let right = |s: &str| Cell::right(s).colour(heading);
    let mut rows = vec![vec![
        left("PROVIDER"),
        left("CONTENT"),
        right("START"),
        right("(LBA)"),
        right("SIZE"),
        right("GRAIN"),
        left("VERDICT"),
        left("LABEL"),
    ]];
    for (branch, id) in branches(&stack, style) {
        rows.push(row(&branch, target, &target.providers[id], style));
    }
    columns::write(&rows, &[7, 3, 5], style.width, out)?;
    if !target.findings.is_empty() {
        writeln!(out)?;
    }
    for finding in &target.findings {
        write_finding(finding, out, style)?;
    }
    Ok(())
}

fn row(branch: &str, target: &Target, p: &Provider, style: Style) -> Vec<Cell> {
    let verdict = if p.data_bearing {
        Cell::left(format!("{} {}", words::mark(p.verdict, style), words::verdict(p.verdict))).colour(colour(p.verdict))
    } else {
        Cell::default()
    };
    vec![
        Cell::left(format!("{branch}{}", words::name(&p.provider))),
        Cell::left(words::content(target, p)),
        Cell::right(words::start(p).to_string()),
        Cell::right(words::lba(p).map_or(String::new(), |lba| format!("({lba})"))),
        Cell::right(size::human(p.length)),
        Cell::right(p.largest_grain.map_or("-".into(), size::short)),
        verdict,
        Cell::left(p.label.as_deref().map_or(String::new(), escape::plain)),
    ]
}

fn write_finding(f: &Finding, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    let colour = match f.severity {
        "error" => AnsiColor::Red.on_default().bold(),
        "warning" => AnsiColor::Yellow.on_default().bold(),
        _ => Colour::new().bold(),
    };
    let head = format!("{} {} {}: ", f.severity, f.rule, words::name(&f.provider));
    let shown = head.chars().count();
    let head = head.replacen(f.severity, &format!("{colour}{}{colour:#}", f.severity), 1);
    columns::wrap(&head, shown, &escape::plain(&f.message), 7, style.width, out)?;
    if let Some(cost) = words::cost(f) {
        columns::wrap("  costs: ", 9, &cost, 9, style.width, out)?;
    }
    for fix in &f.fix {
        columns::wrap("  fix: ", 7, &escape::plain(fix), 7, style.width, out)?;
    }
    Ok(())
}

fn write_summary(target: &Target, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    let colour = colour(target.verdict);
    let (mark, verdict) = (words::mark(target.verdict, style), words::verdict(target.verdict));
    let found = words::severities(&target.findings);
    let found = if found.is_empty() { String::new() } else { format!("; {found}") };
    let name = escape::plain(&target.target);
    writeln!(out, "{colour}{mark} {verdict}{colour:#}  {name}: {}{found}", words::verdicts(target))
}

fn write_total(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    let of = |v| report.targets.iter().filter(|t| t.verdict == v).count();
    let all = [Verdict::Misaligned, Verdict::Unknown, Verdict::Aligned].map(|v| (of(v), words::verdict(v)));
    let said: Vec<String> = all.iter().filter(|(n, _)| *n > 0).map(|(n, v)| format!("{n} {v}")).collect();
    writeln!(out, "{}: {}", words::count(report.targets.len(), "target"), said.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::samples;

    #[test]
    fn one_target() {
        let report = samples::report(vec![samples::openbsd()]);
        let text = samples::text(|out| write(&report, out, Style::default()));
        samples::golden("openbsd.txt", &text);
    }

    #[test]
    fn an_aligned_target_among_many_has_one_line() {
        let report = samples::report(vec![samples::gpt(), samples::gpt(), samples::fat(), samples::gpt()]);
        let text = samples::text(|out| write(&report, out, Style { width: None, ascii: true }));
        samples::golden("several.txt", &text);
    }

    #[test]
    fn a_narrow_terminal_breaks_no_number() {
        let report = samples::report(vec![samples::fat()]);
        let wide = samples::text(|out| write(&report, out, Style::default()));
        let narrow = samples::text(|out| write(&report, out, Style { width: Some(60), ascii: false }));
        let last = |text: &str| text.split_once("warning").unwrap().1.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(last(&wide), last(&narrow));
        assert!(narrow.lines().take_while(|l| !l.starts_with('✗')).all(|l| l.chars().count() <= 60), "{narrow}");
    }
}
