//! VHD (QEMU's `vpc`): a disk image of Microsoft Virtual PC.
//!
//! # On disk
//! Big-endian footer in the last 512 bytes: `conectix`, with a checksum. A fixed disk is the raw
//! content before it. A dynamic or differencing disk has a copy of the footer at byte 0, and a
//! header, `cxsparse`, with the size of a block and the place of a table: the sector of each block.
//! A bitmap of whole sectors stands before the data of a block. Its bits say which sectors are in
//! the file; of the others, a dynamic disk has zeros, and a differencing disk has those of its
//! parent.
//!
//! # Topology
//! A fixed disk is a slice of its file. Of the others nothing promises where a block is: the table
//! is looked at. A bitmap of 512 bytes before each block of 2 MiB puts 7 of 8 blocks off a
//! 4096-byte boundary, unless the program that made the file leaves room before each bitmap.
//!
//! # Limits
//! 262144 entries of the table are looked at: 512 GiB of the usual blocks. QEMU opens a
//! differencing disk as if it were dynamic, and takes no notice of the bitmaps. Limit of the
//! specification: 2040 GiB.
//!
//! # Sources
//! Microsoft "Virtual Hard Disk Image Format Specification" 1.0; QEMU `block/vpc.c`, for the size
//! by the creator, `alloc_block` for a first write; VirtualBox `VHD.cpp`, for bitmaps of dynamic
//! disks. Microsoft "Performance Tuning Guidelines", Hyper-V storage I/O; documentation of
//! `Get-VHD`, for its `Alignment`.

use super::Taste;
use super::container::{
    BlockTable, Container, Contents, FILE, Home, NotFollowed, Parent, Place, from_somewhere,
};
use crate::base::finding::{self, Finding, Severity};
use crate::base::ondisk::{self, on_disk};
use crate::base::topology::{FirstWrite, Grain, Translation, is_whole, round_up};
use crate::format::{Format, FormatKind, Inside, Reference, Sign};
use crate::mapping::geom::Extent;
use crate::mapping::slices::Slices;
use crate::mapping::tables::Tables;
use crate::probe::Probe;
use scan::Scan;
use std::sync::Arc;
use zerocopy::big_endian::{U32, U64};

mod scan;
#[cfg(test)]
mod tests;

/// The class and format, for the registry.
pub struct Vhd;

/// The kind that blkid calls `vhd`.
pub const KIND: FormatKind = FormatKind::new("vhd", &Vhd);

/// Bytes of a sector, the unit of the table and of bitmaps.
const SECTOR: u64 = 512;
/// Bytes of the footer.
const FOOTER: u64 = 512;
/// Types of disks in `disk_type`.
const FIXED: u32 = 2;
const DYNAMIC: u32 = 3;
const DIFFERENCING: u32 = 4;
/// Entry of a block without a place.
const NONE: u32 = u32::MAX;
/// Code of a locator with a path from the file's own directory, in UTF-16LE.
const RELATIVE: [u8; 4] = *b"W2ru";
/// Bytes of a path that are read.
const MOST_PATH: u32 = 4096;
/// Largest disk of the specification, in bytes: 2040 GiB.
const MOST: u64 = 2040 << 30;
/// Geometry from which on it no longer says the size.
const LARGEST_GEOMETRY: [u8; 4] = [0xff, 0xff, 16, 255];

on_disk! {
    /// "Hard Disk Footer Format".
    #[derive(Clone)]
    struct Footer of 512 bytes {
         0 => cookie: [u8; 8],
         8 => features: U32,
        12 => file_format_version: U32,
        16 => data_offset: U64,
        24 => time_stamp: U32,
        28 => creator_application: [u8; 4],
        32 => creator_version: U32,
        36 => creator_host_os: U32,
        40 => original_size: U64,
        48 => current_size: U64,
        56 => disk_geometry: [u8; 4],
        60 => disk_type: U32,
        64 => checksum: U32,
        68 => unique_id: [u8; 16],
        84 => saved_state: u8,
        85 => reserved: [u8; 427],
    }
}

on_disk! {
    /// "Parent Locator Entry", of the header of a differencing disk.
    #[derive(Clone)]
    struct Locator of 24 bytes {
         0 => code: [u8; 4],
         4 => space: U32,
         8 => length: U32,
        12 => reserved: U32,
        16 => offset: U64,
    }
}

on_disk! {
    /// "Dynamic Disk Header Format".
    #[derive(Clone)]
    struct Dynamic of 1024 bytes {
          0 => cookie: [u8; 8],
          8 => data_offset: U64,
         16 => table_offset: U64,
         24 => header_version: U32,
         28 => max_table_entries: U32,
         32 => block_size: U32,
         36 => checksum: U32,
         40 => parent_unique_id: [u8; 16],
         56 => parent_time_stamp: U32,
         60 => reserved: U32,
         64 => parent_unicode_name: [u8; 512],
        576 => locators: [Locator; 8],
        768 => reserved2: [u8; 256],
    }
}

impl Footer {
    /// Program that made the disk, by its name.
    fn creator(&self) -> Option<String> {
        let name = match &self.creator_application {
            b"qemu" | b"qem2" => "QEMU",
            b"vpc " => "Virtual PC",
            b"vs  " => "Virtual Server",
            b"win " => "Windows",
            b"vbox" => "VirtualBox",
            b"d2v " | b"d2v\0" => "Disk2vhd",
            b"tap\0" => "XenServer",
            b"CTXS" => "XenConvert",
            b"wa\0\0" => "Azure",
            other => return ondisk::text(other),
        };
        Some(name.to_string())
    }

    /// Size of the guest's disk in bytes. Virtual PC and QEMU take it from the geometry; so does
    /// QEMU for every program that it does not know; VirtualBox takes its own disks by their size.
    fn size(&self) -> u64 {
        let by_size: [&[u8]; 7] = [b"win ", b"qem2", b"d2v ", b"d2v\0", b"tap\0", b"CTXS", b"vbox"];
        let [high, low, heads, sectors] = self.disk_geometry;
        let tracks = u64::from(u16::from_be_bytes([high, low])) * u64::from(heads);
        let by_geometry = tracks * u64::from(sectors) * SECTOR;
        let is_known = by_size.contains(&&self.creator_application[..])
            || self.creator_application.starts_with(b"wa");
        if is_known || by_geometry == 0 || self.disk_geometry == LARGEST_GEOMETRY {
            self.current_size.get()
        } else {
            by_geometry
        }
    }
}

/// Sum over a structure, as its checksum has it: the ones' complement of all bytes but its own.
fn sum(bytes: &[u8], own: u32) -> u32 {
    let all: u32 = bytes.iter().map(|&byte| u32::from(byte)).sum();
    let own: u32 = own.to_be_bytes().into_iter().map(u32::from).sum();
    !(all - own)
}

/// The footer at a place, if it is whole.
fn footer(probe: &Probe<'_>, at: u64) -> Option<Footer> {
    let footer: Footer = probe.has(at, b"conectix").then(|| probe.read(at))??;
    let own = footer.checksum.get();
    (sum(&probe.bytes(at, 512)?, own) == own).then_some(footer)
}

/// A disk that was found.
struct Found {
    footer: Footer,
    /// Place of the footer that is used.
    at: u64,
    /// The damage to the other footer.
    damage: Option<&'static str>,
    /// Layout of a disk with a table, or the reason for which it is not followed.
    body: Body,
}

enum Body {
    /// Bytes of the content before the footer, of a fixed disk.
    Fixed(u64),
    /// The table, and the parent of a differencing disk.
    Sparse(Blocks, Option<Reference>),
    Refused(&'static str),
}

/// The disk that a provider is; `None` where neither footer is whole.
fn found(probe: &Probe<'_>) -> Option<Found> {
    let end = probe.from_end(FOOTER)?;
    let front = footer(probe, 0).filter(|front| front.disk_type.get() != FIXED && end > 0);
    let (footer, at, damage) = match (footer(probe, end), front) {
        (Some(footer), Some(_)) => (footer, end, None),
        (Some(footer), None) if footer.disk_type.get() == FIXED => (footer, end, None),
        (Some(footer), None) => (footer, end, Some("the copy of its footer at byte 0 is damaged")),
        (None, Some(front)) => {
            (front, 0, Some("its footer at the end is damaged: the copy at byte 0 is used"))
        }
        (None, None) => return None,
    };
    let body = match footer.disk_type.get() {
        FIXED => match footer.size().min(at) {
            0 => Body::Refused("it has no content before its footer"),
            length => Body::Fixed(length),
        },
        DYNAMIC | DIFFERENCING => match sparse(probe, &footer) {
            Ok((blocks, parent)) => Body::Sparse(blocks, parent),
            Err(NotFollowed(reason)) => Body::Refused(reason),
        },
        _ => Body::Refused("its type is not known here"),
    };
    Some(Found { footer, at, damage, body })
}

/// The table of a dynamic or differencing disk, and the parent of one that has one.
///
/// Errors: the reason for which they are not followed.
fn sparse(probe: &Probe<'_>, footer: &Footer) -> Result<(Blocks, Option<Reference>), NotFollowed> {
    let at = footer.data_offset.get();
    let header: Dynamic =
        probe.read(at).ok_or(NotFollowed("its header lies past the end of the file"))?;
    let bytes = probe.bytes(at, 1024).unwrap_or_default();
    let own = header.checksum.get();
    if header.cookie != *b"cxsparse" || sum(&bytes, own) != own {
        return Err(NotFollowed("its header is damaged"));
    }
    let (block, size) = (u64::from(header.block_size.get()), footer.size());
    let (entries, table) = (u64::from(header.max_table_entries.get()), header.table_offset.get());
    let table_end = table.checked_add(entries * 4);
    let reasons = [
        (!block.is_power_of_two() || block < SECTOR, "the size of its blocks is not one"),
        (entries * block < size, "its table is too small for its size"),
        (size == 0 || size > MOST, "its size is not one that a VHD can have"),
        (
            table_end.is_none_or(|end| end > probe.length()),
            "its table reaches past the end of the file",
        ),
    ];
    if let Some((_, reason)) = reasons.into_iter().find(|(is_so, _)| *is_so) {
        return Err(NotFollowed(reason));
    }
    let bits = (block / SECTOR).div_ceil(8);
    let bitmap = round_up(bits, SECTOR).unwrap_or(SECTOR);
    let parent = (footer.disk_type.get() == DIFFERENCING).then(|| parent(probe, &header));
    Ok((Blocks { table, entries: size.div_ceil(block), block, bitmap }, parent))
}

/// The parent that a header names: by the path from the file's own directory, which Windows keeps
/// among the locators, or by its name.
fn parent(probe: &Probe<'_>, header: &Dynamic) -> Reference {
    let located = header.locators.iter().find(|locator| locator.code == RELATIVE);
    let relative = located.and_then(|locator| {
        let length = usize::try_from(locator.length.get().min(MOST_PATH)).ok()?;
        ondisk::text_utf16(&probe.bytes(locator.offset.get(), length)?)
    });
    let name = relative.or_else(|| ondisk::text_utf16be(&header.parent_unicode_name));
    Reference {
        role: "parent",
        name: name.map_or_else(|| "unnamed".into(), |name| from_somewhere(&name)),
        format: Some(KIND.name.into()),
        identity: ondisk::uuid(&header.parent_unique_id),
    }
}

impl Format for Vhd {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        let Found { footer, at, body, .. } = found(probe)?;
        let mut sign = Sign::new(KIND, at);
        let version = footer.file_format_version.get();
        sign.version = Some(format!("{}.{}", version >> 16, version & 0xffff));
        sign.uuid = ondisk::uuid(&footer.unique_id);
        sign.identity.clone_from(&sign.uuid);
        sign.inside = Inside::Container;
        sign.details.push(("virtual size", footer.size().to_string()));
        sign.details.extend(footer.creator().map(|creator| ("creator", creator)));
        match body {
            Body::Fixed(_) => {
                sign.size = footer.size().checked_add(FOOTER);
                sign.details.push(("type", "fixed".to_string()));
            }
            Body::Refused(reason) => sign.inside = Inside::Unknown(reason),
            Body::Sparse(blocks, parent) => {
                let name = if parent.is_some() { "differencing" } else { "dynamic" };
                sign.details.push(("type", name.to_string()));
                sign.details.push(("cluster size", blocks.block.to_string()));
                sign.details.extend(parent.iter().map(|parent| ("parent", parent.name.clone())));
                sign.references.extend(parent);
                let alignment = Scan::of(probe, &blocks).alignment(probe.length());
                sign.details.extend(alignment.map(|alignment| ("alignment", alignment.into())));
            }
        }
        Some(sign)
    }

    fn remake(&self) -> &'static str {
        "copy it into a container whose blocks are on the boundary: qemu-img convert -O vhdx, or Convert-VHD, which also makes a VHD that is aligned"
    }
}

impl Container for Vhd {
    const KIND: FormatKind = KIND;

    fn look(&self, probe: &Probe<'_>) -> Taste {
        let Some(Found { footer, damage, body, .. }) = found(probe) else { return Taste::No };
        let mut findings: Vec<Finding> = damage.map(damaged).into_iter().collect();
        match body {
            // The format's sign says why.
            Body::Refused(_) if findings.is_empty() => Taste::No,
            Body::Refused(_) => Taste::Refused(findings),
            Body::Fixed(length) => Taste::Geom(Arc::new(Slices::data_area(0, length)), findings),
            Body::Sparse(blocks, parent) => {
                let scan = Scan::of(probe, &blocks);
                findings.extend(scan.cut());
                let contents = Contents {
                    length: footer.size(),
                    home: Home::File(probe.length()),
                    parent: if parent.is_some() { Parent::Missing } else { Parent::None },
                    sector: None,
                    translation: translation(probe, &blocks, &scan),
                    table: blocks,
                };
                Taste::Geom(Arc::new(contents), findings)
            }
        }
    }
}

/// The finding about one footer of two.
fn damaged(what: &str) -> Finding {
    let message = format!("{KIND}: {what}");
    Finding::new(&finding::LABEL, Severity::Warning, 0, message).fix(
        "copy the disk while it can be read: qemu-img convert; programs that read the damaged one refuse the file",
    )
}

/// The translation by the blocks that were looked at. The next block begins where the footer is.
fn translation(probe: &Probe<'_>, blocks: &Blocks, scan: &Scan) -> Translation {
    let next = probe.from_end(FOOTER).and_then(|end| end.checked_add(blocks.bitmap));
    let known = Translation::by_table(blocks.block, scan.places.iter().copied()).growing_at(next);
    known.first_writing(|known| first_write(known, blocks, next))
}

/// The ranges that a first write to a block touches: its data from byte `next` of the file, the
/// bitmap before them, the footer behind them, and the entry. The rest of the block is not filled:
/// bits of the bitmap are 0, or the file is zero where it grew.
fn first_write(known: &Translation, blocks: &Blocks, next: Option<u64>) -> FirstWrite {
    let anywhere = Grain::multiples(SECTOR);
    let bitmap = next.and_then(|next| next.checked_sub(blocks.bitmap));
    let footer = next.and_then(|next| next.checked_add(blocks.block));
    FirstWrite::plain(known)
        .range("bitmap", bitmap.map_or(anywhere, Grain::only), blocks.bitmap)
        .range("footer", footer.map_or(anywhere, Grain::only), FOOTER)
        .entry("BAT entry", 4)
}

/// The block allocation table, and the bitmaps before the blocks.
#[derive(Clone)]
struct Blocks {
    /// First byte of the table in the file.
    table: u64,
    /// Blocks of the disk.
    entries: u64,
    /// Bytes of a block.
    block: u64,
    /// Bytes of the bitmap before it.
    bitmap: u64,
}

impl BlockTable for Blocks {
    /// A bitmap decides for each sector.
    fn block(&self) -> u64 {
        SECTOR
    }

    fn find(&self, nth: u64, length: u64, tables: &Tables<'_>) -> Result<Place, Extent> {
        let sectors = self.block / SECTOR;
        let (block, sector) = (nth / sectors, nth % sectors);
        let at = self.table.checked_add(block * 4).ok_or(Extent::Fail { length })?;
        let entry = u32::from_be_bytes(tables.bytes(FILE, at, length)?);
        match entry {
            NONE => return Ok(Place::Absent),
            // The footer's copy is there.
            0 => return Ok(Place::Broken),
            _ => {}
        }
        let start = u64::from(entry) * SECTOR;
        let [bits] = tables.bytes(FILE, start + sector / 8, length)?;
        let is_here = bits >> (7 - sector % 8) & 1 != 0;
        Ok(if is_here { Place::At(start + self.bitmap + sector * SECTOR) } else { Place::Absent })
    }
}

/// True for an address that Windows calls aligned: on a 4096-byte boundary.
fn is_aligned(offset: u64) -> bool {
    is_whole(offset, 4096)
}
