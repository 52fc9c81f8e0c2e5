//! Reports of other programs about a disk: its table and signs, partitions without their start, and
//! the boundaries known beneath them.

use super::{Graph, Id, Provider, Reported};
use crate::base::finding::{self, Finding, Severity};
use crate::base::topology::Grain;
use crate::class::zero::Zero;
use crate::format::Sign;
use crate::mapping::geom::Geom;
use crate::mapping::route::Route;
use crate::mapping::slices::{PartitionType, bounded, out_of_range};
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
    /// Adds the table, signs and partitions that another program reported of the disk just added.
    pub(super) fn add_reported(&mut self, reported: Reported) {
        let id = self.providers.len() - 1;
        self.providers[id].signs = reported.signs;
        if let Some((scheme, mut slices)) = reported.table {
            let (length, sector) =
                (self.providers[id].topology.length, self.providers[id].topology.sector);
            let reported = slices
                .entries
                .into_iter()
                .zip(reported.entries.into_iter().chain(std::iter::repeat_with(Vec::new)));
            let (inside, outside): (Vec<_>, Vec<_>) =
                reported.partition(|(slice, _)| slice.partition.is_within(length));
            let left_out = outside.iter().map(|(slice, _)| {
                out_of_range(&slice.suffix, slice.partition.start, length, sector, "left out")
            });
            self.providers[id].findings.extend(bounded(left_out.collect()));
            let signs: Vec<Vec<Sign>>;
            (slices.entries, signs) = inside.into_iter().unzip();
            let geom: Arc<dyn Geom> = Arc::new(slices);
            self.providers[id].table = Some((scheme, geom.clone()));
            self.add_slices(id, scheme, &geom);
            for (provider, signs) in self.providers[id + 1..].iter_mut().zip(signs) {
                provider.signs = signs;
            }
        }
        self.add_unplaced(id, reported.unplaced);
        for id in id..self.providers.len() {
            self.add_data(id);
        }
    }

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
