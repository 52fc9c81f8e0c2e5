//! `struct fs`, the superblock of UFS1 and UFS2, of either byte order: one declaration for readers
//! and writers of it.
//!
//! # Sources
//! FreeBSD `sys/ufs/ffs/fs.h`. Fields are unsigned here, whatever their sign there: written numbers
//! are never negative but for masks, and the size of read ones is checked anyway.

use crate::base::ondisk::on_disk;
use zerocopy::{ByteOrder, IntoBytes, U32, U64};

/// First byte of UFS2's superblock; the bytes before it are for boot code.
pub(crate) const SBLOCK_UFS2: u64 = 65536;
/// First byte of UFS1's superblock.
pub(crate) const SBLOCK_UFS1: u64 = 8192;
/// Largest size of a superblock, in bytes.
pub(crate) const SBLOCKSIZE: u64 = 8192;
/// Offset in bytes of `fs_magic` in a superblock: its last field.
pub(crate) const FS_MAGIC_AT: u64 = 1372;
/// Value of `fs_magic` in UFS1.
pub(crate) const FS_UFS1_MAGIC: u32 = 0x0001_1954;
/// Value of `fs_magic` in UFS2.
pub(crate) const FS_UFS2_MAGIC: u32 = 0x1954_0119;
/// Block sizes in bytes, from `MINBSIZE` to `MAXBSIZE`.
pub(crate) const BLOCK: std::ops::RangeInclusive<u64> = 4096..=65536;
/// Largest number of fragments in a block.
pub(crate) const MAXFRAG: u64 = 8;

on_disk! {
    /// `struct csum`: what is in one cylinder group.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoBytes)]
    pub(crate) struct Csum<O: ByteOrder> of 16 bytes {
         0 => pub(crate) cs_ndir: U32<O>,
         4 => pub(crate) cs_nbfree: U32<O>,
         8 => pub(crate) cs_nifree: U32<O>,
        12 => pub(crate) cs_nffree: U32<O>,
    }
}

on_disk! {
    /// `struct csum_total`: what is in all of them.
    #[derive(Clone, Copy, IntoBytes)]
    pub(crate) struct CsumTotal<O: ByteOrder> of 64 bytes {
         0 => pub(crate) cs_ndir: U64<O>,
         8 => pub(crate) cs_nbfree: U64<O>,
        16 => pub(crate) cs_nifree: U64<O>,
        24 => pub(crate) cs_nffree: U64<O>,
        32 => cs_numclusters: U64<O>,
        40 => cs_spare: [U64<O>; 3],
    }
}

on_disk! {
    /// `struct fs`. What is private is zero in UFS2, or of no concern to a reader.
    #[derive(Clone, IntoBytes)]
    pub(crate) struct Fs<O: ByteOrder> of 1376 bytes {
           0 => fs_firstfield: U32<O>,
           4 => fs_unused_1: U32<O>,
           8 => pub(crate) fs_sblkno: U32<O>,
          12 => pub(crate) fs_cblkno: U32<O>,
          16 => pub(crate) fs_iblkno: U32<O>,
          20 => pub(crate) fs_dblkno: U32<O>,
          24 => fs_old_cgoffset: U32<O>,
          28 => fs_old_cgmask: U32<O>,
          32 => fs_old_time: U32<O>,
          36 => pub(crate) fs_old_size: U32<O>,
          40 => fs_old_dsize: U32<O>,
          44 => pub(crate) fs_ncg: U32<O>,
          48 => pub(crate) fs_bsize: U32<O>,
          52 => pub(crate) fs_fsize: U32<O>,
          56 => pub(crate) fs_frag: U32<O>,
          60 => pub(crate) fs_minfree: U32<O>,
          64 => fs_old_rotdelay: U32<O>,
          68 => fs_old_rps: U32<O>,
          72 => pub(crate) fs_bmask: U32<O>,
          76 => pub(crate) fs_fmask: U32<O>,
          80 => pub(crate) fs_bshift: U32<O>,
          84 => pub(crate) fs_fshift: U32<O>,
          88 => pub(crate) fs_maxcontig: U32<O>,
          92 => pub(crate) fs_maxbpg: U32<O>,
          96 => pub(crate) fs_fragshift: U32<O>,
         100 => pub(crate) fs_fsbtodb: U32<O>,
         104 => pub(crate) fs_sbsize: U32<O>,
         108 => fs_spare1: [U32<O>; 2],
         116 => pub(crate) fs_nindir: U32<O>,
         120 => pub(crate) fs_inopb: U32<O>,
         124 => fs_old_nspf: U32<O>,
         128 => pub(crate) fs_optim: U32<O>,
         132 => fs_old_npsect: U32<O>,
         136 => fs_old_interleave: U32<O>,
         140 => fs_old_trackskew: U32<O>,
         144 => pub(crate) fs_id: [U32<O>; 2],
         152 => fs_old_csaddr: U32<O>,
         156 => pub(crate) fs_cssize: U32<O>,
         160 => pub(crate) fs_cgsize: U32<O>,
         164 => fs_spare2: U32<O>,
         168 => fs_old_nsect: U32<O>,
         172 => fs_old_spc: U32<O>,
         176 => fs_old_ncyl: U32<O>,
         180 => fs_old_cpg: U32<O>,
         184 => pub(crate) fs_ipg: U32<O>,
         188 => pub(crate) fs_fpg: U32<O>,
         192 => fs_old_cstotal: Csum<O>,
         208 => fs_fmod: u8,
         209 => pub(crate) fs_clean: u8,
         210 => fs_ronly: u8,
         211 => pub(crate) fs_old_flags: u8,
         212 => fs_fsmnt: [u8; 468],
         680 => pub(crate) fs_volname: [u8; 32],
         712 => fs_swuid: U64<O>,
         720 => fs_pad: U32<O>,
         724 => fs_cgrotor: U32<O>,
        /// Pointers that only memory uses.
         728 => fs_ocsp: [u8; 128],
         856 => fs_old_cpc: U32<O>,
         860 => pub(crate) fs_maxbsize: U32<O>,
         864 => fs_unrefs: U64<O>,
         872 => pub(crate) fs_providersize: U64<O>,
         880 => pub(crate) fs_metaspace: U64<O>,
         888 => fs_sparecon64: [U64<O>; 13],
         992 => pub(crate) fs_sblockactualloc: U64<O>,
        1000 => pub(crate) fs_sblockloc: U64<O>,
        1008 => pub(crate) fs_cstotal: CsumTotal<O>,
        1072 => pub(crate) fs_time: U64<O>,
        1080 => pub(crate) fs_size: U64<O>,
        1088 => pub(crate) fs_dsize: U64<O>,
        1096 => pub(crate) fs_csaddr: U64<O>,
        1104 => fs_pendingblocks: U64<O>,
        1112 => fs_pendinginodes: U32<O>,
        1116 => fs_snapinum: [U32<O>; 20],
        1196 => pub(crate) fs_avgfilesize: U32<O>,
        1200 => pub(crate) fs_avgfpdir: U32<O>,
        1204 => fs_save_cgsize: U32<O>,
        1208 => fs_mtime: U64<O>,
        1216 => fs_sujfree: U32<O>,
        1220 => fs_sparecon32: [U32<O>; 21],
        1304 => pub(crate) fs_ckhash: U32<O>,
        1308 => pub(crate) fs_metackhash: U32<O>,
        1312 => pub(crate) fs_flags: U32<O>,
        1316 => pub(crate) fs_contigsumsize: U32<O>,
        1320 => pub(crate) fs_maxsymlinklen: U32<O>,
        1324 => fs_old_inodefmt: U32<O>,
        1328 => pub(crate) fs_maxfilesize: U64<O>,
        1336 => pub(crate) fs_qbmask: U64<O>,
        1344 => pub(crate) fs_qfmask: U64<O>,
        1352 => fs_state: U32<O>,
        1356 => fs_old_postblformat: U32<O>,
        1360 => fs_old_nrpos: U32<O>,
        1364 => fs_spare5: [U32<O>; 2],
        1372 => pub(crate) fs_magic: U32<O>,
    }
}
