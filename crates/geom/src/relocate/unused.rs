//! Free ranges of a partition, by the file systems in it.

use super::gaps::Collector;
use crate::format::FormatKind;
use crate::format::free_space::Unsure;
use crate::graph::{Graph, Id};
use std::ops::Range;

/// Ranges that a partition does not use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unused {
    /// Free ranges, in addresses of the partition.
    pub free: Vec<Range<u64>>,
    /// Providers of which nothing is known to be free, so that all of them is copied.
    pub whole: Vec<Id>,
}

/// File system whose free space is not known although its format is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubtful {
    /// Provider that it is on.
    pub id: Id,
    /// Kind of the file system.
    pub kind: FormatKind,
    /// Reason why its bitmap is not believed.
    pub why: Unsure,
}

/// Ranges that partition `id` of `graph` does not use. Only what stands alone on a range of it is
/// asked: under a table, beside another format or in a set everything is used.
pub fn unused(graph: &Graph, id: Id) -> Result<Unused, Doubtful> {
    let own = &graph.providers[id];
    let mut found = Collector::new(0..own.topology.length, own.topology.sector);
    let mut whole = Vec::new();
    // A data area with nothing on it is its format's: FAT and exFAT know what is free there.
    let is_bare: Vec<bool> = (0..graph.providers.len())
        .map(|area| {
            let p = &graph.providers[area];
            let is_plain = p.area_of.is_some() && p.signs.is_empty() && p.table.is_none();
            is_plain && !graph.providers.iter().any(|other| other.parents.contains(&area))
        })
        .collect();
    for (inner, p) in graph.providers.iter().enumerate() {
        let is_range = p.start.is_some() && own.start.is_some() && graph.is_within(id, inner);
        let is_parent =
            |other: Id| other != inner && !is_bare[other] && graph.is_within(inner, other);
        if !is_range || is_bare[inner] || (0..graph.providers.len()).any(is_parent) {
            continue;
        }
        let mut signs = p.in_use();
        let (Some(sign), None) = (signs.next(), signs.next()) else {
            whole.push(inner);
            continue;
        };
        let at = p.base().saturating_sub(own.base());
        let mut add = |range: Range<u64>| {
            found.add(range.start.saturating_add(at)..range.end.saturating_add(at));
        };
        let mut read = |at: u64, out: &mut [u8]| graph.read_at(inner, out, at);
        match sign.kind.format.free(sign.kind, p.topology.length, &mut read, &mut add) {
            Some(Ok(())) => {}
            Some(Err(why)) => return Err(Doubtful { id: inner, kind: sign.kind, why }),
            None => whole.push(inner),
        }
    }
    Ok(Unused { free: found.finish(), whole })
}
