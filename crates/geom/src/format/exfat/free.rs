//! Free clusters of exFAT.
//!
//! # On disk
//! The root directory has an entry with the first cluster of the allocation bitmap, a bit a cluster
//! from cluster 2 on; it lies where the FAT leads from there. The boot sector says if the volume
//! was unmounted and if a medium failed; it is summed with the ten sectors behind it.
//!
//! # Limits
//! One FAT and one bitmap: those of TexFAT are refused. Clusters of the bitmap, of the up-case
//! table, of all directories and of all files have to be used: what the bitmap calls free is
//! believed only where the tree agrees. Bitmaps of up to [`BITMAP_BYTES`] are held in memory.
//!
//! # Sources
//! Microsoft "exFAT file system specification", sections 3.1, 4.1, 7.1 "Allocation Bitmap Directory
//! Entry" and 7.2 "Up-case Table Directory Entry".

use super::chains::Chains;
use super::tree::{Tree, count};
use super::{BootSector, ENTRY, REGION, checksum};
use crate::base::ondisk::on_disk;
use crate::base::patch::Read;
use crate::format::free_space::{Found, Unsure, clear_bits, damaged};
use std::ops::Range;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U32, U64};

on_disk! {
    /// The directory entry of an allocation bitmap or of an up-case table.
    struct DirectoryEntry of 32 bytes {
         0 => entry_type: u8,
         1 => bitmap_flags: u8,
         2 => skip: [u8; 18],
        20 => first_cluster: U32,
        24 => data_length: U64,
    }
}

const BITMAP: u8 = 0x81;
const UPCASE: u8 = 0x82;
/// Flags of the volume: its second FAT is in use, it is mounted, and its medium has failed.
const SECOND_FAT: u16 = 1;
const DIRTY: u16 = 2;
const FAILED: u16 = 4;
/// Least value of the FAT at the last cluster of a chain; the one before is a bad cluster.
const LAST: u32 = 0xffff_fff8;
/// Largest directory and largest up-case table, in bytes.
pub(super) const DIRECTORY: u64 = 256 << 20;
const TABLE: u64 = 1 << 20;
/// Largest allocation bitmap in bytes, for 2^29 clusters.
const BITMAP_BYTES: u64 = 64 << 20;
/// Bytes that are read at once.
const PIECE: u64 = 64 << 10;

/// Finds the free clusters of an exFAT on a provider of `length` bytes.
pub(super) fn free(length: u64, read: &mut Read<'_>, found: &mut Found<'_>) -> Result<(), Unsure> {
    let mut volume = Volume::read(length, read)?;
    let root = volume.chain(volume.root, DIRECTORY, read)?;
    let (bitmap, table) = volume.entries(&root, read)?;
    let bytes = volume.clusters.div_ceil(8);
    // Cards are sold whose bitmap is longer than what its clusters need.
    let whole = bitmap.data_length.get();
    let is_sound = (bytes..=bytes.saturating_add(volume.cluster)).contains(&whole);
    if !is_sound || table.data_length.get() > TABLE {
        return damaged("the length of its allocation bitmap or of its up-case table");
    }
    let chain = volume.chain(bitmap.first_cluster.get(), whole, read)?;
    let upcase = volume.chain(table.first_cluster.get(), table.data_length.get(), read)?;
    let clusters = |bytes: u64| bytes.div_ceil(volume.cluster);
    let is_long = (clusters(bytes)..=clusters(whole)).contains(&count(&chain));
    if !is_long || count(&upcase) != clusters(table.data_length.get()) {
        return damaged("the clusters of its allocation bitmap or of its up-case table");
    }
    let bits = volume.bitmap(&chain, bytes, read)?;
    let clusters = volume.clusters;
    let mut tree = Tree::new(&mut volume, &bits);
    if !tree.claim(&[root.as_slice(), &chain, &upcase].concat())? {
        return damaged("its allocation bitmap calls itself or the root directory free");
    }
    tree.walk(&root, read)?;
    let place = |cluster| volume.place(cluster);
    clear_bits(&bits, clusters, &mut |run| found(place(run.start)..place(run.end)));
    Ok(())
}

/// Numbers of a volume, checked; places and lengths are in bytes, clusters count from 0.
pub(super) struct Volume {
    pub(super) cluster: u64,
    pub(super) clusters: u64,
    heap: u64,
    root: u32,
    chains: Chains,
}

impl Volume {
    fn read(length: u64, read: &mut Read<'_>) -> Result<Volume, Unsure> {
        let mut bytes = vec![0; 512];
        read(0, &mut bytes).map_err(|errno| Unsure::Failed(0, errno))?;
        let Ok(boot) = BootSector::read_from_bytes(&bytes) else { return damaged("boot sector") };
        let (shift, more) = (boot.bytes_per_sector_shift, boot.sectors_per_cluster_shift);
        if boot.file_system_name != *b"EXFAT   " || !(9..=12).contains(&shift) || more > 25 - shift
        {
            return damaged("the size of its sectors or clusters");
        }
        bytes.resize(REGION << shift, 0);
        read(0, &mut bytes).map_err(|errno| Unsure::Failed(0, errno))?;
        let (summed, sums) = bytes.split_at((REGION - 1) << shift);
        let sum = checksum(summed).to_le_bytes();
        if sums.chunks_exact(4).any(|word| word != sum) {
            return damaged("the checksum of its boot sectors");
        }
        let flags = boot.volume_flags.get();
        if flags & DIRTY != 0 {
            return Err(Unsure::Unclean("its boot sector says so"));
        }
        if flags & FAILED != 0 {
            return damaged("its boot sector says that errors were met");
        }
        if boot.number_of_fats != 1 || flags & SECOND_FAT != 0 {
            return Err(Unsure::Unknown(format!("it has {} FATs", boot.number_of_fats)));
        }
        let sector = 1_u64 << shift;
        // All of these are products of numbers below 2^33 and 2^26.
        let [fat, fat_length, heap] = [boot.fat_offset, boot.fat_length, boot.cluster_heap_offset]
            .map(|sectors| u64::from(sectors.get()) * sector);
        let (cluster, clusters) = (sector << more, u64::from(boot.cluster_count.get()));
        let is_sound = fat >= 2 * REGION as u64 * sector
            && fat_length >= (clusters + 2) * 4
            && heap >= fat + fat_length
            && clusters > 0
            && boot
                .volume_length
                .get()
                .checked_mul(sector)
                .is_some_and(|all| all <= length && heap + clusters * cluster <= all);
        if !is_sound {
            return damaged("the numbers of its boot sector");
        }
        let root = boot.first_cluster_of_root_directory.get();
        let chains = Chains::new(fat, clusters + 2);
        Ok(Volume { cluster, clusters, heap, root, chains })
    }

    /// The byte at which a cluster begins.
    fn place(&self, cluster: u64) -> u64 {
        self.heap + cluster * self.cluster
    }

    /// The clusters from `first` on, as the FAT counts them, in runs; not more than `most` bytes.
    pub(super) fn chain(
        &mut self,
        first: u32,
        most: u64,
        read: &mut Read<'_>,
    ) -> Result<Vec<Range<u64>>, Unsure> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        self.visit(first, most, read, &mut |at| match runs.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            _ => runs.push(at..at + 1),
        })?;
        Ok(runs)
    }

    /// Calls `each` with the clusters from `first` on, as the FAT counts them; not more than `most`
    /// bytes. Returns their number.
    pub(super) fn visit(
        &mut self,
        first: u32,
        most: u64,
        read: &mut Read<'_>,
        each: &mut dyn FnMut(u64),
    ) -> Result<u64, Unsure> {
        let mut next = first;
        for nth in 1..=most.div_ceil(self.cluster).min(self.clusters) {
            let Some(at) = u64::from(next).checked_sub(2).filter(|&at| at < self.clusters) else {
                return damaged(format!("a chain of its FAT leads to {next}"));
            };
            each(at);
            next = self.chains.follow(next, read)?;
            if next >= LAST {
                return Ok(nth);
            }
        }
        damaged(format!("the chain of its FAT from cluster {first} is too long"))
    }

    /// The first `bytes` of the allocation bitmap with these clusters.
    fn bitmap(
        &self,
        chain: &[Range<u64>],
        bytes: u64,
        read: &mut Read<'_>,
    ) -> Result<Vec<u8>, Unsure> {
        if bytes > BITMAP_BYTES {
            return Err(Unsure::Unknown(format!("it has {} clusters", self.clusters)));
        }
        let (mut bits, mut done) = (vec![0; to_index(bytes)], 0);
        for part in self.parts(chain) {
            // The rest of its last cluster means nothing.
            let count = (part.end - part.start).min(bytes - done);
            let into = &mut bits[to_index(done)..to_index(done + count)];
            read(part.start, into).map_err(|errno| Unsure::Failed(part.start, errno))?;
            done += count;
            if done == bytes {
                break;
            }
        }
        Ok(bits)
    }

    /// The bytes of a chain, in parts of [`PIECE`].
    pub(super) fn parts(&self, chain: &[Range<u64>]) -> impl Iterator<Item = Range<u64>> {
        chain.iter().map(|run| self.place(run.start)..self.place(run.end)).flat_map(|run| {
            let starts = run.clone().step_by(to_index(PIECE));
            starts.map(move |at| at..run.end.min(at + PIECE))
        })
    }

    /// The entries of the allocation bitmap and of the up-case table in the root directory.
    fn entries(
        &self,
        root: &[Range<u64>],
        read: &mut Read<'_>,
    ) -> Result<(DirectoryEntry, DirectoryEntry), Unsure> {
        let (mut bitmaps, mut tables) = (Vec::new(), Vec::new());
        let mut piece = Vec::new();
        'all: for part in self.parts(root) {
            piece.resize(to_index(part.end - part.start), 0);
            read(part.start, &mut piece).map_err(|errno| Unsure::Failed(part.start, errno))?;
            for bytes in piece.chunks_exact(to_index(ENTRY)) {
                let Ok(entry) = DirectoryEntry::read_from_bytes(bytes) else { continue };
                match entry.entry_type {
                    // No entry follows.
                    0 => break 'all,
                    BITMAP if bitmaps.is_empty() && entry.bitmap_flags & 1 == 0 => {
                        bitmaps.push(entry);
                    }
                    UPCASE if tables.is_empty() => tables.push(entry),
                    BITMAP | UPCASE => return damaged("its root directory has two of a kind"),
                    _ => {}
                }
            }
        }
        match (bitmaps.pop(), tables.pop()) {
            (Some(bitmap), Some(table)) => Ok((bitmap, table)),
            _ => damaged("its root directory lacks its allocation bitmap or its up-case table"),
        }
    }
}

/// An index into bytes that are in memory, so it fits.
pub(super) fn to_index(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
