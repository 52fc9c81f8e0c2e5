//! Locks of image files in QEMU's scheme: readers and writers of all programs that use it exclude
//! each other.
//!
//! A lock belongs to the open file description, not to the process: a classic fcntl(2) lock is lost
//! when the process closes any other descriptor of the same file. On a file system without locks
//! nothing is excluded.
//!
//! # Sources
//! QEMU, `block/file-posix.c`: a user of permission n of an image holds a shared lock on byte 100 +
//! n; a user that does not share it holds one on byte 200 + n. After taking its own locks, each
//! checks for contradicting locks of others. The permissions are those of
//! `include/block/block-common.h`. fcntl(2), "Open file description locks (non-POSIX)", Linux 3.15.

#![allow(
    unsafe_code,
    reason = "fcntl(2) with F_OFD_SETLK and F_OFD_GETLK, which rustix does not have"
)]

use libc::{F_OFD_GETLK, F_OFD_SETLK, F_RDLCK, F_UNLCK, F_WRLCK, off_t};
use rustix::fs::{FlockOperation, flock};
use std::ffi::{c_int, c_short};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// The use of an image by this program while it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Reading, with writers excluded.
    Read,
    /// Writing, with other writers excluded.
    Write,
}

/// The base of used permissions, `RAW_LOCK_PERM_BASE`.
const USED: off_t = 100;
/// The base of permissions not shared, `RAW_LOCK_SHARED_BASE`.
const NOT_SHARED: off_t = 200;
/// `BLK_PERM_CONSISTENT_READ`, as the number of its bit.
const CONSISTENT_READ: off_t = 0;
/// The number of `BLK_PERM_WRITE`'s bit.
const WRITE: off_t = 1;
/// The number of `BLK_PERM_RESIZE`'s bit.
const RESIZE: off_t = 3;

/// Locks the image for `claim` until it is released or its description is closed. False, with
/// nothing locked, if another use contradicts the claim.
pub(crate) fn claim(fd: &OwnedFd, claim: Claim) -> bool {
    let claimed = try_claim(fd, claim);
    if !claimed {
        release(fd);
    }
    claimed
}

/// Takes an exclusive lock on a file until it is closed; false if another program holds one. That
/// is flock(2), which only excludes programs that ask for it too. On a file system without it the
/// result is true.
pub fn keep(file: &File) -> bool {
    !matches!(
        flock(file, FlockOperation::NonBlockingLockExclusive),
        Err(rustix::io::Errno::WOULDBLOCK)
    )
}

/// Releases all locks of this descriptor. Closing it is not enough: a child process that another
/// thread creates meanwhile has a copy of it until it executes its program, and the lock would stay
/// that long.
pub(crate) fn release(fd: &OwnedFd) {
    // A file without locks has none to release.
    let _ = ask(fd, F_OFD_SETLK, F_UNLCK, 0, TO_THE_END);
}

fn try_claim(fd: &OwnedFd, claim: Claim) -> bool {
    let used: &[off_t] = match claim {
        Claim::Read => &[CONSISTENT_READ],
        Claim::Write => &[CONSISTENT_READ, WRITE],
    };
    let not_shared = [WRITE, RESIZE];
    used.iter().all(|permission| share(fd, USED + permission))
        && not_shared.iter().all(|permission| share(fd, NOT_SHARED + permission))
        && used.iter().all(|permission| is_free(fd, NOT_SHARED + permission))
        && not_shared.iter().all(|permission| is_free(fd, USED + permission))
}

/// The length of a lock on the whole file, whatever its size is or becomes.
const TO_THE_END: off_t = 0;

/// Queries or requests a lock. Returns the structure as the kernel left it, which answers a query.
fn ask(
    fd: &OwnedFd,
    command: c_int,
    kind: c_int,
    start: off_t,
    length: off_t,
) -> io::Result<libc::flock> {
    // SAFETY: `struct flock` is integers alone, of which zeros are values; C libraries add fields
    // of their own.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    // The whence of zeros is SEEK_SET, and the process of an open file description lock is 0.
    lock.l_type = c_short::try_from(kind).map_err(|_| io::ErrorKind::InvalidInput)?;
    (lock.l_start, lock.l_len) = (start, length);
    // SAFETY: the descriptor is open, and the kernel writes nothing but this structure, which lives
    // until it returns.
    let answer = unsafe { libc::fcntl(fd.as_raw_fd(), command, &raw mut lock) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(lock) }
}

/// Takes a shared lock on a byte; false if another program has an exclusive one.
fn share(fd: &OwnedFd, byte: off_t) -> bool {
    let refused = |e: &io::Error| {
        matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::PermissionDenied)
    };
    // Any other error means that there are no locks here.
    !ask(fd, F_OFD_SETLK, F_RDLCK, byte, 1).is_err_and(|e| refused(&e))
}

/// True if no other program has a lock on the byte.
fn is_free(fd: &OwnedFd, byte: off_t) -> bool {
    ask(fd, F_OFD_GETLK, F_WRLCK, byte, 1)
        .map_or(true, |found| c_int::from(found.l_type) == F_UNLCK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::file;
    use std::fs::File;

    /// A second descriptor of the description, as a child has between fork(2) and execve(2).
    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_the_lock() {
        let path = std::env::temp_dir().join(format!("trueline-locks-{}", std::process::id()));
        let open = || {
            OwnedFd::from(
                File::options()
                    .create(true)
                    .truncate(false)
                    .write(true)
                    .read(true)
                    .open(&path)
                    .unwrap(),
            )
        };
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
