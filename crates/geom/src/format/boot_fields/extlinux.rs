//! The start that EXTLINUX and SYSLINUX note in a boot sector outside of FAT and NTFS.
//!
//! # On disk
//! The first sector of the volume has the name `SYSLINUX` or `EXTLINUX` at byte 3 and, as in FAT,
//! the sectors before the volume in 32 bits at byte 28. They count only where no MBR hands the
//! place over. The sectors of `ldlinux.sys` count from the volume.
//!
//! # Sources
//! Syslinux 6.04 `core/diskstart.inc`, `extlinux/main.c` (`patch_file_and_bootblock`).

use super::{HIDDEN, Moved};
use crate::base::patch::Patch;
use crate::base::topology::is_whole;

const NAMES: [&[u8]; 2] = [b"SYSLINUX", b"EXTLINUX"];
/// Bytes of the sectors that it counts.
const SECTOR: u64 = 512;

/// The write that adapts `first`, the first sector of a volume, to its new place; `None` if it
/// notes none, or noted a wrong one.
pub fn rebase(first: &[u8], moved: Moved) -> Option<Patch> {
    let is_named = NAMES.iter().any(|name| first.get(3..11) == Some(name));
    let says = first.get(HIDDEN)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))?;
    if !is_named || u64::from(says).checked_mul(SECTOR) != Some(moved.from) {
        return None;
    }
    let start = u32::try_from(moved.to / SECTOR).ok().filter(|_| is_whole(moved.to, SECTOR))?;
    Some(Patch::new(HIDDEN.start as u64, start.to_le_bytes().to_vec(), "EXTLINUX's start"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_was_right_is_right_again() {
        let mut first = vec![0; 512];
        first[3..11].copy_from_slice(b"SYSLINUX");
        first[28..32].copy_from_slice(&63u32.to_le_bytes());
        let moved = Moved { from: 63 * 512, to: 1 << 20, length: 1 << 20 };
        let patch = rebase(&first, moved).unwrap();
        assert_eq!((patch.offset, patch.bytes), (28, 2048u32.to_le_bytes().to_vec()));
        assert_eq!(rebase(&first, Moved { from: 64 * 512, ..moved }), None);
        first[3] = b'M';
        assert_eq!(rebase(&first, moved), None);
    }
}
