//! Seeded randomness: SplitMix64 (Steele, Lea, Flood 2014), whose every seed is good and whose
//! state is one number.

/// The step of the state from one number to the next.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A generator of random numbers. Two of the same seed give the same numbers for ever.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator with the seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The same generator once `count` more numbers were drawn, at the cost of one.
    #[must_use]
    pub fn skipped(&self, count: u64) -> Random {
        Random(self.0.wrapping_add(STEP.wrapping_mul(count)))
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `0..below`; 0 if there is nothing below. The bias of taking the upper half of a
    /// product is under 2^-64 × `below`.
    pub fn below(&mut self, below: u64) -> u64 {
        let wide = u128::from(self.bits()) * u128::from(below);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// Uniform in `[0, 1)`, a multiple of 2^-53.
    #[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_numbers_are_those_that_would_be_drawn() {
        let mut random = Random::new(7);
        let (first, third) = (random.clone(), random.skipped(2).bits());
        let drawn: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        assert_eq!((first.skipped(0).bits(), third), (drawn[0], drawn[2]));
        assert_eq!(first.skipped(3).bits(), random.bits());
    }
}
