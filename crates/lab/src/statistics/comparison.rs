//! A comparison of two series of runs, and its verdict.

use super::bootstrap::{Ascending, interval, reach_at, reach_of_few_at};
use super::distribution::normal_quantile;
use super::several::{confidence_of, enough_at};
use super::{Interval, median};
use crate::error::Error;
use std::fmt;

/// A ratio of medians with its 95 % interval, as in `trueline/bench/1`.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Ratio {
    /// The median of the last series over that of the first.
    pub median: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// The verdict that the interval supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The interval lies above 1.
    Slower,
    /// The interval lies below 1.
    Faster,
    /// The interval contains 1: no difference can be shown.
    NoDifference,
    /// Each series has fewer runs than an interval takes ([`ENOUGH`] of one comparison).
    TooFew,
}

/// The least number of runs of each series for an interval. Of four and four, all of one lie above
/// all of the other by chance once in 35 times; of three and three once in ten, which is far from
/// 95 %.
pub const ENOUGH: usize = 4;

/// The comparison of two series, the last over the first.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Comparison {
    /// The ratio last over first. With fewer than [`ENOUGH`] runs, its ends are the least and the
    /// greatest ratio of any two runs.
    pub ratio: Ratio,
    /// The verdict that the interval supports.
    pub verdict: Verdict,
    /// The number of runs of each series.
    pub runs: usize,
    /// The confidence of this interval alone: 0.95, and more if it is one of several.
    pub confidence: f64,
    /// The least ratio above 1 that this noise would let us show, four times in five; `None`
    /// without an interval.
    pub could_show: Option<f64>,
}

impl Comparison {
    /// Compares series of times. Runs of the same index were measured side by side and are
    /// resampled together, so that a disturbance of both cancels. The rest of a longer series is
    /// ignored.
    ///
    /// # Errors
    /// A series is empty, or a time is not finite and above zero.
    pub fn between(first: &[f64], last: &[f64], seed: u64) -> Result<Comparison, Error> {
        Comparison::between_among(first, last, seed, 1)
    }

    /// As [`Comparison::between`], as one of `comparisons`, whose intervals hold together in 95 %
    /// ([`super::several`]).
    pub fn between_among(
        first: &[f64],
        last: &[f64],
        seed: u64,
        comparisons: usize,
    ) -> Result<Comparison, Error> {
        let confidence = confidence_of(comparisons);
        let runs = first.len().min(last.len());
        let (first, last) = (&first[..runs], &last[..runs]);
        if runs == 0 {
            return Err(Error::new(
                "compare: no run of both is finished; a ratio needs one of each".into(),
            ));
        }
        if let Some(bad) =
            first.iter().chain(last).find(|value| !value.is_finite() || **value <= 0.0)
        {
            return Err(Error::new(format!(
                "compare: a run of {bad} s; a ratio needs times above zero"
            )));
        }
        let whole = median(last) / median(first);
        if !whole.is_finite() {
            return Err(Error::new("compare: times too far apart for a ratio".into()));
        }
        let (below, above) = (Ascending::new(first), Ascending::new(last));
        let mut of = |drawn: &[u32]| above.median(drawn) / below.median(drawn);
        let reach = reach_of_few_at(runs, confidence);
        let found =
            if runs < enough_at(confidence) { None } else { interval(runs, reach, seed, &mut of) };
        // The ratio of the medians may lie slightly outside its own interval, which would puzzle a
        // reader: the interval is widened.
        let ends = found.map_or_else(
            || any(first, last),
            |i| Interval { low: i.low.min(whole), high: i.high.max(whole) },
        );
        let verdict = match found {
            None => Verdict::TooFew,
            Some(_) if ends.low > 1.0 => Verdict::Slower,
            Some(_) if ends.high < 1.0 => Verdict::Faster,
            Some(_) => Verdict::NoDifference,
        };
        let ratio = Ratio { median: whole, low: ends.low, high: ends.high };
        let could_show = found.map(|_| could_show(ends, confidence));
        Ok(Comparison { ratio, verdict, runs, confidence, could_show })
    }
}

/// The interval between the least and the greatest ratio of any two runs.
fn any(first: &[f64], last: &[f64]) -> Interval {
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Interval { low: least(last) / greatest(first), high: greatest(last) / least(first) }
}

/// The least ratio that can be shown: an interval of `±w` in the logarithm excludes 1 four times in
/// five if the true ratio is `w · (1.96 + 0.84) / 1.96` away.
fn could_show(ends: Interval, confidence: f64) -> f64 {
    let half = (ends.high / ends.low).ln() / 2.0;
    (half * (1.0 + normal_quantile(0.8) / reach_at(confidence))).exp()
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ratio { median, low, high } = self.ratio;
        match self.verdict {
            Verdict::TooFew => {
                let each = if self.runs == 1 {
                    "1 run each is".into()
                } else {
                    format!("{} runs each are", self.runs)
                };
                let enough = enough_at(self.confidence);
                write!(
                    f,
                    "takes {median:.3} times as long; {each} too few for an interval: it needs {enough}, better 10"
                )
            }
            Verdict::Slower if median >= 2.0 => write!(
                f,
                "takes {} times as long (95 %)",
                span(low, high, |ratio| format!("{ratio:.2}"))
            ),
            Verdict::Slower => write!(f, "slower by {} (95 %)", span(low - 1.0, high - 1.0, some)),
            Verdict::Faster if median <= 0.5 => {
                write!(
                    f,
                    "takes {} of the time (95 %)",
                    span(high, low, |ratio| format!("1/{:.2}", 1.0 / ratio))
                )
            }
            Verdict::Faster => {
                write!(f, "faster: takes {} less time (95 %)", span(1.0 - high, 1.0 - low, some))
            }
            Verdict::NoDifference => {
                match percent(self.could_show.map_or(0.0, |ratio| ratio - 1.0)) {
                    // Virtual runs of equal duration: any difference would have shown.
                    could if could == NONE => f.write_str("no difference of 0.01 % or more (95 %)"),
                    could => {
                        let change = span(low - 1.0, high - 1.0, signed);
                        write!(
                            f,
                            "no difference can be shown ({change}, 95 %); one of {could} could have been"
                        )
                    }
                }
            }
        }
    }
}

/// A range as text, or a single value if both ends read the same.
fn span(from: f64, to: f64, say: impl Fn(f64) -> String) -> String {
    let (from, to) = (say(from), say(to));
    if from == to { from } else { format!("{from} to {to}") }
}

/// A share as per cent, to about three digits.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        small if small < 1.0 => format!("{percent:.2} %"),
        some if some < 20.0 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// The text of [`percent`] for a share too small for two decimals.
const NONE: &str = "0.00 %";

/// A difference above zero as text, however small: never "slower by 0.00 %".
fn some(share: f64) -> String {
    match percent(share) {
        none if none == NONE => "less than 0.01 %".into(),
        said => said,
    }
}

fn signed(share: f64) -> String {
    if share < 0.0 { format!("−{}", percent(-share)) } else { format!("+{}", percent(share)) }
}
