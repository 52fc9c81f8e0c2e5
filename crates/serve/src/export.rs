//! Exports: named stores with their properties, whichever front serves them.

mod range;

pub use range::{Outside, Range};

use crate::error_sequence::{ErrorSequence, Since};
use std::sync::Arc;
use trueline_geom::audit::io::IoKind;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;
use trueline_geom::base::topology::announced::Boundary;
use trueline_geom::base::topology::{Grain, Topology, Why, is_whole};
use trueline_host::nbd::block_sizes::{
    LARGEST_REQUEST, LEAST_PREFERRED, MOST_LEAST, MOST_PREFERRED,
};

/// One export of a server.
pub struct Export {
    /// The name; the default export's is empty.
    pub name: String,
    /// The description for people.
    pub description: String,
    /// The bytes of the export.
    pub store: Arc<dyn Store>,
    /// True if writes are refused.
    pub read_only: bool,
    /// True if the medium is rotational: seeks take time.
    pub rotational: bool,
    /// The block sizes that NBD clients should use.
    pub sizes: BlockSizes,
    /// The boundaries beneath the export, each kind once.
    pub boundaries: Vec<Boundary>,
    /// Errors of the medium, shared by exports on the same disks: a failed disk does not say which
    /// bytes were lost.
    pub errors: Arc<ErrorSequence>,
    /// The part of the export held by an overlay, if there is one: written ranges are
    /// [`Content::Data`](trueline_geom::base::store::Content), zeroed ones zero, all others holes.
    pub overlay: Option<Arc<dyn Store>>,
    /// Logs of the requests that a front refuses: [`Export::store`] never sees those.
    pub refusals: Vec<Arc<dyn RefusalLog>>,
}

/// A log of requests refused before they reach a store: past the end, or writes to a read-only
/// export.
pub trait RefusalLog: Send + Sync {
    /// Notes a refused request of `length` bytes at `offset` of the export.
    fn refused(&self, deed: IoKind, offset: u64, length: u64);
}

impl Export {
    /// The read-modify-write unit beneath it.
    pub fn unit(&self) -> Option<Grain> {
        self.boundaries.iter().find(|boundary| boundary.why == Why::Physical)?.grain
    }

    /// Notes a refused request in all logs.
    pub fn refuse(&self, deed: IoKind, offset: u64, length: u64) {
        self.refusals.iter().for_each(|log| log.refused(deed, offset, length));
    }

    /// Flushes the store for a client that knows of errors `since`.
    pub fn flush(&self, since: &Since) -> Result<(), Errno> {
        // A read-only export has nothing to flush.
        if self.read_only { Ok(()) } else { self.errors.flush(since, || self.store.flush()) }
    }

    /// Writes to the medium, not only to its cache, for a client that knows of errors `since`.
    pub fn write_through(&self, since: &Since, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.errors.write(since, || self.store.write_through(bytes, offset))
    }
}

/// Block sizes of requests in bytes, as in NBD's `NBD_INFO_BLOCK_SIZE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// The unit of offsets and lengths; other requests are accepted too.
    pub least: u32,
    /// The preferred unit of offsets and lengths.
    pub preferred: u32,
    /// The most bytes of a read or write.
    pub most: u32,
}

/// The read-modify-write unit of a provider, in its own addresses.
fn unit(topology: &Topology) -> Option<Grain> {
    let units = topology.facts.iter().filter(|fact| fact.why == Why::Physical && fact.counts());
    units.map(|fact| fact.grain).max_by_key(|grain| grain.size())
}

impl BlockSizes {
    /// The block sizes of a provider, whose bytes `store` holds. The least is the store's unit, not
    /// the sector of a disk beneath: clients refuse smaller requests by themselves. The protocol
    /// has no field for the start of the first unit, so a unit that does not begin with the
    /// provider is not preferred: a client that kept to it would miss it every time.
    pub fn from_topology(topology: &Topology, store: &dyn Store) -> BlockSizes {
        let least = Some(store.properties().unit).filter(|&unit| {
            unit.is_power_of_two() && unit <= MOST_LEAST && is_whole(topology.length, unit)
        });
        let least = least.unwrap_or(1);
        let unit = unit(topology).filter(|unit| unit.contains(0) && unit.size().is_power_of_two());
        let preferred = unit
            .map_or(LEAST_PREFERRED, |unit| unit.size())
            .clamp(LEAST_PREFERRED.max(least), MOST_PREFERRED);
        let bytes = |n| u32::try_from(n).unwrap_or(LARGEST_REQUEST);
        BlockSizes { least: bytes(least), preferred: bytes(preferred), most: LARGEST_REQUEST }
    }
}

/// The exports of a server, in the order in which they are listed.
pub struct Exports(pub Vec<Export>);

impl Exports {
    /// The index of the export named `name`.
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        self.0.iter().position(|export| export.name.as_bytes() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueline_geom::base::store::Properties;
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

        fn properties(&self) -> Properties {
            Properties { unit: self.0, ..Properties::default() }
        }

        fn write_at(&self, _: &[u8], _: u64) -> Result<(), Errno> {
            Err(Errno::ReadOnly)
        }

        fn flush(&self) -> Result<(), Errno> {
            Ok(())
        }

        fn discard(&self, _: u64, _: u64) -> Result<(), Errno> {
            Ok(())
        }
    }

    #[test]
    fn the_least_size_is_what_the_store_takes() {
        let topology =
            Topology::new(4096, 1 << 20).with(fact(Why::Physical, 4096, 0, Trust::Trusted));
        let sizes = |unit| BlockSizes::from_topology(&topology, &InUnits(unit));
        assert_eq!(
            [1, 512, 8192].map(|unit| (sizes(unit).least, sizes(unit).preferred)),
            [(1, 4096), (512, 4096), (8192, 8192)]
        );
        // No size of the protocol's.
        assert_eq!([520, 1 << 17].map(|unit| sizes(unit).least), [1, 1]);
    }
}
