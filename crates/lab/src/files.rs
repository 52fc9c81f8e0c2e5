//! The file system a workload of files uses: a directory of this machine, or a simulated system on
//! a simulated drive.

use crate::error::Error;

pub mod directory;
pub mod scratch;

/// The handle of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct File(pub u64);

/// A file system with a clock. Names are relative, with `/` between them.
pub trait Files {
    /// The time in nanoseconds since an arbitrary start.
    fn now(&mut self) -> u64;

    /// Makes a directory in an existing one.
    fn make_directory(&mut self, name: &str) -> Result<(), Error>;

    /// Makes an empty file and opens it for reading and writing.
    fn create(&mut self, name: &str) -> Result<File, Error>;

    /// Opens an existing file for reading and writing.
    fn open(&mut self, name: &str) -> Result<File, Error>;

    /// Writes `length` bytes at `offset`. Their content does not matter.
    fn write(&mut self, file: File, offset: u64, length: u64) -> Result<(), Error>;

    /// Reads `length` bytes at `offset` and discards them.
    fn read(&mut self, file: File, offset: u64, length: u64) -> Result<(), Error>;

    /// Writes the file's data and metadata to the medium, as fsync(2).
    fn sync_file(&mut self, file: File) -> Result<(), Error>;

    /// Closes the file, as close(2).
    fn close(&mut self, file: File) -> Result<(), Error>;

    /// The file's size in bytes, found as stat(2) finds it.
    fn stat(&mut self, name: &str) -> Result<u64, Error>;

    /// Sets times, as tar and cp -p do after a file.
    fn set_times(&mut self, name: &str) -> Result<(), Error>;

    /// Removes a file, as unlink(2).
    fn remove(&mut self, name: &str) -> Result<(), Error>;

    /// Removes an empty directory.
    fn remove_directory(&mut self, name: &str) -> Result<(), Error>;

    /// Writes everything that is dirty, as sync(2), and empties the cache as far as possible, so
    /// that later reads reach the medium.
    fn forget(&mut self) -> Result<(), Error>;

    /// Spends `ns` nanoseconds of computing where time is virtual; does nothing where it is real.
    fn think(&mut self, ns: u64);

    /// True if time is virtual. Reports say so.
    fn is_virtual(&self) -> bool;
}
