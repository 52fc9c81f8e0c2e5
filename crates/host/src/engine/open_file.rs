//! An open file or block device as an engine uses it: direct or through the page cache, with what its requests must lie on.
//!
//! # Sources
//! open(2) (`O_DIRECT`), statx(2) (`STATX_DIOALIGN`, Linux 6.1). Whether a request lies right is decided by these numbers before it is
//! sent: a kernel takes some that lie wrong, so its EINVAL proves nothing.

use crate::device::sysfs;
use crate::disk::buffers::Buffers;
use crate::disk::file::{self, Medium};
use crate::error::Error;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;
use trueline_geom::base::topology::is_whole;

/// Whether the page cache stands between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// `O_DIRECT`: the device is asked.
    Around,
    /// Through it.
    Through,
}

/// One file or device that an engine reads and writes.
#[derive(Debug)]
pub struct OpenFile {
    fd: OwnedFd,
    length: u64,
    grain: u64,
    memory: u64,
    cache: Cache,
    writable: bool,
}

/// Where direct I/O begins if nobody says: a page, which no device asks more than.
const PAGE: u64 = 4096;

impl OpenFile {
    /// A second handle on what is open already, to look or to write as it is; `place` is its name in messages. What is exclusive stays so:
    /// the handle is of the same file, and `medium` must live as long as exclusiveness is needed.
    pub fn new(medium: &Medium, cache: Cache, place: &Path) -> Result<OpenFile, Error> {
        let failed = |e: io::Errno| Error::os("open", place, e);
        let mode = rustix::fs::fcntl_getfl(medium.fd()).map_err(failed)? & OFlags::RWMODE;
        let more = if cache == Cache::Around { OFlags::DIRECT } else { OFlags::empty() };
        let flags = mode | more | OFlags::CLOEXEC | OFlags::NOCTTY;
        // By the descriptor: the name may lead elsewhere by now.
        let again = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(medium.fd()));
        let fd = io::retry_on_intr(|| rustix::fs::open(&*again, flags, Mode::empty())).map_err(|e| match (e, cache) {
            (io::Errno::INVAL, Cache::Around) => {
                let advice = "say --buffered, which measures the page cache as well";
                Error::not("open", &place.display().to_string(), "its file system has no direct I/O", advice)
            }
            _ => failed(e),
        })?;
        let (grain, memory) = match cache {
            Cache::Around => asked_of(&fd).map_err(failed)?,
            Cache::Through => (1, 1),
        };
        Ok(OpenFile { fd, length: medium.length(), grain, memory, cache, writable: mode.contains(OFlags::RDWR) })
    }

    /// Bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Offsets and lengths are multiples of it.
    pub fn grain(&self) -> u64 {
        self.grain
    }

    /// Direct or through the page cache, as it was opened.
    pub(crate) fn cache(&self) -> Cache {
        self.cache
    }

    /// Whether every place in `buffers` lies right for it.
    pub(crate) fn takes(&self, buffers: &Buffers) -> bool {
        is_whole(buffers.place() as u64, self.memory)
    }

    /// Whether a request may be sent: inside, on the grain, writable if it writes.
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

    /// Whether a request may begin or end there.
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

/// What direct I/O on `fd` asks of offsets and of memory.
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
        // Of a file: the sector of the device that its file system is on.
        let (major, minor) = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
        sysfs::device(Path::new("/sys"), Path::new("/proc/self/mountinfo"), major, minor).map(|device| device.sector())
    };
    let sector = sector.filter(|sector| sector.is_power_of_two()).unwrap_or(PAGE);
    Ok((sector, sector))
}
