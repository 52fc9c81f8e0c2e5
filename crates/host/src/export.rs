//! What is served, under a name each, whichever way in it is served through.

use crate::errseq::{ErrorSequence, Since};
use std::sync::Arc;
use trueline_geom::audit::io::Deed;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;
use trueline_geom::base::topology::{Fact, Grain, Topology, Trust, Why, is_whole};

/// One export.
pub struct Export {
    /// Its name; the default export's is empty.
    pub name: String,
    /// What it is, for people.
    pub description: String,
    /// Its bytes.
    pub store: Arc<dyn Store>,
    /// Whether nothing may be written.
    pub read_only: bool,
    /// Whether seeking takes time.
    pub rotational: bool,
    /// In what units it is best used.
    pub sizes: BlockSizes,
    /// The boundaries beneath it, each kind once.
    pub boundaries: Vec<Boundary>,
    /// Errors of the medium. Exports that are on the same disks have one: a disk that fails says of no byte whose it was.
    pub errors: Arc<ErrorSequence>,
    /// Its part in an overlay, if it has one: what is written is [`Content::Data`](trueline_geom::base::store::Content), what was made zero is
    /// zero, and the rest a hole.
    pub overlay: Option<Arc<dyn Store>>,
    /// Logs of the requests that a way in refuses: [`Export::store`] never sees those.
    pub refusals: Vec<Arc<dyn RefusalLog>>,
}

/// A log of requests that were refused before they reached a store: past the end, or writes where nothing may be written.
pub trait RefusalLog: Send + Sync {
    /// A request of `length` bytes at `offset` of the export was refused.
    fn refused(&self, deed: Deed, offset: u64, length: u64);
}

/// The boundaries of one kind beneath a provider, in its own addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boundary {
    /// What they are for.
    pub why: Why,
    /// Where they are; [`None`] if members of a set cannot agree on any.
    pub grain: Option<Grain>,
}

impl Export {
    /// The read-modify-write unit beneath it.
    pub fn unit(&self) -> Option<Grain> {
        self.boundaries.iter().find(|boundary| boundary.why == Why::Physical)?.grain
    }

    /// Tells the logs of a request that is refused.
    pub fn refuse(&self, deed: Deed, offset: u64, length: u64) {
        self.refusals.iter().for_each(|log| log.refused(deed, offset, length));
    }

    /// Brings what was written to the medium, for somebody who knows of errors `since`.
    pub fn flush(&self, since: &Since) -> Result<(), Errno> {
        // Whoever only reads has nothing to bring anywhere.
        if self.read_only { Ok(()) } else { self.errors.flush(since, || self.store.flush()) }
    }

    /// Writes so that it is on the medium then, for somebody who knows of errors `since`.
    pub fn write_through(&self, since: &Since, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.errors.write(since, || self.store.write_through(bytes, offset))
    }
}

/// Bytes of a request, as NBD's `NBD_INFO_BLOCK_SIZE` tells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// What every offset and length should be a multiple of. Others are taken too.
    pub least: u32,
    /// What they are best a multiple of.
    pub preferred: u32,
    /// The most a request may read or write.
    pub most: u32,
}

/// The sizes that NBD allows (doc/proto.md, section "Block size constraints").
const LEAST_PREFERRED: u64 = 512;
const MOST_PREFERRED: u64 = 32 << 20;
const MOST_LEAST: u64 = 64 << 10;
/// The most bytes a request reads or writes.
pub const MOST: u32 = 32 << 20;

/// The read-modify-write unit of a provider, in its own addresses.
fn unit(topology: &Topology) -> Option<Grain> {
    let units = topology.facts.iter().filter(|fact| fact.why == Why::Physical && fact.counts());
    units.map(|fact| fact.grain).max_by_key(|grain| grain.size())
}

/// Boundaries beneath a provider as clients are told of them: those that it is judged by, those that only inform, and its sectors, which
/// begin with it; conventions are left out. A kind of which there are several is where all of them are.
///
/// Nothing is told of units that are 4 GiB or larger, or of which the provider has no whole one.
pub fn boundaries(topology: &Topology) -> Vec<Boundary> {
    let kinds = Why::ALL.into_iter().filter(|why| !matches!(why, Why::Logical | Why::Convention));
    let sector = Grain::new(topology.sector, 0).map(|grain| Boundary { why: Why::Logical, grain: Some(grain) });
    kinds.filter_map(|why| boundary(topology, why)).chain(sector).collect()
}

fn boundary(topology: &Topology, why: Why) -> Option<Boundary> {
    if why.costs() && topology.clashes.iter().any(|clash| clash.why == why) {
        return Some(Boundary { why, grain: None });
    }
    let believed = |fact: &&Fact| fact.why == why && fact.trust > Trust::Untrusted && (fact.counts() || !why.costs());
    let grains: Vec<Grain> = topology.facts.iter().filter(believed).map(|fact| fact.grain).collect();
    let all = grains.iter().copied().try_fold(None, |all: Option<Grain>, grain| match all {
        None => Some(Some(grain)),
        Some(all) => all.intersect(grain).map(Some),
    });
    let largest = grains.iter().copied().max_by_key(|grain| grain.size());
    let told = |grain: &Grain| u32::try_from(grain.size()).is_ok() && grain.has_whole(topology.length);
    let grain = all.flatten().filter(told).or(largest.filter(told))?;
    Some(Boundary { why, grain: Some(grain) })
}

impl BlockSizes {
    /// Sizes of a provider whose bytes `store` holds. The least is what the store takes, not what a disk beneath calls its sector: clients
    /// refuse by themselves what is smaller. The protocol has no field for where the first unit begins, so a unit that does not begin with
    /// the provider is not preferred: a client that kept to it would miss it every time.
    pub fn of(topology: &Topology, store: &dyn Store) -> BlockSizes {
        let least = Some(store.unit()).filter(|&unit| unit.is_power_of_two() && unit <= MOST_LEAST && is_whole(topology.length, unit));
        let least = least.unwrap_or(1);
        let unit = unit(topology).filter(|unit| unit.contains(0) && unit.size().is_power_of_two());
        let preferred = unit.map_or(LEAST_PREFERRED, |unit| unit.size()).clamp(LEAST_PREFERRED.max(least), MOST_PREFERRED);
        let bytes = |n| u32::try_from(n).unwrap_or(MOST);
        BlockSizes { least: bytes(least), preferred: bytes(preferred), most: MOST }
    }
}

/// The exports of a server, in the order in which they are listed.
pub struct Exports(pub Vec<Export>);

impl Exports {
    /// The export called `name`.
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        self.0.iter().position(|export| export.name.as_bytes() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueline_geom::base::topology::{Clash, Source};

    fn fact(why: Why, size: u64, phase: u64, trust: Trust) -> Fact {
        Fact { grain: Grain::new(size, phase).unwrap(), why, source: Source::User, trust }
    }

    fn told(facts: Vec<Fact>, length: u64) -> Vec<(Why, Option<(u64, u64)>)> {
        let topology = Topology { facts, ..Topology::new(512, length) };
        boundaries(&topology).into_iter().map(|told| (told.why, told.grain.map(|grain| (grain.size(), grain.phase())))).collect()
    }

    #[test]
    fn boundaries_are_told_by_kind() {
        let facts = vec![
            fact(Why::Chunk, 65536, 0, Trust::Trusted),
            fact(Why::Chunk, 16384, 0, Trust::Trusted),
            fact(Why::Physical, 4096, 512, Trust::Assumed),
            fact(Why::Logical, 512, 0, Trust::Trusted),
            fact(Why::Convention, 1 << 20, 0, Trust::Assumed),
            // A hint, which nobody is judged by, and what cannot be true.
            fact(Why::Optimal, 1 << 20, 0, Trust::Claimed),
            fact(Why::Erase, 1 << 20, 0, Trust::Untrusted),
            fact(Why::Discard, 8192, 0, Trust::Claimed),
        ];
        let sector = (Why::Logical, Some((512, 0)));
        let want = [(Why::Physical, Some((4096, 512))), (Why::Chunk, Some((65536, 0))), (Why::Discard, Some((8192, 0))), sector];
        assert_eq!(told(facts, 1 << 30), want);
        assert_eq!(told(vec![fact(Why::Optimal, 1 << 20, 0, Trust::Trusted)], 1 << 30), [(Why::Optimal, Some((1 << 20, 0))), sector]);
    }

    #[test]
    fn what_has_no_whole_unit_is_not_told() {
        let erase = fact(Why::Erase, 1 << 20, 4096, Trust::Claimed);
        let kinds = |fact, length| told(vec![fact], length).into_iter().map(|(why, _)| why).collect::<Vec<_>>();
        assert_eq!(kinds(erase, (1 << 20) + 4096), [Why::Erase, Why::Logical]);
        assert_eq!(kinds(erase, (1 << 20) + 4095), [Why::Logical]);
        assert_eq!(kinds(fact(Why::Erase, 1 << 32, 0, Trust::Claimed), 1 << 40), [Why::Logical]);
    }

    #[test]
    fn a_clash_is_told_as_no_boundary() {
        let mut topology = Topology::new(512, 1 << 20).with(fact(Why::Chunk, 65536, 0, Trust::Trusted));
        topology.clashes.push(Clash { why: Why::Physical, unit: 4096, member: 1, remainder: 512 });
        topology.clashes.push(Clash { why: Why::Atomic, unit: 4096, member: 1, remainder: 512 });
        let chunk = Boundary { why: Why::Chunk, grain: Grain::new(65536, 0) };
        let sector = Boundary { why: Why::Logical, grain: Grain::new(512, 0) };
        assert_eq!(boundaries(&topology), [Boundary { why: Why::Physical, grain: None }, chunk, sector]);
    }

    /// A store that takes units of `.0` bytes.
    struct InUnits(u64);

    impl Store for InUnits {
        fn length(&self) -> u64 {
            1 << 20
        }

        fn read_at(&self, _: &mut [u8], _: u64) -> Result<(), Errno> {
            Ok(())
        }

        fn unit(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn the_least_size_is_what_the_store_takes() {
        let topology = Topology::new(4096, 1 << 20).with(fact(Why::Physical, 4096, 0, Trust::Trusted));
        let sizes = |unit| BlockSizes::of(&topology, &InUnits(unit));
        assert_eq!([1, 512, 8192].map(|unit| (sizes(unit).least, sizes(unit).preferred)), [(1, 4096), (512, 4096), (8192, 8192)]);
        // No size of the protocol's.
        assert_eq!([520, 1 << 17].map(|unit| sizes(unit).least), [1, 1]);
    }
}
