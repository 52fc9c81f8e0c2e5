//! VMDK: a disk image of VMware: a sparse extent, or the descriptor of a disk whose extents are
//! files of their own.
//!
//! # On disk
//! A hosted sparse extent begins with `KDMV`, one of ESX snapshots with `COWD`, both little-endian.
//! The virtual disk is cut into grains. A grain directory has the places of grain tables, and those
//! the places of grains, all in sectors; there may be a second directory with tables of its own. A
//! hosted extent has its descriptor inside. In a streamOptimized one each grain is a zlib stream
//! behind a marker, and the directory is named by a footer. A descriptor alone is text; its extent
//! lines name other files. seSparse is told of in `vmdk/se_sparse.rs`.
//!
//! # Topology
//! A grain may begin on any sector: the tables say, as far as they were looked at. VMware and QEMU
//! put hosted grains of 64 KiB at multiples of their size. Grains of ESX snapshots are of 512
//! bytes, as a rule, which breaks every larger unit. A streamOptimized file is unpacked before it
//! runs, so it is never off.
//!
//! # Limits
//! An extent that is named by a descriptor is `unknown` by itself, as is one that was not closed. A
//! `COWD` or seSparse extent does not say if it has a parent: by itself, its absent grains are not
//! taken for zeros. What it lacks is said by the descriptor that names it. Limits are QEMU's.
//!
//! # Sources
//! VMware "Virtual Disk Format 5.0": The Descriptor File, Hosted Sparse Extent Header, Grain
//! Directory, Compressed Grains, ESX Server Sparse Extent Header; QEMU `block/vmdk.c`, `vmdk_open`,
//! for what is refused, `get_whole_cluster` and `vmdk_L2update` for a first write.

use super::Taste;
use super::container::{
    BlockTable, Container, Contents, FILE, Home, PARENT, Parent, Place, looked_at, without_parent,
};
use crate::base::topology::{FirstWrite, Translation};
use crate::format::{Format, FormatKind, Inside, Reference, Sign};
use crate::mapping::extents::Extents;
use crate::mapping::geom::Extent;
use crate::mapping::tables::Tables;
use crate::probe::Probe;
use grains::Grains;
use se_sparse::SeSparse;
use std::sync::Arc;

mod descriptor;
mod grains;
mod header;
mod se_sparse;

/// The class and format, for the registry.
pub struct Vmdk;

/// The kind that blkid and QEMU call `vmdk`.
pub const KIND: FormatKind = FormatKind::new("vmdk", &Vmdk);

const SECTOR: u64 = 512;

/// Image as its header or its descriptor has it.
#[derive(Default)]
struct Image {
    version: Option<String>,
    /// Size of the guest's disk in bytes.
    size: Option<u64>,
    /// Size of a grain in bytes.
    grain: Option<u64>,
    create_type: Option<String>,
    /// Content ID, by which a snapshot knows its parent.
    content: Option<String>,
    /// Names of the files of its extents, where there are others.
    extents: Option<String>,
    /// Files of its extents, or that of its parent.
    references: Vec<Reference>,
    /// The reason for which a disk is not looked for in it.
    refused: Option<&'static str>,
    /// The way to its bytes. One that is refused may have it all the same: an extent of a disk has
    /// none of its own.
    body: Option<Body>,
}

/// Way to the bytes of an image.
enum Body {
    /// Through the tables of its grains.
    Sparse {
        table: Table,
        parent: Parent,
        /// True for an image whose grains are compressed.
        is_transport: bool,
    },
    /// In files of its own for every extent.
    Joined(Extents),
}

/// Tables of grains of either kind.
#[derive(Clone)]
enum Table {
    Grains(Grains),
    SeSparse(SeSparse),
}

impl Table {
    /// The ranges that a first write to a grain touches: QEMU fills it, from the parent or with
    /// zeros, and keeps both tables where there are two. Of seSparse no writer is known here.
    fn first_write(&self, known: &Translation, parent: Parent) -> FirstWrite {
        let parent = (parent != Parent::None).then_some(PARENT);
        let first = FirstWrite::filled(known, known.allocation, parent);
        match self {
            Table::SeSparse(_) => first.entry("grain table entry", 8),
            Table::Grains(grains) => {
                let first = first.entry("grain table entry", 4);
                match grains.redundant {
                    Some(_) => first.entry("redundant table entry", 4),
                    None => first,
                }
            }
        }
    }
}

impl BlockTable for Table {
    fn block(&self) -> u64 {
        match self {
            Table::Grains(grains) => grains.block(),
            Table::SeSparse(grains) => grains.block(),
        }
    }

    fn find(&self, nth: u64, length: u64, tables: &Tables<'_>) -> Result<Place, Extent> {
        match self {
            Table::Grains(grains) => grains.find(nth, length, tables),
            Table::SeSparse(grains) => grains.find(nth, length, tables),
        }
    }
}

/// The image on a provider.
fn found(probe: &Probe<'_>) -> Option<Image> {
    header::hosted(probe)
        .or_else(|| header::esx(probe))
        .or_else(|| se_sparse::image(probe))
        .or_else(|| descriptor::image(probe))
}

impl Format for Vmdk {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        let image = found(probe)?;
        let mut sign = Sign::new(KIND, 0);
        sign.inside = image.refused.map_or(Inside::Container, Inside::Unknown);
        sign.references = image.references;
        sign.identity = image.content;
        sign.version = image.version;
        sign.details.extend(image.size.map(|bytes| ("virtual size", bytes.to_string())));
        sign.details.extend(image.grain.map(|bytes| ("cluster size", bytes.to_string())));
        sign.details.extend(image.create_type.map(|kind| ("create type", kind)));
        sign.details.extend(image.extents.map(|names| ("extents", names)));
        Some(sign)
    }

    fn remake(&self) -> &'static str {
        "copy it with the machine shut down: vmkfstools -i, or qemu-img convert -O vmdk"
    }
}

impl Container for Vmdk {
    const KIND: FormatKind = KIND;

    fn look(&self, probe: &Probe<'_>) -> Taste {
        let Some(Image { size: Some(length), references, body: Some(body), .. }) = found(probe)
        else {
            return Taste::No;
        };
        let (table, parent, is_transport) = match body {
            Body::Sparse { table, parent, is_transport } => (table, parent, is_transport),
            Body::Joined(disk) => return Taste::Geom(Arc::new(disk), Vec::new()),
        };
        let grain = table.block();
        let translation = if is_transport {
            Translation::transport(grain)
        } else {
            match looked_at(&table, length, probe) {
                // The first grain will be where VMware and QEMU put it: on a whole grain.
                blocks if blocks.is_empty() => Translation::by_format(grain, 0),
                blocks => Translation::by_table(grain, blocks),
            }
            .first_writing(|known| table.first_write(known, parent))
        };
        let home = Home::File(probe.length());
        let contents = Contents { table, length, home, parent, sector: None, translation };
        let is_alone = parent != Parent::None && references.is_empty();
        let findings = is_alone.then(|| without_parent(KIND, "which its descriptor may name"));
        Taste::Geom(Arc::new(contents), findings.into_iter().collect())
    }
}

/// The number of `N` bytes at index `index` of a table at byte `table` of the file.
///
/// Errors: the answer to a question about `length` bytes instead.
fn entry<const N: usize>(
    table: u64,
    index: u64,
    length: u64,
    tables: &Tables<'_>,
) -> Result<[u8; N], Extent> {
    let at = index.checked_mul(N as u64).and_then(|behind| table.checked_add(behind));
    tables.bytes(FILE, at.ok_or(Extent::Fail { length })?, length)
}

#[cfg(test)]
mod tests;
