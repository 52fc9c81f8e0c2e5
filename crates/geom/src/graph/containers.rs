//! Contents of containers: disks as guests see them, in files of ours.

use super::{Graph, Id};
use crate::base::finding::{self, Finding, Severity};
use crate::class::{gpt, mbr};
use crate::graph::Provider;
use crate::mapping::geom::Geom;
use crate::mapping::route::Route;
use crate::probe::Probe;
use crate::registry::recognises;
use std::sync::Arc;

/// Containers that may lie inside each other.
const DEEPEST: usize = 4;

/// Suffix of the name of a container's contents. What is on them has the names that it has on a
/// disk.
const SUFFIX: &str = ".disk";

impl Graph {
    /// Adds the contents of the container that `id` is.
    pub(super) fn add_contents(&mut self, id: Id, class: &'static str, geom: &Arc<dyn Geom>) {
        if self.full(id) {
            return;
        }
        if self.containers_beneath(id) >= DEEPEST {
            let message =
                format!("containers inside each other, {DEEPEST} deep: not followed further");
            let finding = Finding::new(&finding::BLIND, Severity::Warning, 0, message);
            self.providers[id].findings.push(finding);
            return;
        }
        let Some(slot) = geom.providers().into_iter().next() else { return };
        let parent = &self.providers[id];
        let (below, under) =
            (std::slice::from_ref(&parent.route), std::slice::from_ref(&parent.topology));
        let mut topology = geom.topology(0, under);
        let route = Route::with_tables(geom, 0, slot.length, below, &self.stores);
        let probe = Probe::new(&route, &self.stores, &self.budget, topology.sector, Some(0), None);
        let named = topology.sector != parent.topology.sector;
        let fits = gpt::sector_of(&probe).or_else(|| mbr::sector_of(&probe, recognises));
        topology.sector = fits.filter(|_| !named).unwrap_or(topology.sector);
        let name = format!("{}{SUFFIX}", self.stem(id));
        let shift = geom.shift(0);
        let contents =
            Provider::within((id, parent), name, class, shift.unwrap_or_default(), topology, route);
        // Where its bytes are is a matter of its table: no place of the file is that of its begin.
        let start = contents.start.filter(|_| shift.is_some());
        self.providers.push(Provider {
            start,
            is_set: shift.is_none(),
            is_contents: true,
            ..contents
        });
    }

    /// The beginning of the names of what is on `id`.
    pub(super) fn stem(&self, id: Id) -> String {
        let provider = &self.providers[id];
        match provider.parents.first().filter(|_| provider.is_contents) {
            Some(&file) => self.stem(file),
            None => provider.name.clone(),
        }
    }

    /// The disk that a user means by `id`: the contents of the container that it is, if it is one.
    pub fn disk(&self, id: Id) -> Id {
        let contents = self.children(id).find(|&child| self.providers[child].is_contents);
        contents.map_or(id, |contents| self.disk(contents))
    }

    /// Number of containers that `id` lies in.
    fn containers_beneath(&self, id: Id) -> usize {
        // A provider comes after what it stands on.
        let mut counts: Vec<usize> = Vec::with_capacity(id + 1);
        for provider in &self.providers[..=id] {
            let below = provider.parents.iter().map(|&parent| counts[parent]).max();
            counts.push(usize::from(provider.is_contents) + below.unwrap_or_default());
        }
        counts.pop().unwrap_or_default()
    }
}
