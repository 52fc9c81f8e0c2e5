//! Grain directory and grain tables of hosted and ESX sparse extents.

use super::{SECTOR, entry};
use crate::class::container::{BlockTable, FILE, Place};
use crate::mapping::geom::{Extent, Packed, Packing};
use crate::mapping::tables::Tables;

/// Storage of a grain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    /// Bytes as they are.
    Plain,
    /// A zlib stream of its own.
    Packed,
    /// A zlib stream behind its marker.
    Marked,
}

/// Grain directory, and what its tables mean.
#[derive(Clone)]
pub(super) struct Grains {
    /// Size of a grain in bytes.
    pub(super) grain: u64,
    /// Entries of a grain table.
    pub(super) per_table: u64,
    /// First byte of the directory.
    pub(super) directory: u64,
    /// First byte of the second directory, if it has one.
    pub(super) redundant: Option<u64>,
    /// True if an entry of 1 is a grain of zeros.
    pub(super) zeroes: bool,
    pub(super) stored: Stored,
    /// Size of the guest's disk in bytes.
    pub(super) size: u64,
    /// Length of the file in bytes.
    pub(super) file: u64,
}

impl Grains {
    /// First byte of the table of grain `nth`; 0 for none. Where that of the first directory is
    /// past the end of the file, the second has it.
    fn table(&self, nth: u64, length: u64, tables: &Tables<'_>) -> Result<u64, Extent> {
        let index = nth / self.per_table;
        let sector = |directory| {
            let bytes = entry(directory, index, length, tables)?;
            Ok(u64::from(u32::from_le_bytes(bytes)) * SECTOR)
        };
        let is_there = |at: u64| at.saturating_add(nth % self.per_table * 4) < self.file;
        match (sector(self.directory), self.redundant) {
            (Ok(at), _) if is_there(at) => Ok(at),
            (Ok(_) | Err(Extent::Fail { .. }), Some(second)) => sector(second),
            (answer, _) => answer,
        }
    }

    /// Place of the compressed grain `nth`, whose sector begins at byte `at`.
    fn packed(&self, nth: u64, at: u64, length: u64, tables: &Tables<'_>) -> Result<Place, Extent> {
        // QEMU's bound on a stream, with or without a marker: two grains.
        let most = self.grain.saturating_mul(2);
        let guest = nth.saturating_mul(self.grain);
        // The last grain of a disk may be shorter.
        let size = self.grain.min(self.size.saturating_sub(guest));
        let (mut offset, mut stored) = (at, most);
        if self.stored == Stored::Marked {
            let lba = u64::from_le_bytes(tables.bytes(FILE, at, length)?);
            let bytes = tables.bytes(FILE, at.saturating_add(8), length)?;
            (offset, stored) = (at.saturating_add(12), u32::from_le_bytes(bytes).into());
            if lba != guest / SECTOR || !(1..=most).contains(&stored) {
                return Ok(Place::Broken);
            }
        }
        Ok(Place::Packed(Packed { offset, stored, size, packing: Packing::Zlib }, 0))
    }
}

impl BlockTable for Grains {
    fn block(&self) -> u64 {
        self.grain
    }

    fn find(&self, nth: u64, length: u64, tables: &Tables<'_>) -> Result<Place, Extent> {
        let table = self.table(nth, length, tables)?;
        if table == 0 {
            return Ok(Place::Absent);
        }
        let sector = u32::from_le_bytes(entry(table, nth % self.per_table, length, tables)?);
        match (sector, self.stored) {
            (0, _) => Ok(Place::Absent),
            (1, _) if self.zeroes => Ok(Place::Zero),
            (sector, Stored::Plain) => Ok(Place::At(u64::from(sector) * SECTOR)),
            (sector, _) => self.packed(nth, u64::from(sector) * SECTOR, length, tables),
        }
    }
}
