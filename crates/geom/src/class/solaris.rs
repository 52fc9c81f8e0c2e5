//! `solaris`: the VTOC of Solaris on x86, in an MBR partition.
//!
//! # On disk
//! In sector 1 of a partition of type 82 or BF: magic `600ddeee` at byte 12, version 1, up to 16 slices of 12 bytes (tag, flags, start,
//! size). Starts are sectors of the partition. Slice 2, tag 5 ("backup"), is the whole of it, and no provider here; slice 8, tag 1, has
//! the boot blocks and the VTOC itself.
//!
//! # Topology
//! Slices.
//!
//! # Limits
//! Little-endian only: SPARC has a label of another shape. It is not edited. Type 82 is Linux's swap too: the magic decides.
//!
//! # Sources
//! illumos `usr/src/uts/common/sys/vtoc.h`, `dktp/fdisk.h` (names); Linux `block/partitions/msdos.c` (`parse_solaris_x86`); libblkid
//! `partitions/solaris_x86.c` for the slice that is left out.

use super::{Class, Taste};
use crate::assert_offsets;
use crate::base::finding::{self, Finding, Severity};
use crate::mapping::slices::{Kind, Slice, Slices, bounded, out_of_range, overlaps};
use crate::probe::Probe;
use std::sync::Arc;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// The class.
pub struct Solaris;

/// `struct partition` of `vtoc.h`.
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Partition {
    p_tag: U16,
    p_flag: U16,
    p_start: U32,
    p_size: U32,
}
assert_offsets!(Partition, 12, p_start @ 4, p_size @ 8);

/// `struct dk_label`'s VTOC on x86, as far as it is read.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Vtoc {
    v_bootinfo: [U32; 3],
    v_sanity: U32,
    v_version: U32,
    v_volume: [u8; 8],
    v_sectorsz: U16,
    v_nparts: U16,
    v_reserved: [U32; 10],
    v_part: [Partition; 16],
}
assert_offsets!(Vtoc, 264, v_sanity @ 12, v_nparts @ 30, v_part @ 72);

const SANE: u32 = 0x600d_deee;
const VERSION: u32 = 1;
/// The slice that is the whole partition.
const BACKUP: u16 = 5;
/// Entries that older systems have and do not count.
const OLD: usize = 8;

impl Class for Solaris {
    fn name(&self) -> &'static str {
        "solaris"
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        let inside = matches!(probe.kind(), Some(Kind::Mbr(0x82 | 0xbf)));
        let vtoc = if inside { probe.read::<Vtoc>(probe.sector()) } else { None };
        let Some(vtoc) = vtoc.filter(|vtoc| vtoc.v_sanity.get() == SANE) else { return Taste::No };
        if vtoc.v_version.get() != VERSION {
            let message = format!("Solaris VTOC of version {}: only version {VERSION} is known", vtoc.v_version.get());
            return Taste::Refused(vec![Finding::new(&finding::LABEL, Severity::Error, probe.sector(), message)]);
        }
        slices(probe, &vtoc)
    }
}

fn slices(probe: &Probe<'_>, vtoc: &Vtoc) -> Taste {
    let (sector, length) = (probe.sector(), probe.length());
    let (mut entries, mut findings, mut ranges) = (Vec::new(), Vec::new(), Vec::new());
    let count = usize::from(vtoc.v_nparts.get()).max(OLD);
    for ((index, letter), part) in (1..).zip('a'..='p').zip(&vtoc.v_part).take(count) {
        let (start, size) = (u64::from(part.p_start.get()) * sector, u64::from(part.p_size.get()) * sector);
        if size == 0 || part.p_tag.get() == BACKUP {
            continue;
        }
        let suffix = letter.to_string();
        if start + size > length {
            findings.push(out_of_range(&suffix, start, length, sector, "left out"));
            continue;
        }
        ranges.push((suffix.clone(), start..start + size));
        entries.push(Slice { suffix, index, start, length: size, kind: Kind::Solaris(part.p_tag.get()), label: None, uuid: None });
    }
    findings.extend(overlaps(&ranges, sector));
    Taste::Geom(Arc::new(Slices { usable: 0..length, entries }), bounded(findings))
}
