//! Number and size of cylinder groups: the algorithm of newfs.
//!
//! The unit is a fragment, unless a field's name or comment says bytes.

use super::error::Error;
use super::geometry::{DEV_BSIZE, DINODE, Geometry, up};
use super::options::Options;
use crate::base::topology::{is_whole, round_down};
use crate::format::ufs::fs::{BLOCK, Csum, Fs, MAXFRAG, SBLOCK_UFS2, SBLOCKSIZE};
use zerocopy::LE;

/// Default fragment in bytes: `DFL_FRAGSIZE`.
const FRAGMENT: u64 = 4096;
const DEFAULT_BLOCK: u64 = 32768;
/// Default number of fragments per inode.
const NFPI: u64 = 2;
/// `MINCYLGRPS`: least number of groups at which they still grow.
const MINCYLGRPS: u64 = 4;
/// Longest cluster that is counted, in blocks.
const FS_MAXCONTIG: u64 = 16;
/// Largest `fs_maxcontig` that readers accept.
pub(super) const MAXCONTIG: u64 = 256;
/// Number of inodes that 32-bit inode numbers can address.
const INODES: u64 = 1 << 32;

/// Decides upon the geometry. Lines that newfs prints before its summary go to `printed`, those for
/// standard error to `warnings`.
pub(super) fn decide(
    length: u64,
    sector: u64,
    unit: Option<u64>,
    options: &Options,
    printed: &mut Vec<String>,
    warnings: &mut Vec<String>,
) -> Result<Geometry, Error> {
    options.check()?;
    let device = sector;
    let sector = options.sector.unwrap_or(device);
    if sector < device {
        return Err(Error::SmallSector(sector));
    }
    if !sector.is_power_of_two() || !(DEV_BSIZE..=SBLOCKSIZE).contains(&sector) {
        return Err(Error::Sector(sector));
    }
    let bytes = extent(length, sector, options)?;
    let (mut bsize, mut fsize) = chosen(sector, unit, options);
    let mut density = options.density;
    let shape = loop {
        let shape = UfsSizes::new(bsize, fsize, bytes, sector, options, printed)?;
        match shape.density(&mut density, printed, warnings) {
            Some(fpi) => break shape.groups(fpi, options, printed)?,
            None if bsize >= *BLOCK.end() => return Err(Error::TooLarge(bytes)),
            None => (bsize, fsize) = (bsize * 2, fsize * 2),
        }
        printed.push(format!(
            "Block size too small for a file system of this size. Increasing blocksize to {bsize}"
        ));
    };
    let geometry = shape.geometry(length, sector, options)?;
    // newfs compares the bytes with fragments, so it never notices a file system that cannot hold a
    // snapshot of itself.
    if geometry.maxfilesize() < geometry.bytes() {
        warnings.push(
            "WARNING: You will be unable to create snapshots on this file system.  Correct \
                by using a larger blocksize."
                .to_string(),
        );
    }
    let fsize = geometry.fsize;
    if let Some(unit) = unit.filter(|&unit| !is_whole(fsize, unit)) {
        warnings.push(format!(
            "a fragment of {fsize} bytes is not whole in physical units of {unit} bytes: writing one makes the device read first"
        ));
    }
    Ok(geometry)
}

/// Bytes of the file system: the size asked for, or all but the reserved space.
fn extent(length: u64, sector: u64, options: &Options) -> Result<u64, Error> {
    let media = round_down(length.min(i64::MAX.unsigned_abs()), sector);
    let available = media.saturating_sub(up(options.reserved, sector));
    match options.size.map(|size| round_down(size, sector)) {
        _ if media == 0 => Err(Error::Preposterous),
        _ if available == 0 => Err(Error::Reserved(media / sector)),
        Some(size) if size > available => Err(Error::Larger(available / sector)),
        Some(size) if size > 0 => Ok(size),
        _ => Ok(available),
    }
}

/// Block and fragment in bytes: those asked for, or newfs's own choice, raised to the
/// read-modify-write unit where UFS can.
fn chosen(sector: u64, unit: Option<u64>, options: &Options) -> (u64, u64) {
    let least = FRAGMENT.max(sector);
    let unit = unit.filter(|unit| unit.is_power_of_two() && *unit > least);
    match (options.block_size, options.fragment_size, unit) {
        (block, Some(fsize), _) => {
            (block.unwrap_or_else(|| DEFAULT_BLOCK.min(fsize.saturating_mul(MAXFRAG))), fsize)
        }
        (block, None, None) => (block.unwrap_or_else(|| DEFAULT_BLOCK.min(least * MAXFRAG)), least),
        (Some(bsize), None, Some(unit)) => (bsize, least.max(unit.min(bsize))),
        // newfs(8): eight fragments in a block is best. Above 8 KiB the block's limit leaves fewer.
        (None, None, Some(unit)) if unit <= *BLOCK.end() => {
            ((unit * MAXFRAG).min(*BLOCK.end()), unit)
        }
        // A unit out of reach: the largest blocks cross it least often, and larger fragments would
        // only cost space.
        (None, None, Some(_)) => (*BLOCK.end(), least.max(BLOCK.end() / MAXFRAG)),
    }
}

/// Sizes that follow from the block and the fragment, then the groups.
struct UfsSizes {
    bsize: u64,
    fsize: u64,
    frag: u64,
    size: u64,
    sblkno: u64,
    cblkno: u64,
    iblkno: u64,
    maxbsize: u64,
    maxcontig: u64,
    contigsumsize: u64,
    /// Least number of fragments per inode, so that inode numbers suffice.
    minfpi: u64,
    fpg: u64,
    ipg: u64,
}

impl UfsSizes {
    fn new(
        bsize: u64,
        fsize: u64,
        bytes: u64,
        sector: u64,
        options: &Options,
        printed: &mut Vec<String>,
    ) -> Result<UfsSizes, Error> {
        let (bsize, fsize) = legal(bsize, fsize, sector, printed)?;
        let frag = bsize / fsize;
        let maxbsize = extent_size(bsize, options, printed);
        let mut maxcontig =
            options.maxcontig.unwrap_or((options.maxphys / bsize).clamp(1, MAXCONTIG));
        if maxcontig < maxbsize / bsize {
            maxcontig = maxbsize / bsize;
            printed.push(format!("Maxcontig raised to {maxbsize}"));
        }
        let sblkno = up((SBLOCK_UFS2 + SBLOCKSIZE).div_ceil(fsize), frag);
        let cblkno = sblkno + up(SBLOCKSIZE.div_ceil(fsize), frag);
        let size = bytes / fsize;
        Ok(UfsSizes {
            bsize,
            fsize,
            frag,
            size,
            sblkno,
            cblkno,
            iblkno: cblkno + frag,
            maxbsize,
            maxcontig,
            contigsumsize: if maxcontig > 1 { maxcontig.min(FS_MAXCONTIG) } else { 0 },
            minfpi: 1 + size / (INODES - bsize / DINODE),
            fpg: 0,
            ipg: 0,
        })
    }

    fn inopb(&self) -> u64 {
        self.bsize / DINODE
    }

    /// Number of fragments before the data of a group with `ipg` inodes.
    fn dblkno(&self, ipg: u64) -> u64 {
        self.iblkno + ipg / (self.fsize / DINODE)
    }

    /// Number of inodes of a group of `fpg` fragments, one for `fpi` of them, in whole blocks.
    fn inodes(&self, fpg: u64, fpi: u64) -> u64 {
        up(fpg.div_ceil(fpi), self.inopb())
    }

    /// Bytes of `struct cg` with its maps: used inodes, free fragments, runs of free blocks, free
    /// blocks.
    fn cg_bytes(&self, fpg: u64, ipg: u64) -> u64 {
        let clusters = if self.contigsumsize > 0 {
            4 * self.contigsumsize + (fpg / self.frag).div_ceil(8)
        } else {
            0
        };
        176 + 4 + ipg.div_ceil(8) + fpg.div_ceil(8) + clusters
    }

    /// Fragments and inodes of the smallest group that has one inode for `fpi` fragments and a
    /// whole block of inodes.
    fn smallest(&self, fpi: u64) -> (u64, u64) {
        let minfpg = (fpi * self.inopb()).min(self.size);
        let mut ipg = self.inopb();
        let mut fpg = 0;
        for _ in 0..2 {
            fpg = up(self.dblkno(ipg), self.frag).max(minfpg);
            ipg = self.inodes(fpg, fpi);
        }
        (fpg, ipg)
    }

    /// Fragments per inode for `density` bytes, reduced until the maps of a group fit a block;
    /// `None` if no number does in this block.
    fn density(
        &self,
        density: &mut Option<u64>,
        printed: &mut Vec<String>,
        warnings: &mut Vec<String>,
    ) -> Option<u64> {
        let least = self.minfpi * self.fsize;
        let wanted = density.unwrap_or(NFPI.max(self.minfpi) * self.fsize);
        let mut now = wanted.max(least);
        if now != wanted {
            warnings.push(format!("density increased from {wanted} to {now}"));
        }
        let before = now;
        loop {
            let fpi = (now / self.fsize).max(1);
            let (fpg, ipg) = self.smallest(fpi);
            *density = Some(now);
            if fpi < self.minfpi {
                return None;
            }
            if self.cg_bytes(fpg, ipg) < self.bsize {
                if now != before {
                    printed.push(format!("density reduced from {before} to {now}"));
                }
                return Some(fpi);
            }
            now = now.checked_sub(self.fsize)?;
        }
    }

    /// Chooses groups with one inode for `fpi` fragments: as large as a block for their maps
    /// allows, not too few, the last not too short.
    fn groups(
        mut self,
        mut fpi: u64,
        options: &Options,
        printed: &mut Vec<String>,
    ) -> Result<UfsSizes, Error> {
        loop {
            self.grow(fpi, options.max_blocks_per_group);
            let best = self.fpg;
            self.enlarge_last(fpi)?;
            // Inodes come in whole blocks, so there may be more than inode numbers, which newfs
            // does not notice.
            let inodes = self.size.div_ceil(self.fpg).saturating_mul(self.ipg);
            if inodes <= INODES - self.inopb() {
                if best != self.fpg {
                    printed.push(format!(
                        "Reduced frags per cylinder group from {best} to {} to \
                        enlarge last cyl group",
                        self.fpg
                    ));
                }
                return Ok(self);
            }
            printed.push(format!(
                "density increased from {} to {}",
                fpi * self.fsize,
                (fpi + 1) * self.fsize
            ));
            fpi += 1;
            let (fpg, ipg) = self.smallest(fpi);
            if self.cg_bytes(fpg, ipg) >= self.bsize {
                return Err(Error::TooLarge(self.size * self.fsize));
            }
        }
    }

    /// Enlarges groups from the smallest on, block by block, up to `most` fragments.
    fn grow(&mut self, fpi: u64, most: u64) {
        let (mut fpg, _) = self.smallest(fpi);
        let bytes = |fpg| self.cg_bytes(fpg, self.inodes(fpg, fpi));
        while fpg < most && self.size / fpg >= MINCYLGRPS && bytes(fpg) < self.bsize {
            fpg += self.frag;
        }
        if bytes(fpg) > self.bsize {
            fpg -= self.frag;
        }
        (self.fpg, self.ipg) = (fpg, self.inodes(fpg, fpi));
    }

    /// Takes blocks from every group but the last until the last has room for its own tables.
    fn enlarge_last(&mut self, fpi: u64) -> Result<(), Error> {
        loop {
            let least = up(self.dblkno(self.ipg), self.frag);
            if self.size < least {
                return Err(Error::TooSmall { size: self.size, least });
            }
            if self.fpg < least {
                return Err(Error::LastGroup(self.size));
            }
            let last = self.size % self.fpg;
            if last == 0 || last >= least {
                return Ok(());
            }
            self.fpg -= self.frag.min(self.fpg - 1);
            self.ipg = self.inodes(self.fpg, fpi);
        }
    }

    fn geometry(self, length: u64, sector: u64, options: &Options) -> Result<Geometry, Error> {
        let ncg = self.size.div_ceil(self.fpg);
        let bytes_of = |size| u64::try_from(size).unwrap_or(SBLOCKSIZE);
        let half = self.fpg / 2;
        let metaspace = match options.metaspace {
            Some(asked) if asked < half => asked,
            // newfs keeps half of the space that users may not take.
            _ => self.fpg * options.minfree / 200,
        };
        let geometry = Geometry {
            sector,
            dblkno: self.dblkno(self.ipg),
            ncg,
            cgsize: up(self.cg_bytes(self.fpg, self.ipg), self.fsize),
            cssize: up(ncg.saturating_mul(bytes_of(size_of::<Csum<LE>>())), self.fsize),
            sbsize: up(bytes_of(size_of::<Fs<LE>>()), self.fsize).min(SBLOCKSIZE).max(sector),
            metaspace: round_down(metaspace, self.frag),
            directories: 1 + u64::from(options.snap),
            providersize: length / self.fsize,
            bsize: self.bsize,
            fsize: self.fsize,
            frag: self.frag,
            size: self.size,
            sblkno: self.sblkno,
            cblkno: self.cblkno,
            iblkno: self.iblkno,
            ipg: self.ipg,
            fpg: self.fpg,
            maxbsize: self.maxbsize,
            maxcontig: self.maxcontig,
            contigsumsize: self.contigsumsize,
        };
        let blocks = geometry.ndblk(0) / geometry.frag;
        let taken = geometry.data(0).div_ceil(geometry.frag) + geometry.directories;
        if taken > blocks {
            return Err(Error::FirstGroup { ncg, cssize: geometry.cssize });
        }
        // Readers require this of every file system.
        match 8 * geometry.frag {
            least if geometry.size < least => Err(Error::TooSmall { size: geometry.size, least }),
            _ => Ok(geometry),
        }
    }
}

/// Corrects a block and a fragment that do not go together, as newfs does, with a line for each.
fn legal(
    mut bsize: u64,
    mut fsize: u64,
    sector: u64,
    printed: &mut Vec<String>,
) -> Result<(u64, u64), Error> {
    let (least, most) = (*BLOCK.start(), *BLOCK.end());
    if !bsize.is_power_of_two() {
        return Err(Error::Block(bsize));
    }
    if !fsize.is_power_of_two() {
        return Err(Error::Fragment(fsize));
    }
    // newfs compares with 512 whatever the sector, which may leave fragments that no drive can
    // read.
    if fsize < sector {
        printed.push(format!("increasing fragment size from {fsize} to sector size ({sector})"));
        fsize = sector;
    }
    if bsize > most {
        printed.push(format!("decreasing block size from {bsize} to maximum ({most})"));
        bsize = most;
    }
    if bsize < least {
        printed.push(format!("increasing block size from {bsize} to minimum ({least})"));
        bsize = least;
    }
    if fsize > most {
        printed.push(format!("decreasing fragment size from {fsize} to maximum ({most})"));
        fsize = most;
    }
    if bsize < fsize {
        printed.push(format!("increasing block size from {bsize} to fragment size ({fsize})"));
        bsize = fsize;
    }
    if fsize * MAXFRAG < bsize {
        let raised = bsize / MAXFRAG;
        printed.push(format!(
            "increasing fragment size from {fsize} to block size / {MAXFRAG} ({raised})"
        ));
        fsize = raised;
    }
    Ok((bsize, fsize))
}

/// Bytes of the largest extent (`-d`).
fn extent_size(bsize: u64, options: &Options, printed: &mut Vec<String>) -> u64 {
    match options.max_extent.unwrap_or(bsize) {
        asked if asked < bsize || !asked.is_power_of_two() => {
            printed.push(format!("Extent size set to {bsize}"));
            bsize
        }
        asked if asked > FS_MAXCONTIG * bsize => {
            printed.push(format!("Extent size reduced to {}", FS_MAXCONTIG * bsize));
            FS_MAXCONTIG * bsize
        }
        asked => asked,
    }
}
