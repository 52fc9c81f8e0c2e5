//! A comparison of two series of runs, and its verdict.

use super::bootstrap::{Ascending, RESAMPLES, interval, reach_at, reach_of_few_at};
use super::carry_over::CarryOver;
use super::distribution::normal_quantile;
use super::several::{confidence_of, enough_at};
use super::{Interval, median};
use crate::error::Error;
use std::fmt;

/// A ratio with its 95 % interval, as in `trueline/bench/1`.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Ratio {
    /// The median of the ratios of runs side by side, the last series over the first.
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

/// The least number of runs of each series for an interval of 95 %. The ratios of five runs side by
/// side all lie on one side of the true one by chance once in 16 times, of six once in 32: no
/// interval within what was measured reaches 95 % before.
pub const ENOUGH: usize = 6;

/// The least number of runs of each series from which pairs of neighbouring blocks, A B B A, are
/// drawn beside single ones: fewer have too few pairs for any draw.
pub const PAIRED: usize = 8;

/// The comparison of two series, the last over the first.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Comparison {
    /// The ratio last over first. With too few runs, its ends are the least and the
    /// greatest ratio of two runs side by side.
    pub ratio: Ratio,
    /// The probability that the ends hold the true ratio: 0.95, more if it is one of several, or
    /// with too few runs that of the least and the greatest of so many ratios.
    pub confidence: f64,
    /// The verdict that the interval supports.
    pub verdict: Verdict,
    /// The number of runs of each series.
    pub runs: usize,
    /// The least number of runs of each series for an interval.
    pub needed: usize,
    /// The least ratio above 1 that this noise would let us show, four times in five; `None`
    /// without an interval.
    pub could_show: Option<f64>,
    /// The effect of the run before; `None` in virtual time, where every run has new drives, with
    /// other than two variants, and with too few runs to tell.
    pub carry_over: Option<CarryOver>,
}

impl Comparison {
    /// Compares series of times. Runs of the same index were measured side by side, in one block:
    /// the ratio of each block is taken, so that what lasted longer than a block cancels. The rest
    /// of a longer series is ignored.
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
        Comparison::resampled(first, last, RESAMPLES, seed, comparisons)
    }

    /// Compares as [`Comparison::between_among`] does, by as many draws.
    pub(crate) fn resampled(
        first: &[f64],
        last: &[f64],
        resamples: usize,
        seed: u64,
        comparisons: usize,
    ) -> Result<Comparison, Error> {
        let (confidence, needed) =
            (confidence_of(comparisons), enough_at(confidence_of(comparisons)));
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
        let ratios: Vec<f64> = last.iter().zip(first).map(|(last, first)| last / first).collect();
        if ratios.iter().any(|ratio| !ratio.is_finite() || *ratio <= 0.0) {
            return Err(Error::new("compare: times too far apart for a ratio".into()));
        }
        let whole = median(&ratios);
        let found = if runs < needed { None } else { bounds(&ratios, resamples, seed, confidence) };
        // The ratio may lie slightly outside its own interval, which would puzzle a reader: the
        // interval is widened.
        let ends = found.map_or_else(
            || extremes(&ratios),
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
        let confidence = found.map_or_else(|| between_extremes(runs), |_| confidence);
        Ok(Comparison { ratio, confidence, verdict, runs, needed, could_show, carry_over: None })
    }
}

/// The interval of the median of the blocks' ratios: what draws of single blocks give and, from
/// [`PAIRED`] runs on, draws of neighbours in pairs, whichever is wider at either end. Neighbours
/// in time resemble each other, and draws of single blocks do not know that; a handful of pairs
/// alone spread too little.
fn bounds(ratios: &[f64], resamples: usize, seed: u64, confidence: f64) -> Option<Interval> {
    let drawn = |neighbours: usize| {
        let ascending = Ascending::new(ratios, neighbours);
        let items = ratios.len().div_ceil(neighbours);
        let reach = reach_of_few_at(items, confidence);
        interval(items, reach, resamples, seed, &mut |drawn| ascending.median(drawn))
    };
    let single = drawn(1)?;
    if ratios.len() < PAIRED {
        return Some(single);
    }
    let pairs = drawn(2)?;
    Some(Interval { low: single.low.min(pairs.low), high: single.high.max(pairs.high) })
}

/// The interval between the least and the greatest ratio.
fn extremes(ratios: &[f64]) -> Interval {
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    Interval { low: least, high: ratios.iter().copied().fold(0.0, f64::max) }
}

/// The probability that the median of a distribution lies between the least and the greatest of
/// `runs` values: all but the two cases that every one lies on the same side of it.
fn between_extremes(runs: usize) -> f64 {
    1.0 - 2.0 * 0.5_f64.powi(i32::try_from(runs).unwrap_or(i32::MAX))
}

/// The least ratio that can be shown: an interval of `±w` in the logarithm excludes 1 four times in
/// five if the true ratio is `w · (1.96 + 0.84) / 1.96` away.
fn could_show(ends: Interval, confidence: f64) -> f64 {
    let half = (ends.high / ends.low).ln() / 2.0;
    (half * (1.0 + normal_quantile(0.8) / reach_at(confidence))).exp()
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.verdict_in_words(f)?;
        match self.carry_over.filter(|carry_over| carry_over.decides) {
            Some(carry_over) => write!(f, "; {carry_over}"),
            None => Ok(()),
        }
    }
}

impl Comparison {
    fn verdict_in_words(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ratio { median, low, high } = self.ratio;
        match self.verdict {
            Verdict::TooFew if self.runs == 1 => {
                let few = too_few(self.needed);
                write!(f, "takes {median:.3} times as long; 1 run each is {few}")
            }
            Verdict::TooFew => {
                let (runs, held) = (self.runs, percent(self.confidence));
                let (ends, few) =
                    (span(low, high, |ratio| format!("{ratio:.3}")), too_few(self.needed));
                write!(
                    f,
                    "takes {median:.3} times as long; {runs} runs each are {few}; they measured {ends}, which holds the ratio with {held}"
                )
            }
            Verdict::Slower if median >= 2.0 => write!(
                f,
                "takes {} times as long (95 %)",
                span(low, high, |ratio| format!("{ratio:.2}"))
            ),
            Verdict::Slower => {
                write!(f, "slower: takes {} longer (95 %)", span(low - 1.0, high - 1.0, some))
            }
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

/// The words for series with fewer than `needed` runs.
pub(super) fn too_few(needed: usize) -> String {
    format!("too few for 95 %, which needs {needed}, better {}", needed + 4)
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

/// A difference above zero as text, however small: never "0.00 % longer".
fn some(share: f64) -> String {
    match percent(share) {
        none if none == NONE => "less than 0.01 %".into(),
        said => said,
    }
}

fn signed(share: f64) -> String {
    if share < 0.0 { format!("−{}", percent(-share)) } else { format!("+{}", percent(share)) }
}
