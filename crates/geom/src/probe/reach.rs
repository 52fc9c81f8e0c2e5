//! Places in which labels are looked for although nothing leads there, where a read is a round
//! trip.

/// First bytes of a provider that hold its label, if it is none of the few that lie further in.
pub(crate) const NEAR_FRONT: u64 = 9 << 10;
/// Last bytes that do: the label of md's version 1.0 is up to 12 KiB before the end.
pub(crate) const NEAR_END: u64 = 12 << 10;
/// Bytes at either end in which the others lie: md's version 0.90, DDF, Promise's firmware RAID.
pub(crate) const REACH: u64 = 132 << 10;
/// Byte of a partition beyond [`REACH`] at which a label is looked for, that of a member of VMFS.
/// Others there are the second ones of ZFS and UFS, and what a member of VMFS holds.
const FURTHER: u64 = 1 << 20;

/// Part of a provider in which labels are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The first [`NEAR_FRONT`] and the last [`NEAR_END`] bytes: nearly every label is there.
    Near,
    /// The first and the last [`REACH`] bytes besides, but for what lies before that byte: the
    /// provider's contents are known up to there.
    From(u64),
    /// All of the provider, of which nothing is known.
    All,
}

impl Reach {
    /// True if it has the byte `offset` of `length`, of a partition or of a disk or set.
    pub(crate) fn contains(self, offset: u64, length: u64, is_partition: bool) -> bool {
        let to_end = length.saturating_sub(offset);
        let is_near = offset < NEAR_FRONT || to_end <= NEAR_END;
        let in_reach = offset < REACH || to_end <= REACH;
        match self {
            Reach::Near => is_near,
            Reach::From(known) => is_near || offset >= known && in_reach,
            Reach::All => in_reach || !is_partition || offset == FURTHER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_reached_from_near_to_far() {
        const K: u64 = 1 << 10;
        let length = 1 << 30;
        let at = |reach: Reach, is_partition| {
            let places = [0, 8 * K, 16 * K, 64 * K, 256 * K, FURTHER, 2 * FURTHER];
            let ends = [length - 128 * K, length - 64 * K, length - 8 * K];
            let has = |&at: &u64| reach.contains(at, length, is_partition);
            places.iter().chain(&ends).map(|at| u8::from(has(at))).collect::<Vec<u8>>()
        };
        assert_eq!(at(Reach::Near, true), [1, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(at(Reach::From(length), true), at(Reach::Near, true));
        assert_eq!(at(Reach::From(0), true), [1, 1, 1, 1, 0, 0, 0, 1, 1, 1]);
        assert_eq!(at(Reach::From(length - 100 * K), true), [1, 1, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(at(Reach::All, true), [1, 1, 1, 1, 0, 1, 0, 1, 1, 1]);
        assert_eq!(at(Reach::All, false), [1; 10]);
    }
}
