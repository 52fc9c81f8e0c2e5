//! Why there is no file system to make.

use crate::format::ufs::fs::SBLOCKSIZE;
use std::fmt;

/// Why there is no such file system. Where newfs has a message for it, it is this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A sector that no UFS can stand on.
    Sector(u64),
    /// The sector asked for is smaller than the device's.
    SmallSector(u64),
    /// The reserved space is all there is, in sectors.
    Reserved(u64),
    /// The size asked for is more than there is, in sectors.
    Larger(u64),
    /// No sector at all.
    Preposterous,
    /// Not a power of two.
    Block(u64),
    /// Not a power of two.
    Fragment(u64),
    /// Fewer fragments than one group needs for itself.
    TooSmall {
        /// Fragments there are.
        size: u64,
        /// Fragments needed.
        least: u64,
    },
    /// The first group has no room for the summaries of all groups and the directories.
    FirstGroup {
        /// Groups.
        ncg: u64,
        /// Bytes of their summaries.
        cssize: u64,
    },
    /// However many fragments a group has, the last one is too short for its own tables.
    LastGroup(u64),
    /// More bytes than blocks of that size reach.
    TooLarge(u64),
    /// An option past what its field on the disk holds.
    Number(&'static str, u64),
    /// A volume label of other letters, or too long.
    Label(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Sector(n) => write!(f, "UFS needs sectors of a power of two from 512 to {SBLOCKSIZE} bytes, not {n}"),
            Error::SmallSector(n) => write!(f, "sector size (-S) {n} is less than the device's"),
            Error::Reserved(n) => write!(f, "reserved not less than device size {n}"),
            Error::Larger(n) => write!(f, "maximum file system size is {n}"),
            Error::Preposterous => f.write_str("preposterous size 0"),
            Error::Block(n) => write!(f, "block size must be a power of 2, not {n}"),
            Error::Fragment(n) => write!(f, "fragment size must be a power of 2, not {n}"),
            Error::TooSmall { size, least } => write!(f, "Filesystem size {size} < minimum size of {least}"),
            Error::FirstGroup { ncg, cssize } => write!(
                f,
                "first cylinder group ran out of space: it holds the directories and {cssize} bytes of summaries of {ncg} groups; \
                 a larger block (-b) makes fewer groups, a larger density (-i) fewer inodes"
            ),
            Error::LastGroup(size) => write!(
                f,
                "no size of cylinder groups leaves the last of {size} fragments long enough for its own tables; take another size (-s), \
                 or fewer inodes (-i)"
            ),
            Error::TooLarge(size) => {
                write!(f, "UFS does not hold {size} bytes in blocks of this size: take larger ones (-b), or fewer inodes (-i)")
            }
            Error::Number(what, n) => write!(f, "{n}: bad {what}"),
            Error::Label(label) => {
                write!(f, "{label:?}: bad volume label. Valid are at most 31 alphanumerics, dashes, and underscores")
            }
        }
    }
}

impl std::error::Error for Error {}
