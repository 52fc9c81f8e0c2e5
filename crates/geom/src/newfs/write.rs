//! Bytes of a file system, in an order that is safe to interrupt.

use super::directory::{Dinode, Directory, ROOTINO};
use super::geometry::Geometry;
use super::superblock::{self, FS_BAD_MAGIC, hashes};
use super::{Newfs, SUPERBLOCK, group};
use crate::base::topology::round_down;
use crate::format::ufs::fs::{
    Csum, FS_MAGIC_AT, FS_UFS1_MAGIC, FS_UFS2_MAGIC, Fs, SBLOCK_UFS1, SBLOCK_UFS2,
};
use std::mem::offset_of;
use zerocopy::{IntoBytes, LE, U32};

/// A writer that takes a byte offset and the bytes.
pub type Put<'a, E> = dyn FnMut(u64, &[u8]) -> Result<(), E> + 'a;

/// Bytes of the boot area before the superblock.
const BOOT: usize = 65536;
const _: () = assert!(BOOT as u64 == SBLOCK_UFS2);
/// Offset of an inode's generation, in bytes.
const DI_GEN: usize = offset_of!(Dinode, di_gen);
/// Time under `-R`, in seconds since 1970; generations then count from 1.
const REGRESSION_TIME: i64 = 1_000_000_000;

impl Newfs {
    /// Number of bytes that [`Newfs::write`] hands over, but for the sector of a UFS1 superblock.
    pub fn bytes_to_write(&self) -> u64 {
        let g = &self.geometry;
        let group = g.sbsize + g.cgsize + g.inode_bytes();
        g.ncg * group + 2 * g.sbsize + g.directories * g.fsize + g.cssize + g.sector
    }

    /// Hands every byte to `put`, in whole sectors. `boot` is the current contents of the first
    /// [`SUPERBLOCK`] bytes; `random` gives the generation of each inode. An error of `put` ends
    /// it.
    ///
    /// The first and the last piece go to [`SUPERBLOCK`]. The first makes the old contents no file
    /// system, the last makes the new ones one: flush after the first and before the last. In
    /// between, offsets rise from group to group.
    pub fn write<E>(
        &self,
        time: i64,
        random: &mut dyn FnMut() -> u32,
        boot: &[u8; BOOT],
        put: &mut Put<'_, E>,
    ) -> Result<(), E> {
        let mut count = 0_u32;
        let mut counted = || {
            count = count.wrapping_add(1);
            count
        };
        let (time, random): (i64, &mut dyn FnMut() -> u32) = if self.options.reproducible {
            (REGRESSION_TIME, &mut counted)
        } else {
            (time, random)
        };
        let g = &self.geometry;
        let mut fs = superblock::superblock(g, &self.options, time, random());
        let mut sector = zeroed(g.sbsize);
        fs.fs_magic = U32::new(FS_BAD_MAGIC);
        superblock::put(&mut fs, SUPERBLOCK, &mut sector);
        put(SUPERBLOCK, &sector)?;
        old_superblock(g, boot, put)?;
        fs.fs_magic = U32::new(FS_UFS2_MAGIC);
        self.groups(&mut fs, time, random, put)?;
        self.first_group(put)?;
        recovery(g, boot, put)?;
        superblock::with_directories(&mut fs, g);
        superblock::put(&mut fs, SUPERBLOCK, &mut sector);
        put(SUPERBLOCK, &sector)
    }

    /// Writes the backup, the maps and the inodes of every group.
    fn groups<E>(
        &self,
        fs: &mut Fs<LE>,
        time: i64,
        random: &mut dyn FnMut() -> u32,
        put: &mut Put<'_, E>,
    ) -> Result<(), E> {
        let g = &self.geometry;
        let mut backup = zeroed(g.sbsize);
        // The map and the inodes; free inodes are empty but for their generation.
        let mut rest = zeroed(g.cgsize + g.inode_bytes());
        let split = rest.len() - usize::try_from(g.inode_bytes()).unwrap_or(0);
        for cg in 0..g.ncg {
            let at = |fragment| (g.base(cg) + fragment) * g.fsize;
            superblock::put(fs, at(g.sblkno), &mut backup);
            put(at(g.sblkno), &backup)?;
            let (map, inodes) = rest.split_at_mut(split);
            group::put(g, cg, time, hashes(&self.options), map);
            for inode in inodes.chunks_exact_mut(size_of::<Dinode>()) {
                inode[DI_GEN..DI_GEN + size_of::<u32>()].copy_from_slice(&random().to_le_bytes());
            }
            let directories = if cg == 0 { g.directories } else { 0 };
            let used = inodes
                .chunks_exact_mut(size_of::<Dinode>())
                .skip(usize::try_from(ROOTINO).unwrap_or(usize::MAX));
            for (inode, n) in used.zip(0..directories) {
                inode.copy_from_slice(
                    Directory { geometry: g, options: &self.options, n }.inode(time).as_bytes(),
                );
            }
            // One write where the inodes follow at once, as they do but for odd sizes.
            if at(g.cblkno) + g.cgsize == at(g.iblkno) {
                put(at(g.cblkno), &rest)?;
            } else {
                put(at(g.cblkno), &rest[..split])?;
                put(at(g.iblkno), &rest[split..])?;
            }
            if cg == 0 {
                rest[split..].fill(0);
            }
        }
        Ok(())
    }

    /// Writes the parts that only the first group has: the summaries, a fragment of them at a time,
    /// and the directories.
    fn first_group<E>(&self, put: &mut Put<'_, E>) -> Result<(), E> {
        let g = &self.geometry;
        let mut fragment = zeroed(g.fsize);
        let mut groups = 0..g.ncg;
        for at in g.dblkno..g.dblkno + g.csfrags() {
            fragment.fill(0);
            for (place, cg) in fragment.chunks_exact_mut(size_of::<Csum<LE>>()).zip(groups.by_ref())
            {
                place.copy_from_slice(group::summary_of(g, cg).as_bytes());
            }
            put(at * g.fsize, &fragment)?;
        }
        for n in 0..g.directories {
            let directory = Directory { geometry: g, options: &self.options, n };
            directory.entries(&mut fragment);
            put(directory.fragment() * g.fsize, &fragment)?;
        }
        Ok(())
    }
}

/// Overwrites the magic of a UFS1 superblock, if there is one; boot code around it stays.
fn old_superblock<E>(g: &Geometry, boot: &[u8; BOOT], put: &mut Put<'_, E>) -> Result<(), E> {
    let at = SBLOCK_UFS1 + FS_MAGIC_AT;
    let old = &boot[range(at, 4)];
    if old != FS_UFS1_MAGIC.to_le_bytes() && old != FS_UFS1_MAGIC.to_be_bytes() {
        return Ok(());
    }
    let start = round_down(at, g.sector);
    let mut sector = boot[range(start, g.sector)].to_vec();
    sector[range(at - start, 4)].fill(0);
    put(start, &sector)
}

/// Writes the recovery record at the end of the sector before the superblock.
fn recovery<E>(g: &Geometry, boot: &[u8; BOOT], put: &mut Put<'_, E>) -> Result<(), E> {
    let mut sector = boot[range(SUPERBLOCK - g.sector, g.sector)].to_vec();
    let record = superblock::recovery(g);
    let at = sector.len() - size_of_val(&record);
    sector[at..].copy_from_slice(record.as_bytes());
    put(SUPERBLOCK - g.sector, &sector)
}

/// A range of bytes in the boot area, which is smaller than any `usize`.
fn range(at: u64, length: u64) -> std::ops::Range<usize> {
    let start = usize::try_from(at).unwrap_or(BOOT);
    start..start + usize::try_from(length).unwrap_or(0)
}

/// A zeroed buffer of at most a block.
fn zeroed(length: u64) -> Vec<u8> {
    vec![0; usize::try_from(length).unwrap_or(0)]
}
