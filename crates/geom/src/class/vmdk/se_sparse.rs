//! seSparse: extents of snapshots on VMFS6, and of disks that give space back.
//!
//! # On disk
//! A little-endian header of 64-bit numbers, in sectors: a grain directory whose entries are
//! numbers of grain tables, and those of 64 sectors. An entry of a table has in its top four bits
//! whether the grain is there, and in the others its number, of which the low 12 bits stand above
//! the rest. A second, volatile header says if a log is to be replayed.
//!
//! # Limits
//! The format is not published: this is what QEMU knows of it, which reads version 2.1 alone and
//! grains of 4 KiB. An extent whose log is to be replayed is `unknown`.
//!
//! # Sources
//! QEMU `block/vmdk.c`, `VMDKSESparseConstHeader`, `vmdk_open_se_sparse`, `get_cluster_offset`.

use super::{Body, Image, SECTOR, Table, entry};
use crate::base::ondisk::on_disk;
use crate::class::container::{BlockTable, Parent, Place};
use crate::mapping::geom::Extent;
use crate::mapping::tables::Tables;
use crate::probe::Probe;
use zerocopy::little_endian::U64;

on_disk! {
    /// Header that never changes, `VMDKSESparseConstHeader`.
    struct Header of 208 bytes {
          0 => magic: U64,
          8 => version: U64,
         16 => capacity: U64,
         24 => grain_size: U64,
         32 => grain_table_size: U64,
         40 => flags: U64,
         48 => reserved: [U64; 4],
         80 => volatile_header_offset: U64,
         88 => volatile_header_size: U64,
         96 => journal_header_offset: U64,
        104 => journal_header_size: U64,
        112 => journal_offset: U64,
        120 => journal_size: U64,
        128 => grain_dir_offset: U64,
        136 => grain_dir_size: U64,
        144 => grain_tables_offset: U64,
        152 => grain_tables_size: U64,
        160 => free_bitmap_offset: U64,
        168 => free_bitmap_size: U64,
        176 => backmap_offset: U64,
        184 => backmap_size: U64,
        192 => grains_offset: U64,
        200 => grains_size: U64,
    }
}

on_disk! {
    /// Head of the `VMDKSESparseVolatileHeader`.
    struct Volatile of 32 bytes {
          0 => magic: U64,
          8 => free_gt_number: U64,
         16 => next_txn_seq_number: U64,
         24 => replay_journal: U64,
    }
}

const MAGIC: u64 = 0xcafe_babe;
const VOLATILE: u64 = 0xcafe_cafe;
const VERSION: u64 = 0x0002_0000_0001;
/// The only sizes that QEMU takes, in sectors: of a grain, and of a table.
const GRAIN: u64 = 8;
const TABLE: u64 = 64;
/// Entries of a table.
const PER_TABLE: u64 = TABLE * SECTOR / 8;
/// Upper half of an entry of the directory that has a table, and most tables that it can number.
const HAS_TABLE: u64 = 0x1000_0000;
const MOST_TABLES: u64 = 1 << 32;
/// Most sectors that any field may have.
const MOST_SECTORS: u64 = u64::MAX / SECTOR / 4;

/// The seSparse extent on a provider.
pub(super) fn image(probe: &Probe<'_>) -> Option<Image> {
    let header: Header = probe.read(0).filter(|h: &Header| h.magic.get() == MAGIC)?;
    // The magic alone is that of other formats too.
    if header.version.get() >> 32 != VERSION >> 32 {
        return None;
    }
    let volatile: Option<Volatile> = header
        .volatile_header_offset
        .get()
        .checked_mul(SECTOR)
        .and_then(|at| probe.read(at))
        .filter(|volatile: &Volatile| volatile.magic.get() == VOLATILE);
    let reason = refusal(&header, volatile.as_ref());
    let bytes = |sectors: U64| sectors.get().saturating_mul(SECTOR);
    let table = SeSparse {
        directory: bytes(header.grain_dir_offset),
        tables: bytes(header.grain_tables_offset),
        most_tables: header.grain_tables_size.get() / TABLE,
        grains: bytes(header.grains_offset),
    };
    let table = Table::SeSparse(table);
    let body = Body::Sparse { table, parent: Parent::Missing, is_transport: false };
    Some(Image {
        version: Some("2.1".into()),
        size: header.capacity.get().checked_mul(SECTOR),
        grain: header.grain_size.get().checked_mul(SECTOR),
        create_type: Some("seSparse".into()),
        body: reason.is_none().then_some(body),
        refused: reason,
        ..Image::default()
    })
}

/// The reason for which the places that a header leads to are not followed.
fn refusal(header: &Header, volatile: Option<&Volatile>) -> Option<&'static str> {
    let (capacity, entries) = (header.capacity.get(), header.grain_dir_size.get());
    let reach = entries.saturating_mul(SECTOR / 8).saturating_mul(PER_TABLE).saturating_mul(GRAIN);
    let places = [header.grain_dir_offset, header.grain_tables_offset, header.grains_offset];
    let reasons = [
        (header.version.get() != VERSION, "its version is not known here"),
        (header.grain_size.get() != GRAIN, "its grains are not of 4096 bytes"),
        (header.grain_table_size.get() != TABLE, "its tables are not of 32768 bytes"),
        (header.flags.get() != 0, "it uses features that are not known here"),
        (capacity > MOST_SECTORS, "its size is larger than a file can be"),
        (
            places.iter().any(|place| !(1..=MOST_SECTORS).contains(&place.get())),
            "its tables or grains have no place",
        ),
        (reach < capacity, "its directory is too small for its size"),
        (volatile.is_none(), "its volatile header is damaged"),
        (
            volatile.is_some_and(|volatile| volatile.replay_journal.get() != 0),
            "its log is to be replayed: start the machine, or clone it, first",
        ),
    ];
    reasons.into_iter().find_map(|(is_so, reason)| is_so.then_some(reason))
}

/// Grain directory and the places of tables and grains, in bytes.
#[derive(Clone)]
pub(super) struct SeSparse {
    directory: u64,
    tables: u64,
    most_tables: u64,
    grains: u64,
}

impl BlockTable for SeSparse {
    fn block(&self) -> u64 {
        GRAIN * SECTOR
    }

    fn find(&self, nth: u64, length: u64, tables: &Tables<'_>) -> Result<Place, Extent> {
        let number = u64::from_le_bytes(entry(self.directory, nth / PER_TABLE, length, tables)?);
        if number == 0 {
            return Ok(Place::Absent);
        }
        let table = number % MOST_TABLES;
        if number / MOST_TABLES != HAS_TABLE || table >= self.most_tables {
            return Ok(Place::Broken);
        }
        let Some(table) = (table * TABLE * SECTOR).checked_add(self.tables) else {
            return Ok(Place::Broken);
        };
        let found = u64::from_le_bytes(entry(table, nth % PER_TABLE, length, tables)?);
        Ok(match found >> 60 {
            0 if found == 0 => Place::Absent,
            // Unmapped by the guest, or zero.
            1 | 2 => Place::Zero,
            3 => {
                let grain = (found >> 48 & 0xfff) | (found & 0xffff_ffff_ffff) << 12;
                let behind = grain.checked_mul(GRAIN * SECTOR);
                let place = behind.and_then(|behind| behind.checked_add(self.grains));
                place.map_or(Place::Broken, Place::At)
            }
            _ => Place::Broken,
        })
    }
}
