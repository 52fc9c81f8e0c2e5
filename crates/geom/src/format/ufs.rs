//! UFS1 and UFS2, of either byte order.
//!
//! # On disk
//! The superblock is at 65536 (UFS2), 8192 (UFS1), 0 or 262144, in this order. Blocks and their
//! fragments are counted in fragments from byte 0. A file's last, partial block is written in
//! fragments, so a fragment below the physical sector costs even where everything is aligned.
//!
//! # Limits
//! The dialects of Sun, HP and SCO, whose magics differ, are not recognised.
//!
//! # Sources
//! FreeBSD `sys/ufs/ffs/fs.h` (`struct fs`, `SBLOCKSEARCH`), `sys/ufs/ffs/ffs_subr.c`
//! (`validate_sblock`).

use self::fs::{
    BLOCK, FS_MAGIC_AT, FS_UFS1_MAGIC, FS_UFS2_MAGIC, Fs, MAXFRAG, SBLOCK_UFS1, SBLOCK_UFS2,
};
use super::{Format, FormatKind, Inside, Piece, Sign};
use crate::base::ondisk;
use crate::probe::Probe;
use zerocopy::{BE, ByteOrder, LE, U32};

pub(crate) mod fs;

/// The format, for the registry.
pub struct Ufs;

/// The kind that blkid calls `ufs`.
pub const KIND: FormatKind = FormatKind::new("ufs", &Ufs);

impl Format for Ufs {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: FormatKind, block: Option<u64>) -> Option<Inside> {
        Some(Inside::from_zero(block))
    }

    fn keeps_to_its_size(&self) -> bool {
        true
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }

    fn is_made_here(&self, _kind: FormatKind, _length: u64) -> bool {
        true
    }

    fn enlarge(&self, _sign: &Sign, _piece: Piece, unit: u64) -> Option<String> {
        Some(format!("make it with fragments of at least the unit: newfs -f {unit}"))
    }
}

const SBLOCKSEARCH: [u64; 4] = [SBLOCK_UFS2, SBLOCK_UFS1, 0, 262_144];

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    SBLOCKSEARCH
        .into_iter()
        .filter(|&at| probe.reaches(at))
        .find_map(|at| superblock::<LE>(probe, at).or_else(|| superblock::<BE>(probe, at)))
}

/// The superblock at `at`, if there is one in this byte order.
fn superblock<O: ByteOrder>(probe: &Probe<'_>, at: u64) -> Option<Sign> {
    let magic = probe.read::<U32<O>>(at + FS_MAGIC_AT)?.get();
    if magic != FS_UFS1_MAGIC && magic != FS_UFS2_MAGIC {
        return None;
    }
    let fs: Fs<O> = probe.read(at)?;
    let (block, fragment) = (u64::from(fs.fs_bsize.get()), u64::from(fs.fs_fsize.get()));
    let place = fs.fs_sblockloc.get();
    // A copy in a cylinder group may stand where another file system would have its first: UFS1
    // with 64 KiB blocks has one at 65536, and UFS2 says where its first one is (0 by writers that
    // do not know the field).
    let copy =
        if magic == FS_UFS1_MAGIC { at == SBLOCKSEARCH[0] } else { place != at && place != 0 };
    let valid = block.is_power_of_two()
        && BLOCK.contains(&block)
        && fragment.is_power_of_two()
        && (512..=block).contains(&fragment)
        && block / fragment <= MAXFRAG
        && u64::from(fs.fs_frag.get()) == block / fragment;
    if copy || !valid {
        return None;
    }
    let fragments =
        if magic == FS_UFS1_MAGIC { u64::from(fs.fs_old_size.get()) } else { fs.fs_size.get() };
    let [time, random] = [fs.fs_id[0].get(), fs.fs_id[1].get()];
    let mut sign = Sign::new(KIND, at + FS_MAGIC_AT);
    sign.version = Some(if magic == FS_UFS1_MAGIC { "1" } else { "2" }.into());
    sign.label = if magic == FS_UFS2_MAGIC { ondisk::text(&fs.fs_volname) } else { None };
    sign.uuid = (time != 0 || random != 0).then(|| format!("{time:08x}{random:08x}"));
    sign.size = fragments.checked_mul(fragment);
    sign.block = Some(block);
    sign.piece = (fragment < block).then_some(Piece { size: fragment, name: "fragment" });
    Some(sign)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::everything;

    fn superblock(magic: u32, place: u64) -> Vec<u8> {
        let mut fs = vec![0; 1376];
        for (at, value) in [(36, 4096), (48, 65536), (52, 8192), (56, 8), (1372, magic)] {
            fs[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        fs[1000..1008].copy_from_slice(&place.to_le_bytes());
        fs
    }

    #[test]
    fn a_copy_is_not_the_first() {
        let (one, two) = (superblock(FS_UFS1_MAGIC, 8192), superblock(FS_UFS2_MAGIC, 65536));
        let first = |disk: &[(u64, &[u8])]| {
            everything(1 << 20, disk).first().map(|s| s.magic - FS_MAGIC_AT)
        };
        assert_eq!(first(&[(65536, &one), (8192, &one)]), Some(8192));
        assert_eq!(first(&[(65536, &one)]), None);
        assert_eq!(first(&[(262_144, &two)]), None);
        assert_eq!(first(&[(65536, &two)]), Some(65536));
    }

    #[test]
    fn a_superblock_whose_sizes_disagree_is_none() {
        let recognised = |at: usize, with: u32, place: u64| {
            let mut fs = superblock(FS_UFS2_MAGIC, place);
            fs[at..at + 4].copy_from_slice(&with.to_le_bytes());
            everything(1 << 20, &[(65536, &fs)]).len()
        };
        // As it is, also by a writer that does not record the place; then another `fs_frag`, and a
        // block no power of two.
        assert_eq!((recognised(56, 8, 65536), recognised(56, 8, 0)), (1, 1));
        assert_eq!((recognised(56, 4, 65536), recognised(48, 65535, 65536)), (0, 0));
        // 16 fragments in a block.
        let mut fs = superblock(FS_UFS2_MAGIC, 65536);
        fs[52..60].copy_from_slice(&[0, 16, 0, 0, 16, 0, 0, 0]);
        assert_eq!(everything(1 << 20, &[(65536, &fs)]), []);
    }
}
