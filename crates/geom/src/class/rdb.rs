//! `rdb`: the rigid disk block of the Amiga.
//!
//! # On disk
//! In one of the first 16 sectors of 512 bytes `RDSK`, big-endian: a count of 32-bit words at 4,
//! which add up to zero; bytes of a block at 16; at 28 the first of a chain of `PART` blocks,
//! counted from byte 0, whose end is `FFFFFFFF`. A `PART` block adds up to zero too; it has the
//! next at 16, the drive's name at 36 (its length first), and from 128 on the environment: at 12
//! the surfaces, at 20 blocks of a track, at 36 and 40 the first and the last cylinder, at 64 the
//! file system.
//!
//! # Topology
//! Slices.
//!
//! # Limits
//! In a partition the block is looked for in the first 8 sectors only. At most 128 partitions are
//! read, each block of the chain once; a block with a wrong checksum is left out. Partitions are
//! numbered as they follow each other, as Linux does. A word that Windows overwrites (at 220) does
//! not count against the sum. Bad blocks, file systems and boot code of the disk are not read. It
//! is not edited.
//!
//! # Sources
//! AmigaOS `devices/hardblocks.h` (`RigidDiskBlock`, `PartitionBlock`), `dos/filehandler.h`
//! (`DosEnvec`); Linux `block/partitions/amiga.c`; parted `libparted/labels/rdb.c`; "Amiga ROM
//! Kernel Reference Manual: Devices", RDB.

use super::{Class, Taste};
use crate::base::finding::{self, Finding, Severity};
use crate::base::ondisk::{on_disk, text};
use crate::mapping::partition::Partition;
use crate::mapping::slices::{Code, Listing, PartitionType, Purpose, Slice, Tag};
use crate::probe::Probe;
use std::sync::Arc;
use zerocopy::big_endian::U32;

/// The class `rdb`, for the Amiga's disks.
pub struct Rdb;

on_disk! {
    /// On-disk `struct RigidDiskBlock`, as far as it is read.
    struct Disk of 136 bytes {
          0 => rdb_id: [u8; 4],
          4 => rdb_summed_longs: U32,
          8 => rdb_chk_sum: U32,
         12 => rdb_host_id: U32,
         16 => rdb_block_bytes: U32,
         20 => rdb_flags: U32,
         24 => rdb_bad_block_list: U32,
         28 => rdb_partition_list: U32,
         32 => skip: [u8; 96],
        128 => rdb_rdb_blocks_lo: U32,
        132 => rdb_rdb_blocks_hi: U32,
    }
}

on_disk! {
    /// On-disk `struct PartitionBlock` with its `struct DosEnvec`, as far as it is read.
    struct Part of 196 bytes {
          0 => pb_id: [u8; 4],
          4 => pb_summed_longs: U32,
          8 => pb_chk_sum: U32,
         12 => pb_host_id: U32,
         16 => pb_next: U32,
         20 => pb_flags: U32,
         24 => pb_reserved: [U32; 2],
         32 => pb_dev_flags: U32,
         36 => pb_drive_name: [u8; 32],
         68 => skip: [u8; 60],
        128 => de_table_size: U32,
        132 => de_size_block: U32,
        136 => de_sec_org: U32,
        140 => de_surfaces: U32,
        144 => de_sector_per_block: U32,
        148 => de_blocks_per_track: U32,
        152 => de_reserved: U32,
        156 => de_prealloc: U32,
        160 => de_interleave: U32,
        164 => de_low_cyl: U32,
        168 => de_high_cyl: U32,
        172 => de_buffers: [U32; 5],
        192 => de_dos_type: [u8; 4],
    }
}

const SECTOR_BYTES: usize = 512;
const SECTOR: u64 = SECTOR_BYTES as u64;
/// Number of sectors in which the block may be; below, those that are read in a partition, whose
/// head is read anyway.
const PLACES: u64 = 16;
const PLACES_WITHIN: u64 = 8;
/// Offset of the word that Windows overwrites.
const TRASHED: usize = 220;
/// Largest number of partitions that are read.
const MOST: usize = 128;
const END: u32 = u32::MAX;
/// File systems by the first three letters of their type, or by all four bytes.
const TYPES: [(&[u8], &str, Purpose); 17] = [
    (b"DOS\0", "amiga-ofs", Purpose::Data),
    (b"DOS\x02", "amiga-ofs", Purpose::Data),
    (b"DOS\x04", "amiga-ofs", Purpose::Data),
    (b"DOS\x06", "amiga-ofs", Purpose::Data),
    (b"DOS", "amiga-ffs", Purpose::Data),
    (b"muF", "amiga-ffs-multiuser", Purpose::Data),
    (b"SFS", "amiga-sfs", Purpose::Data),
    (b"PFS", "amiga-pfs", Purpose::Data),
    (b"PDS", "amiga-pfs", Purpose::Data),
    (b"AFS", "amiga-pfs", Purpose::Data),
    (b"UNI", "amiga-unix", Purpose::Data),
    (b"BFF", "befs", Purpose::Data),
    (b"NBR", "netbsd-root", Purpose::Data),
    (b"NBS", "netbsd-swap", Purpose::Swap),
    (b"NBU", "netbsd-user", Purpose::Data),
    (b"LNX", "linux-data", Purpose::Data),
    (b"SWP", "linux-swap", Purpose::Data),
];

impl Class for Rdb {
    fn name(&self) -> &'static str {
        "rdb"
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        let places = if probe.kind().is_none() { PLACES } else { PLACES_WITHIN };
        let found: Vec<u64> =
            (0..places).map(|n| n * SECTOR).filter(|&at| probe.has(at, b"RDSK")).collect();
        let Some(&first) = found.first() else { return Taste::No };
        let whole = found
            .iter()
            .find_map(|&at| Some((at, probe.read::<Disk>(at).filter(|_| is_whole(probe, at))?)));
        let refused = |at, message: String| {
            Taste::Refused(vec![Finding::new(&finding::LABEL, Severity::Error, at, message)])
        };
        match whole {
            None => refused(
                first,
                "a rigid disk block of an Amiga stands here whose checksum is \
                wrong: it is not read"
                    .into(),
            ),
            Some((at, disk)) => match u64::from(disk.rdb_block_bytes.get()) {
                block @ (512 | 1024 | 2048 | 4096) => slices(probe, &disk, block),
                block => refused(
                    at,
                    format!(
                        "a rigid disk block of an Amiga counts in blocks of \
                    {block} bytes: it is not read"
                    ),
                ),
            },
        }
    }
}

/// True if the words of the block at byte `at` add up to zero, if need be without the one that
/// Windows overwrites.
fn is_whole(probe: &Probe<'_>, at: u64) -> bool {
    let words = probe.bytes(at, SECTOR_BYTES).and_then(|bytes| {
        let count = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let length = usize::try_from(count)
            .ok()?
            .checked_mul(4)
            .filter(|length| (16..=bytes.len()).contains(length))?;
        Some(bytes[..length].to_vec())
    });
    let sum = |bytes: &[u8]| {
        let words = bytes.chunks_exact(4).map(|w| u32::from_be_bytes([w[0], w[1], w[2], w[3]]));
        words.fold(0, u32::wrapping_add)
    };
    words.is_some_and(|mut bytes| {
        let all = sum(&bytes) == 0;
        if let Some(word) = bytes.get_mut(TRASHED..TRASHED + 4) {
            word.fill(0);
        }
        all || sum(&bytes) == 0
    })
}

fn slices(probe: &Probe<'_>, disk: &Disk, block: u64) -> Taste {
    let mut listing = Listing::new(probe.length(), probe.sector());
    let (mut next, mut seen, mut index) = (disk.rdb_partition_list.get(), Vec::new(), 0);
    while next != END {
        // A 32-bit count of blocks of at most 4096 bytes.
        let at = u64::from(next) * block;
        let Some(part) = probe.read::<Part>(at).filter(|part| &part.pb_id == b"PART") else {
            listing.damaged(
                at,
                format!(
                    "block {next} of the chain of Amiga partitions is not a partition: the rest is not read"
                ),
            );
            break;
        };
        if seen.contains(&next) || seen.len() == MOST {
            let why = if seen.len() == MOST {
                "has more blocks than any disk"
            } else {
                "returns to a block before"
            };
            listing.damaged(
                at,
                format!(
                    "the chain of Amiga partitions {why}, at block {next}: the rest is not read"
                ),
            );
            break;
        }
        seen.push(next);
        if is_whole(probe, at) {
            index += 1;
            listing.add(part.slice(index, block));
        } else {
            listing.damaged(
                at,
                format!(
                    "block {next} of the chain of Amiga partitions has a wrong \
                checksum: it is left out"
                ),
            );
        }
        next = part.pb_next.get();
    }
    let used = (u64::from(disk.rdb_rdb_blocks_hi.get()) + 1) * block;
    let (slices, findings) = listing.finish(used.min(probe.length())..probe.length());
    Taste::Geom(Arc::new(slices), findings)
}

impl Part {
    /// The partition, as the `index`th of those that are read, where a block has so many bytes. A
    /// place past 2^64 bytes is past the end too, and so is one whose last cylinder comes before
    /// its first.
    fn slice(&self, index: u32, block: u64) -> Slice {
        let cylinder = (u64::from(self.de_surfaces.get())
            * u64::from(self.de_blocks_per_track.get()))
        .checked_mul(block);
        let bytes = |cylinders: Option<u64>| {
            cylinders.and_then(|n| n.checked_mul(cylinder?)).unwrap_or(u64::MAX)
        };
        let (low, high) = (u64::from(self.de_low_cyl.get()), u64::from(self.de_high_cyl.get()));
        let (start, length) = (bytes(Some(low)), bytes((high + 1).checked_sub(low)));
        let name = usize::from(self.pb_drive_name[0]).min(self.pb_drive_name.len() - 1);
        let kind = PartitionType::Tag(named(self.de_dos_type));
        Slice {
            suffix: format!("p{index}"),
            partition: Partition {
                index,
                start,
                length,
                kind,
                label: text(&self.pb_drive_name[1..=name]),
                guid: None,
            },
        }
    }
}

/// The type for the four bytes of a file system's type; an unknown one is shown as AmigaOS writes
/// it, letters and a number.
fn named(kind: [u8; 4]) -> Tag {
    let known = TYPES.iter().find(|(name, ..)| kind.starts_with(name));
    let mut field = [0; 32];
    let shown = kind.iter().map(|&byte| {
        if byte.is_ascii_graphic() { char::from(byte).to_string() } else { format!("\\{byte}") }
    });
    let shown: String = shown.collect();
    field[..shown.len()].copy_from_slice(shown.as_bytes());
    let purpose = known.map_or(Purpose::Data, |(.., purpose)| *purpose);
    Tag { class: "rdb", code: Code::Text(field), name: known.map(|(_, name, _)| *name), purpose }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{read, survives};
    use super::*;
    use crate::format::tests::disk;

    /// Size of a block here, in bytes.
    const BLOCK: usize = 512;

    /// Writes the checksum of every block that has one.
    fn seal(image: &mut [u8]) {
        for block in image
            .chunks_mut(BLOCK)
            .filter(|block| block.starts_with(b"RDSK") || block.starts_with(b"PART"))
        {
            block[8..12].fill(0);
            let words =
                block[..256].chunks_exact(4).map(|w| u32::from_be_bytes([w[0], w[1], w[2], w[3]]));
            let rest = words.fold(0, u32::wrapping_add).wrapping_neg();
            block[8..12].copy_from_slice(&rest.to_be_bytes());
        }
    }

    fn put(image: &mut [u8], block: usize, at: usize, number: u32) {
        image[BLOCK * block + at..BLOCK * block + at + 4].copy_from_slice(&number.to_be_bytes());
    }

    /// A disk's front with the disk's block at `place` and a chain of partitions behind it: name,
    /// type, first and last cylinder. A cylinder has 4 surfaces of 32 blocks.
    fn chain(place: usize, parts: &[(&str, &[u8; 4], u32, u32)]) -> Vec<u8> {
        let mut image = vec![0; BLOCK * (place + parts.len() + 1)];
        image[BLOCK * place..BLOCK * place + 4].copy_from_slice(b"RDSK");
        let next = |nth: usize| {
            if nth < parts.len() { u32::try_from(place + 1 + nth).expect("a block") } else { END }
        };
        for (at, number) in [(4, 64), (16, 512), (28, next(0)), (132, 383)] {
            put(&mut image, place, at, number);
        }
        for (nth, (name, kind, low, high)) in parts.iter().enumerate() {
            let block = place + 1 + nth;
            for (at, number) in [
                (4, 64),
                (16, next(nth + 1)),
                (140, 4),
                (148, 32),
                (164, *low),
                (168, *high),
                (192, u32::from_be_bytes(**kind)),
            ] {
                put(&mut image, block, at, number);
            }
            let part = &mut image[BLOCK * block..];
            part[..4].copy_from_slice(b"PART");
            part[36] = u8::try_from(name.len()).expect("a length");
            part[37..37 + name.len()].copy_from_slice(name.as_bytes());
        }
        seal(&mut image);
        image
    }

    const PARTS: &[(&str, &[u8; 4], u32, u32)] = &[
        ("DH0", b"DOS\x03", 16, 319),
        ("DH1", b"DOS\x04", 320, 400),
        ("SYS", b"XYZ\x01", 500, 600),
    ];

    #[test]
    fn partitions_are_found_from_every_place_of_the_block() {
        for place in 0..16 {
            let (slices, messages) =
                read(&Rdb, disk(64 << 20, &[(0, &chain(place, PARTS))]), None).expect("a block");
            let places: Vec<_> = slices
                .iter()
                .map(|s| (s.suffix.as_str(), s.partition.start / 65536, s.partition.length / 65536))
                .collect();
            assert_eq!(places, [("p1", 16, 304), ("p2", 320, 81), ("p3", 500, 101)]);
            let kinds: Vec<String> =
                slices.iter().map(|s| crate::table::types::name(s.partition.kind)).collect();
            assert_eq!(kinds, ["amiga-ffs", "amiga-ofs", "!XYZ\\1"]);
            assert_eq!((slices[0].partition.label.as_deref(), messages.len()), (Some("DH0"), 0));
        }
        assert!(read(&Rdb, disk(64 << 20, &[(0, &chain(16, PARTS))]), None).is_none());
    }

    #[test]
    fn a_chain_that_returns_ends() {
        for (block, next) in [(3, 1), (1, 1), (2, 2)] {
            let mut image = chain(0, PARTS);
            put(&mut image, block, 16, next);
            seal(&mut image);
            let (slices, messages) =
                read(&Rdb, disk(64 << 20, &[(0, &image)]), None).expect("a block");
            assert!(
                slices.len() == block
                    && messages.len() == 1
                    && messages[0].contains("returns to a block before"),
                "{messages:?}"
            );
        }
        let many = vec![("D", b"DOS\0", 1000, 1000); 200];
        let (_, messages) =
            read(&Rdb, disk(1 << 30, &[(0, &chain(0, &many))]), None).expect("a block");
        assert!(messages.iter().any(|m| m.contains("more blocks than any disk")), "{messages:?}");
    }

    #[test]
    fn damaged_blocks_are_left_out() {
        let mut image = chain(2, PARTS);
        image[BLOCK * 4 + 200] ^= 1;
        let (slices, messages) = read(&Rdb, disk(64 << 20, &[(0, &image)]), None).expect("a block");
        assert!(
            slices.len() == 2
                && slices[1].partition.label.as_deref() == Some("SYS")
                && messages[0].contains("wrong checksum"),
            "{messages:?}"
        );
        image[BLOCK * 4] = 0;
        let (slices, messages) = read(&Rdb, disk(64 << 20, &[(0, &image)]), None).expect("a block");
        assert!(slices.len() == 1 && messages[0].contains("the rest is not read"), "{messages:?}");
        image[BLOCK * 2 + 100] ^= 1;
        let (slices, messages) = read(&Rdb, disk(64 << 20, &[(0, &image)]), None).expect("a block");
        assert!(slices.is_empty() && messages[0].contains("checksum"), "{messages:?}");
        let mut trashed = chain(0, PARTS);
        put(&mut trashed, 0, TRASHED, 0xdead_beef);
        assert_eq!(
            read(&Rdb, disk(64 << 20, &[(0, &trashed)]), None).map(|(slices, _)| slices.len()),
            Some(3),
            "as Windows leaves it"
        );
    }

    #[test]
    fn hostile_numbers_are_survived() {
        let worst = chain(
            0,
            &[
                ("A", b"DOS\0", u32::MAX, u32::MAX),
                ("B", b"DOS\0", 9, 3),
                ("C", b"DOS\0", 1000, 2000),
            ],
        );
        let (slices, messages) = read(&Rdb, disk(64 << 20, &[(0, &worst)]), None).expect("a block");
        assert!(
            slices.is_empty() && messages.iter().all(|m| m.contains("does not lie within")),
            "{messages:?}"
        );
        survives(&Rdb, None, &chain(0, PARTS), seal);
    }
}
