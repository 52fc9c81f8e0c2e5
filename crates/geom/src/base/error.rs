//! The data path's error. Damage on a disk is never an error: it is a [`crate::base::finding::Finding`].

use std::fmt;

/// Why an I/O failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    /// The medium failed.
    Io,
    /// Outside the provider.
    Range,
    /// No such provider, or one of its members is missing.
    NoDevice,
    /// It was opened for reading only, or cannot be written at all.
    ReadOnly,
    /// The file system that holds the image has no room left.
    NoSpace,
    /// Not in whole sectors, or not where direct I/O can begin.
    Unaligned,
    /// It cannot do that, or not in this way.
    Unsupported,
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Errno::Io => "input/output error",
            Errno::Range => "outside the device",
            Errno::NoDevice => "no such device",
            Errno::ReadOnly => "it cannot be written",
            Errno::NoSpace => "no space left",
            Errno::Unaligned => "not in whole sectors of the device",
            Errno::Unsupported => "it cannot do that",
        })
    }
}

impl std::error::Error for Errno {}
