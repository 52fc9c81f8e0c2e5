//! `lab sweep`: a JSON line for every point of a sweep, written as soon as those before it are.

use super::args::SweepArgs;
use super::{named, worded};
use crate::appended::Appended;
use crate::failure::{Failure, complain};
use crate::in_order::{in_order, processors};
use crate::progress;
use indicatif::ProgressBar;
use line::{Ending, Line};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use trueline_host::process::signal;
use trueline_lab::study::{Failure as RowFailure, Lab, PointJob};
use trueline_lab::study::{SweepSelection, SweptRows};
use trueline_lab::sweep::Share;

mod line;

/// Points by their ends, and the first that failed.
#[derive(Default)]
struct PointCounts {
    impossible: u64,
    failed: u64,
    first: Option<String>,
}

pub(super) fn run(args: &SweepArgs) -> Result<ExitCode, Failure> {
    refuse_twice(&args.rows.files)?;
    let mut labs = named(&args.rows, "lab sweep")?;
    if args.unlimited {
        labs = labs.into_iter().map(Lab::unbounded).collect();
    }
    // Points that are done when a signal comes are written.
    signal::remember_first();
    let asked = SweepSelection {
        rows: args.rows.row.clone(),
        points: args.points,
        share: args.shard.map_or(Share::WHOLE, Share::from),
    };
    let failed = |failure: RowFailure| format!("lab sweep {}", worded(failure));
    let swept = SweptRows::new(&labs, &asked).map_err(failed)?;
    refuse_rows_without(args, &swept)?;
    let mut jobs = swept.jobs().peekable();
    let (mut counts, mut before) = (PointCounts::default(), 0);
    let out: Box<dyn Write> = match &args.into {
        Some(path) => {
            let Appended { file, .. } = Appended::open(path)?;
            before =
                line::pass_over(path, &file, &mut jobs, |ending, why| counts.add(ending, why))?;
            Box::new(file)
        }
        None => Box::new(io::stdout()),
    };
    let left = swept.size().saturating_sub(before);
    // Lines on a terminal are a progress of their own, and a bar would stand among them.
    let bar = progress::of_points(left, args.into.is_none());
    let is_whole = write_points(jobs, &bar, BufWriter::new(out), &mut counts)?;
    for failure in &swept.failures {
        complain(&failed(failure.clone()));
    }
    if let Some(sentence) = counts.sentence() {
        complain(&sentence);
    }
    if !is_whole {
        let how = if args.into.is_some() { "the same command goes on" } else { "--into goes on" };
        complain(&format!("lab sweep: interrupted: points are left out: {how}"));
    }
    let is_good = is_whole && swept.failures.is_empty() && counts.failed == 0;
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

/// Refuses a lab that was named twice: each of its points would have two lines.
fn refuse_twice(files: &[PathBuf]) -> Result<(), Failure> {
    let places: Vec<PathBuf> =
        files.iter().map(|file| file.canonicalize().unwrap_or_else(|_| file.clone())).collect();
    let is_second = |at: &usize| places[..*at].contains(&places[*at]);
    match (0..places.len()).find(is_second) {
        None => Ok(()),
        Some(at) => {
            let lab = files[at].display();
            Err(Failure::Message(format!("lab sweep {lab}: it is named twice")))
        }
    }
}

/// Refuses rows that were named and have no sweep, and a selection in which none has.
fn refuse_rows_without(args: &SweepArgs, swept: &SweptRows<'_>) -> Result<(), Failure> {
    let why = "a sweep needs two layouts, drives of one model, and a range in that";
    match swept.without.first() {
        Some(id) if !args.rows.row.is_empty() => {
            Err(Failure::Message(format!("lab sweep --row {id}: it has no sweep: {why}")))
        }
        Some(_) if swept.is_empty() && swept.failures.is_empty() => {
            Err(Failure::Message(format!("lab sweep: no row has a sweep: {why}")))
        }
        _ => Ok(()),
    }
}

/// Runs the points and writes their lines in order. Returns false if a signal ended it.
fn write_points<'a>(
    jobs: impl Iterator<Item = PointJob<'a>> + Send,
    bar: &ProgressBar,
    mut out: impl Write,
    counts: &mut PointCounts,
) -> Result<bool, Failure> {
    let (mut is_whole, mut written) = (true, Ok(()));
    in_order(
        processors(),
        jobs,
        |job| Line::run(&job),
        |line, is_more| {
            let Ok(Some(line)) = line else {
                is_whole = false;
                written = line.map(|_| ());
                return false;
            };
            counts.add(line.ending, &line.why);
            written = out.write_all(&line.bytes);
            // Where nothing follows at once, a reader gets what is there.
            if written.is_ok() && !is_more {
                written = out.flush();
            }
            bar.inc(1);
            bar.set_message(line.row);
            written.is_ok()
        },
    );
    bar.finish_and_clear();
    written?;
    out.flush()?;
    Ok(is_whole)
}

impl PointCounts {
    fn add(&mut self, ending: Ending, why: &str) {
        match ending {
            Ending::Ran => {}
            Ending::Impossible => self.impossible += 1,
            Ending::Failed => {
                self.failed += 1;
                self.first.get_or_insert_with(|| why.to_owned());
            }
        }
    }

    /// A sentence about points without values, if there are any.
    fn sentence(&self) -> Option<String> {
        let points = |count: u64| if count == 1 { "point" } else { "points" };
        let (impossible, failed) = (self.impossible, self.failed);
        let refused =
            format!("the model refuses the values of {impossible} {}", points(impossible));
        match &self.first {
            Some(first) => {
                let also = if impossible > 0 { format!("; {refused}") } else { String::new() };
                Some(format!(
                    "lab sweep: {failed} {} failed, the first: {first}{also}",
                    points(failed)
                ))
            }
            None => (impossible > 0).then(|| format!("lab sweep: {refused}")),
        }
    }
}
