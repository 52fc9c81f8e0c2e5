//! Further checks where a magic is short, or is text that stands in other places too.

use super::SECTOR;
use crate::base::ondisk::on_disk;
use crate::probe::Probe;
use zerocopy::little_endian as le;

/// The `N` bytes at `at`, or zeroes past the end, for which no check holds.
fn bytes<const N: usize>(probe: &Probe<'_>, at: u64) -> [u8; N] {
    probe.bytes(at, N).and_then(|found| found.try_into().ok()).unwrap_or([0; N])
}

fn be32(probe: &Probe<'_>, at: u64) -> u32 {
    u32::from_be_bytes(bytes(probe, at))
}

/// True for a whole disk or a set; false for a partition.
pub(super) fn whole(probe: &Probe<'_>, _: u64) -> bool {
    probe.kind().is_none()
}

/// Types of Atari's partitions that are in use; any three letters would do for libblkid, and for
/// noise.
const ATARI: [&[u8; 3]; 8] = [b"GEM", b"BGM", b"XGM", b"LNX", b"SWP", b"RAW", b"MIX", b"UNX"];

/// Atari: an entry in use, of a known type and within the disk; `at` is the byte of the entry's
/// flags.
pub(super) fn atari(probe: &Probe<'_>, at: u64) -> bool {
    let sectors = probe.length() / SECTOR;
    let entry: [u8; 4] = bytes(probe, at);
    let end = u64::from(be32(probe, at + 4)) + u64::from(be32(probe, at + 8));
    let used = entry[0] & 1 == 1 && ATARI.iter().any(|kind| entry[1..] == kind[..]);
    let here = probe.sector() == SECTOR && whole(probe, at) && !probe.has(510, b"\x55\xaa");
    here && used && be32(probe, at + 4) > 0 && end <= sectors
}

/// Core Storage: version 1 and a volume's header, of which the magic and the kind of checksum
/// follow.
pub(super) fn core_storage(probe: &Probe<'_>, at: u64) -> bool {
    at.checked_sub(80).is_some_and(|head| probe.has(head, &[1, 0, 0x10, 0]))
}

/// XFS: a record of a log has a version, a length and a known byte order.
pub(super) fn xfs_log(probe: &Probe<'_>, at: u64) -> bool {
    let (version, length, order) =
        (be32(probe, at + 8), be32(probe, at + 12), be32(probe, at + 300));
    matches!(version, 1 | 2) && (1..=i32::MAX as u32).contains(&length) && matches!(order, 1..=3)
}

/// EXFS: a block of its own size.
pub(super) fn exfs(probe: &Probe<'_>, at: u64) -> bool {
    let block = be32(probe, at + 4);
    block.is_power_of_two() && (512..=65536).contains(&block)
}

/// HPFS: the spare superblock's magic, one sector on.
pub(super) fn hpfs(probe: &Probe<'_>, at: u64) -> bool {
    probe.has(at + 512, b"\x49\x18\x91\xf9")
}

/// Squashfs before version 4, in either byte order.
pub(super) fn squashfs3(probe: &Probe<'_>, at: u64) -> bool {
    let major: [u8; 2] = bytes(probe, at + 28);
    let little = probe.has(at, b"hsqs");
    let major = if little { u16::from_le_bytes(major) } else { u16::from_be_bytes(major) };
    (1..=3).contains(&major)
}

/// GFS2: the formats of the file system and of its locking.
pub(super) fn gfs2(probe: &Probe<'_>, at: u64) -> bool {
    (1801..=1899).contains(&be32(probe, at + 24)) && be32(probe, at + 28) == 1900
}

/// GFS: the formats of the first file system and of its locking.
pub(super) fn gfs(probe: &Probe<'_>, at: u64) -> bool {
    be32(probe, at + 24) == 1309 && be32(probe, at + 28) == 1401
}

/// BeFS: the other two magics of its superblock, in the byte order of the first.
pub(super) fn befs(probe: &Probe<'_>, at: u64) -> bool {
    let order =
        |big: &[u8; 4], at| probe.has(at, big) || probe.has(at, &[big[3], big[2], big[1], big[0]]);
    order(b"\xdd\x12\x10\x31", at + 36) && order(b"\x15\xb6\x83\x0e", at + 80)
}

on_disk! {
    /// Silicon Image's metadata, as far as it is read.
    struct Silicon of 320 bytes {
          0 => words: [le::U16; 159],
        318 => checksum: le::U16,
    }
}

/// Silicon Image: a disk's number below 8, and the checksum.
pub(super) fn silicon(probe: &Probe<'_>, at: u64) -> bool {
    let metadata = at.checked_sub(0x60).and_then(|at| probe.read::<Silicon>(at));
    let sums = |m: &Silicon| {
        m.words.iter().map(|w| w.get()).fold(m.checksum.get(), u16::wrapping_add) == 0
    };
    metadata.is_some_and(|m| m.words[0x116 / 2].get() & 0xff < 8 && sums(&m))
}

/// VIA: a version up to 2, and the sum of the first 50 bytes.
pub(super) fn via(probe: &Probe<'_>, at: u64) -> bool {
    let metadata: [u8; 51] = bytes(probe, at);
    let sum = metadata[..50].iter().copied().fold(0, u8::wrapping_add);
    metadata[2] <= 2 && sum == metadata[50]
}

/// Adaptec: the second magic.
pub(super) fn adaptec(probe: &Probe<'_>, at: u64) -> bool {
    probe.has(at + 256, b"DPTM")
}

on_disk! {
    /// On-disk metadata of JMicron's RAID.
    struct JMicron of 128 bytes {
        0 => words: [le::U16; 64],
    }
}

/// JMicron: the words add up to 0, or to 1 as some firmware leaves it.
pub(super) fn jmicron(probe: &Probe<'_>, at: u64) -> bool {
    let sum = |m: JMicron| m.words.iter().map(|w| w.get()).fold(0, u16::wrapping_add);
    probe.read(at).is_some_and(|m| sum(m) <= 1)
}
