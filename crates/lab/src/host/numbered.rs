//! Maps whose keys are numbers that a host counts out itself: places, owners, tags. Nobody chooses them to collide, so a key need not be
//! hashed as if somebody did; it is looked up several times a request.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map of such keys.
pub(super) type Numbered<K, V> = HashMap<K, V, BuildHasherDefault<Mixed>>;

/// The finisher of `SplitMix64` over every number of a key.
#[derive(Clone, Copy, Default)]
pub(super) struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
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
