//! Translation of a guest's addresses into those of the file of a container.

use super::{FirstWrite, Grain, Topology, gcd};
use std::collections::BTreeMap;

/// Modulus in bytes by which the places of blocks are told apart: the largest unit of a drive that
/// is common.
const WINDOW: u64 = 64 << 10;

/// Size of a class of differences that has one of them: all blocks are at that distance.
const EVERYWHERE: u64 = 1 << 62;

/// Places of a guest's blocks in the file of a container: as a rule of its format, or as far as its
/// table was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translation {
    /// Unit in bytes in which the file gets space: a first write to it allocates all of it.
    pub allocation: u64,
    /// File offsets minus guest offsets, as the class of numbers in which all of them lie.
    distance: Grain,
    /// Blocks looked at, by that difference modulo [`WINDOW`].
    blocks: BTreeMap<u64, u64>,
    known: Known,
    /// First byte in the file of the next block that the guest's writes make, where the format puts
    /// it at the end.
    next: Option<u64>,
    /// Physical unit in bytes that the container tells its guest.
    claim: Option<u64>,
    /// Ranges that a first write to a block touches; `None` where none is made.
    first_write: Option<FirstWrite>,
}

/// Source of what is known of the places of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// A rule of the format, so that no table had to be looked at.
    ByFormat,
    /// The table, as far as it was looked at.
    ByTable,
    /// None: the file is unpacked before a guest writes, and its places are never written.
    Transport,
}

impl Translation {
    fn new(allocation: u64, distance: Grain, known: Known) -> Translation {
        let blocks = BTreeMap::new();
        Translation {
            allocation,
            distance,
            blocks,
            known,
            next: None,
            claim: None,
            first_write: None,
        }
    }

    /// A format in which every block of `allocation` bytes begins at a multiple of that from byte
    /// `base` of the file.
    pub fn by_format(allocation: u64, base: u64) -> Translation {
        Translation::by_stride(allocation, allocation, base)
    }

    /// A format in which every block of `allocation` bytes begins at a multiple of `stride` bytes
    /// from byte `base` of the file.
    pub fn by_stride(allocation: u64, stride: u64, base: u64) -> Translation {
        let size = gcd(allocation, stride).max(1);
        let distance = Grain { size, phase: base % size };
        Translation::new(allocation, distance, Known::ByFormat)
    }

    /// A format that gets space by `allocation` bytes, and has every byte where the guest has it.
    pub fn identical(allocation: u64) -> Translation {
        let distance = Grain { size: EVERYWHERE, phase: 0 };
        Translation::new(allocation, distance, Known::ByFormat)
    }

    /// A packed container of blocks of `allocation` bytes: it carries a disk to where it is
    /// unpacked, so that the disk in it is judged as if it began where the file does.
    pub fn transport(allocation: u64) -> Translation {
        let distance = Grain { size: 1, phase: 0 };
        Translation::new(allocation, distance, Known::Transport)
    }

    /// True for a container that is only unpacked, [`Translation::transport`].
    pub fn is_transport(&self) -> bool {
        self.known == Known::Transport
    }

    /// A format that puts blocks of `allocation` bytes anywhere: the guest offset and the file
    /// offset of every block that was looked at.
    pub fn by_table(allocation: u64, blocks: impl IntoIterator<Item = (u64, u64)>) -> Translation {
        let mut first = None;
        // Places inside a block are those of its begin; one block, or several in order, say nothing
        // about where the next one will be.
        let mut size = allocation.max(1);
        let mut counts = BTreeMap::new();
        for (guest, file) in blocks {
            let apart = i128::from(file) - i128::from(guest);
            *counts.entry(remainder(apart, WINDOW)).or_insert(0) += 1;
            let other = apart - *first.get_or_insert(apart);
            size = gcd(size, remainder(other, size));
        }
        // An empty table promises nothing.
        let known = first.map(|apart| Grain { size, phase: remainder(apart, size) });
        let distance = known.unwrap_or(Grain { size: 1, phase: 0 });
        Translation { blocks: counts, ..Translation::new(allocation, distance, Known::ByTable) }
    }

    /// The same, of a file in which the data of the next block begin at byte `next`.
    #[must_use]
    pub fn growing_at(self, next: Option<u64>) -> Translation {
        Translation { next, ..self }
    }

    /// The same, of a container that tells its guest of a physical unit of `claim` bytes.
    #[must_use]
    pub fn claiming(self, claim: u64) -> Translation {
        Translation { claim: Some(claim), ..self }
    }

    /// The same, of a container to which a first write touches the ranges that `ranges` lists.
    #[must_use]
    pub fn first_writing(self, ranges: impl FnOnce(&Translation) -> FirstWrite) -> Translation {
        let first_write = Some(ranges(&self));
        Translation { first_write, ..self }
    }

    /// Ranges that the first write to a block touches; `None` for a file whose blocks are all
    /// there, or that no guest writes to.
    pub fn first_write(&self) -> Option<&FirstWrite> {
        self.first_write.as_ref()
    }

    /// Addresses in the file at which bytes of the next block may begin that are at a multiple of
    /// `step` bytes for the guest.
    pub(super) fn starts(&self, step: u64) -> Grain {
        let (size, phase) = match self.next {
            Some(next) => (step.max(1), next),
            None => (gcd(self.distance.size, step).max(1), self.distance.phase),
        };
        Grain { size, phase: phase % size }
    }

    /// Physical unit in bytes that the container tells its guest, if it tells one.
    pub fn claim(&self) -> Option<u64> {
        self.claim
    }

    /// Bytes by which the next block will begin past a boundary of `grain` in the file, where the
    /// guest is on its own; `None` where that is not known.
    pub fn next_off(&self, grain: Grain) -> Option<u64> {
        let next = self.next.filter(|_| self.allocation.is_multiple_of(grain.size))?;
        Some(grain.remainder(next))
    }

    /// The largest size modulo which all blocks have one distance between file and guest, and that
    /// distance.
    pub fn grain(&self) -> Grain {
        self.distance
    }

    /// Number of blocks that were looked at, if the format says nothing about where they are.
    pub fn looked_at(&self) -> Option<u64> {
        (self.known == Known::ByTable).then(|| self.blocks.values().sum())
    }

    /// Number of blocks looked at that begin off a boundary of `grain` in the file where the guest
    /// is on a whole number of its units; `None` where the format says where they are, or the unit
    /// is too large to tell.
    pub fn off(&self, grain: Grain) -> Option<u64> {
        let known = self.known == Known::ByTable && WINDOW.is_multiple_of(grain.size);
        let off = self.blocks.iter().filter(|(apart, _)| !grain.contains(**apart));
        known.then(|| off.map(|(_, count)| count).sum())
    }

    /// Bytes by which blocks miss a boundary of `grain` in the file where the guest is on a whole
    /// number of its units: those of every block, or, where they differ, the least.
    pub fn past(&self, grain: Grain) -> u64 {
        if self.distance.size.is_multiple_of(grain.size) {
            grain.shift(self.distance.phase).remainder(0)
        } else {
            self.distance.size % grain.size
        }
    }
}

/// The remainder of a difference, from 0.
fn remainder(apart: i128, size: u64) -> u64 {
    // It is below a `u64`.
    u64::try_from(apart.rem_euclid(i128::from(size))).unwrap_or_default()
}

impl Topology {
    /// The topology of `length` bytes of a guest that lie in this file as `translation` has it.
    ///
    /// A unit that divides the grain of the translation is kept, if blocks begin on it: at the end
    /// of a block, any other is cut, for the next block may lie anywhere. A packed file keeps every
    /// unit, and one that has every byte where the guest has it shifts none.
    #[must_use]
    pub fn translated(&self, translation: &Translation, length: u64) -> Topology {
        if translation.is_transport() {
            return Topology { length, ..self.clone() };
        }
        if translation.looked_at() == Some(0) {
            // Nothing of the guest lies anywhere yet.
            return Topology::new(self.sector, length);
        }
        let distance = translation.distance;
        Topology::combine(std::slice::from_ref(self), length, |_, grain| {
            let is_one = distance.size == EVERYWHERE;
            let fits = distance.size.is_multiple_of(grain.size);
            if is_one || fits && grain.contains(distance.phase) {
                Ok(grain.shift(distance.phase))
            } else if fits {
                Err(grain.remainder(distance.phase))
            } else {
                Err(distance.size % grain.size)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::topology::{Fact, Source, Trust, Why};

    fn file() -> Topology {
        let grain = Grain::new(4096, 0).unwrap();
        let fact =
            Fact { grain, why: Why::Physical, source: Source::Assumed, trust: Trust::Assumed };
        Topology::new(512, 1 << 30).with(fact)
    }

    #[test]
    fn a_unit_is_kept_where_blocks_begin_on_it_and_else_cut() {
        const MIB: u64 = 1 << 20;
        // A VDI of qemu-img: the map takes one sector, so that a page at the end of a block lies
        // in two places.
        let vdi = file().translated(&Translation::by_format(MIB, 512), 64 * MIB);
        assert_eq!((vdi.facts.len(), vdi.clashes[0].remainder), (0, 512));
        let virtualbox = file().translated(&Translation::by_format(MIB, 2 * MIB), 64 * MIB);
        assert_eq!((virtualbox.facts[0].grain.phase(), virtualbox.clashes.len()), (0, 0));
        // Where every byte has the guest's address, no block ends anything.
        let off = Fact { grain: Grain::new(4096, 3584).unwrap(), ..file().facts[0] };
        let moved = Topology::new(512, 1 << 30).with(off);
        let whole = moved.translated(&Translation::identical(64 << 10), 64 * MIB);
        assert_eq!((whole.facts[0].grain.phase(), whole.clashes.len()), (3584, 0));
        assert_eq!(moved.translated(&Translation::by_format(MIB, 0), 64 * MIB).facts.len(), 0);
        // A VHD: a sector of bitmap before every block.
        let blocks = (0..8).map(|n| (n * 2 * MIB, 2048 + n * (2 * MIB + 512)));
        let vhd = Translation::by_table(2 * MIB, blocks);
        assert_eq!(
            (vhd.grain().size(), vhd.looked_at(), vhd.off(file().facts[0].grain)),
            (512, Some(8), Some(7))
        );
        let top = file().translated(&vhd, 64 * MIB);
        assert_eq!((top.facts.len(), top.clashes[0].unit), (0, 4096));
        // One whose blocks are where they should be.
        let blocks = (0..8).map(|n| (n * 2 * MIB, 4096 + n * (2 * MIB + 4096)));
        let aligned = Translation::by_table(2 * MIB, blocks);
        assert_eq!((aligned.grain().size(), aligned.off(file().facts[0].grain)), (4096, Some(0)));
        let small = file().translated(&Translation::by_format(512, 0), 64 * MIB);
        assert_eq!((small.facts.len(), small.clashes[0].remainder), (0, 512));
    }

    /// Blocks with something before each of them, as a VDI may have.
    #[test]
    fn a_stride_breaks_what_does_not_divide_it() {
        let sector = Translation::by_stride(1 << 20, (1 << 20) + 512, 4096 + 512);
        assert_eq!((sector.grain().size(), sector.grain().phase()), (512, 0));
        let page = Translation::by_stride(1 << 20, (1 << 20) + 4096, 8192 + 512);
        assert_eq!((page.grain().size(), page.grain().phase()), (4096, 512));
    }

    #[test]
    fn a_packed_file_keeps_every_unit() {
        let packed = Translation::transport(64 << 10);
        let top = file().translated(&packed, 64 << 20);
        assert_eq!((top.facts, top.clashes.len(), top.length), (file().facts, 0, 64 << 20));
        assert_eq!((packed.looked_at(), packed.off(file().facts[0].grain)), (None, None));
    }

    /// A file that begins 512 bytes past a unit, as in an old partition: blocks 3584 on are on it.
    #[test]
    fn a_file_off_the_unit_has_other_blocks_on_it() {
        let grain = Grain::new(4096, 3584).unwrap();
        for (first, off, past) in [(3584, 0, 0), (4096, 4, 512)] {
            let blocks = (0..4).map(|n| (n << 21, first + (n << 21)));
            let known = Translation::by_table(2 << 20, blocks);
            assert_eq!((known.off(grain), known.past(grain)), (Some(off), past), "{first}");
        }
    }

    #[test]
    fn an_empty_table_promises_nothing() {
        let none = Translation::by_table(2 << 20, []);
        assert_eq!(
            (none.grain().size(), none.looked_at(), none.off(file().facts[0].grain)),
            (1, Some(0), Some(0))
        );
        let top = file().translated(&none, 64 << 20);
        assert_eq!((top.facts.len(), top.clashes.len()), (0, 0));
    }

    #[test]
    fn the_next_block_is_judged_where_blocks_are_whole_units() {
        let grain = |size| Grain::new(size, 0).unwrap();
        let one = Translation::by_table(2 << 20, [(0, 4096)]).growing_at(Some((2 << 20) + 4608));
        assert_eq!((one.next_off(grain(4096)), one.next_off(grain(512))), (Some(512), Some(0)));
        assert_eq!(one.next_off(grain(4 << 20)), None);
        assert_eq!(Translation::by_format(4096, 0).next_off(grain(4096)), None);
    }
}
