//! The bootstrap interval that is bias-corrected and accelerated: BCa, Efron, "Better Bootstrap Confidence Intervals", Journal of the
//! American Statistical Association 82(397), 1987; as in Efron and Tibshirani, "An Introduction to the Bootstrap", 14.3.

use super::distribution::{normal, normal_quantile, student_quantile};
use super::{CONFIDENCE, Interval, mean, quantile, real};
use trueline_sim::random::Random;

/// Resamples of an interval.
pub const RESAMPLES: usize = 20_000;

/// How far a 95 % interval reaches in standard deviations, when the values are plenty: 1.96.
pub fn reach() -> f64 {
    normal_quantile(0.5 + CONFIDENCE / 2.0)
}

/// The same of `count` values. With few of them every bootstrap interval is too narrow, as resamples spread less than samples do and
/// the spread is itself a guess; Student's t and n / (n − 1) make up for both (Hesterberg, "What Teachers Should Know About the
/// Bootstrap", The American Statistician 69(4), 2015, 4.4).
pub fn reach_of_few(count: usize) -> f64 {
    if count < 2 {
        return reach();
    }
    (real(count) / real(count - 1)).sqrt() * student_quantile(0.5 + CONFIDENCE / 2.0, count - 1)
}

/// The interval of a statistic of `count` things, which is given the places of those that were drawn. The same seed gives the same
/// interval. Nothing to draw from, or a statistic that is not finite: `None`.
pub fn interval(count: usize, reach: f64, seed: u64, statistic: &mut dyn FnMut(&[usize]) -> f64) -> Option<Interval> {
    let mut drawn: Vec<usize> = (0..count).collect();
    let whole = statistic(&drawn);
    if count == 0 || !whole.is_finite() {
        return None;
    }
    let acceleration = acceleration(count, statistic)?;
    let mut random = Random::new(seed);
    let below = u64::try_from(count).ok()?;
    let mut resampled = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        for place in &mut drawn {
            *place = usize::try_from(random.below(below)).ok()?;
        }
        resampled.push(statistic(&drawn));
    }
    if resampled.iter().any(|value| !value.is_finite()) {
        return None;
    }
    resampled.sort_by(f64::total_cmp);
    // A resample that equals the sample counts half below it: medians of few values often do.
    let under = resampled.partition_point(|&value| value < whole);
    let at_most = resampled.partition_point(|&value| value <= whole);
    let bias = normal_quantile(real(under + at_most) / real(2 * RESAMPLES));
    let end = |reach: f64| {
        let shifted = bias + reach;
        quantile(&resampled, normal(bias + shifted / (1.0 - acceleration * shifted)))
    };
    let (one, other) = (end(-reach), end(reach));
    Some(Interval { low: one.min(other), high: one.max(other) })
}

/// How the statistic's deviation changes with its value: from the skew of what it is without each thing in turn.
fn acceleration(count: usize, statistic: &mut dyn FnMut(&[usize]) -> f64) -> Option<f64> {
    if count < 3 {
        return Some(0.0);
    }
    // More than this many are left out in groups of neighbours: the work of a long series stays in bounds.
    let group = count.div_ceil(1000);
    let mut but = |left: usize| statistic(&(0..count).filter(|place| place / group != left).collect::<Vec<_>>());
    let without: Vec<f64> = (0..count.div_ceil(group)).map(&mut but).collect();
    if without.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let middle = mean(&without);
    let squares: f64 = without.iter().map(|value| (middle - value).powi(2)).sum();
    let cubes: f64 = without.iter().map(|value| (middle - value).powi(3)).sum();
    Some(if squares == 0.0 { 0.0 } else { cubes / (6.0 * squares.powf(1.5)) })
}
