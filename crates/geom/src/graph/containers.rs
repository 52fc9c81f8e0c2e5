//! Contents of containers: disks as guests see them, in files of ours.

use super::{Graph, Id};
use crate::base::finding::{self, Finding, Fix, Severity};
use crate::base::topology::Topology;
use crate::class::{Claim, Member, gpt, mbr};
use crate::format::{Inside, Reference};
use crate::graph::Provider;
use crate::mapping::geom::{Geom, Part};
use crate::mapping::route::Route;
use crate::mapping::segments::{Places, Segments};
use crate::probe::Probe;
use crate::registry::recognises;
use std::sync::Arc;

/// Containers that may lie inside each other.
const DEEPEST: usize = 4;

/// Suffix of the name of a container's contents. What is on them has the names that it has on a
/// disk.
const SUFFIX: &str = ".disk";

/// Files that are not here, and are said by name.
const SAID: usize = 4;

/// Class of a disk that a container names.
const BACKING: &str = "backing";

/// A container whose references are to be tasted before it.
#[derive(Clone)]
pub(super) struct Waiting {
    id: Id,
    class: &'static str,
    geom: Arc<dyn Geom>,
    /// Its references, and the disks that they name.
    named: Vec<(Reference, Id)>,
}

/// Provider that a container stands on, as it stands on it.
struct Beneath {
    id: Id,
    topology: Topology,
    route: Route,
}

impl Beneath {
    /// The provider `id` as it is.
    fn of(id: Id, provider: &Provider) -> Beneath {
        Beneath { id, topology: provider.topology.clone(), route: provider.route.clone() }
    }
}

impl Graph {
    /// Notes which disks the references of others lead to. Those are here for them alone.
    pub(super) fn link(&mut self, ids: &[Id], references: Vec<Vec<(String, usize)>>) {
        for (&id, named) in ids.iter().zip(references) {
            let known = named.into_iter().filter_map(|(name, at)| Some((name, *ids.get(at)?)));
            let known: Vec<(String, Id)> = known.filter(|(_, other)| *other != id).collect();
            for (_, other) in &known {
                self.providers[*other].is_backing = true;
            }
            self.providers[id].references = known;
        }
    }

    /// Adds the contents of the container that `id` is, now or once its references are here.
    pub(super) fn add_container(&mut self, id: Id, class: &'static str, geom: Arc<dyn Geom>) {
        let provider = &mut self.providers[id];
        // A piece of a disk, of which nothing is known without the others.
        for sign in &mut provider.signs {
            match sign.inside {
                Inside::Unknown(_) if provider.is_backing => sign.inside = Inside::Container,
                Inside::Unknown(_) => return,
                _ => {}
            }
        }
        let named: Vec<Reference> =
            provider.signs.iter().flat_map(|sign| sign.references.iter().cloned()).collect();
        let here = |reference: &Reference| {
            let own = provider.references.iter().find(|(name, _)| *name == reference.name);
            own.map(|&(_, disk)| disk)
        };
        let disks: Vec<Option<Id>> = named.iter().map(here).collect();
        if named.is_empty() {
            self.add_contents(id, class, &geom, Vec::new());
        } else if disks.iter().all(Option::is_some) {
            let named = named.into_iter().zip(disks.into_iter().flatten()).collect();
            self.waiting.push(Waiting { id, class, geom, named });
        } else {
            let missing = named.into_iter().zip(disks).filter(|(_, disk)| disk.is_none());
            let missing: Vec<Reference> = missing.map(|(reference, _)| reference).collect();
            self.add_part_of_contents(id, class, &geom, &missing);
        }
    }

    /// Adds the contents of containers whose references have been tasted; if there are none, those
    /// of containers that wait for each other, as far as they are known.
    pub(super) fn join_containers(&mut self) {
        let is_waiting = |graph: &Graph, disk: Id| graph.waiting.iter().any(|own| own.id == disk);
        let ready = self
            .waiting
            .iter()
            .position(|own| own.named.iter().all(|(_, disk)| !is_waiting(self, *disk)));
        let Some(at) = ready else {
            for own in std::mem::take(&mut self.waiting) {
                let named: Vec<Reference> =
                    own.named.into_iter().map(|(reference, _)| reference).collect();
                self.add_part_of_contents(own.id, own.class, &own.geom, &named);
            }
            return;
        };
        let own = self.waiting.swap_remove(at);
        let others = own.named.iter().filter_map(|(reference, disk)| self.other(reference, *disk));
        let others: Vec<Finding> = others.collect();
        if !others.is_empty() {
            self.providers[own.id].findings.extend(others);
            return self.add_part_of_contents(own.id, own.class, &own.geom, &[]);
        }
        let beneath = self.beneath(&own);
        let lengths: Vec<u64> = beneath.iter().map(|below| below.route.length()).collect();
        let seen = beneath.iter().all(|below| self.providers[below.id].seen);
        self.note_short_extents(&own, &lengths);
        match own.geom.over(&lengths).filter(|_| seen) {
            Some(geom) => self.add_contents(own.id, own.class, &geom, beneath),
            None => self.add_part_of_contents(own.id, own.class, &own.geom, &[]),
        }
    }

    /// The disks that the references of a container lead to. What a file of several lacks is in its
    /// part of another one, or zero: that is known here alone.
    fn beneath(&mut self, own: &Waiting) -> Vec<Beneath> {
        let disks = own.named.iter().map(|(_, disk)| self.disk(*disk));
        let disks = disks.map(|id| Beneath::of(id, &self.providers[id]));
        let mut beneath: Vec<Beneath> = disks.collect();
        for (nth, part) in own.geom.parts().iter().enumerate().filter(|(_, part)| part.is_sparse) {
            if let Some(joined) = self.over_part(nth, part, &beneath) {
                // That it has no parent of its own is no loss any more.
                let findings = &mut self.providers[own.named[nth].1].findings;
                findings.retain(|finding| *finding.rule != finding::INCOMPLETE);
                beneath[nth] = joined;
            }
        }
        beneath
    }

    /// The contents of file `nth` of several, over their part of another one of `all`; `None` for a
    /// provider that is not the contents of a container.
    fn over_part(&self, nth: usize, part: &Part, all: &[Beneath]) -> Option<Beneath> {
        let id = all.get(nth)?.id;
        let contents = &self.providers[id];
        let file = contents.parents.first().filter(|_| contents.is_contents)?;
        let (file, geom) = (&self.providers[*file], contents.route.set()?.geom);
        let mut below = vec![file.route.clone()];
        let mut under = vec![file.topology.clone()];
        let parent = part.parent.and_then(|(nth, start)| Some((all.get(nth)?, start)));
        let room = |(parent, start): (&Beneath, u64)| parent.route.length().saturating_sub(start);
        let length = parent.map_or(0, room).min(part.length);
        if let Some((parent, start)) = parent {
            let range = [(length, Places::Striped(0, vec![(0, start)]))];
            if let Some(range) = Segments::new(String::new(), range) {
                let range: Arc<dyn Geom> = Arc::new(range);
                let on = std::slice::from_ref(&parent.route);
                below.push(Route::new(&range, 0, length, on));
                under.push(parent.topology.shift(start, length));
            }
        }
        let geom = geom.over_parent(length)?;
        let length = contents.route.length();
        let route = Route::with_tables(&geom, 0, length, &below, &self.stores);
        Some(Beneath { id, topology: geom.topology(0, &under), route })
    }

    /// Adds findings about extents that have less than a descriptor says, by their lengths in
    /// bytes.
    fn note_short_extents(&mut self, own: &Waiting, lengths: &[u64]) {
        let extents = own.geom.parts().into_iter().zip(lengths).zip(&own.named);
        let ends = |part: &Part| part.within.saturating_add(part.length);
        let short = extents.filter(|((part, length), _)| ends(part) > **length);
        let short: Vec<_> = short.collect();
        for (nth, ((part, length), (reference, _))) in short.iter().take(SAID).enumerate() {
            let Reference { role, name, .. } = reference;
            let more = match short.len() - SAID.min(short.len()) {
                more @ 1.. if nth + 1 == SAID => format!(" (and {more} more are too short)"),
                _ => String::new(),
            };
            let message = format!(
                "its {role} '{name}' has {length} bytes, and is to have {}{more}: what is behind its end cannot be read",
                ends(part)
            );
            let finding = Finding::new(&finding::INCOMPLETE, Severity::Warning, 0, message);
            let fix = "copy it again: what is missing is not in these files";
            self.providers[own.id].findings.push(finding.fix(fix));
        }
    }

    /// The finding about a disk that has the name in a reference, and is another one.
    fn other(&self, reference: &Reference, disk: Id) -> Option<Finding> {
        let wanted = reference.identity.as_ref()?;
        let mut signs = self.providers[disk].signs.iter();
        let found = signs.find_map(|sign| sign.identity.as_deref());
        if found.is_some_and(|own| reference.means(own)) {
            return None;
        }
        let found = found.unwrap_or("none");
        let Reference { role, name, .. } = reference;
        let message = format!(
            "its {role} '{name}' is not the one that it was made on, or was written since: it has {found}, and not {wanted}: the disk in it is not looked into"
        );
        let finding = Finding::new(&finding::BLIND, Severity::Warning, 0, message);
        Some(finding.fix(
            "find the parent as it was, or a copy: through another one every byte would be nonsense",
        ))
    }

    /// Adds contents of which part is in files that are not here: they are not looked into.
    fn add_part_of_contents(
        &mut self,
        id: Id,
        class: &'static str,
        geom: &Arc<dyn Geom>,
        named: &[Reference],
    ) {
        // A descriptor may name thousands.
        for (nth, reference) in named.iter().take(SAID).enumerate() {
            let Reference { role, name, .. } = reference;
            let more = match named.len() - SAID.min(named.len()) {
                more @ 1.. if nth + 1 == SAID => format!(" (nor are {more} more)"),
                _ => String::new(),
            };
            let refused = self.providers[id].refused.iter().find(|(other, _)| other == name);
            let message = match refused {
                Some((_, why)) => format!(
                    "its {role} '{name}' is not followed: {why}{more}: the disk in it is not looked into"
                ),
                None => format!(
                    "its {role}, which it calls '{name}', is not here{more}: the disk in it is not looked into"
                ),
            };
            // One without a name can only be named.
            let is_named = reference.identity.as_ref() != Some(name) && refused.is_none();
            let finding = Finding::new(&finding::BLIND, Severity::Warning, 0, message);
            let fix = if is_named { Fix::Follow } else { "name it too: IMAGE,FILE".into() };
            self.providers[id].findings.push(finding.fix(fix));
        }
        let first = self.providers.len();
        self.add_contents(id, class, geom, Vec::new());
        self.providers[first..].iter_mut().for_each(|contents| contents.seen = false);
    }

    /// Makes `id` a part of the contents that stand on it: it shows nothing of its own.
    pub(super) fn be_part(&mut self, id: Id) {
        let length = self.providers[id].topology.length;
        let member = Member {
            set: String::new(),
            provider: String::new(),
            number: None,
            count: 1,
            enough: 1,
            chunk: 0,
            length,
            claim: Claim::default(),
        };
        self.providers[id].member = Some((BACKING, member));
    }

    /// Adds the contents of the container that `id` is, over `beneath` for what is not in it.
    fn add_contents(
        &mut self,
        id: Id,
        class: &'static str,
        geom: &Arc<dyn Geom>,
        beneath: Vec<Beneath>,
    ) {
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
        let mut all = vec![Beneath::of(id, &self.providers[id])];
        all.extend(beneath);
        let parents: Vec<Id> = all.iter().map(|below| below.id).collect();
        let (under, below): (Vec<Topology>, Vec<Route>) =
            all.into_iter().map(|below| (below.topology, below.route)).unzip();
        let parent = &self.providers[id];
        let mut topology = geom.topology(0, &under);
        let route = Route::with_tables(geom, 0, slot.length, &below, &self.stores);
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
        let is_backing = parent.is_backing;
        self.providers.push(Provider {
            parents,
            start,
            is_backing,
            is_set: shift.is_none(),
            is_contents: true,
            ..contents
        });
        if is_backing {
            self.be_part(self.providers.len() - 1);
        }
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

    /// Id of the disk in a container that `id` is, or is a range of.
    pub fn contents_beneath(&self, id: Id) -> Option<Id> {
        let route = self.providers[id].route();
        let holds = |&other: &Id| {
            let provider = &self.providers[other];
            provider.is_contents && route.place_in(provider.route()).is_some()
        };
        (0..=id).rev().find(holds)
    }

    /// Number of containers that `id` lies in.
    fn containers_beneath(&self, id: Id) -> usize {
        // A provider comes after what it stands on.
        let mut counts: Vec<usize> = Vec::with_capacity(id + 1);
        for provider in &self.providers[..=id] {
            // What a container has beneath its own blocks lies beside it, not around it.
            let around = if provider.is_contents { 1 } else { provider.parents.len() };
            let below = provider.parents.iter().take(around).map(|&parent| counts[parent]).max();
            counts.push(usize::from(provider.is_contents) + below.unwrap_or_default());
        }
        counts.pop().unwrap_or_default()
    }
}
