//! `apm`: the Apple partition map.
//!
//! # On disk
//! Block 0 is the driver descriptor, big-endian: `ER`, the size of a block at 2. From block 1 on,
//! one entry a block: `PM`, the count of entries at 4 (the same in each), first block at 8, blocks
//! at 12, a name at 16 and a type at 48, both text of up to 32 bytes. The map is an entry of its
//! own (`Apple_partition_map`), free space is one too (`Apple_Free`); neither is a provider here,
//! nor is `Apple_Void`.
//!
//! # Topology
//! Slices.
//!
//! # Limits
//! Blocks are 512, 1024, 2048 or 4096 bytes, as the descriptor says, whatever the device's sectors
//! are. Of a map of more than 256 entries, Linux's limit, the first 256 are read. A map behind the
//! boot signature of an MBR is a hybrid's, and not read: the MBR or the GPT is. The old map (`TS`)
//! is refused. A second map for other blocks, as CDs have, is not looked for. It is not edited.
//!
//! # Sources
//! Apple, "Inside Macintosh: Devices", chapter 3 (`Block0`, `Partition`); Linux
//! `block/partitions/mac.c`; FreeBSD `sys/sys/disk/apm.h` `sys/geom/part/g_part_apm.c` (the map's
//! own entry and `Apple_Free` are passed over, `sN` counts entries) and `g_part.c` (names); parted
//! `libparted/labels/mac.c` (`Apple_Void`).

use super::{Class, Taste};
use crate::base::finding::{self, Finding, Severity};
use crate::base::ondisk::{on_disk, text};
use crate::mapping::partition::Partition;
use crate::mapping::slices::{Code, Listing, PartitionType, Purpose, Slice, Tag};
use crate::probe::Probe;
use std::sync::Arc;
use zerocopy::big_endian::{U16, U32};

/// The class `apm`, for Apple's maps.
pub struct Apm;

on_disk! {
    /// On-disk driver descriptor, `Block0`, as far as it is read.
    struct Descriptor of 8 bytes {
        0 => signature: [u8; 2],
        2 => block_size: U16,
        4 => block_count: U32,
    }
}

on_disk! {
    /// On-disk entry, `Partition`, as far as it is read.
    struct PartitionMapEntry of 80 bytes {
         0 => signature: [u8; 2],
         2 => signature_pad: U16,
         4 => map_block_count: U32,
         8 => physical_start: U32,
        12 => block_count: U32,
        16 => name: [u8; 32],
        48 => kind: [u8; 32],
    }
}

/// Largest number of entries that are read; Linux reads no map of more.
const MOST: u32 = 256;
/// Types of entries that are no partitions.
const NONE: [&str; 3] = ["Apple_partition_map", "Apple_Free", "Apple_Void"];
/// Types by their text, without regard to case: the name of gpart(8) or ours, and the purpose.
const TYPES: [(&str, &str, Purpose); 22] = [
    ("Apple_APFS", "apple-apfs", Purpose::Data),
    ("Apple_Boot", "apple-boot", Purpose::Data),
    ("Apple_Bootstrap", "apple-boot", Purpose::Data),
    ("Apple_Driver", "apple-driver", Purpose::Boot),
    ("Apple_Driver43", "apple-driver", Purpose::Boot),
    ("Apple_Driver43_CD", "apple-driver", Purpose::Boot),
    ("Apple_Driver_ATA", "apple-driver", Purpose::Boot),
    ("Apple_Driver_ATAPI", "apple-driver", Purpose::Boot),
    ("Apple_Driver_IOKit", "apple-driver", Purpose::Boot),
    ("Apple_Driver_OpenFirmware", "apple-driver", Purpose::Boot),
    ("Apple_FWDriver", "apple-driver", Purpose::Boot),
    ("Apple_Patches", "apple-patches", Purpose::Boot),
    ("Apple_HFS", "apple-hfs", Purpose::Data),
    ("Apple_MFS", "apple-mfs", Purpose::Data),
    ("Apple_PRODOS", "apple-prodos", Purpose::Data),
    ("Apple_RAID", "apple-raid", Purpose::Data),
    ("Apple_UFS", "apple-ufs", Purpose::Data),
    ("Apple_UNIX_SVR2", "apple-unix-svr2", Purpose::Data),
    ("FreeBSD", "freebsd", Purpose::Data),
    ("FreeBSD-swap", "freebsd-swap", Purpose::Swap),
    ("FreeBSD-UFS", "freebsd-ufs", Purpose::Data),
    ("FreeBSD-ZFS", "freebsd-zfs", Purpose::Data),
];

impl Class for Apm {
    fn name(&self) -> &'static str {
        "apm"
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        let descriptor = probe
            .read::<Descriptor>(0)
            .filter(|found| &found.signature == b"ER" && !probe.has(510, b"\x55\xaa"));
        let block = descriptor.map(|found| u64::from(found.block_size.get()));
        let Some(block) = block.filter(|&size| matches!(size, 512 | 1024 | 2048 | 4096)) else {
            return Taste::No;
        };
        if probe.has(block, b"TS") {
            let message = "a partition map of the first Macintoshes, before the Apple partition \
                map: it is not read"
                .to_string();
            return Taste::Refused(vec![Finding::new(
                &finding::LABEL,
                Severity::Error,
                block,
                message,
            )]);
        }
        match entry(probe, block) {
            Some(first) => slices(probe, block, first.map_block_count.get()),
            None => Taste::No,
        }
    }
}

/// The entry at byte `at`; `None` without its signature.
fn entry(probe: &Probe<'_>, at: u64) -> Option<PartitionMapEntry> {
    probe.read::<PartitionMapEntry>(at).filter(|entry| &entry.signature == b"PM")
}

fn slices(probe: &Probe<'_>, block: u64, count: u32) -> Taste {
    let mut listing = Listing::new(probe.length(), probe.sector());
    if count > MOST {
        listing.damaged(
            block,
            format!("the Apple partition map counts {count} entries: the first {MOST} are read"),
        );
    }
    for index in 1..=count.min(MOST) {
        let at = u64::from(index) * block;
        let Some(entry) = entry(probe, at) else {
            listing.damaged(
                at,
                format!(
                    "entry {index} of the {count} in the Apple partition map \
                is not a partition: the rest is not read"
                ),
            );
            break;
        };
        let kind = text(&entry.kind).unwrap_or_default();
        let (start, length) = (
            u64::from(entry.physical_start.get()) * block,
            u64::from(entry.block_count.get()) * block,
        );
        if length > 0 && !NONE.iter().any(|none| none.eq_ignore_ascii_case(&kind)) {
            let kind = PartitionType::Tag(named(entry.kind, &kind));
            listing.add(Slice {
                suffix: format!("s{index}"),
                partition: Partition {
                    index,
                    start,
                    length,
                    kind,
                    label: text(&entry.name),
                    guid: None,
                },
            });
        }
    }
    let used = (u64::from(count) + 1) * block;
    let (slices, findings) = listing.finish(used.min(probe.length())..probe.length());
    Taste::Geom(Arc::new(slices), findings)
}

/// The type for the text of an entry; `field` is the text as it is on the disk.
fn named(field: [u8; 32], kind: &str) -> Tag {
    let known = TYPES.iter().find(|(name, ..)| name.eq_ignore_ascii_case(kind));
    let purpose = known.map_or(Purpose::Data, |(.., purpose)| *purpose);
    Tag { class: "apm", code: Code::Text(field), name: known.map(|(_, name, _)| *name), purpose }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{read, survives};
    use super::*;
    use crate::format::tests::disk;

    /// A disk's front with a map of these entries: type, name, first block, blocks.
    fn map(block: usize, entries: &[(&str, &str, u32, u32)]) -> Vec<u8> {
        let mut image = vec![0; block * (entries.len() + 1)];
        image[..2].copy_from_slice(b"ER");
        image[2..4].copy_from_slice(&u16::try_from(block).expect("a block").to_be_bytes());
        let count = u32::try_from(entries.len()).expect("a count");
        for (entry, (kind, name, start, blocks)) in image.chunks_mut(block).skip(1).zip(entries) {
            entry[..2].copy_from_slice(b"PM");
            for (at, number) in [(4, count), (8, *start), (12, *blocks)] {
                entry[at..at + 4].copy_from_slice(&number.to_be_bytes());
            }
            entry[16..16 + name.len()].copy_from_slice(name.as_bytes());
            entry[48..48 + kind.len()].copy_from_slice(kind.as_bytes());
        }
        image
    }

    const ENTRIES: &[(&str, &str, u32, u32)] = &[
        ("Apple_partition_map", "Apple", 1, 63),
        ("Apple_Driver43", "Macintosh", 64, 32),
        ("apple_hfs", "Macintosh HD", 128, 512),
        ("Apple_Free", "", 640, 100),
        ("Apple_Void", "", 0, 0),
        ("Tivo_Ext2", "root", 740, 10),
    ];

    #[test]
    fn partitions_are_read_in_blocks_of_every_size() {
        for block in [512, 1024, 2048, 4096] {
            let (slices, messages) =
                read(&Apm, disk(16 << 20, &[(0, &map(block, ENTRIES))]), None).expect("a map");
            let unit = block as u64;
            let places: Vec<_> = slices
                .iter()
                .map(|s| (s.suffix.as_str(), s.partition.start / unit, s.partition.length / unit))
                .collect();
            assert_eq!(places, [("s2", 64, 32), ("s3", 128, 512), ("s6", 740, 10)]);
            let kinds: Vec<String> =
                slices.iter().map(|s| crate::table::types::name(s.partition.kind)).collect();
            assert_eq!(kinds, ["apple-driver", "apple-hfs", "!Tivo_Ext2"]);
            assert_eq!(
                (slices[1].partition.label.as_deref(), messages.len()),
                (Some("Macintosh HD"), 0)
            );
        }
    }

    #[test]
    fn what_a_map_cannot_hold_is_left_out() {
        let (slices, messages) =
            read(&Apm, disk(300_000, &[(0, &map(512, ENTRIES))]), None).expect("a map");
        assert_eq!(slices.len(), 1);
        assert!(
            messages.len() == 2 && messages.iter().all(|m| m.contains("does not lie within")),
            "{messages:?}"
        );
        let mut short = map(512, ENTRIES);
        short[512 * 3] = 0;
        let (slices, messages) = read(&Apm, disk(16 << 20, &[(0, &short)]), None).expect("a map");
        assert_eq!(
            (slices.len(), messages),
            (
                1,
                vec![
                    "entry 3 of the 6 in the Apple partition map is not a partition: the rest is \
                        not read"
                        .into()
                ]
            )
        );
        let both = map(512, &[("Apple_HFS", "", 10, 10), ("Apple_HFS", "", 15, 10)]);
        let (slices, messages) = read(&Apm, disk(16 << 20, &[(0, &both)]), None).expect("a map");
        assert!(slices.len() == 2 && messages[0].contains("share"), "{messages:?}");
    }

    #[test]
    fn a_map_of_thousands_is_read_in_part() {
        let many: Vec<_> = (0..300).map(|n| ("Apple_HFS", "", 1000 + n, 1)).collect();
        let mut image = map(512, &many);
        for count in [300, u32::MAX] {
            image[516..520].copy_from_slice(&count.to_be_bytes());
            let (slices, messages) =
                read(&Apm, disk(16 << 20, &[(0, &image)]), None).expect("a map");
            assert_eq!((slices.len(), messages.len()), (256, 1), "{messages:?}");
        }
    }

    #[test]
    fn what_is_no_map_is_not_taken_for_one() {
        let map = map(512, ENTRIES);
        let with =
            |at: u64, bytes: &[u8]| read(&Apm, disk(16 << 20, &[(0, &map), (at, bytes)]), None);
        assert!(with(510, b"\x55\xaa").is_none(), "a hybrid's");
        assert!(
            with(2, &[0, 0]).is_none()
                && with(2, &[0xff, 0xff]).is_none()
                && with(512, b"XX").is_none()
        );
        let (slices, messages) = with(512, b"TS").expect("an old map");
        assert!(slices.is_empty() && messages[0].contains("first Macintoshes"), "{messages:?}");
    }

    #[test]
    fn hostile_numbers_are_survived() {
        survives(&Apm, None, &map(512, ENTRIES), |_| {});
    }
}
