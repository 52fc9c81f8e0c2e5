//! `nop`: a provider passed through, with another idea of its sectors and boundaries (gnop).
//!
//! # Topology
//! Facts that the user gives replace those of the device for the same purpose; all others pass.
//! gnop(8) without `-p` hides the lower boundaries; this one does not: a layer must not drop its
//! grain by silence.
//!
//! # Limits
//! No metadata: it is made by hand (`--logical`, `--physical`, `--grain`, `--for`). Faults and
//! delays are in [`fault`].

use crate::base::topology::{Fact, Topology, Why, round_down};
use crate::mapping::geom::{Extent, Geom, Op, Slot};

pub mod fault;

/// A nop over one provider: it passes every byte through.
pub struct Nop {
    length: u64,
    sector: Option<u64>,
    facts: Vec<Fact>,
}

impl Nop {
    /// A nop over a provider of `length` bytes. `sector`, if given, is its logical sector now;
    /// `facts` replace those below.
    pub fn new(length: u64, sector: Option<u64>, facts: Vec<Fact>) -> Nop {
        Nop { length: round_down(length, sector.unwrap_or(1)), sector, facts }
    }
}

impl Geom for Nop {
    fn providers(&self) -> Vec<Slot> {
        vec![Slot { name: String::new(), length: self.length, kind: None }]
    }

    fn topology(&self, _slot: usize, below: &[Topology]) -> Topology {
        let Some(below) = below.first() else { return Topology::new(1, 0) };
        let mut top = below.clone();
        top.length = self.length;
        top.sector = self.sector.unwrap_or(top.sector);
        let other_sector = |old: &Fact| old.why == Why::Logical && old.grain.size() != top.sector;
        top.facts
            .retain(|old| !other_sector(old) && !self.facts.iter().any(|new| new.why == old.why));
        top.facts.extend(&self.facts);
        top
    }

    fn map(&self, _slot: usize, offset: u64, length: u64, _op: Op) -> Extent {
        Extent::At { consumer: 0, offset, length }
    }

    fn shift(&self, _slot: usize) -> Option<u64> {
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::topology::{Grain, Source, Trust};

    #[test]
    fn one_sector_is_said_and_not_two() {
        let fact = |size, why| Fact {
            grain: Grain::new(size, 0).unwrap(),
            why,
            source: Source::Sysfs,
            trust: Trust::Claimed,
        };
        let below = Topology::new(512, 1 << 20)
            .with(fact(512, Why::Logical))
            .with(fact(4096, Why::Physical));
        let seen = |sector| {
            Nop::new((1 << 20) + 512, sector, Vec::new()).topology(0, std::slice::from_ref(&below))
        };
        let as_4096 = seen(Some(4096));
        assert_eq!(
            (as_4096.sector, as_4096.length, as_4096.facts),
            (4096, 1 << 20, vec![fact(4096, Why::Physical)])
        );
        assert_eq!((seen(Some(512)).facts.len(), seen(None).facts.len()), (2, 2));
    }
}
