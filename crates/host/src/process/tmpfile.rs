//! A sparse file without a name: it disappears with its last descriptor, however this program ends.
//!
//! # Sources
//! open(2) (`O_TMPFILE`), lseek(2) (`SEEK_DATA`, `SEEK_HOLE`), proc_pid_fd(5): another program
//! opens it by its descriptor there.

use crate::disk::file::Medium;
use crate::error::Error;
use crate::random;
use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::{self, FdFlags};
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A temporary file without a name.
#[derive(Debug)]
pub struct TemporaryFile {
    fd: OwnedFd,
}

impl TemporaryFile {
    /// A file of `length` zeros: in `directory`, or in the directory for temporary files if that
    /// fails.
    pub fn new(directory: &Path, length: u64) -> Result<TemporaryFile, Error> {
        let elsewhere = std::env::temp_dir();
        in_directory(directory, length)
            .or_else(|_| in_directory(&elsewhere, length))
            .map(|fd| TemporaryFile { fd })
            .map_err(|e| Error::os("make a temporary file in", &elsewhere, e))
    }

    /// The current content of the file, as a store.
    pub fn store(&self) -> Result<Medium, Error> {
        let fd = self.fd.try_clone().map_err(|e| Error::os("open", Path::new(NAME), e))?;
        Ok(Medium::new(fd, self.length()?, None))
    }

    /// The path by which a program that inherits the descriptor opens it.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.fd.as_raw_fd()).into()
    }

    /// Makes programs started from now on inherit the descriptor.
    pub(crate) fn bequeath(&self) -> io::Result<()> {
        io::fcntl_setfd(&self.fd, FdFlags::empty())
    }

    /// The length in bytes, which another program may have changed.
    pub fn length(&self) -> Result<u64, Error> {
        rustix::fs::fstat(&self.fd)
            .map(|stat| u64::try_from(stat.st_size).unwrap_or_default())
            .map_err(failed)
    }

    /// The first run of data at or after `from`; `None` if there is only a hole.
    pub fn data(&self, from: u64) -> Result<Option<Range<u64>>, Error> {
        let start = match rustix::fs::seek(&self.fd, SeekFrom::Data(from)) {
            Ok(start) => start,
            Err(io::Errno::NXIO) => return Ok(None),
            Err(e) => return Err(failed(e)),
        };
        let end = rustix::fs::seek(&self.fd, SeekFrom::Hole(start)).map_err(failed)?;
        Ok(Some(start..end).filter(|run| !run.is_empty()))
    }

    /// Fills `buffer` with the bytes from `offset` on; zeros past the end.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match io::retry_on_intr(|| io::pread(&self.fd, &mut *rest, offset + done as u64))
                .map_err(failed)?
            {
                0 => {
                    rest.fill(0);
                    return Ok(());
                }
                count => done += count,
            }
        }
        Ok(())
    }
}

/// The name in error messages.
const NAME: &str = "a temporary file";

fn failed(errno: io::Errno) -> Error {
    Error::os("read", Path::new(NAME), errno)
}

fn in_directory(directory: &Path, length: u64) -> io::Result<OwnedFd> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let (flags, mode) = (OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
    let fd = match rustix::fs::open(directory, flags | OFlags::TMPFILE, mode) {
        // The file system does not support `O_TMPFILE`.
        Err(io::Errno::OPNOTSUPP | io::Errno::ISDIR | io::Errno::INVAL) => {
            let number = random::bytes::<8>().map_err(|_| io::Errno::IO)?;
            let path = directory.join(format!(".trueline-{:016x}", u64::from_le_bytes(number)));
            let fd = rustix::fs::open(&path, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
            rustix::fs::unlink(&path)?;
            fd
        }
        opened => opened?,
    };
    rustix::fs::ftruncate(&fd, length)?;
    Ok(fd)
}
