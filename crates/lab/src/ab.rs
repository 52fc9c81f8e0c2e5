//! A/B measurements: the same work on two or more layouts, interleaved, so that a change of the
//! machine affects all of them.
//!
//! Blocks of runs hold every variant once, and every block is followed by its mirror: A B B A. A
//! steady drift then adds the same to both. Of two variants both runs of a block follow the same
//! one: what a run leaves behind for the next cancels in the block's ratio.

use crate::error::Error;
use crate::run::Run;
use crate::statistics::{CarryOver, Comparison, ENOUGH, Summary, Verdict, noise};
use hdrhistogram::Histogram;

mod several;

/// The plan of a measurement: its variants, its number of runs, and the quantity compared.
#[derive(Clone, Debug)]
pub struct MeasurementPlan {
    /// The variants' names, the reference first: `aligned`, `unaligned`.
    pub variants: Vec<String>,
    /// Warm-up runs of each variant, done first and discarded.
    pub warmup: usize,
    /// Runs of each variant, at least.
    pub runs: usize,
    /// The rule that extends the measurement until the interval is narrow. `None`: exactly `runs`
    /// runs.
    pub until: Option<Until>,
    /// The quantity of a run that is compared.
    pub measure: Measure,
    /// The seed of the interval's bootstrap resamples.
    pub seed: u64,
    /// True if time is virtual. No machine becomes slower or faster then, so no drift is looked
    /// for.
    pub is_virtual: bool,
}

/// The condition that ends a measurement of unknown length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Until {
    /// The widest interval of the ratio that is accepted, as a share of the ratio (0.02). At least
    /// six runs of each variant are made.
    pub width: f64,
    /// The most runs of each variant.
    pub most: usize,
}

/// The quantity of a run that is compared. Less is better.
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
    /// The number of the run within its variant, from 0, warm-ups included.
    pub run: usize,
    /// True if the run is a warm-up and is discarded.
    pub warmup: bool,
    /// Finished runs of all variants.
    pub done: usize,
    /// Planned runs of all variants; with [`Until`], the most there may be.
    pub planned: usize,
}

/// The outcome of a measurement, complete or as far as it came.
#[derive(Debug)]
pub struct Measurement {
    /// The runs of each variant that are finished, in order.
    pub runs: Vec<Vec<Run>>,
    /// The cause of an early end: a failed run or an interrupt. `None` if all runs were made.
    pub stopped: Option<Error>,
    /// The last variant compared with the first; an error if the ratio is not defined.
    pub comparison: Result<Comparison, Error>,
    /// Every variant after the first compared with it, their intervals widened to hold together.
    pub comparisons: Vec<Result<Comparison, Error>>,
    /// Caveats to read before the numbers: failed requests, noise, drift.
    pub warnings: Vec<String>,
}

/// The variant of each run in turn: `runs` of each of `variants`, every second block mirrored.
pub fn order(variants: usize, runs: usize) -> impl Iterator<Item = usize> {
    (0..runs).flat_map(move |block| {
        (0..variants).map(move |place| if block % 2 == 0 { place } else { variants - 1 - place })
    })
}

/// The variant of each warm-up run in turn. The last is the first variant's, as before every other
/// block that begins with it.
fn warmups(variants: usize, runs: usize) -> impl Iterator<Item = usize> {
    let mut order: Vec<usize> = order(variants, runs).collect();
    order.reverse();
    order.into_iter()
}

/// Measures as planned. `one(variant, n)` makes run `n` of `variant`, from 0, warm-ups included;
/// `n` seeds virtual drives. An error of a run, such as an interrupt, ends the measurement; the
/// runs before it are kept.
pub fn measure(
    plan: &MeasurementPlan,
    one: &mut dyn FnMut(usize, usize) -> Result<Run, Error>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Measurement {
    let count = plan.variants.len();
    let most = plan.until.map_or(plan.runs, |until| until.most.max(plan.runs));
    let planned = most.saturating_add(plan.warmup).saturating_mul(count);
    let mut runs: Vec<Vec<Run>> = vec![Vec::new(); count];
    let mut begun = vec![0; count];
    let mut stopped = None;
    for (done, variant) in warmups(count, plan.warmup).chain(order(count, most)).enumerate() {
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
    let comparisons = several::compare_each(plan, &runs, &comparison);
    Measurement { runs, stopped, comparison, comparisons, warnings }
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
    /// The compared quantity of one run, in seconds.
    pub fn value(self, run: &Run) -> f64 {
        match self {
            Measure::Time => run.seconds(),
            Measure::TimePerRequest => 1.0 / run.rate(),
        }
    }

    /// The compared quantity of each run, in seconds.
    pub fn series(self, runs: &[Run]) -> Vec<f64> {
        runs.iter().map(|run| self.value(run)).collect()
    }
}

fn compare(plan: &MeasurementPlan, runs: &[Vec<Run>]) -> Result<Comparison, Error> {
    let [first, .., last] = runs else {
        return Err(Error::new("compare: there is one variant, and a ratio needs two".into()));
    };
    compare_among(plan, first, last, 1)
}

/// Compares two variants, as one of so many comparisons.
fn compare_among(
    plan: &MeasurementPlan,
    first: &[Run],
    last: &[Run],
    comparisons: usize,
) -> Result<Comparison, Error> {
    // A failed request returns early, so its time means nothing.
    if first.iter().chain(last).any(|run| run.errors > 0) {
        return Err(Error::new(
            "compare: requests failed, and a ratio needs runs in which none did".into(),
        ));
    }
    // Near the end of a target an offset leaves room for fewer requests: what did less took less.
    let measure = if alike(first, last) { plan.measure } else { Measure::TimePerRequest };
    let (first, last) = (measure.series(first), measure.series(last));
    let found = Comparison::between_among(&first, &last, plan.seed, comparisons)?;
    // Virtual drives are new for every run.
    let follow = comparisons == 1 && plan.variants.len() == 2 && !plan.is_virtual;
    let carry_over = if follow { CarryOver::between(&first, &last, found.ratio) } else { None };
    Ok(Comparison { carry_over, ..found })
}

/// True if every run of both variants did the same number of requests.
fn alike(first: &[Run], last: &[Run]) -> bool {
    let mut all = first.iter().chain(last);
    all.next().is_none_or(|one| all.all(|run| run.ops == one.ops))
}

/// True if the ratio's interval is narrow enough, after whole pairs of blocks. Six runs of each
/// variant are required: with fewer, a check after every run would soon find an interval that is
/// narrow by chance.
fn is_narrow(plan: &MeasurementPlan, until: Until, runs: &[Vec<Run>]) -> bool {
    let whole = runs.iter().all(|own| own.len() == runs[0].len() && own.len().is_multiple_of(2));
    whole
        && runs[0].len() >= plan.runs.max(6)
        && compare(plan, runs)
            .is_ok_and(|c| c.ratio.high - c.ratio.low <= until.width * c.ratio.median)
}

fn warnings(
    plan: &MeasurementPlan,
    runs: &[Vec<Run>],
    comparison: Option<&Comparison>,
) -> Vec<String> {
    // Too few runs: the comparison's verdict already says so once for all variants.
    let is_told = |values: &[f64]| {
        values.len() < ENOUGH && comparison.is_some_and(|found| found.verdict == Verdict::TooFew)
    };
    let mut warnings = Vec::new();
    let series: Vec<Vec<f64>> = runs.iter().map(|runs| plan.measure.series(runs)).collect();
    for ((name, runs), values) in plan.variants.iter().zip(runs).zip(&series) {
        let errors: u64 = runs.iter().map(|run| run.errors).sum();
        if let Some(first) = runs.iter().find_map(|run| run.first_error.as_ref()) {
            warnings.push(format!("{name}: {errors} requests failed, the first: {first}"));
        }
        if Summary::from_values(values).is_none() && !values.is_empty() {
            warnings.push(format!("{name}: a run made no request, so it has no time per request"));
        }
        if !is_told(values) {
            warnings.extend(noise::of_series(name, values));
        }
    }
    let differs = |others: &[Vec<Run>]| others.iter().any(|own| !alike(&runs[0], own));
    if plan.measure == Measure::Time && runs.get(1..).is_some_and(differs) {
        warnings.push(
            "the variants made different numbers of requests: times per request are compared"
                .into(),
        );
    }
    let series: Vec<&[f64]> = series.iter().map(Vec::as_slice).collect();
    warnings.extend(noise::drift(&series).filter(|_| !plan.is_virtual));
    warnings
}

#[cfg(test)]
mod tests;
