//! Discard of what a move leaves.

use crate::failure::complain;
use std::ops::Range;
use trueline_geom::base::store::Store;
use trueline_geom::graph::provider_store::Through;
use trueline_geom::graph::{Graph, Id};
use trueline_geom::mapping::slices::place;
use trueline_geom::relocate::gaps::outside;
use trueline_geom::relocate::sequence::Movement;

/// Discards what `moves` on provider `on` of `graph` have left: their old places, without what a
/// partition has now and without the bytes `tables`. The table that leads to the new places has to
/// be on the medium. A device that refuses is named, and nothing else follows from it.
pub(super) fn discard(graph: &Graph, on: Id, moves: &[Movement], tables: &[Range<u64>]) {
    // As the table on the disk is now.
    let graph = graph.again();
    let base = graph.providers[on].base();
    let own = graph
        .providers
        .iter()
        .enumerate()
        .filter(|&(id, p)| id != on && !p.is_extended() && graph.is_within(on, id));
    let mut used: Vec<Range<u64>> = own
        .map(|(_, p)| {
            let start = p.base().saturating_sub(base);
            start..start.saturating_add(p.topology.length)
        })
        .chain(tables.iter().cloned())
        .chain(moves.iter().map(|moved| moved.to..moved.to.saturating_add(moved.length)))
        .collect();
    used.sort_by_key(|range| range.start);
    let disk = Through::new(&graph, on);
    let mut left = Vec::new();
    for moved in moves {
        let old = moved.from..moved.from.saturating_add(moved.length);
        left.extend(outside(&[old], &used));
    }
    let sector = graph.providers[on].topology.sector;
    for range in left {
        if let Err(errno) = disk.discard(range.start, range.end - range.start) {
            complain(&format!(
                "note: {} bytes at {} are not discarded: {errno}",
                range.end - range.start,
                place(range.start, sector)
            ));
            return;
        }
    }
}
