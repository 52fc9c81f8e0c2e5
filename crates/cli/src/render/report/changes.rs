//! `check --changed`: what differs from the run before, as text, as one document, as lines.

use super::group;
use super::text::{MANY, colour, severity_colour, write_body, write_head};
use crate::checked::{Difference, KnownFinding};
use crate::fail_on::FailOn;
use crate::remembered::Remembered;
use crate::report::{Finding, Report, UnreadTarget, Verdict};
use crate::style::Style;
use crate::words::width::columns_of;
use crate::words::{self, columns, escape};
use serde::Serialize;
use std::io;
use trueline_geom::base::finding::Severity;

/// Name of the format of a document of changes, and of its lines.
pub(crate) const FORMAT: &str = "trueline/changes/1";

/// Most new targets that are aligned and have lines of their own; more are counted.
const LISTED: usize = 8;

/// Changes from the runs before.
pub(crate) struct Changes<'a> {
    /// True if there was no run before.
    pub(crate) is_first: bool,
    /// Targets that differ, in their order.
    pub(crate) differences: Vec<Difference<'a>>,
    /// The findings that count for the exit status, which are always shown.
    pub(crate) counted: FailOn,
}

/// The document of `--json`.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    /// True if there was no run before.
    first: bool,
    /// The worst verdict of all targets, those included that do not differ.
    verdict: Verdict,
    /// Number of targets that were read.
    checked: usize,
    targets: Vec<ChangedTarget<'a>>,
    errors: &'a [UnreadTarget],
}

/// A line of `--jsonl`.
#[derive(Serialize)]
struct Line<'a> {
    format: &'static str,
    #[serde(flatten)]
    entry: ChangedTarget<'a>,
}

/// A target that differs.
#[derive(Serialize)]
struct ChangedTarget<'a> {
    target: &'a str,
    #[serde(rename = "for")]
    judged: Option<&'a Remembered>,
    verdict: Verdict,
    was: Option<Verdict>,
    new: &'a [&'a Finding],
    changed: Vec<Changed<'a>>,
    gone: &'a [KnownFinding],
    same: usize,
}

/// A finding of another severity.
#[derive(Serialize)]
struct Changed<'a> {
    was: &'static str,
    #[serde(flatten)]
    finding: &'a Finding,
}

fn entry<'a>(difference: &'a Difference<'a>) -> ChangedTarget<'a> {
    let Difference { target, was, new, changed, gone, same } = difference;
    let changed = changed.iter().map(|(finding, was)| Changed { was: was.name(), finding });
    ChangedTarget {
        target: &target.target,
        judged: target.judged.as_ref(),
        verdict: target.verdict,
        was: *was,
        new,
        changed: changed.collect(),
        gone,
        same: *same,
    }
}

/// Writes the changes as one document.
pub(crate) fn write_json(
    report: &Report,
    changes: &Changes<'_>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let document = Document {
        format: FORMAT,
        first: changes.is_first,
        verdict: report.verdict,
        checked: report.targets.len(),
        targets: changes.differences.iter().map(entry).collect(),
        errors: &report.errors,
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

/// Writes one target that differs as a line.
pub(crate) fn write_line(difference: &Difference<'_>, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &Line { format: FORMAT, entry: entry(difference) })?;
    writeln!(out)
}

/// Writes what differs for people: nothing if nothing does, so that cron sends no mail.
pub(crate) fn write(
    report: &Report,
    changes: &Changes<'_>,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    let (differences, counted) = (&changes.differences, changes.counted);
    if differences.is_empty() {
        return Ok(());
    }
    if changes.is_first {
        columns::line("The first run: everything is new.", style.width, out)?;
    }
    let plain = differences.iter().filter(|difference| is_plain(difference, counted)).count();
    let is_many = differences.len() - plain >= MANY;
    let mut is_after_findings = false;
    for difference in differences {
        if plain > LISTED && is_plain(difference, counted) {
            continue;
        }
        let has_findings = !is_plain(difference, counted) && !is_many;
        if is_after_findings || (has_findings && !std::ptr::eq(difference, &differences[0])) {
            writeln!(out)?;
        }
        write_target(difference, (is_many, counted), out, style)?;
        is_after_findings = has_findings;
    }
    if is_after_findings {
        writeln!(out)?;
    }
    if plain > LISTED {
        let counted = format!("{plain} new targets are aligned, without errors and warnings");
        columns::line(&counted, style.width, out)?;
    }
    columns::line(&total(report, differences), style.width, out)?;
    let found = differences.iter().flat_map(|d| d.new.iter());
    let notes = found.filter(|f| f.severity == Severity::Note).count();
    if is_many && notes > 0 && !counted.counts(Severity::Note) {
        let are = if notes == 1 { "is" } else { "are" };
        let hidden = format!("{} {are} not shown: --json has them", words::count(notes, "note"));
        columns::line(&hidden, style.width, out)?;
    }
    Ok(())
}

/// True for a new target that is aligned and has notes at most, none of which counts.
fn is_plain(difference: &Difference<'_>, counted: FailOn) -> bool {
    let is_noted = |f: &&Finding| f.severity == Severity::Note && !counted.counts(f.severity);
    difference.was.is_none()
        && difference.target.verdict == Verdict::Aligned
        && difference.new.iter().all(is_noted)
}

fn write_target(
    difference: &Difference<'_>,
    (is_many, counted): (bool, FailOn),
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    let Difference { target, was, new, changed, gone, .. } = difference;
    let (verdict, colour) = (words::verdict(target.verdict), colour(target.verdict));
    let was = match was {
        None => "new".to_owned(),
        Some(was) if *was == target.verdict => "as before".to_owned(),
        Some(was) => format!("was {}", words::verdict(*was)),
    };
    let mark = words::mark(target.verdict, style);
    let head = format!("{colour}{mark} {verdict}{colour:#}, {was}: ");
    let shown = 2 + verdict.len() + 2 + was.len() + 2;
    columns::wrap(&head, shown, &escape::plain(&target.target), 4, style.width, out)?;
    let indent = if is_many { 4 } else { 0 };
    if is_plain(difference, counted) {
        return Ok(());
    }
    for (finding, before) in changed {
        let word = format!("was {before}, now ");
        write_finding((&word, indent), [*finding], (is_many, counted), out, style)?;
    }
    write_finding(("new ", indent), new.iter().copied(), (is_many, counted), out, style)?;
    for finding in gone {
        write_gone(finding, indent, out, style)?;
    }
    Ok(())
}

/// Writes findings behind a word that says what is with them, those of one kind together.
fn write_finding<'a>(
    (word, indent): (&str, usize),
    findings: impl IntoIterator<Item = &'a Finding>,
    (is_many, counted): (bool, FailOn),
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    // As for many targets without a state, notes are counted alone, unless the status is theirs.
    let is_shown =
        |f: &&Finding| !is_many || f.severity != Severity::Note || counted.counts(Severity::Note);
    for group in group::groups(findings.into_iter().filter(is_shown)) {
        write!(out, "{:indent$}{word}", "")?;
        write_head(&group, indent + word.len(), out, style)?;
        if !is_many {
            write_body(&group, out, style)?;
        }
    }
    Ok(())
}

/// Writes the line of a finding that is not there any more.
fn write_gone(
    finding: &KnownFinding,
    indent: usize,
    out: &mut dyn io::Write,
    style: Style,
) -> io::Result<()> {
    let (severity, colour) = (finding.severity, severity_colour(finding.severity));
    let place = format!(" {} {}: ", escape::plain(&finding.rule), words::name(&finding.provider));
    let head = format!("{:indent$}gone {colour}{severity}{colour:#}{place}", "");
    let shown = indent + 5 + severity.name().len() + columns_of(&place);
    columns::wrap(&head, shown, &escape::plain(&finding.message), indent + 12, style.width, out)
}

/// The line that sums up: `2 of 3 targets differ; new: 1 error; gone: 2 findings`.
fn total(report: &Report, differences: &[Difference<'_>]) -> String {
    let count = |of: fn(&Difference<'_>) -> usize| differences.iter().map(of).sum::<usize>();
    let differ = if differences.len() == 1 { "differs" } else { "differ" };
    let all = words::count(report.targets.len(), "target");
    let new = words::severities(differences.iter().flat_map(|d| d.new.iter().copied()));
    let (changed, gone) = (count(|d| d.changed.len()), count(|d| d.gone.len()));
    let same: usize = report.targets.iter().map(|t| t.findings.len()).sum::<usize>()
        - count(|d| d.new.len() + d.changed.len());
    let mut parts = Vec::new();
    if !new.is_empty() {
        parts.push(format!("new: {new}"));
    }
    if changed > 0 {
        parts.push(format!("{} of another severity", words::count(changed, "finding")));
    }
    if gone > 0 {
        parts.push(format!("gone: {}", words::count(gone, "finding")));
    }
    if same > 0 {
        parts.push(format!("as before: {}", words::count(same, "finding")));
    }
    if !report.errors.is_empty() {
        parts.push(format!("{} could not be read", report.errors.len()));
    }
    let parts = if parts.is_empty() { String::new() } else { format!("; {}", parts.join("; ")) };
    format!("{} of {all} {differ}{parts}", differences.len())
}
