//! Latencies as a curve for a report.

use hdrhistogram::Histogram;

/// The least latency of a histogram in ns: no request that reaches a medium is as fast.
const UNWAITED: u64 = 1;

/// The most points of a curve.
pub const POINTS: usize = 100;

/// The quantiles of a curve: even steps, and ever finer ones towards 1, where the slow requests
/// are.
fn quantiles() -> impl Iterator<Item = f64> {
    let even = (0..49u32).map(|step| f64::from(step) / 50.0);
    // Fifteen for each further nine: 0.98, …, 0.99998.
    let tail = (0..46u32).map(|step| 1.0 - 0.02 * 10f64.powf(-f64::from(step) / 15.0));
    even.chain(tail).chain([1.0])
}

/// The latency curve of a histogram: at most [`POINTS`] points (quantile, ns), both ascending, from
/// the least latency to the greatest. Where many requests took the same time, the first and last
/// points of it are enough. Requests that end in the host's cache are at 0 ns; the histogram, which
/// begins at 1 ns, has them there. Empty if nothing was recorded, or all ended in the cache.
pub fn curve(latency: &Histogram<u64>) -> Vec<(f64, u64)> {
    let mut points: Vec<(f64, u64)> = Vec::with_capacity(POINTS);
    if latency.max() <= UNWAITED {
        return points;
    }
    for at in quantiles() {
        let ns = if at == 0.0 { latency.min() } else { latency.value_at_quantile(at) };
        let ns = if ns <= UNWAITED { 0 } else { ns };
        match points[..] {
            [.., (_, before), (ref mut last, same)] if before == ns && same == ns => *last = at,
            _ => points.push((at, ns)),
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Run;

    fn curve_of(latencies: impl IntoIterator<Item = u64>) -> Vec<(f64, u64)> {
        let mut run = Run::new();
        latencies.into_iter().for_each(|ns| run.record(512, ns));
        curve(&run.latency)
    }

    #[test]
    fn it_rises_from_the_least_to_the_greatest() {
        let points = curve_of(2..=100_000);
        assert!(points.len() <= POINTS, "{}", points.len());
        assert!(
            points.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1),
            "{points:?}"
        );
        assert_eq!(points[0], (0.0, 2));
        assert_eq!(points.last().map(|point| point.0), Some(1.0));
        // Three digits: every point is where it belongs within a thousandth.
        for (at, ns) in &points[1..] {
            let expected = at * 1e5;
            #[allow(clippy::cast_precision_loss, reason = "a hundred thousand fits")]
            let ns = *ns as f64;
            assert!((ns / expected - 1.0).abs() < 0.002, "{ns} at {at}");
        }
    }

    #[test]
    fn what_is_not_waited_for_has_no_latency() {
        assert!(curve_of([0; 1000]).is_empty());
        let some = curve_of((0..1000).map(|at| if at < 900 { 0 } else { 500 }));
        assert_eq!(some, [(0.0, 0), (0.9, 0), (0.92, 500), (1.0, 500)]);
    }

    #[test]
    fn what_is_all_the_same_is_two_points() {
        assert_eq!(curve_of([7; 1000]), [(0.0, 7), (1.0, 7)]);
        assert_eq!(curve_of([9]), [(0.0, 9), (1.0, 9)]);
        assert!(curve_of([]).is_empty());
        let two = curve_of((0..1000).map(|at| if at < 900 { 5 } else { 500 }));
        assert_eq!(two, [(0.0, 5), (0.9, 5), (0.92, 500), (1.0, 500)]);
    }
}
