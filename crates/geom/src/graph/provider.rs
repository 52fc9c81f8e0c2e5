//! Providers, and the disks that tasting begins with.

use super::occupant::Contents;
use super::{Id, Unplaced};
use crate::base::finding::Finding;
use crate::base::store::Store;
use crate::base::topology::Topology;
use crate::class::Member;
use crate::class::nop::Nop;
use crate::format::{Inside, Sign};
use crate::mapping::geom::Geom;
use crate::mapping::route::Route;
use crate::mapping::slices::{Kind, Slices};
use std::sync::Arc;

/// Something with bytes: a disk, a slice, a set, a data area.
pub struct Provider {
    /// GEOM's name without the disk's (`s1a`), or a set's (`stripe/data`); empty for the one disk of a target.
    pub name: String,
    /// The class that offers it: `disk`, a class's name, or, for a data area, the sign's kind.
    pub class: &'static str,
    /// What it stands on: nothing for a disk, one provider for a slice, all members for a set.
    pub parents: Vec<Id>,
    /// Whether it is made of members, rather than a disk or cut from one provider.
    pub is_set: bool,
    /// Its first byte on the medium; `None` where it has no single place.
    pub start: Option<u64>,
    /// False if it is not known where it begins; an old `lsblk` lists partitions without that.
    pub placed: bool,
    /// What the table above says it is.
    pub kind: Option<Kind>,
    /// Its name in the table above.
    pub label: Option<String>,
    /// Its UUID in the table above.
    pub uuid: Option<String>,
    /// What it knows of the boundaries beneath it.
    pub topology: Topology,
    /// The table on it, and the class that read it.
    pub table: Option<(&'static str, Arc<dyn Geom>)>,
    /// Everything recognised on it.
    pub signs: Vec<Sign>,
    /// Its place in a set, and the class that found it.
    pub member: Option<(&'static str, Member)>,
    /// What tasting found wrong.
    pub findings: Vec<Finding>,
    /// Tables above it.
    pub depth: usize,
    /// Whether it was tasted; otherwise it is known by hearsay only.
    pub seen: bool,
    /// The first byte that is not zero of what tasting read, where neither a class nor a format has answered.
    pub unknown: Option<u64>,
    pub(super) route: Route,
}

impl Provider {
    /// A provider of which only this is known; the rest is for who makes it to add.
    pub(super) fn new(name: String, class: &'static str, topology: Topology, route: Route) -> Provider {
        Provider {
            name,
            class,
            parents: Vec::new(),
            is_set: false,
            start: None,
            placed: true,
            kind: None,
            label: None,
            uuid: None,
            topology,
            table: None,
            signs: Vec::new(),
            member: None,
            findings: Vec::new(),
            depth: 0,
            seen: true,
            unknown: None,
            route,
        }
    }

    /// A range of `parent` that begins at its byte `start`.
    pub(super) fn within(
        parent: (Id, &Provider),
        name: String,
        class: &'static str,
        start: u64,
        topology: Topology,
        route: Route,
    ) -> Provider {
        let (id, parent) = parent;
        let start = parent.start.map(|s| s.saturating_add(start));
        let (depth, seen, placed) = (parent.depth + 1, parent.seen, parent.placed);
        Provider { parents: vec![id], start, depth, seen, placed, ..Provider::new(name, class, topology, route) }
    }

    /// How its bytes are reached.
    pub fn route(&self) -> &Route {
        &self.route
    }

    /// Where it begins: on the medium or, above a set, on the set.
    pub fn base(&self) -> u64 {
        self.start.unwrap_or(self.route.base())
    }

    /// Its partition table, if it has one.
    pub fn slices(&self) -> Option<&Slices> {
        self.table.as_ref().and_then(|(_, geom)| geom.table())
    }

    /// What was recognised and is in use: under a table a format is what was there before, unless it is never written.
    pub fn in_use(&self) -> impl Iterator<Item = &Sign> {
        self.signs.iter().filter(|s| self.table.is_none() || s.inside == Inside::ReadOnly)
    }

    /// What tasting made of it.
    pub fn tasted(&self) -> Contents<'_> {
        let member = self.member.as_ref().map(|(class, member)| (*class, member));
        Contents { table: self.table.as_ref().map(|(class, _)| *class), member, signs: &self.signs, findings: &self.findings }
    }

    /// Whether it is half moved: what is in it is in two places.
    pub fn is_moving(&self) -> bool {
        self.signs.iter().any(|sign| sign.inside == Inside::Moving)
    }

    /// Whether it is the inner data area of a format.
    pub fn is_data_area(&self) -> bool {
        !self.is_set && self.kind.is_none() && !self.parents.is_empty()
    }

    /// Whether it is an extended partition, which holds only the chain of logical ones.
    pub fn is_extended(&self) -> bool {
        self.kind.is_some_and(Kind::is_extended)
    }
}

/// A disk to put into a graph.
pub struct Disk {
    /// Its name: empty if it is the only one.
    pub name: String,
    /// Its bytes.
    pub bytes: Bytes,
    /// What is known of it.
    pub topology: Topology,
    /// Its first byte on the medium: 0, or where a partition device begins.
    pub start: Option<u64>,
    /// What the user says instead.
    pub nop: Option<Nop>,
    /// What cannot be true of what is known.
    pub findings: Vec<Finding>,
}

impl Disk {
    /// A disk read from `store`, of which `topology` is known.
    pub fn new(name: impl Into<String>, store: Box<dyn Store>, topology: Topology) -> Disk {
        Disk { name: name.into(), bytes: Bytes::Store(store), topology, start: Some(0), nop: None, findings: Vec::new() }
    }
}

/// Where a disk's bytes come from.
pub enum Bytes {
    /// A store.
    Store(Box<dyn Store>),
    /// A geom without consumers.
    Geom(Arc<dyn Geom>),
    /// Nowhere we can read: all that is known is what somebody else tells.
    Reported(Reported),
}

/// What somebody else (a kernel, lsblk) knows of a disk that is not read.
#[derive(Default)]
pub struct Reported {
    /// Its table, and the scheme.
    pub table: Option<(&'static str, Slices)>,
    /// What stands on the whole disk.
    pub signs: Vec<Sign>,
    /// What stands on each entry of the table, in its order.
    pub entries: Vec<Vec<Sign>>,
    /// Partitions of which it is not told where they begin.
    pub unplaced: Vec<Unplaced>,
}
