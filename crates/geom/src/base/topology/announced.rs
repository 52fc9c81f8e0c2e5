//! Boundaries beneath a provider, each kind once, as a server announces them to its clients.

use super::{Fact, Grain, Topology, Trust, Why};

/// The boundaries of one kind beneath a provider, in its own addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boundary {
    /// Purpose of the boundaries.
    pub why: Why,
    /// Their addresses; `None` if members of a set cannot agree on any.
    pub grain: Option<Grain>,
}

/// Boundaries beneath a provider as a server announces them: those that it is judged by, those that
/// only inform, and its sectors, which begin with it. Conventions are left out. Several of one kind
/// are announced as their intersection; where that is impossible, as the largest.
///
/// Units of 4 GiB or larger are left out, and those of which the provider has no whole one.
pub fn boundaries(topology: &Topology) -> Vec<Boundary> {
    let kinds = Why::ALL.into_iter().filter(|why| !matches!(why, Why::Logical | Why::Convention));
    let sector = Grain::new(topology.sector, 0)
        .map(|grain| Boundary { why: Why::Logical, grain: Some(grain) });
    kinds.filter_map(|why| boundary(topology, why)).chain(sector).collect()
}

fn boundary(topology: &Topology, why: Why) -> Option<Boundary> {
    if why.costs() && topology.clashes.iter().any(|clash| clash.why == why) {
        return Some(Boundary { why, grain: None });
    }
    let believed = |fact: &&Fact| {
        fact.why == why && fact.trust > Trust::Untrusted && (fact.counts() || !why.costs())
    };
    let grains: Vec<Grain> =
        topology.facts.iter().filter(believed).map(|fact| fact.grain).collect();
    let all = grains.iter().copied().try_fold(None, |all: Option<Grain>, grain| match all {
        None => Some(Some(grain)),
        Some(all) => all.intersect(grain).map(Some),
    });
    let largest = grains.iter().copied().max_by_key(|grain| grain.size());
    let told =
        |grain: &Grain| u32::try_from(grain.size()).is_ok() && grain.has_whole(topology.length);
    let grain = all.flatten().filter(told).or(largest.filter(told))?;
    Some(Boundary { why, grain: Some(grain) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::topology::{Clash, Source};

    fn fact(why: Why, size: u64, phase: u64, trust: Trust) -> Fact {
        Fact { grain: Grain::new(size, phase).unwrap(), why, source: Source::User, trust }
    }

    fn told(facts: Vec<Fact>, length: u64) -> Vec<(Why, Option<(u64, u64)>)> {
        let topology = Topology { facts, ..Topology::new(512, length) };
        boundaries(&topology)
            .into_iter()
            .map(|told| (told.why, told.grain.map(|grain| (grain.size(), grain.phase()))))
            .collect()
    }

    #[test]
    fn boundaries_are_told_by_kind() {
        let facts = vec![
            fact(Why::Chunk, 65536, 0, Trust::Trusted),
            fact(Why::Chunk, 16384, 0, Trust::Trusted),
            fact(Why::Physical, 4096, 512, Trust::Assumed),
            fact(Why::Logical, 512, 0, Trust::Trusted),
            fact(Why::Convention, 1 << 20, 0, Trust::Assumed),
            // A hint, which no start is judged by, and a boundary that cannot be true.
            fact(Why::Optimal, 1 << 20, 0, Trust::Claimed),
            fact(Why::Erase, 1 << 20, 0, Trust::Untrusted),
            fact(Why::Discard, 8192, 0, Trust::Claimed),
        ];
        let sector = (Why::Logical, Some((512, 0)));
        let want = [
            (Why::Physical, Some((4096, 512))),
            (Why::Chunk, Some((65536, 0))),
            (Why::Discard, Some((8192, 0))),
            sector,
        ];
        assert_eq!(told(facts, 1 << 30), want);
        assert_eq!(
            told(vec![fact(Why::Optimal, 1 << 20, 0, Trust::Trusted)], 1 << 30),
            [(Why::Optimal, Some((1 << 20, 0))), sector]
        );
    }

    #[test]
    fn what_has_no_whole_unit_is_not_told() {
        let erase = fact(Why::Erase, 1 << 20, 4096, Trust::Claimed);
        let kinds = |fact, length| {
            told(vec![fact], length).into_iter().map(|(why, _)| why).collect::<Vec<_>>()
        };
        assert_eq!(kinds(erase, (1 << 20) + 4096), [Why::Erase, Why::Logical]);
        assert_eq!(kinds(erase, (1 << 20) + 4095), [Why::Logical]);
        assert_eq!(kinds(fact(Why::Erase, 1 << 32, 0, Trust::Claimed), 1 << 40), [Why::Logical]);
    }

    #[test]
    fn a_clash_is_told_as_no_boundary() {
        let mut topology =
            Topology::new(512, 1 << 20).with(fact(Why::Chunk, 65536, 0, Trust::Trusted));
        topology.clashes.push(Clash { why: Why::Physical, unit: 4096, member: 1, remainder: 512 });
        topology.clashes.push(Clash { why: Why::Atomic, unit: 4096, member: 1, remainder: 512 });
        let chunk = Boundary { why: Why::Chunk, grain: Grain::new(65536, 0) };
        let sector = Boundary { why: Why::Logical, grain: Grain::new(512, 0) };
        assert_eq!(
            boundaries(&topology),
            [Boundary { why: Why::Physical, grain: None }, chunk, sector]
        );
    }
}
