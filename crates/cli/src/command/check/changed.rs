//! `--changed FILE`: what differs from the run before. The state is replaced once that is out.

use super::args::{Check, Form};
use super::{announce, status, write_page};
use crate::checked::Checked;
use crate::failure::Failure;
use crate::render::report::changes::{self, Changes};
use crate::render::report::json;
use crate::report::Report;
use crate::style::Style;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

/// Prints what differs of `report` from `checked`. The exit status is that of what is new.
pub(super) fn print(
    report: &Report,
    mut checked: Checked,
    args: &Check,
) -> Result<ExitCode, Failure> {
    let is_first = checked.is_first();
    let differences = report.targets.iter().filter_map(|target| checked.compare(target)).collect();
    let changes = Changes { is_first, differences, counted: args.counted() };
    let counts = (!report.errors.is_empty(), checked.worst, checked.unknown > 0);
    let status = ExitCode::from(status(counts, args));
    write_page(report, &args.output)?;
    match write(report, &changes, args) {
        Ok(()) => checked.save()?,
        // The reader has gone before the end: the next run says it again.
        Err(Failure::Pipe) => {}
        Err(failure) => return Err(failure),
    }
    Ok(status)
}

fn write(report: &Report, changes: &Changes<'_>, args: &Check) -> Result<(), Failure> {
    if args.quiet {
        return Ok(());
    }
    // Where nothing differs nothing is said, so that cron sends no mail.
    if !changes.differences.is_empty() {
        announce(report);
    }
    let mut stdout = BufWriter::new(anstream::stdout().lock());
    if args.output.json {
        changes::write_json(report, changes, &mut stdout)?;
    } else if args.output.form() == Form::Lines {
        for difference in &changes.differences {
            changes::write_line(difference, &mut stdout)?;
        }
        for error in &report.errors {
            let (name, why) = (&error.target, &error.why);
            json::write_error(changes::FORMAT, name, "unreadable", why, &mut stdout)?;
        }
    } else {
        changes::write(report, changes, &mut stdout, Style::of_stdout())?;
    }
    stdout.flush()?;
    Ok(())
}
