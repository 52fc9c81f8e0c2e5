//! `solaris`: the VTOC of Solaris on x86, in an MBR partition.
//!
//! # On disk
//! In sector 1 of a partition of type 82 or BF: magic `600ddeee` at byte 12, version 1, up to 16
//! slices of 12 bytes (tag, flags, start, size). Starts are sectors of the partition. Slice 2, tag
//! 5 ("backup"), is the whole of it, and no provider here; slice 8, tag 1, has the boot blocks and
//! the VTOC itself.
//!
//! # Topology
//! Slices.
//!
//! # Limits
//! Little-endian only: SPARC has a label of another shape. It is not edited. Type 82 is Linux's
//! swap too: the magic decides.
//!
//! # Sources
//! illumos `usr/src/uts/common/sys/vtoc.h`, `dktp/fdisk.h` (names); Linux
//! `block/partitions/msdos.c` (`parse_solaris_x86`); libblkid `partitions/solaris_x86.c` for the
//! slice that is left out.

use super::{Class, Taste};
use crate::base::finding::{self, Finding, Severity};
use crate::base::ondisk::on_disk;
use crate::mapping::partition::Partition;
use crate::mapping::slices::{Code, Listing, PartitionType, Purpose, Slice, Tag};
use crate::probe::Probe;
use std::sync::Arc;
use zerocopy::little_endian::{U16, U32};

/// The class `solaris`, for VTOCs on x86.
pub struct Solaris;

on_disk! {
    /// On-disk slice, `struct partition` of `vtoc.h`.
    #[derive(Clone, Copy)]
    struct DklPartition of 12 bytes {
        0 => p_tag: U16,
        2 => p_flag: U16,
        4 => p_start: U32,
        8 => p_size: U32,
    }
}

on_disk! {
    /// On-disk VTOC of `struct dk_label` on x86, as far as it is read.
    struct Vtoc of 264 bytes {
         0 => v_bootinfo: [U32; 3],
        12 => v_sanity: U32,
        16 => v_version: U32,
        20 => v_volume: [u8; 8],
        28 => v_sectorsz: U16,
        30 => v_nparts: U16,
        32 => v_reserved: [U32; 10],
        72 => v_part: [DklPartition; 16],
    }
}

const SANE: u32 = 0x600d_deee;
const VERSION: u32 = 1;
/// Tag of the slice that is the whole partition.
const BACKUP: u16 = 5;
/// Entries that older systems have and do not count.
const OLD: usize = 8;

impl Class for Solaris {
    fn name(&self) -> &'static str {
        "solaris"
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        let inside = matches!(probe.kind(), Some(PartitionType::Mbr(0x82 | 0xbf)));
        let vtoc = if inside { probe.read::<Vtoc>(probe.sector()) } else { None };
        let Some(vtoc) = vtoc.filter(|vtoc| vtoc.v_sanity.get() == SANE) else { return Taste::No };
        if vtoc.v_version.get() != VERSION {
            let message = format!(
                "Solaris VTOC of version {}: only version {VERSION} is known",
                vtoc.v_version.get()
            );
            return Taste::Refused(vec![Finding::new(
                &finding::LABEL,
                Severity::Error,
                probe.sector(),
                message,
            )]);
        }
        slices(probe, &vtoc)
    }
}

/// Names of the tags of VTOCs, from 0; those of SPARC are the same.
const TAGS: [&str; 12] = [
    "solaris-unassigned",
    "solaris-boot",
    "solaris-root",
    "solaris-swap",
    "solaris-usr",
    "solaris-backup",
    "solaris-stand",
    "solaris-var",
    "solaris-home",
    "solaris-altsec",
    "solaris-cache",
    "solaris-reserved",
];

/// The type for a tag of a VTOC, in a table of `class`.
pub(super) fn tag(class: &'static str, number: u16) -> Tag {
    let purpose = match number {
        1 => Purpose::Boot,
        3 => Purpose::Swap,
        _ => Purpose::Data,
    };
    Tag {
        class,
        code: Code::Number(number.into()),
        name: TAGS.get(usize::from(number)).copied(),
        purpose,
    }
}

fn slices(probe: &Probe<'_>, vtoc: &Vtoc) -> Taste {
    let (sector, length) = (probe.sector(), probe.length());
    let mut listing = Listing::new(length, sector);
    let count = usize::from(vtoc.v_nparts.get()).max(OLD);
    for ((index, letter), part) in (1..)
        .zip('a'..='p')
        .zip(&vtoc.v_part)
        .take(count)
        .filter(|(_, part)| part.p_tag.get() != BACKUP)
    {
        // 32-bit counts of sectors of at most 4096 bytes.
        let (start, size) =
            (u64::from(part.p_start.get()) * sector, u64::from(part.p_size.get()) * sector);
        if size > 0 {
            let kind = PartitionType::Tag(tag("solaris", part.p_tag.get()));
            listing.add(Slice {
                suffix: letter.to_string(),
                partition: Partition::new(index, start, size, kind),
            });
        }
    }
    let (slices, findings) = listing.finish(0..length);
    Taste::Geom(Arc::new(slices), findings)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{read, survives};
    use super::*;
    use crate::format::tests::disk;

    /// A partition's first sectors with a VTOC of these slices: tag, start, size in sectors.
    fn vtoc(slices: &[(u16, u32, u32)]) -> Vec<u8> {
        let mut image = vec![0; 1024];
        let mut put = |at: usize, bytes: &[u8]| {
            image[512 + at..512 + at + bytes.len()].copy_from_slice(bytes)
        };
        put(12, &SANE.to_le_bytes());
        put(16, &VERSION.to_le_bytes());
        put(30, &[16, 0]);
        for (nth, (tag, start, size)) in slices.iter().enumerate() {
            put(72 + 12 * nth, &tag.to_le_bytes());
            put(76 + 12 * nth, &start.to_le_bytes());
            put(80 + 12 * nth, &size.to_le_bytes());
        }
        image
    }

    #[test]
    fn types_tell_swap_and_boot_blocks() {
        let found =
            [(2, 100, 10), (3, 110, 10), (5, 0, 1000), (1, 0, 10), (99, 120, 10), (4, 999, 2)];
        let (slices, messages) =
            read(&Solaris, disk(512_000, &[(0, &vtoc(&found))]), Some(PartitionType::Mbr(0xbf)))
                .expect("a VTOC");
        let tags = slices.iter().filter_map(|s| {
            if let PartitionType::Tag(tag) = s.partition.kind {
                Some((s.suffix.as_str(), tag.name, tag.purpose))
            } else {
                None
            }
        });
        let want = [
            ("a", Some("solaris-root"), Purpose::Data),
            ("b", Some("solaris-swap"), Purpose::Swap),
            ("d", Some("solaris-boot"), Purpose::Boot),
            ("e", None, Purpose::Data),
        ];
        assert_eq!(tags.collect::<Vec<_>>(), want);
        assert!(messages.len() == 1 && messages[0].contains("does not lie within"), "{messages:?}");
        assert_eq!(crate::table::types::name(slices[3].partition.kind), "!99");
    }

    #[test]
    fn hostile_numbers_are_survived() {
        survives(
            &Solaris,
            Some(PartitionType::Mbr(0xbf)),
            &vtoc(&[(2, 100, 10), (3, 110, 10)]),
            |_| {},
        );
    }
}
