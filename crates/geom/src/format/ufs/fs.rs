//! `struct fs`, the superblock of UFS1 and UFS2, of either byte order: one declaration for readers
//! and writers of it.
//!
//! # Sources
//! FreeBSD `sys/ufs/ffs/fs.h`. Fields are unsigned here, whatever their sign there: written numbers
//! are never negative but for masks, and the size of read ones is checked anyway.

use crate::assert_offsets;
use zerocopy::{ByteOrder, FromBytes, Immutable, IntoBytes, KnownLayout, LE, U32, U64, Unaligned};

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

/// `struct csum`: what is in one cylinder group.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(C)]
pub(crate) struct Csum<O: ByteOrder> {
    pub(crate) cs_ndir: U32<O>,
    pub(crate) cs_nbfree: U32<O>,
    pub(crate) cs_nifree: U32<O>,
    pub(crate) cs_nffree: U32<O>,
}
assert_offsets!(Csum<LE>, 16, cs_ndir @ 0, cs_nbfree @ 4, cs_nifree @ 8, cs_nffree @ 12);

/// `struct csum_total`: what is in all of them.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct CsumTotal<O: ByteOrder> {
    pub(crate) cs_ndir: U64<O>,
    pub(crate) cs_nbfree: U64<O>,
    pub(crate) cs_nifree: U64<O>,
    pub(crate) cs_nffree: U64<O>,
    cs_numclusters: U64<O>,
    cs_spare: [U64<O>; 3],
}
assert_offsets!(CsumTotal<LE>, 64, cs_ndir @ 0, cs_nbfree @ 8, cs_nifree @ 16, cs_nffree @ 24);

/// `struct fs`. What is private is zero in UFS2, or of no concern to a reader.
#[derive(Clone, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Fs<O: ByteOrder> {
    fs_firstfield: U32<O>,
    fs_unused_1: U32<O>,
    pub(crate) fs_sblkno: U32<O>,
    pub(crate) fs_cblkno: U32<O>,
    pub(crate) fs_iblkno: U32<O>,
    pub(crate) fs_dblkno: U32<O>,
    fs_old_cgoffset: U32<O>,
    fs_old_cgmask: U32<O>,
    fs_old_time: U32<O>,
    pub(crate) fs_old_size: U32<O>,
    fs_old_dsize: U32<O>,
    pub(crate) fs_ncg: U32<O>,
    pub(crate) fs_bsize: U32<O>,
    pub(crate) fs_fsize: U32<O>,
    pub(crate) fs_frag: U32<O>,
    pub(crate) fs_minfree: U32<O>,
    fs_old_rotdelay: U32<O>,
    fs_old_rps: U32<O>,
    pub(crate) fs_bmask: U32<O>,
    pub(crate) fs_fmask: U32<O>,
    pub(crate) fs_bshift: U32<O>,
    pub(crate) fs_fshift: U32<O>,
    pub(crate) fs_maxcontig: U32<O>,
    pub(crate) fs_maxbpg: U32<O>,
    pub(crate) fs_fragshift: U32<O>,
    pub(crate) fs_fsbtodb: U32<O>,
    pub(crate) fs_sbsize: U32<O>,
    fs_spare1: [U32<O>; 2],
    pub(crate) fs_nindir: U32<O>,
    pub(crate) fs_inopb: U32<O>,
    fs_old_nspf: U32<O>,
    pub(crate) fs_optim: U32<O>,
    fs_old_npsect: U32<O>,
    fs_old_interleave: U32<O>,
    fs_old_trackskew: U32<O>,
    pub(crate) fs_id: [U32<O>; 2],
    fs_old_csaddr: U32<O>,
    pub(crate) fs_cssize: U32<O>,
    pub(crate) fs_cgsize: U32<O>,
    fs_spare2: U32<O>,
    fs_old_nsect: U32<O>,
    fs_old_spc: U32<O>,
    fs_old_ncyl: U32<O>,
    fs_old_cpg: U32<O>,
    pub(crate) fs_ipg: U32<O>,
    pub(crate) fs_fpg: U32<O>,
    fs_old_cstotal: Csum<O>,
    fs_fmod: u8,
    pub(crate) fs_clean: u8,
    fs_ronly: u8,
    pub(crate) fs_old_flags: u8,
    fs_fsmnt: [u8; 468],
    pub(crate) fs_volname: [u8; 32],
    fs_swuid: U64<O>,
    fs_pad: U32<O>,
    fs_cgrotor: U32<O>,
    /// Pointers that only memory uses.
    fs_ocsp: [u8; 128],
    fs_old_cpc: U32<O>,
    pub(crate) fs_maxbsize: U32<O>,
    fs_unrefs: U64<O>,
    pub(crate) fs_providersize: U64<O>,
    pub(crate) fs_metaspace: U64<O>,
    fs_sparecon64: [U64<O>; 13],
    pub(crate) fs_sblockactualloc: U64<O>,
    pub(crate) fs_sblockloc: U64<O>,
    pub(crate) fs_cstotal: CsumTotal<O>,
    pub(crate) fs_time: U64<O>,
    pub(crate) fs_size: U64<O>,
    pub(crate) fs_dsize: U64<O>,
    pub(crate) fs_csaddr: U64<O>,
    fs_pendingblocks: U64<O>,
    fs_pendinginodes: U32<O>,
    fs_snapinum: [U32<O>; 20],
    pub(crate) fs_avgfilesize: U32<O>,
    pub(crate) fs_avgfpdir: U32<O>,
    fs_save_cgsize: U32<O>,
    fs_mtime: U64<O>,
    fs_sujfree: U32<O>,
    fs_sparecon32: [U32<O>; 21],
    pub(crate) fs_ckhash: U32<O>,
    pub(crate) fs_metackhash: U32<O>,
    pub(crate) fs_flags: U32<O>,
    pub(crate) fs_contigsumsize: U32<O>,
    pub(crate) fs_maxsymlinklen: U32<O>,
    fs_old_inodefmt: U32<O>,
    pub(crate) fs_maxfilesize: U64<O>,
    pub(crate) fs_qbmask: U64<O>,
    pub(crate) fs_qfmask: U64<O>,
    fs_state: U32<O>,
    fs_old_postblformat: U32<O>,
    fs_old_nrpos: U32<O>,
    fs_spare5: [U32<O>; 2],
    pub(crate) fs_magic: U32<O>,
}
assert_offsets!(
    Fs<LE>,
    1376,
    fs_sblkno @ 8,
    fs_cblkno @ 12,
    fs_iblkno @ 16,
    fs_dblkno @ 20,
    fs_old_size @ 36,
    fs_ncg @ 44,
    fs_bsize @ 48,
    fs_fsize @ 52,
    fs_frag @ 56,
    fs_minfree @ 60,
    fs_bmask @ 72,
    fs_fmask @ 76,
    fs_bshift @ 80,
    fs_fshift @ 84,
    fs_maxcontig @ 88,
    fs_maxbpg @ 92,
    fs_fragshift @ 96,
    fs_fsbtodb @ 100,
    fs_sbsize @ 104,
    fs_nindir @ 116,
    fs_inopb @ 120,
    fs_optim @ 128,
    fs_id @ 144,
    fs_cssize @ 156,
    fs_cgsize @ 160,
    fs_ipg @ 184,
    fs_fpg @ 188,
    fs_clean @ 209,
    fs_old_flags @ 211,
    fs_volname @ 680,
    fs_maxbsize @ 860,
    fs_providersize @ 872,
    fs_metaspace @ 880,
    fs_sblockactualloc @ 992,
    fs_sblockloc @ 1000,
    fs_cstotal @ 1008,
    fs_time @ 1072,
    fs_size @ 1080,
    fs_dsize @ 1088,
    fs_csaddr @ 1096,
    fs_avgfilesize @ 1196,
    fs_avgfpdir @ 1200,
    fs_ckhash @ 1304,
    fs_metackhash @ 1308,
    fs_flags @ 1312,
    fs_contigsumsize @ 1316,
    fs_maxsymlinklen @ 1320,
    fs_maxfilesize @ 1328,
    fs_qbmask @ 1336,
    fs_qfmask @ 1344,
    fs_magic @ 1372,
);
