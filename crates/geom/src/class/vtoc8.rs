//! `vtoc8`: the disk label of SunOS and Solaris on SPARC.
//!
//! # On disk
//! One sector of 512 bytes at byte 0, big-endian: magic `DABE` at 508, and the XOR of all 16-bit
//! words is zero. At 444 eight slices of 8 bytes: first cylinder, count of sectors. A cylinder has
//! `nheads × nsecs` sectors (436, 438). The VTOC within, where `600DDEEE` stands at 188, has a tag
//! of each slice at 142 and their number at 140. Slice 2 (`c`), tag 5 ("backup"), is the whole
//! disk, and no provider here.
//!
//! # Topology
//! Slices. One that begins with cylinder 0 begins with the label.
//!
//! # Limits
//! Sectors are 512 bytes, whatever the device's are. Of a label without a VTOC, slice 2 is taken
//! for the whole disk. A label that is a slice's own copy is not read again. It is not edited.
//!
//! # Sources
//! FreeBSD `sys/sys/disk/vtoc8.h` (`struct vtoc8`), `sys/geom/part/g_part_vtoc8.c`; Linux
//! `block/partitions/sun.c`; util-linux `include/pt-sun.h` for the tags of Linux.

use super::{Class, Taste, solaris};
use crate::base::finding::{self, Finding, Severity};
use crate::base::ondisk::on_disk;
use crate::mapping::partition::Partition;
use crate::mapping::slices::{Code, Listing, PartitionType, Purpose, Slice, Tag};
use crate::probe::Probe;
use std::sync::Arc;
use zerocopy::big_endian::{U16, U32};

/// The class `vtoc8`, for labels of SPARC.
pub struct Vtoc8;

on_disk! {
    /// A slice's tag and flags, in `struct vtoc8`.
    #[derive(Clone, Copy)]
    struct Part of 4 bytes {
        0 => tag: U16,
        2 => flag: U16,
    }
}

on_disk! {
    /// Place of a slice, in `struct vtoc8`.
    #[derive(Clone, Copy)]
    struct Map of 8 bytes {
        0 => cyl: U32,
        4 => nblks: U32,
    }
}

on_disk! {
    /// On-disk label, `struct vtoc8`.
    struct Label of 512 bytes {
          0 => ascii: [u8; 128],
        128 => version: U32,
        132 => volume: [u8; 8],
        140 => nparts: U16,
        142 => part: [Part; SLICES],
        174 => padding: U16,
        176 => bootinfo: [U32; 3],
        188 => sanity: U32,
        192 => reserved: [U32; 10],
        232 => timestamp: [U32; 8],
        264 => wskip: U16,
        266 => rskip: U16,
        268 => skip: [u8; 152],
        420 => rpm: U16,
        422 => physcyls: U16,
        424 => sparesecs: U16,
        426 => spare1: [U16; 2],
        430 => interleave: U16,
        432 => ncyls: U16,
        434 => altcyls: U16,
        436 => nheads: U16,
        438 => nsecs: U16,
        440 => spare2: [U16; 2],
        444 => map: [Map; SLICES],
        508 => magic: U16,
        510 => cksum: U16,
    }
}

const SLICES: usize = 8;
const SECTOR: u64 = 512;
const MAGIC: u16 = 0xdabe;
const SANE: u32 = 0x600d_deee;
/// Index of the slice that is the whole disk where no tag says so.
const RAW: usize = 2;
const BACKUP: u16 = 5;
/// Tags that FreeBSD and Linux have besides those of Solaris, with their names.
const TAGS: [(u16, &str); 9] = [
    (0x82, "linux-swap"),
    (0x83, "linux-data"),
    (0x8e, "linux-lvm"),
    (0xfd, "linux-raid"),
    (0x901, "freebsd-swap"),
    (0x902, "freebsd-ufs"),
    (0x903, "freebsd-vinum"),
    (0x904, "freebsd-zfs"),
    (0x905, "freebsd-nandfs"),
];
const FREEBSD_SWAP: u16 = 0x901;

impl Class for Vtoc8 {
    fn name(&self) -> &'static str {
        "vtoc8"
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        // A slice that begins with cylinder 0 begins with the label it is described by.
        let nested = matches!(probe.kind(), Some(PartitionType::Tag(tag)) if tag.class == "vtoc8");
        let magic = !nested && probe.has(508, &MAGIC.to_be_bytes());
        let Some(label) = (if magic { probe.read::<Label>(0) } else { None }) else {
            return Taste::No;
        };
        let sums =
            probe.bytes(0, size_of::<Label>()).is_some_and(|bytes| checksum(&bytes) == [0, 0]);
        let refused = |message: &str| {
            Taste::Refused(vec![Finding::new(&finding::LABEL, Severity::Error, 0, message.into())])
        };
        match (sums, label.sanity.get() == SANE) {
            // Two bytes alone are no label.
            (false, false) => Taste::No,
            (false, true) => {
                refused("a Sun label stands here whose checksum is wrong: it is not read")
            }
            _ if label.sectors() == 0 => refused(
                "a Sun label of no heads or no sectors a track: where its slices begin is not known",
            ),
            _ => label.slices(probe),
        }
    }
}

/// The XOR of all words, byte by byte.
fn checksum(bytes: &[u8]) -> [u8; 2] {
    bytes.chunks_exact(2).fold([0, 0], |sum, word| [sum[0] ^ word[0], sum[1] ^ word[1]])
}

impl Label {
    /// Number of sectors in a cylinder.
    fn sectors(&self) -> u64 {
        u64::from(self.nheads.get()) * u64::from(self.nsecs.get())
    }

    /// The tag of slice `nth`; `None` without a VTOC, or past the slices that it counts.
    fn tag(&self, nth: usize) -> Option<u16> {
        let count = usize::from(self.nparts.get());
        (self.sanity.get() == SANE && nth < count).then(|| self.part[nth].tag.get())
    }

    fn slices(&self, probe: &Probe<'_>) -> Taste {
        let mut listing = Listing::new(probe.length(), probe.sector());
        for (((nth, index), letter), map) in (0..).zip(1..).zip('a'..='h').zip(&self.map) {
            let tag = self.tag(nth);
            if map.nblks.get() == 0 || tag == Some(BACKUP) || tag.is_none() && nth == RAW {
                continue;
            }
            // A place past 2^64 bytes is past the end too.
            let start = u64::from(map.cyl.get()).saturating_mul(self.sectors() * SECTOR);
            let (length, kind) = (
                u64::from(map.nblks.get()) * SECTOR,
                PartitionType::Tag(named(tag.unwrap_or_default())),
            );
            listing.add(Slice {
                suffix: letter.to_string(),
                partition: Partition::new(index, start, length, kind),
            });
        }
        let (slices, findings) = listing.finish(0..probe.length());
        Taste::Geom(Arc::new(slices), findings)
    }
}

/// The type for a tag of FreeBSD, Linux or Solaris.
fn named(tag: u16) -> Tag {
    match TAGS.iter().find(|(code, _)| *code == tag) {
        Some((_, name)) => {
            let purpose = if tag == FREEBSD_SWAP { Purpose::Swap } else { Purpose::Data };
            Tag { class: "vtoc8", code: Code::Number(tag.into()), name: Some(name), purpose }
        }
        None => solaris::tag("vtoc8", tag),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{read, survives};
    use super::*;
    use crate::format::tests::disk;

    /// Writes the checksum of a label.
    fn seal(label: &mut [u8]) {
        label[508..510].copy_from_slice(&MAGIC.to_be_bytes());
        let sum = checksum(&label[..510]);
        label[510..512].copy_from_slice(&sum);
    }

    /// A label of 4 heads and 32 sectors a track, with these slices: number, tag, first cylinder,
    /// sectors.
    fn label(sane: bool, slices: &[(usize, u16, u32, u32)]) -> Vec<u8> {
        let mut label = vec![0; 512];
        let mut put = |at: usize, bytes: &[u8]| label[at..at + bytes.len()].copy_from_slice(bytes);
        put(436, &[0, 4, 0, 32]);
        if sane {
            put(128, &[0, 0, 0, 1]);
            put(140, &[0, 8]);
            put(188, &SANE.to_be_bytes());
        }
        for (nth, tag, cylinder, sectors) in slices {
            put(142 + 4 * nth, &tag.to_be_bytes());
            put(444 + 8 * nth, &cylinder.to_be_bytes());
            put(448 + 8 * nth, &sectors.to_be_bytes());
        }
        seal(&mut label);
        label
    }

    const SLICES: &[(usize, u16, u32, u32)] =
        &[(0, 2, 0, 16384), (1, 3, 128, 8192), (2, BACKUP, 0, 131_072), (7, 0x83, 192, 65536)];

    #[test]
    fn slices_begin_at_cylinders_and_the_whole_disk_is_none() {
        let (slices, messages) =
            read(&Vtoc8, disk(64 << 20, &[(0, &label(true, SLICES))]), None).expect("a label");
        let places: Vec<_> = slices
            .iter()
            .map(|s| (s.suffix.as_str(), s.partition.index, s.partition.start, s.partition.length))
            .collect();
        let (cylinder, sector) = (4 * 32 * 512, 512);
        assert_eq!(
            places,
            [
                ("a", 1, 0, 16384 * sector),
                ("b", 2, 128 * cylinder, 8192 * sector),
                ("h", 8, 192 * cylinder, 65536 * sector)
            ]
        );
        let kinds: Vec<String> =
            slices.iter().map(|s| crate::table::types::name(s.partition.kind)).collect();
        assert_eq!(
            (kinds, messages.len()),
            (["solaris-root", "solaris-swap", "linux-data"].map(String::from).to_vec(), 0)
        );
    }

    #[test]
    fn without_a_vtoc_the_third_slice_is_the_whole_disk() {
        let (slices, _) =
            read(&Vtoc8, disk(64 << 20, &[(0, &label(false, SLICES))]), None).expect("a label");
        assert_eq!(slices.iter().map(|s| s.suffix.as_str()).collect::<Vec<_>>(), ["a", "b", "h"]);
        let (slices, _) =
            read(&Vtoc8, disk(64 << 20, &[(0, &label(true, &[(2, 2, 128, 100)]))]), None)
                .expect("a label");
        assert_eq!(slices.len(), 1, "another tag makes it a slice like any other");
    }

    #[test]
    fn a_label_is_read_whole_or_not_at_all() {
        let sound = label(true, SLICES);
        let with = |change: fn(&mut Vec<u8>)| {
            let mut label = sound.clone();
            change(&mut label);
            read(&Vtoc8, disk(64 << 20, &[(0, &label)]), None)
        };
        assert!(with(|label| label[508] = 0).is_none());
        let (slices, messages) = with(|label| label[0] ^= 1).expect("a damaged label");
        assert!(slices.is_empty() && messages[0].contains("checksum"), "{messages:?}");
        assert!(with(|label| (label[0], label[188]) = (1, 0)).is_none(), "two bytes alone");
        let (slices, messages) = with(|label| {
            label[437] = 0;
            seal(label);
        })
        .expect("a label without heads");
        assert!(slices.is_empty() && messages[0].contains("no heads"), "{messages:?}");
    }

    #[test]
    fn a_slice_that_begins_with_the_label_has_none() {
        let kind = PartitionType::Tag(named(2));
        assert!(read(&Vtoc8, disk(8 << 20, &[(0, &label(true, SLICES))]), Some(kind)).is_none());
        assert!(
            read(
                &Vtoc8,
                disk(64 << 20, &[(0, &label(true, SLICES))]),
                Some(PartitionType::Mbr(0x83))
            )
            .is_some()
        );
    }

    #[test]
    fn hostile_numbers_are_survived() {
        survives(&Vtoc8, None, &label(true, SLICES), seal);
        // The greatest of everything at once.
        let mut label = label(true, &[(0, 2, u32::MAX, u32::MAX)]);
        label[436..440].fill(0xff);
        seal(&mut label);
        let (slices, messages) =
            read(&Vtoc8, disk(1 << 40, &[(0, &label)]), None).expect("a label");
        assert!(slices.is_empty() && messages[0].contains("does not lie within"), "{messages:?}");
    }
}
