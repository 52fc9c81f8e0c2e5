//! Residue classes of addresses, and whole units.

use std::cmp::Ordering;

/// The addresses `x` with `x % size == phase`; `size >= 1`, `phase < size`, both in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grain {
    pub(super) size: u64,
    pub(super) phase: u64,
}

impl Grain {
    /// The grain of `size` bytes whose boundaries lie at `phase`; `None` if `size` is 0. A phase
    /// past the size is reduced.
    pub fn new(size: u64, phase: u64) -> Option<Grain> {
        (size > 0).then(|| Grain { size, phase: phase % size })
    }

    /// The multiples of `size` bytes; of 0, every address.
    pub fn multiples(size: u64) -> Grain {
        Grain { size: size.max(1), phase: 0 }
    }

    /// The class of one address of a file: the next one in it is past the end of any.
    pub fn only(address: u64) -> Grain {
        const APART: u64 = 1 << 62;
        Grain { size: APART, phase: address % APART }
    }

    /// Distance from one boundary to the next, in bytes; at least 1.
    pub fn size(self) -> u64 {
        self.size
    }

    /// The first boundary at or after address 0, in bytes; Linux's `alignment_offset`.
    pub fn phase(self) -> u64 {
        self.phase
    }

    /// True if address `x` is a boundary.
    pub fn contains(self, x: u64) -> bool {
        x % self.size == self.phase
    }

    /// Bytes from the last boundary up to `x`; GEOM's `stripeoffset` for `x` = 0.
    pub fn remainder(self, x: u64) -> u64 {
        add_mod(x % self.size, self.size - self.phase, self.size)
    }

    /// The same boundaries seen by a slice that begins at `start`.
    pub fn shift(self, start: u64) -> Grain {
        let phase = add_mod(self.phase, self.size - start % self.size, self.size);
        Grain { size: self.size, phase }
    }

    /// The first boundary at or after `x`, if it is below 2^64.
    pub fn next(self, x: u64) -> Option<u64> {
        match self.remainder(x) {
            0 => Some(x),
            r => x.checked_add(self.size - r),
        }
    }

    /// The last boundary at or before `x`, if there is one.
    pub fn previous(self, x: u64) -> Option<u64> {
        x.checked_sub(self.remainder(x))
    }

    /// True if a whole unit lies within the first `length` bytes.
    pub fn has_whole(self, length: u64) -> bool {
        self.phase.checked_add(self.size).is_some_and(|end| end <= length)
    }

    /// Units between boundaries that `length` bytes at `start` touch, whole or in part.
    pub fn touched(self, start: u64, length: u64) -> u64 {
        let end = u128::from(self.remainder(start)) + u128::from(length);
        // At most one more than a u64 holds, of units of one byte.
        if length == 0 {
            0
        } else {
            u64::try_from(end.div_ceil(u128::from(self.size))).unwrap_or(u64::MAX)
        }
    }

    /// True if `length` bytes at `start` touch more units than as many bytes must.
    pub fn cuts(self, start: u64, length: u64) -> bool {
        self.touched(start, length) > length.div_ceil(self.size)
    }

    /// Addresses in both grains (Chinese remainder); `None` if there are none, or no two within
    /// 2^64 of each other.
    pub fn intersect(self, other: Grain) -> Option<Grain> {
        let (s1, s2) = (i128::from(self.size), i128::from(other.size));
        let g = i128::from(gcd(self.size, other.size));
        let gap = i128::from(other.phase) - i128::from(self.phase);
        if gap % g != 0 {
            return None;
        }
        let (m1, m2) = (s1 / g, s2 / g);
        // Neither factor reaches 2^64, so the product fits u128, though not i128.
        let k = (gap / g).rem_euclid(m2).unsigned_abs() * inverse(m1, m2).unsigned_abs()
            % m2.unsigned_abs();
        let size = u64::try_from(s1.unsigned_abs() * m2.unsigned_abs()).ok()?;
        let phase = u64::try_from(u128::from(self.phase) + s1.unsigned_abs() * k).ok()?;
        Grain::new(size, phase)
    }

    /// Boundaries of this grain that are also on `other`; if there are none, the first after each
    /// of `other`'s.
    pub(super) fn within(self, other: Grain) -> Option<Grain> {
        let after = || Grain::new(lcm(self.size, other.size)?, self.next(other.phase)?);
        self.intersect(other).or_else(after)
    }

    /// The class that this grain of **one** member allows for a stripe of `members` members in
    /// chunks of `chunk` bytes.
    ///
    /// If the grain divides the chunk, every address class of the member is the same class of the
    /// set, provided chunks begin on the grain. If not, only the rows whose chunks begin on the
    /// grain are whole: the class is stretched to whole rows. `None`: no row ever begins on the
    /// grain, so an I/O that leaves its chunk always cuts a unit.
    pub(super) fn stretch(self, chunk: u64, members: u64) -> Option<Grain> {
        if members == 1 {
            // The set's addresses are the member's.
            return Some(self);
        }
        if chunk.is_multiple_of(self.size) {
            return (self.phase == 0).then_some(self);
        }
        let rows = Grain::new(chunk, 0)?.intersect(self)?;
        // `rows` are member addresses; a row of the set is `members` times as long.
        Grain::new(rows.size.checked_mul(members)?, rows.phase.checked_mul(members)?)
    }

    /// The smallest class that this one, stretched to rows, can be thinned out from. Where the
    /// members' `grains` differ, or are no powers of two, addresses between rows may cut every
    /// member on its grain too.
    pub(super) fn tighten(self, chunk: u64, members: u64, grains: &[(u64, Grain)]) -> Grain {
        // Within chunks nothing was stretched, and the class from `stretch` is tight.
        if chunk.is_multiple_of(self.size) || self.size.checked_mul(2).is_none() {
            return self;
        }
        let whole = |x: u64| {
            grains.iter().all(|&(member, grain)| grain.contains(cut(x, chunk, members, member)))
        };
        let mut tight = self;
        for q in 2..=FACTORS {
            // Ascending order: where a prime factor fails, every multiple of it fails too.
            while let Some(finer) = tight
                .size
                .is_multiple_of(q)
                .then(|| Grain { size: tight.size / q, phase: tight.phase % (tight.size / q) })
            {
                // The members' boundaries repeat after `self.size`, so one such stretch shows all.
                let points = self.size / finer.size;
                if points > POINTS || !(0..points).all(|i| whole(finer.phase + i * finer.size)) {
                    break;
                }
                tight = finer;
            }
        }
        tight
    }
}

/// Largest factor that [`Grain::tighten`] tries: above that of any unit in use.
const FACTORS: u64 = 64;
/// Largest number of points that [`Grain::tighten`] looks at for one factor: below any delay that a
/// user notices.
const POINTS: u64 = 4096;

/// Bytes of `member` that lie before address `x` of a stripe: the point where an I/O that begins or
/// ends at `x` cuts it.
fn cut(x: u64, chunk: u64, members: u64, member: u64) -> u64 {
    let (n, within) = (x / chunk, x % chunk);
    let (row, at) = (n / members, n % members);
    match member.cmp(&at) {
        Ordering::Less => (row + 1) * chunk,
        Ordering::Equal => row * chunk + within,
        Ordering::Greater => row * chunk,
    }
}

/// `(a + b) mod m` for `a < m`, `b <= m`, without overflow.
fn add_mod(a: u64, b: u64, m: u64) -> u64 {
    let sum = (u128::from(a) + u128::from(b)) % u128::from(m);
    // Reduced by a u64, so it fits one.
    u64::try_from(sum).unwrap_or(0)
}

/// Greatest common divisor; `gcd(a, 0)` is `a`.
pub fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Least common multiple; `None` past 2^64 or if either is 0.
pub fn lcm(a: u64, b: u64) -> Option<u64> {
    (a > 0 && b > 0).then_some(())?;
    (a / gcd(a, b)).checked_mul(b)
}

/// The inverse of `a` modulo `m` (coprime), by extended Euclid; 0 when `m` is 1.
fn inverse(a: i128, m: i128) -> i128 {
    let (mut r0, mut r1, mut t0, mut t1) = (m, a.rem_euclid(m), 0, 1);
    while r1 != 0 {
        let q = r0 / r1;
        (r0, r1) = (r1, r0 - q * r1);
        (t0, t1) = (t1, t0 - q * t1);
    }
    t0.rem_euclid(m)
}

/// Largest power of two that divides `start`; `None` for 0, which every power divides.
pub fn largest_grain(start: u64) -> Option<u64> {
    (start != 0).then(|| 1 << start.trailing_zeros())
}

/// True if `value` is a whole number of `unit`s (`unit` 0: false). Almost every unit is a power of
/// two, and a division would cost as much as the rest of a request's audit.
#[inline]
pub fn is_whole(value: u64, unit: u64) -> bool {
    if unit.is_power_of_two() {
        value & (unit - 1) == 0
    } else {
        unit != 0 && value.is_multiple_of(unit)
    }
}

/// `value` rounded down to a whole number of `unit`s (`unit` 0: `value` itself).
pub fn round_down(value: u64, unit: u64) -> u64 {
    if unit == 0 { value } else { value - value % unit }
}

/// `value` rounded up to a whole number of `unit`s (`unit` 0: `value` itself); `None` past 2^64.
pub fn round_up(value: u64, unit: u64) -> Option<u64> {
    if unit == 0 { Some(value) } else { value.checked_next_multiple_of(unit) }
}

/// The `unit`s that `start..end` touches, whole or in part, counted from address 0: the first, and
/// the one after the last (`unit` 0: those of one byte).
pub fn units(start: u64, end: u64, unit: u64) -> (u64, u64) {
    start.checked_div(unit).map_or((start, end), |first| (first, end.div_ceil(unit)))
}
