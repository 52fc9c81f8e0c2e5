//! Running rows: several runs in parallel, with the same result whatever the number of threads.

use super::file::{PublishedForm, RowForm, Unit};
use super::host::HostRun;
use super::ready::{Job, Ready, run_jobs};
use super::scene::Scene;
use super::workload::Workload;
use super::{Lab, LabError, bounds};
use crate::error::Error;
use crate::error::Remedy::FewerRowsOrPoints;
use crate::latency::curve;
use crate::result::{
    LabDocument, LabResult, LayerResult, Layout, LevelErrors, Ours, Published, Row, Spent,
    VariantResult,
};
use crate::rig::filter::Filter;
use crate::run::Run;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use toml::Value;
use trueline_host::process::signal;

/// The selection of rows and the effort spent on them.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Ids of the selected rows; empty: all.
    pub rows: Vec<String>,
    /// Sweep points of a row; 0: no sweep.
    pub sweep: usize,
    /// Threads, each with one run at a time.
    pub threads: usize,
}

/// A row that could not be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The name of the lab.
    pub lab: String,
    /// The id of the row.
    pub row: String,
    /// The line of the lab file, if one is to blame.
    pub line: Option<usize>,
    /// The attempt, and the finding that ended it.
    pub cause: Error,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.line.map_or(String::new(), |line| format!(" line {line}:"));
        write!(f, "{}, row {}:{line} {}", self.lab, self.row, self.cause)
    }
}

/// A finished run: of a variant, at a point of a sweep or not. A row that is measured here is a
/// single run.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The name of the lab.
    pub lab: &'a str,
    /// The id of the row.
    pub row: &'a str,
    /// Finished runs, this one included.
    pub done: usize,
    /// The runs of all rows.
    pub all: usize,
}

/// A callback for every finished run, from any thread.
pub type Progress<'a> = dyn Fn(Step<'_>) + Sync + 'a;

/// A row by the indices of its lab and itself.
pub(super) type RowIndex = (usize, usize);

/// Runs the selected rows. A failed row is in both lists: in the first without our values, in the
/// second with its failure.
///
/// # Errors
/// The rows of a lab ask for more work than a lab may. Nothing was started; the failure names the
/// row that exceeds the bound.
pub fn run(
    labs: &[Lab],
    asked: &Selection,
    progress: &Progress<'_>,
) -> Result<(LabDocument, Vec<Failure>), Failure> {
    let places = chosen(labs, &asked.rows);
    // A row that measures this machine runs alone, with no other load.
    let (real, simulated): (Vec<RowIndex>, Vec<RowIndex>) =
        places.into_iter().partition(|&(lab, row)| labs[lab].is_real(row));
    let ready: Vec<Result<Ready<'_>, LabError>> = simulated
        .iter()
        .map(|&(lab, row)| Ready::new(&labs[lab], labs[lab].row(row).get_ref(), asked))
        .collect();
    let asks_here = |&(lab, row): &RowIndex| {
        let form = labs[lab].row(row).get_ref();
        Some(((lab, row), labs[lab].asks_here(form, form.real.as_ref()?)))
    };
    let asks = simulated
        .iter()
        .zip(&ready)
        .filter_map(|(&place, ready)| Some((place, ready.as_ref().ok()?.asks())));
    bounds::check(labs, asks.chain(real.iter().filter_map(asks_here)), FewerRowsOrPoints)
        .map_err(|((lab, row), error)| labs[lab].failure(row, error))?;
    let jobs: Vec<Job<'_>> = ready
        .iter()
        .enumerate()
        .flat_map(|(nth, row)| row.iter().flat_map(move |row| row.jobs(nth)))
        .collect();
    let ended = AtomicUsize::new(0);
    let step = |(lab, row): RowIndex| {
        let (lab, done) = (&labs[lab], ended.fetch_add(1, Ordering::Relaxed) + 1);
        progress(Step {
            lab: lab.name(),
            row: &lab.row(row).get_ref().id,
            done,
            all: jobs.len() + real.len(),
        });
    };
    let results = run_jobs(&jobs, asked.threads, &|job| step(simulated[job.row]));
    let mut done = filled(labs, &simulated, &ready, jobs.iter().map(|job| job.row).zip(results));
    for &(lab, row) in &real {
        // Rows that never started are not in the document.
        if signal::happened() {
            break;
        }
        let form = labs[lab].row(row).get_ref();
        let mut own = labs[lab].blank(form);
        if let Some(real) = &form.real {
            labs[lab].measure_here(form, real, &mut own);
        }
        step((lab, row));
        done.push(((lab, row), own, None));
    }
    done.sort_by_key(|(place, ..)| *place);
    let mut results: Vec<LabResult> = labs.iter().map(Lab::empty).collect();
    let mut failures = Vec::new();
    // An interrupted row did not fail.
    let cut = |row: &Row, failure: &Option<Failure>| {
        signal::happened() && failure.is_some() && row.note.ends_with("interrupted")
    };
    for ((lab, _), row, failure) in done.into_iter().filter(|(_, row, failure)| !cut(row, failure))
    {
        results[lab].rows.push(row);
        failures.extend(failure);
    }
    results.retain(|lab| !lab.rows.is_empty());
    Ok((LabDocument { format: "trueline/lab/1", labs: results }, failures))
}

/// The rows with these ids of all labs, in order; all of them if there is no id.
pub(super) fn chosen(labs: &[Lab], ids: &[String]) -> Vec<RowIndex> {
    let wanted = |id: &str| ids.is_empty() || ids.iter().any(|row| row == id);
    let all = labs
        .iter()
        .enumerate()
        .flat_map(|(nth, lab)| lab.rows().enumerate().map(move |(row, id)| (nth, row, id)));
    all.filter(|(.., id)| wanted(id)).map(|(lab, row, _)| (lab, row)).collect()
}

/// A finished row, with its failure if it could not be run.
type FinishedRow = (RowIndex, Row, Option<Failure>);

/// Rows filled with the results of their runs; each result has its row's index.
fn filled(
    labs: &[Lab],
    places: &[RowIndex],
    rows: &[Result<Ready<'_>, LabError>],
    results: impl Iterator<Item = (usize, Result<Measured, Error>)>,
) -> Vec<FinishedRow> {
    let mut by_row: Vec<Vec<Result<Measured, Error>>> = rows.iter().map(|_| Vec::new()).collect();
    results.for_each(|(row, result)| by_row[row].push(result));
    let mut done = Vec::with_capacity(rows.len());
    for ((ready, &(lab, row)), results) in rows.iter().zip(places).zip(by_row) {
        let mut own = labs[lab].blank(labs[lab].row(row).get_ref());
        let filled = match ready {
            Ok(ready) => ready.fill(&mut own, &mut results.into_iter()),
            Err(error) => Err(error.clone()),
        };
        let (own, failure) = labs[lab].with_failure(row, own, filled.err());
        done.push(((lab, row), own, failure));
    }
    done
}

impl Lab {
    fn empty(&self) -> LabResult {
        let form = &self.form;
        LabResult {
            lab: form.name.clone(),
            title: form.title.clone(),
            source: form.source.clone(),
            rows: Vec::new(),
        }
    }

    /// True if the row is measured on this machine.
    pub(super) fn is_real(&self, index: usize) -> bool {
        self.row(index).get_ref().real.is_some()
    }

    /// The row without our values if it failed; else unchanged.
    fn with_failure(
        &self,
        index: usize,
        row: Row,
        error: Option<LabError>,
    ) -> (Row, Option<Failure>) {
        let Some(error) = error else { return (row, None) };
        let failure = self.failure(index, error);
        let note = format!("not run: {}", failure.cause);
        let row = Row {
            ours: None,
            error: None,
            level_errors: LevelErrors::default(),
            null_model: None,
            variants: Vec::new(),
            alternatives: Vec::new(),
            note,
            ..row
        };
        (row, Some(failure))
    }

    /// The failure of a row, at its own line if the error names none.
    pub(super) fn failure(&self, index: usize, error: LabError) -> Failure {
        let place = self.row(index);
        let LabError { line, cause } = match error.line {
            Some(_) => error,
            None => self.refuse(place, error.cause),
        };
        Failure { lab: self.form.name.clone(), row: place.get_ref().id.clone(), line, cause }
    }

    /// A row without our values.
    fn blank(&self, form: &RowForm) -> Row {
        Row {
            seed: self.form.seed.clone(),
            row: form.id.clone(),
            title: form.title.clone(),
            unit: form.unit.name().into(),
            more_is_better: form.unit.more_is_better(),
            published: form.published.map(PublishedForm::with_ratio),
            ours: None,
            error: None,
            level_errors: LevelErrors::default(),
            null_model: None,
            bound: form.bound,
            predicted: form.workload.is_some() && form.predicted,
            skipped: false,
            note: form.note.clone(),
            personality: None,
            alternatives: Vec::new(),
            variants: Vec::new(),
        }
    }

    /// Runs a variant, once for every start of the row.
    pub(super) fn variant(
        &self,
        form: &RowForm,
        workload: &Workload,
        scene: &Scene,
        set: &[(String, Value)],
    ) -> Result<Measured, Error> {
        let (mut all, mut counters, mut layers, mut host_reads, mut requests) =
            (Run::new(), Vec::new(), Vec::new(), 0, Vec::new());
        let mut workload = workload.moved(scene.by).times(form.starts.into());
        if !self.unbounded {
            workload = workload.counted_in(&self.by_time);
        }
        for start in 0..form.starts {
            let mut rig = scene.rig(set, self.form.random, start)?;
            let random = self.form.random.wrapping_add(start.into());
            let host = form.host(&self.form);
            let (HostRun { run, reads }, counts) =
                scene.layers.run(&mut rig, |rig| host.run(&workload, rig, random))?;
            layers.push(counts);
            if let Some(first) = &run.first_error {
                return Err(Error::new(format!(
                    "{} requests failed, the first: {first}",
                    run.errors
                )));
            }
            if start == 0 {
                requests = rig.seen().iter().map(|&request| scene.place(request)).collect();
            }
            all.append(&run);
            counters.extend(rig.beneath().counters());
            host_reads += reads;
        }
        let mut drives = Spent::sum(&counters, host_reads);
        drives.drives /= usize::try_from(form.starts).unwrap_or(1);
        let variant = VariantResult {
            name: String::new(),
            target: scene.target.clone(),
            seconds: all.seconds(),
            ops: all.ops,
            bytes: all.bytes,
            latency: curve(&all.latency),
            drives: Some(drives),
            layers: LayerResult::sum(layers),
            layout: Some(Layout { requests, ..scene.layout.clone() }),
        };
        Ok(Measured { value: value(form, &all), variant })
    }
}

/// A variant with its measured value.
pub(super) struct Measured {
    value: f64,
    pub(super) variant: VariantResult,
}

impl Measured {
    pub(super) fn named(mut self, name: &str) -> Measured {
        name.clone_into(&mut self.variant.name);
        self
    }
}

/// The value of a run in the row's unit.
#[allow(clippy::cast_precision_loss, reason = "for people and statistics")]
pub(super) fn value(form: &RowForm, run: &Run) -> f64 {
    let seconds = run.seconds();
    let over = |count: f64, by: f64| if by > 0.0 { count / by } else { 0.0 };
    match form.unit {
        Unit::Seconds => seconds * form.scale / f64::from(form.starts),
        Unit::Requests => run.rate(),
        Unit::Bytes => over(run.bytes as f64, seconds),
        Unit::Nanoseconds => over(run.ns as f64, run.ops as f64),
    }
}

pub(super) fn ours(runs: &[Measured]) -> Ours {
    let of = |name: &str| runs.iter().find(|run| run.variant.name == name).map(|run| run.value);
    let (aligned, unaligned) = (of("aligned"), of("unaligned"));
    Ours { aligned, unaligned, ratio: ratio(aligned, unaligned), low: None, high: None }
}

fn ratio(aligned: Option<f64>, unaligned: Option<f64>) -> Option<f64> {
    aligned
        .filter(|&aligned| aligned > 0.0)
        .zip(unaligned)
        .map(|(aligned, unaligned)| unaligned / aligned)
}

impl PublishedForm {
    fn with_ratio(self) -> Published {
        Published {
            aligned: self.aligned,
            unaligned: self.unaligned,
            ratio: ratio(self.aligned, self.unaligned),
        }
    }
}
