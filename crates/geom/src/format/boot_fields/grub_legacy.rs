//! GRUB 0.97, which notes the sector of its second stage, and in that a list of sectors.
//!
//! # On disk
//! `stage1`, in the MBR or in the first sector of a partition, begins with a jump over 72 bytes,
//! has version 3 at byte 0x3e and the text `GRUB `, and keeps the sector of what it loads in 32
//! bits at byte 0x44, in sectors of 512 bytes from the start of the disk. A `stage1_5` in the
//! sectors behind the MBR finds the rest by partition number and file name, which a move leaves as
//! they are.
//!
//! # Sources
//! GRUB 0.97 `stage1/stage1.h` (`STAGE1_STAGE2_SECTOR`, `STAGE1_VER_MAJ_OFFS`), `stage1/stage1.S`.

use super::unmoved::{Loader, SECTOR, has, is_signed};
use std::ops::Range;

/// First bytes of `stage1`: the jump.
const JUMP: [u8; 2] = [0xeb, 0x48];
/// Place of the version of the interface, and its major number.
const MAJOR: usize = 0x3e;
const VERSION: u8 = 3;
/// Place of the sector of what it loads.
const STAGE2: usize = 0x44;

/// The loader, if `boot` is its first stage and loads sectors of the bytes `old` of the disk.
pub(super) fn left(boot: &[u8], old: &Range<u64>) -> Option<Loader> {
    let is_stage1 = boot.starts_with(&JUMP)
        && boot.get(MAJOR) == Some(&VERSION)
        && is_signed(boot)
        && has(boot, b"GRUB ");
    let sector = boot.get(STAGE2..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))?;
    let is_inside = old.contains(&u64::from(sector).saturating_mul(SECTOR));
    (is_stage1 && is_inside).then_some(Loader {
        name: "GRUB 0.97",
        notes: "the sectors of its second stage",
        after: "run grub-install after the move, before a restart, or in the shell of grub: root \
            (hd0,0), setup (hd0)",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_stage_in_what_moves_is_named() {
        let old = 63 * 512..1000 * 512;
        let mut boot = vec![0; 512];
        boot[..2].copy_from_slice(&JUMP);
        boot[MAJOR] = VERSION;
        boot[0x180..0x185].copy_from_slice(b"GRUB ");
        boot[510..].copy_from_slice(&[0x55, 0xaa]);
        for (sector, wanted) in
            [(63_u32, true), (999, true), (1, false), (1000, false), (!0, false)]
        {
            boot[STAGE2..STAGE2 + 4].copy_from_slice(&sector.to_le_bytes());
            assert_eq!(left(&boot, &old).is_some(), wanted, "{sector}");
        }
        boot[STAGE2..STAGE2 + 4].copy_from_slice(&63_u32.to_le_bytes());
        boot[MAJOR] = 2;
        assert_eq!(left(&boot, &old), None);
        assert_eq!(left(&boot[..STAGE2 + 3], &old), None);
    }
}
