//! A/B measurements: the same work on two or more layouts, interleaved, so that what happens to the machine meanwhile happens to all.
//!
//! Blocks of runs hold every variant once, and every block is followed by its mirror: A B B A. A steady drift then adds the same to
//! both. The next pair of blocks begins with the next variant (B A A B), so that none is always first.

use crate::error::Error;
use crate::run::Run;
use crate::statistics::{Comparison, ENOUGH, Summary, Verdict, noise};
use hdrhistogram::Histogram;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The variants' names, the one that others are compared with first: `aligned`, `unaligned`.
    pub variants: Vec<String>,
    /// Runs of each variant that are done first and not looked at.
    pub warmup: usize,
    /// Runs of each variant, at least.
    pub runs: usize,
    /// Whether to go on until the interval is narrow.
    pub until: Option<Until>,
    /// What of a run is compared.
    pub measure: Measure,
    /// Of the interval's resamples.
    pub seed: u64,
    /// Whether time is virtual: no machine becomes slower or faster then, and what looks so is chance.
    pub is_virtual: bool,
}

/// When enough has been run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Until {
    /// When the interval of the ratio is no wider than this share of it, 0.02, and there are six runs of each variant.
    pub width: f64,
    /// Or after so many runs of each variant.
    pub most: usize,
}

/// What of a run is compared. Either way less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Seconds, where every run does the same.
    Time,
    /// Seconds a request, where every run lasts the same.
    TimePerRequest,
}

/// The run that is about to begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// The name of its variant.
    pub variant: &'a str,
    /// Which run of this variant, from 0, warm-up included.
    pub run: usize,
    /// Whether it is not looked at.
    pub warmup: bool,
    /// Runs done, of all variants.
    pub done: usize,
    /// Runs that are planned; with [`Until`], the most there may be.
    pub planned: usize,
}

/// What was measured, all of it or as far as it came.
#[derive(Debug)]
pub struct Measurement {
    /// The runs of each variant that are finished, in order.
    pub runs: Vec<Vec<Run>>,
    /// What ended it early: a run that failed, an interrupt.
    pub stopped: Option<Error>,
    /// The last variant over the first; an error where that is no number.
    pub comparison: Result<Comparison, Error>,
    /// What is to be known before any of it is believed.
    pub warnings: Vec<String>,
}

/// The variant of each run, `runs` of each of `variants`.
pub fn order(variants: usize, runs: usize) -> impl Iterator<Item = usize> {
    (0..runs).flat_map(move |block| {
        let turn = move |place: usize| (place + block / 2) % variants.max(1);
        (0..variants).map(move |place| turn(if block % 2 == 0 { place } else { variants - 1 - place }))
    })
}

/// Measures as planned. `one` makes one run: of which variant, and the how manieth of it from 0, warm-up included, which seeds what is
/// virtual. An error of it, as at an interrupt, ends the measurement; the runs before it are kept.
pub fn measure(
    plan: &Plan,
    one: &mut dyn FnMut(usize, usize) -> Result<Run, Error>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Measurement {
    let count = plan.variants.len();
    let most = plan.until.map_or(plan.runs, |until| until.most.max(plan.runs));
    let planned = most.saturating_add(plan.warmup).saturating_mul(count);
    let mut runs: Vec<Vec<Run>> = vec![Vec::new(); count];
    let mut begun = vec![0; count];
    let mut stopped = None;
    for (done, variant) in order(count, plan.warmup).chain(order(count, most)).enumerate() {
        let warmup = done < plan.warmup.saturating_mul(count);
        if !warmup && plan.until.is_some_and(|until| is_narrow(plan, until, &runs)) {
            break;
        }
        let run = begun[variant];
        begun[variant] += 1;
        progress(Progress { variant: &plan.variants[variant], run, warmup, done, planned });
        match one(variant, run) {
            Ok(_) if warmup => {}
            Ok(run) => runs[variant].push(run),
            Err(error) => {
                stopped = Some(error);
                break;
            }
        }
    }
    let comparison = compare(plan, &runs);
    let warnings = warnings(plan, &runs, comparison.as_ref().ok());
    Measurement { runs, stopped, comparison, warnings }
}

impl Measurement {
    /// The latencies of all runs of a variant.
    pub fn latency(&self, variant: usize) -> Histogram<u64> {
        let mut all = Run::new().latency;
        for run in self.runs.get(variant).into_iter().flatten() {
            // All are made with the same bounds; one that is not is left out rather than cut.
            let _ = all.add(&run.latency);
        }
        all
    }
}

impl Measure {
    /// Of one run, in seconds.
    pub fn of(self, run: &Run) -> f64 {
        match self {
            Measure::Time => run.seconds(),
            Measure::TimePerRequest => 1.0 / run.rate(),
        }
    }

    /// Of a series.
    pub fn series(self, runs: &[Run]) -> Vec<f64> {
        runs.iter().map(|run| self.of(run)).collect()
    }
}

fn compare(plan: &Plan, runs: &[Vec<Run>]) -> Result<Comparison, Error> {
    let [first, .., last] = runs else {
        return Err(Error("compare: one variant; a ratio needs two".into()));
    };
    // What fails is soon done: its time says nothing.
    if first.iter().chain(last).any(|run| run.errors > 0) {
        return Err(Error("compare: requests failed; a ratio needs runs in which none did".into()));
    }
    // Near the end of a target an offset leaves room for fewer requests: what did less took less.
    let measure = if alike(runs) { plan.measure } else { Measure::TimePerRequest };
    Comparison::of(&measure.series(first), &measure.series(last), plan.seed)
}

/// Whether the first and the last variant did equally many requests in every run.
fn alike(runs: &[Vec<Run>]) -> bool {
    let ends = || runs.first().into_iter().chain(runs.last()).flatten();
    ends().all(|run| ends().next().is_none_or(|first| first.ops == run.ops))
}

/// Whether an interval is narrow, after blocks and their mirrors. Of very few runs one may be so by chance, and whoever looks after
/// every run will see that: of six, hardly.
fn is_narrow(plan: &Plan, until: Until, runs: &[Vec<Run>]) -> bool {
    let whole = runs.iter().all(|own| own.len() == runs[0].len() && own.len().is_multiple_of(2));
    whole
        && runs[0].len() >= plan.runs.max(6)
        && compare(plan, runs).is_ok_and(|c| c.ratio.high - c.ratio.low <= until.width * c.ratio.median)
}

fn warnings(plan: &Plan, runs: &[Vec<Run>], comparison: Option<&Comparison>) -> Vec<String> {
    // The comparison says it of all of them, once.
    let is_told = |values: &[f64]| values.len() < ENOUGH && comparison.is_some_and(|found| found.verdict == Verdict::TooFew);
    let mut warnings = Vec::new();
    let series: Vec<Vec<f64>> = runs.iter().map(|runs| plan.measure.series(runs)).collect();
    for ((name, runs), values) in plan.variants.iter().zip(runs).zip(&series) {
        let errors: u64 = runs.iter().map(|run| run.errors).sum();
        if let Some(first) = runs.iter().find_map(|run| run.first_error.as_ref()) {
            warnings.push(format!("{name}: {errors} requests failed, the first: {first}"));
        }
        if Summary::of(values).is_none() && !values.is_empty() {
            warnings.push(format!("{name}: a run without a request has no time a request"));
        }
        if !is_told(values) {
            warnings.extend(noise::of_series(name, values));
        }
    }
    if plan.measure == Measure::Time && !alike(runs) {
        warnings.push("the variants did not do equally many requests: the time of one is compared".into());
    }
    let series: Vec<&[f64]> = series.iter().map(Vec::as_slice).collect();
    warnings.extend(noise::drift(&series).filter(|_| !plan.is_virtual));
    warnings
}

#[cfg(test)]
mod tests;
