//! qcow: the first version of QEMU's own disk image.
//!
//! # On disk
//! Big-endian header at byte 0: `QFI\xfb` and version 1. The virtual disk is cut into clusters of
//! 512 bytes to 64 KiB. An L1 table has the places of L2 tables, and those the places of clusters:
//! plain, compressed, or absent, which a backing file has instead.
//!
//! # Topology
//! QEMU puts plain clusters at multiples of their size, but no rule of the format demands it: the
//! tables say, as far as they were looked at.
//!
//! # Limits
//! Encrypted images are `unknown`. Limits are QEMU's.
//!
//! # Sources
//! QEMU `block/qcow.c`: `QCowHeader`, `qcow_open` for what is refused, `get_cluster_offset`, also
//! for a first write: it fills no cluster, and an overlay has clusters of 512 bytes.

use super::Taste;
use super::container::{BlockTable, Container, Contents, FILE, Home, Parent, Place, looked_at};
use crate::base::ondisk::on_disk;
use crate::base::topology::{FirstWrite, Translation};
use crate::format::{Format, FormatKind, Inside, Reference, Sign};
use crate::mapping::geom::{Extent, Packed, Packing};
use crate::mapping::tables::Tables;
use crate::probe::Probe;
use std::sync::Arc;
use zerocopy::big_endian::{U16, U32, U64};

/// The class and format, for the registry.
pub struct Qcow;

/// The kind that blkid and QEMU call `qcow`.
pub const KIND: FormatKind = FormatKind::new("qcow", &Qcow);

on_disk! {
    /// Header of version 1, `QCowHeader`.
    struct Header of 48 bytes {
         0 => magic: [u8; 4],
         4 => version: U32,
         8 => backing_file_offset: U64,
        16 => backing_file_size: U32,
        20 => mtime: U32,
        24 => size: U64,
        32 => cluster_bits: u8,
        33 => l2_bits: u8,
        34 => padding: U16,
        36 => crypt_method: U32,
        40 => l1_table_offset: U64,
    }
}

/// `QCOW_OFLAG_COMPRESSED`, of an entry of L2.
const COMPRESSED: u64 = 1 << 63;
/// Most entries of an L1 table, `INT_MAX / sizeof(uint64_t)`.
const MOST_L1: u64 = 0x7fff_ffff / 8;

/// The header on a provider, with a cluster that QEMU would take.
fn found(probe: &Probe<'_>) -> Option<Header> {
    let header = probe.read(0).filter(|_| probe.has(0, b"QFI\xfb\0\0\0\x01"));
    header.filter(|header: &Header| (9..=16).contains(&header.cluster_bits))
}

/// The reason for which the places that a header leads to are not followed.
fn refusal(header: &Header) -> Option<&'static str> {
    if !(6..=13).contains(&header.l2_bits) {
        return Some("its L2 tables are not of 512 bytes to 64 KiB");
    }
    let reach = 1_u64 << (header.cluster_bits + header.l2_bits);
    let reasons = [
        (header.crypt_method.get() != 0, "it is encrypted"),
        (header.size.get() < 2, "its size is too small"),
        (header.size.get().div_ceil(reach) > MOST_L1, "its size is larger than QEMU takes"),
    ];
    reasons.into_iter().find_map(|(is_so, reason)| is_so.then_some(reason))
}

/// The backing file that a header names.
fn backing(header: &Header, probe: &Probe<'_>) -> Option<Reference> {
    let at = Some(header.backing_file_offset.get()).filter(|&at| at > 0)?;
    // QEMU takes no longer name.
    let length = header.backing_file_size.get().min(1023);
    let name = probe.bytes(at, usize::try_from(length).ok()?).unwrap_or_default();
    let name = String::from_utf8_lossy(&name).into_owned();
    Some(Reference { role: "backing file", name, format: None, identity: None })
}

impl Format for Qcow {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        let header = found(probe)?;
        let mut sign = Sign::new(KIND, 0);
        sign.version = Some("1".into());
        sign.inside = refusal(&header).map_or(Inside::Container, Inside::Unknown);
        sign.details.push(("virtual size", header.size.get().to_string()));
        sign.details.push(("cluster size", (1_u64 << header.cluster_bits).to_string()));
        sign.references.extend(backing(&header, probe));
        Some(sign)
    }
}

impl Container for Qcow {
    const KIND: FormatKind = KIND;

    fn look(&self, probe: &Probe<'_>) -> Taste {
        let Some(header) = found(probe).filter(|header| refusal(header).is_none()) else {
            return Taste::No;
        };
        let table = Clusters {
            bits: header.cluster_bits,
            l2_bits: header.l2_bits,
            l1: header.l1_table_offset.get(),
        };
        let is_overlay = header.backing_file_offset.get() != 0;
        let length = header.size.get();
        let cluster = table.block();
        let contents = Contents {
            length,
            home: Home::File(probe.length()),
            parent: if is_overlay { Parent::Missing } else { Parent::None },
            sector: None,
            translation: match looked_at(&table, length, probe) {
                // The first cluster will be where QEMU puts all of them.
                blocks if blocks.is_empty() => Translation::by_format(cluster, 0),
                blocks => Translation::by_table(cluster, blocks),
            }
            .first_writing(|known| FirstWrite::plain(known).entry("L2 entry", 8)),
            table,
        };
        Taste::Geom(Arc::new(contents), Vec::new())
    }
}

/// The L1 table and the tables that it leads to.
#[derive(Clone)]
struct Clusters {
    bits: u8,
    l2_bits: u8,
    l1: u64,
}

impl BlockTable for Clusters {
    fn block(&self) -> u64 {
        1 << self.bits
    }

    fn find(&self, nth: u64, length: u64, tables: &Tables<'_>) -> Result<Place, Extent> {
        let number = |table: u64, index: u64| {
            let at = index.checked_mul(8).and_then(|behind| table.checked_add(behind));
            let bytes = tables.bytes(FILE, at.ok_or(Extent::Fail { length })?, length)?;
            Ok(u64::from_be_bytes(bytes))
        };
        let table = number(self.l1, nth >> self.l2_bits)?;
        if table == 0 {
            return Ok(Place::Absent);
        }
        let entry = number(table, nth & ((1 << self.l2_bits) - 1))?;
        if entry == 0 {
            return Ok(Place::Absent);
        }
        if entry & COMPRESSED == 0 {
            return Ok(Place::At(entry));
        }
        let split = 63 - self.bits;
        let packed = Packed {
            offset: entry & ((1 << split) - 1),
            stored: (entry & (COMPRESSED - 1)) >> split,
            size: self.block(),
            packing: Packing::Deflate,
        };
        Ok(Place::Packed(packed, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::container::tests::{opened, read, reason, survives};
    use crate::base::error::Errno;
    use crate::format::tests::disk;

    /// An image of 4 MiB in clusters of 512 bytes: L1 at 64, its first L2 at 1024, the first
    /// cluster at `first`.
    fn image(first: u64) -> Vec<u8> {
        let mut file = vec![0; 4096];
        file[..8].copy_from_slice(b"QFI\xfb\0\0\0\x01");
        let mut put = |at: usize, number: u64| {
            file[at..at + 8].copy_from_slice(&number.to_be_bytes());
        };
        put(24, 4 << 20);
        put(32, 0x0906 << 48);
        put(40, 64);
        put(64, 1024);
        put(1024, first);
        file.extend([b'q'; 1024]);
        file
    }

    #[test]
    fn clusters_are_where_the_tables_have_them_and_their_places_are_counted() {
        for (first, phase) in [(4096, 0), (4100, 4)] {
            let file = image(first);
            let it = opened(disk(file.len() as u64, &[(0, &file)]));
            assert!(read(&it, 0, 512).unwrap() == [b'q'; 512]);
            assert!(read(&it, 512, 4096).unwrap() == [0; 4096]);
            let contents = &it.0.providers[it.1.unwrap()];
            let translation = contents.route().set().unwrap().geom.translation().unwrap();
            assert_eq!((translation.grain().size(), translation.grain().phase()), (512, phase));
            assert_eq!(translation.looked_at(), Some(1));
        }
    }

    #[test]
    fn what_qemu_refuses_is_unknown() {
        for (at, byte, part) in
            [(33, 5, "L2"), (33, 14, "L2"), (39, 1, "encrypted"), (24, 0x80, "larger than QEMU")]
        {
            let mut file = image(4096);
            file[at] = byte;
            let why = reason(disk(file.len() as u64, &[(0, &file)]));
            assert!(why.is_some_and(|why| why.contains(part)), "{at} {byte}: {why:?}");
        }
        let mut empty = image(4096);
        empty[24..32].fill(0);
        assert!(reason(disk(8192, &[(0, &empty)])).is_some_and(|why| why.contains("small")));
        for bits in [8, 17] {
            let mut file = image(4096);
            file[32] = bits;
            assert!(opened(disk(8192, &[(0, &file)])).1.is_none());
        }
    }

    #[test]
    fn what_is_not_there_fails_and_nothing_panics() {
        let file = image(1 << 40);
        assert_eq!(read(&opened(disk(8192, &[(0, &file)])), 0, 512), Err(Errno::Io));
        let mut overlay = image(4096);
        overlay[15] = 1;
        let it = opened(disk(8192, &[(0, &overlay)]));
        assert_eq!(read(&it, 512, 512), Err(Errno::Io));
        assert!(read(&it, 0, 512).is_ok());
        survives(&image(4096), 0..80);
        survives(&image(4096), 1024..1040);
    }
}
