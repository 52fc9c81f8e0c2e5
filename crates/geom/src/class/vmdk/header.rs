//! Headers of hosted and ESX sparse extents.

use super::descriptor::{self, Descriptor};
use super::grains::{Grains, Stored};
use super::{Body, Image, SECTOR, Table};
use crate::base::ondisk::on_disk;
use crate::class::container::Parent;
use crate::probe::Probe;
use zerocopy::little_endian::{U16, U32, U64};

on_disk! {
    /// Header of a hosted extent, `SparseExtentHeader`.
    #[derive(Clone)]
    struct Hosted of 79 bytes {
         0 => magic_number: [u8; 4],
         4 => version: U32,
         8 => flags: U32,
        12 => capacity: U64,
        20 => grain_size: U64,
        28 => descriptor_offset: U64,
        36 => descriptor_size: U64,
        44 => num_gtes_per_gt: U32,
        48 => rgd_offset: U64,
        56 => gd_offset: U64,
        64 => over_head: U64,
        72 => unclean_shutdown: u8,
        73 => line_ends: [u8; 4],
        77 => compress_algorithm: U16,
    }
}

on_disk! {
    /// Head of a snapshot's `COWDisk_Header`.
    struct Esx of 28 bytes {
         0 => magic_number: [u8; 4],
         4 => version: U32,
         8 => flags: U32,
        12 => num_sectors: U32,
        16 => grain_size: U32,
        20 => gd_offset: U32,
        24 => num_gd_entries: U32,
    }
}

on_disk! {
    /// Head of a marker: of a grain where `size` is not 0.
    struct Marker of 16 bytes {
         0 => val: U64,
         8 => size: U32,
        12 => kind: U32,
    }
}

/// Flags of a hosted extent: the line ends are there to be tested, a second directory is kept,
/// entries of 1 are zeros, markers stand before grains.
const TESTS_LINE_ENDS: u32 = 1;
const REDUNDANT: u32 = 1 << 1;
const ZEROED: u32 = 1 << 2;
const MARKERS: u32 = 1 << 17;
/// Bytes that a copy as text would change.
const LINE_ENDS: [u8; 4] = *b"\n \r\n";
/// `GD_AT_END`: the footer has the place of the directory.
const AT_END: u64 = u64::MAX;
/// Footer marker, header and end marker: the last bytes of a streamOptimized extent.
const FOOTER: u64 = 1536;
const FOOTER_MARKER: u32 = 3;
const END_MARKER: u32 = 0;
/// Limits of QEMU: entries of a table, sectors of a grain, entries of a directory.
const MOST_GTES: u32 = 512;
const MOST_GRAIN: u64 = 0x20_0000;
const MOST_TABLES: u64 = 32 << 20;
/// Most sectors of a disk.
const MOST_SECTORS: u64 = u64::MAX / SECTOR / 2;
/// Reason of an extent that is one of several.
const AN_EXTENT: &str = "it is one extent of a disk: name the descriptor, which is another file";
/// Entries of a grain table of ESX.
const ESX_GTES: u64 = 4096;

/// The hosted sparse extent on a provider.
pub(super) fn hosted(probe: &Probe<'_>) -> Option<Image> {
    let first: Hosted = probe.read(0).filter(|h: &Hosted| h.magic_number == *b"KDMV")?;
    let header = if first.gd_offset.get() == AT_END { footer(probe) } else { Some(first.clone()) };
    let inner =
        descriptor::inside(probe, first.descriptor_offset.get(), first.descriptor_size.get());
    let header_or = header.as_ref().unwrap_or(&first);
    let bytes = |sectors: u64| sectors.checked_mul(SECTOR).filter(|&bytes| bytes > 0);
    let reason = match &header {
        None => Some("its footer is missing: the end of the file is cut off"),
        Some(header) => refusal(header, inner.as_ref(), probe.length()),
    };
    Some(Image {
        version: Some(header_or.version.get().to_string()),
        size: bytes(header_or.capacity.get()),
        grain: bytes(header_or.grain_size.get()),
        extents: inner.as_ref().and_then(Descriptor::others),
        refused: reason,
        body: (reason.is_none() || reason == Some(AN_EXTENT))
            .then(|| body(header_or, inner.as_ref(), probe.length())),
        references: inner.as_ref().and_then(Descriptor::parent).into_iter().collect(),
        content: inner.as_ref().and_then(|inner| inner.content.clone()),
        create_type: inner.and_then(|inner| inner.create_type),
    })
}

/// The copy of the header that the footer has.
fn footer(probe: &Probe<'_>) -> Option<Hosted> {
    let at = probe.from_end(FOOTER)?;
    let is = |at: u64, kind: u32| {
        let marker: Option<Marker> = probe.read(at);
        marker.is_some_and(|marker| marker.size.get() == 0 && marker.kind.get() == kind)
    };
    let header = probe.read(at + SECTOR).filter(|h: &Hosted| h.magic_number == *b"KDMV");
    header.filter(|_| is(at, FOOTER_MARKER) && is(at + 2 * SECTOR, END_MARKER))
}

/// The reason for which the places that a header leads to are not followed.
fn refusal(header: &Hosted, inner: Option<&Descriptor>, length: u64) -> Option<&'static str> {
    let (flags, gtes) = (header.flags.get(), header.num_gtes_per_gt.get());
    let (capacity, grain) = (header.capacity.get(), header.grain_size.get());
    let reach = grain.saturating_mul(gtes.into()).max(1);
    let directory = header.gd_offset.get();
    let reasons = [
        (!(1..=3).contains(&header.version.get()), "its version is not known here"),
        (
            flags & TESTS_LINE_ENDS != 0 && header.line_ends != LINE_ENDS,
            "it was copied as text, which has changed its bytes",
        ),
        (capacity == 0, "its data are in other files: check those that its descriptor names"),
        (capacity > MOST_SECTORS, "its size is larger than a file can be"),
        (gtes == 0 || gtes > MOST_GTES, "its tables are not of 1 to 512 entries"),
        (grain == 0 || grain > MOST_GRAIN, "its grains are not of 1 to 2097152 sectors"),
        (capacity.div_ceil(reach) > MOST_TABLES, "its directory is larger than QEMU takes"),
        (header.compress_algorithm.get() > 1, "its compression is not known here"),
        (directory == 0 || directory > MOST_SECTORS, "its grain directory has no place"),
        (
            header.over_head.get().checked_mul(SECTOR).is_none_or(|end| end > length),
            "its end is cut off",
        ),
        (header.unclean_shutdown != 0, "it is in use, or was not closed"),
        // The last one: whatever else is wrong with an extent is wrong for a disk of several too.
        (inner.is_none(), AN_EXTENT),
    ];
    reasons.into_iter().find_map(|(is_so, reason)| is_so.then_some(reason))
}

fn body(header: &Hosted, inner: Option<&Descriptor>, file: u64) -> Body {
    let flags = header.flags.get();
    let second = header.rgd_offset.get().checked_mul(SECTOR).filter(|&second| second > 0);
    let stored = match (header.compress_algorithm.get(), flags & MARKERS != 0) {
        (0, _) => Stored::Plain,
        (_, true) => Stored::Marked,
        (_, false) => Stored::Packed,
    };
    let grains = Grains {
        grain: header.grain_size.get() * SECTOR,
        per_table: header.num_gtes_per_gt.get().into(),
        directory: header.gd_offset.get() * SECTOR,
        redundant: second.filter(|_| flags & REDUNDANT != 0),
        zeroes: flags & ZEROED != 0,
        stored,
        size: header.capacity.get() * SECTOR,
        file,
    };
    let has_parent = inner.is_some_and(Descriptor::has_parent);
    Body::Sparse {
        table: Table::Grains(grains),
        parent: if has_parent { Parent::Missing } else { Parent::None },
        is_transport: stored != Stored::Plain,
    }
}

/// The sparse extent of ESX on a provider.
pub(super) fn esx(probe: &Probe<'_>) -> Option<Image> {
    let header: Esx = probe.read(0).filter(|h: &Esx| h.magic_number == *b"COWD")?;
    let grain = u64::from(header.grain_size.get());
    let reach =
        grain.saturating_mul(ESX_GTES).saturating_mul(u64::from(header.num_gd_entries.get()));
    let reasons = [
        (header.version.get() != 1, "its version is not known here"),
        (grain == 0 || grain > MOST_GRAIN, "its grains are not of 1 to 2097152 sectors"),
        (header.gd_offset.get() == 0, "its grain directory has no place"),
        (reach < header.num_sectors.get().into(), "its directory is too small for its size"),
    ];
    let reason = reasons.into_iter().find_map(|(is_so, reason)| is_so.then_some(reason));
    let size = u64::from(header.num_sectors.get()) * SECTOR;
    let grains = Grains {
        grain: grain * SECTOR,
        per_table: ESX_GTES,
        directory: u64::from(header.gd_offset.get()) * SECTOR,
        redundant: None,
        zeroes: false,
        stored: Stored::Plain,
        size,
        file: probe.length(),
    };
    let table = Table::Grains(grains);
    let body = Body::Sparse { table, parent: Parent::Missing, is_transport: false };
    Some(Image {
        version: Some(header.version.get().to_string()),
        size: Some(size),
        grain: Some(grain * SECTOR),
        body: reason.is_none().then_some(body),
        refused: reason,
        ..Image::default()
    })
}
