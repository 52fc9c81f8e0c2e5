//! Partitions that are reported without their start, and the boundaries known beneath them.

use super::{Graph, Id, Provider};
use crate::base::finding::{self, Finding, Severity};
use crate::base::topology::Grain;
use crate::class::zero::Zero;
use crate::format::Sign;
use crate::mapping::geom::Geom;
use crate::mapping::route::Route;
use crate::mapping::slices::PartitionType;
use std::sync::Arc;

/// A partition with an unknown start, of which at most the distance past a boundary is reported.
pub struct Unplaced {
    /// Its name without the disk's.
    pub suffix: String,
    /// Its type in the table.
    pub kind: PartitionType,
    /// Its name in the table.
    pub label: Option<String>,
    /// Length of the partition in bytes.
    pub length: u64,
    /// Addresses where it may begin; `None` if nothing of that is reported.
    pub starts: Option<Grain>,
    /// Signs of the formats on it.
    pub signs: Vec<Sign>,
    /// Findings about reported numbers that cannot be true.
    pub findings: Vec<Finding>,
}

impl Graph {
    /// Adds a provider for every partition of `id` that is reported without its start.
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
            let (signs, mut findings, kind, label) =
                (part.signs, part.findings, Some(part.kind), part.label);
            if lost {
                let message = "its start is not reported, and the reported alignment does not \
                    settle every boundary: it is not judged by those";
                let finding = Finding::new(&finding::BLIND, Severity::Warning, 0, message.into());
                findings.push(
                    finding.fix("list all columns, with util-linux 2.38 or later: lsblk -OJb"),
                );
            }
            self.providers.push(Provider {
                start: None,
                placed: false,
                kind,
                label,
                signs,
                findings,
                ..within
            });
        }
    }
}
