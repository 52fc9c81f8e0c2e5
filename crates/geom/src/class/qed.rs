//! QED: a disk image of QEMU, older than qcow2's third version.
//!
//! # On disk
//! Little-endian header at byte 0: `QED\0`, features, sizes of clusters and tables. The virtual
//! disk is cut into clusters of 4 KiB to 64 MiB. An L1 table of one or more clusters has the places
//! of L2 tables of the same size, and those the places of clusters: plain, zero, or absent, which a
//! backing file has instead.
//!
//! # Topology
//! Clusters lie at multiples of their own size, so every unit that divides it is kept.
//!
//! # Limits
//! An image that was not closed, and wants to be checked, is `unknown`.
//!
//! # Sources
//! QEMU `docs/interop/qed_spec.rst`; `block/qed.c`, `bdrv_qed_do_open`, for what is refused,
//! `qed_aio_write_alloc` for a first write: it fills the cluster, from the backing file or with
//! zeros.

use super::Taste;
use super::container::{BlockTable, Container, Contents, FILE, Home, PARENT, Parent, Place};
use crate::base::ondisk::on_disk;
use crate::base::topology::{FirstWrite, Translation, is_whole};
use crate::format::{Format, FormatKind, Inside, Reference, Sign};
use crate::mapping::geom::Extent;
use crate::mapping::tables::Tables;
use crate::probe::Probe;
use std::sync::Arc;
use zerocopy::little_endian::{U32, U64};

/// The class and format, for the registry.
pub struct Qed;

/// The kind that QEMU calls `qed`.
pub const KIND: FormatKind = FormatKind::new("qed", &Qed);

on_disk! {
    /// "Header" of the specification.
    struct Header of 64 bytes {
         0 => magic: [u8; 4],
         4 => cluster_size: U32,
         8 => table_size: U32,
        12 => header_size: U32,
        16 => features: U64,
        24 => compat_features: U64,
        32 => autoclear_features: U64,
        40 => l1_table_offset: U64,
        48 => image_size: U64,
        56 => backing_filename_offset: U32,
        60 => backing_filename_size: U32,
    }
}

/// Features: a backing file, a check that is due, a backing file that is raw whatever it holds.
const BACKING: u64 = 1;
const NEED_CHECK: u64 = 1 << 1;
const NO_PROBE: u64 = 1 << 2;

/// An entry of a cluster that is zero.
const ZERO: u64 = 1;

/// The header on a provider, with a cluster that QEMU would take.
fn found(probe: &Probe<'_>) -> Option<Header> {
    let header = probe.read(0).filter(|header: &Header| header.magic == *b"QED\0")?;
    let cluster = header.cluster_size.get();
    (cluster.is_power_of_two() && (4096..=64 << 20).contains(&cluster)).then_some(header)
}

/// The reason for which the places that a header leads to are not followed.
fn refusal(header: &Header, length: u64) -> Option<&'static str> {
    let (features, cluster) = (header.features.get(), u64::from(header.cluster_size.get()));
    let (table, l1) = (u64::from(header.table_size.get()), header.l1_table_offset.get());
    let entries = table.saturating_mul(cluster) / 8;
    let reach = entries.saturating_mul(entries).saturating_mul(cluster);
    let head = u64::from(header.header_size.get()).saturating_mul(cluster);
    let end = l1.saturating_add(table.saturating_mul(cluster));
    let reasons = [
        (features & !(BACKING | NEED_CHECK | NO_PROBE) != 0, "it uses features not known here"),
        (features & NEED_CHECK != 0, "it was not closed: qemu-img check -r all mends it"),
        (!table.is_power_of_two() || table > 16, "its tables are not of 1, 2, 4, 8 or 16 clusters"),
        (!is_whole(header.image_size.get(), 512), "its size is no whole number of sectors"),
        (header.image_size.get() > reach, "its tables are too small for its size"),
        (!is_whole(l1, cluster), "its L1 table is not on a cluster's boundary"),
        (l1 < head || head == 0, "its L1 table lies over its header"),
        (end > length, "its L1 table is past the end of the file"),
    ];
    reasons.into_iter().find_map(|(is_so, reason)| is_so.then_some(reason))
}

/// The backing file that a header names: by `NO_PROBE` a raw disk, whatever it holds.
fn backing(header: &Header, probe: &Probe<'_>) -> Option<Reference> {
    let features = Some(header.features.get()).filter(|features| features & BACKING != 0)?;
    let length = header.backing_filename_size.get().min(1023);
    let at = header.backing_filename_offset.get().into();
    let name = probe.bytes(at, usize::try_from(length).ok()?).unwrap_or_default();
    let name = String::from_utf8_lossy(&name).into_owned();
    let format = (features & NO_PROBE != 0).then(|| "raw".into());
    Some(Reference { role: "backing file", name, format, identity: None })
}

impl Format for Qed {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        let header = found(probe)?;
        let mut sign = Sign::new(KIND, 0);
        sign.inside = refusal(&header, probe.length()).map_or(Inside::Container, Inside::Unknown);
        sign.details.push(("virtual size", header.image_size.get().to_string()));
        sign.details.push(("cluster size", header.cluster_size.get().to_string()));
        sign.references.extend(backing(&header, probe));
        Some(sign)
    }
}

impl Container for Qed {
    const KIND: FormatKind = KIND;

    fn look(&self, probe: &Probe<'_>) -> Taste {
        let is_read = |header: &Header| refusal(header, probe.length()).is_none();
        let Some(header) = found(probe).filter(is_read) else { return Taste::No };
        let cluster = u64::from(header.cluster_size.get());
        let table = Clusters {
            cluster,
            entries: u64::from(header.table_size.get()) * cluster / 8,
            l1: header.l1_table_offset.get(),
        };
        let is_overlay = header.features.get() & BACKING != 0;
        let contents = Contents {
            table,
            length: header.image_size.get(),
            home: Home::File(probe.length()),
            parent: if is_overlay { Parent::Missing } else { Parent::None },
            sector: None,
            translation: Translation::by_format(cluster, 0).first_writing(|known| {
                let parent = is_overlay.then_some(PARENT);
                FirstWrite::filled(known, cluster, parent).entry("L2 entry", 8)
            }),
        };
        Taste::Geom(Arc::new(contents), Vec::new())
    }
}

/// The L1 table and the tables that it leads to.
#[derive(Clone)]
struct Clusters {
    cluster: u64,
    /// Entries of a table.
    entries: u64,
    l1: u64,
}

impl BlockTable for Clusters {
    fn block(&self) -> u64 {
        self.cluster
    }

    fn find(&self, nth: u64, length: u64, tables: &Tables<'_>) -> Result<Place, Extent> {
        let number = |table: u64, index: u64| {
            let at = index.checked_mul(8).and_then(|behind| table.checked_add(behind));
            let bytes = tables.bytes(FILE, at.ok_or(Extent::Fail { length })?, length)?;
            Ok(u64::from_le_bytes(bytes))
        };
        let table = number(self.l1, nth / self.entries)?;
        if table == 0 {
            return Ok(Place::Absent);
        }
        if !is_whole(table, self.cluster) {
            return Ok(Place::Broken);
        }
        Ok(match number(table, nth % self.entries)? {
            0 => Place::Absent,
            ZERO => Place::Zero,
            place if is_whole(place, self.cluster) => Place::At(place),
            _ => Place::Broken,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::container::tests::{opened, read, reason, survives};
    use crate::base::error::Errno;
    use crate::format::tests::disk;

    /// An image of four clusters of 4 KiB: the header, L1, L2, and data for the second cluster of
    /// the guest; the third is zero, the fourth absent, and the first at `first`.
    fn image(first: u64) -> Vec<u8> {
        let mut file = vec![0; 3 * 4096];
        let mut put = |at: usize, number: u64| {
            file[at..at + 8].copy_from_slice(&number.to_le_bytes());
        };
        put(0, 0x1000_0044_4551);
        put(8, 0x1_0000_0001);
        put(40, 4096);
        put(48, 16384);
        put(4096, 8192);
        put(8192, first);
        put(8200, 12288);
        put(8208, 1);
        file.extend([b'q'; 4096]);
        file
    }

    #[test]
    fn clusters_are_where_the_tables_have_them() {
        let file = image(0);
        let it = opened(disk(16384, &[(0, &file)]));
        let expected = [[0; 4096], [b'q'; 4096], [0; 4096], [0; 4096]].concat();
        assert!(read(&it, 0, 16384).unwrap() == expected);
        let mut overlay = file;
        overlay[16] = 1;
        let it = opened(disk(16384, &[(0, &overlay)]));
        assert_eq!(read(&it, 0, 512), Err(Errno::Io));
        assert!(read(&it, 8192, 4096).unwrap() == [0; 4096]);
        for broken in [512, 4097, 1 << 50] {
            let it = opened(disk(16384, &[(0, &image(broken))]));
            assert_eq!(read(&it, 0, 512), Err(Errno::Io), "{broken}");
        }
    }

    #[test]
    fn what_qemu_refuses_is_unknown() {
        for (at, number, part) in [
            (8, 3, "1, 2, 4"),
            (8, 32, "1, 2, 4"),
            (8, 0, "1, 2, 4"),
            (12, 2, "over its header"),
            (12, 0, "over its header"),
            (16, 8, "features"),
            (16, 2, "not closed"),
            (40, 4097, "boundary"),
            (40, 16384, "past the end"),
            (48, 511, "sectors"),
            (52, 1 << 20, "too small"),
        ] {
            let mut file = image(0);
            file[at..at + 4].copy_from_slice(&u32::to_le_bytes(number));
            let why = reason(disk(16384, &[(0, &file)]));
            assert!(why.is_some_and(|why| why.contains(part)), "{at} {number}: {why:?}");
        }
        for cluster in [0_u32, 2048, 4097, 128 << 20] {
            let mut file = image(0);
            file[4..8].copy_from_slice(&cluster.to_le_bytes());
            assert!(opened(disk(16384, &[(0, &file)])).1.is_none());
        }
    }

    #[test]
    fn nothing_panics() {
        survives(&image(12288), 0..64);
        survives(&image(12288), 4096..4104);
        survives(&image(12288), 8192..8224);
    }
}
