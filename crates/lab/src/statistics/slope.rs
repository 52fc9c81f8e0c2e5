//! A straight line through points: latency against depth.

use super::distribution::student_quantile;
use super::{CONFIDENCE, Interval, mean, real};

/// A line fitted by least squares.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Slope {
    /// The increase of y for every 1 of x.
    pub slope: f64,
    /// The 95 % interval of the slope, by Student's t with n − 2 degrees of freedom.
    pub interval: Interval,
    /// The value of y at x = 0.
    pub intercept: f64,
    /// The standard deviation of the points from the line.
    pub residual: f64,
}

/// The line through finite points (x, y); `None` with fewer than three points, or if x is constant.
pub fn slope(points: &[(f64, f64)]) -> Option<Slope> {
    if points.len() < 3 || points.iter().any(|(x, y)| !x.is_finite() || !y.is_finite()) {
        return None;
    }
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let (x0, y0) = (mean(&xs), mean(&ys));
    let spread: f64 = xs.iter().map(|x| (x - x0).powi(2)).sum();
    if spread == 0.0 {
        return None;
    }
    let slope = points.iter().map(|(x, y)| (x - x0) * (y - y0)).sum::<f64>() / spread;
    let intercept = y0 - slope * x0;
    let squares: f64 = points.iter().map(|(x, y)| (y - intercept - slope * x).powi(2)).sum();
    let residual = (squares / real(points.len() - 2)).sqrt();
    let away =
        student_quantile(0.5 + CONFIDENCE / 2.0, points.len() - 2) * residual / spread.sqrt();
    Some(Slope {
        slope,
        interval: Interval { low: slope - away, high: slope + away },
        intercept,
        residual,
    })
}
