//! `imsm`: volumes of Intel's firmware RAID, assembled of the disks of a container.
//!
//! # On disk
//! The metadata that [`crate::format::imsm`] reads: all disks of a container have the same. Their
//! checksum is verified.
//!
//! # Members
//! The newest metadata, by their generation, count; a disk that has older ones is left out and
//! named. Which disk is which is not in its bytes: the metadata name disks by serial numbers, which
//! a device tells and an image does not. Disks that tell none, or others, are told apart by their
//! lengths if those differ, else they are taken in the order in which they are named; a note says
//! so, with the order of the metadata. That takes as many disks as the metadata list. A mirror
//! needs no order.
//!
//! # Topology
//! As md's sets of the same level: the chunk, and the full stripe or the row.
//!
//! # Limits
//! A volume under reshape, one with attributes that mdadm does not serve, and one with parity that
//! was not stopped in order and lacks a disk are named and not read. Logs of partial parity are not
//! replayed. A volume whose disks were put in order by assumption is not written.
//!
//! # Sources
//! mdadm `super-intel.c`.

use super::{Assembly, Below, Claim, Class, Layer, Member, Present, Taste};
use crate::base::finding::{self, Finding, Severity};
use crate::format;
use crate::format::imsm::mpb::{self, Mpb};
use crate::probe::Probe;

mod build;
mod fault;

/// The class `imsm`, for Intel's firmware RAID.
pub struct Imsm;

impl Class for Imsm {
    fn name(&self) -> &'static str {
        "imsm"
    }

    fn lies_by_sectors(&self) -> bool {
        true
    }

    fn sign(&self) -> Option<format::FormatKind> {
        Some(format::imsm::KIND)
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        let Some((_, Ok(mpb))) = mpb::find(probe) else { return Taste::No };
        // A spare has no volume.
        let Some(first) = mpb.volumes.first() else { return Taste::No };
        let count = mpb.live().count().max(1);
        Taste::Member(Member {
            set: format!("{:08x}", mpb.family),
            provider: format!("imsm/{}", first.short_name()),
            number: None,
            count,
            enough: 1,
            chunk: first.map.chunk,
            length: mpb.start,
            claim: Claim::new(mpb),
        })
    }

    fn build(&self, present: &[Present<'_>], degraded: bool) -> Option<Assembly> {
        build::Building::new(present)?.assembly(degraded)
    }
}

impl Mpb {
    /// Indices of the disks that have not failed.
    fn live(&self) -> impl Iterator<Item = usize> {
        let live = self.disks.iter().enumerate().filter(|(_, disk)| !disk.failed && !disk.spare);
        live.map(|(at, _)| at)
    }
}
