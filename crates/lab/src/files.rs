//! What a workload of files runs on: a directory of this machine, or a file system of a model host on a simulated drive.

use crate::error::Error;

pub mod directory;
pub mod scratch;

/// An open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct File(pub u64);

/// A file system with a clock. Names are relative, with `/` between them.
pub trait Files {
    /// The time in ns, from any beginning.
    fn now(&mut self) -> u64;

    /// Makes a directory in one that is there.
    fn make_directory(&mut self, name: &str) -> Result<(), Error>;

    /// Makes an empty file and opens it for reading and writing.
    fn create(&mut self, name: &str) -> Result<File, Error>;

    /// Opens a file that is there.
    fn open(&mut self, name: &str) -> Result<File, Error>;

    /// Writes `length` bytes at `offset`; what they are does not matter.
    fn write(&mut self, file: File, offset: u64, length: u64) -> Result<(), Error>;

    /// Reads `length` bytes at `offset`.
    fn read(&mut self, file: File, offset: u64, length: u64) -> Result<(), Error>;

    /// fsync(2).
    fn sync_file(&mut self, file: File) -> Result<(), Error>;

    /// close(2).
    fn close(&mut self, file: File) -> Result<(), Error>;

    /// Size and times, as stat(2).
    fn stat(&mut self, name: &str) -> Result<u64, Error>;

    /// Sets times and mode, as tar and cp -p do after a file.
    fn set_times(&mut self, name: &str) -> Result<(), Error>;

    /// Removes a file.
    fn remove(&mut self, name: &str) -> Result<(), Error>;

    /// Removes an empty directory.
    fn remove_directory(&mut self, name: &str) -> Result<(), Error>;

    /// sync(2), and what is cached is forgotten where that can be had: what follows reads the medium.
    fn forget(&mut self) -> Result<(), Error>;

    /// The host computes for `ns`: spent where time is virtual.
    fn think(&mut self, ns: u64);

    /// Whether its time is virtual. For reports.
    fn is_virtual(&self) -> bool;
}
