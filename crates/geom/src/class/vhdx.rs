//! VHDX: a disk image of Hyper-V.
//!
//! # On disk
//! `vhdxfile` at byte 0 and two headers, of which the whole one with the higher sequence number
//! counts; it names the log. A region table, with a copy, has the places of the metadata and of the
//! block allocation table. Metadata are items by GUID. The table has a state and a place, in MiB,
//! for each block; behind the entries of each chunk stands one for a bitmap, which says of a
//! differencing disk which sectors are here and which are in the parent.
//!
//! # Topology
//! Every block begins on a MiB of the file. The guest is told of a physical sector besides, of 512
//! or 4096 bytes.
//!
//! # Limits
//! A log is read as if it were replayed, up to 8 MiB of it, and nothing is written. Metadata items
//! and regions that are required and not known here make a disk `unknown`.
//!
//! # Sources
//! [MS-VHDX] 2.2 Header Section, 2.3 Log, 2.4 Blocks, 2.5 BAT, 2.6 Metadata Region; QEMU
//! `block/vhdx.c`, for states without a parent, `vhdx_co_writev` and `vhdx_log_write_and_flush` for
//! a first write. QEMU writes both headers twice besides, since it closes the log each time.

use super::Taste;
use super::container::{BlockTable, Container, Contents, FILE, Home, NotFollowed, Parent, Place};
use crate::base::finding::{self, Finding, Severity};
use crate::base::ondisk;
use crate::base::topology::{FirstWrite, GUEST_WRITE, Grain, Translation};
use crate::format::{Format, FormatKind, Inside, Sign};
use crate::mapping::geom::Extent;
use crate::mapping::tables::Tables;
use crate::probe::Probe;
use layout::Layout;
use log::Overlay;
use std::sync::Arc;

mod layout;
mod log;
mod metadata;
#[cfg(test)]
mod tests;

/// The class and format, for the registry.
pub struct Vhdx;

/// The kind that blkid calls `vhdx`.
pub const KIND: FormatKind = FormatKind::new("vhdx", &Vhdx);

const MIB: u64 = 1 << 20;
/// Bytes of a sector of the log, in which every table changes.
const LOG_SECTOR: u64 = 4096;

/// CRC-32C, of every structure with a checksum.
const CRC32C: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);

impl Format for Vhdx {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        if !probe.has(0, b"vhdxfile") {
            return None;
        }
        let mut sign = Sign::new(KIND, 0);
        let creator = probe.bytes(8, 512).and_then(|bytes| ondisk::text_utf16(&bytes));
        sign.details.extend(creator.map(|creator| ("creator", creator)));
        match Layout::read(probe) {
            Err(NotFollowed(reason)) => sign.inside = Inside::Unknown(reason),
            Ok(layout) => {
                sign.inside = Inside::Container;
                sign.uuid = layout.disk.page83.and_then(|id| ondisk::uuid(&id.0));
                let mut add = |name, value: u64| sign.details.push((name, value.to_string()));
                add("virtual size", layout.disk.size);
                add("cluster size", layout.disk.block);
                add("logical sector size", layout.disk.logical);
                add("physical sector size", layout.disk.physical);
                if layout.overlay.entries() > 0 {
                    add("log entries to be replayed", layout.overlay.entries());
                }
                let kind = match (&layout.disk.parent, layout.disk.is_fixed) {
                    (Some(_), _) => "differencing",
                    (None, true) => "fixed",
                    (None, false) => "dynamic",
                };
                sign.details.push(("type", kind.to_string()));
                sign.identity = Some(layout.identity.to_string().to_ascii_lowercase());
                if let Some(parent) = layout.disk.parent {
                    sign.details.push(("parent", parent.name.clone()));
                    sign.references.push(parent);
                }
            }
        }
        Some(sign)
    }
}

impl Container for Vhdx {
    const KIND: FormatKind = KIND;

    fn look(&self, probe: &Probe<'_>) -> Taste {
        if !probe.has(0, b"vhdxfile") {
            return Taste::No;
        }
        let Ok(layout) = Layout::read(probe) else { return Taste::No };
        let findings: Vec<Finding> = layout.damage.map(damaged).into_iter().collect();
        let disk = layout.disk;
        let has_parent = disk.parent.is_some();
        let mut translation = Translation::by_format(MIB, 0).claiming(disk.physical);
        translation.allocation = disk.block;
        if !disk.is_fixed {
            let sector = has_parent.then_some(disk.logical);
            translation = translation.first_writing(|known| first_write(known, sector));
        }
        let contents = Contents {
            length: disk.size,
            home: Home::File(probe.length()),
            parent: if has_parent { Parent::Missing } else { Parent::None },
            sector: Some(disk.logical),
            translation,
            table: Blocks {
                table: layout.table,
                block: disk.block,
                chunk: disk.chunk(),
                sector: has_parent.then_some(disk.logical),
                overlay: layout.overlay,
            },
        };
        Taste::Geom(Arc::new(contents), findings)
    }
}

/// The ranges that a first write to a block touches. The table changes by its log alone: an entry
/// of a descriptor and the sector as it will be, then that sector in its place. Of a differencing
/// disk a bitmap has a bit for each sector of `sector` bytes.
fn first_write(known: &Translation, sector: Option<u64>) -> FirstWrite {
    let page = Grain::multiples(LOG_SECTOR);
    let first = FirstWrite::plain(known).range("log", page, 2 * LOG_SECTOR).range(
        "BAT sector",
        page,
        LOG_SECTOR,
    );
    match sector.and_then(|sector| GUEST_WRITE.checked_div(sector)) {
        Some(bits) => first.range("sector bitmap", Grain::multiples(1), bits.div_ceil(8)),
        None => first,
    }
}

/// The finding about one of two copies.
fn damaged(what: &str) -> Finding {
    Finding::new(&finding::LABEL, Severity::Warning, 0, format!("{KIND}: {what}"))
        .fix("copy the disk while it can be read: qemu-img convert -O vhdx")
}

/// States of a block (2.5.1.1).
mod state {
    pub(super) const NOT_PRESENT: u64 = 0;
    pub(super) const UNDEFINED: u64 = 1;
    pub(super) const ZERO: u64 = 2;
    pub(super) const UNMAPPED: u64 = 3;
    /// Unmapped in drafts of the specification, which QEMU reads too.
    pub(super) const UNMAPPED_OF_OLD: u64 = 5;
    /// Of a bitmap block too: present.
    pub(super) const FULLY_PRESENT: u64 = 6;
    pub(super) const PARTIALLY_PRESENT: u64 = 7;
}

/// The block allocation table.
#[derive(Clone)]
struct Blocks {
    /// First byte of the table in the file.
    table: u64,
    /// Bytes of a block.
    block: u64,
    /// Blocks of a chunk, which share one bitmap.
    chunk: u64,
    /// Bytes of a sector, of a differencing disk: a bitmap decides for each.
    sector: Option<u64>,
    /// Pages that the log has and the file has not yet.
    overlay: Overlay,
}

impl Blocks {
    /// Entry `nth` of the table.
    fn entry(&self, nth: u64, length: u64, tables: &Tables<'_>) -> Result<u64, Extent> {
        let at = nth.checked_mul(8).and_then(|bytes| self.table.checked_add(bytes));
        Ok(u64::from_le_bytes(self.bytes(at, length, tables)?))
    }

    /// The bytes at a place of the file, as the log has them.
    fn bytes<const N: usize>(
        &self,
        at: Option<u64>,
        length: u64,
        tables: &Tables<'_>,
    ) -> Result<[u8; N], Extent> {
        let at = at.ok_or(Extent::Fail { length })?;
        match self.overlay.bytes(at) {
            Some(bytes) => Ok(bytes),
            None => tables.bytes(FILE, at, length),
        }
    }

    /// Place of a block in the file, by its entry. The log may hold bytes of metadata alone.
    fn place(&self, entry: u64, within: u64) -> Place {
        let at = entry & !(MIB - 1);
        if at == 0 || self.overlay.touches(at, self.block) {
            return Place::Broken;
        }
        at.checked_add(within).map_or(Place::Broken, Place::At)
    }

    /// Place of a sector of block `nth`, by the bitmap of its chunk.
    fn partial(
        &self,
        entry: u64,
        (nth, sector, size): (u64, u64, u64),
        length: u64,
        tables: &Tables<'_>,
    ) -> Result<Place, Extent> {
        let of_chunk = (nth / self.chunk).saturating_mul(self.chunk + 1) + self.chunk;
        let bitmap = self.entry(of_chunk, length, tables)?;
        let start = bitmap & !(MIB - 1);
        if bitmap & 7 != state::FULLY_PRESENT || start == 0 {
            return Ok(Place::Broken);
        }
        let bit = nth % self.chunk * (self.block / size) + sector;
        let [bits] = self.bytes(start.checked_add(bit / 8), length, tables)?;
        let is_here = bits >> (bit % 8) & 1 != 0;
        Ok(if is_here { self.place(entry, sector * size) } else { Place::Absent })
    }
}

impl BlockTable for Blocks {
    fn block(&self) -> u64 {
        self.sector.unwrap_or(self.block)
    }

    fn find(&self, nth: u64, length: u64, tables: &Tables<'_>) -> Result<Place, Extent> {
        let size = self.block();
        let parts = self.block / size;
        let (nth, part) = (nth / parts, nth % parts);
        let entry = self.entry(nth.saturating_add(nth / self.chunk), length, tables)?;
        match entry & 7 {
            state::NOT_PRESENT => Ok(Place::Absent),
            state::UNDEFINED | state::ZERO | state::UNMAPPED | state::UNMAPPED_OF_OLD => {
                Ok(Place::Zero)
            }
            state::FULLY_PRESENT => Ok(self.place(entry, part * size)),
            state::PARTIALLY_PRESENT if self.sector.is_some() => {
                self.partial(entry, (nth, part, size), length, tables)
            }
            _ => Ok(Place::Broken),
        }
    }
}
