//! Seeded randomness: SplitMix64 (Steele, Lea, Flood 2014), whose every seed is good and whose
//! state is one number.

/// A generator of random numbers. Two of the same seed give the same numbers for ever.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator with the seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
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
