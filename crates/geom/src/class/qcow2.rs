//! qcow2: a disk image of QEMU.
//!
//! # On disk
//! Big-endian header at byte 0: `QFI\xfb` and version 2 or 3. The virtual disk is cut into
//! clusters. An L1 table has the places of L2 tables, each a cluster, and those the places of
//! clusters: plain, compressed, zero, or absent, which a backing file has instead. Extended L2
//! entries tell of 32 parts of each cluster. Clusters may lie in an external data file, each where
//! the guest has it.
//!
//! # Topology
//! Plain clusters lie at multiples of their own size, so every unit that divides it is kept.
//!
//! # Limits
//! Internal snapshots are passed over: the active table counts. Encrypted images and those marked
//! corrupt are `unknown`. A data file is looked for beside the image, where QEMU takes its own
//! working directory. Limits are QEMU's: clusters of 512 bytes to 2 MiB, an L1 table of 32 MiB.
//! An image is written where nothing of it is shared, compressed clusters aside: `writing.rs` says
//! which are.
//!
//! # Sources
//! QEMU `docs/interop/qcow2.rst`; `block/qcow2.c`, `qcow2_do_open`, for what is refused;
//! `block/qcow2-cluster.c`, `handle_alloc`, `perform_cow`, for a first write.

use super::Taste;
use super::container::{BlockTable, Container, Contents, FILE, Home, PARENT, Parent, Place};
use crate::base::ondisk::on_disk;
use crate::base::topology::{FirstWrite, Translation, is_whole, round_up};
use crate::format::{Format, FormatKind, Inside, Reference, Sign};
use crate::mapping::geom::{Extent, Packed, Packing};
use crate::mapping::tables::Tables;
use crate::probe::Probe;
use std::sync::Arc;
use zerocopy::big_endian::{U32, U64};

pub(crate) mod check;
pub(crate) mod image;
pub(crate) mod pages;
mod refcounts;
pub mod writing;

/// The class and format, for the registry.
pub struct Qcow2;

/// The kind that blkid and QEMU call `qcow2`.
pub const KIND: FormatKind = FormatKind::new("qcow2", &Qcow2);

on_disk! {
    /// "Header" of versions 2 and 3; version 2 ends before `incompatible_features`.
    #[derive(Clone)]
    struct Header of 105 bytes {
         0 => magic: [u8; 4],
         4 => version: U32,
         8 => backing_file_offset: U64,
        16 => backing_file_size: U32,
        20 => cluster_bits: U32,
        24 => size: U64,
        32 => crypt_method: U32,
        36 => l1_size: U32,
        40 => l1_table_offset: U64,
        48 => refcount_table_offset: U64,
        56 => refcount_table_clusters: U32,
        60 => nb_snapshots: U32,
        64 => snapshots_offset: U64,
        72 => incompatible_features: U64,
        80 => compatible_features: U64,
        88 => autoclear_features: U64,
        96 => refcount_order: U32,
        100 => header_length: U32,
        104 => compression_type: u8,
    }
}

/// Incompatible features of version 3.
const DIRTY: u64 = 1;
const CORRUPT: u64 = 1 << 1;
const DATA_FILE: u64 = 1 << 2;
const COMPRESSION: u64 = 1 << 3;
const EXTENDED_L2: u64 = 1 << 4;
const KNOWN: u64 = DIRTY | CORRUPT | DATA_FILE | COMPRESSION | EXTENDED_L2;

/// Extensions of the header whose data are text.
const BACKING_FORMAT: u32 = 0xe279_2aca;
const DATA_FILE_NAME: u32 = 0x4441_5441;

/// Offset in an entry of L1 or L2.
const OFFSET: u64 = 0x00ff_ffff_ffff_fe00;
const COMPRESSED: u64 = 1 << 62;
/// `QCOW_OFLAG_COPIED`: in a data file, the cluster at byte 0 is known by it.
const COPIED: u64 = 1 << 63;
/// Reads as zeros, of an entry that is not extended.
const ZERO: u64 = 1;
/// Largest L1 table in bytes, `QCOW_MAX_L1_SIZE`.
const MOST_L1: u64 = 32 << 20;
/// `refcount_order` of version 2: 16 bits.
const OLD_ORDER: u32 = 4;
/// Parts of a cluster that an extended entry tells of.
const PARTS: u64 = 32;

/// A header that was found, and the reason for which its contents are not looked into, if so.
struct Found {
    header: Header,
    reason: Option<&'static str>,
}

/// The header on a provider; `None` where there is none that QEMU would open.
fn found(probe: &Probe<'_>) -> Option<Found> {
    if !probe.has(0, b"QFI\xfb\0\0\0") {
        return None;
    }
    let mut bytes = [0; 105];
    let there = usize::try_from(probe.length().min(105)).ok()?;
    bytes[..there].copy_from_slice(&probe.bytes(0, there)?);
    let mut header: Header = zerocopy::FromBytes::read_from_bytes(&bytes).ok()?;
    match header.version.get() {
        2 => {
            (header.incompatible_features, header.compression_type) = (U64::new(0), 0);
        }
        3 if header.header_length.get() <= 104 => header.compression_type = 0,
        3 => {}
        _ => return None,
    }
    // 2 MiB is the largest cluster.
    (9..=21).contains(&header.cluster_bits.get()).then(|| {
        let reason = refusal(&header);
        Found { header, reason }
    })
}

/// The reason for which the places that a header leads to are not followed.
fn refusal(header: &Header) -> Option<&'static str> {
    let features = header.incompatible_features.get();
    let extended = features & EXTENDED_L2 != 0;
    let bits = header.cluster_bits.get();
    let (l1, cluster) = (u64::from(header.l1_size.get()), 1_u64 << bits);
    let entries = cluster / if extended { 16 } else { 8 };
    let reaches = entries.saturating_mul(cluster).saturating_mul(l1);
    let reasons = [
        (features & !KNOWN != 0, "it uses features that are not known here"),
        (features & CORRUPT != 0, "it is marked as corrupt: qemu-img check -r all mends it"),
        (header.crypt_method.get() != 0, "it is encrypted"),
        (header.compression_type > 1, "its compression is not known here"),
        (extended && bits < 14, "its clusters are too small for extended entries"),
        (l1.saturating_mul(8) > MOST_L1, "its L1 table is larger than QEMU takes"),
        (reaches < header.size.get(), "its L1 table is too small for its size"),
        (
            !is_whole(header.l1_table_offset.get(), cluster),
            "its L1 table is not on a cluster's boundary",
        ),
    ];
    reasons.into_iter().find_map(|(is_so, reason)| is_so.then_some(reason))
}

/// The backing file that a header names, and its format, if an extension of the header has that.
fn backing(header: &Header, probe: &Probe<'_>) -> Option<Reference> {
    let at = Some(header.backing_file_offset.get()).filter(|&at| at > 0)?;
    // QEMU takes no longer name.
    let length = header.backing_file_size.get().min(1023);
    let name = probe.bytes(at, usize::try_from(length).ok()?).unwrap_or_default();
    let name = String::from_utf8_lossy(&name).into_owned();
    let format = extension(BACKING_FORMAT, header, probe);
    Some(Reference { role: "backing file", name, format, identity: None })
}

/// The external data file, which an extension of the header names.
fn data_file(header: &Header, probe: &Probe<'_>) -> Option<Reference> {
    let name = has_data_file(header).then(|| extension(DATA_FILE_NAME, header, probe))?;
    let name = name.unwrap_or_default();
    Some(Reference { role: "data file", name, format: Some("raw".into()), identity: None })
}

fn has_data_file(header: &Header) -> bool {
    header.incompatible_features.get() & DATA_FILE != 0
}

/// The text of an extension behind the header: type, length, and that many bytes padded to 8.
fn extension(wanted: u32, header: &Header, probe: &Probe<'_>) -> Option<String> {
    const MOST: usize = 16;
    let is_old = header.version.get() == 2;
    let mut at = if is_old { 72 } else { u64::from(header.header_length.get()) };
    for _ in 0..MOST {
        let [kind, length]: [U32; 2] = probe.read(at)?;
        let data = at.checked_add(8)?;
        if kind.get() == 0 || data > 1 << header.cluster_bits.get() {
            return None;
        }
        if kind.get() == wanted {
            let name = probe.bytes(data, usize::try_from(length.get().min(1023)).ok()?)?;
            return Some(String::from_utf8_lossy(&name).into_owned());
        }
        at = data.checked_add(round_up(length.get().into(), 8)?)?;
    }
    None
}

impl Format for Qcow2 {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        let Found { header, reason } = found(probe)?;
        let mut sign = Sign::new(KIND, 0);
        sign.version = Some(header.version.get().to_string());
        sign.inside = reason.map_or(Inside::Container, Inside::Unknown);
        sign.details.push(("virtual size", header.size.get().to_string()));
        sign.details.push(("cluster size", (1u64 << header.cluster_bits.get()).to_string()));
        sign.references.extend(backing(&header, probe));
        sign.references.extend(data_file(&header, probe));
        Some(sign)
    }
}

impl Container for Qcow2 {
    const KIND: FormatKind = KIND;

    fn look(&self, probe: &Probe<'_>) -> Taste {
        let Some(Found { header, reason: None }) = found(probe) else { return Taste::No };
        let bits = header.cluster_bits.get();
        let table = Clusters::of(&header);
        let is_overlay = header.backing_file_offset.get() != 0;
        let contents = Contents {
            table,
            length: header.size.get(),
            home: if has_data_file(&header) { Home::Missing } else { Home::File(probe.length()) },
            parent: if is_overlay { Parent::Missing } else { Parent::None },
            sector: None,
            translation: if has_data_file(&header) {
                Translation::identical(1 << bits)
            } else {
                Translation::by_format(1 << bits, 0)
            }
            .first_writing(|known| first_write(known, &header)),
        };
        Taste::Geom(Arc::new(contents), Vec::new())
    }
}

/// The ranges that QEMU's first write to a cluster touches: it fills the cluster, or the parts of
/// it that an extended entry tells of, from a backing file alone. It counts no references to
/// clusters of a data file.
fn first_write(known: &Translation, header: &Header) -> FirstWrite {
    let is_overlay = header.backing_file_offset.get() != 0;
    let is_extended = header.incompatible_features.get() & EXTENDED_L2 != 0;
    let (parts, entry) = if is_extended { (PARTS, 16) } else { (1, 8) };
    let first = if is_overlay {
        FirstWrite::filled(known, known.allocation / parts, Some(PARENT))
    } else {
        FirstWrite::plain(known)
    };
    if has_data_file(header) {
        let data = if is_overlay { PARENT + 1 } else { PARENT };
        return first.in_file(data).entry("L2 entry", entry);
    }
    let order = if header.version.get() == 2 { OLD_ORDER } else { header.refcount_order.get() };
    let bits = 1_u64.checked_shl(order).unwrap_or_default();
    first.entry("L2 entry", entry).entry("refcount", bits.div_ceil(8))
}

/// The L1 table and the tables that it leads to.
#[derive(Clone)]
struct Clusters {
    bits: u32,
    l1: u64,
    extended: bool,
    /// True for version 3, in which an entry may say that a cluster is zero.
    zeroes: bool,
    packing: Packing,
    /// True for clusters in an external data file.
    elsewhere: bool,
}

impl Clusters {
    /// The tables that a header leads to.
    fn of(header: &Header) -> Clusters {
        let packing = if header.compression_type == 1 { Packing::Zstd } else { Packing::Deflate };
        Clusters {
            bits: header.cluster_bits.get(),
            l1: header.l1_table_offset.get(),
            extended: header.incompatible_features.get() & EXTENDED_L2 != 0,
            zeroes: header.version.get() >= 3,
            packing,
            elsewhere: has_data_file(header),
        }
    }

    /// Place of a compressed cluster: its first byte, and the sectors that it reaches into.
    fn packed(&self, entry: u64) -> Packed {
        let split = 62 - (self.bits - 8);
        let offset = entry & ((1 << split) - 1);
        let further = (entry & (COMPRESSED - 1)) >> split;
        let stored = (further + 1) * 512 - offset % 512;
        Packed { offset, stored, size: 1 << self.bits, packing: self.packing }
    }
}

impl BlockTable for Clusters {
    fn block(&self) -> u64 {
        let cluster = 1 << self.bits;
        if self.extended { cluster / PARTS } else { cluster }
    }

    fn find(&self, nth: u64, length: u64, tables: &Tables<'_>) -> Result<Place, Extent> {
        let (width, parts) = if self.extended { (16, PARTS) } else { (8, 1) };
        let (cluster, part) = (nth / parts, nth % parts);
        let entries = (1_u64 << self.bits) / width;
        let number = |at: Option<u64>| {
            let at = at.ok_or(Extent::Fail { length })?;
            Ok(u64::from_be_bytes(tables.bytes(FILE, at, length)?))
        };
        let table = number(self.l1.checked_add(cluster / entries * 8))? & OFFSET;
        if table == 0 {
            return Ok(Place::Absent);
        }
        if !is_whole(table, 1 << self.bits) {
            return Ok(Place::Broken);
        }
        let at = table.checked_add(cluster % entries * width);
        let entry = number(at)?;
        if entry & COMPRESSED != 0 {
            if self.elsewhere {
                return Ok(Place::Broken);
            }
            return Ok(Place::Packed(self.packed(entry), part * self.block()));
        }
        let (offset, mut is_zero) = (entry & OFFSET, false);
        let is_placed = offset != 0 || self.elsewhere && entry & COPIED != 0;
        let mut is_there = is_placed;
        if self.extended {
            let states = number(at.and_then(|at| at.checked_add(8)))?;
            is_zero = states >> (PARTS + part) & 1 != 0;
            is_there = states >> part & 1 != 0;
            if is_there && (is_zero || !is_placed) {
                return Ok(Place::Broken);
            }
        } else if self.zeroes {
            is_zero = entry & ZERO != 0;
        }
        if is_zero {
            return Ok(Place::Zero);
        }
        if !is_there {
            return Ok(Place::Absent);
        }
        let is_elsewhere = self.elsewhere && Some(offset) != cluster.checked_mul(1 << self.bits);
        if !is_whole(offset, 1 << self.bits) || is_elsewhere {
            return Ok(Place::Broken);
        }
        Ok(Place::At(offset + part * self.block()))
    }
}
