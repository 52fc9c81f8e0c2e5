//! `integrity`: dm-integrity's volume, of the device that keeps its tags between its data.
//!
//! # On disk
//! As [`crate::format::integrity`] recognises it.
//!
//! # Topology
//! Areas of data begin wherever the tags before them end. A unit that divides areas and tags, and
//! on which the first area begins, is never cut; of another one some area cuts one.
//!
//! # Limits
//! Tags are not verified. What the journal of a volume that was not stopped in order holds is not
//! read, and its contents are `unknown`. Nothing is written: the tags would have to change with it.
//!
//! # Sources
//! Those of the format.

use super::{Assembly, Below, Claim, Class, Layer, Member, Present, Taste};
use crate::base::finding::Finding;
use crate::base::topology::{Topology, gcd};
use crate::format;
use crate::format::integrity::{self, Layout};
use crate::mapping::geom::{Extent, Geom, Op, Slot};
use crate::probe::Probe;
use std::sync::Arc;

/// The class `integrity`, for volumes of dm-integrity.
pub struct Integrity;

impl Class for Integrity {
    fn name(&self) -> &'static str {
        "integrity"
    }

    fn sign(&self) -> Option<format::FormatKind> {
        Some(integrity::KIND)
    }

    fn judges_data_areas(&self) -> bool {
        true
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        let found = integrity::read(probe, 0).map(|sb| sb.layout(probe.length()));
        let Some(Ok(layout)) = found else { return Taste::No };
        let pending = layout.journal.finding(probe, 0);
        Taste::Member(Member {
            set: "integrity".into(),
            provider: ".integrity".into(),
            number: None,
            count: 1,
            enough: 1,
            chunk: 0,
            length: probe.length(),
            claim: Claim::new(Volume { layout, pending }),
        })
    }

    fn joins(&self) -> bool {
        false
    }

    fn build(&self, present: &[Present<'_>], _degraded: bool) -> Option<Assembly> {
        let Volume { layout, pending } = present.first()?.member.claim.get::<Volume>()?;
        let areas = Layer::new(Arc::new(Areas::new(*layout)), vec![Below::Member(0)]);
        let findings = pending.iter().cloned().collect();
        // It has no name of its own.
        let layer = Layer { adds_to_names: true, findings, ..areas };
        Some(Assembly { layers: vec![layer], here: vec![0], ..Assembly::default() })
    }
}

/// Volume of a provider that was tasted.
struct Volume {
    layout: Layout,
    /// Finding about the journal.
    pending: Option<Finding>,
}

/// Areas of data, with tags between them.
pub struct Areas {
    layout: Layout,
}

impl Areas {
    /// The volume whose data lie so.
    pub fn new(layout: Layout) -> Areas {
        Areas { layout }
    }
}

impl Geom for Areas {
    fn providers(&self) -> Vec<Slot> {
        vec![Slot { name: ".integrity".into(), length: self.layout.length, kind: None }]
    }

    fn topology(&self, _slot: usize, below: &[Topology]) -> Topology {
        let Layout { first, area, run, length, block, .. } = self.layout;
        let Some(below) = below.first() else { return Topology::new(1, 0) };
        let mut top = match length > area {
            true => below.in_areas(first, gcd(area, run), length),
            false => below.shift(first, length),
        };
        top.sector = top.sector.max(block);
        top
    }

    fn map(&self, _slot: usize, offset: u64, length: u64, op: Op) -> Extent {
        match self.layout.place(offset) {
            _ if op == Op::Write => Extent::ReadOnly { length },
            Some((place, left)) => {
                Extent::At { consumer: 0, offset: place, length: length.min(left) }
            }
            None => Extent::Fail { length },
        }
    }

    fn read_only(&self, _slot: usize) -> Option<&'static str> {
        Some("a write would have to change its tags as well")
    }
}
