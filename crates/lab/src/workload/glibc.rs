//! random(3) of the GNU C library, as a program has it that never calls srandom(3): the seed is 1.
//!
//! The additive feedback generator of degree 31 (`TYPE_3`): `r[i] = r[i-3] + r[i-31]` modulo 2^32,
//! of which the lowest bit is dropped; its first 34 numbers come from Park and Miller's generator,
//! 16807 modulo 2^31 - 1, and 310 are thrown away.

/// The generator behind random(3).
#[derive(Clone, Debug)]
pub struct Random {
    state: [u32; 31],
    at: usize,
}

impl Default for Random {
    fn default() -> Random {
        Random::new(1)
    }
}

impl Random {
    /// The state after `srandom(seed)`; 0 is taken as 1, as there.
    pub fn new(seed: u32) -> Random {
        const MODULUS: u64 = 0x7fff_ffff;
        let mut state = [0; 31];
        // Above 2^31 the C library computes with a negative number; no lab uses such a seed.
        let mut word = u64::from(seed.max(1)) % MODULUS;
        for place in &mut state {
            *place = u32::try_from(word).unwrap_or(0);
            word = word * 16807 % MODULUS;
        }
        // r[31] to r[33] are r[0] to r[2], so the sums begin with r[34] in the place of r[3].
        let mut random = Random { state, at: 3 };
        for _ in 0..310 {
            random.draw();
        }
        random
    }

    /// The next number, below 2^31.
    pub fn draw(&mut self) -> u32 {
        // `state` is a ring: r[i-31] is at `at`, r[i-3] is 28 further.
        let sum = self.state[self.at].wrapping_add(self.state[(self.at + 28) % 31]);
        self.state[self.at] = sum;
        self.at = (self.at + 1) % 31;
        sum >> 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_are_those_of_the_library() {
        let mut random = Random::default();
        let first: Vec<u32> = (0..5).map(|_| random.draw()).collect();
        assert_eq!(
            first,
            [1_804_289_383, 846_930_886, 1_681_692_777, 1_714_636_915, 1_957_747_793]
        );
        // The state has gone round by then.
        let mut random = Random::default();
        assert_eq!((0..1000).map(|_| random.draw()).last(), Some(LAST));
        let mut other = Random::new(42);
        assert_eq!([other.draw(), other.draw()], [71_876_166, 708_592_740]);
    }

    /// The thousandth, printed by a program in C.
    const LAST: u32 = 1_143_565_421;
}
