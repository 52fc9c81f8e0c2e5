//! The bootstrap interval that is bias-corrected and accelerated: BCa, Efron, "Better Bootstrap
//! Confidence Intervals", Journal of the American Statistical Association 82(397), 1987; as in
//! Efron and Tibshirani, "An Introduction to the Bootstrap", 14.3.

use super::distribution::{normal, normal_quantile, student_quantile};
use super::{CONFIDENCE, Interval, mean, quantile, real};
use trueline_sim::random::Random;

/// The number of resamples for an interval.
pub const RESAMPLES: usize = 20_000;

/// The half-width of a 95 % interval of many values, in standard deviations: 1.96.
pub fn reach() -> f64 {
    reach_at(CONFIDENCE)
}

/// As [`reach`], for an interval of another confidence.
pub fn reach_at(confidence: f64) -> f64 {
    normal_quantile(0.5 + confidence / 2.0)
}

/// The half-width for `count` values. With few of them every bootstrap interval is too narrow, as
/// resamples spread less than samples do and the spread is itself a guess; Student's t and the
/// factor n / (n − 1) make up for both (Hesterberg, "What Teachers Should Know About the
/// Bootstrap", The American Statistician 69(4), 2015, 4.4).
pub fn reach_of_few(count: usize) -> f64 {
    reach_of_few_at(count, CONFIDENCE)
}

/// As [`reach_of_few`], for an interval of another confidence.
pub fn reach_of_few_at(count: usize, confidence: f64) -> f64 {
    if count < 2 {
        return reach_at(confidence);
    }
    (real(count) / real(count - 1)).sqrt() * student_quantile(0.5 + confidence / 2.0, count - 1)
}

/// The interval of a statistic of `count` items by `resamples` draws; its argument is the number of
/// times each was drawn. The same seed gives the same interval. `None` if there are no items, or
/// the statistic is not finite.
pub fn interval(
    count: usize,
    reach: f64,
    resamples: usize,
    seed: u64,
    statistic: &mut dyn FnMut(&[u32]) -> f64,
) -> Option<Interval> {
    let mut drawn = vec![1; count];
    let whole = statistic(&drawn);
    if count == 0 || !whole.is_finite() {
        return None;
    }
    let acceleration = acceleration(&mut drawn, statistic)?;
    let mut random = Random::new(seed);
    let below = u64::try_from(count).ok()?;
    let mut resampled = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        drawn.fill(0);
        for _ in 0..count {
            drawn[usize::try_from(random.below(below)).ok()?] += 1;
        }
        resampled.push(statistic(&drawn));
    }
    if resampled.iter().any(|value| !value.is_finite()) {
        return None;
    }
    resampled.sort_unstable_by(f64::total_cmp);
    // A resample equal to the sample counts half below it: medians of few values often are.
    let under = resampled.partition_point(|&value| value < whole);
    let at_most = resampled.partition_point(|&value| value <= whole);
    let bias = normal_quantile(real(under + at_most) / real(2 * resamples));
    let end = |reach: f64| {
        let shifted = bias + reach;
        quantile(&resampled, normal(bias + shifted / (1.0 - acceleration * shifted)))
    };
    let (one, other) = (end(-reach), end(reach));
    Some(Interval { low: one.min(other), high: one.max(other) })
}

/// The acceleration of BCa: the skew of the statistic with each item left out in turn.
fn acceleration(drawn: &mut [u32], statistic: &mut dyn FnMut(&[u32]) -> f64) -> Option<f64> {
    if drawn.len() < 3 {
        return Some(0.0);
    }
    // Above a thousand items, groups of neighbours are left out together, which bounds the work for
    // a long series.
    let group = drawn.len().div_ceil(1000);
    let mut without = Vec::with_capacity(1000);
    for from in (0..drawn.len()).step_by(group) {
        let to = (from + group).min(drawn.len());
        drawn[from..to].fill(0);
        without.push(statistic(drawn));
        drawn[from..to].fill(1);
    }
    if without.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let middle = mean(&without);
    let squares: f64 = without.iter().map(|value| (middle - value).powi(2)).sum();
    let cubes: f64 = without.iter().map(|value| (middle - value).powi(3)).sum();
    Some(if squares == 0.0 { 0.0 } else { cubes / (6.0 * squares.powf(1.5)) })
}

/// Values in ascending order, each with the index of its item, so that the median of a resample
/// takes one pass.
pub struct Ascending(Vec<(f64, usize)>);

impl Ascending {
    /// The values sorted; each `neighbours` of them in turn are one item, drawn together.
    pub fn new(values: &[f64], neighbours: usize) -> Ascending {
        let items = (0..).map(|place| place / neighbours.max(1));
        let mut ascending: Vec<(f64, usize)> = values.iter().copied().zip(items).collect();
        ascending.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ascending(ascending)
    }

    /// The median of a resample: each value counts as many times as its item was drawn. NaN if none
    /// was.
    pub fn median(&self, drawn: &[u32]) -> f64 {
        let total: u32 = self.0.iter().map(|&(_, place)| drawn[place]).sum();
        let (mut seen, mut low) = (0, None);
        for &(value, place) in &self.0 {
            seen += drawn[place];
            if seen * 2 >= total && seen > 0 {
                let low = *low.get_or_insert(value);
                if seen * 2 > total {
                    return low.midpoint(value);
                }
            }
        }
        f64::NAN
    }
}
