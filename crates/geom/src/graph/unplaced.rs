//! Partitions that are told of without their place: what is known of the boundaries beneath them.

use super::{Graph, Id, Provider};
use crate::base::finding::{self, Finding, Severity};
use crate::base::topology::Grain;
use crate::class::zero::Zero;
use crate::format::Sign;
use crate::mapping::geom::Geom;
use crate::mapping::route::Route;
use crate::mapping::slices::Kind;
use std::sync::Arc;

/// A partition of which it is not told where it begins, or no more than how far past a boundary.
pub struct Unplaced {
    /// Its name without the disk's.
    pub suffix: String,
    /// Its type in the table.
    pub kind: Kind,
    /// Its name in the table.
    pub label: Option<String>,
    /// Its length in bytes.
    pub length: u64,
    /// The places where it may begin, as far as that is told.
    pub starts: Option<Grain>,
    /// Formats that stand on it.
    pub signs: Vec<Sign>,
    /// Numbers told of it that cannot be true.
    pub findings: Vec<Finding>,
}

impl Graph {
    /// A provider for every partition of `id` that is told of without its place.
    pub(super) fn add_unplaced(&mut self, id: Id, unplaced: Vec<Unplaced>) {
        for part in unplaced {
            if self.full(id) {
                return;
            }
            let parent = &self.providers[id];
            let class = parent.table.as_ref().map_or("partition", |(scheme, _)| *scheme);
            let name = format!("{}{}", parent.name, part.suffix);
            let nothing: Arc<dyn Geom> = Arc::new(Zero { length: part.length });
            let route = Route::new(&nothing, 0, part.length, &[]);
            let topology = parent.topology.shift_somewhere(part.starts, part.length);
            let lost = parent.topology.counting().count() > topology.counting().count();
            let within = Provider::within((id, parent), name, class, 0, topology, route);
            let (signs, mut findings, kind, label) = (part.signs, part.findings, Some(part.kind), part.label);
            if lost {
                let message =
                    "where it starts is not told, and what is told of its alignment does not settle every boundary: not judged by those";
                let finding = Finding::new(&finding::BLIND, Severity::Warning, 0, message.into());
                findings.push(finding.fix("list all columns, with util-linux 2.38 or later: lsblk -OJb"));
            }
            self.providers.push(Provider { start: None, placed: false, kind, label, signs, findings, ..within });
        }
    }
}
