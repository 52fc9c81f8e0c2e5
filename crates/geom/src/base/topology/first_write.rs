//! First write of a guest to a cluster of a container: the ranges of files that it touches, and the
//! device operations that these take.
//!
//! A rewrite of a cluster that is there touches its data alone. A first write gives the cluster a
//! place, so that the tables of the format change too, and some writers fill the rest of the
//! cluster. Each class lists the ranges, with the program whose way of writing it is.
//!
//! # A lower bound
//! Of a table the bytes that change are counted, once, in the unit that holds them. The table
//! itself is in memory, and no new table is made. No writer writes fewer units for one cluster
//! alone; one that keeps tables back may write the entries of several clusters at once, later. A
//! unit of a table is read first where a writer writes the entry alone; one that has the whole unit
//! in memory, and writes that, has no need to.

use super::{Grain, Topology, Translation, gcd};

/// Bytes of the guest's write that is priced.
pub const GUEST_WRITE: u64 = 4096;

/// Range of a file that a first write reads or writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TouchedRange {
    /// Name of the bytes, in the words of the format: `L2 entry`.
    pub what: &'static str,
    /// Index of the consumer that has the file.
    pub consumer: usize,
    /// True for bytes that are read, of a parent; false for bytes that are written.
    pub is_read: bool,
    /// Addresses in the file at which the range may begin.
    pub starts: Grain,
    /// Length of the range in bytes.
    pub length: u64,
}

/// Operations of a range on a device that reads and writes whole units: those of one unit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitOps {
    /// Units read, those included that are written in part.
    pub reads: u64,
    /// Units that are written.
    pub writes: u64,
}

impl TouchedRange {
    /// Device operations on the consumer of this topology, where the range begins as near behind a
    /// boundary as it can.
    pub fn operations(&self, below: &Topology) -> UnitOps {
        let unit = below.judged_unit();
        let size = gcd(self.starts.size, unit.size);
        let past = Grain { size, phase: unit.phase % size }.remainder(self.starts.phase);
        let start = unit.phase.saturating_add(past);
        let touched = unit.work(start, self.length, false).done;
        if self.is_read {
            return UnitOps { reads: touched, writes: 0 };
        }
        let all = unit.work(start, self.length, true).done;
        UnitOps { reads: all.saturating_sub(touched), writes: touched }
    }
}

impl Topology {
    /// Unit by which the operations of a write are counted: that of [`Topology::unit`], or, where
    /// none is known, the sector.
    pub fn judged_unit(&self) -> Grain {
        self.unit().map_or(Grain::multiples(self.sector), |fact| fact.grain)
    }
}

/// Ranges that the first write of [`GUEST_WRITE`] bytes to a cluster touches.
///
/// The write begins where a cluster does; clusters that are smaller are all new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstWrite {
    /// Clusters that get a place.
    clusters: u64,
    ranges: Vec<TouchedRange>,
}

impl FirstWrite {
    /// A writer that writes the guest's bytes and no more: what else is in the cluster is zero
    /// without being written, or a bitmap says that it is not there.
    pub fn plain(known: &Translation) -> FirstWrite {
        let starts = known.starts(GUEST_WRITE.min(known.allocation));
        FirstWrite::of(known, starts, GUEST_WRITE)
    }

    /// A writer that fills the rest of each part of `part` bytes of a cluster, of which the guest
    /// writes some: with the bytes of consumer `parent`, which it reads, or else with zeros.
    pub fn filled(known: &Translation, part: u64, parent: Option<usize>) -> FirstWrite {
        let part = part.max(1);
        let length = GUEST_WRITE.div_ceil(part).saturating_mul(part);
        let mut first = FirstWrite::of(known, known.starts(part), length);
        let rest = length.saturating_sub(GUEST_WRITE);
        if let (Some(consumer), 1..) = (parent, rest) {
            // Behind the guest's bytes, at the same address in the parent.
            let starts = Grain::multiples(gcd(part, GUEST_WRITE));
            let read = TouchedRange {
                what: "rest of the cluster",
                consumer,
                is_read: true,
                starts,
                length: rest,
            };
            first.ranges.insert(0, read);
        }
        first
    }

    fn of(known: &Translation, starts: Grain, length: u64) -> FirstWrite {
        let clusters = GUEST_WRITE.div_ceil(known.allocation.max(1));
        FirstWrite { clusters, ranges: Vec::new() }.range("data", starts, length)
    }

    /// The same, with the data in the file of another consumer.
    #[must_use]
    pub fn in_file(mut self, consumer: usize) -> FirstWrite {
        let data = self.ranges.iter_mut().filter(|range| !range.is_read);
        data.for_each(|range| range.consumer = consumer);
        self
    }

    /// The same, with an entry of `bytes` bytes in a table for each cluster, one after another.
    #[must_use]
    pub fn entry(self, what: &'static str, bytes: u64) -> FirstWrite {
        let length = bytes.saturating_mul(self.clusters);
        self.range(what, Grain::multiples(bytes), length)
    }

    /// The same, with `length` bytes more that are written, from an address of `starts` on.
    #[must_use]
    pub fn range(mut self, what: &'static str, starts: Grain, length: u64) -> FirstWrite {
        self.ranges.push(TouchedRange { what, consumer: 0, is_read: false, starts, length });
        self
    }

    /// The ranges, reads of a parent first.
    pub fn ranges(&self) -> &[TouchedRange] {
        &self.ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::topology::{Fact, Source, Trust, Why};

    /// A file on a drive with units of `size` bytes.
    fn file(size: u64) -> Topology {
        let grain = Grain::new(size, 0).unwrap();
        let fact =
            Fact { grain, why: Why::Physical, source: Source::Assumed, trust: Trust::Assumed };
        Topology::new(512, 1 << 30).with(fact)
    }

    /// Reads and writes of each range on units of `size` bytes.
    fn priced(first: &FirstWrite, size: u64) -> Vec<(&'static str, u64, u64)> {
        let one = |range: &TouchedRange| {
            let UnitOps { reads, writes } = range.operations(&file(size));
            (range.what, reads, writes)
        };
        first.ranges().iter().map(one).collect()
    }

    #[test]
    fn an_entry_is_a_unit_read_and_written_and_data_are_what_they_cover() {
        let known = Translation::by_format(64 << 10, 0);
        let first = FirstWrite::plain(&known).entry("L2 entry", 8).entry("refcount", 2);
        let tables = [("L2 entry", 1, 1), ("refcount", 1, 1)];
        for (unit, data) in [(512, (0, 8)), (4096, (0, 1)), (16384, (1, 1))] {
            let wanted = [&[("data", data.0, data.1)], &tables[..]].concat();
            assert_eq!(priced(&first, unit), wanted, "{unit}");
        }
    }

    #[test]
    fn a_cluster_is_filled_from_its_parent_or_with_zeros() {
        let known = Translation::by_format(64 << 10, 0);
        let rest = ("rest of the cluster", 15, 0);
        assert_eq!(
            priced(&FirstWrite::filled(&known, 64 << 10, Some(1)), 4096),
            [rest, ("data", 0, 16)]
        );
        assert_eq!(priced(&FirstWrite::filled(&known, 64 << 10, None), 4096), [("data", 0, 16)]);
        // Parts of 2 KiB of an extended entry, and of 8 KiB.
        assert_eq!(priced(&FirstWrite::filled(&known, 2 << 10, Some(1)), 4096), [("data", 0, 1)]);
        let rest = ("rest of the cluster", 1, 0);
        assert_eq!(
            priced(&FirstWrite::filled(&known, 8 << 10, Some(1)), 4096),
            [rest, ("data", 0, 2)]
        );
        // A VDI of qemu-img: a MiB that begins 512 bytes past a unit.
        let known = Translation::by_format(1 << 20, 512);
        assert_eq!(priced(&FirstWrite::filled(&known, 1 << 20, None), 4096), [("data", 2, 257)]);
    }

    #[test]
    fn small_clusters_are_all_new() {
        let known = Translation::by_format(512, 0);
        let first = FirstWrite::plain(&known).entry("L2 entry", 8);
        assert_eq!(first.ranges()[1].length, 64);
        // They may lie anywhere: at best on a unit.
        assert_eq!(priced(&first, 4096), [("data", 0, 1), ("L2 entry", 1, 1)]);
        let grains = Translation::by_format(1536, 0);
        let first = FirstWrite::filled(&grains, 1536, Some(1));
        assert_eq!((first.ranges()[0].length, first.ranges()[1].length), (512, 4608));
    }

    /// Brute force over all places of a class: none takes fewer units than the one that is counted.
    #[test]
    fn no_place_writes_fewer_units() {
        for (size, phase, length) in
            (1..=8).flat_map(|s| (0..s).flat_map(move |p| (0..20).map(move |l| (s, p, l))))
        {
            let starts = Grain::new(size, phase).unwrap();
            let range = TouchedRange { what: "", consumer: 0, is_read: false, starts, length };
            for unit in 1..=8 {
                let grain = Grain::new(unit, unit / 3).unwrap();
                let fact = Fact { grain, ..file(2).facts[0] };
                let below = Topology::new(1, 1 << 20).with(fact);
                // A unit of one byte counts nothing, as the sector of this file does.
                let places = (0..64).map(|n| phase + n * size);
                let least = places.map(|start| grain.work(start, length, false).done).min();
                let place = format!("{length} bytes on {starts:?}, {grain:?}");
                assert_eq!(Some(range.operations(&below).writes), least, "{place}");
            }
        }
    }
}
