//! HFS+ and HFSX, also wrapped in an HFS volume.
//!
//! # On disk
//! The volume header is 1024 bytes in, big-endian. Allocation blocks are counted from the volume's byte 0; in an HFS wrapper
//! the volume begins at the wrapper's `drEmbedExtent`, in wrapper blocks after `drAlBlSt` sectors.
//!
//! # Limits
//! The name, which is in the catalogue, and the UUID, which blkid makes of the identifier by MD5, are not read; the
//! identifier is a detail.
//!
//! # Sources
//! Apple Technical Note TN1150 "HFS Plus Volume Format", sections "Volume Header" and "HFS Wrapper".

use super::{Data, Format, Sign};
use crate::layout;
use crate::probe::Probe;
use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// The recogniser.
pub const FORMAT: Format = Format { name: "hfsplus", recognise };

/// `HFSPlusVolumeHeader`, as far as it is read.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct VolumeHeader {
    signature: [u8; 2],
    version: U16,
    skip0: [u8; 36],
    block_size: U32,
    total_blocks: U32,
    skip1: [u8; 56],
    /// The last two words of `finderInfo`.
    identifier: U64,
}
layout!(VolumeHeader, 112, version @ 2, block_size @ 40, identifier @ 104);

/// The HFS master directory block, as far as it is read.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct MasterDirectoryBlock {
    dr_sig_word: [u8; 2],
    skip0: [u8; 18],
    dr_al_blk_siz: U32,
    skip1: [u8; 4],
    dr_al_bl_st: U16,
    skip2: [u8; 94],
    dr_embed_sig_word: [u8; 2],
    dr_embed_start: U16,
    dr_embed_count: U16,
}
layout!(MasterDirectoryBlock, 130, dr_al_blk_siz @ 20, dr_al_bl_st @ 28, dr_embed_sig_word @ 124, dr_embed_count @ 128);

/// In the wrapper as in HFS+ the first KiB is for boot blocks.
const HEADER: u64 = 1024;
const HFS_SECTOR: u64 = 512;

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let start = wrapped(probe).unwrap_or(0);
    let header: VolumeHeader = probe.read(start + HEADER)?;
    let block = u64::from(header.block_size.get());
    let known = matches!((&header.signature, header.version.get()), (b"H+", 4) | (b"HX", 5));
    if !known || !block.is_power_of_two() || block < HFS_SECTOR {
        return None;
    }
    let length = u64::from(header.total_blocks.get()) * block;
    let mut sign = Sign::new("hfsplus", start + HEADER);
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

/// Where the volume begins in an HFS wrapper; all products are below 2^49.
fn wrapped(probe: &Probe<'_>) -> Option<u64> {
    let wrapper: MasterDirectoryBlock = probe.read(HEADER)?;
    let embedded = wrapper.dr_sig_word == *b"BD" && matches!(&wrapper.dr_embed_sig_word, b"H+" | b"HX");
    let first = u64::from(wrapper.dr_al_bl_st.get()) * HFS_SECTOR;
    embedded.then(|| first + u64::from(wrapper.dr_embed_start.get()) * u64::from(wrapper.dr_al_blk_siz.get()))
}
