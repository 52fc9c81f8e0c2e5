//! Reasons for which a file system cannot be made.

use crate::format::ufs::fs::SBLOCKSIZE;
use std::fmt;

/// Reason for which a file system cannot be made. Where newfs has a message for it, it is this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Sector in bytes that no UFS can stand on.
    Sector(u64),
    /// Sector of `-S` in bytes, smaller than the device's.
    SmallSector(u64),
    /// Reserved space that covers the whole device, whose sectors are given.
    Reserved(u64),
    /// Size asked for beyond the device, whose sectors are given.
    Larger(u64),
    /// Device or size without a single sector.
    Preposterous,
    /// Block size in bytes that is no power of two.
    Block(u64),
    /// Fragment size in bytes that is no power of two.
    Fragment(u64),
    /// Fewer fragments than one group needs for its own tables.
    TooSmall {
        /// Fragments in the file system.
        size: u64,
        /// Least number of fragments.
        least: u64,
    },
    /// First group without room for the summaries of all groups and the directories.
    FirstGroup {
        /// Number of cylinder groups.
        ncg: u64,
        /// Bytes of the summaries of all groups.
        cssize: u64,
    },
    /// Last group too short for its own tables, however many fragments a group has; the file
    /// system's fragments.
    LastGroup(u64),
    /// Bytes beyond the reach of blocks of that size.
    TooLarge(u64),
    /// Option, in words, with a value past the limit of its field on the disk.
    Number(&'static str, u64),
    /// Volume label that is too long or has other letters than allowed.
    Label(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Sector(n) => write!(
                f,
                "UFS needs sectors of a power of two from 512 to {SBLOCKSIZE} bytes, not {n}"
            ),
            Error::SmallSector(n) => write!(f, "sector size (-S) {n} is less than the device's"),
            Error::Reserved(n) => write!(f, "reserved not less than device size {n}"),
            Error::Larger(n) => write!(f, "maximum file system size is {n}"),
            Error::Preposterous => f.write_str("preposterous size 0"),
            Error::Block(n) => write!(f, "block size must be a power of 2, not {n}"),
            Error::Fragment(n) => write!(f, "fragment size must be a power of 2, not {n}"),
            Error::TooSmall { size, least } => {
                write!(f, "Filesystem size {size} < minimum size of {least}")
            }
            Error::FirstGroup { ncg, cssize } => write!(
                f,
                "first cylinder group ran out of space: it holds the directories and {cssize} \
                bytes of summaries of {ncg} groups; \
                 a larger block (-b) makes fewer groups, a larger density (-i) fewer inodes"
            ),
            Error::LastGroup(size) => write!(
                f,
                "no size of cylinder groups leaves the last of {size} fragments long enough for \
                its own tables; take another size (-s), \
                 or fewer inodes (-i)"
            ),
            Error::TooLarge(size) => {
                write!(
                    f,
                    "UFS does not hold {size} bytes in blocks of this size: take larger ones (-b), or fewer inodes (-i)"
                )
            }
            Error::Number(what, n) => write!(f, "{n}: bad {what}"),
            Error::Label(label) => {
                write!(
                    f,
                    "{label:?}: bad volume label. Valid are at most 31 alphanumerics, dashes, and underscores"
                )
            }
        }
    }
}

impl std::error::Error for Error {}
