//! Running rows: several at one time, with the same result whatever the number.

use super::Lab;
use super::file::{PublishedForm, RowForm, Unit, VariantForm};
use super::scene::{PERSONALITY, Scene};
use super::workload::Workload;
use crate::latency::curve;
use crate::result::{Alternative, LabDocument, LabResult, Layout, Ours, Published, Row, Spent, VariantResult};
use crate::run::Run;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use toml::Value;

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The rows, by id; none: all.
    pub rows: Vec<String>,
    /// Points of the sweep of a row; 0: none.
    pub sweep: usize,
    /// Rows at one time.
    pub threads: usize,
}

/// A row that could not be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The lab's name.
    pub lab: String,
    /// The row's id.
    pub row: String,
    /// The line of the lab file, if one can be named.
    pub line: Option<usize>,
    /// What was attempted and what was found.
    pub message: String,
}

/// Called with a lab's name and a row's id when the row is done, from any thread.
pub type Progress<'a> = dyn Fn(&str, &str) + Sync + 'a;

/// A row of a lab, by their places.
type Place = (usize, usize);

/// Runs the rows that are asked for. What fails is in the second list, and in the first without values of ours.
pub fn run(labs: &[Lab], asked: &Asked, progress: &Progress<'_>) -> (LabDocument, Vec<Failure>) {
    let wanted = |id: &str| asked.rows.is_empty() || asked.rows.iter().any(|row| row == id);
    let all = labs.iter().enumerate().flat_map(|(nth, lab)| lab.rows().enumerate().map(move |(row, id)| (nth, row, id)));
    let places: Vec<Place> = all.filter(|(.., id)| wanted(id)).map(|(lab, row, _)| (lab, row)).collect();
    let done: Mutex<Vec<(Place, Row, Option<Failure>)>> = Mutex::new(Vec::new());
    // What is measured on this machine is measured alone, when nothing else of it runs.
    let (real, simulated): (Vec<Place>, Vec<Place>) = places.into_iter().partition(|&(lab, row)| labs[lab].is_real(row));
    for (places, threads) in [(simulated, asked.threads), (real, 1)] {
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..threads.clamp(1, places.len().max(1)) {
                scope.spawn(|| {
                    while let Some(&(lab, row)) = places.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let (result, failure) = labs[lab].run_row(row, asked);
                        progress(labs[lab].name(), &result.row);
                        if let Ok(mut done) = done.lock() {
                            done.push(((lab, row), result, failure));
                        }
                    }
                });
            }
        });
    }
    // A thread that panics takes the scope with it, so the lock is never poisoned here.
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(place, ..)| *place);
    let mut results: Vec<LabResult> = labs.iter().map(Lab::empty).collect();
    let mut failures = Vec::new();
    for ((lab, _), row, failure) in done {
        results[lab].rows.push(row);
        failures.extend(failure);
    }
    results.retain(|lab| !lab.rows.is_empty());
    (LabDocument { format: "trueline/lab/1", labs: results }, failures)
}

impl Lab {
    fn empty(&self) -> LabResult {
        let form = &self.form;
        LabResult { lab: form.name.clone(), title: form.title.clone(), source: form.source.clone(), rows: Vec::new() }
    }

    /// Whether a row is measured on this machine.
    fn is_real(&self, index: usize) -> bool {
        self.row(index).get_ref().real.is_some()
    }

    fn run_row(&self, index: usize, asked: &Asked) -> (Row, Option<Failure>) {
        let place = self.row(index);
        let form = place.get_ref();
        let mut row = self.blank(form);
        let Err(refusal) = self.fill(form, asked, &mut row) else { return (row, None) };
        let refusal = match refusal.line {
            Some(_) => refusal,
            None => self.at(place, refusal.message),
        };
        let note = format!("not run: {}", refusal.message);
        row = Row { ours: None, error: None, variants: Vec::new(), alternatives: Vec::new(), note, ..row };
        let failure = Failure { lab: self.form.name.clone(), row: form.id.clone(), line: refusal.line, message: refusal.message };
        (row, Some(failure))
    }

    /// A row without values of ours.
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
            bound: form.bound,
            predicted: form.workload.is_some() && form.predicted,
            note: form.note.clone(),
            personality: None,
            alternatives: Vec::new(),
            variants: Vec::new(),
        }
    }

    /// Runs a row's variants, and again under its other personalities.
    fn fill(&self, form: &RowForm, asked: &Asked, row: &mut Row) -> Result<(), super::Refusal> {
        if form.workload.is_none() {
            return Ok(());
        }
        if let Some(real) = &form.real {
            self.measure_here(form, real, row);
            return Ok(());
        }
        let variants = [("aligned", &form.aligned), ("unaligned", &form.unaligned)];
        let mut scenes: Vec<(&str, Scene)> = Vec::new();
        for (name, variant) in variants {
            let variant: Option<&VariantForm> = variant.as_ref();
            if let Some(variant) = variant {
                scenes.push((name, Scene::new(self, form, variant)?));
            }
        }
        let plain = |message| super::Refusal { line: None, message };
        let runs = self.measure(form, &scenes, &[]).map_err(plain)?;
        let ours = self.with_interval(form, &scenes, &[], asked.sweep, ours(&runs)).map_err(plain)?;
        row.personality = scenes.first().and_then(|(_, scene)| scene.personality(&[]));
        row.error = error(row.published, ours);
        row.ours = Some(ours);
        row.variants = runs.into_iter().map(|run| run.variant).collect();
        for personality in &form.personalities {
            let set = [(PERSONALITY.to_owned(), Value::String(personality.clone()))];
            let ours = self::ours(&self.measure(form, &scenes, &set).map_err(plain)?);
            let ours = self.with_interval(form, &scenes, &set, asked.sweep, ours).map_err(plain)?;
            row.alternatives.push(Alternative { personality: personality.clone(), ours, error: error(row.published, ours) });
        }
        Ok(())
    }

    /// Runs every variant, with further keys of the models set.
    pub(super) fn measure(&self, form: &RowForm, scenes: &[(&str, Scene)], set: &[(String, Value)]) -> Result<Vec<Measured>, String> {
        let Some(workload) = &form.workload else { return Ok(Vec::new()) };
        scenes
            .iter()
            .map(|(name, scene)| {
                self.variant(form, workload, scene, set).map_err(|e| format!("{name}: {e}")).map(|measured| measured.named(name))
            })
            .collect()
    }

    /// Runs a variant, as many times as the row says.
    fn variant(&self, form: &RowForm, workload: &Workload, scene: &Scene, set: &[(String, Value)]) -> Result<Measured, String> {
        let (mut all, mut counters, mut host_reads, mut requests) = (Run::new(), Vec::new(), 0, Vec::new());
        for start in 0..form.starts {
            let mut rig = scene.rig(set, self.form.random, start)?;
            let random = self.form.random.wrapping_add(start.into());
            let (run, reads) = form.host(&self.form).run(&workload.moved(scene.by), &mut rig, random).map_err(|e| e.0)?;
            if let Some(first) = &run.first_error {
                return Err(format!("{} requests failed, the first: {first}", run.errors));
            }
            if start == 0 {
                requests = rig.seen().iter().map(|&request| scene.place(request)).collect();
            }
            all.and(&run);
            counters.extend(rig.rig().counters());
            host_reads += reads;
        }
        let mut drives = Spent::of(&counters, host_reads);
        drives.drives /= usize::try_from(form.starts).unwrap_or(1);
        let variant = VariantResult {
            name: String::new(),
            target: scene.target.clone(),
            seconds: all.seconds(),
            ops: all.ops,
            bytes: all.bytes,
            latency: curve(&all.latency),
            drives: Some(drives),
            layout: Some(Layout { requests, ..scene.layout.clone() }),
        };
        Ok(Measured { value: value(form, &all), variant })
    }
}

/// A variant that has run.
pub(super) struct Measured {
    value: f64,
    variant: VariantResult,
}

impl Measured {
    fn named(mut self, name: &str) -> Measured {
        name.clone_into(&mut self.variant.name);
        self
    }
}

/// A run in the row's unit.
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
    aligned.filter(|&aligned| aligned > 0.0).zip(unaligned).map(|(aligned, unaligned)| unaligned / aligned)
}

fn error(published: Option<Published>, ours: Ours) -> Option<f64> {
    Some(ours.ratio? / published?.ratio? - 1.0)
}

impl PublishedForm {
    fn with_ratio(self) -> Published {
        Published { aligned: self.aligned, unaligned: self.unaligned, ratio: ratio(self.aligned, self.unaligned) }
    }
}
