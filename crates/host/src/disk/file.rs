//! One image file or block device, opened for reading or for writing.
//!
//! # Limits
//! For reading: read-only, never exclusive, and without a change of the access time if possible.
//! For writing: exclusive, so that a device or image that is mounted, in a set, shown by a loop
//! device or used by a virtual machine is never written. For serving read-only: locked, so that no
//! program that respects locks writes it meanwhile. Zeros are punched out of a file, which frees
//! their space, and requested from a device; where neither is possible, they are written.
//! Directories, pipes, sockets and character devices are refused before an open, which has side
//! effects on some of them.
//!
//! # Sources
//! open(2) (`O_EXCL` on a block device), `locks.rs` (QEMU locks the images it uses), flock(2) (udev
//! waits for it).

use crate::device::{Device, sysfs, users};
use crate::disk::locks::{self, Claim};
use crate::disk::{discard, extents, writeback};
use crate::errno;
use crate::error::{Error, Remedy};
use rustix::fs::{
    Advice, AtFlags, FallocateFlags, FileType, FlockOperation, Mode, OFlags, SeekFrom, Stat,
    StatxFlags,
};
use rustix::io::{self, ReadWriteFlags};
use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::{self, Content, Properties, Run, Store};

/// The result of [`open`].
pub struct Opened {
    /// The bytes of the file or device.
    pub store: Medium,
    /// The block device as sysfs lists it; `None` for a file, or if sysfs does not list it.
    pub device: Option<Device>,
    /// True if it is a block device.
    pub block: bool,
    /// The logical sector size of a block device in bytes, as the device reports.
    pub sector: Option<u64>,
    /// The physical block size of a block device in bytes, as the device reports.
    pub physical: Option<u64>,
    /// The granularity of I/O on it.
    pub io: Io,
}

/// The granularity of I/O on an open file, as the kernel reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// `st_blksize`: the preferred size of buffered I/O in bytes.
    pub block: u64,
    /// `stx_dio_mem_align`: the alignment of memory for direct I/O; `None` without direct I/O, or
    /// with a kernel before 6.1.
    pub dio_memory: Option<u32>,
    /// `stx_dio_offset_align`: the alignment of offsets and lengths of direct I/O.
    pub dio_offset: Option<u32>,
}

/// The bytes of an open file.
#[derive(Debug)]
pub struct Medium {
    fd: OwnedFd,
    /// Read at every request, and changed by growth alone.
    length: AtomicU64,
    /// The major and minor number of a block device; `None` for a file.
    number: Option<(u32, u32)>,
    /// The flags with which the file system or driver zeros a range without a transfer of zeros.
    zeros: FallocateFlags,
    /// True if the file system is in memory (tmpfs).
    in_memory: bool,
}

/// The magic number of tmpfs in statfs(2).
const TMPFS: u64 = 0x0102_1994;

/// The mode of [`open_for`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading for a short look.
    Read,
    /// Reading for longer: writers of an image file are locked out.
    ReadLocked,
    /// Writing, if the device or file is not in use.
    Write,
    /// Writing even if it is in use, at the user's word.
    WriteInUse,
}

impl Access {
    /// True if the mode allows writes.
    pub fn writes(self) -> bool {
        matches!(self, Access::Write | Access::WriteInUse)
    }
}

/// Opens an image file or a block device for reading.
pub fn open(path: &Path) -> Result<Opened, Error> {
    open_for(path, Access::Read)
}

/// Opens an image file or a block device.
pub fn open_for(path: &Path, access: Access) -> Result<Opened, Error> {
    let failed = |e: io::Errno| Error::os("open", path, e);
    let before = rustix::fs::stat(path).map_err(failed)?;
    let block = is_block(&before, path)?;
    let fd = match access {
        Access::Read => read_only(path).map_err(failed)?,
        Access::ReadLocked => read_locked(path, block)?,
        Access::Write => exclusive(path, block)?,
        Access::WriteInUse => writable(path, OFlags::empty()).map_err(failed)?,
    };
    let stat = rustix::fs::fstat(&fd).map_err(failed)?;
    if (stat.st_dev, stat.st_ino) != (before.st_dev, before.st_ino) {
        return Err(Error::not(
            "open",
            &path.display().to_string(),
            "it was replaced while it was opened",
            "try again",
        ));
    }
    // The `st_size` of a block device is 0; its size is found by a seek to the end.
    let length = rustix::fs::seek(&fd, SeekFrom::End(0))
        .map_err(|e| Error::os("find the size of", path, e))?;
    let device = block.then(|| {
        let (major, minor) = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
        sysfs::device(Path::new("/sys"), Path::new("/proc/self/mountinfo"), major, minor)
    });
    let device = device.flatten();
    takes(device.as_ref(), access, path)?;
    let asked = |size: io::Result<u32>| size.ok().filter(|_| block).map(u64::from);
    Ok(Opened {
        device,
        block,
        sector: asked(rustix::fs::ioctl_blksszget(&fd)),
        physical: asked(rustix::fs::ioctl_blkpbszget(&fd)),
        io: alignment(&fd, &stat),
        store: Medium::new(
            fd,
            length,
            block.then(|| (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev))),
        ),
    })
}

/// Refuses a device that can be opened for writing but refuses all writes: a read-only loop device,
/// a write-protected card.
fn takes(device: Option<&Device>, access: Access, path: &Path) -> Result<(), Error> {
    let refuses = access.writes() && device.is_some_and(|device| device.read_only);
    if refuses {
        let found = "the device is read-only";
        Err(Error::not("write", &path.display().to_string(), found, Remedy::SetWritable))
    } else {
        Ok(())
    }
}

impl Medium {
    /// The descriptor of the open file.
    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// A medium of `length` bytes. `number` is that of a block device; `None` for a file.
    pub(crate) fn new(fd: OwnedFd, length: u64, number: Option<(u32, u32)>) -> Medium {
        let block = number.is_some();
        let zeros = if block { FallocateFlags::ZERO_RANGE } else { FallocateFlags::PUNCH_HOLE };
        let system =
            rustix::fs::fstatfs(&fd).ok().and_then(|found| u64::try_from(found.f_type).ok());
        let in_memory = !block && system == Some(TMPFS);
        let (zeros, length) = (zeros | FallocateFlags::KEEP_SIZE, AtomicU64::new(length));
        Medium { fd, length, number, zeros, in_memory }
    }

    /// Bytes of a file that were never written: holes, and preallocated ones (fallocate(2)),
    /// whether or not they are in the page cache. Dirty pages are written first. `None` for a
    /// device, or if the file system does not report extents.
    pub fn never_written(&self) -> Option<u64> {
        self.number.is_none().then(|| extents::never_written(&self.fd, self.length())).flatten()
    }

    /// The run that the kernel reports as a hole. Past the end of a file that has shrunk it is
    /// data: a client told of a hole would assume zeros and not read, whereas a read fails.
    fn hole(&self, from: u64, to: u64) -> Run {
        let size = rustix::fs::fstat(&self.fd)
            .ok()
            .filter(|_| self.number.is_none())
            .and_then(|stat| u64::try_from(stat.st_size).ok());
        match size.map_or(to, |size| size.min(to)) {
            end if end > from => Run { content: Content::Hole, length: end - from },
            _ => Run { content: Content::Data, length: to - from },
        }
    }
}

impl Drop for Medium {
    fn drop(&mut self) {
        locks::release(&self.fd);
    }
}

/// True for a block device, false for a regular file; an error for anything else.
fn is_block(stat: &Stat, path: &Path) -> Result<bool, Error> {
    let found = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(false),
        FileType::BlockDevice => return Ok(true),
        FileType::Directory => "a directory",
        FileType::CharacterDevice => "a character device",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::Symlink | FileType::Unknown => "of an unknown kind",
    };
    let message = format!("it is {found}");
    Err(Error::not(
        "open",
        &path.display().to_string(),
        message,
        "name an image file or a block device",
    ))
}

fn read_only(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
    // Only the owner of a file may open it without an update of its access time.
    match io::retry_on_intr(|| rustix::fs::open(path, flags | OFlags::NOATIME, Mode::empty())) {
        Err(io::Errno::PERM) => io::retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty())),
        opened => opened,
    }
}

fn writable(path: &Path, more: OFlags) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY | more;
    io::retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))
}

/// Opens for writing, if there is no other user.
fn exclusive(path: &Path, block: bool) -> Result<OwnedFd, Error> {
    let used = |by: String| Error::not("write", &path.display().to_string(), by, Remedy::Release);
    if block {
        // The kernel refuses while the device, a partition of it, or a device above it is mounted
        // or held.
        let fd = writable(path, OFlags::EXCL).map_err(|e| match e {
            io::Errno::BUSY => used(match users::users(path).as_slice() {
                [] => "it is in use".into(),
                users => users.join(", "),
            }),
            e => Error::os("write", path, e),
        })?;
        // udev probes a device when its writer closes it, and waits while this lock is held. It may
        // hold the lock briefly itself.
        let _ = rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive);
        return Ok(fd);
    }
    if let Some(device) = users::loop_of(path) {
        return Err(used(format!("{device} is a loop device over it")));
    }
    let fd = writable(path, OFlags::empty()).map_err(|e| Error::os("write", path, e))?;
    if locks::claim(&fd, Claim::Write) {
        Ok(fd)
    } else {
        Err(used("another program has locked it, a virtual machine perhaps".into()))
    }
}

/// Opens for reading, if there is no writer.
fn read_locked(path: &Path, block: bool) -> Result<OwnedFd, Error> {
    let fd = read_only(path).map_err(|e| Error::os("open", path, e))?;
    if block || locks::claim(&fd, Claim::Read) {
        return Ok(fd);
    }
    let found = "another program has locked it for writing, a virtual machine perhaps";
    Err(Error::not("read", &path.display().to_string(), found, Remedy::EndWriter))
}

pub(crate) fn alignment(fd: &OwnedFd, stat: &Stat) -> Io {
    let block = u64::try_from(stat.st_blksize).unwrap_or_default();
    let dio = rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok();
    let dio =
        dio.filter(|s| s.stx_mask & StatxFlags::DIOALIGN.bits() != 0 && s.stx_dio_offset_align > 0);
    Io {
        block,
        dio_memory: dio.map(|s| s.stx_dio_mem_align),
        dio_offset: dio.map(|s| s.stx_dio_offset_align),
    }
}

impl Store for Medium {
    fn length(&self) -> u64 {
        self.length.load(Ordering::Relaxed)
    }

    fn grow(&self, length: u64) -> Result<(), Errno> {
        if self.number.is_some() {
            return Err(Errno::NoSpace);
        }
        // Never shorter, whatever became of the file meanwhile.
        let longer = length.max(self.length());
        io::retry_on_intr(|| rustix::fs::ftruncate(&self.fd, longer))
            .map_err(errno::from_kernel)?;
        self.length.fetch_max(longer, Ordering::Relaxed);
        Ok(())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let end = u64::try_from(buffer.len()).ok().and_then(|length| offset.checked_add(length));
        if end.is_none_or(|end| end > self.length()) {
            return Err(Errno::Range);
        }
        let (mut done, mut at) = (0, offset);
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match io::retry_on_intr(|| io::pread(&self.fd, &mut *rest, at)) {
                // The file is shorter than when it was opened.
                Ok(0) => return Err(Errno::Range),
                Ok(count) => (done, at) = (done + count, at + count as u64),
                Err(io::Errno::NODEV | io::Errno::NXIO) => return Err(Errno::NoDevice),
                Err(_) => return Err(Errno::Io),
            }
        }
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        let end = u64::try_from(bytes.len()).ok().and_then(|length| offset.checked_add(length));
        if end.is_none_or(|end| end > self.length()) {
            return Err(Errno::Range);
        }
        let (mut rest, mut at) = (bytes, offset);
        while !rest.is_empty() {
            match io::retry_on_intr(|| io::pwrite(&self.fd, rest, at)) {
                Ok(0) | Err(io::Errno::NOSPC | io::Errno::DQUOT) => return Err(Errno::NoSpace),
                Ok(count) => (rest, at) = (&rest[count..], at + count as u64),
                Err(io::Errno::BADF | io::Errno::PERM | io::Errno::ROFS) => {
                    return Err(Errno::ReadOnly);
                }
                Err(io::Errno::NODEV | io::Errno::NXIO) => return Err(Errno::NoDevice),
                Err(_) => return Err(Errno::Io),
            }
        }
        Ok(())
    }

    fn zero(&self, offset: u64, length: u64) -> Result<(), Errno> {
        if offset.checked_add(length).is_none_or(|end| end > self.length()) {
            return Err(Errno::Range);
        }
        if length == 0
            || io::retry_on_intr(|| rustix::fs::fallocate(&self.fd, self.zeros, offset, length))
                .is_ok()
        {
            return Ok(());
        }
        // Not every file system and driver can; a write reports any other error too.
        store::write_zeros(length, &mut |done, zeros| self.write_at(zeros, offset + done))
    }

    fn try_read(&self, buffer: &mut [u8], offset: u64) -> Result<bool, Errno> {
        if self.in_memory {
            // tmpfs refuses RWF_NOWAIT, and never waits.
            return self.read_at(buffer, offset).map(|()| true);
        }
        let length = buffer.len();
        if u64::try_from(length)
            .ok()
            .and_then(|length| offset.checked_add(length))
            .is_none_or(|end| end > self.length())
        {
            return Err(Errno::Range);
        }
        // Any failure here is reported by the read that waits.
        Ok(io::preadv2(&self.fd, &mut [IoSliceMut::new(buffer)], offset, ReadWriteFlags::NOWAIT)
            .is_ok_and(|count| count == length))
    }

    fn properties(&self) -> Properties {
        // Writes go into the page cache.
        Properties { write_back: true, non_blocking: self.in_memory, ..Properties::default() }
    }

    fn discard(&self, offset: u64, length: u64) -> Result<(), Errno> {
        if offset.checked_add(length).is_none_or(|end| end > self.length()) {
            return Err(Errno::Range);
        }
        // Zeros of a device may be sent; a discard is a command of its own.
        if self.number.is_some()
            && io::retry_on_intr(|| discard::discard(&self.fd, offset, length)).is_ok()
        {
            return Ok(());
        }
        match self.try_zero(offset, length, false) {
            // A discard is a hint, which a device may ignore.
            Err(Errno::Unsupported) => Ok(()),
            done => done,
        }
    }

    fn try_zero(&self, offset: u64, length: u64, keep: bool) -> Result<(), Errno> {
        if offset.checked_add(length).is_none_or(|end| end > self.length()) {
            return Err(Errno::Range);
        }
        // To zero a range of a device keeps its space, and sends zeros if the device has no command
        // for it; to punch a hole unmaps, or is refused (Linux block/fops.c, blkdev_fallocate). The
        // limit is read anew each time: the kernel clears it when a device refuses the command.
        if keep
            && self.number.is_some_and(|(major, minor)| {
                !sysfs::writes_zeroes(Path::new("/sys"), major, minor)
            })
        {
            return Err(Errno::Unsupported);
        }
        let how = if keep { FallocateFlags::ZERO_RANGE } else { FallocateFlags::PUNCH_HOLE }
            | FallocateFlags::KEEP_SIZE;
        match io::retry_on_intr(|| rustix::fs::fallocate(&self.fd, how, offset, length)) {
            _ if length == 0 => Ok(()),
            Err(io::Errno::OPNOTSUPP | io::Errno::NOSYS | io::Errno::INVAL | io::Errno::NODEV) => {
                Err(Errno::Unsupported)
            }
            done => done.map_err(errno::from_kernel),
        }
    }

    fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        let end =
            offset.checked_add(length).filter(|&end| end <= self.length()).ok_or(Errno::Range)?;
        // ENXIO: only a hole from here on. A block device is all data.
        let data = match rustix::fs::seek(&self.fd, SeekFrom::Data(offset)) {
            Ok(data) => data.clamp(offset, end),
            Err(io::Errno::NXIO) => end,
            Err(_) => offset,
        };
        if data > offset {
            return Ok(self.hole(offset, data));
        }
        let hole = rustix::fs::seek(&self.fd, SeekFrom::Hole(offset))
            .map_or(end, |hole| hole.clamp(offset + 1, end));
        Ok(Run { content: Content::Data, length: hole - offset })
    }

    fn prefetch(&self, offset: u64, length: u64) {
        // A length of 0 means to the end (posix_fadvise(2)). It is a hint, so errors are ignored.
        if let Some(length) = NonZeroU64::new(length) {
            let _ = rustix::fs::fadvise(&self.fd, offset, Some(length), Advice::WillNeed);
        }
    }

    fn start_writeback(&self, offset: u64, length: u64) {
        writeback::start(&self.fd, offset, length);
    }

    fn flush(&self) -> Result<(), Errno> {
        io::retry_on_intr(|| rustix::fs::fdatasync(&self.fd)).map_err(|_| Errno::Io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_is_no_hole() {
        let path = std::env::temp_dir().join(format!("trueline-cut-{}", std::process::id()));
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        let medium = open(&path).unwrap().store;
        file.set_len(1 << 19).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(medium.extent(0, 1 << 20).unwrap().length <= 1 << 19);
        assert_eq!(
            medium.extent(1 << 19, 1 << 19),
            Ok(Run { content: Content::Data, length: 1 << 19 })
        );
        assert_eq!(medium.read_at(&mut [0; 512], 1 << 19), Err(Errno::Range));
        file.set_len(1 << 20).unwrap();
        assert_eq!(medium.extent(1 << 19, 1 << 19).unwrap().length, 1 << 19);
    }

    #[test]
    fn a_device_that_refuses_writes_is_not_opened_for_them() {
        let device = |read_only| Device { read_only, ..Device::default() };
        let opened = |read_only, access| {
            takes(Some(&device(read_only)), access, Path::new("/dev/loop7"))
                .map_err(|e| e.to_string())
        };
        let refused = "write /dev/loop7: the device is read-only: blockdev --setrw may change that";
        for access in [Access::Write, Access::WriteInUse] {
            assert_eq!(
                (opened(true, access), opened(false, access)),
                (Err(refused.to_owned()), Ok(()))
            );
        }
        assert_eq!(
            (opened(true, Access::Read), opened(true, Access::ReadLocked)),
            (Ok(()), Ok(()))
        );
    }
}
