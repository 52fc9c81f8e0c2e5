//! Numbers of a FAT's boot sector, in bytes.

use super::{BootSector, FAT12_MAX, FAT16_MAX};
use crate::base::resize::Resized;
use crate::table::Refusal;

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
    /// The layout that a boot sector describes; `None` for one that was not recognised.
    pub(super) fn read(boot: &BootSector) -> Option<Layout> {
        let sector = u64::from(boot.byts_per_sec.get());
        let either = |short: u16, long: u32| if short > 0 { u64::from(short) } else { long.into() };
        let is_wide = boot.fat_sz16.get() == 0;
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
        layout.root = (layout.root_entries * super::ENTRY).div_ceil(sector.max(1)) * sector;
        layout.clusters = layout.total.checked_sub(layout.data())?.checked_div(layout.cluster)?;
        if !is_wide {
            layout.width =
                if layout.clusters <= FAT12_MAX { Width::Twelve } else { Width::Sixteen };
        }
        let fits = is_wide || layout.clusters <= FAT16_MAX;
        (fits && layout.entries_fit()).then_some(layout)
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
        let bits = match self.width {
            Width::Twelve => 12,
            Width::Sixteen => 16,
            Width::ThirtyTwo => 32,
        };
        ((self.clusters + 2) * bits).div_ceil(8) <= self.fat
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
