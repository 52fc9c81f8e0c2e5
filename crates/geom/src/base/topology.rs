//! All alignment arithmetic. Nothing outside this file and its folder divides an address by a
//! grain.
//!
//! A [`Grain`] is a residue class of byte addresses, as libparted's `PedAlignment`. A [`Topology`]
//! holds the boundaries beneath a provider, in **its own** addresses: slices shift it, stripes
//! stretch or break it, mirrors and concatenations intersect it.
//!
//! # What a topology promises
//!
//! If both ends of an I/O lie on a grain, the bytes it touches on every member are whole units of
//! that grain there. The promise is sound and, as a residue class, tight: it cannot be thinned out
//! to a smaller size. A clash says that no class finer than a row of the set could be promised; I/O
//! in whole rows from some odd address may still happen to fit. `tests/laws.rs` checks both by
//! brute force for every class.
//!
//! # Sources
//!
//! GEOM `stripesize`/`stripeoffset` (`geom.h`), Linux `alignment_offset`
//! (`Documentation/ABI/stable/sysfs-block`): `phase = alignment_offset = (stripesize −
//! stripeoffset) mod stripesize`.

use crate::base::size::PAGE;
pub use crate::base::topology::placement::{DeviceOps, Placement};
pub use cost::{Cost, amplification, cost, in_place_cost};
pub use first_write::{FirstWrite, GUEST_WRITE, TouchedRange, UnitOps};
pub use grain::{Grain, gcd, is_whole, largest_grain, lcm, round_down, round_up, units};
pub use sets::Rows;
use std::fmt;
pub use stripe_write::{ParityRows, StripeWrite};
pub use translation::Translation;
pub mod announced;
mod cost;
mod first_write;
mod grain;
pub(crate) mod placement;
mod sets;
mod stripe_write;
mod stripesize;
mod translation;

/// Purpose of a boundary: the unit that it delimits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// Logical sector: the smallest unit that can be addressed.
    Logical,
    /// Unit written whole or not at all (NVMe AWUPF/NAWUPF, `atomic_write_unit_max_bytes`).
    Atomic,
    /// Physical sector, the read-modify-write unit: a smaller write makes the device read first.
    Physical,
    /// Write granularity that the device prefers (NVMe NPWG/NPWA, `minimum_io_size`), above the
    /// physical unit.
    Preferred,
    /// Best I/O size that the device names (`optimal_io_size`, NVMe NOWS).
    Optimal,
    /// Chunk of a striped set: the bytes on one member before the next one follows.
    Chunk,
    /// Row of a striped set without parity, one chunk of every member. Layouts are made for it;
    /// none is judged by it.
    Row,
    /// Row of a set with parity: a write of less makes the set read first.
    FullStripe,
    /// Erase block of flash, or allocation unit of a card.
    Erase,
    /// Discard granularity of the device (`discard_granularity`, NVMe NPDG).
    Discard,
    /// Cluster of a container format such as qcow2.
    Cluster,
    /// The 1 MiB starts that partitioning tools agreed on; no device has such a unit.
    Convention,
}

impl Why {
    /// All purposes, in the order of size their units usually have.
    pub const ALL: [Why; 12] = [
        Why::Logical,
        Why::Atomic,
        Why::Physical,
        Why::Preferred,
        Why::Optimal,
        Why::Chunk,
        Why::Row,
        Why::FullStripe,
        Why::Erase,
        Why::Discard,
        Why::Cluster,
        Why::Convention,
    ];

    /// Name used in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Why::Logical => "logical",
            Why::Atomic => "atomic",
            Why::Physical => "physical",
            Why::Preferred => "preferred",
            Why::Optimal => "optimal",
            Why::Chunk => "chunk",
            Why::Row => "row",
            Why::FullStripe => "full-stripe",
            Why::Erase => "erase",
            Why::Discard => "discard",
            Why::Cluster => "cluster",
            Why::Convention => "convention",
        }
    }

    /// True if a start off this boundary costs I/O. The others inform: an address off the logical
    /// sector cannot exist, and missing an atomic, discard or conventional boundary, or the row of
    /// a set without parity, slows no I/O.
    pub fn costs(self) -> bool {
        !matches!(self, Why::Logical | Why::Atomic | Why::Row | Why::Discard | Why::Convention)
    }

    /// True if the device reads before it writes part of such a unit; false if a part merely uses
    /// one more member.
    pub fn is_rmw(self) -> bool {
        matches!(
            self,
            Why::Physical
                | Why::Preferred
                | Why::Optimal
                | Why::FullStripe
                | Why::Erase
                | Why::Cluster
        )
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Origin of the knowledge of a boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Ioctl of a block device, such as `BLKPBSZGET`.
    Ioctl,
    /// Linux `queue/` limits, from sysfs or from `lsblk`.
    Sysfs,
    /// NVMe Identify data structures.
    Nvme,
    /// Metadata on the disk: a set's label, a file system's superblock.
    Label,
    /// Header of an image file.
    Image,
    /// Option given on the command line.
    User,
    /// Assumption: the usual value of today's drives.
    Assumed,
    /// Measurement of I/O times on the device.
    Measured,
    /// Model of a simulated drive.
    Model,
    /// Server of the NBD protocol: its block size constraints.
    Nbd,
}

impl Source {
    /// Name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Source::Ioctl => "ioctl",
            Source::Sysfs => "sysfs",
            Source::Nvme => "nvme",
            Source::Label => "label",
            Source::Image => "image",
            Source::User => "user",
            Source::Assumed => "assumed",
            Source::Measured => "measured",
            Source::Model => "model",
            Source::Nbd => "nbd",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Credibility of a boundary. Variants are in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trust {
    /// Contradicted: shown, never used to judge or to align.
    Untrusted,
    /// Likely, though no source states it.
    Assumed,
    /// Stated by the device, and contradicted by nothing.
    Claimed,
    /// Given by the user, defined by metadata, or measured.
    Trusted,
}

impl Trust {
    /// Name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Trust::Untrusted => "untrusted",
            Trust::Assumed => "assumed",
            Trust::Claimed => "claimed",
            Trust::Trusted => "trusted",
        }
    }
}

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A grain with its purpose and provenance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Addresses of the boundaries, in the provider's own bytes.
    pub grain: Grain,
    /// Purpose of the boundaries.
    pub why: Why,
    /// Origin of the knowledge.
    pub source: Source,
    /// Credibility of the origin.
    pub trust: Trust,
}

impl Fact {
    /// True if a start off this grain is a fault: it costs I/O, is more than one address, and is
    /// believed. An optimal I/O size that only a device claims is a hint: many name a transfer
    /// limit there (`docs/decisions/0007`).
    pub fn counts(&self) -> bool {
        let least = if self.why == Why::Optimal { Trust::Claimed } else { Trust::Untrusted };
        self.why.costs() && self.trust > least && self.grain.size > 1
    }

    /// Cost to a layer that begins at address 0 and does I/O in `block` bytes; `None` as in
    /// [`cost()`].
    pub fn cost(&self, block: u64) -> Option<Cost> {
        cost(block, self.grain.size, self.grain.remainder(0), self.why.is_rmw())
    }
}

/// Boundary that members can never agree on: no class of addresses finer than a row of the set is
/// on it for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clash {
    /// Purpose of the boundary.
    pub why: Why,
    /// Unit on the member that disagrees, in bytes; 0 if it is not known.
    pub unit: u64,
    /// Index of the member that disagrees, from 0.
    pub member: usize,
    /// Distance by which that member misses the boundary, in bytes.
    pub remainder: u64,
}

/// A provider's size, sector, and the boundaries beneath it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Logical sector in bytes; at least 1.
    pub sector: u64,
    /// Length of the provider in bytes.
    pub length: u64,
    /// Every known boundary, in this provider's addresses.
    pub facts: Vec<Fact>,
    /// Boundaries lost because members cannot agree.
    pub clashes: Vec<Clash>,
}

impl Topology {
    /// A provider of `length` bytes in sectors of `sector` bytes, without any known boundary.
    pub fn new(sector: u64, length: u64) -> Topology {
        Topology { sector: sector.max(1), length, facts: Vec::new(), clashes: Vec::new() }
    }

    /// This topology with one more fact.
    #[must_use]
    pub fn with(mut self, fact: Fact) -> Topology {
        self.facts.push(fact);
        self
    }

    /// This topology with a fact in the place of others for the same purpose. A physical unit also
    /// ends the doubt about drives that claim sectors of 512 bytes, an assumed boundary of 4096.
    #[must_use]
    pub fn instead(mut self, fact: Fact) -> Topology {
        let is_doubt = |f: &Fact| f.why == Why::Convention && f.grain.size <= PAGE;
        let is_ended = |f: &Fact| fact.why == Why::Physical && is_doubt(f);
        self.facts.retain(|f| f.why != fact.why && !is_ended(f));
        self.with(fact)
    }

    /// The topology of a slice of `length` bytes that begins at byte `start`.
    pub fn shift(&self, start: u64, length: u64) -> Topology {
        let facts = self.facts.iter().map(|f| Fact { grain: f.grain.shift(start), ..*f }).collect();
        Topology { sector: self.sector, length, facts, clashes: self.clashes.clone() }
    }

    /// The topology of a slice of `length` bytes that begins somewhere on `starts` (`None`:
    /// anywhere). Boundaries whose size divides that grain's lie as seen from any such start; the
    /// others are not known, so not believed.
    pub fn shift_somewhere(&self, starts: Option<Grain>, length: u64) -> Topology {
        let known = |f: &Fact| {
            f.grain.size == self.sector
                || starts.is_some_and(|s| s.size.is_multiple_of(f.grain.size))
        };
        let mut top = self.shift(starts.map_or(0, |s| s.phase), length);
        for (own, fact) in self.facts.iter().zip(&mut top.facts) {
            fact.trust = if known(own) { own.trust } else { Trust::Untrusted };
        }
        top
    }

    /// The facts by which a start is judged.
    pub fn counting(&self) -> impl Iterator<Item = &Fact> {
        self.facts.iter().filter(|f| f.counts())
    }

    /// Counting facts that address 0 of this provider misses, with the cost to a layer that does
    /// I/O in `block` bytes, the costliest first.
    pub fn missed(&self, block: u64) -> Vec<(Fact, Option<Cost>)> {
        let off = self.counting().filter(|f| !f.grain.contains(0));
        let mut missed: Vec<(Fact, Option<Cost>)> = off.map(|f| (*f, f.cost(block))).collect();
        let factor = |cost: &Option<Cost>| cost.map_or(0.0, |c| c.rmw_factor);
        missed.sort_by(|a, b| factor(&b.1).total_cmp(&factor(&a.1)));
        missed
    }

    /// Addresses on a whole sector and on every counting grain of this topology; `None` if there
    /// are none.
    pub fn common(&self) -> Option<Grain> {
        self.counting().try_fold(Grain { size: self.sector, phase: 0 }, |a, f| a.intersect(f.grain))
    }

    /// Addresses on [`Topology::common`] and on the convention for partitions; `None` without a
    /// convention, or if the two never meet.
    pub fn usual(&self) -> Option<Grain> {
        let fact =
            self.facts.iter().filter(|f| f.why == Why::Convention).max_by_key(|f| f.grain.size)?;
        self.common()?.intersect(fact.grain)
    }

    /// Grains on which a new partition may begin, the best first, in this provider's addresses.
    /// `base` is its byte 0 on the medium: a table inside a table agrees with the medium, not with
    /// the start of the one above.
    ///
    /// The best is on 1 MiB of the medium, on every counting grain, and on hints and the row of the
    /// set, as far as these can agree; where no boundary is on 1 MiB, the first after it. The last
    /// is a whole sector, for a medium too small or too contradictory for anything better.
    pub fn places(&self, base: u64) -> Vec<Grain> {
        let sector = Grain { size: self.sector, phase: 0 };
        let Some(common) = self.common() else { return vec![sector] };
        let mut places = vec![sector, common];
        let convention = Grain { size: 1 << 20, phase: 0 }.shift(base);
        let hints = self.facts.iter().filter(|f| {
            f.trust > Trust::Untrusted && matches!(f.why, Why::Row | Why::Optimal | Why::Convention)
        });
        for grain in std::iter::once(convention).chain(hints.map(|f| f.grain)) {
            let best = places[places.len() - 1];
            // A unit of which the medium holds only a few would waste too much of it.
            places.extend(best.within(grain).filter(|g| *g != best && g.size <= self.length / 4));
        }
        places.dedup();
        places.reverse();
        places
    }

    /// Sectors that begin at a multiple of `align` bytes on the medium, where the provider begins
    /// at its byte `base`; where none does, the first after each multiple. `None` for an `align` of
    /// 0.
    pub fn sectors_on(&self, align: u64, base: u64) -> Option<Grain> {
        let multiples = Grain::new(align, 0)?.shift(base);
        Grain { size: self.sector, phase: 0 }.within(multiples)
    }

    /// Starts nearest to `start` that are on [`Topology::common`]: at or below it, and at or above
    /// it within the provider.
    pub fn nearest(&self, start: u64) -> (Option<u64>, Option<u64>) {
        match self.common() {
            Some(g) => (g.previous(start), g.next(start).filter(|&x| x < self.length)),
            None => (None, None),
        }
    }
}

#[cfg(test)]
#[path = "topology/tests.rs"]
mod tests;
