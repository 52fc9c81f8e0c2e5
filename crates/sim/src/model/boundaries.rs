//! The boundaries of a drive that its model knows, as `check` reads them of a real one.

use super::disk::Personality;
use super::{Impossible, Model};
use trueline_geom::base::topology::{Fact, Grain, Source, Topology, Trust, Why, is_whole};

/// The most zones of a host-managed drive.
const MOST_ZONES: u64 = 1 << 24;

impl Model {
    /// The true boundaries of the drive, as a disk of `length` bytes.
    pub fn topology(&self, length: u64) -> Topology {
        let mut topology = Topology::new(self.logical_block_size, length);
        let physical = self.phase();
        let erase = self.ssd.as_ref().map_or(0, |ssd| ssd.allocation_unit_bytes);
        // The first physical block begins the first erase block.
        let erase_phase = if physical == 0 {
            0
        } else {
            (erase + physical).saturating_sub(self.physical_block_size)
        };
        let [granularity, alignment, optimal] = self.preferred_writes();
        // A granularity above the alignment says how much to write, and nothing certain of places.
        let more = if granularity > alignment { granularity } else { 0 };
        for (size, phase, why, trust) in [
            (self.logical_block_size, 0, Why::Logical, Trust::Trusted),
            (self.physical_block_size, physical, Why::Physical, Trust::Trusted),
            (alignment, 0, Why::Preferred, Trust::Trusted),
            (more, 0, Why::Preferred, Trust::Assumed),
            (self.optimal_io_size, 0, Why::Optimal, Trust::Trusted),
            (optimal, 0, Why::Optimal, Trust::Trusted),
            (erase, erase_phase, Why::Erase, Trust::Trusted),
        ] {
            let grain = Grain::new(size, phase);
            topology.facts.extend(grain.map(|grain| Fact {
                grain,
                why,
                source: Source::Model,
                trust,
            }));
        }
        topology
    }

    /// The first byte that begins a physical block: `alignment_offset`, less the sector that a
    /// disk's jumper adds.
    pub fn phase(&self) -> u64 {
        let moved = if self.disk.as_ref().is_some_and(|disk| disk.jumper) {
            self.logical_block_size
        } else {
            0
        };
        Grain::new(self.physical_block_size, self.alignment_offset)
            .map_or(0, |grain| grain.shift(moved).phase())
    }

    /// Checks the zones of a host-managed drive.
    pub(super) fn check_zones(&self) -> Result<(), Impossible> {
        let (zone, block) = (self.zone_bytes, self.physical_block_size);
        let refuse = |key, what: String| Err((key, what));
        if zone == 0 && self.conventional_zones > 0 {
            let count = self.conventional_zones;
            let what = format!("conventional_zones = {count}: zone_bytes says how large they are");
            return refuse("conventional_zones", what);
        }
        if zone == 0 {
            return Ok(());
        }
        if !is_whole(zone, block) {
            let what = format!("zone_bytes = {zone}: whole physical blocks of {block}");
            return refuse("zone_bytes", what);
        }
        let zones = self.size.div_ceil(zone);
        if zones > MOST_ZONES {
            let what = format!("zone_bytes = {zone}: {zones} zones, {MOST_ZONES} at most");
            return refuse("zone_bytes", what);
        }
        let Some(disk) = &self.disk else {
            return refuse(
                "zone_bytes",
                format!("zone_bytes = {zone}: hard disks alone have zones"),
            );
        };
        if disk.personality == Personality::Shingled || self.phase() != 0 {
            let what = "of a drive whose first physical block is at byte 0, and not of shingled";
            return refuse("zone_bytes", format!("zone_bytes = {zone}: {what}"));
        }
        Ok(())
    }

    /// The sizes by which an NVMe drive asks for its writes, in bytes: granularity, alignment and
    /// optimum. One that says no more than the logical block is 0.
    fn preferred_writes(&self) -> [u64; 3] {
        let granularity = self.preferred_write_granularity_bytes;
        let alignment = match self.preferred_write_alignment_bytes {
            0 => granularity,
            alignment => alignment,
        };
        [granularity, alignment, self.optimal_write_size_bytes]
            .map(|size| if size > self.logical_block_size { size } else { 0 })
    }

    /// Checks the same sizes, each a multiple of the one before. The error names the key.
    pub(super) fn check_preferred(&self) -> Result<(), Impossible> {
        let alignment = self.preferred_write_alignment_bytes.max(self.logical_block_size);
        let granularity = self.preferred_write_granularity_bytes.max(alignment);
        for (key, bytes, of) in [
            (
                "preferred_write_alignment_bytes",
                self.preferred_write_alignment_bytes,
                self.logical_block_size,
            ),
            (
                "preferred_write_granularity_bytes",
                self.preferred_write_granularity_bytes,
                alignment,
            ),
            ("optimal_write_size_bytes", self.optimal_write_size_bytes, granularity),
        ] {
            // NVMe counts them in blocks, in 16 bits.
            if !is_whole(bytes, of) || bytes > self.logical_block_size << 16 {
                let what = format!("{key} = {bytes}: a multiple of {of}, 65536 blocks at most");
                return Err((key, what));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::Value;

    /// The boundaries of `tlc-4k` with some keys set: size, cause, trust.
    fn facts(set: &[(&str, i64)]) -> Vec<(u64, Why, Trust)> {
        let set: Vec<_> =
            set.iter().map(|&(key, value)| (key.to_owned(), Value::Integer(value))).collect();
        let model = Model::parse_with(Model::named("tlc-4k").unwrap(), &set).unwrap();
        let facts = model.topology(1 << 40).facts;
        facts.iter().map(|fact| (fact.grain.size(), fact.why, fact.trust)).collect()
    }

    #[test]
    fn preferred_writes_are_boundaries_as_those_of_a_namespace() {
        let own = [(512, Why::Logical, Trust::Trusted), (4096, Why::Physical, Trust::Trusted)];
        let with = |more: &[(u64, Why, Trust)]| [&own, more].concat();
        let (place, size) =
            ((4096, Why::Preferred, Trust::Trusted), (16384, Why::Preferred, Trust::Assumed));
        assert_eq!(facts(&[]), with(&[place, size]));
        let optimal = (131_072, Why::Optimal, Trust::Trusted);
        assert_eq!(facts(&[("optimal_write_size_bytes", 131_072)]), with(&[place, size, optimal]));
        let alone = (16384, Why::Preferred, Trust::Trusted);
        assert_eq!(facts(&[("preferred_write_alignment_bytes", 0)]), with(&[alone]));
        let none =
            [("preferred_write_alignment_bytes", 512), ("preferred_write_granularity_bytes", 0)];
        assert_eq!(facts(&none), own);
    }

    #[test]
    fn sizes_that_no_namespace_has_are_refused() {
        for (key, value, reason) in [
            ("preferred_write_alignment_bytes", 700, "a multiple of 512"),
            ("preferred_write_granularity_bytes", 6144, "a multiple of 4096"),
            ("optimal_write_size_bytes", 20480, "a multiple of 16384"),
            ("optimal_write_size_bytes", 64 << 20, "65536 blocks at most"),
        ] {
            let set = [(key.to_owned(), Value::Integer(value))];
            let refusal = Model::parse_with(Model::named("tlc-4k").unwrap(), &set).unwrap_err();
            assert!(refusal.message.contains(reason), "{key} = {value}: {refusal}");
        }
    }
}
