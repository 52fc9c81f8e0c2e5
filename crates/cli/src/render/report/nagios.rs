//! `--nagios`: one line for a monitoring system, `STATE - text | performance data`, and the exit
//! status that it goes by.
//!
//! # Sources
//! Monitoring Plugins Development Guidelines: return codes, performance data, ranges; where several
//! things are watched, CRITICAL is worse than WARNING, that than UNKNOWN (`max_state_alt`).

use super::list::column::named;
use crate::fail_on::FailOn;
use crate::report::{Finding, Report, Target, Verdict};
use crate::words::{self, escape};
use std::io;
use trueline_geom::base::finding::Severity;

/// State of a service, with the exit status that means it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServiceState {
    /// Nothing that counts was found.
    Ok = 0,
    /// The worst finding that counts is no error.
    Warning = 1,
    /// An error was found.
    Critical = 2,
    /// Something could not be read or, if that counts, is not known.
    Unknown = 3,
}

impl ServiceState {
    /// The state of a report. Findings that are `counted` count; verdicts `unknown` do if
    /// `strict`.
    pub(crate) fn new(report: &Report, counted: FailOn, strict: bool) -> ServiceState {
        let found =
            findings(report).map(|(_, f)| f.severity).max().filter(|&worst| counted.counts(worst));
        let open = strict && of(report, Verdict::Unknown) > 0;
        match found {
            Some(Severity::Error) => ServiceState::Critical,
            Some(_) => ServiceState::Warning,
            None if open || !report.errors.is_empty() => ServiceState::Unknown,
            // That nothing was looked at is no good news.
            None if report.targets.is_empty() => ServiceState::Unknown,
            None => ServiceState::Ok,
        }
    }

    /// The exit status that means it.
    pub(crate) fn status(self) -> u8 {
        self as u8
    }

    fn word(self) -> &'static str {
        match self {
            ServiceState::Ok => "OK",
            ServiceState::Warning => "WARNING",
            ServiceState::Critical => "CRITICAL",
            ServiceState::Unknown => "UNKNOWN",
        }
    }
}

/// Writes the line of a report in that state.
pub(crate) fn write(
    report: &Report,
    state: ServiceState,
    counted: FailOn,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let parts = [targets(report), severities(report), worst(report), unread(report)];
    let text: Vec<String> = parts.into_iter().flatten().collect();
    let data = data(report, counted).join(" ");
    writeln!(out, "{} - {} | {data}", state.word(), plain(&text.join("; ")))
}

/// Writes the line of a run that ended early.
pub(crate) fn write_failed(why: &str, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "{} - {}", ServiceState::Unknown.word(), plain(&escape::short(why)))
}

/// Text without control characters and without the bar that ends it.
fn plain(text: &str) -> String {
    escape::plain(text).replace('|', "\\u{7c}")
}

fn findings(report: &Report) -> impl Iterator<Item = (&Target, &Finding)> + Clone {
    report.targets.iter().flat_map(|target| target.findings.iter().map(move |f| (target, f)))
}

/// Number of targets with a verdict.
fn of(report: &Report, verdict: Verdict) -> usize {
    report.targets.iter().filter(|target| target.verdict == verdict).count()
}

/// The targets by their verdicts; the verdict of the only one.
fn targets(report: &Report) -> Option<String> {
    match &report.targets[..] {
        [] if report.errors.is_empty() => Some("no target".into()),
        [] => None,
        [target] => {
            let name = escape::short(&target.target);
            Some(format!("{name} {}", words::verdict(target.verdict)))
        }
        targets => {
            let counts = [Verdict::Misaligned, Verdict::Unknown, Verdict::Aligned]
                .map(|verdict| (of(report, verdict), words::verdict(verdict)));
            let counts: Vec<String> = counts
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, verdict)| format!("{count} {verdict}"))
                .collect();
            Some(format!("{} targets: {}", targets.len(), counts.join(", ")))
        }
    }
}

/// The numbers of findings by severity.
fn severities(report: &Report) -> Option<String> {
    let all = words::severities(findings(report).map(|(_, found)| found));
    (!all.is_empty()).then_some(all)
}

/// The worst error or warning: its rule, its place and its cost.
fn worst(report: &Report) -> Option<String> {
    let grave = findings(report).filter(|(_, f)| f.severity != Severity::Note);
    let rank = |a: &Finding, b: &Finding| {
        a.severity.cmp(&b.severity).then(a.rmw_factor.total_cmp(&b.rmw_factor))
    };
    // Of equals the first one, as it stands in every other output.
    let (target, f) = grave.reduce(|a, b| if rank(b.1, a.1).is_gt() { b } else { a })?;
    let place = match report.targets.len() {
        1 => words::name(&f.provider),
        _ => escape::short(&named(target, &f.provider)).into_owned(),
    };
    let cost = words::times(f).map_or(String::new(), |times| format!(", {times} the operations"));
    Some(format!("{} on {place}{cost}", f.rule))
}

/// The number of targets that could not be read, and why the first could not.
fn unread(report: &Report) -> Option<String> {
    let first = report.errors.first()?;
    Some(format!("{} not read: {}", report.errors.len(), escape::short(&first.why)))
}

/// Performance data: `label=value;warn;crit;min`. A range `0` is left by 1 and more.
fn data(report: &Report, counted: FailOn) -> Vec<String> {
    let count = |severity| findings(report).filter(|(_, f)| f.severity == severity).count();
    let limit = |severity| if counted.counts(severity) { "0" } else { "" };
    let [errors, warnings, notes] = [Severity::Error, Severity::Warning, Severity::Note].map(limit);
    let grave = findings(report).filter(|(_, f)| f.severity != Severity::Note);
    let cost = grave.map(|(_, f)| f.rmw_factor).fold(1.0, f64::max);
    vec![
        format!("errors={};;{errors};0", count(Severity::Error)),
        format!("warnings={};{warnings};;0", count(Severity::Warning)),
        format!("notes={};{notes};;0", count(Severity::Note)),
        format!("misaligned={};;;0", of(report, Verdict::Misaligned)),
        format!("unknown={};;;0", of(report, Verdict::Unknown)),
        format!("aligned={};;;0", of(report, Verdict::Aligned)),
        format!("unread={};;;0", report.errors.len()),
        format!("cost={cost:.2};;;1"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    fn line(report: &Report, counted: FailOn) -> (ServiceState, String) {
        let state = ServiceState::new(report, counted, true);
        (state, samples::text(|out| write(report, state, counted, out)))
    }

    #[test]
    fn a_line_has_a_text_and_data_whatever_a_target_is_called() {
        let mut report = samples::report(vec![samples::openbsd(), samples::stripe()]);
        report.targets[0].target = "a|b\nc#s4".into();
        report.targets[0].providers.remove(0);
        let (state, text) = line(&report, FailOn::Warning);
        assert_eq!(state, ServiceState::Critical);
        assert_eq!((text.matches('|').count(), text.lines().count()), (1, 1), "{text}");
        assert!(text.starts_with("CRITICAL - 2 targets: "), "{text}");
        // A target that names a provider of its own has not two.
        assert!(text.contains(" on a\\u{7c}b\\nc#s4") && !text.contains("#s4#"), "{text}");
    }

    #[test]
    fn the_state_is_the_worst_and_a_limit_is_what_counts() {
        let mut report = samples::report(vec![samples::openbsd()]);
        assert_eq!(line(&report, FailOn::Error).0, ServiceState::Critical);
        report.targets[0].findings.iter_mut().for_each(|f| f.severity = Severity::Warning);
        assert_eq!(line(&report, FailOn::Warning).0, ServiceState::Warning);
        let (state, text) = line(&report, FailOn::Error);
        assert_eq!(state, ServiceState::Ok);
        assert!(
            text.contains(" errors=0;;0;0 warnings=") && text.contains(";;;0 notes="),
            "{text}"
        );
        // What could not be read is less grave than what was found, and graver than nothing.
        report.errors = vec!["open x: no".to_owned().into()];
        assert_eq!(line(&report, FailOn::Warning).0, ServiceState::Warning);
        let (state, text) = line(&report, FailOn::Error);
        assert_eq!(state, ServiceState::Unknown);
        assert!(text.contains("; 1 not read: open x: no | "), "{text}");
        report.errors.clear();
        let (state, text) = line(&samples::report(Vec::new()), FailOn::Error);
        assert!(
            state == ServiceState::Unknown && text.starts_with("UNKNOWN - no target |"),
            "{text}"
        );
        report.targets[0].verdict = Verdict::Unknown;
        assert_eq!(ServiceState::new(&report, FailOn::Error, false), ServiceState::Ok);
        assert_eq!(ServiceState::new(&report, FailOn::Error, true), ServiceState::Unknown);
    }
}
