//! Maps whose keys are numbers that a host counts out itself: places, owners, tags. Nobody chooses them to collide, so a key need not be
//! hashed as if somebody did; it is looked up several times a request.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

/// A map of such keys.
pub(super) type Numbered<K, V> = HashMap<K, V, BuildHasherDefault<Mixed>>;

/// A map whose keys are names, which may be from anybody's tarball: mixed from a number that nobody knows.
pub(super) type Named<V> = HashMap<Box<str>, V, Unknown>;

/// Where the hashes of a map begin.
#[derive(Clone, Copy)]
pub(super) struct Unknown(u64);

impl Default for Unknown {
    fn default() -> Unknown {
        Unknown(RandomState::new().build_hasher().finish())
    }
}

impl BuildHasher for Unknown {
    type Hasher = Mixed;

    fn build_hasher(&self) -> Mixed {
        Mixed(self.0)
    }
}

/// The finisher of `SplitMix64` over every number of a key.
#[derive(Clone, Copy, Default)]
pub(super) struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        words.iter().for_each(|&word| self.write_u64(u64::from_le_bytes(word)));
        self.write_u64(rest.iter().fold(1, |number, &byte| number << 8 | u64::from(byte)));
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        let mut mixed = (self.0 ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.0 = mixed ^ mixed >> 31;
    }
}
