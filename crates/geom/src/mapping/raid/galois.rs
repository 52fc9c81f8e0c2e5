//! Arithmetic of parity: bytes as elements of GF(2^8), with the polynomial 0x11d and the generator
//! 2.
//!
//! P is the sum of the data, Q the sum of the data each times 2 to the power of its place.
//!
//! # Sources
//! H. P. Anvin, "The mathematics of RAID-6"; Linux `lib/raid6/recov.c`.

/// Powers of 2, twice over, so that a sum of two logarithms needs no reduction.
const EXP: [u8; 512] = tables().0;
/// Logarithms to base 2; that of 0 is never used.
const LOG: [u8; 256] = tables().1;

#[allow(clippy::cast_possible_truncation, reason = "below 256 by the reduction above it")]
const fn tables() -> ([u8; 512], [u8; 256]) {
    let (mut exp, mut log) = ([0; 512], [0; 256]);
    let (mut power, mut value) = (0, 1u16);
    while power < 512 {
        exp[power] = value as u8;
        if power < 255 {
            log[value as usize] = power as u8;
        }
        value <<= 1;
        if value & 0x100 != 0 {
            value ^= 0x11d;
        }
        power += 1;
    }
    (exp, log)
}

/// 2 to the power of `place`.
pub fn coefficient(place: usize) -> u8 {
    EXP[place % 255]
}

/// The product of two elements.
fn times(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        0
    } else {
        EXP[usize::from(LOG[usize::from(a)]) + usize::from(LOG[usize::from(b)])]
    }
}

/// The inverse of an element other than 0.
fn inverse(a: u8) -> u8 {
    EXP[255 - usize::from(LOG[usize::from(a)])]
}

/// Adds `from`, times `factor`, to `sum`.
pub fn add(sum: &mut [u8], from: &[u8], factor: u8) {
    if factor == 1 {
        sum.iter_mut().zip(from).for_each(|(sum, byte)| *sum ^= byte);
    } else {
        sum.iter_mut().zip(from).for_each(|(sum, byte)| *sum ^= times(*byte, factor));
    }
}

/// Turns the rest of Q, which is that of one chunk at `place`, into the chunk.
pub fn from_q(rest: &mut [u8], place: usize) {
    let factor = inverse(coefficient(place));
    rest.iter_mut().for_each(|byte| *byte = times(*byte, factor));
}

/// Turns the rests of P and Q, which are those of two chunks, into the first of them: `p` becomes
/// the chunk at place `own`; the other is at `other`.
pub fn from_both(p: &mut [u8], q: &[u8], own: usize, other: usize) {
    // P = a + b and Q = A·a + B·b give a = (B·P + Q) / (A + B).
    let (a, b) = (coefficient(own), coefficient(other));
    let divisor = inverse(a ^ b);
    for (p, q) in p.iter_mut().zip(q) {
        *p = times(times(*p, b) ^ q, divisor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_comes_back() {
        let chunks: Vec<Vec<u8>> =
            (1..=9u8).map(|n| (0..=255u8).map(|x| x.wrapping_mul(n) ^ n).collect()).collect();
        let sum = |without: &[usize], q: bool| {
            let mut sum = vec![0; 256];
            for (place, chunk) in chunks.iter().enumerate().filter(|(at, _)| !without.contains(at))
            {
                add(&mut sum, chunk, if q { coefficient(place) } else { 1 });
            }
            sum
        };
        for own in 0..chunks.len() {
            let mut rest = sum(&[], true);
            add(&mut rest, &sum(&[own], true), 1);
            from_q(&mut rest, own);
            assert_eq!(rest, chunks[own]);
            for other in (0..chunks.len()).filter(|&other| other != own) {
                let (mut p, mut q) = (sum(&[], false), sum(&[], true));
                add(&mut p, &sum(&[own, other], false), 1);
                add(&mut q, &sum(&[own, other], true), 1);
                from_both(&mut p, &q, own, other);
                assert_eq!(p, chunks[own]);
            }
        }
    }
}
