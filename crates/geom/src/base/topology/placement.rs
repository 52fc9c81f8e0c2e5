//! Placement of one I/O on a grain: its verdict, and the device operations it takes.

use super::{Fact, Grain, Topology, Trust, Why};

/// Verdict of one I/O on a grain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Placement {
    /// Both ends are on the grain: whole units, and nothing else.
    Aligned,
    /// At least as long as a unit, with an end off the grain.
    Misaligned,
    /// Smaller than a unit: part of one wherever it begins.
    Partial,
    /// No unit is known.
    Unknown,
}

impl Placement {
    /// All verdicts, in the order of [`Placement::index`].
    pub const ALL: [Placement; 4] =
        [Placement::Aligned, Placement::Misaligned, Placement::Partial, Placement::Unknown];

    /// Name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Placement::Aligned => "aligned",
            Placement::Misaligned => "misaligned",
            Placement::Partial => "partial",
            Placement::Unknown => "unknown",
        }
    }

    /// Verdict of a whole of which parts have these two: misaligned outweighs partial, partial
    /// outweighs unknown, unknown outweighs aligned.
    #[must_use]
    pub fn worse(self, other: Placement) -> Placement {
        let weight = |fit| match fit {
            Placement::Aligned => 0,
            Placement::Unknown => 1,
            Placement::Partial => 2,
            Placement::Misaligned => 3,
        };
        if weight(other) > weight(self) { other } else { self }
    }

    /// Index of this verdict in [`Placement::ALL`].
    pub fn index(self) -> usize {
        match self {
            Placement::Aligned => 0,
            Placement::Misaligned => 1,
            Placement::Partial => 2,
            Placement::Unknown => 3,
        }
    }
}

/// Operations of one I/O on a device that reads and writes whole units: one operation is a read or
/// write of one unit. As in the costs of findings, a unit of which only a part is written is read
/// first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceOps {
    /// Operations that the I/O takes where it lies.
    pub done: u64,
    /// Operations that as many bytes on the grain would take.
    pub needed: u64,
}

impl Grain {
    /// Verdict of an I/O of `length` bytes at `start`; an empty one touches nothing and is aligned.
    pub fn fit(self, start: u64, length: u64) -> Placement {
        self.fit_piece(start, length, length)
    }

    /// Verdict of `length` bytes at `start`, cut by a stack from a request of `request` bytes. A
    /// request of a unit or more is large enough, however small its pieces are cut.
    pub fn fit_piece(self, start: u64, length: u64, request: u64) -> Placement {
        if self.contains(start) && length.is_multiple_of(self.size) || length == 0 {
            Placement::Aligned
        } else if request < self.size {
            Placement::Partial
        } else {
            Placement::Misaligned
        }
    }

    /// Operations of an I/O of `length` bytes at `start`. With `write`, parts of units are read
    /// first.
    pub fn work(self, start: u64, length: u64, write: bool) -> DeviceOps {
        self.work_piece(start, length, 0, write)
    }

    /// Operations of `length` bytes at `start` on a device, cut by a stack from a request of which
    /// `before` bytes come first.
    ///
    /// A request needs as many units as its bytes fill on the grain. A piece accounts for those
    /// that begin in its part of the request: over the pieces the needs add up to the request's,
    /// and none exceeds what its own bytes need.
    pub fn work_piece(self, start: u64, length: u64, before: u64, write: bool) -> DeviceOps {
        let needed = match before {
            0 => length.div_ceil(self.size),
            _ => before.saturating_add(length).div_ceil(self.size) - before.div_ceil(self.size),
        };
        if self.contains(start) && length.is_multiple_of(self.size) {
            return DeviceOps { done: length / self.size, needed };
        }
        let touched = self.touched(start, length);
        let (head, tail) = (self.remainder(start), self.remainder(start.wrapping_add(length)));
        // An I/O within one unit has both ends in it, which is read once.
        let partial = (u64::from(head != 0) + u64::from(tail != 0)).min(touched);
        DeviceOps { done: touched.saturating_add(if write { partial } else { 0 }), needed }
    }
}

impl Topology {
    /// Boundary by which an I/O is judged: the read-modify-write unit, of several the largest.
    /// Where none is known, the smallest other one of which a part is never written alone.
    pub fn unit(&self) -> Option<&Fact> {
        let physical = self
            .counting()
            .filter(|fact| fact.why == Why::Physical)
            .max_by_key(|fact| fact.grain.size);
        physical.or_else(|| {
            self.counting().filter(|fact| fact.why.is_rmw()).min_by_key(|fact| fact.grain.size)
        })
    }

    /// Bytes of a chunk that is no whole number of units of `unit` bytes, so that no I/O keeps
    /// units whole across chunks; `None` if every chunk is.
    pub fn cut(&self, unit: u64) -> Option<u64> {
        let chunks = self
            .facts
            .iter()
            .filter(|fact| fact.why == Why::Chunk && fact.trust > Trust::Untrusted);
        chunks.map(|fact| fact.grain.size).find(|chunk| !chunk.is_multiple_of(unit))
    }

    /// True if address 0 is on the boundary for `why`; `None` where there is no such boundary.
    /// Where members of a set cannot agree on one, no address is on it.
    pub fn begins_on(&self, why: Why) -> Option<bool> {
        let own = self.counting().filter(|fact| fact.why == why).max_by_key(|fact| fact.grain.size);
        let clash = self.clashes.iter().any(|clash| clash.why == why).then_some(false);
        own.map(|fact| fact.grain.contains(0)).or(clash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every I/O on every grain up to 8 bytes, byte by byte.
    #[test]
    fn the_verdict_and_the_work_are_those_of_the_bytes() {
        for (size, phase) in (1..=8).flat_map(|size| (0..size).map(move |phase| (size, phase))) {
            let grain = Grain::new(size, phase).unwrap();
            for (start, length) in
                (0..20).flat_map(|start| (0..20).map(move |length| (start, length)))
            {
                // Bytes of this I/O in each unit.
                let mut units = std::collections::BTreeMap::new();
                (start..start + length)
                    .for_each(|x| *units.entry((x + size - phase) / size).or_insert(0u64) += 1);
                let parts = units.values().filter(|&&bytes| bytes < size).count() as u64;
                let whole = parts == 0;
                let want = match (whole, length < size) {
                    (true, _) => Placement::Aligned,
                    (false, true) => Placement::Partial,
                    (false, false) => Placement::Misaligned,
                };
                let place = format!("{length} bytes at {start} on {grain:?}");
                assert_eq!(grain.fit(start, length), want, "{place}");
                let touched = units.len() as u64;
                let needed = length.div_ceil(size);
                assert_eq!(
                    grain.work(start, length, false),
                    DeviceOps { done: touched, needed },
                    "read {place}"
                );
                assert_eq!(
                    grain.work(start, length, true),
                    DeviceOps { done: touched + parts, needed },
                    "write {place}"
                );
                // Moved by whole units nothing changes, and what is aligned on a unit is so on its
                // divisors.
                assert_eq!(grain.fit(start + 3 * size, length), want, "{place}");
                let finer = (1..=size)
                    .filter(|&q| size.is_multiple_of(q))
                    .map(|q| Grain::new(q, phase).unwrap());
                assert!(
                    want != Placement::Aligned
                        || finer.into_iter().all(|g| g.fit(start, length) == Placement::Aligned),
                    "{place}"
                );
            }
        }
    }

    #[test]
    fn the_largest_addresses_do_not_overflow() {
        let grain = Grain::new(4096, 512).unwrap();
        assert_eq!(grain.fit(u64::MAX, u64::MAX), Placement::Misaligned);
        assert!(grain.work(u64::MAX - 10, u64::MAX, true).done > 1 << 51);
        assert_eq!(Grain::new(1, 0).unwrap().work(u64::MAX, u64::MAX, true).done, u64::MAX);
    }

    /// One 4096-byte write after another from sector 63: TL0001's four times, operation by
    /// operation.
    #[test]
    fn the_work_of_a_misaligned_file_system_is_its_findings_cost() {
        let grain = Grain::new(4096, 0).unwrap().shift(63 * 512);
        let work = (0..100)
            .map(|i| grain.work(i * 4096, 4096, true))
            .fold((0, 0), |(d, n), w| (d + w.done, n + w.needed));
        assert_eq!(work, (400, 100));
    }
}
