//! The extents of a file, as reported by its file system.
//!
//! Preallocated blocks that were never written are no data. Yet lseek(2) reports data there while
//! their pages are cached: after one read, SEEK_DATA sees a file full of data.
//!
//! # Limits
//! Regular files on file systems that report extents: ext4, XFS, Btrfs, F2FS and others; not tmpfs,
//! FUSE and overlays of them.
//!
//! # Sources
//! Linux `Documentation/filesystems/fiemap.rst`, `include/uapi/linux/fiemap.h`.

#![allow(unsafe_code, reason = "an ioctl that no safe wrapper has")]

use super::file::Medium;
use crate::error::Error;
use rustix::fd::AsFd;
use rustix::io;
use rustix::ioctl::{Direction, Opcode, Updater, opcode};
use std::path::Path;
use trueline_geom::base::store::Store;

/// `_IOWR('f', 11, struct fiemap)`: the size is that of the head alone.
const FS_IOC_FIEMAP: Opcode =
    opcode::from_components(Direction::ReadWrite, b'f', 11, size_of::<Head>());
/// `FIEMAP_FLAG_SYNC`: dirty pages are written first, so that their extents no longer count as
/// unwritten.
const SYNC: u32 = 1;
/// The flags `FIEMAP_EXTENT_LAST` and `FIEMAP_EXTENT_UNWRITTEN`.
const LAST: u32 = 1;
const UNWRITTEN: u32 = 0x800;
/// Extents in one call, and the most calls: of a file in more extents, the first ones are counted.
const AT_ONCE: usize = 256;
const TIMES: usize = 256;

/// `struct fiemap` without its extents.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Head {
    fm_start: u64,
    fm_length: u64,
    fm_flags: u32,
    fm_mapped_extents: u32,
    fm_extent_count: u32,
    fm_reserved: u32,
}

/// One extent, `struct fiemap_extent`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Extent {
    fe_logical: u64,
    fe_physical: u64,
    fe_length: u64,
    fe_reserved64: [u64; 2],
    fe_flags: u32,
    fe_reserved: [u32; 3],
}

/// `struct fiemap` with space for the answer.
#[repr(C)]
struct Map {
    head: Head,
    extents: [Extent; AT_ONCE],
}

/// Bytes among the first `length` of a file that were never written: holes, and preallocated ones.
/// `None` if the file system does not report extents.
pub(crate) fn never_written(file: impl AsFd, length: u64) -> Option<u64> {
    let (mut at, mut written) = (0, 0u64);
    for _ in 0..TIMES {
        if at >= length {
            break;
        }
        let extents = extents(&file, at, length - at).ok()?;
        for extent in extents.iter().filter(|extent| extent.fe_flags & UNWRITTEN == 0) {
            let end = extent.fe_logical.saturating_add(extent.fe_length).min(length);
            written = written.saturating_add(end.saturating_sub(extent.fe_logical.max(at)));
        }
        match extents.last().filter(|last| last.fe_flags & LAST == 0) {
            // An extent that ends at the queried position would be returned again.
            Some(last) => at = last.fe_logical.saturating_add(last.fe_length).max(at + 1),
            None => return Some(length.saturating_sub(written)),
        }
    }
    // Bytes that were not queried count as written.
    Some(at.min(length).saturating_sub(written))
}

/// A run of a file's bytes that lies in one piece on its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRun {
    /// The first byte in the file.
    pub start: u64,
    /// The first byte on the device that has the file system.
    pub on_device: u64,
    /// The length in bytes.
    pub length: u64,
}

/// The flags of extents whose place on the device is not known, or not that of their bytes:
/// `FIEMAP_EXTENT_UNKNOWN`, `_DELALLOC`, `_ENCODED`, `_DATA_ENCRYPTED`, `_NOT_ALIGNED`,
/// `_DATA_INLINE`, `_DATA_TAIL`.
const ELSEWHERE: u32 = 0x2 | 0x4 | 0x8 | 0x80 | 0x100 | 0x200 | 0x400;
/// File systems whose extents name bytes of their device: ext2, ext3, ext4, and XFS
/// (`include/uapi/linux/magic.h`). Those of Btrfs name bytes of a volume.
const PLAIN: [u64; 2] = [0xef53, 0x5846_5342];

/// The longest run among the first extents of a file; `None` if its file system does not say where
/// on its device bytes lie.
pub fn longest(medium: &Medium) -> Option<DeviceRun> {
    let (file, length) = (medium.fd(), medium.length());
    let kind = rustix::fs::fstatfs(file).ok()?.f_type;
    PLAIN.contains(&u64::try_from(kind).ok()?).then_some(())?;
    let (mut at, mut best, mut run) = (0, None, None::<DeviceRun>);
    for _ in 0..TIMES {
        let extents = extents(file, at, length.checked_sub(at)?).ok()?;
        for extent in extents.iter().filter(|extent| extent.fe_flags & ELSEWHERE == 0) {
            let (start, on_device) = (extent.fe_logical, extent.fe_physical);
            let own = extent.fe_length.min(length.saturating_sub(start));
            let goes_on = |run: &DeviceRun| {
                run.start.checked_add(run.length) == Some(start)
                    && run.on_device.checked_add(run.length) == Some(on_device)
            };
            let next = match run.filter(goes_on) {
                Some(run) => DeviceRun { length: run.length.checked_add(own)?, ..run },
                None => DeviceRun { start, on_device, length: own },
            };
            run = Some(next);
            best = best.filter(|best: &DeviceRun| best.length >= next.length).or(run);
        }
        match extents.last().filter(|last| last.fe_flags & LAST == 0) {
            Some(last) => at = last.fe_logical.saturating_add(last.fe_length).max(at + 1),
            None => break,
        }
    }
    best
}

/// The first extents in `length` bytes from `start` on.
fn extents(file: impl AsFd, start: u64, length: u64) -> io::Result<Vec<Extent>> {
    let count = u32::try_from(AT_ONCE).unwrap_or_default();
    let head = Head {
        fm_start: start,
        fm_length: length,
        fm_flags: SYNC,
        fm_extent_count: count,
        ..Head::default()
    };
    let mut map = Map { head, extents: [Extent::default(); AT_ONCE] };
    // SAFETY: FS_IOC_FIEMAP reads the head and writes no more than `fm_extent_count` extents behind
    // it, for which `Map` has room.
    unsafe { rustix::ioctl::ioctl(file, Updater::<FS_IOC_FIEMAP, Map>::new(&mut map)) }?;
    let mapped = usize::try_from(map.head.fm_mapped_extents).unwrap_or(AT_ONCE).min(AT_ONCE);
    Ok(map.extents[..mapped].to_vec())
}

/// Bytes of the file system of `directory` that an ordinary user may still write.
pub fn free_bytes(directory: &Path) -> Result<u64, Error> {
    let found = rustix::fs::statvfs(directory).map_err(|e| Error::os("open", directory, e))?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}
