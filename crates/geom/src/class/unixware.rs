//! `unixware`: the disklabel of SCO UnixWare, in an MBR partition.
//!
//! # On disk
//! In sector 29 of a partition of type 63: magics `ca5e600d` at byte 4 and `600ddeee` at byte 156,
//! then 16 slices of 12 bytes (tag, flags, start, size). Starts are sectors of the disk, not of the
//! partition. Slice 0 is the whole of it, and no provider here, nor is one that is not marked
//! valid.
//!
//! # Topology
//! Slices.
//!
//! # Limits
//! Type 63 is also that of other System V systems (SCO, ISC, Mach), whose divisions are not read:
//! the magics decide. Where the partition has no place on a medium, as on a stripe, starts are
//! counted from its set. It is not edited.
//!
//! # Sources
//! Linux `block/partitions/msdos.c` (`parse_unixware`); libblkid `partitions/unixware.c` (tags, the
//! valid flag); UnixWare vtoc(7).

use super::{Class, Taste};
use crate::base::ondisk::on_disk;
use crate::mapping::partition::Partition;
use crate::mapping::slices::{Code, Listing, PartitionType, Purpose, Slice, Tag};
use crate::probe::Probe;
use std::sync::Arc;
use zerocopy::little_endian::{U16, U32};

/// The class `unixware`, for UnixWare's labels.
pub struct UnixWare;

on_disk! {
    /// On-disk slice, `struct unixware_slice`.
    #[derive(Clone, Copy)]
    struct UnixwareSlice of 12 bytes {
        0 => s_label: U16,
        2 => s_flags: U16,
        4 => start_sect: U32,
        8 => nr_sects: U32,
    }
}

on_disk! {
    /// On-disk `struct unixware_disklabel`, as far as it is read.
    struct Disklabel of 408 bytes {
          0 => d_type: U32,
          4 => d_magic: U32,
          8 => skip: [u8; 148],
        156 => v_magic: U32,
        160 => v_version: U32,
        164 => v_name: [u8; 8],
        172 => v_nslices: U16,
        174 => v_unknown1: U16,
        176 => v_reserved: [U32; 10],
        216 => v_slice: [UnixwareSlice; 16],
    }
}

const MAGIC: u32 = 0xca5e_600d;
const VTOC_MAGIC: u32 = 0x600d_deee;
const SECTOR: u64 = 29;
const VALID: u16 = 0x200;
const UNUSED: u16 = 0;
const WHOLE: u16 = 5;
const BOOT: u16 = 1;
const SWAP: u16 = 3;
/// Names of the tags, from 0.
const TAGS: [&str; 16] = [
    "unixware-unused",
    "unixware-boot",
    "unixware-root",
    "unixware-swap",
    "unixware-usr",
    "unixware-whole",
    "unixware-altsec",
    "unixware-other",
    "unixware-alttrk",
    "unixware-stand",
    "unixware-var",
    "unixware-home",
    "unixware-dump",
    "unixware-altst",
    "unixware-public",
    "unixware-private",
];

impl Class for UnixWare {
    fn name(&self) -> &'static str {
        "unixware"
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        let inside = matches!(probe.kind(), Some(PartitionType::Mbr(0x63)));
        let label = if inside { probe.read::<Disklabel>(SECTOR * probe.sector()) } else { None };
        match label
            .filter(|label| label.d_magic.get() == MAGIC && label.v_magic.get() == VTOC_MAGIC)
        {
            Some(label) => slices(probe, &label),
            None => Taste::No,
        }
    }
}

/// The type for a tag.
fn named(tag: u16) -> Tag {
    let purpose = match tag {
        BOOT => Purpose::Boot,
        SWAP => Purpose::Swap,
        _ => Purpose::Data,
    };
    Tag {
        class: "unixware",
        code: Code::Number(tag.into()),
        name: TAGS.get(usize::from(tag)).copied(),
        purpose,
    }
}

/// The slices that are in use.
fn slices(probe: &Probe<'_>, label: &Disklabel) -> Taste {
    let (sector, length, base) = (probe.sector(), probe.length(), probe.start().unwrap_or(0));
    let mut listing = Listing::new(length, sector);
    for ((index, letter), part) in (1..).zip('a'..='p').zip(&label.v_slice).skip(1) {
        let tag = part.s_label.get();
        if matches!(tag, UNUSED | WHOLE) || part.s_flags.get() != VALID {
            continue;
        }
        let (start, length) =
            (u64::from(part.start_sect.get()) * sector, u64::from(part.nr_sects.get()) * sector);
        let kind = PartitionType::Tag(named(tag));
        listing.add_from(
            base,
            Slice {
                suffix: letter.to_string(),
                partition: Partition::new(index, start, length, kind),
            },
        );
    }
    let (slices, findings) = listing.finish(0..length);
    Taste::Geom(Arc::new(slices), findings)
}
