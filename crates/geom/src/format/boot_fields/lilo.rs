//! LILO, which finds its map file, and by that every kernel, by sectors of the disk.
//!
//! # On disk
//! The boot sector, of the disk or of a partition, has the text `LILO` at byte 6; at byte 2 in
//! versions before 20. Sectors of the second stage and of the map follow, as linear addresses or
//! as cylinder, head and sector; the map has those of the kernels. A move may leave all of them
//! wrong, wherever the sector itself is.
//!
//! # Sources
//! LILO 24 `src/first.S`, `src/common.h` (`BOOT_PARAMS_1`); ms-sys 2.8 `src/br.c` (`is_lilo_br`).

use super::unmoved::{Loader, is_signed};

const NAME: &[u8] = b"LILO";
/// Bytes at which the name stands, in new versions and in old ones.
const PLACES: [usize; 2] = [6, 2];

/// The loader, if `boot` is a boot sector of it.
pub(super) fn left(boot: &[u8]) -> Option<Loader> {
    let is_named = |at: usize| boot.get(at..at + NAME.len()) == Some(NAME);
    (is_signed(boot) && PLACES.into_iter().any(is_named)).then_some(Loader {
        name: "LILO",
        notes: "the sectors of its map and of the kernels",
        after: "run lilo after the move, before a restart, or from a rescue system (lilo -r)",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_stands_in_its_place_of_a_boot_sector() {
        for (at, wanted) in [(6, true), (2, true), (5, false), (7, false), (300, false)] {
            let mut boot = vec![0; 512];
            boot[at..at + 4].copy_from_slice(NAME);
            assert_eq!(left(&boot), None);
            boot[510..].copy_from_slice(&[0x55, 0xaa]);
            assert_eq!(left(&boot).is_some(), wanted, "{at}");
            assert_eq!(left(&boot[..511]), None);
        }
        assert_eq!(left(&[]), None);
    }
}
