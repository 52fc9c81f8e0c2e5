//! The ratio of virtual to real time.

use std::fmt;
use trueline_geom::base::size;

/// A factor in thousandths: ms of virtual time in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed(u64);

/// The highest factor: virtual time lasts three hours of real time then.
const FASTEST: u64 = 1_000_000;

impl Speed {
    /// The speed of the drives themselves.
    pub const REAL: Speed = Speed(1000);

    /// Parses `10` or `0.5`: up to three decimals, up to a thousand; [`None`] for anything else.
    pub fn parse(text: &str) -> Option<Speed> {
        let speed = size::decimal(text, 3)?;
        (1..=FASTEST).contains(&speed).then_some(Speed(speed))
    }

    /// The factor as a number, for people.
    #[allow(clippy::cast_precision_loss, reason = "at most a million")]
    pub fn factor(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// A speed of one digit, at most `times` this one; the slowest possible if that is slower.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast to an integer saturates, and is clamped"
    )]
    pub fn slowed(self, times: f64) -> Speed {
        let most = ((self.factor() * 1000.0 * times) as u64).clamp(1, FASTEST);
        let digit = 10_u64.pow(most.ilog10());
        Speed(most / digit * digit)
    }

    /// Picoseconds of virtual time in a nanosecond.
    pub(super) fn ps_per_ns(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.factor())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slower_speeds_have_one_digit() {
        let slowed =
            |speed: &str, times: f64| Speed::parse(speed).unwrap().slowed(times).to_string();
        assert_eq!(slowed("10", 0.1 / 3.0), "0.3");
        assert_eq!(
            [slowed("1", 0.99), slowed("1", 0.0219), slowed("0.5", 1e-9)],
            ["0.9", "0.02", "0.001"]
        );
    }

    #[test]
    fn speeds_are_decimal() {
        let read = ["1", "10", "0.5", "0.001", "1000", "2.25"]
            .map(|text| Speed::parse(text).map(|speed| speed.0));
        assert_eq!(read, [1000, 10_000, 500, 1, 1_000_000, 2250].map(Some));
        for text in [
            "",
            "0",
            "0.0",
            "-1",
            "1000.001",
            "0.0001",
            "1e3",
            ".5",
            "ten",
            "1.",
            "99999999999999999999",
        ] {
            assert_eq!(
                Speed::parse(text),
                if text == "1." { Some(Speed::REAL) } else { None },
                "{text}"
            );
        }
    }
}
