//! Pages that a set with parity reads and writes for a write that fills no whole stripe.
//!
//! md counts in pages: those of all members at one address make a stripe. A stripe of which some
//! data change needs its new parity from one of two sources: the old data and the old parity
//! (read-modify-write), or the data that stay (reconstruct-write). It takes the one that reads
//! less. A page that is written in part is read first.
//!
//! # Sources
//! Linux `drivers/md/raid5.c`, `handle_stripe_dirtying`. `trueline_sim::world` makes the same
//! writes in virtual time, and a test there holds both to each other.

use super::cost::ratio;
use super::{gcd, round_down};
use crate::base::size::PAGE;

/// Shape of a set with parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParityRows {
    /// Size of a chunk in bytes.
    pub chunk: u64,
    /// Chunks of data in a row.
    pub data: u64,
    /// Chunks of parity in a row: 1, or of RAID6 2.
    pub parity: u64,
}

/// Pages of the members that one write of the set takes, nothing of it in the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StripeWrite {
    /// Pages read before anything is written.
    pub reads: u64,
    /// Pages written, those of the parity among them.
    pub writes: u64,
}

impl ParityRows {
    /// Bytes of data in a row, the full stripe; `None` above 2^48, which no set has.
    pub fn full_stripe(self) -> Option<u64> {
        let sane = self.data > 0 && self.chunk > 0 && self.chunk.is_multiple_of(PAGE);
        self.chunk.checked_mul(self.data).filter(|&row| sane && row <= 1 << 48)
    }

    /// The write of one full stripe of bytes that begins `remainder` bytes past a row. `None` for
    /// shapes that no set has.
    pub fn full_write(self, remainder: u64) -> Option<StripeWrite> {
        let row = self.full_stripe()?;
        let remainder = remainder % row;
        // Chunks of the first row before the write, and bytes of the next one before it.
        let (before, within) = (remainder / self.chunk, remainder % self.chunk);
        let (pages, lower) = (self.chunk / PAGE, round_down(within, PAGE) / PAGE);
        let cut = u64::from(!within.is_multiple_of(PAGE));
        let rest = self.data - before;
        // Below the place within the chunk the first row lacks one chunk more, and the second has
        // it.
        let below = self.stripe(rest - 1, 0).and(self.stripe(before + 1, 0)).times(lower);
        let at = self.stripe(rest - 1, 1).and(self.stripe(before, 1)).times(cut);
        let above = self.stripe(rest, 0).and(self.stripe(before, 0)).times(pages - lower - cut);
        Some(below.and(at).and(above))
    }

    /// A write to `whole` pages of a stripe and to `part` others in part.
    fn stripe(self, whole: u64, part: u64) -> StripeWrite {
        if whole + part == 0 {
            return StripeWrite::default();
        }
        let (modify, rebuild) = (whole + self.parity, self.data - whole - part);
        StripeWrite { reads: part + modify.min(rebuild), writes: whole + part + self.parity }
    }

    /// Bytes read and written for a full stripe of bytes that begins `remainder` bytes past a row,
    /// relative to one that fills a row. `None` for shapes that no set has.
    pub fn factor(self, remainder: u64) -> Option<f64> {
        let (off, on) = (self.full_write(remainder)?, self.full_write(0)?);
        let (a, b) = (off.reads + off.writes, on.reads + on.writes);
        let g = gcd(a, b).max(1);
        Some(ratio(a / g, b / g))
    }
}

impl StripeWrite {
    fn and(self, other: StripeWrite) -> StripeWrite {
        StripeWrite { reads: self.reads + other.reads, writes: self.writes + other.writes }
    }

    fn times(self, count: u64) -> StripeWrite {
        StripeWrite { reads: self.reads * count, writes: self.writes * count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::topology::is_whole;

    /// The same, page by page and byte by byte.
    fn counted(rows: ParityRows, remainder: u64) -> StripeWrite {
        let row = rows.chunk * rows.data;
        let mut sum = StripeWrite::default();
        for number in 0..2 {
            for page in 0..rows.chunk / PAGE {
                let covered = |nth: u64| {
                    let from = number * row + nth * rows.chunk + page * PAGE;
                    (from.max(remainder)..(from + PAGE).min(remainder + row)).count()
                };
                let pages: Vec<usize> = (0..rows.data).map(covered).collect();
                let asked = pages.iter().filter(|&&bytes| bytes > 0).count() as u64;
                let whole = pages.iter().filter(|&&bytes| bytes as u64 == PAGE).count() as u64;
                if asked > 0 {
                    // Pages written in part are in the cache by then.
                    let modify = whole + rows.parity;
                    let rebuild = rows.data - asked;
                    sum.reads += asked - whole + modify.min(rebuild);
                    sum.writes += asked + rows.parity;
                }
            }
        }
        sum
    }

    #[test]
    fn closed_form_is_what_counting_gives() {
        for (data, parity) in [(1, 1), (2, 1), (3, 1), (3, 2), (5, 2), (8, 1)] {
            for chunk in [PAGE, 4 * PAGE] {
                let rows = ParityRows { chunk, data, parity };
                let row = chunk * data;
                let places = (0..row).step_by(512).chain([1, PAGE - 1, row - 1, row, row + 512]);
                for remainder in places {
                    assert_eq!(
                        rows.full_write(remainder),
                        Some(counted(rows, remainder % row)),
                        "{rows:?} {remainder}"
                    );
                }
            }
        }
    }

    /// Four members of a RAID5 with chunks of 64 KiB: a partition at 1 MiB begins one chunk past a
    /// row of 192 KiB, one at sector 63 within a page.
    #[test]
    fn a_row_is_written_without_a_read_and_two_halves_are_not() {
        let rows = ParityRows { chunk: 64 << 10, data: 3, parity: 1 };
        let pages =
            |reads: u64, writes: u64| Some(StripeWrite { reads: reads * 16, writes: writes * 16 });
        assert_eq!(rows.full_write(0), pages(0, 4));
        assert_eq!(rows.full_write(1 << 20), pages(1 + 2, 3 + 2));
        assert_eq!(rows.factor(1 << 20), Some(2.0));
        let at_63 = rows.full_write(63 * 512).unwrap();
        assert!(!is_whole(63 * 512, PAGE));
        assert_eq!((at_63.reads, at_63.writes), (7 * 3 + 3, 7 * 5 + 6 + 8 * 4));
    }

    #[test]
    fn shapes_that_no_set_has_cost_nothing() {
        for (chunk, data) in [(0, 3), (PAGE, 0), (512, 3), (1 << 40, 1 << 20), (!4095, 3)] {
            assert_eq!(ParityRows { chunk, data, parity: 1 }.full_write(512), None);
        }
    }
}
