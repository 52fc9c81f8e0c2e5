//! Free space of a file system: the ranges of a provider that it says nothing is in.
//!
//! A format finds them by its own bitmap, piece by piece. Everything that is not found is used. A
//! file system that was not unmounted, or that contradicts itself, is refused: its bitmap cannot be
//! trusted.

use crate::base::error::Errno;
use std::fmt;
use std::ops::Range;

/// A taker of free ranges, in bytes of the provider and in ascending order.
pub type Found<'a> = dyn FnMut(Range<u64>) + 'a;

/// Reason for which free space is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsure {
    /// Failed read, at that byte of the provider.
    Failed(u64, Errno),
    /// File system that was not unmounted, with what says so.
    Unclean(&'static str),
    /// Field or bitmap that cannot be right.
    Damaged(String),
    /// Feature or size that is not understood here.
    Unknown(String),
}

impl fmt::Display for Unsure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsure::Failed(at, errno) => write!(f, "{errno} at byte {at} of it"),
            Unsure::Unclean(found) => write!(f, "it was not unmounted: {found}"),
            Unsure::Damaged(found) => write!(f, "it is damaged: {found}"),
            Unsure::Unknown(found) => write!(f, "it is not understood: {found}"),
        }
    }
}

/// Shorthand for a damaged field or bitmap.
pub(super) fn damaged<T>(found: impl Into<String>) -> Result<T, Unsure> {
    Err(Unsure::Damaged(found.into()))
}

/// Visits the runs of clear bits among the first `count` bits of `bitmap`, the lowest bit of a byte
/// first; returns how many bits are clear. `None` if the bitmap is shorter.
pub(super) fn clear_bits(
    bitmap: &[u8],
    count: u64,
    each: &mut dyn FnMut(Range<u64>),
) -> Option<u64> {
    let (mut open, mut clear) = (None, 0);
    let mut end = |open: &mut Option<u64>, at: u64| {
        if let Some(start) = open.take() {
            clear += at - start;
            each(start..at);
        }
    };
    let mut at = 0;
    while at < count {
        let byte = *bitmap.get(usize::try_from(at / 8).ok()?)?;
        match byte {
            0xff if at.is_multiple_of(8) => end(&mut open, at),
            0 if at.is_multiple_of(8) => {
                open.get_or_insert(at);
            }
            _ if byte >> (at % 8) & 1 == 1 => {
                end(&mut open, at);
                at += 1;
                continue;
            }
            _ => {
                open.get_or_insert(at);
                at += 1;
                continue;
            }
        }
        at += 8;
    }
    end(&mut open, count);
    Some(clear)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_clear_bits_are_those_that_are_counted_one_by_one() {
        let mut state = 1_u64;
        for count in [0, 1, 7, 8, 9, 63, 64, 1000, 4096] {
            for fill in 0..5 {
                let bitmap: Vec<u8> = (0..512)
                    .map(|_| {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let byte = state.to_le_bytes()[7];
                        match fill {
                            0 => 0,
                            1 => 0xff,
                            2 => [0, 0xff][usize::from(byte & 1)],
                            3 => byte,
                            _ => [0, 0xff, byte][usize::from(byte % 3)],
                        }
                    })
                    .collect();
                let mut runs = Vec::new();
                let clear = clear_bits(&bitmap, count, &mut |run| runs.push(run)).unwrap();
                let is_clear =
                    |bit: &u64| bitmap[usize::try_from(bit / 8).unwrap()] >> (bit % 8) & 1 == 0;
                let wanted: Vec<u64> = (0..count).filter(is_clear).collect();
                let found: Vec<u64> = runs.iter().cloned().flatten().collect();
                assert_eq!((found, clear), (wanted.clone(), wanted.len() as u64));
                assert!(runs.windows(2).all(|two| two[0].end < two[1].start));
            }
        }
        assert_eq!(clear_bits(&[0], 9, &mut |_| {}), None);
    }
}
