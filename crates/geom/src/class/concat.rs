//! `concat`: one member after another (gconcat).
//!
//! # On disk
//! Last sector of every member: magic `GEOM::CONCAT`, version 4. The metadata sector is not part of
//! the set, so on 512-byte sectors the second member's data begins one sector off every larger
//! boundary: see rule TL0006.
//!
//! # Topology
//! Each member's grains, moved to where it begins; a seam off the grain is a clash. GEOM shows
//! those of the first member.
//!
//! # Sources
//! FreeBSD `sys/geom/concat/g_concat.h`, `g_concat.c`.

use super::metadata::{self, Field, Label, Labelled, Relabel, Relabelled, Relabels, number, text};
use super::{Claim, Class, Member, Taste};
use crate::base::ondisk::{self, on_disk};
use crate::base::topology::Topology;
use crate::mapping::geom::{Arrangement, Extent, Geom, Op, Slot};
use crate::probe::Probe;
use crate::table::Refusal;
use std::sync::Arc;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64};

/// The class `concat`, for GEOM's concatenated sets.
pub struct Concat;

const MAGIC: &[u8; 16] = b"GEOM::CONCAT\0\0\0\0";
const VERSION: u32 = 4;

on_disk! {
    /// On-disk metadata, `struct g_concat_metadata`.
    #[derive(IntoBytes)]
    struct Metadata of 68 bytes {
         0 => md_magic: [u8; 16],
        16 => md_version: U32,
        20 => md_name: [u8; 16],
        36 => md_id: U32,
        40 => md_no: U16,
        42 => md_all: U16,
        44 => md_provider: [u8; 16],
        60 => md_provsize: U64,
    }
}

impl Class for Concat {
    fn name(&self) -> &'static str {
        "concat"
    }

    fn lies_by_sectors(&self) -> bool {
        true
    }

    fn relabels(&self) -> Option<&'static dyn Relabels> {
        Some(&Concat)
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        let Some(md) = probe.from_end(probe.sector()).and_then(|at| probe.read::<Metadata>(at))
        else {
            return Taste::No;
        };
        md.member(probe.length(), probe.sector()).map_or(Taste::No, Taste::Member)
    }

    fn assemble(&self, members: &[Member]) -> Option<Arc<dyn Geom>> {
        let name = members.first()?.provider.clone();
        Some(Arc::new(Linear::new(name, members.iter().map(|m| m.length))?))
    }
}

impl Relabels for Concat {
    /// The length before the metadata is where the next member begins, so only that of the last one
    /// can be another.
    fn relabel(&self, last: &[u8], on: Relabel) -> Result<Relabelled, Refusal> {
        let mut md: Metadata = metadata::read(last, MAGIC)?;
        let data = on.shares();
        let is_last = md.md_no.get().checked_add(1) == Some(md.md_all.get());
        if data[0] != data[1] && !is_last {
            let found = format!(
                "the next member's data begin {} bytes after its own, and would begin {}",
                data[0], data[1]
            );
            return Err(Refusal::new(found, "make the set anew on the other sectors"));
        }
        if md.md_version.get() >= 4 {
            md.md_provsize = on.after.into();
        }
        Ok(Relabelled { metadata: metadata::sector_of(&md, 512), data })
    }
}

impl Metadata {
    /// The membership of a provider of `length` bytes with this in its last sector; `None` if a
    /// field is wrong.
    fn member(&self, length: u64, sector: u64) -> Option<Member> {
        let (number, count) = (usize::from(self.md_no.get()), usize::from(self.md_all.get()));
        let valid = self.md_magic == *MAGIC
            && self.md_version.get() <= VERSION
            && (self.md_version.get() < 4 || self.md_provsize.get() == length)
            && count >= 1
            && number < count;
        let name = ondisk::text(&self.md_name).filter(|_| valid)?;
        Some(Member {
            set: format!("{name}/{:08x}", self.md_id.get()),
            provider: format!("concat/{name}"),
            number: Some(number),
            count,
            enough: count,
            chunk: 0,
            length: length.checked_sub(sector)?,
            claim: Claim::default(),
        })
    }
}

/// The labels that `gconcat label` writes, member by member.
pub fn label(label: &Label<'_>) -> Result<Vec<Labelled>, Refusal> {
    label.sector(2, usize::from(u16::MAX))?;
    if label.smallest() == 0 {
        return Err(Refusal::new("a member of one sector or less", "leave it out"));
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

/// The fields that `gconcat dump` shows of a last sector.
pub fn dump(sector: &[u8]) -> Result<Vec<Field>, Refusal> {
    let md: Metadata = metadata::read(sector, MAGIC)?;
    Ok(vec![
        text("Magic string", "magic", &md.md_magic),
        number("Metadata version", "version", md.md_version),
        text("Device name", "name", &md.md_name),
        number("Device ID", "id", md.md_id),
        number("Disk number", "number", md.md_no),
        number("Total number of disks", "count", md.md_all),
        text("Hardcoded provider", "hardcoded", &md.md_provider),
    ])
}

/// A set of members one after another.
pub struct Linear {
    name: String,
    /// First byte of each member on the set, in order; the first is 0.
    starts: Vec<u64>,
    length: u64,
}

impl Linear {
    /// The set of members of these lengths in bytes; `None` if it would be empty or too large.
    pub fn new(name: String, lengths: impl IntoIterator<Item = u64>) -> Option<Linear> {
        let (mut starts, mut length) = (Vec::new(), 0u64);
        for member in lengths {
            starts.push(length);
            length = length.checked_add(member).filter(|_| member > 0)?;
        }
        (length > 0).then_some(Linear { name, starts, length })
    }
}

impl Geom for Linear {
    fn providers(&self) -> Vec<Slot> {
        vec![Slot { name: self.name.clone(), length: self.length, kind: None }]
    }

    fn arrangement(&self, _slot: usize) -> Option<Arrangement> {
        let members = self.starts.len();
        let (level, chunk) = ("linear".into(), None);
        Some(Arrangement { level, layout: None, chunk, members, present: members })
    }

    fn topology(&self, _slot: usize, below: &[Topology]) -> Topology {
        Topology::concat(below, &self.starts, self.length)
    }

    fn map(&self, _slot: usize, offset: u64, length: u64, _op: Op) -> Extent {
        let consumer = self.starts.partition_point(|&start| start <= offset) - 1;
        let end = self.starts.get(consumer + 1).copied().unwrap_or(self.length);
        Extent::At {
            consumer,
            offset: offset - self.starts[consumer],
            length: length.min(end - offset),
        }
    }
}
