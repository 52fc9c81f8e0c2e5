//! What stands on a provider and does I/O from it: file systems, members of other systems' sets, encrypted volumes, swap.
//!
//! A recognised format is one file in `sign/`, a `mod` line and a line in [`FORMATS`], and a golden disk in `tests/disks/`.
//! A format answers with a [`Sign`]: its name, and what decides alignment inside it.

use crate::probe::Probe;

pub mod apfs;
pub mod btrfs;
pub mod erofs;
pub mod exfat;
pub mod ext;
pub mod f2fs;
pub mod fat;
pub mod hfsplus;
pub mod iso9660;
pub mod jfs;
pub mod nilfs2;
pub mod ntfs;
pub mod reiserfs;
pub mod squashfs;
pub mod swap;
pub mod udf;
pub mod ufs;
pub mod xfs;

/// A recogniser.
pub struct Format {
    /// The file it is in, for people: a format may answer with several kinds (`ext2`, `ext3`, `ext4`).
    pub name: &'static str,
    /// What it makes of a provider. Reads within the probe's budget, never trusts a number it read.
    pub recognise: fn(&Probe<'_>) -> Option<Sign>,
}

/// Every format, in the order of blkid's own list where it matters: what wraps others comes first.
pub static FORMATS: &[Format] = &[
    fat::FORMAT,
    swap::FORMAT,
    xfs::FORMAT,
    ext::FORMAT,
    reiserfs::FORMAT,
    jfs::FORMAT,
    udf::FORMAT,
    iso9660::FORMAT,
    hfsplus::FORMAT,
    ufs::FORMAT,
    ntfs::FORMAT,
    squashfs::FORMAT,
    btrfs::FORMAT,
    nilfs2::FORMAT,
    exfat::FORMAT,
    f2fs::FORMAT,
    apfs::FORMAT,
    erofs::FORMAT,
];

/// What was recognised on a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sign {
    /// blkid's TYPE: `ext4`, `xfs`, `LVM2_member`, `linux_raid_member`, `crypto_LUKS`, `vfat`, ...
    pub kind: &'static str,
    /// The byte of the provider at which the magic stands.
    pub magic: u64,
    /// How much of the inside is understood.
    pub inside: Inside,
    /// Its version, as its own tools print it.
    pub version: Option<String>,
    /// Its label.
    pub label: Option<String>,
    /// Its UUID or serial number, as blkid prints it.
    pub uuid: Option<String>,
    /// Bytes it says it covers, from the provider's byte 0.
    pub size: Option<u64>,
    /// The sector it was written for, in bytes, where it records one.
    pub sector: Option<u64>,
    /// The unit of its own I/O in bytes: block, cluster, page.
    pub block: Option<u64>,
    /// The smallest piece it writes by itself, if smaller than the block: a fragment, a log sector, a metadata block.
    pub piece: Option<Piece>,
    /// Where its data begin, if not at byte 0 in whole blocks.
    pub data: Option<Data>,
    /// The chunk of a striped set it was laid out for, in bytes.
    pub chunk: Option<u64>,
    /// The full stripe it was laid out for, in bytes.
    pub stripe: Option<u64>,
    /// Further facts for people, in its own tools' words: ("level", "raid5").
    pub details: Vec<(&'static str, String)>,
}

/// The smallest piece a format writes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Bytes.
    pub size: u64,
    /// What it is: "fragment", "log sector".
    pub name: &'static str,
}

/// An inner data area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Its first byte, from the provider's byte 0.
    pub offset: u64,
    /// Bytes; `None`: to the provider's end.
    pub length: Option<u64>,
    /// Whether the area shows its content as it is (RAID1, a bcache backing device), so that it can be tasted in turn.
    pub plain: bool,
}

/// How much of a format's inside is understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inside {
    /// Its blocks lie at multiples of [`Sign::block`] from byte 0, or from [`Sign::data`].
    #[default]
    Understood,
    /// It is what it is, but where its I/O falls is not known: why, in a few words. Never called aligned.
    Unknown(&'static str),
    /// Only its name is known, from somebody who looked; its blocks lie at multiples of a page from byte 0.
    /// Formats with a data area further in are [`Inside::Unknown`] when told.
    Told,
    /// It is never written in place (ISO 9660, squashfs): reads do not cost.
    ReadOnly,
}

impl Sign {
    /// A format recognised by the magic at that byte.
    pub fn new(kind: &'static str, magic: u64) -> Sign {
        Sign { kind, magic, ..Sign::default() }
    }
}

/// blkid TYPE names of formats that do I/O from byte 0 of their provider.
const FROM_ZERO: &[&str] = &["ext2", "ext3", "ext4", "xfs", "btrfs", "swap", "ntfs", "ufs", "reiserfs", "jfs", "nilfs2", "erofs"];
/// Others whose name may be told; where their data begin is not known without looking.
const FURTHER_IN: &[&str] = &[
    "vfat",
    "exfat",
    "f2fs",
    "LVM2_member",
    "linux_raid_member",
    "crypto_LUKS",
    "zfs_member",
    "bcache",
    "bcachefs",
    "BitLocker",
    "apfs",
    "hfsplus",
    "udf",
];
const READ_ONLY: &[&str] = &["iso9660", "squashfs"];

/// The sign that somebody else (udev, lsblk, a mount table) gives the name `kind`.
pub fn told(kind: &str) -> Sign {
    let known = |list: &[&'static str]| list.iter().find(|k| **k == kind).copied();
    let (kind, inside) = match (known(FROM_ZERO), known(FURTHER_IN), known(READ_ONLY)) {
        (Some(kind), ..) => (kind, Inside::Told),
        (_, Some(kind), _) => (kind, Inside::Unknown("where its data begin is not known without reading it: run as root")),
        (.., Some(kind)) => (kind, Inside::ReadOnly),
        _ => ("other", Inside::Unknown("a format that is known by name only")),
    };
    Sign { inside, ..Sign::new(kind, 0) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::probe::{Budget, Limits};
    use crate::route::Route;
    use crate::store::{Sparse, Store};

    /// What every format together makes of a disk of `length` bytes with `parts` on it.
    pub(crate) fn recognised(length: u64, parts: &[(u64, &[u8])]) -> Vec<Sign> {
        let mut disk = Sparse::new(length);
        for (at, bytes) in parts {
            disk.put(*at, bytes);
        }
        let stores: [Box<dyn Store>; 1] = [Box::new(disk)];
        let (route, budget) = (Route::store(0, length), Budget::new(Limits::default()));
        let probe = Probe::new(&route, &stores, &budget, 512, Some(0), None);
        FORMATS.iter().filter_map(|format| (format.recognise)(&probe)).collect()
    }

    /// Numbers as large and as small as they can be behind every magic: nothing may overflow, shift too far or read on.
    #[test]
    fn hostile_numbers_are_survived() {
        let magics: [(u64, &[u8]); 24] = [
            (0, b"XFSB"),
            (0, b"hsqs"),
            (0, b"\xfe\xed\xba\xbe"),
            (3, b"NTFS    "),
            (3, b"EXFAT   "),
            (32, b"NXSB"),
            (54, b"FAT16   "),
            (82, b"FAT32   "),
            (1024, b"\x10\x20\xf5\xf2"),
            (1024, b"\xe2\xe1\xf5\xe0"),
            (1024, b"H+\0\x04"),
            (1024, b"BD"),
            (1030, b"44"),
            (1080, b"\x53\xef"),
            (1148, b"H+"),
            (4086, b"SWAPSPACE2"),
            (9564, b"\x54\x19\x01\0"),
            (32768, b"JFS1"),
            (32768, b"\x01CD001"),
            (32769, b"NSR03"),
            (65588, b"ReIsEr2Fs\0"),
            (65600, b"_BHRfS_M"),
            (66908, b"\x19\x01\x54\x19"),
            (66908, b"\x19\x54\x01\x19"),
        ];
        for fill in [0, 1, 2, 9, 12, 0x7f, 0x80, 0xff] {
            let noise = vec![fill; 128 << 10];
            recognised(128 << 10, &[(0, &noise)]);
            for magic in magics {
                recognised(128 << 10, &[(0, &noise), magic]);
            }
        }
    }
}
