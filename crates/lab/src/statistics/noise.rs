//! What is wrong with a series of runs, in words: noise, drift, two kinds of run, single outliers, too few.

use super::comparison::{ENOUGH, percent};
use super::{MAD_TO_SIGMA, Summary, mean, median, rank, real};

/// Above this coefficient of variation runs are called noisy.
const NOISY: f64 = 0.05;
/// A value this many deviations from the median is an outlier (Iglewicz and Hoaglin, "How to Detect and Handle Outliers", 1993).
const OUTLYING: f64 = 3.5;
/// Below this probability a drift is called one: every series is looked at, so one in twenty would be one too many.
const IMPROBABLE: f64 = 0.01;
/// Two groups further apart than this many of their deviations (Ashman's D) are two kinds of run. The best of all cuts through normal
/// values makes D near 4, seldom above 6.
const APART: f64 = 7.0;

/// The places of values that lie far from the median: by the median absolute deviation or, where more than half of the values are
/// equal and it is 0, by the mean one.
pub fn outliers(values: &[f64]) -> Vec<usize> {
    let Some(Summary { median, mad, .. }) = Summary::of(values) else { return Vec::new() };
    let away: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
    // 1.2533 = √(π/2) makes a mean absolute deviation a standard one.
    let sigma = if mad > 0.0 { MAD_TO_SIGMA * mad } else { std::f64::consts::FRAC_PI_2.sqrt() * mean(&away) };
    (0..values.len()).filter(|&place| away[place] > OUTLYING * sigma).collect()
}

/// What is to be known of one series of times, in the order in which they were measured.
pub fn of_series(name: &str, values: &[f64]) -> Vec<String> {
    let Some(summary) = Summary::of(values) else { return Vec::new() };
    let mut warnings = Vec::new();
    if summary.count < ENOUGH {
        let s = if summary.count == 1 { "" } else { "s" };
        warnings.push(format!("{name}: {} run{s}, too few for an interval; it takes {ENOUGH}, better 10", summary.count));
        return warnings;
    }
    let far = outliers(values);
    if let Some((low, high)) = two_kinds(values) {
        let apart = format!("about {} and about {}", seconds(low), seconds(high));
        warnings.push(format!("{name}: two kinds of run, {apart}: no single time stands for both"));
    } else if !far.is_empty() {
        let which: Vec<String> = far.iter().take(5).map(|place| format!("run {} {}", place + 1, seconds(values[*place]))).collect();
        let more = if far.len() > 5 { ", …" } else { "" };
        warnings.push(format!("{name}: outliers ({}{more}) from a median of {}; all are kept", which.join(", "), seconds(summary.median)));
    }
    let variation = summary.deviation / summary.mean;
    if variation > NOISY {
        warnings.push(format!("{name}: noisy, runs deviate by {} of their mean", percent(variation)));
    }
    warnings
}

/// Whether the machine became slower or faster while it was measured: every series' first half against its second, each over its own
/// median, by rank.
pub fn drift(series: &[&[f64]]) -> Option<String> {
    let (mut early, mut late) = (Vec::new(), Vec::new());
    for values in series {
        let middle = median(values);
        if middle > 0.0 && values.iter().all(|value| value.is_finite()) {
            let half = values.len() / 2;
            early.extend(values[..half].iter().map(|value| value / middle));
            late.extend(values[values.len() - half..].iter().map(|value| value / middle));
        }
    }
    let change = median(&late) / median(&early) - 1.0;
    if rank::same(&early, &late) >= IMPROBABLE || change == 0.0 {
        return None;
    }
    let way = if change > 0.0 { "slower" } else { "faster" };
    let change = percent(change.abs());
    Some(format!("drift: the second half of the runs is {change} {way} than the first; the order A B B A evens out what is steady of it"))
}

/// The means of two groups that are far apart, each of at least two and a fifth of the values; `None` if there are none.
fn two_kinds(values: &[f64]) -> Option<(f64, f64)> {
    let mut ascending = values.to_vec();
    ascending.sort_by(f64::total_cmp);
    let least = (values.len() / 5).max(2);
    let cut = (least..(values.len() + 1).saturating_sub(least))
        .max_by(|&a, &b| (ascending[a] - ascending[a - 1]).total_cmp(&(ascending[b] - ascending[b - 1])))?;
    let (low, high) = ascending.split_at(cut);
    let variance = |group: &[f64]| {
        let middle = mean(group);
        group.iter().map(|value| (value - middle).powi(2)).sum::<f64>() / real(group.len())
    };
    let between = mean(high) - mean(low);
    let within = ((variance(low) + variance(high)) / 2.0).sqrt();
    // Equal values in both groups have no deviation to measure by; below a hundredth nobody would call them two kinds.
    (between > APART * within && between > 0.01 * mean(low)).then(|| (mean(low), mean(high)))
}

/// A time for people.
fn seconds(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.1} µs", s * 1e6),
    }
}
