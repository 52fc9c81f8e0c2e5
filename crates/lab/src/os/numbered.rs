//! Maps whose keys are numbers that a host counts out itself: places, owners, tags. No input
//! chooses them, so they need no hash that withstands chosen collisions; several lookups a request
//! make a fast one worthwhile.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

/// A map with numeric keys that no input chooses.
pub(super) type Numbered<K, V> = HashMap<K, V, BuildHasherDefault<Mixed>>;

/// A map with names as keys. They may come from a hostile tarball, so the hash starts from a secret
/// random number.
pub(super) type Named<V> = HashMap<Box<str>, V, Unknown>;

/// The random start of a map's hashes.
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
