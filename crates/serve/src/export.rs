//! What is served, under a name each, whichever way in it is served through.

use crate::errseq::{ErrorSequence, Since};
use std::sync::Arc;
use trueline_geom::audit::io::IoKind;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;
use trueline_geom::base::topology::boundaries::Boundary;
use trueline_geom::base::topology::{Grain, Topology, Why, is_whole};
use trueline_host::nbd::wire::MAXIMUM;

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
    fn refused(&self, deed: IoKind, offset: u64, length: u64);
}

impl Export {
    /// The read-modify-write unit beneath it.
    pub fn unit(&self) -> Option<Grain> {
        self.boundaries.iter().find(|boundary| boundary.why == Why::Physical)?.grain
    }

    /// Tells the logs of a request that is refused.
    pub fn refuse(&self, deed: IoKind, offset: u64, length: u64) {
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

/// The read-modify-write unit of a provider, in its own addresses.
fn unit(topology: &Topology) -> Option<Grain> {
    let units = topology.facts.iter().filter(|fact| fact.why == Why::Physical && fact.counts());
    units.map(|fact| fact.grain).max_by_key(|grain| grain.size())
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
        let bytes = |n| u32::try_from(n).unwrap_or(MAXIMUM);
        BlockSizes { least: bytes(least), preferred: bytes(preferred), most: MAXIMUM }
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
    use trueline_geom::base::topology::{Fact, Source, Trust};

    fn fact(why: Why, size: u64, phase: u64, trust: Trust) -> Fact {
        Fact { grain: Grain::new(size, phase).unwrap(), why, source: Source::User, trust }
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
