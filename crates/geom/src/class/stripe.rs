//! `stripe`: RAID0 (gstripe).
//!
//! # On disk
//! Last sector of every member: magic `GEOM::STRIPE`, version 3.
//!
//! # Topology
//! The chunk and the row are the set's own grains. A member's grain that divides the chunk holds on the set if the
//! member's data begins on it; one larger than the chunk is stretched to whole rows; members that differ clash. GEOM
//! itself drops what its members say.
//!
//! # Limits
//! Two members or more; a chunk is a power of two; every member is cut to whole chunks of the smallest.
//!
//! # Sources
//! FreeBSD `sys/geom/stripe/g_stripe.h`, `g_stripe.c`.

use super::{Class, Extent, Geom, Member, Op, Slot, Taste};
use crate::layout;
use crate::ondisk;
use crate::probe::Probe;
use crate::topology::{Source, Topology, round_down};
use std::sync::Arc;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// The class.
pub struct Stripe;

const MAGIC: &[u8; 16] = b"GEOM::STRIPE\0\0\0\0";

/// `struct g_stripe_metadata`.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Metadata {
    md_magic: [u8; 16],
    md_version: U32,
    md_name: [u8; 16],
    md_id: U32,
    md_no: U16,
    md_all: U16,
    md_stripesize: U32,
    md_provider: [u8; 16],
    md_provsize: U64,
}
layout!(Metadata, 72, md_version @ 16, md_id @ 36, md_stripesize @ 44, md_provider @ 48, md_provsize @ 64);

impl Class for Stripe {
    fn name(&self) -> &'static str {
        "stripe"
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        let Some(md) = probe.from_end(probe.sector()).and_then(|at| probe.read::<Metadata>(at)) else { return Taste::No };
        let (chunk, count) = (u64::from(md.md_stripesize.get()), usize::from(md.md_all.get()));
        let number = usize::from(md.md_no.get());
        let valid = md.md_magic == *MAGIC
            && (1..=3).contains(&md.md_version.get())
            && (md.md_version.get() < 3 || md.md_provsize.get() == probe.length())
            && chunk.is_power_of_two()
            && chunk >= probe.sector()
            && count >= 2
            && number < count;
        let Some(name) = ondisk::text(&md.md_name).filter(|_| valid) else { return Taste::No };
        Taste::Member(Member {
            set: format!("{name}/{:08x}", md.md_id.get()),
            provider: format!("stripe/{name}"),
            number: Some(number),
            count,
            enough: count,
            chunk,
            length: probe.length() - probe.sector(),
        })
    }

    fn assemble(&self, members: &[Member]) -> Option<Arc<dyn Geom>> {
        let first = members.first()?;
        if members.iter().any(|m| m.chunk != first.chunk) {
            return None;
        }
        let share = members.iter().map(|m| round_down(m.length, m.chunk)).min()?;
        Some(Arc::new(Raid0::new(first.provider.clone(), first.chunk, members.len(), share)?))
    }
}

/// A striped set.
pub struct Raid0 {
    name: String,
    chunk: u64,
    members: u64,
    length: u64,
}

impl Raid0 {
    /// A set of `members` members of `share` bytes each, a whole number of chunks; `None` if that is nothing.
    pub fn new(name: String, chunk: u64, members: usize, share: u64) -> Option<Raid0> {
        let members = u64::try_from(members).ok()?;
        let length = round_down(share, chunk).checked_mul(members)?;
        (chunk > 0 && length > 0).then_some(Raid0 { name, chunk, members, length })
    }
}

impl Geom for Raid0 {
    fn providers(&self) -> Vec<Slot> {
        vec![Slot { name: self.name.clone(), length: self.length, kind: None }]
    }

    fn topology(&self, _slot: usize, below: &[Topology]) -> Topology {
        Topology::stripe(below, self.chunk, self.length, Source::Label)
    }

    fn map(&self, _slot: usize, offset: u64, length: u64, _op: Op) -> Extent {
        let (n, within) = (offset / self.chunk, offset % self.chunk);
        let (row, member) = (n / self.members, n % self.members);
        Extent::At {
            consumer: usize::try_from(member).unwrap_or(usize::MAX),
            offset: row * self.chunk + within,
            length: length.min(self.chunk - within),
        }
    }
}
