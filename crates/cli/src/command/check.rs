//! `check`: what stands on what, whether it is on its grain, what it costs, what to do.

use crate::host;
use crate::options::{Check, Output};
use crate::out::{self, Style};
use crate::page::write_file;
use crate::report::{Finding, Report, Target, Verdict};
use crate::survey::survey_said;
use crate::target::{self, Said, open};
use crate::{Failure, complain};
use indicatif::{ProgressBar, ProgressStyle};
use std::ffi::{OsStr, OsString};
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use trueline_geom::finding::Severity;

/// From this many targets on, a terminal gets a progress bar.
const MANY: usize = 32;

pub(crate) fn run(args: &Check) -> Result<ExitCode, Failure> {
    let mut said = Said::new(&args.disk)?;
    if args.targets.is_empty() {
        said.of_no_drive("check")?;
    }
    if !args.targets.is_empty() {
        host::adopt_files(&args.from, &mut said)?;
    }
    let (targets, failures) = if args.targets.is_empty() && !args.from.is_empty() {
        host::from_files(&args.from, &said)
    } else if args.targets.is_empty() {
        host::this_host(&said).map(|t| (t, Vec::new()))?
    } else {
        survey_all(&args.targets, &said)
    };
    failures.iter().for_each(|failure| complain(failure));
    let report = Report::new("trueline/check/1", targets, failures);
    if !report.targets.is_empty() || report.errors.is_empty() || args.output.is_for_programs() {
        match print(&report, &args.output) {
            // A reader that has gone has read what it wanted; whoever waits for the status has not.
            Ok(()) | Err(Failure::Pipe) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(exit_code(&report, args))
}

fn exit_code(report: &Report, args: &Check) -> ExitCode {
    let least = Severity::from(args.fail_on);
    let worst = report.targets.iter().flat_map(|t| &t.findings).map(severity).max();
    if !report.errors.is_empty() {
        ExitCode::from(2)
    } else if worst.is_some_and(|w| w >= least) {
        ExitCode::from(1)
    } else if args.strict && report.targets.iter().any(|t| t.verdict == Verdict::Unknown) {
        ExitCode::from(3)
    } else {
        ExitCode::SUCCESS
    }
}

fn severity(finding: &Finding) -> Severity {
    match finding.severity {
        "error" => Severity::Error,
        "warning" => Severity::Warning,
        _ => Severity::Note,
    }
}

/// Every target, on all processors, in the order asked for; and why some could not be read.
pub(crate) fn survey_all(names: &[OsString], said: &Said) -> (Vec<Target>, Vec<String>) {
    let bar = progress(names.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((i, name)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, names.get(i)?))) {
            done.push((i, survey_one(name, said)));
            bar.inc(1);
        }
        done
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(names.len());
    let mut all = if threads < 2 {
        work()
    } else {
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            workers.into_iter().flat_map(|w| w.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        })
    };
    bar.finish_and_clear();
    all.sort_by_key(|(i, _)| *i);
    let (mut targets, mut failures) = (Vec::new(), Vec::new());
    for (_, result) in all {
        match result {
            Ok(target) => targets.push(target),
            Err(failure) => failures.push(failure),
        }
    }
    (targets, failures)
}

fn survey_one(name: &OsStr, said: &Said) -> Result<Target, String> {
    // Names go into JSON and other text; one that is no text could not be told from another.
    let name = name.to_str().ok_or_else(|| format!("open {}: its name is not UTF-8: give it a link with another name", name.display()))?;
    let drive = target::split(name).0.into_iter().any(target::simulated::is_simulated);
    if !drive {
        said.of_no_drive(&format!("open {name}"))?;
    }
    let opened = || {
        open(name, said)
            .and_then(|(graph, only)| survey_said(name, Some(said), &graph, only.as_deref()).map_err(|e| format!("open {name}: {e}")))
    };
    host::named(name, said).unwrap_or_else(opened)
}

fn progress(targets: usize) -> ProgressBar {
    if targets < MANY {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {per_sec} {eta}").unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(targets as u64).with_style(style)
}

/// Prints `report` as asked.
pub(crate) fn print(report: &Report, output: &Output) -> Result<(), Failure> {
    if let Some(path) = &output.html {
        write_file(path, |file| out::html::write(report, file))?;
    }
    let mut stdout = BufWriter::new(anstream::stdout().lock());
    if output.json {
        out::json::write(report, &mut stdout)?;
    } else if output.jsonl {
        out::json::write_lines(report, &mut stdout)?;
    } else if output.sarif {
        out::sarif::write(report, &mut stdout)?;
    } else if output.prometheus {
        out::prometheus::write(report, &mut stdout)?;
    } else {
        out::text::write(report, &mut stdout, Style::of_stdout())?;
    }
    stdout.flush()?;
    Ok(())
}
