//! HFS+ and HFSX, also wrapped in an HFS volume.
//!
//! # On disk
//! The volume header is 1024 bytes in, big-endian. Allocation blocks are counted from the volume's
//! byte 0; in an HFS wrapper the volume begins at the wrapper's `drEmbedExtent`, in wrapper blocks
//! after `drAlBlSt` sectors.
//!
//! # Limits
//! The name is read if the catalogue's first leaf lies in its first extent. The UUID that blkid
//! makes of the identifier by MD5 is not; the identifier is a detail.
//!
//! # Sources
//! Apple Technical Note TN1150 "HFS Plus Volume Format", sections "Volume Header", "B-Trees",
//! "Catalog File", "HFS Wrapper".

use super::hfs::{self, MasterDirectoryBlock};
use super::{Data, Format, FormatKind, Inside, Sign};
use crate::base::ondisk::{self, on_disk};
use crate::probe::Probe;
use zerocopy::big_endian::{U16, U32, U64};

/// The format, for the registry.
pub struct HfsPlus;

/// The kind that blkid calls `hfsplus`.
pub const KIND: FormatKind = FormatKind::new("hfsplus", &HfsPlus);

impl Format for HfsPlus {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: FormatKind, _block: Option<u64>) -> Option<Inside> {
        Some(Inside::FURTHER_IN)
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }
}

on_disk! {
    /// `HFSPlusVolumeHeader`, as far as it is read.
    struct VolumeHeader of 296 bytes {
          0 => signature: [u8; 2],
          2 => version: U16,
          4 => skip0: [u8; 36],
         40 => block_size: U32,
         44 => total_blocks: U32,
         48 => skip1: [u8; 56],
        /// The last two words of `finderInfo`.
        104 => identifier: U64,
        112 => skip2: [u8; 176],
        288 => catalog_file_first_extent: Extent,
    }
}

on_disk! {
    /// On-disk extent of a file, `HFSPlusExtentDescriptor`.
    struct Extent of 8 bytes {
        0 => start_block: U32,
        4 => block_count: U32,
    }
}

on_disk! {
    /// `BTNodeDescriptor` and `BTHeaderRec` of a tree's node 0, as far as they are read.
    struct HeaderNode of 34 bytes {
         0 => skip: [u8; 24],
        24 => first_leaf_node: U32,
        28 => last_leaf_node: U32,
        32 => node_size: U16,
    }
}

on_disk! {
    /// The head of a leaf node and of its first record's `HFSPlusCatalogKey`.
    struct LeafNode of 22 bytes {
         0 => skip: [u8; 8],
         8 => kind: i8,
         9 => height: u8,
        10 => num_records: U16,
        12 => reserved: U16,
        14 => key_length: U16,
        16 => parent_id: U32,
        20 => node_name_length: U16,
    }
}

const LEAF: i8 = -1;
/// `kHFSRootParentID`: the record of the volume's root folder is the first of all.
const ROOT_PARENT: u32 = 1;
const MAX_NAME: u16 = 255;

/// In the wrapper as in HFS+ the first KiB is for boot blocks.
const HEADER: u64 = hfs::AT;
const SMALLEST_BLOCK: u64 = 512;

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let wrapper = MasterDirectoryBlock::read(probe);
    let start = wrapper.and_then(|wrapper| wrapper.embedded()).unwrap_or(0);
    let header: VolumeHeader = probe.read(start + HEADER)?;
    let block = u64::from(header.block_size.get());
    let known = matches!((&header.signature, header.version.get()), (b"H+", 4) | (b"HX", 5));
    if !known || !block.is_power_of_two() || block < SMALLEST_BLOCK {
        return None;
    }
    let length = u64::from(header.total_blocks.get()) * block;
    let mut sign = Sign::new(KIND, start + HEADER);
    sign.label = name(probe, start, block, &header.catalog_file_first_extent);
    sign.size = Some(start + length);
    sign.block = Some(block);
    if start > 0 {
        sign.data = Some(Data { offset: start, length: Some(length), plain: false });
    }
    if header.identifier.get() != 0 {
        sign.details.push(("identifier", format!("{:016x}", header.identifier.get())));
    }
    Some(sign)
}

/// The root folder's name, from the key of the catalogue's first record.
fn name(probe: &Probe<'_>, start: u64, block: u64, extent: &Extent) -> Option<String> {
    let catalogue = start + u64::from(extent.start_block.get()) * block;
    let head: HeaderNode = probe.read(catalogue)?;
    let inside = u64::from(head.first_leaf_node.get()) * u64::from(head.node_size.get());
    let at = catalogue + inside;
    let leaf: LeafNode =
        probe.read(at).filter(|_| inside < u64::from(extent.block_count.get()) * block)?;
    let length = leaf.node_name_length.get();
    let root = leaf.kind == LEAF
        && leaf.num_records.get() > 0
        && leaf.parent_id.get() == ROOT_PARENT
        && length <= MAX_NAME;
    ondisk::text_utf16be(&probe.bytes(at + 22, 2 * usize::from(length)).filter(|_| root)?)
}
