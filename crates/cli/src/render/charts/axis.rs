//! Positions of values on a line, in percent of the line, and the values that are named on it.
//!
//! Values come from lab files and may be any float; a position is always a number from 0 to 100.

/// A line with values on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    log: bool,
}

/// Values to name within one power of ten, from few to many.
const SERIES: [&[f64]; 5] = [
    &[1.0],
    &[1.0, 3.0],
    &[1.0, 2.0, 5.0],
    &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
    &[1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
];

impl Axis {
    /// A line from 0 to the greatest of `values`.
    pub(crate) fn from_zero(values: impl IntoIterator<Item = f64>) -> Axis {
        let high = values.into_iter().filter(|v| v.is_finite()).fold(0.0, f64::max);
        Axis { low: 0.0, high: if high > 0.0 { high } else { 1.0 }, log: false }
    }

    /// A line of powers of ten that holds all `values` above 0, with some room at both ends; `None`
    /// if there are none.
    pub(crate) fn log(values: impl IntoIterator<Item = f64>) -> Option<Axis> {
        let ends = values.into_iter().filter(|v| v.is_finite() && *v > 0.0).map(f64::log10);
        let (low, high) = ends
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            return None;
        }
        // The least room keeps one per cent from filling the line.
        let room = ((high - low) * 0.06).max((0.2 - (high - low)) / 2.0).max(0.02);
        Some(Axis { low: low - room, high: high + room, log: true })
    }

    /// Position of a value in percent from the left; values past an end fall on it.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let value = if self.log { value.log10() } else { value };
        let share = (value - self.low) / (self.high - self.low) * 100.0;
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 100.0) }
    }

    /// The values to name, at most `most`, ascending.
    pub(crate) fn ticks(&self, most: usize) -> Vec<f64> {
        if !self.log {
            let step = nice((self.high - self.low) / many(most.max(1)));
            return (0..=most).map(|i| many(i) * step).take_while(|v| *v <= self.high).collect();
        }
        let of = |series: &[f64], decades: usize| -> Vec<f64> {
            let first = self.low.floor();
            let all = (0..=700)
                .step_by(decades)
                .map(|i| first + many(i))
                .take_while(|power| *power <= self.high);
            let named = all.flat_map(|power| series.iter().map(move |s| s * 10f64.powf(power)));
            named.filter(|v| (self.low..=self.high).contains(&v.log10())).take(most + 1).collect()
        };
        let fits = SERIES
            .iter()
            .rev()
            .map(|series| of(series, 1))
            .find(|ticks| ticks.len() <= most && !ticks.is_empty());
        fits.or_else(|| {
            [2, 3, 5, 10, 20, 50, 100, 350]
                .iter()
                .map(|&n| of(&[1.0], n))
                .find(|ticks| ticks.len() <= most)
        })
        .unwrap_or_default()
    }
}

/// The least of 1, 2 and 5 times a power of ten that is not below `value`.
fn nice(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].map(|s| s * power).into_iter().find(|s| *s >= value * 0.999_999);
    step.filter(|s| s.is_normal()).unwrap_or(1.0)
}

#[allow(clippy::cast_precision_loss, reason = "a few hundred at most")]
fn many(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9 * b.abs().max(1.0)
    }

    #[test]
    fn nice_steps() {
        for (value, want) in
            [(1.0, 1.0), (1.1, 2.0), (0.03, 0.05), (7.0, 10.0), (430.0, 500.0), (2e-9, 2e-9)]
        {
            assert!(near(nice(value), want), "{value}: {}", nice(value));
        }
        assert!(
            near(nice(0.0), 1.0) && near(nice(f64::NAN), 1.0) && near(nice(f64::INFINITY), 1.0)
        );
    }

    #[test]
    fn a_line_from_zero() {
        let axis = Axis::from_zero([133.0, 112.0, f64::NAN]);
        assert!(
            near(axis.at(133.0), 100.0) && near(axis.at(66.5), 50.0) && near(axis.at(0.0), 0.0)
        );
        assert_eq!(axis.ticks(4), [0.0, 50.0, 100.0]);
    }

    #[test]
    fn a_line_of_powers() {
        let axis = Axis::log([1e3, 1e6]).unwrap();
        let middle = axis.at(10f64.powf(4.5));
        assert!(near(middle, 50.0) && axis.at(1e3) > 0.0 && axis.at(1e6) < 100.0);
        assert!(near(axis.at(1e4) - axis.at(1e3), axis.at(1e6) - axis.at(1e5)));
        let ticks = axis.ticks(5);
        assert_eq!(ticks.len(), 4, "{ticks:?}");
        assert!(ticks.iter().zip([1e3, 1e4, 1e5, 1e6]).all(|(a, b)| near(*a, b)), "{ticks:?}");
    }

    #[test]
    fn a_narrow_line_of_powers_names_enough() {
        let axis = Axis::log([0.72, 1.0, 1.08]).unwrap();
        let ticks = axis.ticks(8);
        assert!((3..=8).contains(&ticks.len()) && ticks.iter().any(|t| near(*t, 1.0)), "{ticks:?}");
        // Equal values only: the line is still as wide as a factor and a half.
        let axis = Axis::log([1.0]).unwrap();
        assert!(near(axis.at(1.0), 50.0) && axis.at(1.01) < 55.0, "{}", axis.at(1.01));
    }

    #[test]
    fn no_value_leaves_the_line() {
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 1e-308, 1e308, f64::MAX];
        let axes = [
            Axis::from_zero(odd),
            Axis::from_zero([]),
            Axis::log([1e-300, 1e300]).unwrap(),
            Axis::log([5.0]).unwrap(),
        ];
        for axis in axes {
            assert!(odd.iter().all(|v| (0.0..=100.0).contains(&axis.at(*v))), "{axis:?}");
            let ticks = axis.ticks(6);
            assert!(
                ticks.len() <= 7 && ticks.windows(2).all(|w| w[0] < w[1]),
                "{axis:?} {ticks:?}"
            );
        }
        assert_eq!(Axis::log([0.0, -3.0, f64::NAN, f64::INFINITY]), None);
    }
}
