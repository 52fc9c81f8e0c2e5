//! Providers, and the disks that tasting begins with.

use super::occupant::Contents;
use super::{Id, Unplaced};
use crate::base::finding::Finding;
use crate::base::store::Store;
use crate::base::topology::Topology;
use crate::class::Member;
use crate::class::nop::Nop;
use crate::format::{self, Inside, Sign};
use crate::graph::Graph;
use crate::mapping::geom::{Arrangement, Geom};
use crate::mapping::route::Route;
use crate::mapping::slices::{PartitionType, Slices};
use std::sync::Arc;

/// A range of bytes that can be read as a device: a disk, a slice, a set, a data area.
#[derive(Clone)]
pub struct Provider {
    /// GEOM's name without the disk's (`s1a`), or a set's (`stripe/data`); empty for the one disk
    /// of a target.
    pub name: String,
    /// Class that offers it: `disk`, a class's name, or, for a data area, the sign's kind.
    pub class: &'static str,
    /// Kind of the format whose data area it is; `None` for anything else.
    pub area_of: Option<format::FormatKind>,
    /// Providers beneath it: none for a disk, one for a slice, all members for a set.
    pub parents: Vec<Id>,
    /// True if it is made of members; false for a disk or a range of one provider.
    pub is_set: bool,
    /// True if it is the disk that a container shows.
    pub is_contents: bool,
    /// Arrangement over its members, of a set that a class has made.
    pub arrangement: Option<Arrangement>,
    /// Its first byte on the medium; `None` where it has no single place.
    pub start: Option<u64>,
    /// False if its start is not known: an old `lsblk` lists partitions without it.
    pub placed: bool,
    /// Its type in the table above; `None` for a disk, a set or a data area.
    pub kind: Option<PartitionType>,
    /// Its name in the table above, of schemes that have names.
    pub label: Option<String>,
    /// Its UUID in the table above, of schemes that have UUIDs.
    pub uuid: Option<String>,
    /// Serial number of a disk that has told it.
    pub serial: Option<String>,
    /// Its length, sector and the boundaries beneath it.
    pub topology: Topology,
    /// Table on it, and the class that read it.
    pub table: Option<(&'static str, Arc<dyn Geom>)>,
    /// Every format recognised on it.
    pub signs: Vec<Sign>,
    /// Its place in a set, and the class that found it.
    pub member: Option<(&'static str, Member)>,
    /// Findings of tasting: damage, contradictions, unread places.
    pub findings: Vec<Finding>,
    /// Number of tables, sets and data areas above it.
    pub depth: usize,
    /// True if it was tasted; false if it is known from another program's report only.
    pub seen: bool,
    /// Offset of the first nonzero byte that tasting read, where neither a class nor a format has
    /// answered.
    pub unknown: Option<u64>,
    /// Disks that have what containers on this one name, by that name.
    pub references: Vec<(String, Id)>,
    /// Names in containers on this one that lead nowhere, and the reason for each.
    pub refused: Vec<(String, String)>,
    /// Format that it has, whatever it looks like; `None` to find out.
    pub format: Option<String>,
    /// True if it is here for a container that names it: what is on it is shown there.
    pub is_backing: bool,
    pub(super) route: Route,
}

impl Provider {
    /// A provider of which only this is known; its maker adds the rest.
    pub(super) fn new(
        name: String,
        class: &'static str,
        topology: Topology,
        route: Route,
    ) -> Provider {
        Provider {
            name,
            class,
            area_of: None,
            parents: Vec::new(),
            is_set: false,
            is_contents: false,
            arrangement: None,
            start: None,
            placed: true,
            kind: None,
            label: None,
            uuid: None,
            serial: None,
            topology,
            table: None,
            signs: Vec::new(),
            member: None,
            findings: Vec::new(),
            depth: 0,
            seen: true,
            unknown: None,
            references: Vec::new(),
            refused: Vec::new(),
            format: None,
            is_backing: false,
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
        Provider {
            parents: vec![id],
            start,
            depth,
            seen,
            placed,
            ..Provider::new(name, class, topology, route)
        }
    }

    /// Compiled route to its bytes.
    pub fn route(&self) -> &Route {
        &self.route
    }

    /// Its first byte on the medium or, above a set, on the set.
    pub fn base(&self) -> u64 {
        self.start.unwrap_or(self.route.base())
    }

    /// Its partition table, if it has one.
    pub fn slices(&self) -> Option<&Slices> {
        self.table.as_ref().and_then(|(_, geom)| geom.table())
    }

    /// Signs of formats in use: under a table a format is a leftover, unless it is a read-only one.
    pub fn in_use(&self) -> impl Iterator<Item = &Sign> {
        self.signs.iter().filter(|s| self.table.is_none() || s.inside == Inside::ReadOnly)
    }

    /// View of the tasting results, without the route.
    pub fn tasted(&self) -> Contents<'_> {
        let member = self.member.as_ref().map(|(class, member)| (*class, member));
        Contents {
            table: self.table.as_ref().map(|(class, _)| *class),
            member,
            signs: &self.signs,
            findings: &self.findings,
        }
    }

    /// True if a move of it was interrupted, so that its contents lie in two places.
    pub fn is_moving(&self) -> bool {
        self.signs.iter().any(|sign| sign.inside == Inside::Moving)
    }

    /// True if it is the inner data area of a format.
    pub fn is_data_area(&self) -> bool {
        self.area_of.is_some()
    }

    /// True if it is an extended partition, which holds only the chain of logical ones.
    pub fn is_extended(&self) -> bool {
        self.kind.is_some_and(PartitionType::is_extended)
    }
}

/// A disk to put into a graph.
pub struct Disk {
    /// Its name; empty if it is the only one.
    pub name: String,
    /// Source of its bytes.
    pub bytes: Bytes,
    /// Its length, sector and known boundaries.
    pub topology: Topology,
    /// Its first byte on the medium: 0, or the start of a partition device.
    pub start: Option<u64>,
    /// Its serial number, as it tells it; `None` for an image.
    pub serial: Option<String>,
    /// Overrides given by the user, as a nop geom above the disk.
    pub nop: Option<Nop>,
    /// Findings about reported limits that cannot be true.
    pub findings: Vec<Finding>,
    /// Disks that have what a container on this one names: the name as it has it, and the disk's
    /// index among all.
    pub references: Vec<(String, usize)>,
    /// Names in a container on this one that were not followed though names are, and the reason for
    /// each.
    pub refused: Vec<(String, String)>,
    /// Format that it has, as blkid and QEMU call it, whatever it looks like: `raw`, `qcow2`.
    /// `None` to find out.
    pub format: Option<String>,
}

impl Disk {
    /// A disk read from `store`, with the boundaries in `topology`.
    pub fn new(name: impl Into<String>, store: Box<dyn Store>, topology: Topology) -> Disk {
        Disk {
            name: name.into(),
            bytes: Bytes::Store(store),
            topology,
            start: Some(0),
            serial: None,
            nop: None,
            findings: Vec::new(),
            references: Vec::new(),
            refused: Vec::new(),
            format: None,
        }
    }
}

/// Source of a disk's bytes.
pub enum Bytes {
    /// A store that is read and tasted.
    Store(Box<dyn Store>),
    /// A geom without consumers, such as a zero disk.
    Geom(Arc<dyn Geom>),
    /// None that can be read: all that is known is another program's report.
    Reported(Reported),
}

/// Report of another program (the kernel, lsblk) about a disk that is not read.
#[derive(Default)]
pub struct Reported {
    /// Its partition table, and the scheme's name.
    pub table: Option<(&'static str, Slices)>,
    /// Signs on the whole disk.
    pub signs: Vec<Sign>,
    /// Signs on each entry of the table, in its order.
    pub entries: Vec<Vec<Sign>>,
    /// Partitions without a reported start.
    pub unplaced: Vec<Unplaced>,
}

impl Graph {
    /// True if provider `id` is `outer`, a range of it, or a range of such a range.
    pub fn is_within(&self, outer: Id, id: Id) -> bool {
        let mut at = id;
        loop {
            match self.providers[at].parents.as_slice() {
                _ if at == outer => return true,
                &[parent] if !self.providers[at].is_set => at = parent,
                _ => return false,
            }
        }
    }

    /// The partition of `length` bytes that begins at byte `from` of provider `on`: of several, the
    /// one that has the others.
    pub fn partition_at(&self, on: Id, from: u64, length: u64) -> Option<Id> {
        let base = self.providers[on].base().saturating_add(from);
        (0..self.providers.len()).find(|&id| {
            let p = &self.providers[id];
            let is_there = p.base() == base && p.topology.length == length;
            id != on && p.kind.is_some() && is_there && self.is_within(on, id)
        })
    }
}
