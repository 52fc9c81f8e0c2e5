//! The data path's error. Damage on a disk is never an error: it is a
//! [`crate::base::finding::Finding`].

use std::fmt;

/// Reason for which an I/O failed, in the terms of errno(3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    /// Failure of the medium beneath the provider (EIO).
    Io,
    /// Range that reaches past the end of the provider.
    Range,
    /// Absent provider, or an absent member of one (ENODEV).
    NoDevice,
    /// Write to a provider that was opened for reading only, or that cannot be written at all
    /// (EROFS).
    ReadOnly,
    /// Full file system beneath an image (ENOSPC).
    NoSpace,
    /// Range that is not in whole sectors, or a buffer where direct I/O cannot begin (EINVAL).
    Unaligned,
    /// Compressed range that was not unpacked (EIO).
    Packed,
    /// Range of an object that is not here yet: it is fetched, and what read it is done again
    /// (EIO).
    Awaited,
    /// Range of an object that is not fetched, since that would take more than its bounds (EIO).
    Unfetched,
    /// Operation that the provider lacks, or lacks in the form asked for (EOPNOTSUPP).
    Unsupported,
    /// Request that a zone of a host-managed drive does not take (EIO).
    Zone(ZoneRule),
}

/// Rule of a host-managed drive's zones that a request breaks, with the additional sense code of
/// the drive's answer (ZBC; SPC, additional sense codes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneRule {
    /// Write that does not begin at the write pointer of its zone (UNALIGNED WRITE COMMAND).
    WritePointer,
    /// Write that does not end with a physical block (UNALIGNED WRITE COMMAND).
    PhysicalBlock,
    /// Write to a zone that is full (INVALID FIELD IN CDB).
    Full,
    /// Write past the end of its zone, or of the conventional ones (WRITE BOUNDARY VIOLATION).
    WriteBoundary,
    /// Read from the conventional zones into the others (ATTEMPT TO READ INVALID DATA).
    ReadBoundary,
}

impl fmt::Display for ZoneRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ZoneRule::WritePointer => {
                "not at the write pointer of its zone (UNALIGNED WRITE COMMAND)"
            }
            ZoneRule::PhysicalBlock => {
                "it does not end with a physical block (UNALIGNED WRITE COMMAND)"
            }
            ZoneRule::Full => "its zone is full (INVALID FIELD IN CDB)",
            ZoneRule::WriteBoundary => "past the end of its zone (WRITE BOUNDARY VIOLATION)",
            ZoneRule::ReadBoundary => {
                "from conventional zones into others (ATTEMPT TO READ INVALID DATA)"
            }
        })
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Errno::Zone(rule) => return rule.fmt(f),
            Errno::Io => "input/output error",
            Errno::Range => "outside the device",
            Errno::NoDevice => "no such device",
            Errno::ReadOnly => "it cannot be written",
            Errno::NoSpace => "no space left",
            Errno::Unaligned => "not in whole sectors of the device",
            Errno::Packed => "it is compressed, and was not unpacked as far as that",
            Errno::Awaited => "it was not fetched yet",
            Errno::Unfetched => "it was not fetched, for that would take more than the bounds",
            Errno::Unsupported => "it cannot do that",
        })
    }
}

impl std::error::Error for Errno {}
