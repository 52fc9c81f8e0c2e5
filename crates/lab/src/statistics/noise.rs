//! Warnings about a series of runs: noise, drift, two kinds of run, single outliers, too few.

use super::comparison::{ENOUGH, percent, too_few};
use super::{MAD_TO_SIGMA, Summary, mean, median, rank, real};

/// The coefficient of variation above which runs are called noisy.
const NOISY: f64 = 0.05;
/// Deviations from the median above which a value is an outlier (Iglewicz and Hoaglin, "How to
/// Detect and Handle Outliers", 1993).
const OUTLYING: f64 = 3.5;
/// The probability below which a drift is reported: every series is tested, so one in twenty would
/// be too many false alarms.
const IMPROBABLE: f64 = 0.01;
/// Deviations between two groups (Ashman's D) above which they are two kinds of run. The best cut
/// through normal values makes D near 4, seldom above 6.
const APART: f64 = 7.0;

/// The indices of values far from the median, measured by the median absolute deviation or, if that
/// is 0 because more than half of the values are equal, by the mean one.
pub fn outliers(values: &[f64]) -> Vec<usize> {
    let Some(Summary { median, mad, .. }) = Summary::from_values(values) else { return Vec::new() };
    let away: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
    // 1.2533 = √(π/2) makes a mean absolute deviation a standard one.
    let sigma = if mad > 0.0 {
        MAD_TO_SIGMA * mad
    } else {
        std::f64::consts::FRAC_PI_2.sqrt() * mean(&away)
    };
    (0..values.len()).filter(|&place| away[place] > OUTLYING * sigma).collect()
}

/// Warnings about one series of times, in the order in which they were measured.
pub fn of_series(name: &str, values: &[f64]) -> Vec<String> {
    let Some(summary) = Summary::from_values(values) else { return Vec::new() };
    let mut warnings = Vec::new();
    if summary.count < ENOUGH {
        let s = if summary.count == 1 { "" } else { "s" };
        warnings.push(format!("{name}: {} run{s}, {}", summary.count, too_few(ENOUGH)));
        return warnings;
    }
    let far = outliers(values);
    if let Some((low, high)) = two_kinds(values) {
        let apart = format!("about {} and about {}", seconds(low), seconds(high));
        warnings.push(format!(
            "{name}: the runs fall into two groups, {apart}: no single time describes both"
        ));
    } else if !far.is_empty() {
        let which: Vec<String> = far
            .iter()
            .take(5)
            .map(|place| format!("run {} {}", place + 1, seconds(values[*place])))
            .collect();
        let more = if far.len() > 5 { ", …" } else { "" };
        warnings.push(format!(
            "{name}: outliers ({}{more}) from a median of {}; all are kept",
            which.join(", "),
            seconds(summary.median)
        ));
    }
    let variation = summary.deviation / summary.mean;
    if variation > NOISY {
        warnings.push(format!(
            "{name}: noisy: its runs deviate by {} of their mean",
            percent(variation)
        ));
    }
    warnings
}

/// A warning if the machine became slower or faster during the measurement: the first half of every
/// series against its second, each over its own median, tested by rank. `None` if no drift is
/// found.
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
    Some(format!(
        "drift: the second half of the runs is {change} {way} than the first; the order A B B A cancels a steady drift"
    ))
}

/// The means of two distant groups, each of at least two values and a fifth of all; `None` if there
/// are no two groups.
fn two_kinds(values: &[f64]) -> Option<(f64, f64)> {
    let mut ascending = values.to_vec();
    ascending.sort_by(f64::total_cmp);
    let least = (values.len() / 5).max(2);
    let cut = (least..(values.len() + 1).saturating_sub(least)).max_by(|&a, &b| {
        (ascending[a] - ascending[a - 1]).total_cmp(&(ascending[b] - ascending[b - 1]))
    })?;
    let (low, high) = ascending.split_at(cut);
    let variance = |group: &[f64]| {
        let middle = mean(group);
        group.iter().map(|value| (value - middle).powi(2)).sum::<f64>() / real(group.len())
    };
    let between = mean(high) - mean(low);
    let within = ((variance(low) + variance(high)) / 2.0).sqrt();
    // Groups of equal values have no deviation to measure by; a gap below a hundredth is too small
    // to call them two kinds.
    (between > APART * within && between > 0.01 * mean(low)).then(|| (mean(low), mean(high)))
}

/// A time as text with a unit: s, ms or µs.
fn seconds(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.1} µs", s * 1e6),
    }
}
