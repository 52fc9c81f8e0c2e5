//! `mirror`: RAID1 (gmirror).
//!
//! # On disk
//! Last sector of every member: magic `GEOM::MIRROR`, version 4, MD5 of the first 119 bytes at 119 (not verified: a torn
//! label fails its other checks, and nothing is written by it).
//!
//! # Topology
//! What is a boundary on all members.
//!
//! # Limits
//! Members carry a random id, not a number; they are taken in the order in which they were found.
//!
//! # Sources
//! FreeBSD `sys/geom/mirror/g_mirror.h`.

use super::{Class, Extent, Geom, Member, Op, Slot, Taste};
use crate::layout;
use crate::ondisk;
use crate::probe::Probe;
use crate::topology::Topology;
use std::sync::Arc;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// The class.
pub struct Mirror;

const MAGIC: &[u8; 16] = b"GEOM::MIRROR\0\0\0\0";

/// `struct g_mirror_metadata`.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Metadata {
    md_magic: [u8; 16],
    md_version: U32,
    md_name: [u8; 16],
    md_mid: U32,
    md_did: U32,
    md_all: u8,
    md_genid: U32,
    md_syncid: U32,
    md_priority: u8,
    md_slice: U32,
    md_balance: u8,
    md_mediasize: U64,
    md_sectorsize: U32,
    md_sync_offset: U64,
    md_mflags: U64,
    md_dflags: U64,
    md_provider: [u8; 16],
    md_provsize: U64,
    md_hash: [u8; 16],
}
layout!(Metadata, 135, md_all @ 44, md_slice @ 54, md_mediasize @ 59, md_sectorsize @ 67, md_provider @ 95, md_provsize @ 111, md_hash @ 119);

impl Class for Mirror {
    fn name(&self) -> &'static str {
        "mirror"
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        let Some(md) = probe.from_end(probe.sector()).and_then(|at| probe.read::<Metadata>(at)) else { return Taste::No };
        let valid = md.md_magic == *MAGIC
            && md.md_version.get() <= 4
            && md.md_provsize.get() == probe.length()
            && md.md_mediasize.get() <= probe.length() - probe.sector()
            && md.md_all >= 1;
        let Some(name) = ondisk::text(&md.md_name).filter(|_| valid) else { return Taste::No };
        Taste::Member(Member {
            set: format!("{name}/{:08x}", md.md_mid.get()),
            provider: format!("mirror/{name}"),
            // Members are alike: any order will do, and one alone already shows the content.
            number: None,
            count: usize::from(md.md_all),
            enough: 1,
            chunk: 0,
            length: md.md_mediasize.get(),
        })
    }

    fn assemble(&self, members: &[Member]) -> Option<Arc<dyn Geom>> {
        let length = members.iter().map(|m| m.length).min()?;
        Some(Arc::new(Raid1::new(members.first()?.provider.clone(), length)?))
    }
}

/// A mirrored set.
pub struct Raid1 {
    name: String,
    length: u64,
}

impl Raid1 {
    /// Copies of `length` bytes; `None` if that is nothing.
    pub fn new(name: String, length: u64) -> Option<Raid1> {
        (length > 0).then_some(Raid1 { name, length })
    }
}

impl Geom for Raid1 {
    fn providers(&self) -> Vec<Slot> {
        vec![Slot { name: self.name.clone(), length: self.length, kind: None }]
    }

    fn topology(&self, _slot: usize, below: &[Topology]) -> Topology {
        Topology::mirror(below, self.length)
    }

    fn map(&self, _slot: usize, offset: u64, length: u64, _op: Op) -> Extent {
        Extent::Each { offset, length }
    }
}
