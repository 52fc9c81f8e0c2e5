//! Tests by rank, valid for any distribution of the values.

use super::distribution::normal;
use super::real;

/// The ranks of values from 1; equal values share their mean rank.
pub fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let from =
            order.partition_point(|&place| values[place].total_cmp(&values[equal[0]]).is_lt());
        for &place in equal {
            ranks[place] = real(from) + (real(equal.len()) + 1.0) / 2.0;
        }
    }
    ranks
}

/// The probability that ranks differ as much by chance if the two series do not differ: the
/// two-sided rank sum test of Wilcoxon, Mann and Whitney, by the normal approximation with ties and
/// continuity corrected. 1 if a series is empty or all values are equal.
pub fn same(one: &[f64], other: &[f64]) -> f64 {
    let (m, n) = (real(one.len()), real(other.len()));
    if one.is_empty() || other.is_empty() {
        return 1.0;
    }
    let all: Vec<f64> = one.iter().chain(other).copied().collect();
    let ranks = ranks(&all);
    let sum: f64 = ranks[..one.len()].iter().sum();
    let away = (sum - m * (m + n + 1.0) / 2.0).abs();
    let mut ascending = all;
    ascending.sort_by(f64::total_cmp);
    let ties: f64 = ascending
        .chunk_by(|a, b| a == b)
        .map(|equal| real(equal.len()).powi(3) - real(equal.len()))
        .sum();
    let variance = m * n / 12.0 * (m + n + 1.0 - ties / ((m + n) * (m + n - 1.0)));
    if variance <= 0.0 {
        1.0
    } else {
        (2.0 * (1.0 - normal((away - 0.5).max(0.0) / variance.sqrt()))).min(1.0)
    }
}

/// Spearman's rank correlation, −1 to 1; 0 if either series is constant.
pub fn correlation(one: &[f64], other: &[f64]) -> f64 {
    let count = one.len().min(other.len());
    let (one, other) = (ranks(&one[..count]), ranks(&other[..count]));
    let middle = (real(count) + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| {
        a.iter().zip(b).map(|(x, y)| (x - middle) * (y - middle)).sum::<f64>()
    };
    let scale = (product(&one, &one) * product(&other, &other)).sqrt();
    if scale == 0.0 { 0.0 } else { product(&one, &other) / scale }
}
