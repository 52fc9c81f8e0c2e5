//! The normal distribution and Student's, as far as intervals need them.
//!
//! Quantiles are found by bisection of functions that are exact sums: a few microseconds each, and
//! no fitted coefficients.

use super::real;
use std::f64::consts::{FRAC_PI_2, TAU};

/// The share of a standard normal variable below `x`, to 1e-15 absolute (the series of Marsaglia,
/// "Evaluating the Normal Distribution", Journal of Statistical Software 11(4), 2004).
pub fn normal(x: f64) -> f64 {
    if x.abs() > 8.5 {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term.abs() > 1e-18 {
        odd += 2.0;
        term *= x * x / odd;
        sum += term;
    }
    (0.5 + sum * (-x * x / 2.0).exp() / TAU.sqrt()).clamp(0.0, 1.0)
}

/// The quantile of the standard normal distribution at `share`, within ±8.5.
pub fn normal_quantile(share: f64) -> f64 {
    halve(-8.5, 8.5, |x| normal(x) < share)
}

/// The share of Student's t of `degrees` below `t` (Abramowitz and Stegun 26.7.3 and 26.7.4);
/// normal above 1000 degrees.
pub fn student(t: f64, degrees: usize) -> f64 {
    if degrees > 1000 {
        return normal(t);
    }
    let angle = (t / real(degrees).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    // The share between -t and t: a sum of powers of the cosine, odd ones or even ones.
    let odd = degrees % 2 == 1;
    let (mut term, mut sum) = if odd { (cos, 0.0) } else { (1.0, 0.0) };
    let mut power = if odd { 1 } else { 0 };
    while power + 2 <= degrees {
        sum += term;
        power += 2;
        term *= cos * cos * real(power - 1) / real(power);
    }
    let within = if odd { (angle + sin * sum) / FRAC_PI_2 } else { sin * sum };
    0.5 + within / 2.0
}

/// The quantile of Student's t with `degrees` of freedom (at least 1) at `share`, within ±10,000.
pub fn student_quantile(share: f64, degrees: usize) -> f64 {
    halve(-1e4, 1e4, |t| student(t, degrees.max(1)) < share)
}

/// The place where a rising function stops being below, by bisection.
fn halve(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..80 {
        let middle = low.midpoint(high);
        if below(middle) { low = middle } else { high = middle }
    }
    low.midpoint(high)
}
