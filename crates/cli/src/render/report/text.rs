//! The text of `check`: for each target a tree of providers, the findings, and a summary line.
//!
//! Of several targets, those without errors and warnings have only the summary line; of many, none
//! has a tree. Notes are findings like others where they count for the exit status.

use super::group::{self, Group};
use crate::fail_on::FailOn;
use crate::remembered;
use crate::render::draw::stack::Stack;
use crate::report::{Finding, Provider, Report, Target, Verdict};
use crate::style::Style;
use crate::words::columns::{self, Cell, Spare};
use crate::words::width::columns_of;
use crate::words::{self, escape, size};
use anstyle::{AnsiColor, Style as Colour};
use std::collections::BTreeMap;
use std::io;
use trueline_geom::base::finding::{Severity, rule};

/// Least number of targets that are shown without trees, with a line for each kind of finding.
pub(super) const MANY: usize = 24;

/// Most findings of one kind with lines of their own; the rest are named.
const LISTED: usize = 8;

/// Writes the report for people; findings that are `counted` are shown of every target.
pub(crate) fn write(
    report: &Report,
    counted: FailOn,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    let is_shown = |f: &Finding| f.severity != Severity::Note || counted.counts(f.severity);
    match &report.targets[..] {
        [target] if report.errors.is_empty() => write_full(target, out, style),
        [target] => {
            write_full(target, out, style)?;
            write_total(report, 0, out, style)
        }
        targets if targets.len() < MANY => write_several(report, is_shown, out, style),
        _ => write_many(report, is_shown, out, style),
    }
}

fn write_full(target: &Target, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    write_target(target, out, style)?;
    write_summary(target, false, out, style)
}

fn write_several(
    report: &Report,
    is_shown: impl Fn(&Finding) -> bool,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    let (mut spaced, mut unsaid, mut lines) = (true, 0, Vec::new());
    for (nth, target) in report.targets.iter().enumerate() {
        let full = target.verdict != Verdict::Aligned || target.findings.iter().any(&is_shown);
        if full && nth > 0 && spaced {
            writeln!(out)?;
        }
        if full {
            write_full(target, out, style)?;
        } else {
            write_summary(target, true, out, style)?;
            unsaid += target.findings.len();
            lines.push(target);
        }
        spaced = true;
        if full && nth + 1 < report.targets.len() {
            writeln!(out)?;
            spaced = false;
        }
    }
    write_judged(lines.into_iter(), out, style)?;
    write_total(report, unsaid, out, style)
}

/// Writes the profiles of targets without a tree, if they come from elsewhere than the command
/// line.
fn write_judged<'a>(
    targets: impl Iterator<Item = &'a Target>,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    remembered::sentences(targets.filter_map(|t| Some((t.target.as_str(), t.judged.as_ref()?))))
        .iter()
        .try_for_each(|sentence| columns::wrap("", 0, sentence, 2, style.width, out))
}

/// Writes a line for every target and one for every kind of error and warning, then the number of
/// times each rule was broken.
fn write_many(
    report: &Report,
    is_shown: impl Fn(&Finding) -> bool,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    for target in &report.targets {
        write_summary(target, true, out, style)?;
        for group in group::groups(&target.findings).iter().filter(|g| is_shown(g.first())) {
            write!(out, "    ")?;
            write_head(group, 4, out, style)?;
        }
    }
    let mut broken: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for target in &report.targets {
        let mut here: Vec<&str> = target.findings.iter().map(|f| f.rule).collect();
        here.iter().for_each(|id| broken.entry(*id).or_default().0 += 1);
        here.sort_unstable();
        here.dedup();
        here.iter().for_each(|id| broken.entry(*id).or_default().1 += 1);
    }
    write_judged(report.targets.iter(), out, style)?;
    writeln!(out)?;
    let rows: Vec<Vec<Cell>> =
        std::iter::once(["RULE", "FINDINGS", "TARGETS", ""].map(str::to_owned))
            .chain(broken.iter().map(|(&id, (findings, targets))| {
                let title = rule(id).map_or("", |r| r.title);
                [id.to_owned(), findings.to_string(), targets.to_string(), title.to_owned()]
            }))
            .map(|[id, findings, targets, title]| {
                vec![
                    Cell::left(id),
                    Cell::right(findings),
                    Cell::right(targets),
                    Cell::left(title).wrapped(),
                ]
            })
            .collect();
    if !broken.is_empty() {
        columns::write(&rows, &Spare(&[2], "--json"), style.width, out)?;
        let more = "Checked by itself a target shows what stands on it and what to do; `trueline \
            explain RULE` says what a rule means.";
        columns::wrap("", 0, more, 0, style.width, out)?;
    }
    let hidden = report.targets.iter().flat_map(|t| &t.findings).filter(|f| !is_shown(f)).count();
    write_total(report, hidden, out, style)
}

/// The colour of a verdict.
pub(crate) fn colour(verdict: Verdict) -> Colour {
    let colour = match verdict {
        Verdict::Aligned => AnsiColor::Green,
        Verdict::Unknown => AnsiColor::Yellow,
        Verdict::Misaligned => AnsiColor::Red,
    };
    colour.on_default()
}

/// The colour of a severity.
pub(super) fn severity_colour(severity: Severity) -> Colour {
    match severity {
        Severity::Error => AnsiColor::Red.on_default().bold(),
        Severity::Warning => AnsiColor::Yellow.on_default().bold(),
        Severity::Note => Colour::new().bold(),
    }
}

/// The branches in front of each provider's name, and its index: depth first, by start.
pub(super) fn branches(stack: &Stack<'_>, style: Style) -> Vec<(String, usize)> {
    let mut rows = Vec::new();
    // Explicit stack of a depth-first walk: prefix of the children's lines, prefix of this line,
    // index.
    let mut todo: Vec<(String, String, usize)> =
        stack.roots.iter().rev().map(|&r| (String::new(), String::new(), r)).collect();
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
    if let Some(judged) = &target.judged {
        judged.write(style.width, out)?;
    }
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
        right("ALIGN"),
        left("VERDICT"),
        left("LABEL"),
    ]];
    for (branch, id) in branches(&stack, style) {
        rows.push(row(&branch, target, &target.providers[id], style));
    }
    columns::write(&rows, &Spare(&[7, 3, 5], "-o"), style.width, out)?;
    if !target.findings.is_empty() {
        writeln!(out)?;
    }
    for group in group::groups(&target.findings) {
        write_group(&group, out, style)?;
    }
    Ok(())
}

fn row(branch: &str, target: &Target, p: &Provider, style: Style) -> Vec<Cell> {
    let cell = |v| {
        Cell::left(format!("{} {}", words::mark(v, style), words::verdict(v))).colour(colour(v))
    };
    let verdict = words::shown(p).map_or_else(Cell::default, cell);
    vec![
        Cell::left(format!("{branch}{}", words::name(&p.provider))),
        Cell::left(words::content(target, p)),
        Cell::right(words::start_cell(p)),
        Cell::right(words::lba(p).map_or(String::new(), |lba| format!("({lba})"))),
        Cell::right(size::human(p.length)),
        Cell::right(words::start_grain(p).map_or("-".into(), size::short)),
        verdict,
        Cell::left(p.label.as_deref().map_or(String::new(), escape::plain)),
    ]
}

/// Writes the first line of a finding, or of several of one kind: severity, rule, providers,
/// message.
pub(super) fn write_head(
    group: &Group<'_>,
    indent: usize,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    let f = group.first();
    let colour = severity_colour(f.severity);
    let whom = if group.several() {
        format!("on {}", words::count(group.findings.len(), "provider"))
    } else {
        words::name(&f.provider)
    };
    let head = format!("{} {} {whom}: ", f.severity, f.rule);
    let shown = indent + columns_of(&head);
    let head = head.replacen(f.severity.name(), &format!("{colour}{}{colour:#}", f.severity), 1);
    columns::wrap(&head, shown, &escape::plain(&group.says), indent + 7, style.width, out)
}

fn write_group(group: &Group<'_>, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    write_head(group, 0, out, style)?;
    write_body(group, out, style)
}

/// Writes the lines beneath the first one: the cost, the providers of several, the fixes.
pub(super) fn write_body(
    group: &Group<'_>,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    if let Some(cost) = words::cost(group.first()) {
        columns::wrap("  costs: ", 9, &cost, 9, style.width, out)?;
    }
    let shared = if group.several() { group.shared_fix() } else { Some(&group.first().fix[..]) };
    if group.several() && shared.is_some() {
        columns::wrap("  on: ", 6, &group.names(), 6, style.width, out)?;
    }
    if shared.is_some() {
        write_fixes((&group.first().commands, &group.first().fix), 2, out, style)?;
    }
    if shared.is_none() { write_each(group, out, style) } else { Ok(()) }
}

/// Beginning of a command behind a sentence.
const COMMAND: &str = ": trueline ";

/// Writes fixes: the commands, a line each and never broken, for copying; then the other ones. The
/// first of `fix` is the commands, if there are any.
pub(crate) fn write_fixes(
    (commands, fix): (&[String], &[String]),
    indent: usize,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    for (nth, command) in commands.iter().enumerate() {
        let head = if nth == 0 { "fix:" } else { "" };
        writeln!(out, "{:indent$}{head:4} {}", "", escape::plain(command))?;
    }
    for fix in fix.iter().skip(usize::from(!commands.is_empty())) {
        let head = match commands.is_empty() {
            _ if !words::is_a_fix(fix) => "",
            true => "fix: ",
            false => "or: ",
        };
        let (lead, deep) = (format!("{:indent$}{head}", ""), indent + head.len());
        let fix = escape::plain(fix);
        let has_room = style.width.is_none_or(|width| deep + columns_of(&fix) < width);
        // A command at its end stays whole, for copying.
        let (sentence, command) = match fix.find(COMMAND).filter(|_| !has_room) {
            Some(at) => fix.split_at(at + 1),
            None => (&fix[..], ""),
        };
        columns::wrap(&lead, deep, sentence, deep, style.width, out)?;
        if !command.is_empty() {
            writeln!(out, "{:deep$}{}", "", command.trim_start())?;
        }
    }
    Ok(())
}

/// Writes the place of each of several findings, and its fix.
fn write_each(group: &Group<'_>, out: &mut dyn io::Write, style: Style) -> io::Result<()> {
    // One over the limit takes no more room than the line that would replace it.
    let listed = if group.findings.len() <= LISTED + 1 { group.findings.len() } else { LISTED };
    let (these, others) = group.findings.split_at(listed);
    let name = |f: &Finding| words::name(&f.provider);
    let place = |f: &Finding| group.place(f);
    let widest = |what: &dyn Fn(&Finding) -> String| {
        these.iter().map(|f| what(f).chars().count()).max().unwrap_or(0)
    };
    let fix = |f: &Finding| escape::plain(&f.fix.join("; "));
    let (wide, far) = (widest(&name), widest(&place));
    // If one line has no room for all, the fix goes below.
    let below = style.width.is_some_and(|width| 2 + wide + 2 + far + 7 + widest(&fix) > width);
    let below = below || these.iter().any(|f| !f.commands.is_empty());
    for f in these {
        let (name, place) = (name(f), place(f));
        if below {
            writeln!(out, "  {name:wide$}  {place}")?;
            write_fixes((&f.commands, &f.fix), 4, out, style)?;
        } else {
            writeln!(out, "  {name:wide$}  {place:far$}  fix: {}", fix(f))?;
        }
    }
    if !others.is_empty() {
        let names = group::runs(others.iter().map(|f| name(f)));
        let rest = format!("and {} more, whose fixes --json has: {names}", others.len());
        columns::wrap("  ", 2, &rest, 2, style.width, out)?;
    }
    Ok(())
}

/// Writes the summary line of a target; `padded` aligns the names of several targets.
fn write_summary(
    target: &Target,
    padded: bool,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    // An aligned target with errors does not look all-clear.
    let but = words::errors(target).filter(|_| target.verdict == Verdict::Aligned);
    let colour = colour(if but.is_some() { Verdict::Misaligned } else { target.verdict });
    let mark = words::mark(target.verdict, style);
    let verdict = words::verdict(target.verdict).to_owned()
        + &but.map_or(String::new(), |errors| format!(", but {errors}"));
    let found = words::severities(&target.findings);
    let found = if found.is_empty() { String::new() } else { format!("; {found}") };
    let worst = words::dearest(target).map_or(String::new(), |cost| format!("; {cost}"));
    let pad = if padded {
        words::verdict(Verdict::Misaligned).len().saturating_sub(verdict.len())
    } else {
        0
    };
    let name = escape::plain(&target.target);
    let head = format!("{colour}{mark} {verdict}{colour:#}{:pad$}  {name}: ", "");
    let shown = 2 + verdict.len() + pad + 2 + columns_of(&name) + 2;
    let why = words::unjudged(target).map_or(String::new(), |why| format!("; {why}"));
    columns::wrap(
        &head,
        shown,
        &format!("{}{found}{why}{worst}", words::verdicts(target)),
        4,
        style.width,
        out,
    )
}

/// Writes the line that sums up all targets; `unsaid` is the number of notes left out.
fn write_total(
    report: &Report,
    unsaid: usize,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    let of = |v| report.targets.iter().filter(|t| t.verdict == v).count();
    let all = [Verdict::Misaligned, Verdict::Unknown, Verdict::Aligned]
        .map(|v| (of(v), words::verdict(v)));
    let parts: Vec<String> =
        all.iter().filter(|(n, _)| *n > 0).map(|(n, v)| format!("{n} {v}")).collect();
    let unread = if report.errors.is_empty() {
        String::new()
    } else {
        format!("; {} could not be read", report.errors.len())
    };
    let total =
        format!("{}: {}{unread}", words::count(report.targets.len(), "target"), parts.join(", "));
    columns::line(&total, style.width, out)?;
    if unsaid > 0 {
        let are = if unsaid == 1 { "is" } else { "are" };
        let hidden = format!(
            "{} {are} not shown: check one target alone, or --json",
            words::count(unsaid, "note")
        );
        columns::line(&hidden, style.width, out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn one_target() {
        let report = samples::report(vec![samples::openbsd()]);
        let text = samples::text(|out| write(&report, FailOn::default(), out, Style::default()));
        samples::golden("openbsd.txt", &text);
    }

    #[test]
    fn the_summary_covers_notes_that_cost_more() {
        let mut target = samples::fat();
        target.findings.iter_mut().for_each(|f| f.rmw_factor = 1.25);
        let mut note = samples::fat().findings.remove(0);
        (note.severity, note.rmw_factor) = (Severity::Note, 4.0);
        target.findings.push(note);
        let report = samples::report(vec![target]);
        let text = samples::text(|out| {
            write(&report, FailOn::default(), out, Style { width: None, ascii: true })
        });
        assert!(
            text.ends_with(
                "; up to 1.25 x the device operations, and 4.0 x by what is only noted\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn an_aligned_target_among_many_has_one_line() {
        let report =
            samples::report(vec![samples::gpt(), samples::gpt(), samples::fat(), samples::gpt()]);
        let text = samples::text(|out| {
            write(&report, FailOn::default(), out, Style { width: None, ascii: true })
        });
        samples::golden("several.txt", &text);
    }

    #[test]
    fn a_command_is_never_broken() {
        let mut target = samples::fat();
        let commands = ["truncate -s +1M 'my disk.img'", "trueline move --align 'my disk.img#p1'"]
            .map(String::from);
        target.findings[0].fix =
            vec![commands.join(" && "), "start it at byte 1048576 (LBA 2048) of the disk".into()];
        target.findings[0].commands = commands.to_vec();
        let report = samples::report(vec![target]);
        let text = samples::text(|out| {
            write(&report, FailOn::default(), out, Style { width: Some(30), ascii: true })
        });
        let text = anstream::adapter::strip_str(&text).to_string();
        let want = "  fix: truncate -s +1M 'my disk.img'\n       trueline move --align 'my \
            disk.img#p1'\n  or: start it at byte 1048576\n      (LBA 2048) of the disk\n";
        assert!(text.contains(want), "{text}");
    }

    #[test]
    fn a_narrow_terminal_breaks_no_number() {
        let report = samples::report(vec![samples::fat()]);
        let wide = samples::text(|out| write(&report, FailOn::default(), out, Style::default()));
        let narrow = samples::text(|out| {
            write(&report, FailOn::default(), out, Style { width: Some(60), ascii: false })
        });
        let last = |text: &str| {
            text.split_once("warning")
                .unwrap()
                .1
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(last(&wide), last(&narrow));
        assert!(
            narrow.lines().take_while(|l| !l.starts_with('✗')).all(|l| l.chars().count() <= 60),
            "{narrow}"
        );
    }
}
