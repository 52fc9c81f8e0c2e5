//! Formats, tables and members of firmware RAIDs that are known by their magic alone.
//!
//! Nothing here is understood inside: a name keeps a disk from being written over without a word,
//! and says what to look for. One row of `KNOWN` is one name. Rows are asked only where no class
//! and no other format answers; those of firmware RAIDs, whose metadata is at the end of a whole
//! disk and whose front is the set's, are a format of their own ([`Firmware`]).
//!
//! # On disk
//! The places and magics are in the table. A magic of two bytes, or one that text or another boot
//! sector has too, has a second check, as in libblkid: a checksum, or numbers that must agree.
//!
//! # Limits
//! An external log of XFS is looked for in its first 4096 bytes, not in 256 KiB. An Atari table is
//! recognised by the types in use. Labels and UUIDs are not read.
//!
//! # Sources
//! libblkid (util-linux 2.38 to 2.41) `superblocks/*.c`, `partitions/*.c` for names, places and
//! checks; each format's own headers: Linux `fs/*`, `block/partitions/*`, `include/uapi/linux/*`;
//! dmraid's `format/ataraid`. Compressed files: RFC 1952 (gzip), RFC 8878 (zstd), the
//! format descriptions of xz and LZ4, PKWARE APPNOTE (zip), bzip2's `compress.c`.

use super::{Data, Format, FormatKind, Inside, Sign, xfs};
use crate::probe::Probe;

mod check;

/// Everything but members of firmware RAIDs; asked where nothing else was recognised.
pub struct ByMagic;

/// Members of firmware RAIDs, for the registry.
pub struct Firmware;

impl Format for ByMagic {
    fn kinds(&self) -> Vec<FormatKind> {
        KNOWN.iter().chain(COMPRESSED).map(|known| known.kind).collect()
    }

    fn unpack(&self) -> Option<&'static str> {
        Some("unpack it")
    }

    fn by_name(&self, kind: FormatKind, _block: Option<u64>) -> Option<Inside> {
        KNOWN.iter().chain(COMPRESSED).find(|known| known.kind == kind).map(Known::inside)
    }

    /// The first row whose magic is there.
    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        KNOWN.iter().chain(COMPRESSED).find_map(|known| known.at(probe).map(|at| known.sign(at)))
    }
}

impl Format for Firmware {
    fn kinds(&self) -> Vec<FormatKind> {
        RAIDS.iter().map(|raid| raid.kind).collect()
    }

    fn by_name(&self, kind: FormatKind, _block: Option<u64>) -> Option<Inside> {
        RAIDS.iter().find(|raid| raid.kind == kind).map(Known::inside)
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        firmware(probe)
    }
}

/// The sign of a file that is compressed as a whole.
pub(crate) fn compressed(probe: &Probe<'_>) -> Option<Sign> {
    COMPRESSED.iter().find_map(|known| known.at(probe).map(|at| known.sign(at)))
}

/// The kind of a row of `KNOWN`.
pub(crate) const fn by_magic(name: &'static str) -> FormatKind {
    FormatKind::new(name, &ByMagic)
}

/// The kind of a row of `RAIDS`.
const fn member(name: &'static str) -> FormatKind {
    FormatKind::new(name, &Firmware)
}

/// Bytes of the sectors in which places are counted; libblkid's, whatever the device's are.
const SECTOR: u64 = 512;
/// Bytes below which libblkid looks for no firmware RAID.
const SMALLEST: u64 = 0x10000;

/// A place where a magic may stand.
#[derive(Clone, Copy)]
enum At {
    /// Bytes from the provider's byte 0.
    Byte(u64),
    /// Sectors of 512 bytes before the end, and bytes into the first of them.
    End(u64, u64),
}

/// One kind of contents, by magic.
struct Known {
    /// blkid's TYPE, or PTTYPE of a table.
    kind: FormatKind,
    /// Name in words, and the reason for which its inside is not judged.
    what: &'static str,
    /// Places and magics, of which one is enough.
    magics: &'static [(At, &'static [u8])],
    /// Further check, given the byte at which the magic stands.
    check: fn(&Probe<'_>, u64) -> bool,
}

/// A row of [`KNOWN`] or [`COMPRESSED`].
const fn known(
    name: &'static str,
    what: &'static str,
    magics: &'static [(At, &'static [u8])],
    check: fn(&Probe<'_>, u64) -> bool,
) -> Known {
    Known { kind: by_magic(name), what, magics, check }
}

/// A row of [`RAIDS`].
const fn raid(
    name: &'static str,
    magics: &'static [(At, &'static [u8])],
    check: fn(&Probe<'_>, u64) -> bool,
) -> Known {
    Known { kind: member(name), what: RAID, magics, check }
}

/// A magic long enough that nothing else has it.
fn alone(_: &Probe<'_>, _: u64) -> bool {
    true
}

const TABLE: &str =
    "a partition table that is not read here: where its partitions begin is not known";
const FILES: &str =
    "a file system that is known by its magic alone: where its blocks lie is not known";
const MEMBER: &str =
    "a member of a set that is known by its magic alone: where its data begin is not known";
const VOLUME: &str = "a volume that is known by its magic alone: where its data begin is not known";
const RAID: &str = "a member of a firmware RAID: what is on it is the set's, and its chunks and \
    their start are not known";
/// Read-only formats: nothing is written in place.
const READ_ONLY: [&str; 3] = ["cramfs", "romfs", "squashfs3"];

use At::{Byte, End};

/// Everything but firmware RAIDs, in libblkid's order where it matters.
#[rustfmt::skip]
static KNOWN: &[Known] = &[
    // Tables.
    known("aix", TABLE, &[(Byte(0), b"\xc9\xc2\xd4\xc1")], alone),
    known("ultrix", TABLE, &[(Byte(16312), b"\x57\x29\x03\0\x01\0\0\0")], alone),
    known("dasd", TABLE, &[
        (Byte(1028), b"\xe5\xd6\xd3\xf1"), (Byte(2052), b"\xe5\xd6\xd3\xf1"),
        (Byte(4100), b"\xe5\xd6\xd3\xf1"), (Byte(8196), b"\xe5\xd6\xd3\xf1"),
        (Byte(1024), b"\xd3\xd5\xe7\xf1"), (Byte(2048), b"\xd3\xd5\xe7\xf1"),
        (Byte(4096), b"\xd3\xd5\xe7\xf1"), (Byte(8192), b"\xd3\xd5\xe7\xf1"),
        (Byte(1024), b"\xc3\xd4\xe2\xf1"), (Byte(2048), b"\xc3\xd4\xe2\xf1"),
        (Byte(4096), b"\xc3\xd4\xe2\xf1"), (Byte(8192), b"\xc3\xd4\xe2\xf1"),
    ], check::whole),
    known("atari", TABLE, &[
        (Byte(454), b""), (Byte(466), b""), (Byte(478), b""), (Byte(490), b""),
    ], check::atari),
    known(
        "ldm",
        "a dynamic disk of Windows: its database, at the end, says where its volumes begin",
        &[(Byte(3072), b"PRIVHEAD")],
        alone,
    ),
    // Members of sets, volumes, encrypted volumes.
    known("ceph_bluestore", VOLUME, &[(Byte(0), b"bluestore block device")], alone),
    known("drbdmanage_control_volume", VOLUME, &[(Byte(0), b"$DRBDmgr=q")], alone),
    known("drbdproxy_datalog", VOLUME, &[(Byte(0), b"DRBDdlh*")], alone),
    known("LVM1_member", MEMBER, &[(Byte(0), b"HM\x01\0"), (Byte(0), b"HM\x02\0")], alone),
    known("DM_snapshot_cow", VOLUME, &[(Byte(0), b"SnAp")], alone),
    known("DM_verity_hash", VOLUME, &[(Byte(0), b"verity\0\0\x01\0\0\0")], alone),
    known("VMFS_volume_member", MEMBER, &[(Byte(1 << 20), b"\x0d\xd0\x01\xc0")], alone),
    known("ubi", MEMBER, &[(Byte(0), b"UBI#")], alone),
    known("stratis", MEMBER, &[(Byte(516), STRATIS), (Byte(4612), STRATIS)], alone),
    known("cs_fvault2", VOLUME, &[(Byte(88), b"CS\x01\0\0\0")], check::core_storage),
    known("mpool", MEMBER, &[(Byte(0), b"mpoolDev")], alone),
    known(
        "geli",
        "an encrypted volume of FreeBSD: its sectors are known to its key alone",
        &[(End(1, 0), b"GEOM::ELI"), (End(8, 0), b"GEOM::ELI")],
        alone,
    ),
    known("graid3", MEMBER, &[(End(1, 0), b"GEOM::RAID3"), (End(8, 0), b"GEOM::RAID3")], alone),
    known("gjournal", MEMBER, &[
        (End(1, 0), b"GEOM::JOURNAL"), (End(8, 0), b"GEOM::JOURNAL"),
    ], alone),
    known("gvirstor", MEMBER, &[
        (End(1, 0), b"GEOM::VIRSTOR"), (End(8, 0), b"GEOM::VIRSTOR"),
    ], alone),
    known("gshsec", MEMBER, &[(End(1, 0), b"GEOM::SHSEC"), (End(8, 0), b"GEOM::SHSEC")], alone),
    known("oracleasm", MEMBER, &[(Byte(32), b"ORCLDISK")], alone),
    // File systems.
    Known { kind: xfs::EXTERNAL_LOG, what: xfs::LOG, magics: &[
        (Byte(0), XLOG), (Byte(512), XLOG), (Byte(1024), XLOG), (Byte(1536), XLOG),
        (Byte(2048), XLOG), (Byte(2560), XLOG), (Byte(3072), XLOG), (Byte(3584), XLOG),
    ], check: check::xfs_log },
    known("exfs", FILES, &[(Byte(0), b"EXFS")], check::exfs),
    known("reiser4", FILES, &[(Byte(65536), b"ReIsEr4")], alone),
    known("hpfs", FILES, &[(Byte(8192), b"\x49\xe8\x95\xf9")], check::hpfs),
    known("sysv", FILES, &[
        (Byte(1016), b"\x20\x7e\x18\xfd"), (Byte(10232), b"\x20\x7e\x18\xfd"),
        (Byte(16376), b"\x20\x7e\x18\xfd"), (Byte(19448), b"\x20\x7e\x18\xfd"),
        (Byte(1016), b"\xfd\x18\x7e\x20"), (Byte(10232), b"\xfd\x18\x7e\x20"),
        (Byte(16376), b"\xfd\x18\x7e\x20"), (Byte(19448), b"\xfd\x18\x7e\x20"),
    ], alone),
    known("xenix", FILES, &[
        (Byte(2040), b"\x44\x55\x2b\0"), (Byte(2040), b"\0\x2b\x55\x44"),
        (Byte(2048), b"\x2b\x55\x44"), (Byte(2048), b"\x44\x55\x2b"),
    ], alone),
    known("ReFS", FILES, &[(Byte(0), b"\0\0\0ReFS\0")], alone),
    known("cramfs", FILES, &[
        (Byte(0), b"\x45\x3d\xcd\x28"), (Byte(0), b"\x28\xcd\x3d\x45"),
    ], alone),
    known("romfs", FILES, &[(Byte(0), b"-rom1fs-")], alone),
    known("squashfs3", FILES, &[(Byte(0), b"sqsh"), (Byte(0), b"hsqs")], check::squashfs3),
    known("gfs2", FILES, &[(Byte(65536), GFS)], check::gfs2),
    known("gfs", FILES, &[(Byte(65536), GFS)], check::gfs),
    known("ocfs", FILES, &[(Byte(8), b"OracleCFS"), (Byte(8192), b"OracleCFS")], alone),
    known("ocfs2", FILES, &[
        (Byte(1024), b"OCFSV2"), (Byte(2048), b"OCFSV2"), (Byte(4096), b"OCFSV2"),
        (Byte(8192), b"OCFSV2"),
    ], alone),
    known("vxfs", FILES, &[
        (Byte(1024), b"\xf5\xfc\x01\xa5"), (Byte(8192), b"\xa5\x01\xfc\xf5"),
    ], alone),
    known("nss", FILES, &[(Byte(4096), b"SPB5")], alone),
    known("ubifs", FILES, &[(Byte(0), b"\x31\x18\x10\x06")], alone),
    known("bfs", FILES, &[(Byte(0), b"\xce\xfa\xad\x1b")], alone),
    known("VMFS", FILES, &[(Byte(2 << 20), b"\x5e\xf1\xab\x2f")], alone),
    known("befs", FILES, &[
        (Byte(32), b"BFS1"), (Byte(32), b"1SFB"), (Byte(544), b"BFS1"), (Byte(544), b"1SFB"),
    ], check::befs),
    known("zonefs", FILES, &[(Byte(0), b"SFOZ")], alone),
];

const PACKED: &str =
    "a compressed file: what is in it was not looked at; decompress it and check that";

/// Compressed files, which blkid has no names for: an image is often kept as one.
#[rustfmt::skip]
static COMPRESSED: &[Known] = &[
    known("gzip", PACKED, &[(Byte(0), b"\x1f\x8b\x08")], alone),
    known("xz", PACKED, &[(Byte(0), b"\xfd7zXZ\0")], alone),
    known("zstd", PACKED, &[(Byte(0), b"\x28\xb5\x2f\xfd")], alone),
    known("bzip2", PACKED, &[(Byte(4), b"1AY&SY")], alone),
    known("lz4", PACKED, &[(Byte(0), b"\x04\x22\x4d\x18")], alone),
    known("zip", PACKED, &[(Byte(0), b"PK\x03\x04")], alone),
];

/// Kinds of compressed files, each with the ending of their names.
pub static ENDINGS: [(FormatKind, &str); 6] = [
    (by_magic("gzip"), "gz"),
    (by_magic("xz"), "xz"),
    (by_magic("zstd"), "zst"),
    (by_magic("bzip2"), "bz2"),
    (by_magic("lz4"), "lz4"),
    (by_magic("zip"), "zip"),
];

const STRATIS: &[u8] = b"!Stra0tis\x86\xff\x02^\x41rh";
const XLOG: &[u8] = b"\xfe\xed\xba\xbe";
const GFS: &[u8] = b"\x01\x16\x19\x70";
const PROMISE: &[u8] = b"Promise Technology, Inc.";

/// Members of firmware RAIDs: whole disks of at least 64 KiB.
#[rustfmt::skip]
static RAIDS: &[Known] = &[
    raid("lsi_mega_raid_member", &[(End(1, 0), b"$XIDE$")], alone),
    raid("via_raid_member", &[(End(1, 0), b"\x55\xaa")], check::via),
    raid("silicon_medley_raid_member", &[(End(1, 0x60), b"\0\0\0\x2f")], check::silicon),
    raid("nvidia_raid_member", &[(End(2, 0), b"NVIDIA")], alone),
    raid("promise_fasttrack_raid_member", &[
        (End(63, 0), PROMISE), (End(255, 0), PROMISE), (End(256, 0), PROMISE),
        (End(16, 0), PROMISE), (End(399, 0), PROMISE), (End(591, 0), PROMISE),
        (End(675, 0), PROMISE), (End(735, 0), PROMISE), (End(911, 0), PROMISE),
        (End(974, 0), PROMISE), (End(991, 0), PROMISE), (End(951, 0), PROMISE),
        (End(3087, 0), PROMISE),
    ], alone),
    raid("hpt45x_raid_member", &[
        (End(11, 0), b"\xf3\x16\x78\x5a"), (End(11, 0), b"\xfd\x16\x78\x5a"),
    ], alone),
    raid("hpt37x_raid_member", &[
        (Byte(4640), b"\xf0\x16\x78\x5a"), (Byte(4640), b"\xfd\x16\x78\x5a"),
    ], alone),
    raid("adaptec_raid_member", &[(End(1, 0), b"\x37\xfc\x4d\x1e")], check::adaptec),
    raid("jmicron_raid_member", &[(End(1, 0), b"JM")], check::jmicron),
];

impl At {
    /// The byte of a provider of `length` bytes; `None` where it is shorter.
    fn byte(self, length: u64) -> Option<u64> {
        match self {
            Byte(at) => Some(at),
            End(sectors, within) => Some((length / SECTOR).checked_sub(sectors)? * SECTOR + within),
        }
    }
}

impl Known {
    /// The place of its magic on a provider.
    fn at(&self, probe: &Probe<'_>) -> Option<u64> {
        let mut places = self
            .magics
            .iter()
            .filter_map(|(at, magic)| Some((at.byte(probe.length())?, magic)))
            .filter(|&(at, magic)| probe.reaches(at) && probe.has(at, magic))
            .map(|(at, _)| at);
        places.find(|&at| (self.check)(probe, at))
    }

    fn inside(&self) -> Inside {
        if READ_ONLY.contains(&self.kind.name) {
            Inside::ReadOnly
        } else {
            Inside::Unknown(self.what)
        }
    }

    fn sign(&self, at: u64) -> Sign {
        Sign { inside: self.inside(), ..Sign::new(self.kind, at) }
    }
}

/// A whole disk that is a member of a firmware RAID: its front, up to the metadata, is the set's.
fn firmware(probe: &Probe<'_>) -> Option<Sign> {
    if probe.kind().is_some() || probe.length() < SMALLEST {
        return None;
    }
    let (raid, at) = RAIDS.iter().find_map(|raid| Some((raid, raid.at(probe)?)))?;
    // Metadata near the front leaves what lies behind it to the set.
    let data = Data { offset: 0, length: Some(at).filter(|&at| at >= SMALLEST), plain: false };
    Some(Sign { data: Some(data), ..raid.sign(at) })
}

#[cfg(test)]
mod tests;
