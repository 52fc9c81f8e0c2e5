//! Locks of image files as QEMU takes them: who writes and who reads keep each other off, whichever program they are of.
//!
//! A lock is of the open file description, not of the process: that of fcntl(2)'s first kind is lost when the process closes any other
//! descriptor of the same file. A file system without locks keeps nobody off.
//!
//! # Sources
//! QEMU, `block/file-posix.c`: whoever uses permission n of an image holds a shared lock on byte 100 + n, whoever does not share it
//! with others one on byte 200 + n; having taken its own, each looks whether others hold what contradicts them. The permissions are
//! those of `include/block/block-common.h`. fcntl(2), "Open file description locks (non-POSIX)", Linux 3.15.

#![allow(unsafe_code, reason = "fcntl(2) with F_OFD_SETLK and F_OFD_GETLK, which rustix does not have")]

use rustix::fs::{FlockOperation, flock};
use std::ffi::{c_int, c_short};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// What this program does with an image while it has it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Reads it, and nobody may write it meanwhile.
    Read,
    /// Writes it, and nobody else may.
    Write,
}

/// `RAW_LOCK_PERM_BASE`.
const USED: i64 = 100;
/// `RAW_LOCK_SHARED_BASE`.
const NOT_SHARED: i64 = 200;
/// `BLK_PERM_CONSISTENT_READ`, as the number of its bit.
const CONSISTENT_READ: i64 = 0;
/// `BLK_PERM_WRITE`.
const WRITE: i64 = 1;
/// `BLK_PERM_RESIZE`.
const RESIZE: i64 = 3;

/// Locks the image for `claim` until it is released or its description is closed; `false`, and nothing locked, if somebody else's use
/// of it speaks against that.
pub(crate) fn claim(fd: &OwnedFd, claim: Claim) -> bool {
    let claimed = try_claim(fd, claim);
    if !claimed {
        release(fd);
    }
    claimed
}

/// Keeps a file to who has it open here, against all who ask the same; `false` if somebody else has it. It lasts until the file is
/// closed. That is flock(2); a file system without it keeps nobody off.
pub fn keep(file: &File) -> bool {
    !matches!(flock(file, FlockOperation::NonBlockingLockExclusive), Err(rustix::io::Errno::WOULDBLOCK))
}

/// Gives up whatever of it is locked through this descriptor. To close the descriptor is not enough: a process that another thread
/// makes meanwhile has a copy of it until it runs its program, and the lock stays that long.
pub(crate) fn release(fd: &OwnedFd) {
    // Of a file without locks there is none to give up.
    let _ = ask(fd, F_OFD_SETLK, F_UNLCK, 0, TO_THE_END);
}

fn try_claim(fd: &OwnedFd, claim: Claim) -> bool {
    let used: &[i64] = match claim {
        Claim::Read => &[CONSISTENT_READ],
        Claim::Write => &[CONSISTENT_READ, WRITE],
    };
    let not_shared = [WRITE, RESIZE];
    used.iter().all(|permission| share(fd, USED + permission))
        && not_shared.iter().all(|permission| share(fd, NOT_SHARED + permission))
        && used.iter().all(|permission| is_free(fd, NOT_SHARED + permission))
        && not_shared.iter().all(|permission| is_free(fd, USED + permission))
}

/// `struct flock` with 64-bit offsets.
#[repr(C)]
struct Flock {
    kind: c_short,
    whence: c_short,
    start: i64,
    length: i64,
    process: c_int,
}

const F_OFD_GETLK: c_int = 36;
const F_OFD_SETLK: c_int = 37;
const F_RDLCK: c_short = 0;
const F_WRLCK: c_short = 1;
const F_UNLCK: c_short = 2;

unsafe extern "C" {
    /// fcntl(2) of the C library.
    #[cfg_attr(target_pointer_width = "32", link_name = "fcntl64")]
    fn fcntl(fd: c_int, command: c_int, ...) -> c_int;
}

/// Of a lock: whatever its file's length is or will be.
const TO_THE_END: i64 = 0;

/// Asks the kernel about a lock, or for it; the answer to a question is in what is returned.
fn ask(fd: &OwnedFd, command: c_int, kind: c_short, start: i64, length: i64) -> io::Result<Flock> {
    // SEEK_SET; the process of such a lock is 0.
    let mut lock = Flock { kind, whence: 0, start, length, process: 0 };
    // SAFETY: the descriptor is open, and the kernel writes nothing but this structure, which lives until it returns.
    let answer = unsafe { fcntl(fd.as_raw_fd(), command, &raw mut lock) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(lock) }
}

/// Takes a shared lock on a byte; `false` if somebody has it alone.
fn share(fd: &OwnedFd, byte: i64) -> bool {
    let refused = |e: &io::Error| matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::PermissionDenied);
    // Whatever else speaks against it: there are no locks here.
    !ask(fd, F_OFD_SETLK, F_RDLCK, byte, 1).is_err_and(|e| refused(&e))
}

/// Whether nobody else has a lock of any kind on a byte.
fn is_free(fd: &OwnedFd, byte: i64) -> bool {
    ask(fd, F_OFD_GETLK, F_WRLCK, byte, 1).map_or(true, |found| found.kind == F_UNLCK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::file;
    use std::fs::File;

    /// As in a child between fork(2) and execve(2), the description has a second descriptor.
    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_the_lock() {
        let path = std::env::temp_dir().join(format!("trueline-locks-{}", std::process::id()));
        let open = || OwnedFd::from(File::options().create(true).truncate(false).write(true).read(true).open(&path).unwrap());
        let (first, second) = (open(), open());
        let copies = [first.try_clone().unwrap(), second.try_clone().unwrap()];
        assert!(claim(&first, Claim::Write));
        // Refused, and nothing of the attempt is left that would keep the first off.
        assert!(!claim(&second, Claim::Read));
        drop(second);
        release(&first);
        let third = open();
        assert!(claim(&third, Claim::Write));
        release(&third);
        drop(copies);
        let opened = file::open_for(&path, file::Access::Write).unwrap();
        let copy = opened.store.fd().try_clone().unwrap();
        drop(opened);
        assert!(file::open_for(&path, file::Access::Write).is_ok());
        drop(copy);
        std::fs::remove_file(&path).unwrap();
    }
}
