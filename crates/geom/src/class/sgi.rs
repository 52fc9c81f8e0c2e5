//! `sgi`: the volume header of IRIX.
//!
//! # On disk
//! One sector of 512 bytes at byte 0, big-endian: magic `0BE5A941`, and all 32-bit words add up to
//! zero. At 312 sixteen partitions of 12 bytes: blocks, first block, type. Type 6 ("volume") is the
//! whole disk, and no provider here. Type 0 ("volhdr") begins with this sector and has the boot
//! files, whose directory is at 72. The partition that is swapped to is named at 6.
//!
//! # Topology
//! Slices.
//!
//! # Limits
//! Blocks are 512 bytes, whatever the device's are. Partitions are numbered from 1, as Linux does;
//! IRIX begins with 0. The directory of boot files is not read. It is not edited.
//!
//! # Sources
//! IRIX `sys/dvh.h`; Linux `block/partitions/sgi.c`; util-linux `include/pt-sgi.h` and fdisk's
//! names of the types.

use super::{Class, Taste};
use crate::base::finding::{self, Finding, Severity};
use crate::base::ondisk::on_disk;
use crate::mapping::partition::Partition;
use crate::mapping::slices::{Code, Listing, PartitionType, Purpose, Slice, Tag};
use crate::probe::Probe;
use std::sync::Arc;
use zerocopy::big_endian::{U16, U32};

/// The class `sgi`, for volume headers of IRIX.
pub struct Sgi;

on_disk! {
    /// On-disk `struct partition_table` of `dvh.h`.
    #[derive(Clone, Copy)]
    struct PartitionTable of 12 bytes {
        0 => pt_nblks: U32,
        4 => pt_firstlbn: U32,
        8 => pt_type: U32,
    }
}

on_disk! {
    /// On-disk volume header, `struct volume_header`.
    struct Header of 512 bytes {
          0 => vh_magic: U32,
          4 => vh_rootpt: U16,
          6 => vh_swappt: U16,
          8 => vh_bootfile: [u8; 16],
         24 => vh_dp: [u8; 48],
         72 => vh_vd: [[u8; 16]; 15],
        312 => vh_pt: [PartitionTable; 16],
        504 => vh_csum: U32,
        508 => vh_fill: U32,
    }
}

const MAGIC: u32 = 0x0be5_a941;
const BLOCK: u64 = 512;
const VOLHDR: u32 = 0;
const RAW: u32 = 3;
const VOLUME: u32 = 6;
/// Names of types, by number.
const TYPES: [(u32, &str); 18] = [
    (VOLHDR, "sgi-volhdr"),
    (1, "sgi-trkrepl"),
    (2, "sgi-secrepl"),
    (RAW, "sgi-raw"),
    (4, "sgi-bsd"),
    (5, "sgi-sysv"),
    (VOLUME, "sgi-volume"),
    (7, "sgi-efs"),
    (8, "sgi-lvol"),
    (9, "sgi-rlvol"),
    (10, "sgi-xfs"),
    (11, "sgi-xfslog"),
    (12, "sgi-xlv"),
    (13, "sgi-xvm"),
    (0x82, "linux-swap"),
    (0x83, "linux-data"),
    (0x8e, "linux-lvm"),
    (0xfd, "linux-raid"),
];

impl Class for Sgi {
    fn name(&self) -> &'static str {
        "sgi"
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        // The volume header's partition begins with the header that it is in.
        let nested = matches!(probe.kind(), Some(PartitionType::Tag(tag)) if tag.class == "sgi");
        let magic = !nested && probe.has(0, &MAGIC.to_be_bytes());
        let Some(header) = (if magic { probe.read::<Header>(0) } else { None }) else {
            return Taste::No;
        };
        if probe.bytes(0, size_of::<Header>()).is_some_and(|bytes| sum(&bytes) != 0) {
            let message =
                "a volume header of SGI stands here whose checksum is wrong: it is not read"
                    .to_string();
            return Taste::Refused(vec![Finding::new(
                &finding::LABEL,
                Severity::Error,
                0,
                message,
            )]);
        }
        let mut listing = Listing::new(probe.length(), probe.sector());
        for (index, part) in (1..)
            .zip(&header.vh_pt)
            .filter(|(_, part)| part.pt_nblks.get() > 0 && part.pt_type.get() != VOLUME)
        {
            let (start, length) =
                (u64::from(part.pt_firstlbn.get()) * BLOCK, u64::from(part.pt_nblks.get()) * BLOCK);
            let kind = PartitionType::Tag(named(
                part.pt_type.get(),
                index == u32::from(header.vh_swappt.get()) + 1,
            ));
            listing.add(Slice {
                suffix: format!("p{index}"),
                partition: Partition::new(index, start, length, kind),
            });
        }
        let (slices, findings) = listing.finish(0..probe.length());
        Taste::Geom(Arc::new(slices), findings)
    }
}

/// The sum of all 32-bit words, modulo 2^32.
fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks_exact(4).map(|w| u32::from_be_bytes([w[0], w[1], w[2], w[3]]));
    words.fold(0, u32::wrapping_add)
}

/// The type for a number, in a partition that is swapped to or not.
fn named(number: u32, swap: bool) -> Tag {
    let purpose = match number {
        VOLHDR => Purpose::Boot,
        // IRIX swaps to a partition of no other type, without a header.
        RAW if swap => Purpose::Swap,
        _ => Purpose::Data,
    };
    let name = TYPES.iter().find(|(code, _)| *code == number).map(|(_, name)| *name);
    Tag { class: "sgi", code: Code::Number(number), name, purpose }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{read, survives};
    use super::*;
    use crate::format::tests::disk;

    /// Writes the checksum of a header.
    fn seal(header: &mut [u8]) {
        header[..4].copy_from_slice(&MAGIC.to_be_bytes());
        header[504..508].fill(0);
        let rest = sum(&header[..512]).wrapping_neg();
        header[504..508].copy_from_slice(&rest.to_be_bytes());
    }

    /// A header with these partitions: number from 0, type, first block, blocks. Partition 1 is
    /// swapped to.
    fn header(partitions: &[(usize, u32, u32, u32)]) -> Vec<u8> {
        let mut header = vec![0; 512];
        header[7] = 1;
        for (nth, kind, first, blocks) in partitions {
            for (field, number) in [blocks, first, kind].into_iter().enumerate() {
                let at = 312 + 12 * nth + 4 * field;
                header[at..at + 4].copy_from_slice(&number.to_be_bytes());
            }
        }
        seal(&mut header);
        header
    }

    const PARTITIONS: &[(usize, u32, u32, u32)] = &[
        (0, 10, 8192, 65536),
        (1, RAW, 4096, 4096),
        (7, RAW, 73728, 100),
        (8, VOLHDR, 0, 4096),
        (10, VOLUME, 0, 131_072),
    ];

    #[test]
    fn partitions_are_numbered_from_1_and_the_volume_is_none() {
        let (slices, messages) =
            read(&Sgi, disk(64 << 20, &[(0, &header(PARTITIONS))]), None).expect("a header");
        let places: Vec<_> = slices
            .iter()
            .map(|s| (s.suffix.as_str(), s.partition.start / BLOCK, s.partition.length / BLOCK))
            .collect();
        assert_eq!(
            places,
            [("p1", 8192, 65536), ("p2", 4096, 4096), ("p8", 73728, 100), ("p9", 0, 4096)]
        );
        let purposes: Vec<_> = slices
            .iter()
            .map(|s| {
                if let PartitionType::Tag(tag) = s.partition.kind {
                    Some(tag.purpose)
                } else {
                    None
                }
            })
            .collect();
        assert_eq!(
            purposes,
            [Purpose::Data, Purpose::Swap, Purpose::Data, Purpose::Boot].map(Some)
        );
        assert_eq!(
            (crate::table::types::name(slices[0].partition.kind), messages.len()),
            ("sgi-xfs".into(), 0)
        );
    }

    #[test]
    fn a_header_is_read_whole_or_not_at_all() {
        let mut damaged = header(PARTITIONS);
        damaged[100] = 1;
        let (slices, messages) =
            read(&Sgi, disk(64 << 20, &[(0, &damaged)]), None).expect("a damaged header");
        assert!(slices.is_empty() && messages[0].contains("checksum"), "{messages:?}");
        damaged[0] = 0;
        assert!(read(&Sgi, disk(64 << 20, &[(0, &damaged)]), None).is_none());
    }

    #[test]
    fn the_volume_header_has_no_table_of_its_own() {
        let disk = || disk(64 << 20, &[(0, &header(PARTITIONS))]);
        assert!(read(&Sgi, disk(), Some(PartitionType::Tag(named(VOLHDR, false)))).is_none());
        assert!(read(&Sgi, disk(), Some(PartitionType::Mbr(0x83))).is_some());
    }

    #[test]
    fn what_cannot_be_is_left_out() {
        let two =
            header(&[(0, 10, 8192, 65536), (1, 10, 60000, 65536), (2, 10, u32::MAX, u32::MAX)]);
        let (slices, messages) = read(&Sgi, disk(64 << 20, &[(0, &two)]), None).expect("a header");
        assert!(
            slices.len() == 2 && messages[0].contains("p3") && messages[1].contains("share"),
            "{messages:?}"
        );
        survives(&Sgi, None, &header(PARTITIONS), seal);
    }
}
