//! `stripe`: sets of RAID0 (gstripe).
//!
//! # On disk
//! Last sector of every member: magic `GEOM::STRIPE`, version 3.
//!
//! # Topology
//! The chunk and the row are the set's own grains. A member's grain that divides the chunk holds on
//! the set if the member's data begins on it; one larger than the chunk is stretched to whole rows;
//! members that differ clash. GEOM itself drops what its members say.
//!
//! # Limits
//! Two members or more; a chunk is a power of two; every member is cut to whole chunks of the
//! smallest. A hard-coded provider name is written and shown; a member counts wherever it is found.
//!
//! # Sources
//! FreeBSD `sys/geom/stripe/g_stripe.h`, `g_stripe.c`.

use super::metadata::{self, Field, Label, Labelled, Relabel, Relabelled, Relabels, number, text};
use super::{Claim, Class, Member, Taste};
use crate::base::ondisk::{self, on_disk};
use crate::base::topology::{Source, Topology, is_whole, round_down};
use crate::mapping::geom::{Arrangement, Extent, Geom, Op, Slot};
use crate::probe::Probe;
use crate::table::Refusal;
use std::sync::Arc;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64};

/// The class `stripe`, for GEOM's striped sets.
pub struct Stripe;

const MAGIC: &[u8; 16] = b"GEOM::STRIPE\0\0\0\0";
const VERSION: u32 = 3;

on_disk! {
    /// On-disk metadata, `struct g_stripe_metadata`.
    #[derive(IntoBytes)]
    struct Metadata of 72 bytes {
         0 => md_magic: [u8; 16],
        16 => md_version: U32,
        20 => md_name: [u8; 16],
        36 => md_id: U32,
        40 => md_no: U16,
        42 => md_all: U16,
        44 => md_stripesize: U32,
        48 => md_provider: [u8; 16],
        64 => md_provsize: U64,
    }
}

impl Class for Stripe {
    fn name(&self) -> &'static str {
        "stripe"
    }

    fn lies_by_sectors(&self) -> bool {
        true
    }

    fn relabels(&self) -> Option<&'static dyn Relabels> {
        Some(&Stripe)
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        let Some(md) = probe.from_end(probe.sector()).and_then(|at| probe.read::<Metadata>(at))
        else {
            return Taste::No;
        };
        md.member(probe.length(), probe.sector()).map_or(Taste::No, Taste::Member)
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

impl Relabels for Stripe {
    /// Every member has to give as many whole chunks as before.
    fn relabel(&self, last: &[u8], on: Relabel) -> Result<Relabelled, Refusal> {
        let mut md: Metadata = metadata::read(last, MAGIC)?;
        let chunk = u64::from(md.md_stripesize.get());
        let data = on.shares().map(|share| round_down(share, chunk.max(1)));
        if chunk < on.to || data[0] != data[1] {
            let found = format!(
                "its set takes {} bytes of it in chunks of {chunk}, and {} would be left",
                data[0], data[1]
            );
            return Err(Refusal::new(found, "make the set anew on the other sectors"));
        }
        if md.md_version.get() >= 3 {
            md.md_provsize = on.after.into();
        }
        Ok(Relabelled { metadata: metadata::sector_of(&md, 512), data })
    }
}

impl Metadata {
    /// The membership of a provider of `length` bytes with this in its last sector; `None` if a
    /// field is wrong.
    fn member(&self, length: u64, sector: u64) -> Option<Member> {
        let (chunk, count) = (u64::from(self.md_stripesize.get()), usize::from(self.md_all.get()));
        let number = usize::from(self.md_no.get());
        let valid = self.md_magic == *MAGIC
            && (1..=VERSION).contains(&self.md_version.get())
            && (self.md_version.get() < 3 || self.md_provsize.get() == length)
            && chunk.is_power_of_two()
            && chunk >= sector
            && count >= 2
            && number < count;
        let name = ondisk::text(&self.md_name).filter(|_| valid)?;
        Some(Member {
            set: format!("{name}/{:08x}", self.md_id.get()),
            provider: format!("stripe/{name}"),
            number: Some(number),
            count,
            enough: count,
            chunk,
            length: length.checked_sub(sector)?,
            claim: Claim::default(),
        })
    }
}

/// The labels that `gstripe label -s CHUNK` writes, member by member.
pub fn label(label: &Label<'_>, chunk: u64) -> Result<Vec<Labelled>, Refusal> {
    let sector = label.sector(2, usize::from(u16::MAX))?;
    let Some(size) = u32::try_from(chunk).ok().filter(|_| chunk.is_power_of_two()) else {
        return Err(Refusal::new(
            format!("a chunk of {chunk} bytes"),
            format!("use a power of two, {sector} to {}", 1u64 << 31),
        ));
    };
    if !is_whole(chunk, sector) {
        return Err(Refusal::new(
            format!("a chunk of {chunk} bytes"),
            format!("it has to be a multiple of {sector}, the members' sector"),
        ));
    }
    if label.smallest() < chunk {
        let found =
            format!("the smallest member has {} bytes before its metadata", label.smallest());
        return Err(Refusal::new(
            found,
            format!("a chunk is {chunk} bytes: use a smaller one, or larger members"),
        ));
    }
    let count = u16::try_from(label.components.len()).unwrap_or(u16::MAX);
    let one = |(number, c): (u16, &metadata::Component)| {
        let md = Metadata {
            md_magic: *MAGIC,
            md_version: VERSION.into(),
            md_name: metadata::field(label.name),
            md_id: label.id.into(),
            md_no: number.into(),
            md_all: count.into(),
            md_stripesize: size.into(),
            md_provider: metadata::field(c.hardcoded.as_deref().unwrap_or_default()),
            md_provsize: c.length.into(),
        };
        metadata::labelled(
            metadata::sector_of(&md, c.sector),
            md.member(c.length, c.sector),
            c.length,
        )
    };
    (0..).zip(label.components).map(one).collect()
}

/// The fields that `gstripe dump` shows of a last sector.
pub fn dump(sector: &[u8]) -> Result<Vec<Field>, Refusal> {
    let md: Metadata = metadata::read(sector, MAGIC)?;
    Ok(vec![
        text("Magic string", "magic", &md.md_magic),
        number("Metadata version", "version", md.md_version),
        text("Device name", "name", &md.md_name),
        number("Device ID", "id", md.md_id),
        number("Disk number", "number", md.md_no),
        number("Total number of disks", "count", md.md_all),
        number("Stripe size", "chunk", md.md_stripesize),
        text("Hardcoded provider", "hardcoded", &md.md_provider),
    ])
}

/// A set whose chunks lie on one member after another (RAID0).
pub struct Raid0 {
    name: String,
    chunk: u64,
    members: u64,
    length: u64,
}

impl Raid0 {
    /// A set of `members` members of `share` bytes each, a whole number of chunks; `None` if it
    /// would be empty or too large.
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

    fn arrangement(&self, _slot: usize) -> Option<Arrangement> {
        let members = usize::try_from(self.members).unwrap_or(usize::MAX);
        let (level, chunk) = ("raid0".into(), Some(self.chunk));
        Some(Arrangement { level, layout: None, chunk, members, present: members })
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
