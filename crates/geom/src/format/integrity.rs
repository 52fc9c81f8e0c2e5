//! dm-integrity: data with a tag for each block, standing between the data.
//!
//! # On disk
//! A superblock at byte 0, little-endian; a journal behind it; then, in turn, tags and the area of
//! data that they belong to. Sectors are of 512 bytes.
//!
//! # Topology
//! Data are passed on in whole blocks. Each area of data begins behind its tags, which take a
//! multiple of 4 KiB, of volumes older than version 4 of 128 KiB.
//!
//! # Limits
//! Tags are not verified; of the journal it is known if it holds writes, not which. Where they lie
//! on another device, or inside the sectors, the place of the data depends on what is not on this
//! disk, and is not known.
//!
//! # Sources
//! Linux `drivers/md/dm-integrity.c`, `struct superblock`, `calculate_device_limits`,
//! `get_data_sector`; `Documentation/admin-guide/device-mapper/dm-integrity.rst`.

use super::{Format, FormatKind, Inside, Sign};
use crate::base::ondisk::on_disk;
use crate::base::topology::round_up;
use crate::probe::Probe;
use zerocopy::little_endian::{U16, U32, U64};

pub mod journal;

use journal::Journal;

/// The format, for the registry.
pub struct Integrity;

/// The kind that blkid calls `DM_integrity`.
pub const KIND: FormatKind = FormatKind::new("DM_integrity", &Integrity);

impl Format for Integrity {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        let sb = read(probe, 0)?;
        let mut sign = Sign::new(KIND, 0);
        sign.version = Some(sb.version.to_string());
        let layout = match sb.layout(probe.length()) {
            Ok(layout) => layout,
            Err(why) => {
                sign.inside = Inside::Unknown(why.words());
                return Some(sign);
            }
        };
        sign.sector = Some(layout.block);
        sign.size = layout.end();
        sign.details.extend(layout.details());
        sign.data_at(probe, Some(layout.first), None, false);
        Some(sign)
    }
}

const MAGIC: &[u8; 8] = b"integrt\0";
const SECTOR: u64 = 512;
/// Areas of data, as powers of two of sectors.
const INTERLEAVE: std::ops::RangeInclusive<u8> = 3..=31;
/// Blocks of at most 4096 bytes.
const MOST_LOG2_SECTORS_PER_BLOCK: u8 = 3;
/// The newest version whose fields are known.
const NEWEST: u8 = 6;

/// Bits of the superblock's flags.
mod flag {
    pub(super) const HAVE_JOURNAL_MAC: u32 = 1;
    pub(super) const RECALCULATING: u32 = 2;
    pub(super) const DIRTY_BITMAP: u32 = 4;
    pub(super) const FIXED_PADDING: u32 = 8;
    pub(super) const INLINE: u32 = 0x20;
}

on_disk! {
    /// On-disk `struct superblock`, up to the salt.
    pub(crate) struct Superblock of 48 bytes {
         0 => magic: [u8; 8],
         8 => version: u8,
         9 => log2_interleave_sectors: u8,
        10 => integrity_tag_size: U16,
        12 => journal_sections: U32,
        16 => provided_data_sectors: U64,
        24 => flags: U32,
        28 => log2_sectors_per_block: u8,
        29 => log2_blocks_per_bitmap_bit: u8,
        30 => pad: [u8; 2],
        32 => recalc_sector: U64,
        40 => pad2: [u8; 8],
    }
}

/// Where the data of a volume lie, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// First byte of the data on the device: behind the journal and the first tags.
    pub first: u64,
    /// Length of an area of data; a power of two.
    pub area: u64,
    /// Length of the tags before each area.
    pub run: u64,
    /// Length of the whole volume.
    pub length: u64,
    /// Size of a block, to which a tag belongs: its logical sector.
    pub block: u64,
    /// Size of a tag.
    pub tag: u64,
    /// Journal behind the superblock.
    pub journal: Journal,
    /// State that its flags say besides, in a few words.
    pub state: Option<&'static str>,
}

/// Reason for which the place of a volume's data is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unplaced {
    /// Numbers that cannot all be right.
    Contradiction,
    /// A version that is newer than those known here.
    Newer,
    /// Tags in the metadata that a drive keeps with each sector.
    Inline,
    /// Tags on another device.
    Apart,
}

impl Unplaced {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Unplaced::Contradiction => {
                "its numbers contradict each other, or the size of what it stands on"
            }
            Unplaced::Newer => "a version of dm-integrity that is not known",
            Unplaced::Inline => {
                "its tags lie in the metadata of the drive's sectors, which an image has not"
            }
            Unplaced::Apart => "its tags and its data lie on two devices",
        }
    }
}

/// The superblock at byte `at`; `None` if there is none.
pub(crate) fn read(probe: &Probe<'_>, at: u64) -> Option<Superblock> {
    probe.read(at).filter(|sb: &Superblock| sb.magic == *MAGIC)
}

impl Superblock {
    /// Where the data lie on a device of `length` bytes; else the reason for which that is not
    /// known.
    pub(crate) fn layout(&self, length: u64) -> Result<Layout, Unplaced> {
        let log2_block = self.log2_sectors_per_block;
        let nothing = self.integrity_tag_size.get() == 0 || self.journal_sections.get() == 0;
        if self.version == 0 || nothing || log2_block > MOST_LOG2_SECTORS_PER_BLOCK {
            return Err(Unplaced::Contradiction);
        }
        if self.version > NEWEST {
            return Err(Unplaced::Newer);
        }
        if self.flags.get() & flag::INLINE != 0 {
            return Err(Unplaced::Inline);
        }
        if self.log2_interleave_sectors == 0 {
            return Err(Unplaced::Apart);
        }
        if !INTERLEAVE.contains(&self.log2_interleave_sectors) {
            return Err(Unplaced::Contradiction);
        }
        let layout = self.interleaved(log2_block).filter(|layout| layout.fits(length));
        layout.ok_or(Unplaced::Contradiction)
    }

    fn interleaved(&self, log2_block: u8) -> Option<Layout> {
        let has = |bit| self.flags.get() & bit != 0;
        let tag = u64::from(self.integrity_tag_size.get());
        let in_block = 1_u64 << log2_block;
        let sections = self.journal_sections.get().into();
        let journal = Journal::new(sections, in_block, tag, has(flag::HAVE_JOURNAL_MAC))?;
        let padding = if has(flag::FIXED_PADDING) { 4096 } else { 128 << 10 };
        let area = 1_u64.checked_shl(self.log2_interleave_sectors.into())?;
        let run = round_up(tag.checked_mul(area >> log2_block)?, padding)?;
        Some(Layout {
            first: journal.end()?.checked_add(run)?,
            area: area.checked_mul(SECTOR)?,
            run,
            length: self.provided_data_sectors.get().checked_mul(SECTOR)?,
            block: in_block * SECTOR,
            tag,
            journal,
            state: match () {
                () if has(flag::RECALCULATING) => Some("tags being made"),
                () if has(flag::DIRTY_BITMAP) => Some("not stopped in order"),
                () => None,
            },
        })
    }
}

impl Layout {
    /// The layout of a volume that stands on a device from byte `start` on; `None` past 2^64.
    pub(crate) fn from(self, start: u64) -> Option<Layout> {
        Some(Layout { first: self.first.checked_add(start)?, ..self })
    }

    /// The byte on the device of byte `offset` of the volume, and the bytes from there to the end
    /// of its area; `None` past 2^64.
    pub fn place(&self, offset: u64) -> Option<(u64, u64)> {
        let area = offset / self.area;
        let inside = offset % self.area;
        let begins = area.checked_mul(self.area.checked_add(self.run)?)?;
        Some((self.first.checked_add(begins)?.checked_add(inside)?, self.area - inside))
    }

    /// The end of the last byte on the device.
    fn end(&self) -> Option<u64> {
        self.place(self.length.checked_sub(1)?)?.0.checked_add(1)
    }

    fn fits(&self, length: u64) -> bool {
        self.end().is_some_and(|end| end <= length)
    }

    pub(super) fn details(&self) -> Vec<(&'static str, String)> {
        let mut details = vec![
            ("block", self.block.to_string()),
            ("tag", self.tag.to_string()),
            ("journal", self.journal.length().to_string()),
            ("area of data", self.area.to_string()),
            ("tags of an area", self.run.to_string()),
        ];
        details.extend(self.state.map(|state| ("state", state.to_owned())));
        details
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{disk, recognised};
    use super::*;

    /// A superblock of tags of 4 bytes to sectors of 512, of areas of 16 MiB and a volume of 50 MB.
    fn superblock() -> Vec<u8> {
        let mut sb = vec![0; 48];
        sb[..8].copy_from_slice(MAGIC);
        (sb[8], sb[9], sb[10], sb[12], sb[24]) = (5, 15, 4, 3, 8);
        sb[16..24].copy_from_slice(&100_000_u64.to_le_bytes());
        sb
    }

    #[test]
    fn areas_follow_their_tags() {
        let sb = superblock();
        let layout = |sb: &[u8], length| {
            read_sb(sb).layout(length).map(|layout| (layout.first, layout.run, layout.block))
        };
        // An entry of 24 bytes (8, 8 and 4 of a tag, rounded), 21 in a sector, 168 in a section of
        // 176 sectors: 8 + 3 * 176 sectors before the tags.
        let run = 4 << 15;
        let first = (8 + 3 * 176) * 512 + run;
        assert_eq!(layout(&sb, 64 << 20), Ok((first, run, 512)));
        let found = read_sb(&sb).layout(64 << 20).unwrap();
        assert_eq!(found.place(0), Some((first, 16 << 20)));
        assert_eq!(found.place((16 << 20) - 512), Some((first + (16 << 20) - 512, 512)));
        assert_eq!(found.place(16 << 20), Some((first + (16 << 20) + run, 16 << 20)));
        // The journal's checksum takes room from its sectors, old padding from the device.
        let mut old = sb.clone();
        old[24] = 1;
        assert_eq!(layout(&old, 64 << 20), Ok(((8 + 3 * 168) * 512 + run, run, 512)));
        old[10] = 5;
        assert_eq!(layout(&old, 64 << 20).unwrap().1, 256 << 10);
    }

    fn read_sb(bytes: &[u8]) -> Superblock {
        zerocopy::FromBytes::read_from_bytes(bytes).unwrap()
    }

    #[test]
    fn what_cannot_be_is_said() {
        let why = |at: usize, value: u8| {
            let mut sb = superblock();
            sb[at] = value;
            match recognised(&Integrity, disk(64 << 20, &[(0, &sb)])).unwrap().inside {
                Inside::Unknown(why) => why,
                inside => panic!("{at} {value}: {inside:?}"),
            }
        };
        for (at, value) in
            [(8, 0), (9, 2), (9, 32), (10, 0), (12, 0), (19, 1), (23, 1), (28, 4), (13, 255)]
        {
            assert!(why(at, value).contains("contradict"), "{at}");
        }
        assert!(why(8, 7).contains("version"));
        assert!(why(9, 0).contains("two devices"));
        assert!(why(24, 0x20).contains("drive's sectors"));
        // A tag for which no entry of the journal has room.
        assert!(why(11, 2).contains("contradict"));
    }
}
