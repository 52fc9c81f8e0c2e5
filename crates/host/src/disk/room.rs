//! Room of a new file, taken before anything depends on it.

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, retry_on_intr};
use std::fs::File;
use std::io;

/// Gives `file` `length` bytes, which are on its file system from now on. Where that cannot reserve
/// them, as NFS before 4.2, the file gets the length alone. Errors: no room, and others of
/// fallocate(2) and ftruncate(2).
pub fn allocate(file: &File, length: u64) -> io::Result<()> {
    if length == 0 {
        return Ok(());
    }
    match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, length)) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.set_len(length),
        done => Ok(done?),
    }
}
