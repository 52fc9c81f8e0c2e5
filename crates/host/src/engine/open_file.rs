//! An open file or block device as an engine uses it: direct or through the page cache, with the
//! alignment that requests need.
//!
//! # Sources
//! open(2) (`O_DIRECT`), statx(2) (`STATX_DIOALIGN`, Linux 6.1). The alignment of a request is
//! checked by these numbers before it is sent: a kernel accepts some misaligned ones, so the lack
//! of an EINVAL proves nothing.

use crate::device::sysfs;
use crate::disk::buffers::Buffers;
use crate::disk::file::{self, Medium};
use crate::error::{Error, Remedy};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use trueline_geom::base::error::Errno;
use trueline_geom::base::size::PAGE;
use trueline_geom::base::store::Store;
use trueline_geom::base::topology::is_whole;

/// The use of the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// `O_DIRECT`: requests reach the device.
    Around,
    /// Requests go through the page cache.
    Through,
}

/// A file or device that an engine reads and writes.
#[derive(Debug)]
pub struct OpenFile {
    fd: OwnedFd,
    length: u64,
    grain: u64,
    memory: u64,
    cache: Cache,
    writable: bool,
}

impl OpenFile {
    /// A second handle of an open medium, in the same access mode; `place` is its name in messages.
    /// Exclusiveness is kept, as the handle is of the same file, for as long as `medium` lives.
    pub fn new(medium: &Medium, cache: Cache, place: &Path) -> Result<OpenFile, Error> {
        let failed = |e: io::Errno| Error::os("open", place, e);
        let mode = rustix::fs::fcntl_getfl(medium.fd()).map_err(failed)? & OFlags::RWMODE;
        let more = if cache == Cache::Around { OFlags::DIRECT } else { OFlags::empty() };
        let flags = mode | more | OFlags::CLOEXEC | OFlags::NOCTTY;
        // Opened by descriptor, as the name may lead elsewhere by now.
        let again = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(medium.fd()));
        let fd =
            io::retry_on_intr(|| rustix::fs::open(&*again, flags, Mode::empty())).map_err(|e| {
                match (e, cache) {
                    (io::Errno::INVAL, Cache::Around) => Error::not(
                        "open",
                        &place.display().to_string(),
                        "its file system has no direct I/O",
                        Remedy::UsePageCache,
                    ),
                    _ => failed(e),
                }
            })?;
        let (grain, memory) = match cache {
            Cache::Around => asked_of(&fd).map_err(failed)?,
            Cache::Through => (1, 1),
        };
        Ok(OpenFile {
            fd,
            length: medium.length(),
            grain,
            memory,
            cache,
            writable: mode.contains(OFlags::RDWR),
        })
    }

    /// The length of the file in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The alignment of offsets and lengths in bytes.
    pub fn grain(&self) -> u64 {
        self.grain
    }

    /// The use of the page cache, as opened.
    pub(crate) fn cache(&self) -> Cache {
        self.cache
    }

    /// True if every place in `buffers` is aligned as the file requires.
    pub(crate) fn takes(&self, buffers: &Buffers) -> bool {
        is_whole(buffers.place() as u64, self.memory)
    }

    /// Checks a request: inside, aligned, and to a writable file if it writes.
    #[inline]
    pub(crate) fn check(&self, offset: u64, length: u64, write: bool) -> Result<(), Errno> {
        if offset.checked_add(length).is_none_or(|end| end > self.length) {
            return Err(Errno::Range);
        }
        if !self.is_aligned(offset) || !self.is_aligned(length) {
            return Err(Errno::Unaligned);
        }
        if write && !self.writable { Err(Errno::ReadOnly) } else { Ok(()) }
    }

    /// True if a request may begin or end at `at`.
    #[inline]
    pub(crate) fn is_aligned(&self, at: u64) -> bool {
        is_whole(at, self.grain)
    }
}

impl AsFd for OpenFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The alignment that direct I/O on `fd` requires of offsets and of memory, in bytes.
fn asked_of(fd: &OwnedFd) -> io::Result<(u64, u64)> {
    let stat = rustix::fs::fstat(fd)?;
    let says = file::alignment(fd, &stat);
    if let (Some(offset), Some(memory)) = (says.dio_offset, says.dio_memory) {
        return Ok((u64::from(offset).max(1), u64::from(memory).max(1)));
    }
    let block = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice;
    let sector = if block {
        rustix::fs::ioctl_blksszget(fd).ok().map(u64::from)
    } else {
        // For a file, the sector size of the device that its file system is on.
        let (major, minor) = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
        sysfs::device(Path::new("/sys"), Path::new("/proc/self/mountinfo"), major, minor)
            .map(|device| device.sector())
    };
    let sector = sector.filter(|sector| sector.is_power_of_two()).unwrap_or(PAGE);
    Ok((sector, sector))
}
