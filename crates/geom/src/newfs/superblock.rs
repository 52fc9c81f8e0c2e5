//! The superblock, its copies, and the recovery record before it.

use super::geometry::Geometry;
use super::options::{Flavour, Optimization, Options};
use crate::base::ondisk::on_disk;
use crate::format::ufs::fs::{Csum, FS_UFS2_MAGIC, Fs, SBLOCK_UFS2};
use zerocopy::{FromZeros, IntoBytes, LE, U32, U64};

/// Magic of a superblock whose file system is not finished.
pub(super) const FS_BAD_MAGIC: u32 = 0x1996_0408;
/// `FS_FLAGS_UPDATED`: the flags are in `fs_flags`.
const FS_FLAGS_UPDATED: u8 = 0x80;
/// Bits of `fs_flags`, from here on.
const FS_DOSOFTDEP: u32 = 0x02;
const FS_MULTILABEL: u32 = 0x20;
const FS_GJOURNAL: u32 = 0x40;
const FS_METACKHASH: u32 = 0x200;
const FS_TRIM: u32 = 0x400;
/// Bits of `fs_metackhash`, from here on.
const CK_SUPERBLOCK: u32 = 1;
pub(super) const CK_CYLGRP: u32 = 2;
pub(super) const CK_INODE: u32 = 4;
/// Longest symbolic link that is kept in the inode, in bytes.
const MAXSYMLINKLEN: u32 = 120;

on_disk! {
    /// On-disk `struct fsrecovery`, from which fsck_ffs(8) finds the backups without a superblock.
    #[derive(IntoBytes)]
    pub(super) struct FsRecovery of 20 bytes {
         0 => fsr_magic: U32<LE>,
         4 => fsr_fsbtodb: U32<LE>,
         8 => fsr_sblkno: U32<LE>,
        12 => fsr_fpg: U32<LE>,
        16 => fsr_ncg: U32<LE>,
    }
}

/// An on-disk number of a geometry. All fit their 32-bit fields: [`crate::newfs::shape`] refuses
/// others.
pub(super) fn word(value: u64) -> U32<LE> {
    U32::new(u32::try_from(value).unwrap_or(u32::MAX))
}

/// The binary logarithm of a power of two, as the superblock stores it.
fn log2(value: u64) -> U32<LE> {
    U32::new(value.trailing_zeros())
}

/// The check hash: CRC-32C without the final inversion.
pub(super) fn check_hash(bytes: &[u8]) -> u32 {
    // The sixteen-fold table is several times as fast, and a group's map is hashed for every group.
    const CRC: crc::Crc<u32, crc::Table<16>> =
        crc::Crc::<u32, crc::Table<16>>::new(&crc::CRC_32_ISCSI);
    !CRC.checksum(bytes)
}

/// Bits of the check hashes that are written, as in `fs_metackhash`.
pub(super) fn hashes(options: &Options) -> u32 {
    match options.flavour {
        Flavour::FreeBsd9 => 0,
        Flavour::FreeBsd12 => CK_CYLGRP,
        Flavour::FreeBsd13 | Flavour::FreeBsd14 => CK_SUPERBLOCK | CK_CYLGRP | CK_INODE,
    }
}

fn flags(options: &Options) -> u32 {
    let set = [
        (options.soft_updates, FS_DOSOFTDEP),
        (options.multilabel, FS_MULTILABEL),
        (options.gjournal, FS_GJOURNAL),
        (options.trim, FS_TRIM),
        (hashes(options) != 0, FS_METACKHASH),
    ];
    set.iter().filter(|(on, _)| *on).map(|(_, bit)| bit).sum()
}

/// The superblock of a file system without directories, as the backups keep it.
pub(super) fn superblock(g: &Geometry, options: &Options, time: i64, id: u32) -> Fs<LE> {
    let mut fs = Fs::<LE>::new_zeroed();
    shape(&mut fs, g);
    let clock = U64::from_bytes(time.to_le_bytes());
    fs.fs_minfree = word(options.minfree);
    fs.fs_maxbpg = word(options.maxbpg.unwrap_or(g.bsize / 8));
    fs.fs_optim = U32::new(u32::from(options.optimization == Optimization::Space));
    // Seconds, in 32 bits until 2106.
    fs.fs_id = [word(u64::from_le_bytes(time.to_le_bytes()) & u64::from(u32::MAX)), U32::new(id)];
    fs.fs_clean = 1;
    fs.fs_old_flags = FS_FLAGS_UPDATED;
    fs.fs_volname[..options.label.len()].copy_from_slice(options.label.as_bytes());
    fs.fs_sblockloc = U64::new(SBLOCK_UFS2);
    fs.fs_sblockactualloc = fs.fs_sblockloc;
    fs.fs_time = clock;
    fs.fs_avgfilesize = word(options.average_file_size);
    fs.fs_avgfpdir = word(options.average_files_per_directory);
    fs.fs_metackhash = U32::new(hashes(options));
    fs.fs_flags = U32::new(flags(options));
    fs.fs_maxsymlinklen = U32::new(MAXSYMLINKLEN);
    fs.fs_magic = U32::new(FS_UFS2_MAGIC);
    fs
}

/// Fills in the geometry, and the totals of free space.
fn shape(fs: &mut Fs<LE>, g: &Geometry) {
    fs.fs_sblkno = word(g.sblkno);
    fs.fs_cblkno = word(g.cblkno);
    fs.fs_iblkno = word(g.iblkno);
    fs.fs_dblkno = word(g.dblkno);
    fs.fs_ncg = word(g.ncg);
    fs.fs_bsize = word(g.bsize);
    fs.fs_fsize = word(g.fsize);
    fs.fs_frag = word(g.frag);
    // Masks: of whole blocks and fragments, and of remainders within them.
    fs.fs_bmask = U32::new(!word(g.bsize - 1).get());
    fs.fs_fmask = U32::new(!word(g.fsize - 1).get());
    fs.fs_qbmask = U64::new(g.bsize - 1);
    fs.fs_qfmask = U64::new(g.fsize - 1);
    fs.fs_bshift = log2(g.bsize);
    fs.fs_fshift = log2(g.fsize);
    fs.fs_fragshift = log2(g.frag);
    fs.fs_fsbtodb = log2(g.fsbtodb(1));
    fs.fs_maxcontig = word(g.maxcontig);
    fs.fs_contigsumsize = word(g.contigsumsize);
    fs.fs_maxbsize = word(g.maxbsize);
    fs.fs_sbsize = word(g.sbsize);
    fs.fs_nindir = word(g.nindir());
    fs.fs_inopb = word(g.inopb());
    fs.fs_cssize = word(g.cssize);
    fs.fs_cgsize = word(g.cgsize);
    fs.fs_ipg = word(g.ipg);
    fs.fs_fpg = word(g.fpg);
    fs.fs_providersize = U64::new(g.providersize);
    fs.fs_metaspace = U64::new(g.metaspace);
    fs.fs_size = U64::new(g.size);
    fs.fs_csaddr = U64::new(g.dblkno);
    fs.fs_maxfilesize = U64::new(g.maxfilesize());
    let free = g.size - g.sblkno - g.ncg * (g.dblkno - g.sblkno);
    let loose = g.csfrags() % g.frag;
    fs.fs_dsize = U64::new(free - g.csfrags());
    fs.fs_cstotal.cs_nbfree = U64::new(free / g.frag - g.csfrags().div_ceil(g.frag));
    fs.fs_cstotal.cs_nffree =
        U64::new(g.size % g.frag + if loose > 0 { g.frag - loose } else { 0 });
    fs.fs_cstotal.cs_nifree = U64::new(g.ncg * g.ipg - super::directory::ROOTINO);
}

/// Adds the directories to the totals.
pub(super) fn with_directories(fs: &mut Fs<LE>, g: &Geometry) {
    let totals = &mut fs.fs_cstotal;
    totals.cs_ndir += g.directories;
    totals.cs_nbfree -= g.directories;
    totals.cs_nifree -= g.directories;
    totals.cs_nffree += g.directories * (g.frag - 1);
}

/// Writes `fs` into `bytes`, whole sectors, as the copy at byte `at`.
pub(super) fn put(fs: &mut Fs<LE>, at: u64, bytes: &mut [u8]) {
    fs.fs_sblockactualloc = U64::new(at);
    fs.fs_ckhash = U32::new(0);
    bytes.fill(0);
    bytes[..size_of::<Fs<LE>>()].copy_from_slice(fs.as_bytes());
    if fs.fs_metackhash.get() & CK_SUPERBLOCK != 0 {
        fs.fs_ckhash = U32::new(check_hash(bytes));
        bytes[..size_of::<Fs<LE>>()].copy_from_slice(fs.as_bytes());
    }
}

/// The recovery record, for the sector before the superblock.
pub(super) fn recovery(g: &Geometry) -> FsRecovery {
    FsRecovery {
        fsr_magic: U32::new(FS_UFS2_MAGIC),
        fsr_fsbtodb: log2(g.fsbtodb(1)),
        fsr_sblkno: word(g.sblkno),
        fsr_fpg: word(g.fpg),
        fsr_ncg: word(g.ncg),
    }
}

/// The summary of one group, from its counts.
pub(super) fn summary(ndir: u64, nbfree: u64, nifree: u64, nffree: u64) -> Csum<LE> {
    Csum {
        cs_ndir: word(ndir),
        cs_nbfree: word(nbfree),
        cs_nifree: word(nifree),
        cs_nffree: word(nffree),
    }
}
