//! Boot loaders that a move leaves as they are, in notes before it begins.

use super::decide::boot_sector;
use std::collections::BTreeSet;
use trueline_geom::base::error::Errno;
use trueline_geom::format::unmoved::{Leaving, unmoved};
use trueline_geom::graph::{Graph, Id};

/// A note for every boot loader of the disk, or of what is in the partitions `ids`, that is wrong
/// when those have moved; each once. Errors: a failed read.
pub(super) fn notes(graph: &Graph, ids: &[Id]) -> Result<Vec<String>, Errno> {
    let mut notes = Vec::new();
    for &id in ids {
        // A set has no place that a BIOS knows.
        let Some(boot) = boot_sector(graph, id)? else { continue };
        let root = graph.root(id);
        let disk = &graph.providers[root];
        let own = &graph.providers[id];
        let old = own.base()..own.base().saturating_add(own.topology.length);
        let inside = (0..graph.providers.len()).filter(|&inner| graph.is_within(id, inner));
        let starts: BTreeSet<u64> = inside
            .map(|inner| &graph.providers[inner])
            .filter(|p| p.start.is_some())
            .map(|p| p.base())
            .chain([own.base()])
            .collect();
        let starts: Vec<u64> = starts.into_iter().collect();
        let leaving = Leaving {
            disk: &boot,
            length: disk.topology.length,
            sector: disk.topology.sector,
            old: &old,
            starts: &starts,
        };
        for loader in unmoved(leaving, &mut |at, out| graph.read_at(root, out, at))? {
            let note = loader.to_string();
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    Ok(notes)
}
