//! `bsd`: the disklabel of FreeBSD, OpenBSD and NetBSD.
//!
//! # On disk
//! One structure of 148 bytes and 16 for each partition, in either byte order, in LBA 1; some ports keep it in sector 0.
//! OpenBSD keeps it at byte 512 whatever the sector. Two magics; the XOR of all its 16-bit words is 0. FreeBSD does not look
//! at the checksum, OpenBSD and NetBSD do.
//!
//! Offsets and sizes are in units of `d_secsize`. What offsets count from is the dialect's:
//! - FreeBSD: entry `c`, whose own offset is the base: 0, or where the slice begins on the disk.
//! - OpenBSD and NetBSD: the start of the disk. A label may therefore name partitions outside its own slice.
//!
//! The dialect is what the table above says; else OpenBSD by its version field, NetBSD by a `d` that is the whole disk.
//! Entries that stand for the whole (`c`, NetBSD's `d`) are no partitions, as in GEOM.
//!
//! # Topology
//! Slices. FreeBSD's `a` may begin at 0 and overlay the label: UFS leaves that room.
//!
//! # Limits
//! 22 partitions: what fits the sector. No label is looked for in a label's partition, since `a` shows the same sector again.
//!
//! # Sources
//! FreeBSD `sys/sys/disk/bsd.h` (names), `sys/geom/part/g_part_bsd.c`; OpenBSD `sys/sys/disklabel.h`, `kern/subr_disk.c`;
//! NetBSD `sys/sys/disklabel.h`; Linux `block/partitions/msdos.c` (`parse_bsd`).

use super::{Class, Taste};
use crate::finding::{self, Finding, Severity};
use crate::layout;
use crate::ondisk::{self, Guid};
use crate::probe::Probe;
use crate::slices::{Dialect, Kind, Slice, Slices, bounded, out_of_range, overlaps, place};
use std::ops::Range;
use std::sync::Arc;
use zerocopy::byteorder::{BE, ByteOrder, LE, U16, U32};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// The class.
pub struct Bsd;

/// `struct disklabel`, with what OpenBSD's version 1 keeps in fields that were free.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Disklabel<O: ByteOrder> {
    d_magic: U32<O>,
    d_type: U16<O>,
    d_subtype: U16<O>,
    d_typename: [u8; 16],
    d_packname: [u8; 16],
    d_secsize: U32<O>,
    d_nsectors: U32<O>,
    d_ntracks: U32<O>,
    d_ncylinders: U32<O>,
    d_secpercyl: U32<O>,
    d_secperunit: U32<O>,
    d_uid: [u8; 8],
    d_acylinders: U32<O>,
    d_bstarth: U16<O>,
    d_bendh: U16<O>,
    d_bstart: U32<O>,
    d_bend: U32<O>,
    d_flags: U32<O>,
    d_drivedata: [u8; 20],
    d_secperunith: U16<O>,
    d_version: U16<O>,
    d_spare: [u8; 16],
    d_magic2: U32<O>,
    d_checksum: U16<O>,
    d_npartitions: U16<O>,
    d_bbsize: U32<O>,
    d_sbsize: U32<O>,
}
layout!(Disklabel<LE>, 148, d_secsize @ 40, d_secperunit @ 60, d_bstarth @ 76, d_version @ 114, d_magic2 @ 132, d_checksum @ 136, d_npartitions @ 138);

/// `struct partition`; the high halves are OpenBSD's, elsewhere a fragment size.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Partition<O: ByteOrder> {
    p_size: U32<O>,
    p_offset: U32<O>,
    p_offseth: U16<O>,
    p_sizeh: U16<O>,
    p_fstype: u8,
    p_frag: u8,
    p_cpg: U16<O>,
}
layout!(Partition<LE>, 16, p_offseth @ 8, p_fstype @ 12);

const MAGIC: u32 = 0x8256_4557;
const HEAD: usize = 148;
const ENTRY: usize = 16;
/// Entries that fit the 512 bytes a label has.
const MOST: usize = (512 - HEAD) / ENTRY;
/// The entries that may stand for the whole slice or disk.
const C: usize = 2;
const D: usize = 3;
/// `FS_UNUSED`.
const UNUSED: u8 = 0;

/// GPT types that hold a label: `freebsd`, DragonFly's `label32`, OpenBSD data.
const GPT_FREEBSD: [&str; 2] = ["516e7cb4-6ecf-11d6-8ff8-00022d09712b", "9d087404-1ca5-11dc-8817-01301bb8a9f5"];
const GPT_OPENBSD: &str = "824cc7a0-36a8-11e3-890a-952519ad3f61";

/// A label, in this machine's byte order.
struct Label {
    /// Its byte on the provider.
    at: u64,
    sector: u64,
    tracks: (u32, u32),
    version: u16,
    /// Where OpenBSD says its part of the disk lies, in sectors.
    bounds: Range<u64>,
    name: Option<String>,
    stored: u16,
    computed: u16,
    entries: Vec<Part>,
}

/// One entry, in bytes from wherever offsets count.
struct Part {
    offset: u64,
    length: u64,
    fstype: u8,
}

impl Part {
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

/// Bytes at which labels stand: 512 (LBA 1, and OpenBSD's whatever the sector), LBA 1 of other sectors, and in sector 0
/// of some ports (alpha, sparc).
const PLACES: [u64; 6] = [512, 4096, 1024, 2048, 64, 128];

/// The label at `at`, if both magics stand there in one byte order; `Err` if the rest is no label.
fn read(probe: &Probe<'_>, at: u64) -> Option<Result<Label, Finding>> {
    let raw = probe.bytes(at, 512)?;
    match raw.first_chunk::<4>()? {
        m if u32::from_le_bytes(*m) == MAGIC => decode::<LE>(at, &raw),
        m if u32::from_be_bytes(*m) == MAGIC => decode::<BE>(at, &raw),
        _ => None,
    }
}

fn decode<O: ByteOrder>(at: u64, raw: &[u8]) -> Option<Result<Label, Finding>> {
    let (d, rest) = Disklabel::<O>::read_from_prefix(raw).ok()?;
    let elsewhere = at > 512 && at != u64::from(d.d_secsize.get());
    if d.d_magic2.get() != MAGIC || elsewhere {
        return None;
    }
    let (sector, count) = (u64::from(d.d_secsize.get()), usize::from(d.d_npartitions.get()));
    if !sector.is_power_of_two() || !(512..=65536).contains(&sector) || !(1..=MOST).contains(&count) {
        let message = format!("the disklabel at byte {at} has both magics, but sectors of {sector} bytes and {count} partitions");
        return Some(Err(Finding::new(&finding::LABEL, Severity::Error, at, message).fix(REPAIR)));
    }
    let word = |pair: &[u8]| U16::<O>::read_from_bytes(pair).map_or(0, U16::get);
    let sum = raw.get(..HEAD + count * ENTRY)?.chunks_exact(2).map(word).fold(0, |a, b| a ^ b);
    let version = d.d_version.get();
    let high = |h: U16<O>| if version == 1 { u64::from(h.get()) << 32 } else { 0 };
    let (mut entries, mut rest) = (Vec::new(), rest);
    for _ in 0..count {
        let (p, after) = Partition::<O>::read_from_prefix(rest).ok()?;
        let bytes = |n: u64| n.saturating_mul(sector);
        let offset = bytes(high(p.p_offseth) | u64::from(p.p_offset.get()));
        entries.push(Part { offset, length: bytes(high(p.p_sizeh) | u64::from(p.p_size.get())), fstype: p.p_fstype });
        rest = after;
    }
    let bounds = (high(d.d_bstarth) | u64::from(d.d_bstart.get()))..(high(d.d_bendh) | u64::from(d.d_bend.get()));
    let stored = d.d_checksum.get();
    let tracks = (d.d_nsectors.get(), d.d_ntracks.get());
    let name = ondisk::text(&d.d_packname);
    Some(Ok(Label { at, sector, tracks, version, bounds, name, stored, computed: sum ^ stored, entries }))
}

const REPAIR: &str =
    "look at it with the system that wrote it, and write it anew from a saved copy: disklabel -R, bsdlabel -R, gpart restore";

impl Class for Bsd {
    fn name(&self) -> &'static str {
        "bsd"
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        if matches!(probe.kind(), Some(Kind::Bsd(..))) {
            return Taste::No;
        }
        let Some(found) = PLACES.into_iter().chain([probe.sector()]).find_map(|at| read(probe, at)) else { return Taste::No };
        let label = match found {
            Ok(label) => label,
            Err(finding) => return Taste::Refused(vec![finding]),
        };
        if label.sector != probe.sector() {
            return Taste::Refused(vec![other_sector(probe, &label)]);
        }
        slices(probe, &label)
    }
}

/// The dialect by what the table above says, else by what the label looks like.
fn dialect(probe: &Probe<'_>, label: &Label) -> Dialect {
    let said = |guid: Guid| {
        let guid = guid.to_string();
        let free = GPT_FREEBSD.contains(&guid.as_str());
        if free { Some(Dialect::FreeBsd) } else { (guid == GPT_OPENBSD).then_some(Dialect::OpenBsd) }
    };
    let by_table = match probe.kind() {
        Some(Kind::Mbr(0xa5)) => Some(Dialect::FreeBsd),
        Some(Kind::Mbr(0xa6)) => Some(Dialect::OpenBsd),
        Some(Kind::Mbr(0xa9)) => Some(Dialect::NetBsd),
        Some(Kind::Gpt(guid)) => said(*guid),
        _ => None,
    };
    let whole = |i: usize| label.entries.get(i).is_some_and(|e| e.offset == 0 && e.length >= probe.length());
    by_table.unwrap_or_else(|| match label.version {
        1 => Dialect::OpenBsd,
        _ if whole(D) && label.entries.get(D).is_some_and(|e| e.fstype == UNUSED) => Dialect::NetBsd,
        _ => Dialect::FreeBsd,
    })
}

/// Whether entry `i` stands for the whole slice or disk. util-linux writes a `d` for the disk into FreeBSD labels too.
fn is_raw(dialect: Dialect, i: usize, part: &Part, slice: &Range<u64>) -> bool {
    let covers = part.offset <= slice.start && part.end() >= slice.end;
    let unused = part.fstype == UNUSED;
    match dialect {
        Dialect::NetBsd => (i == C || i == D) && (covers || unused),
        _ => i == C || i == D && covers && unused,
    }
}

/// The byte that offsets name and that is byte 0 of this slice.
fn origin(probe: &Probe<'_>, label: &Label, dialect: Dialect) -> u64 {
    let c = label.entries.get(C).filter(|c| c.length > 0).map_or(0..0, |c| c.offset..c.end());
    if dialect == Dialect::FreeBsd {
        return c.start;
    }
    // Where the label itself says its slice lies. If that is as long as this slice it is this one: right too in an image of
    // the slice alone, or on a disk within a disk, where the medium is not the disk that is meant.
    let bytes = |n: u64| n.saturating_mul(label.sector);
    let own = if dialect == Dialect::OpenBsd { bytes(label.bounds.start)..bytes(label.bounds.end) } else { c };
    if own.end.checked_sub(own.start) == Some(probe.length()) {
        return own.start;
    }
    let fits = |&origin: &u64| {
        let slice = origin..origin.saturating_add(probe.length());
        let inside = |part: &Part| slice.start <= part.offset && part.end() <= slice.end;
        label.entries.iter().enumerate().filter(|(i, p)| p.length > 0 && !is_raw(dialect, *i, p, &slice) && inside(p)).count()
    };
    let places = [Some(0), Some(own.start), probe.start()];
    // Of equals `max_by_key` takes the last: the medium.
    places.into_iter().flatten().max_by_key(fits).unwrap_or(0)
}

fn slices(probe: &Probe<'_>, label: &Label) -> Taste {
    let (sector, length) = (probe.sector(), probe.length());
    let dialect = dialect(probe, label);
    let origin = origin(probe, label, dialect);
    let slice = origin..origin.saturating_add(length);
    let (mut entries, mut findings, mut ranges, mut seen) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for (i, letter) in ('a'..='z').enumerate().take(label.entries.len()) {
        let part = &label.entries[i];
        let unused = part.fstype == UNUSED && dialect != Dialect::FreeBsd;
        if part.length == 0 || unused || is_raw(dialect, i, part, &slice) {
            continue;
        }
        let foreign = dialect != Dialect::FreeBsd && (part.end() <= slice.start || part.offset >= slice.end);
        if foreign {
            let message = format!("{letter} is elsewhere on the disk, at {}, outside the label's own slice", place(part.offset, sector));
            findings.push(Finding::new(&finding::RANGE, Severity::Note, 0, message));
            continue;
        }
        seen += 1;
        if dialect != Dialect::FreeBsd && part.offset >= slice.start && part.end() > slice.end {
            let at = place(part.offset, sector);
            let message =
                format!("{letter} at {at} reaches past its slice, as what lies beyond 2 TiB of an MBR disk must: not looked into");
            findings.push(Finding::new(&finding::BLIND, Severity::Warning, 0, message));
            continue;
        }
        let start = part.offset.checked_sub(origin);
        let Some(start) = start.filter(|s| s.checked_add(part.length).is_some_and(|end| end <= length)) else {
            findings.push(out_of_range(&letter.to_string(), start.unwrap_or(0), length, sector, "left out"));
            continue;
        };
        ranges.push((letter.to_string(), start..start + part.length));
        let index = u32::try_from(i + 1).unwrap_or(u32::MAX);
        let kind = Kind::Bsd(dialect, part.fstype);
        entries.push(Slice { suffix: letter.to_string(), index, start, length: part.length, kind, label: None, uuid: None });
    }
    findings.extend(overlaps(&ranges, sector));
    findings.extend(damage(label, dialect));
    let nothing_fits = seen > 0 && entries.is_empty();
    if nothing_fits && label.stored != label.computed {
        // A label neither whole nor of this size: what is left of another one.
        return Taste::Refused(damage(label, dialect));
    }
    Taste::Geom(Arc::new(Slices { usable: usable(label, dialect, origin, length), entries }), bounded(findings))
}

/// Where partitions may lie: all of the slice, or what OpenBSD's label says of it.
fn usable(label: &Label, dialect: Dialect, origin: u64, length: u64) -> Range<u64> {
    let bound = |n: u64| n.saturating_mul(label.sector).saturating_sub(origin).min(length);
    match dialect {
        Dialect::OpenBsd if label.version == 1 && label.bounds.start < label.bounds.end => {
            bound(label.bounds.start)..bound(label.bounds.end)
        }
        _ => 0..length,
    }
}

/// What is wrong with the label itself.
fn damage(label: &Label, dialect: Dialect) -> Vec<Finding> {
    let mut findings = Vec::new();
    let named = label.name.as_ref().map_or_else(String::new, |n| format!(" {n:?}"));
    if label.stored != label.computed {
        let (stored, computed) = (label.stored, label.computed);
        let message = format!(
            "disklabel{named} checksum is {stored:04x}, computed {computed:04x}: OpenBSD and NetBSD refuse it, FreeBSD and Linux do not look"
        );
        findings.push(Finding::new(&finding::LABEL, Severity::Warning, label.at, message).fix(REPAIR));
    }
    let (sectors, tracks) = label.tracks;
    if dialect == Dialect::FreeBsd && !((1..=255).contains(&sectors) && (1..=255).contains(&tracks)) {
        let message =
            format!("disklabel{named} names {sectors} sectors a track and {tracks} tracks: FreeBSD refuses a label beyond 1 to 255");
        findings.push(Finding::new(&finding::LABEL, Severity::Warning, label.at, message).fix(REPAIR));
    }
    findings
}

/// A label whose numbers count other sectors than the provider's.
fn other_sector(probe: &Probe<'_>, label: &Label) -> Finding {
    let (own, theirs) = (probe.sector(), label.sector);
    let used = label.entries.iter().enumerate().filter(|(i, p)| *i != C && p.length > 0);
    let first = used.clone().map(|(_, p)| p.offset).min().unwrap_or(0);
    let message = format!(
        "the disklabel was written for {theirs}-byte sectors; here they are {own} bytes: {} partitions, the first with offset {}, cannot be reached",
        used.count(),
        place(first, theirs),
    );
    Finding::new(&finding::SECTOR, Severity::Error, label.at, message)
        .against(theirs, 0, None)
        .fix(format!("attach the disk so that it shows {theirs}-byte sectors, or open the image with --logical {theirs}"))
}
