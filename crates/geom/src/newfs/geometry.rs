//! How many cylinder groups of what size: newfs's algorithm, and the refusals.
//!
//! Everything is counted in fragments unless its name or comment says bytes.

use super::options::Options;
use crate::sign::ufs::fs::{BLOCK, Fs, MAXFRAG, SBLOCK_UFS2, SBLOCKSIZE};
use crate::topology::{is_whole, round_down, round_up};
use std::fmt;
use zerocopy::LE;

/// Bytes of an inode, of a block's address, of `struct csum`.
const DINODE: u64 = 256;
const ADDRESS: u64 = 8;
const CSUM: u64 = 16;
/// The unit of the addresses that newfs prints and of `fs_fsbtodb`, whatever the sector.
pub(super) const DEV_BSIZE: u64 = 512;
/// `DFL_FRAGSIZE` and `DFL_BLKSIZE`.
const FRAGMENT: u64 = 4096;
const DEFAULT_BLOCK: u64 = 32768;
/// Fragments per inode by default.
const NFPI: u64 = 2;
/// `MINCYLGRPS`: groups grow until there would be fewer.
const MINCYLGRPS: u64 = 4;
/// The largest cluster that is counted, in blocks.
const FS_MAXCONTIG: u64 = 16;
/// The most that readers allow of `fs_maxcontig`.
const MAXCONTIG: u64 = 256;
/// Inode numbers are 32 bits.
const INODES: u64 = 1 << 32;
/// On-disk numbers are signed 32 bits.
pub(super) const INT_MAX: u64 = 0x7fff_ffff;

/// `value` rounded up to whole `unit`s. Past 2^64 it is all there is: no provider is that long, so the checks that follow refuse.
pub(super) fn up(value: u64, unit: u64) -> u64 {
    round_up(value, unit).unwrap_or(u64::MAX)
}

/// Why there is no such file system. Where newfs has a message for it, it is this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A sector that no UFS can stand on.
    Sector(u64),
    /// The reserved space is all there is, in sectors.
    Reserved(u64),
    /// The size asked for is more than there is, in sectors.
    Larger(u64),
    /// No sector at all.
    Preposterous,
    /// Not a power of two.
    Block(u64),
    /// Not a power of two.
    Fragment(u64),
    /// Fewer fragments than one group needs for itself.
    TooSmall {
        /// Fragments there are.
        size: u64,
        /// Fragments needed.
        least: u64,
    },
    /// The first group has no room for the summaries of all groups and the directories.
    FirstGroup {
        /// Groups.
        ncg: u64,
        /// Bytes of their summaries.
        cssize: u64,
    },
    /// However many fragments a group has, the last one is too short for its own tables.
    LastGroup(u64),
    /// No block size reaches that far.
    TooLarge(u64),
    /// An option past what its field on the disk holds.
    Number(&'static str, u64),
    /// A volume label of other letters, or too long.
    Label(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Sector(n) => write!(f, "UFS needs sectors of a power of two from 512 to {SBLOCKSIZE} bytes, not {n}"),
            Error::Reserved(n) => write!(f, "reserved not less than device size {n}"),
            Error::Larger(n) => write!(f, "maximum file system size is {n}"),
            Error::Preposterous => f.write_str("preposterous size 0"),
            Error::Block(n) => write!(f, "block size must be a power of 2, not {n}"),
            Error::Fragment(n) => write!(f, "fragment size must be a power of 2, not {n}"),
            Error::TooSmall { size, least } => write!(f, "Filesystem size {size} < minimum size of {least}"),
            Error::FirstGroup { ncg, cssize } => write!(
                f,
                "first cylinder group ran out of space: it holds the directories and {cssize} bytes of summaries of {ncg} groups; \
                 a larger block (-b) makes fewer groups, a larger density (-i) fewer inodes"
            ),
            Error::LastGroup(size) => write!(
                f,
                "no size of cylinder groups leaves the last of {size} fragments long enough for its own tables; take another size (-s), \
                 or fewer inodes (-i)"
            ),
            Error::TooLarge(size) => write!(f, "no UFS has {size} bytes: it would need blocks above {} bytes", BLOCK.end()),
            Error::Number(what, n) => write!(f, "{n}: bad {what}"),
            Error::Label(label) => {
                write!(f, "{label:?}: bad volume label. Valid are at most 31 alphanumerics, dashes, and underscores")
            }
        }
    }
}

impl std::error::Error for Error {}

/// Where everything is. The fields have the names of `struct fs` without `fs_`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of a sector.
    pub sector: u64,
    /// Bytes of a block.
    pub bsize: u64,
    /// Bytes of a fragment.
    pub fsize: u64,
    /// Fragments in a block.
    pub frag: u64,
    /// Fragments in the file system.
    pub size: u64,
    /// Fragments in the provider.
    pub providersize: u64,
    /// The backup superblock in a group.
    pub sblkno: u64,
    /// `struct cg` in a group.
    pub cblkno: u64,
    /// Inodes in a group.
    pub iblkno: u64,
    /// Data in a group.
    pub dblkno: u64,
    /// Groups.
    pub ncg: u64,
    /// Inodes in a group.
    pub ipg: u64,
    /// Fragments in a group; the last may have fewer.
    pub fpg: u64,
    /// Bytes of `struct cg` with its maps, in whole fragments.
    pub cgsize: u64,
    /// Bytes of all summaries, in whole fragments.
    pub cssize: u64,
    /// Bytes of a superblock, in whole sectors.
    pub sbsize: u64,
    /// Bytes of the largest extent.
    pub maxbsize: u64,
    /// Blocks laid out in one run.
    pub maxcontig: u64,
    /// Lengths of free runs that are counted.
    pub contigsumsize: u64,
    /// Kept for metadata in each group.
    pub metaspace: u64,
    /// Blocks that `.snap` and the root directory take together: one each.
    pub directories: u64,
}

impl Geometry {
    /// Bytes of the file system.
    pub fn bytes(&self) -> u64 {
        self.size * self.fsize
    }

    /// Inodes in a block.
    pub fn inopb(&self) -> u64 {
        self.bsize / DINODE
    }

    /// Addresses in a block.
    pub fn nindir(&self) -> u64 {
        self.bsize / ADDRESS
    }

    /// The 512-byte unit at which fragment `at` begins.
    pub fn fsbtodb(&self, at: u64) -> u64 {
        at * (self.fsize / DEV_BSIZE)
    }

    /// The first fragment of group `cg`.
    pub fn base(&self, cg: u64) -> u64 {
        cg * self.fpg
    }

    /// Fragments of group `cg`.
    pub fn ndblk(&self, cg: u64) -> u64 {
        self.fpg.min(self.size.saturating_sub(self.base(cg)))
    }

    /// Fragments of the summaries.
    pub fn csfrags(&self) -> u64 {
        self.cssize / self.fsize
    }

    /// The first fragment for data in group `cg`, counted in the group: the first group has the summaries before it.
    pub fn data(&self, cg: u64) -> u64 {
        self.dblkno + if cg == 0 { self.csfrags() } else { 0 }
    }

    /// Inodes that are written in each group.
    pub fn initediblk(&self) -> u64 {
        self.ipg.min(2 * self.inopb())
    }

    /// The longest file, in bytes.
    pub fn maxfilesize(&self) -> u64 {
        maxfilesize(self.bsize)
    }
}

/// 12 blocks, and what one, two and three levels of indirect blocks reach. At 64 KiB blocks, 2^55 bytes.
fn maxfilesize(bsize: u64) -> u64 {
    let n = bsize / ADDRESS;
    12 * bsize - 1 + bsize * (n + n * n + n * n * n)
}

/// Decides. What newfs would print before its summary goes to `said`, what it prints to standard error to `warnings`.
pub(super) fn decide(
    length: u64,
    sector: u64,
    unit: Option<u64>,
    options: &Options,
    said: &mut Vec<String>,
    warnings: &mut Vec<String>,
) -> Result<Geometry, Error> {
    if !sector.is_power_of_two() || !(DEV_BSIZE..=SBLOCKSIZE).contains(&sector) {
        return Err(Error::Sector(sector));
    }
    options.check()?;
    let bytes = extent(length, sector, options)?;
    let (mut bsize, mut fsize) = chosen(sector, unit, options);
    let mut density = options.density;
    let shape = loop {
        let shape = Shape::new(bsize, fsize, bytes, sector, options, said)?;
        match shape.density(&mut density, said, warnings) {
            Some(fpi) => break shape.groups(fpi, options, said)?,
            None if bsize >= *BLOCK.end() => return Err(Error::TooLarge(bytes)),
            None => (bsize, fsize) = (bsize * 2, fsize * 2),
        }
        said.push(format!("Block size too small for a file system of this size. Increasing blocksize to {bsize}"));
    };
    let geometry = shape.geometry(length, sector, options)?;
    // newfs compares with fragments, so a file system that cannot hold a snapshot of itself is never noticed.
    if geometry.maxfilesize() < geometry.bytes() {
        warnings
            .push("WARNING: You will be unable to create snapshots on this file system.  Correct by using a larger blocksize.".to_string());
    }
    let fsize = geometry.fsize;
    if let Some(unit) = unit.filter(|&unit| !is_whole(fsize, unit)) {
        warnings.push(format!(
            "a fragment of {fsize} bytes is not whole in physical units of {unit} bytes: writing one makes the device read first"
        ));
    }
    Ok(geometry)
}

/// Bytes of the file system: what was asked for, or all but what is reserved.
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

/// The block and the fragment that were asked for, or newfs's own choice, raised to the read-modify-write unit where UFS can.
fn chosen(sector: u64, unit: Option<u64>, options: &Options) -> (u64, u64) {
    let least = FRAGMENT.max(sector);
    let unit = unit.filter(|unit| unit.is_power_of_two() && *unit > least);
    match (options.block_size, options.fragment_size, unit) {
        (block, Some(fsize), _) => (block.unwrap_or_else(|| DEFAULT_BLOCK.min(fsize.saturating_mul(MAXFRAG))), fsize),
        (block, None, None) => (block.unwrap_or_else(|| DEFAULT_BLOCK.min(least * MAXFRAG)), least),
        (Some(bsize), None, Some(unit)) => (bsize, least.max(unit.min(bsize))),
        // newfs(8): eight fragments in a block is best. Above 8 KiB the block's limit leaves fewer.
        (None, None, Some(unit)) if unit <= *BLOCK.end() => ((unit * MAXFRAG).min(*BLOCK.end()), unit),
        // Out of reach: the largest blocks cross it least often, and larger fragments would only cost room.
        (None, None, Some(_)) => (*BLOCK.end(), least.max(BLOCK.end() / MAXFRAG)),
    }
}

/// What follows from the block and the fragment, then the groups.
struct Shape {
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
    /// Fewer fragments per inode would need more inodes than have numbers.
    minfpi: u64,
    fpg: u64,
    ipg: u64,
}

impl Shape {
    fn new(bsize: u64, fsize: u64, bytes: u64, sector: u64, options: &Options, said: &mut Vec<String>) -> Result<Shape, Error> {
        let (bsize, fsize) = legal(bsize, fsize, sector, said)?;
        let frag = bsize / fsize;
        let maxbsize = extent_size(bsize, options, said);
        let mut maxcontig = options.maxcontig.unwrap_or((options.maxphys / bsize).clamp(1, MAXCONTIG));
        if maxcontig < maxbsize / bsize {
            maxcontig = maxbsize / bsize;
            said.push(format!("Maxcontig raised to {maxbsize}"));
        }
        let sblkno = up((SBLOCK_UFS2 + SBLOCKSIZE).div_ceil(fsize), frag);
        let cblkno = sblkno + up(SBLOCKSIZE.div_ceil(fsize), frag);
        let size = bytes / fsize;
        Ok(Shape {
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

    /// Fragments before the data of a group with `ipg` inodes.
    fn dblkno(&self, ipg: u64) -> u64 {
        self.iblkno + ipg / (self.fsize / DINODE)
    }

    /// Inodes of a group of `fpg` fragments, one for `fpi` of them, in whole blocks.
    fn inodes(&self, fpg: u64, fpi: u64) -> u64 {
        up(fpg.div_ceil(fpi), self.inopb())
    }

    /// Bytes of `struct cg` with its maps: used inodes, free fragments, runs of free blocks, free blocks.
    fn cg_bytes(&self, fpg: u64, ipg: u64) -> u64 {
        let clusters = if self.contigsumsize > 0 { 4 * self.contigsumsize + (fpg / self.frag).div_ceil(8) } else { 0 };
        176 + 4 + ipg.div_ceil(8) + fpg.div_ceil(8) + clusters
    }

    /// The smallest group with one inode for `fpi` fragments that has a whole block of them: its fragments and inodes.
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

    /// Fragments per inode for `density` bytes, made so that the maps of a group fit a block; `None`: not in this block.
    fn density(&self, density: &mut Option<u64>, said: &mut Vec<String>, warnings: &mut Vec<String>) -> Option<u64> {
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
                    said.push(format!("density reduced from {before} to {now}"));
                }
                return Some(fpi);
            }
            now = now.checked_sub(self.fsize)?;
        }
    }

    /// Groups with one inode for `fpi` fragments, as large as a block for their maps allows, not too few, the last not too short.
    fn groups(mut self, mut fpi: u64, options: &Options, said: &mut Vec<String>) -> Result<Shape, Error> {
        loop {
            self.grow(fpi, options.max_blocks_per_group);
            let best = self.fpg;
            self.enlarge_last(fpi)?;
            // Inodes come in whole blocks, so there may be more than have numbers, which newfs does not notice.
            let inodes = self.size.div_ceil(self.fpg).saturating_mul(self.ipg);
            if inodes <= INODES - self.inopb() {
                if best != self.fpg {
                    said.push(format!("Reduced frags per cylinder group from {best} to {} to enlarge last cyl group", self.fpg));
                }
                return Ok(self);
            }
            said.push(format!("density increased from {} to {}", fpi * self.fsize, (fpi + 1) * self.fsize));
            fpi += 1;
            let (fpg, ipg) = self.smallest(fpi);
            if self.cg_bytes(fpg, ipg) >= self.bsize {
                return Err(Error::TooLarge(self.size * self.fsize));
            }
        }
    }

    /// From the smallest group on, block by block.
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

    /// Takes blocks from every group but the last until that one has room for its own tables.
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
        let fields = u64::try_from(size_of::<Fs<LE>>()).unwrap_or(SBLOCKSIZE);
        let half = self.fpg / 2;
        let metaspace = match options.metaspace {
            Some(asked) if asked < half => asked,
            // newfs keeps half of what users may not take.
            _ => self.fpg * options.minfree / 200,
        };
        let geometry = Geometry {
            sector,
            dblkno: self.dblkno(self.ipg),
            ncg,
            cgsize: up(self.cg_bytes(self.fpg, self.ipg), self.fsize),
            cssize: up(ncg.saturating_mul(CSUM), self.fsize),
            sbsize: up(fields, self.fsize).min(SBLOCKSIZE).max(sector),
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
        // What readers ask of every file system.
        match 8 * geometry.frag {
            least if geometry.size < least => Err(Error::TooSmall { size: geometry.size, least }),
            _ => Ok(geometry),
        }
    }
}

/// newfs's corrections of a block and a fragment that do not go together.
fn legal(mut bsize: u64, mut fsize: u64, sector: u64, said: &mut Vec<String>) -> Result<(u64, u64), Error> {
    let (least, most) = (*BLOCK.start(), *BLOCK.end());
    if !bsize.is_power_of_two() {
        return Err(Error::Block(bsize));
    }
    if !fsize.is_power_of_two() {
        return Err(Error::Fragment(fsize));
    }
    // newfs compares with 512 here whatever the sector; readers then find fragments that cannot be read.
    if fsize < sector {
        said.push(format!("increasing fragment size from {fsize} to sector size ({sector})"));
        fsize = sector;
    }
    if bsize > most {
        said.push(format!("decreasing block size from {bsize} to maximum ({most})"));
        bsize = most;
    }
    if bsize < least {
        said.push(format!("increasing block size from {bsize} to minimum ({least})"));
        bsize = least;
    }
    if fsize > most {
        said.push(format!("decreasing fragment size from {fsize} to maximum ({most})"));
        fsize = most;
    }
    if bsize < fsize {
        said.push(format!("increasing block size from {bsize} to fragment size ({fsize})"));
        bsize = fsize;
    }
    if fsize * MAXFRAG < bsize {
        let raised = bsize / MAXFRAG;
        said.push(format!("increasing fragment size from {fsize} to block size / {MAXFRAG} ({raised})"));
        fsize = raised;
    }
    Ok((bsize, fsize))
}

/// Bytes of the largest extent (`-d`).
fn extent_size(bsize: u64, options: &Options, said: &mut Vec<String>) -> u64 {
    match options.max_extent.unwrap_or(bsize) {
        asked if asked < bsize || !asked.is_power_of_two() => {
            said.push(format!("Extent size set to {bsize}"));
            bsize
        }
        asked if asked > FS_MAXCONTIG * bsize => {
            said.push(format!("Extent size reduced to {}", FS_MAXCONTIG * bsize));
            FS_MAXCONTIG * bsize
        }
        asked => asked,
    }
}
