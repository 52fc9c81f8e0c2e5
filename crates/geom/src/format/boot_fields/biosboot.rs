//! OpenBSD's first stage, which notes where on the disk the partition with `/boot` begins.
//!
//! # On disk
//! The first sector of the MBR slice, or of a disk without one. Since 2003 installboot writes into
//! it the first sector of the partition on the disk, the block of `/boot`'s inode and the sizes of
//! the file system; the code has the texts `Loading` and `ERR `. Before, it had a table of sectors
//! by cylinder and head, the text `loading /boot` and `boot` in its last four bytes.
//!
//! # Sources
//! OpenBSD `sys/arch/i386/stand/biosboot/biosboot.S` (1.4), `biosboot.8` (1.21);
//! `usr.sbin/installboot/i386_installboot.c` (`_p_offset`).

use super::unmoved::{Loader, has, is_signed};

/// The loader, if `first` is the first sector of a partition that it starts.
pub(super) fn left(first: &[u8]) -> Option<Loader> {
    let is_new = is_signed(first) && has(first, b"Loading") && has(first, b"ERR ");
    let is_old = first.get(508..512) == Some(b"boot") && has(first, b"loading /boot");
    (is_new || is_old).then_some(Loader {
        name: "OpenBSD's biosboot",
        notes: "the sector at which its partition begins",
        after: "start the installation medium (bsd.rd) after the move, mount the root on /mnt, \
            and run installboot -r /mnt sd0",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sector(texts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut sector = vec![0; 512];
        for (at, text) in texts {
            sector[*at..at + text.len()].copy_from_slice(text);
        }
        sector
    }

    #[test]
    fn both_generations_are_known() {
        let signed: (usize, &[u8]) = (510, &[0x55, 0xaa]);
        let new = sector(&[(0x160, b"!Loading"), (0x170, b"ERR "), signed]);
        let old = sector(&[(0x20, b"loading /boot"), (508, b"boot")]);
        assert!(left(&new).is_some() && left(&old).is_some());
        for other in [
            sector(&[(0x160, b"!Loading"), (0x170, b"ERR ")]),
            sector(&[(0x160, b"!Loading"), signed]),
            sector(&[(508, b"boot")]),
            new[..500].to_vec(),
            Vec::new(),
        ] {
            assert_eq!(left(&other), None);
        }
    }
}
