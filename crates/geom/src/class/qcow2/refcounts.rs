//! Refcounts as blocks of a qcow2 have them: 1 to 64 bits each, those of less than a byte from the
//! lowest bits on.

/// Bits of a refcount, as a power of two: 4, which is 16 bits, unless the image was made with
/// others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Width(pub(super) u32);

impl Width {
    /// Number of refcounts in `bytes` bytes.
    pub(super) fn count_in(self, bytes: u64) -> u64 {
        (bytes << 3) >> self.0
    }

    /// The byte of a block at which refcount `nth` begins, and its length in bytes.
    pub(super) fn place(self, nth: u64) -> (u64, usize) {
        ((nth << self.0) >> 3, 1 << self.0.saturating_sub(3))
    }

    /// Refcount `nth` of a block, given the bytes at its place.
    pub(super) fn get(self, nth: u64, bytes: &[u8]) -> u64 {
        let whole = bytes.iter().fold(0, |all: u64, &byte| all << 8 | u64::from(byte));
        if self.0 >= 3 { whole } else { whole >> self.shift(nth) & self.mask() }
    }

    /// Changes refcount `nth` of a block to `count`, which it has room for, in the bytes at its
    /// place.
    pub(super) fn set(self, nth: u64, bytes: &mut [u8], count: u64) {
        let (own, kept) = if self.0 >= 3 {
            (count, 0)
        } else {
            let others = bytes.first().copied().map_or(0, u64::from);
            (count << self.shift(nth), others & !(self.mask() << self.shift(nth)))
        };
        let all = (own | kept).to_be_bytes();
        let from = all.len().saturating_sub(bytes.len());
        bytes.copy_from_slice(&all[from..]);
    }

    fn shift(self, nth: u64) -> u64 {
        (nth << self.0) & 7
    }

    fn mask(self) -> u64 {
        (1 << (1_u32 << self.0)) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refcount_of_any_width_is_set_beside_others() {
        for order in 0..=6 {
            let width = Width(order);
            let mut block = [0xff_u8; 64];
            for nth in 0..width.count_in(64) {
                let (at, length) = width.place(nth);
                let at = usize::try_from(at).unwrap();
                let bytes = &mut block[at..at + length];
                assert_ne!(width.get(nth, bytes), 0);
                width.set(nth, bytes, 0);
                assert_eq!(width.get(nth, bytes), 0);
                width.set(nth, bytes, nth & 1);
                assert_eq!(width.get(nth, bytes), nth & 1, "{order} {nth}");
            }
            for nth in 0..width.count_in(64) {
                let (at, length) = width.place(nth);
                let at = usize::try_from(at).unwrap();
                assert_eq!(width.get(nth, &block[at..at + length]), nth & 1, "{order} {nth}");
            }
        }
        // As QEMU has two bits: the first refcount in the lowest.
        assert_eq!([0, 1, 2, 3].map(|nth| Width(1).get(nth, &[0b11_10_01_00])), [0, 1, 2, 3]);
        assert_eq!(Width(4).get(0, &[1, 2]), 0x102);
    }
}
