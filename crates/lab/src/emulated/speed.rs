//! How many times as fast as real time virtual time goes.

use trueline_geom::profile;

/// A factor: thousandths of a second of virtual time in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed(u64);

/// The fastest: virtual time lasts three hours of real time.
const FASTEST: u64 = 1_000_000;

impl Speed {
    /// As fast as the drives are.
    pub const REAL: Speed = Speed(1000);

    /// `10`, `0.5`: to three digits behind the point, up to a thousand; [`None`] if it is no such number, or none at all.
    pub fn parse(text: &str) -> Option<Speed> {
        let speed = profile::decimal(text, 3)?;
        (1..=FASTEST).contains(&speed).then_some(Speed(speed))
    }

    /// Picoseconds of virtual time in a nanosecond.
    pub(super) fn ps_per_ns(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_decimal() {
        let read = ["1", "10", "0.5", "0.001", "1000", "2.25"].map(|text| Speed::parse(text).map(|speed| speed.0));
        assert_eq!(read, [1000, 10_000, 500, 1, 1_000_000, 2250].map(Some));
        for text in ["", "0", "0.0", "-1", "1000.001", "0.0001", "1e3", ".5", "ten", "1.", "99999999999999999999"] {
            assert_eq!(Speed::parse(text), if text == "1." { Some(Speed::REAL) } else { None }, "{text}");
        }
    }
}
