//! A sweep over the `[range]`s of a drive model: the dependence of a predicted ratio on the drive's
//! unknown parameters.
//!
//! Points are a Latin hypercube (McKay, Beckman and Conover, Technometrics 21(2), 1979). Of n
//! points, every parameter has one in each nth part of its range, so 64 points cover each range as
//! finely as 64 values of it alone would; all words have equally many points. A parameter's values
//! depend on the seed and its own name, not on the other parameters of the sweep.

use crate::error::Error;
use crate::statistics::{quantile, rank, real};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{fmt, thread};
use toml::{Table, Value};
use trueline_sim::model::{Model, ModelRefusal, Range};

mod hypercube;

pub(crate) use hypercube::Hypercube;
pub use hypercube::Share;

/// The most points of a sweep.
const MOST: u32 = 1 << 16;

/// Model keys with overriding values, as [`Model::parse_with`] takes them.
pub type Set = Vec<(String, Value)>;

/// A key of the model that a sweep varies.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The key as `[range]` spells it.
    pub key: String,
    /// The values that it takes.
    pub values: Values,
}

/// The range of a parameter's values.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Numbers between two bounds, both included.
    Between {
        /// The least value of the range.
        low: f64,
        /// The greatest value of the range.
        high: f64,
        /// True if only whole numbers occur: the model's own value and both ends are whole.
        whole: bool,
    },
    /// Words, each equally often.
    Of(Vec<String>),
}

/// The setup of a sweep.
#[derive(Clone, Debug)]
pub struct SweepPlan<'a> {
    /// The text of the model file.
    pub text: &'a str,
    /// Keys set at every point and at the default, such as a personality or the user's own. They
    /// are not swept.
    pub fixed: Set,
    /// Points besides the default.
    pub points: usize,
    /// The seed of the places of values within their parts of the range.
    pub seed: u64,
    /// Threads, each with one point at a time. The result does not depend on their number.
    pub threads: usize,
}

/// The result of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// The ratio with the model's own values.
    pub default: f64,
    /// The least ratio of all points and the default.
    pub low: f64,
    /// The greatest ratio, likewise.
    pub high: f64,
    /// The 5 % quantile of the ratios.
    pub low_90: f64,
    /// The 95 % quantile of the ratios.
    pub high_90: f64,
    /// The ratio at each point that could be run, with its values.
    pub points: Vec<(Set, f64)>,
    /// The number of points that the model refuses.
    pub impossible: usize,
    /// The refusal of the first such point.
    pub why: Option<ModelRefusal>,
    /// The rank correlation of the ratio with each numeric parameter, from −1 to 1, the strongest
    /// first.
    pub sensitivity: Vec<(String, f64)>,
}

/// The parameters of a model that can be swept: keys with a range of their own type, numbers or
/// words, unless they are fixed.
///
/// # Errors
/// The text is not a model.
pub fn parameters(text: &str, fixed: &[(String, Value)]) -> Result<Vec<Parameter>, ModelRefusal> {
    let model = Model::parse_with(text, fixed)?;
    let table: Table = toml::from_str(text)
        .map_err(|e| ModelRefusal { line: None, message: e.message().to_owned() })?;
    let mut parameters = Vec::new();
    for (key, range) in &model.range {
        if !fixed.iter().any(|(other, _)| leaf(other) == leaf(key)) {
            let values = Values::from_range(range, value(&table, key));
            parameters.extend(values.map(|values| Parameter { key: key.clone(), values }));
        }
    }
    Ok(parameters)
}

/// The model's own values of parameters; those without a default have none.
pub(crate) fn own_values(text: &str, parameters: &[Parameter]) -> Set {
    let table: Table = toml::from_str(text).unwrap_or_default();
    let own = |key: &str| Some((key.to_owned(), value(&table, key)?.clone()));
    parameters.iter().filter_map(|parameter| own(&parameter.key)).collect()
}

/// The points of a sweep, each with a value for every parameter.
pub fn points(parameters: &[Parameter], count: usize, seed: u64) -> Vec<Set> {
    let count = u32::try_from(count).unwrap_or(u32::MAX).min(MOST);
    let cube = Hypercube::draw(parameters.to_vec(), count, seed, Share::WHOLE);
    (1..=count).filter_map(|number| cube.point(number)).collect()
}

/// Runs the default and every point. `one` computes the ratio for model keys with overriding
/// values, [`SweepPlan::fixed`] among them.
///
/// # Errors
/// The default fails, a point fails for another reason than the model's refusal, or a ratio is not
/// finite and positive.
pub fn run(
    plan: &SweepPlan<'_>,
    one: &(dyn Fn(&Set) -> Result<f64, Error> + Sync),
) -> Result<Sweep, Error> {
    let Drawn { parameters, sets, impossible, why } = Drawn::from_plan(plan)?;
    let ratios = run_sets(&sets, plan.threads, one)?;
    let points: Vec<(Set, f64)> = sets.into_iter().zip(ratios).collect();
    Ok(Sweep::from_ratios(points, plan.fixed.len(), &parameters, impossible, why))
}

/// The sets of a sweep, ready to run.
pub(crate) struct Drawn {
    parameters: Vec<Parameter>,
    /// The default, then the points the model accepts; each begins with the [`SweepPlan::fixed`]
    /// keys.
    pub(crate) sets: Vec<Set>,
    impossible: usize,
    why: Option<ModelRefusal>,
}

impl Drawn {
    /// Draws the sets of a plan, and tries each on the model.
    pub(crate) fn from_plan(plan: &SweepPlan<'_>) -> Result<Drawn, Error> {
        let refused = |refusal: ModelRefusal| Error::new(format!("sweep: {refusal}"));
        let parameters = parameters(plan.text, &plan.fixed).map_err(refused)?;
        // Without a range nothing varies, so the default alone is run.
        let count = if parameters.is_empty() { 0 } else { plan.points };
        let mut drawn = Drawn {
            sets: vec![plan.fixed.clone()],
            impossible: 0,
            why: None,
            parameters: Vec::new(),
        };
        for point in points(&parameters, count, plan.seed) {
            let set: Set = plan.fixed.iter().cloned().chain(point).collect();
            match Model::parse_with(plan.text, &set) {
                Ok(_) => drawn.sets.push(set),
                Err(refusal) => {
                    drawn.impossible += 1;
                    drawn.why.get_or_insert(refusal);
                }
            }
        }
        Ok(Drawn { parameters, ..drawn })
    }
}

/// The ratio of every set, in their order, computed on `threads` threads. The first failure in the
/// order of the sets is the error.
fn run_sets(
    sets: &[Set],
    threads: usize,
    one: &(dyn Fn(&Set) -> Result<f64, Error> + Sync),
) -> Result<Vec<f64>, Error> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let done: Mutex<Vec<(usize, Result<f64, Error>)>> = Mutex::new(Vec::with_capacity(sets.len()));
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, sets.len().max(1)) {
            scope.spawn(|| {
                // All sets before one that fails were started before it and are finished, so the
                // first error is always the same.
                while !failed.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(set) = sets.get(at) else { break };
                    let ratio = one(set).and_then(|ratio| match ratio {
                        ratio if ratio.is_finite() && ratio > 0.0 => Ok(ratio),
                        _ => Err(Error::new(format!("sweep: a ratio of {ratio}"))),
                    });
                    failed.fetch_or(ratio.is_err(), Ordering::Relaxed);
                    if let Ok(mut done) = done.lock() {
                        done.push((at, ratio));
                    }
                }
            });
        }
    });
    // A thread that panics takes the scope with it, so the lock is never poisoned here.
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, ratio)| ratio).collect()
}

impl Values {
    /// The values of a range; `None` if the model's own value is of another type, or the range has
    /// a single number.
    fn from_range(range: &Range, own: Option<&Value>) -> Option<Values> {
        match range {
            &Range::Numbers([low, high]) => {
                let is_number = own.is_none_or(|own| own.is_integer() || own.is_float());
                let whole =
                    own.is_some_and(Value::is_integer) && low.fract() == 0.0 && high.fract() == 0.0;
                (is_number && low < high).then_some(Values::Between { low, high, whole })
            }
            Range::Words(words) => own.is_none_or(Value::is_str).then(|| Values::Of(words.clone())),
        }
    }

    /// The value at a share of the range, from 0 to 1.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a cast to an integer saturates, and a model refuses what is too much"
    )]
    fn at_share(&self, share: f64) -> Value {
        match self {
            // Every whole number of the range has an equal share.
            &Values::Between { low, high, whole: true } => {
                Value::Integer((low + ((high - low + 1.0) * share).floor()).min(high) as i64)
            }
            &Values::Between { low, high, whole: false } => {
                Value::Float(low * (1.0 - share) + high * share)
            }
            Values::Of(words) => {
                // Every word has an equal share.
                let nth = (1..words.len())
                    .take_while(|&nth| share * real(words.len()) >= real(nth))
                    .count();
                Value::String(words.get(nth).cloned().unwrap_or_default())
            }
        }
    }
}

impl Sweep {
    /// The result of the ratios, the default's first. Every set begins with the same `fixed` number
    /// of fixed keys.
    fn from_ratios(
        mut points: Vec<(Set, f64)>,
        fixed: usize,
        parameters: &[Parameter],
        impossible: usize,
        why: Option<ModelRefusal>,
    ) -> Sweep {
        let default = points.remove(0).1;
        let mut ascending: Vec<f64> =
            points.iter().map(|(_, ratio)| *ratio).chain([default]).collect();
        let ratios = &ascending[..points.len()];
        let number =
            |value: &Value| value.as_float().or(value.as_integer().map(whole)).unwrap_or(0.0);
        // Words have no order for the ratio to correlate with.
        let mut sensitivity: Vec<(String, f64)> = (fixed..)
            .zip(parameters)
            .filter(|(_, parameter)| matches!(parameter.values, Values::Between { .. }))
            .map(|(place, parameter)| {
                let values: Vec<f64> =
                    points.iter().map(|(set, _)| number(&set[place].1)).collect();
                (parameter.key.clone(), rank::correlation(&values, ratios))
            })
            .collect();
        sensitivity.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        ascending.sort_by(f64::total_cmp);
        let (low, high) = (quantile(&ascending, 0.0), quantile(&ascending, 1.0));
        let (low_90, high_90) = (quantile(&ascending, 0.05), quantile(&ascending, 0.95));
        Sweep { default, low, high, low_90, high_90, points, impossible, why, sensitivity }
    }
}

/// A summary of the points behind the range.
impl fmt::Display for Sweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.points.len();
        if count == 0 && self.impossible == 0 {
            return f.write_str("the model has no range to sweep");
        }
        write!(f, "{count} points")?;
        if self.impossible > 0 {
            write!(f, ", {} more were not possible", self.impossible)?;
        }
        // The rank correlation of independent values has a deviation of 1 / √(n − 1); it exceeds
        // 2.6 deviations once in a hundred.
        match self.sensitivity.first() {
            _ if self.low == self.high => f.write_str("; the ratio is the same at all of them"),
            Some((key, by)) if count > 7 && by.abs() > 2.6 / real(count - 1).sqrt() => {
                let way = if *by > 0.0 { "greater" } else { "smaller" };
                write!(
                    f,
                    "; it depends most on {key}: the greater that, the {way} it is (rank correlation {by:.2})"
                )
            }
            _ => f.write_str("; it depends on no single parameter"),
        }
    }
}

/// The key without its table's name.
fn leaf(key: &str) -> &str {
    key.split_once('.').map_or(key, |(_, leaf)| leaf)
}

/// The model's own value of a key, at the top level or in one of its tables.
fn value<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    let inside = || ["disk", "ssd", "memory"].iter().find_map(|kind| table.get(*kind)?.get(key));
    match key.split_once('.') {
        Some((kind, leaf)) => table.get(kind)?.get(leaf),
        None => table.get(key).or_else(inside),
    }
}

/// The FNV-1a hash of a text.
pub(crate) fn text_hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[allow(clippy::cast_precision_loss, reason = "it was made from a number of 53 bits")]
fn whole(value: i64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests;
