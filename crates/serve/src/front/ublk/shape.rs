//! The default export as its kernel sees it: blocks, hints and discards.

use crate::export::Export;
use trueline_geom::base::topology::{Why, round_down};
use trueline_host::ublk::wire::{MOST_LOGICAL, SECTOR, UblkParameters};

/// The shape of the block device of an export.
pub(super) fn shape_of(export: &Export) -> UblkParameters {
    let sector = export
        .boundaries
        .iter()
        .find(|boundary| boundary.why == Why::Logical)
        .and_then(|boundary| boundary.grain);
    let sector =
        sector.map(|grain| grain.size()).filter(|size| size.is_power_of_two()).unwrap_or(SECTOR);
    let logical = sector.max(export.sizes.least.into()).clamp(SECTOR, MOST_LOGICAL);
    // Preferred is only what begins with the provider.
    let physical = u64::from(export.sizes.preferred).max(logical);
    let unit = export
        .unit()
        .filter(|grain| grain.size() >= logical && u32::try_from(grain.size()).is_ok());
    let discard = unit.map_or((physical, 0), |grain| (grain.size(), grain.phase()));
    let sectors = round_down(export.store.length(), logical) / SECTOR;
    // As Linux's md tells them: the chunk, and a row of the set. Both begin with the disk, or are
    // not told.
    let told = |why: Why| {
        let grain = export
            .boundaries
            .iter()
            .find(|boundary| boundary.why == why)?
            .grain
            .filter(|grain| grain.contains(0))?;
        Some(grain.size()).filter(|&size| {
            size.is_power_of_two() && size > physical && u32::try_from(size).is_ok()
        })
    };
    let least = told(Why::Chunk).unwrap_or(physical);
    let optimal =
        [Why::FullStripe, Why::Row, Why::Optimal].into_iter().find_map(told).unwrap_or(least);
    UblkParameters {
        read_only: export.read_only,
        rotational: export.rotational,
        logical,
        physical,
        least,
        optimal,
        sectors,
        discard,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::BlockSizes;
    use std::sync::Arc;
    use trueline_geom::base::topology::Grain;
    use trueline_geom::base::topology::announced::Boundary;
    use trueline_host::disk::memory::Memory;

    fn export(sizes: BlockSizes, grain: Option<Grain>) -> Export {
        let store = Arc::new(Memory::new(1_000_000).unwrap());
        Export {
            name: String::new(),
            description: String::new(),
            store,
            read_only: true,
            rotational: true,
            sizes,
            boundaries: grain
                .map(|grain| Boundary { why: Why::Physical, grain: Some(grain) })
                .into_iter()
                .collect(),
            errors: Arc::default(),
            overlay: None,
            refusals: Vec::new(),
        }
    }

    #[test]
    fn a_disk_is_described() {
        let shape = shape_of(&export(
            BlockSizes { least: 512, preferred: 4096, most: 1 << 25 },
            Grain::new(4096, 0),
        ));
        assert_eq!(
            (shape.logical, shape.physical, shape.sectors, shape.discard),
            (512, 4096, 1953, (4096, 0))
        );
        let message = shape.parameters();
        let word = |at: usize| u32::from_ne_bytes(message[at..at + 4].try_into().unwrap());
        assert_eq!([word(0), word(4), word(8)], [60, 3, 0b1111]);
        assert_eq!(message[12..16], [9, 12, 12, 12]);
        assert_eq!([word(16), word(24), word(28)], [2048, 1953, 0]);
        // It is read-only: nothing is discarded.
        assert_eq!([word(40), word(44), word(48), word(52)], [0, 4096, 0, 0]);
        // A unit that does not begin with the provider is no physical block, and has its beginning
        // where discards have theirs.
        let shape = shape_of(&export(
            BlockSizes { least: 1, preferred: 512, most: 1 << 25 },
            Grain::new(4096, 3584),
        ));
        assert_eq!((shape.logical, shape.physical, shape.discard), (512, 512, (4096, 3584)));
        // What takes any byte has the sectors of its disk all the same.
        let mut sectors =
            export(BlockSizes { least: 1, preferred: 4096, most: 1 << 25 }, Grain::new(4096, 0));
        sectors.boundaries.push(Boundary { why: Why::Logical, grain: Grain::new(4096, 0) });
        assert_eq!(shape_of(&sectors).logical, 4096);
        // A set is described as one; what does not begin with it, or is no power of two, cannot be.
        let sizes = BlockSizes { least: 512, preferred: 4096, most: 1 << 25 };
        let set = |chunk: (u64, u64), row: u64| {
            let mut export = export(sizes, Grain::new(4096, 0));
            export
                .boundaries
                .push(Boundary { why: Why::Chunk, grain: Grain::new(chunk.0, chunk.1) });
            export.boundaries.push(Boundary { why: Why::Row, grain: Grain::new(row, 0) });
            let message = shape_of(&export).parameters();
            (message[15], message[14])
        };
        assert_eq!(set((65536, 0), 262_144), (16, 18));
        assert_eq!(set((65536, 0), 196_608), (16, 16));
        assert_eq!(set((65536, 512), 262_144), (12, 18));
    }
}
