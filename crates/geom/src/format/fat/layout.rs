//! Numbers of a FAT's boot sector, in bytes: read in one place for what recognises it, what
//! converts it, and what asks for its free space.

use super::{BootSector, FAT12_MAX, FAT16_MAX, FAT32_MAX};
use crate::base::resize::Resized;
use crate::table::Refusal;
use std::fmt;
use std::ops::RangeInclusive;

/// Bytes of a sector.
const SECTORS: RangeInclusive<u64> = 512..=4096;

/// Width of the entries of a FAT in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// Entries of FAT12, in 12 bits.
    Twelve,
    /// Entries of FAT16, in 16 bits.
    Sixteen,
    /// Entries of FAT32, in 28 bits of 32.
    ThirtyTwo,
}

impl Width {
    /// Bits of an entry.
    pub(super) fn bits(self) -> u64 {
        match self {
            Width::Twelve => 12,
            Width::Sixteen => 16,
            Width::ThirtyTwo => 32,
        }
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FAT{}", self.bits())
    }
}

/// Number of a boot sector that no FAT has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// Sectors that are no power of two from 512 to 4096 bytes.
    Sector,
    /// Clusters that are no power of two of sectors.
    Cluster,
    /// No reserved sector, not even that of the boot sector.
    Reserved,
    /// No copy of the FAT.
    Copies,
    /// FAT without a length.
    Fat,
    /// Volume that ends before its clusters.
    Size,
    /// More clusters than entries of this kind can count.
    Clusters,
    /// FAT without an entry for each cluster.
    Entries,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Flaw::Sector => "the size of its sectors",
            Flaw::Cluster => "the size of its clusters",
            Flaw::Reserved => "it has no reserved sector",
            Flaw::Copies => "it has no FAT",
            Flaw::Fat => "its FAT has no length",
            Flaw::Size => "it ends before its clusters",
            Flaw::Clusters => "it has more clusters than its FAT can count",
            Flaw::Entries => "its FAT is too short for its clusters",
        })
    }
}

/// Layout of a FAT, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) sector: u64,
    pub(super) cluster: u64,
    pub(super) reserved: u64,
    /// Number of copies of the FAT.
    pub(super) copies: u64,
    /// Bytes of one copy.
    pub(super) fat: u64,
    /// Entries of the root directory; 0 on FAT32.
    pub(super) root_entries: u64,
    /// Bytes of the root directory, in whole sectors.
    pub(super) root: u64,
    /// Bytes of the volume.
    pub(super) total: u64,
    /// Number of clusters that it has.
    pub(super) clusters: u64,
    pub(super) width: Width,
}

impl Layout {
    /// The layout that a boot sector describes. Errors: a number that no FAT has. That the FAT has
    /// an entry for each cluster is [`Layout::whole`].
    pub(super) fn read(boot: &BootSector) -> Result<Layout, Flaw> {
        let sector = u64::from(boot.byts_per_sec.get());
        if !sector.is_power_of_two() || !SECTORS.contains(&sector) {
            return Err(Flaw::Sector);
        }
        let either = |short: u16, long: u32| if short > 0 { u64::from(short) } else { long.into() };
        let is_wide = boot.fat_sz16.get() == 0;
        // All of these are products of numbers below 2^32, 2^12 and 2^8.
        let mut layout = Layout {
            sector,
            cluster: u64::from(boot.sec_per_clus) * sector,
            reserved: u64::from(boot.rsvd_sec_cnt.get()) * sector,
            copies: boot.num_fats.into(),
            fat: either(boot.fat_sz16.get(), boot.fat_sz32.get()) * sector,
            root_entries: boot.root_ent_cnt.get().into(),
            root: 0,
            total: either(boot.tot_sec16.get(), boot.tot_sec32.get()) * sector,
            clusters: 0,
            width: Width::ThirtyTwo,
        };
        let flaws = [
            (!boot.sec_per_clus.is_power_of_two(), Flaw::Cluster),
            (layout.reserved == 0, Flaw::Reserved),
            (layout.copies == 0, Flaw::Copies),
            (layout.fat == 0, Flaw::Fat),
        ];
        if let Some((_, flaw)) = flaws.into_iter().find(|(is_found, _)| *is_found) {
            return Err(flaw);
        }
        layout.root = (layout.root_entries * super::ENTRY).div_ceil(sector) * sector;
        let data = layout.total.checked_sub(layout.data()).ok_or(Flaw::Size)?;
        layout.clusters = data / layout.cluster;
        let (width, most) = match layout.clusters {
            _ if is_wide => (Width::ThirtyTwo, FAT32_MAX),
            0..=FAT12_MAX => (Width::Twelve, FAT12_MAX),
            _ => (Width::Sixteen, FAT16_MAX),
        };
        layout.width = width;
        if layout.clusters > most { Err(Flaw::Clusters) } else { Ok(layout) }
    }

    /// As [`Layout::read`], of a FAT that has an entry for each cluster.
    pub(super) fn whole(boot: &BootSector) -> Result<Layout, Flaw> {
        Layout::read(boot)
            .and_then(|layout| if layout.entries_fit() { Ok(layout) } else { Err(Flaw::Entries) })
    }

    /// First byte of the root directory of FAT12 and FAT16.
    pub(super) fn directory(&self) -> u64 {
        self.reserved + self.copies * self.fat
    }

    /// First byte of the clusters.
    pub(super) fn data(&self) -> u64 {
        self.directory() + self.root
    }

    /// First byte of cluster `n`; the first is 2.
    pub(super) fn at(&self, n: u64) -> u64 {
        self.data() + n.saturating_sub(2) * self.cluster
    }

    /// True if a copy of the FAT has an entry for every cluster.
    fn entries_fit(&self) -> bool {
        self.table() <= self.fat
    }

    /// Bytes of the entries of all clusters, and of the two that belong to none.
    pub(super) fn table(&self) -> u64 {
        ((self.clusters + 2) * self.width.bits()).div_ceil(8)
    }

    /// The boot sector's numbers for this layout in `boot`.
    pub(super) fn write(&self, boot: &mut BootSector, on: Resized) -> Result<(), Refusal> {
        let too_large = |what: &str| Refusal::new(format!("{what} does not fit its field"), "");
        let sectors = |bytes: u64| bytes / self.sector;
        let word = |value: u64, what: &str| u16::try_from(value).map_err(|_| too_large(what));
        let long = |value: u64, what: &str| u32::try_from(value).map_err(|_| too_large(what));
        let per_cluster = u8::try_from(sectors(self.cluster));
        boot.sec_per_clus = per_cluster.map_err(|_| too_large("its cluster"))?;
        boot.byts_per_sec = word(self.sector, "its sector")?.into();
        boot.rsvd_sec_cnt = word(sectors(self.reserved), "the number of reserved sectors")?.into();
        boot.root_ent_cnt = word(self.root_entries, "the size of the root directory")?.into();
        let (total, fat) = (sectors(self.total), sectors(self.fat));
        // The short field is for volumes that are small, and not of FAT32.
        let short = u16::try_from(total).ok().filter(|_| self.width != Width::ThirtyTwo);
        boot.tot_sec16 = short.unwrap_or(0).into();
        boot.tot_sec32 = if short.is_some() { 0 } else { long(total, "its size")? }.into();
        if self.width == Width::ThirtyTwo {
            boot.fat_sz32 = long(fat, "the size of a FAT")?.into();
        } else {
            boot.fat_sz16 = word(fat, "the size of a FAT")?.into();
        }
        // A 0 is written by tools that do not know where the volume begins.
        let hidden = u64::from(boot.hidd_sec.get());
        if let Some(start) = on.start(hidden, on.from).filter(|&start| start != 0) {
            boot.hidd_sec = long(start / self.sector, "the number of sectors before it")?.into();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromBytes;

    /// A FAT16 of 32 MiB with sectors of 512 bytes and clusters of four.
    fn boot() -> [u8; 512] {
        let mut boot = [0; 512];
        boot[11..24].copy_from_slice(&[0, 2, 4, 1, 0, 2, 0, 2, 0, 0, 0xf8, 128, 0]);
        boot[32..36].copy_from_slice(&65536_u32.to_le_bytes());
        boot
    }

    #[test]
    fn each_number_that_no_fat_has_is_named() {
        let read = |boot: &[u8; 512]| Layout::whole(&BootSector::read_from_bytes(boot).unwrap());
        let sound = read(&boot()).unwrap();
        assert_eq!((sound.width, sound.data(), sound.clusters), (Width::Sixteen, 289 * 512, 16311));
        for (at, with, wanted) in [
            (11, &[0][..], Ok(sound)),
            (12, &[0], Err(Flaw::Sector)),
            (12, &[3], Err(Flaw::Sector)),
            (12, &[32], Err(Flaw::Sector)),
            (13, &[0], Err(Flaw::Cluster)),
            (13, &[6], Err(Flaw::Cluster)),
            (14, &[0], Err(Flaw::Reserved)),
            (16, &[0], Err(Flaw::Copies)),
            (22, &[0], Err(Flaw::Fat)),
            (22, &[0xff, 0xff], Err(Flaw::Size)),
            (32, &[0; 4], Err(Flaw::Size)),
            (34, &[9], Err(Flaw::Clusters)),
            (22, &[1], Err(Flaw::Entries)),
        ] {
            let mut boot = boot();
            boot[at..at + with.len()].copy_from_slice(with);
            assert_eq!(read(&boot), wanted, "{at}");
        }
        // All numbers as large as can be.
        let _ = read(&[0xff; 512]);
    }
}
