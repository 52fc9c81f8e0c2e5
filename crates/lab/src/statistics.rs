//! Statistics of few and noisy runs: medians before means, intervals before numbers.
//!
//! A comparison is the median of the ratios of runs side by side, with its 95 % interval by a
//! seeded bootstrap ([`bootstrap`]): the same runs give the same interval everywhere. Values must
//! be finite and above zero: [`comparison::Comparison::between`] refuses others by name.

pub mod bootstrap;
pub mod carry_over;
pub mod comparison;
pub mod distribution;
pub mod noise;
pub mod rank;
pub mod several;
pub mod slope;

pub use carry_over::CarryOver;
pub use comparison::{Comparison, ENOUGH, Ratio, Verdict};
pub use slope::{Slope, slope};

/// The confidence of all intervals, 95 %.
pub const CONFIDENCE: f64 = 0.95;

/// The factor from the median absolute deviation of normal values to their standard deviation: 1 /
/// Φ⁻¹(¾).
pub(crate) const MAD_TO_SIGMA: f64 = 1.482_602_218_505_602;

/// A confidence interval of a value.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Interval {
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// A summary of a series of values.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Summary {
    /// The number of values.
    pub count: usize,
    /// The least of the values.
    pub least: f64,
    /// The greatest of the values.
    pub greatest: f64,
    /// The arithmetic mean of the values.
    pub mean: f64,
    /// The sample standard deviation (n − 1); 0 for a single value.
    pub deviation: f64,
    /// The median of the values.
    pub median: f64,
    /// The median absolute deviation from the median, not scaled.
    pub mad: f64,
}

impl Summary {
    /// The summary of finite values; `None` if there are none, or one is not finite.
    pub fn from_values(values: &[f64]) -> Option<Summary> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mean = mean(values);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation =
            if values.len() < 2 { 0.0 } else { (squares / real(values.len() - 1)).sqrt() };
        let median = median(values);
        let mut away: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
        Some(Summary {
            count: values.len(),
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            greatest: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            mean,
            deviation,
            median,
            mad: median_of(&mut away),
        })
    }
}

/// The arithmetic mean; 0 of no values.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / real(values.len()) }
}

/// The median; 0 of no values.
pub fn median(values: &[f64]) -> f64 {
    median_of(&mut values.to_vec())
}

/// The median, which reorders the values; 0 of no values.
pub(crate) fn median_of(values: &mut [f64]) -> f64 {
    let half = values.len() / 2;
    if values.is_empty() {
        return 0.0;
    }
    let even = values.len().is_multiple_of(2);
    let (below, &mut middle, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    if even {
        below.iter().copied().fold(f64::NEG_INFINITY, f64::max).midpoint(middle)
    } else {
        middle
    }
}

/// The quantile `at` of ascending values, interpolated linearly (type 7 of Hyndman and Fan 1996, as
/// in numpy).
pub fn quantile(ascending: &[f64], at: f64) -> f64 {
    let Some(last) = ascending.len().checked_sub(1) else { return 0.0 };
    let place = at.clamp(0.0, 1.0) * real(last);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the length"
    )]
    let below = place.floor() as usize;
    let (low, high) = (ascending[below.min(last)], ascending[(below + 1).min(last)]);
    low + (high - low) * place.fract()
}

/// The count as a floating-point number.
#[allow(clippy::cast_precision_loss, reason = "counts of runs are far below 2^53")]
pub(crate) fn real(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
