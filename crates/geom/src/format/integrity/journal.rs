//! The journal of dm-integrity: where it lies, and if it holds writes.
//!
//! # On disk
//! Sections, each of eight sectors of entries with the data of these entries behind them. An entry
//! names a sector of the volume, or none. A sector ends with the number of its commit, and before
//! that with a part of a checksum if the journal has one.
//!
//! A volume that is stopped in order writes what its journal holds to its place, and leaves no
//! entry in use. An encrypted journal looks as if all were.
//!
//! # Sources
//! Linux `drivers/md/dm-integrity.c`, `struct journal_sector`, `struct journal_entry`,
//! `calculate_journal_section_size`.

use super::SECTOR;
use crate::base::finding::{self, Finding, Severity};
use crate::base::topology::round_up;
use crate::probe::{Blind, Probe};

/// Length of the superblock in bytes; the journal begins behind it.
const SUPERBLOCK: u64 = 4096;
/// Sectors of a section that hold entries.
const BLOCK_SECTORS: u64 = 8;
/// Bytes of the entries of a section, and of one of its sectors.
const BLOCK: usize = 4096;
const ENTRIES: usize = 512;
/// Bytes of such a sector before the number of its commit.
const SECTOR_DATA: u64 = SECTOR - 8;
/// Bytes of it that a checksum of the journal takes.
const MAC_PER_SECTOR: u64 = 8;
/// High half of the sector that an unused entry names.
const UNUSED: [u8; 4] = [0xff; 4];

/// Journal of a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    sections: u64,
    /// Length of a section in bytes.
    section: u64,
    /// Length of an entry in bytes.
    entry: u64,
    /// Entries in a sector.
    in_sector: u64,
}

impl Journal {
    /// The journal of so many sections, for blocks of `in_block` sectors with tags of `tag` bytes,
    /// with or without checksums; `None` if no entry fits.
    pub(super) fn new(sections: u64, in_block: u64, tag: u64, has_mac: bool) -> Option<Journal> {
        // Every entry keeps the last 8 bytes of each sector of its block.
        let entry = round_up(8 + 8 * in_block + tag, 8)?;
        let mac = if has_mac { MAC_PER_SECTOR } else { 0 };
        let in_sector = (SECTOR_DATA - mac) / entry;
        let section = (in_sector * BLOCK_SECTORS * in_block + BLOCK_SECTORS) * SECTOR;
        section.checked_mul(sections)?;
        (in_sector > 0).then_some(Journal { sections, section, entry, in_sector })
    }

    /// Length of the journal in bytes.
    pub fn length(&self) -> u64 {
        self.section.saturating_mul(self.sections)
    }

    /// The byte behind it, from the superblock's; `None` past 2^64.
    pub(super) fn end(&self) -> Option<u64> {
        self.length().checked_add(SUPERBLOCK)
    }

    /// The finding about a journal that holds writes, or that cannot be read; `None` for one that
    /// holds none. The superblock stands at byte `start`.
    pub(crate) fn finding(&self, probe: &Probe<'_>, start: u64) -> Option<Finding> {
        let message = match self.holds_writes(probe, start) {
            Ok(false) => return None,
            Ok(true) => {
                "it was not stopped in order: its journal holds writes that may not be in their places, and what is read there is older"
            }
            Err(_) => {
                "its journal cannot be read: writes in it may not be in their places, and what is read there is older"
            }
        };
        let finding = Finding::new(&finding::UNREAD, Severity::Warning, start, message.into());
        Some(finding.fix(
            "open it once with the tool that made it, and close it: the kernel writes what the \
            journal holds to its place",
        ))
    }

    /// True if an entry is in use.
    fn holds_writes(&self, probe: &Probe<'_>, start: u64) -> Result<bool, Blind> {
        let (mut block, mut at) = ([0; BLOCK], start.saturating_add(SUPERBLOCK));
        for _ in 0..self.sections {
            probe.map(at, &mut block)?;
            // One that was never written is all zero.
            if block != [0; BLOCK] && block.chunks_exact(ENTRIES).any(|sector| self.is_used(sector))
            {
                return Ok(true);
            }
            at = at.saturating_add(self.section);
        }
        Ok(false)
    }

    fn is_used(&self, sector: &[u8]) -> bool {
        let (size, count) = (usize::try_from(self.entry), usize::try_from(self.in_sector));
        let (Ok(size @ 8..), Ok(count)) = (size, count) else { return false };
        sector.chunks_exact(size).take(count).any(|entry| entry[4..8] != UNUSED)
    }
}
