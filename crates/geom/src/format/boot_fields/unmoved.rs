//! Boot loaders that note sectors of a disk, and that a move does not rewrite: they are named
//! before it begins, with what makes them right again.

use super::{biosboot, bootmgr, grub, grub_legacy, lilo};
use crate::base::error::Errno;
use crate::base::patch::Read;
use std::fmt;
use std::ops::Range;

/// Bytes of the sectors that boot loaders count.
pub(super) const SECTOR: u64 = 512;
/// Last bytes of a sector that a BIOS starts.
const SIGNED: [u8; 2] = [0x55, 0xaa];
/// Most boot sectors that are read of one move.
const MOST: usize = 256;

/// Boot loader that a move leaves as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loader {
    /// Name of the boot loader.
    pub name: &'static str,
    /// Fact that it notes, as the rest of a sentence.
    pub notes: &'static str,
    /// Advice for the time after the move.
    pub after: &'static str,
}

impl fmt::Display for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} notes {}, which is not rewritten: {}", self.name, self.notes, self.after)
    }
}

/// Move of a partition, as far as boot loaders depend on it.
#[derive(Clone, Copy, Debug)]
pub struct Leaving<'a> {
    /// First sector of the disk.
    pub disk: &'a [u8],
    /// Length of the disk in bytes.
    pub length: u64,
    /// Logical sector of the disk in bytes.
    pub sector: u64,
    /// Bytes of the disk that move.
    pub old: &'a Range<u64>,
    /// First bytes of the partition that moves, and of those inside it, on the disk.
    pub starts: &'a [u64],
}

/// True if a BIOS would start `sector`.
pub(super) fn is_signed(sector: &[u8]) -> bool {
    sector.get(510..512) == Some(&SIGNED)
}

/// True if `text` stands in `sector`.
pub(super) fn has(sector: &[u8], text: &[u8]) -> bool {
    sector.windows(text.len()).any(|part| part == text)
}

/// Boot loaders of the disk, and of what moves, that the move leaves wrong; each once. `read` reads
/// the disk. Errors: a failed read.
pub fn unmoved(leaving: Leaving<'_>, read: &mut Read<'_>) -> Result<Vec<Loader>, Errno> {
    let Leaving { disk, length, sector, old, starts } = leaving;
    let mut found = Vec::new();
    found.extend(lilo::left(disk));
    found.extend(grub_legacy::left(disk, old));
    let is_started_by_windows = bootmgr::start(disk, length, sector, read)?;
    for &start in starts.iter().take(MOST) {
        let mut first = [0; 512];
        if start.checked_add(SECTOR).is_none_or(|end| end > length) {
            continue;
        }
        read(start, &mut first)?;
        found.extend(lilo::left(&first));
        found.extend(grub_legacy::left(&first, old));
        found.extend(biosboot::left(&first));
        if start == old.start {
            let mut inside = |at: u64, out: &mut [u8]| read(start.saturating_add(at), out);
            found.extend(grub::left(&first, old, &mut inside)?);
        }
        found.extend(bootmgr::left(&first, start, is_started_by_windows));
    }
    let mut once: Vec<Loader> = Vec::new();
    for loader in found {
        if !once.contains(&loader) {
            once.push(loader);
        }
    }
    Ok(once)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk of 1 MiB whose partition at sector 63 begins with `first`, and its MBR.
    fn named(mbr: &[u8], first: &[u8], starts: &[u64]) -> Vec<&'static str> {
        let mut disk = vec![0; 1 << 20];
        disk[..mbr.len()].copy_from_slice(mbr);
        disk[63 * 512..][..first.len()].copy_from_slice(first);
        let mut read = |at: u64, out: &mut [u8]| {
            let at = usize::try_from(at).unwrap();
            out.copy_from_slice(disk.get(at..at + out.len()).ok_or(Errno::Range)?);
            Ok(())
        };
        let old = 63 * 512..1000 * 512;
        let leaving = Leaving { disk: mbr, length: 1 << 20, sector: 512, old: &old, starts };
        let found = unmoved(leaving, &mut read).unwrap();
        found.into_iter().map(|loader| loader.name).collect()
    }

    fn signed(at: usize, text: &[u8]) -> Vec<u8> {
        let mut sector = vec![0; 512];
        sector[at..at + text.len()].copy_from_slice(text);
        sector[510..].copy_from_slice(&SIGNED);
        sector
    }

    #[test]
    fn each_is_named_once_wherever_it_is() {
        let empty = vec![0; 512];
        let lilo = signed(6, b"LILO");
        assert_eq!(named(&lilo, &lilo, &[63 * 512]), ["LILO"]);
        assert_eq!(named(&empty, &lilo, &[63 * 512]), ["LILO"]);
        assert_eq!(named(&empty, &lilo, &[]), [""; 0]);
        let biosboot = signed(0x150, b"!Loading\0ERR \0");
        assert_eq!(named(&empty, &biosboot, &[63 * 512]), ["OpenBSD's biosboot"]);
        // In the first sector of the disk it would be the MBR of a BSD, which reads the table.
        assert_eq!(named(&biosboot, &empty, &[63 * 512]), [""; 0]);
    }

    #[test]
    fn places_past_the_end_are_passed_over() {
        let empty = vec![0; 512];
        assert_eq!(named(&empty, &empty, &[u64::MAX, (1 << 20) - 511, 1 << 20]), [""; 0]);
    }
}
