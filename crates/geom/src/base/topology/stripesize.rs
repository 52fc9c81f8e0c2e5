//! GEOM's `stripesize` and `stripeoffset` of a provider, as gpart(8) and diskinfo(8) show them.
//!
//! # Sources
//! FreeBSD `sys/geom/geom.h`, `struct g_provider`; `sys/geom/geom_slice.c`, where a slice adds its
//! start to the offset.

use super::{Fact, Topology, Trust, Why};

impl Topology {
    /// GEOM's `stripesize` and `stripeoffset` in bytes: the chunk of the set this stands on, else
    /// the physical unit; 0/0 if unknown.
    pub fn stripesize_and_offset(&self) -> (u64, u64) {
        // A set adds its own chunk behind those of the sets that it stands on.
        let believed = |f: &&Fact| f.trust > Trust::Untrusted;
        let of = |why| self.facts.iter().filter(believed).rfind(move |f| f.why == why);
        of(Why::Chunk)
            .or_else(|| of(Why::Physical))
            .map_or((0, 0), |f| (f.grain.size, f.grain.remainder(0)))
    }
}
