//! `mirror`: sets of RAID1 (gmirror).
//!
//! # On disk
//! Last sector of every member: magic `GEOM::MIRROR`, version 4, MD5 of the first 119 bytes at 119.
//! FreeBSD does not take a member whose MD5 is wrong, and neither is it taken here.
//!
//! # Topology
//! The boundaries that all members share.
//!
//! # Limits
//! Members carry a random id, not a number; they are taken in the order in which they were found.
//! Versions 3 and 4, which are alike; older ones lie otherwise and are not read. A hard-coded
//! provider name is written and shown; a member counts wherever it is found.
//!
//! # Sources
//! FreeBSD `sys/geom/mirror/g_mirror.h`.

use super::metadata::{
    self, Field, Label, Labelled, Relabel, Relabelled, Relabels, Value, number, text,
};
use super::{Claim, Class, Member, Taste};
use crate::base::finding::{self, Finding, Severity};
use crate::base::ondisk::{self, on_disk};
use crate::base::topology::{Topology, round_down};
use crate::mapping::geom::{Arrangement, Extent, Geom, Op, Slot};
use crate::probe::Probe;
use crate::table::Refusal;
use std::sync::Arc;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U32, U64};

/// The class `mirror`, for GEOM's mirrored sets.
pub struct Mirror;

const MAGIC: &[u8; 16] = b"GEOM::MIRROR\0\0\0\0";
const VERSION: u32 = 4;
/// Flags of the set by bit: `G_MIRROR_DEVICE_FLAG_*`.
const MFLAGS: [(u64, &str); 2] = [(2, "NOFAILSYNC"), (1, "NOAUTOSYNC")];
/// Flags of a member by bit: `G_MIRROR_DISK_FLAG_*`, as far as `gmirror dump` names them.
const DFLAGS: [(u64, &str); 4] =
    [(1, "DIRTY"), (2, "SYNCHRONIZING"), (4, "FORCE_SYNC"), (8, "INACTIVE")];

on_disk! {
    /// On-disk metadata, `struct g_mirror_metadata`.
    #[derive(IntoBytes)]
    struct Metadata of 135 bytes {
          0 => md_magic: [u8; 16],
         16 => md_version: U32,
         20 => md_name: [u8; 16],
         36 => md_mid: U32,
         40 => md_did: U32,
         44 => md_all: u8,
         45 => md_genid: U32,
         49 => md_syncid: U32,
         53 => md_priority: u8,
         54 => md_slice: U32,
         58 => md_balance: u8,
         59 => md_mediasize: U64,
         67 => md_sectorsize: U32,
         71 => md_sync_offset: U64,
         79 => md_mflags: U64,
         87 => md_dflags: U64,
         95 => md_provider: [u8; 16],
        111 => md_provsize: U64,
        119 => md_hash: [u8; 16],
    }
}

impl Class for Mirror {
    fn name(&self) -> &'static str {
        "mirror"
    }

    fn lies_by_sectors(&self) -> bool {
        true
    }

    fn relabels(&self) -> Option<&'static dyn Relabels> {
        Some(&Mirror)
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        let Some(md) = probe.from_end(probe.sector()).and_then(|at| probe.read::<Metadata>(at))
        else {
            return Taste::No;
        };
        let Some(member) = md.member(probe.length(), probe.sector()) else { return Taste::No };
        let (found, sum) = (hex(&md.md_hash), hex(&md.sum()));
        if found != sum {
            let at = member.length;
            let message = format!(
                "the label of a member of {} is damaged: its MD5 is {found}, computed {sum}",
                member.provider
            );
            let finding = Finding::new(&finding::INCOMPLETE, Severity::Warning, at, message);
            return Taste::Refused(vec![
                finding.fix("insert it into its mirror anew: gmirror forget, then gmirror insert"),
            ]);
        }
        Taste::Member(member)
    }

    fn assemble(&self, members: &[Member]) -> Option<Arc<dyn Geom>> {
        let length = members.iter().map(|m| m.length).min()?;
        let first = members.first()?;
        let here = Raid1::new(first.provider.clone(), length, members.len())?;
        Some(Arc::new(here.among(first.count)))
    }
}

impl Relabels for Mirror {
    /// The set becomes shorter by less than a sector where its length is none of whole ones, by the
    /// same number for every member.
    fn relabel(&self, last: &[u8], on: Relabel) -> Result<Relabelled, Refusal> {
        let mut md: Metadata = metadata::read(last, MAGIC)?;
        let sector = u32::try_from(on.to).unwrap_or(u32::MAX);
        let before = md.md_mediasize.get();
        let after = round_down(before, on.to);
        let [_, share] = on.shares();
        if after > share || after == 0 {
            let found = format!("its set takes {after} bytes, and {share} are before its metadata");
            return Err(Refusal::new(found, "make the set anew on the other sectors"));
        }
        (md.md_mediasize, md.md_sectorsize) = (after.into(), sector.into());
        md.md_provsize = on.after.into();
        md.md_hash = md.sum();
        Ok(Relabelled { metadata: metadata::sector_of(&md, 512), data: [before, after] })
    }
}

impl Metadata {
    /// The membership of a provider of `length` bytes with this in its last sector, apart from the
    /// MD5; `None` if a field is wrong.
    fn member(&self, length: u64, sector: u64) -> Option<Member> {
        let valid = self.md_magic == *MAGIC
            && (3..=VERSION).contains(&self.md_version.get())
            && self.md_provsize.get() == length
            && self.md_mediasize.get() <= length.checked_sub(sector)?
            && self.md_all >= 1;
        let name = ondisk::text(&self.md_name).filter(|_| valid)?;
        Some(Member {
            set: format!("{name}/{:08x}", self.md_mid.get()),
            provider: format!("mirror/{name}"),
            // Members are alike: any order will do, and one alone already has the contents.
            number: None,
            count: usize::from(self.md_all),
            enough: 1,
            chunk: 0,
            length: self.md_mediasize.get(),
            claim: Claim::default(),
        })
    }

    /// The MD5 of all fields before it.
    fn sum(&self) -> [u8; 16] {
        let bytes = self.as_bytes();
        md5::compute(&bytes[..bytes.len() - self.md_hash.len()]).0
    }
}

/// Algorithms by which a mirror chooses the member to read from, in FreeBSD's numbers.
pub const BALANCES: [&str; 5] = ["none", "round-robin", "load", "split", "prefer"];

/// Options of a label that only a mirror has.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// Algorithm, one of [`BALANCES`].
    pub balance: &'a str,
    /// Size in bytes from which `split` splits a read.
    pub slice: u32,
    /// True if a stale member waits for a manual synchronisation.
    pub no_autosync: bool,
    /// True if members are not synchronised after a crash.
    pub no_failsync: bool,
    /// Random identity of each member.
    pub ids: &'a [u32],
}

/// The labels that `gmirror label` writes, member by member.
pub fn label(label: &Label<'_>, options: &Options<'_>) -> Result<Vec<Labelled>, Refusal> {
    let sector = label.sector(1, usize::from(u8::MAX))?;
    let Some(balance) = BALANCES
        .iter()
        .zip(0..)
        .find_map(|(name, number)| (*name == options.balance).then_some(number))
    else {
        return Err(Refusal::new(
            format!("the balance '{}'", options.balance),
            format!("use one of {}", BALANCES.join(", ")),
        ));
    };
    let length = round_down(label.smallest(), sector);
    if length == 0 {
        return Err(Refusal::new("a member of one sector or less", "leave it out"));
    }
    let flags = [(2, options.no_failsync), (1, options.no_autosync)]
        .into_iter()
        .filter(|(_, on)| *on)
        .map(|(bit, _)| bit)
        .sum::<u64>();
    let count = u8::try_from(label.components.len()).unwrap_or(u8::MAX);
    let set_sector = u32::try_from(sector).map_err(|_| {
        Refusal::new(format!("sectors of {sector} bytes"), "use members of like sectors")
    })?;
    let one = |(number, (c, id)): (u8, (&metadata::Component, &u32))| {
        let mut md = Metadata {
            md_magic: *MAGIC,
            md_version: VERSION.into(),
            md_name: metadata::field(label.name),
            md_mid: label.id.into(),
            md_did: (*id).into(),
            md_all: count,
            md_genid: 0.into(),
            md_syncid: 1.into(),
            // The first member is preferred.
            md_priority: number,
            md_slice: options.slice.into(),
            md_balance: balance,
            md_mediasize: length.into(),
            md_sectorsize: set_sector.into(),
            md_sync_offset: 0.into(),
            md_mflags: flags.into(),
            md_dflags: 0.into(),
            md_provider: metadata::field(c.hardcoded.as_deref().unwrap_or_default()),
            md_provsize: c.length.into(),
            md_hash: [0; 16],
        };
        md.md_hash = md.sum();
        metadata::labelled(
            metadata::sector_of(&md, c.sector),
            md.member(c.length, c.sector),
            c.length,
        )
    };
    (0..).zip(label.components.iter().zip(options.ids)).map(one).collect()
}

/// The fields that `gmirror dump` shows of a last sector.
pub fn dump(sector: &[u8]) -> Result<Vec<Field>, Refusal> {
    let md: Metadata = metadata::read(sector, MAGIC)?;
    let (found, sum) = (hex(&md.md_hash), hex(&md.sum()));
    if found != sum {
        return Err(Refusal::new(
            format!("the MD5 of its metadata is {found}, computed {sum}"),
            "FreeBSD does not take it either",
        ));
    }
    let balance = BALANCES.get(usize::from(md.md_balance)).unwrap_or(&"unknown");
    let flags = |name, key, bits: u64, names: &[(u64, &'static str)]| {
        let set = names.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name);
        Field { name, key, value: Value::Flags(set.collect()) }
    };
    Ok(vec![
        text("magic", "magic", &md.md_magic),
        number("version", "version", md.md_version),
        text("name", "name", &md.md_name),
        number("mid", "id", md.md_mid),
        number("did", "disk_id", md.md_did),
        number("all", "count", md.md_all),
        number("genid", "genid", md.md_genid),
        number("syncid", "syncid", md.md_syncid),
        number("priority", "priority", md.md_priority),
        number("slice", "slice", md.md_slice),
        text("balance", "balance", balance.as_bytes()),
        number("mediasize", "length", md.md_mediasize),
        number("sectorsize", "sector_size", md.md_sectorsize),
        number("syncoffset", "sync_offset", md.md_sync_offset),
        flags("mflags", "flags", md.md_mflags.get(), &MFLAGS),
        flags("dflags", "disk_flags", md.md_dflags.get(), &DFLAGS),
        text("hcprovider", "hardcoded", &md.md_provider),
        number("provsize", "provider_length", md.md_provsize),
        text("MD5 hash", "md5", found.as_bytes()),
    ])
}

fn hex(bytes: &[u8; 16]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// A set whose members are copies of each other (RAID1).
pub struct Raid1 {
    name: String,
    length: u64,
    copies: usize,
    /// Copies that the whole set has.
    all: usize,
}

impl Raid1 {
    /// So many copies of `length` bytes; `None` if there are none, or if `length` is 0.
    pub fn new(name: String, length: u64, copies: usize) -> Option<Raid1> {
        (length > 0 && copies > 0).then_some(Raid1 { name, length, copies, all: copies })
    }

    /// These copies as the ones here of a set that has `all`.
    fn among(self, all: usize) -> Raid1 {
        Raid1 { all: all.max(self.copies), ..self }
    }
}

impl Geom for Raid1 {
    fn providers(&self) -> Vec<Slot> {
        vec![Slot { name: self.name.clone(), length: self.length, kind: None }]
    }

    fn arrangement(&self, _slot: usize) -> Option<Arrangement> {
        let (level, members, present) = ("raid1".into(), self.all, self.copies);
        Some(Arrangement { level, layout: None, chunk: None, members, present })
    }

    fn topology(&self, _slot: usize, below: &[Topology]) -> Topology {
        Topology::mirror(below, self.length)
    }

    fn map(&self, _slot: usize, _offset: u64, length: u64, _op: Op) -> Extent {
        Extent::Copies { count: self.copies, length }
    }
}
