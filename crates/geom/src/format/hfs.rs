//! HFS, the Macintosh's file system before HFS+.
//!
//! # On disk
//! The master directory block is 1024 bytes in, big-endian. Allocation blocks are any number of
//! sectors of 512 bytes long, and are counted from sector `drAlBlSt`, behind the volume's bitmap.
//! A copy of the directory block stands in the last sector but one.
//!
//! # Sources
//! Apple, "Inside Macintosh: Files" (1992), chapter 2, "Data Organization on Volumes", "Master
//! Directory Blocks"; Apple's mapping table `ROMAN.TXT` for names.

use super::{Format, FormatKind, Inside, Piece, Sign, StrayData};
use crate::base::ondisk::{self, on_disk};
use crate::base::patch::Read;
use crate::base::resize::{Resized, Write};
use crate::probe::Probe;
use crate::table::Refusal;
use zerocopy::big_endian::{U16, U32};

/// The format, for the registry.
pub struct Hfs;

/// The kind that blkid calls `hfs`.
pub const KIND: FormatKind = FormatKind::new("hfs", &Hfs);

impl Format for Hfs {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: FormatKind, _block: Option<u64>) -> Option<Inside> {
        Some(Inside::FURTHER_IN)
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }

    fn enlarge(&self, _sign: &Sign, _piece: Piece, _unit: u64) -> Option<String> {
        Some("copy its files to an HFS+: the volume's size decides that of HFS's blocks".into())
    }

    fn shift_data(&self, _area: &StrayData<'_>) -> String {
        "copy its files to an HFS+: the volume's size decides where HFS's blocks begin".into()
    }

    /// Everything in it is counted in sectors of 512 bytes, whatever its blocks are.
    fn convert(&self, _: &Sign, on: Resized, _: &mut Read<'_>) -> Result<Vec<Write>, Refusal> {
        if on.to <= SECTOR {
            return Ok(Vec::new());
        }
        Err(Refusal::new("it counts sectors of 512 bytes", "copy its files to an HFS+"))
    }
}

on_disk! {
    /// The master directory block, as far as it is read.
    pub(super) struct MasterDirectoryBlock of 130 bytes {
          0 => dr_sig_word: [u8; 2],
          2 => skip0: [u8; 12],
         14 => dr_vbm_st: U16,
         16 => skip1: [u8; 2],
         18 => dr_nm_al_blks: U16,
         20 => dr_al_blk_siz: U32,
         24 => skip2: [u8; 4],
         28 => dr_al_bl_st: U16,
         30 => skip3: [u8; 6],
        /// A length and as many characters.
         36 => dr_vn: [u8; 28],
         64 => skip4: [u8; 60],
        124 => dr_embed_sig_word: [u8; 2],
        126 => dr_embed_start: U16,
        128 => dr_embed_count: U16,
    }
}

/// The first KiB is for boot blocks.
pub(super) const AT: u64 = 1024;
const SIGNATURE: &[u8; 2] = b"BD";
const SECTOR: u64 = 512;
/// Names of what a hybrid disc is as well, of the same files: ISO 9660 or UDF, which is read.
const OPTICAL: [&[u8; 5]; 2] = [b"CD001", b"BEA01"];
/// Byte of the name in the first volume descriptor of either.
const STANDARD_IDENTIFIER: u64 = 32769;
/// First sector behind boot blocks and directory block.
const BITMAP: u16 = 3;
/// The copy of the directory block, and a sector that Apple keeps.
const END: u64 = 2 * SECTOR;
/// Characters 128 to 255 of a name.
const ROMAN: &str = "ÄÅÇÉÑÖÜáàâäãåçéèêëíìîïñóòôöõúùûü†°¢£§•¶ß®©™´¨≠ÆØ∞±≤≥¥µ∂∑∏π∫ªºΩæø\
    ¿¡¬√ƒ≈∆«»…\u{a0}ÀÃÕŒœ–—“”‘’÷◊ÿŸ⁄€‹›ﬁﬂ‡·‚„‰ÂÊÁËÈÍÎÏÌÓÔ\u{f8ff}ÒÚÛÙıˆ˜¯˘˙˚¸˝˛ˇ";

impl MasterDirectoryBlock {
    /// The directory block of a volume, or of one that wraps an HFS+.
    pub(super) fn read(probe: &Probe<'_>) -> Option<MasterDirectoryBlock> {
        probe.read(AT).filter(|block: &MasterDirectoryBlock| block.dr_sig_word == *SIGNATURE)
    }

    /// The first byte of an HFS+ that this volume wraps; `None` if it wraps none. Below 2^49.
    pub(super) fn embedded(&self) -> Option<u64> {
        let blocks = u64::from(self.dr_embed_start.get());
        self.is_wrapper().then(|| self.first() + blocks * self.block())
    }

    /// The first byte of the allocation blocks.
    fn first(&self) -> u64 {
        u64::from(self.dr_al_bl_st.get()) * SECTOR
    }

    /// Bytes of an allocation block.
    fn block(&self) -> u64 {
        self.dr_al_blk_siz.get().into()
    }

    fn is_wrapper(&self) -> bool {
        matches!(&self.dr_embed_sig_word, b"H+" | b"HX")
    }

    /// True if the numbers can be those of a volume: the bitmap has a bit for each block, between
    /// the directory block and the first of them.
    fn can_be_true(&self) -> bool {
        let (blocks, bitmap) = (u64::from(self.dr_nm_al_blks.get()), self.dr_vbm_st.get());
        let end_of_bitmap = u64::from(bitmap) * SECTOR + blocks.div_ceil(8);
        blocks > 0
            && self.block() > 0
            && self.block().is_multiple_of(SECTOR)
            && bitmap >= BITMAP
            && end_of_bitmap <= self.first()
    }

    fn name(&self) -> Option<String> {
        let (&length, name) = self.dr_vn.split_first()?;
        let character = |&byte: &u8| match byte.checked_sub(128) {
            None => char::from(byte),
            Some(nth) => ROMAN.chars().nth(nth.into()).unwrap_or(char::REPLACEMENT_CHARACTER),
        };
        let name: String = name.get(..length.into())?.iter().map(character).collect();
        ondisk::text(name.as_bytes())
    }
}

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let directory =
        MasterDirectoryBlock::read(probe).filter(|it| !it.is_wrapper() && it.can_be_true())?;
    if OPTICAL.iter().any(|name| probe.has(STANDARD_IDENTIFIER, *name)) {
        return None;
    }
    // Below 2^48: 16 bits of 32.
    let length = u64::from(directory.dr_nm_al_blks.get()) * directory.block();
    let mut sign = Sign::new(KIND, AT);
    sign.label = directory.name();
    sign.block = Some(directory.block());
    sign.size = Some(directory.first() + length + END);
    sign.data_at(probe, Some(directory.first()), Some(length), false);
    Some(sign)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{disk, recognised};
    use super::*;

    /// The directory block that hformat makes for 20 MiB, with another bitmap and first block.
    fn block(bitmap: u16, first: u16) -> Vec<u8> {
        let mut bytes = vec![0; 162];
        bytes[..2].copy_from_slice(SIGNATURE);
        bytes[14..16].copy_from_slice(&bitmap.to_be_bytes());
        bytes[18..20].copy_from_slice(&40945_u16.to_be_bytes());
        bytes[20..24].copy_from_slice(&512_u32.to_be_bytes());
        bytes[28..30].copy_from_slice(&first.to_be_bytes());
        bytes[36..41].copy_from_slice(b"\x04N\x8afm");
        bytes
    }

    /// Two bytes are a weak magic; the other numbers decide.
    #[test]
    fn numbers_that_cannot_be_are_no_hfs() {
        let found = |bitmap, first, wrapped: &[u8]| {
            let mut bytes = block(bitmap, first);
            bytes[124..126].copy_from_slice(wrapped);
            recognised(&Hfs, disk(20 << 20, &[(AT, &bytes)]))
        };
        let sign = found(3, 13, b"\0\0").expect("an HFS");
        assert_eq!(sign.label.as_deref(), Some("Näfm"));
        assert_eq!(sign.data.map(|data| data.offset), Some(13 * SECTOR));
        assert_eq!(sign.size, Some(13 * SECTOR + 40945 * SECTOR + END));
        assert_eq!(found(3, 12, b"\0\0"), None, "no room for the bitmap");
        assert_eq!(found(2, 13, b"\0\0"), None, "the bitmap on the directory block");
        assert_eq!(found(3, 13, b"H+"), None, "a wrapper");
    }

    /// Its blocks may be larger than the new sectors; what counts them is not.
    #[test]
    fn it_stays_on_sectors_of_512_bytes() {
        let sign = recognised(&Hfs, disk(20 << 20, &[(AT, &block(3, 13))])).expect("an HFS");
        let larger = Sign { block: Some(16384), ..sign };
        let to = |from, to| {
            let on = Resized { from, to, starts: [1 << 20; 2], length: 20 << 20 };
            Hfs.convert(&larger, on, &mut |_, _| Ok(())).map_err(|refusal| refusal.found)
        };
        assert_eq!(to(4096, 512).map(|writes| writes.len()), Ok(0));
        assert_eq!(to(512, 4096).err().as_deref(), Some("it counts sectors of 512 bytes"));
    }

    #[test]
    fn every_character_of_a_name_is_known() {
        assert_eq!(ROMAN.chars().count(), 128);
    }
}
