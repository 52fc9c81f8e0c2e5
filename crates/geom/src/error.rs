//! The data path's error. Damage on a disk is never an error: it is a [`crate::finding::Finding`].

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
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Errno::Io => "input/output error",
            Errno::Range => "outside the device",
            Errno::NoDevice => "no such device",
        })
    }
}

impl std::error::Error for Errno {}
