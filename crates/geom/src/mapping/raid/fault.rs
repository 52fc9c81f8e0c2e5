//! Faults of sets that have md's layouts, and of single members.

use std::fmt;

/// Fault of a set's labels, for which no set is made of its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Chunk in bytes that the level cannot have.
    Chunk(u64),
    /// Level of tests and paths, not of storage.
    NoStorage,
    /// Level that is not known.
    Level(i32),
    /// Layout of RAID4, 5 or 6 that is not known.
    Layout(u32),
    /// Layout of RAID10 that is not known.
    Copies(u32),
    /// Layout of RAID10 in which one copy would lie over another.
    Overlapping(u32),
    /// Fewer members than the level takes.
    Members {
        /// Number of members of the set.
        disks: u64,
        /// Least number of members.
        least: u64,
    },
    /// Length past 2^64 bytes.
    TooLarge,
    /// Member without room for a chunk.
    NoChunk,
    /// RAID0 of several zones that does not record which of two layouts it has.
    Unsaid,
    /// Labels that leave the set no byte.
    Empty,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Chunk(bytes) => write!(f, "its chunk is {bytes} bytes"),
            Fault::NoStorage => f.write_str("its level is one of tests and paths, not of storage"),
            Fault::Level(level) => write!(f, "its level is {level}, which is not known"),
            Fault::Layout(layout) => write!(f, "its layout is {layout}, which is not known"),
            Fault::Copies(layout) => write!(f, "its layout is {layout:#x}, which is not known"),
            Fault::Overlapping(layout) => {
                write!(f, "in its layout, {layout:#x}, copies lie over each other")
            }
            Fault::Members { disks, least } => {
                write!(f, "it has {disks} members, and its level takes {least} at least")
            }
            Fault::TooLarge => f.write_str("it would be too large"),
            Fault::NoChunk => f.write_str("a member has no room for a chunk"),
            Fault::Unsaid => f.write_str(
                "its members differ in length and it does not say in which of two layouts it was written: Linux refuses it too",
            ),
            Fault::Empty => f.write_str("its labels leave it no room"),
        }
    }
}

impl std::error::Error for Fault {}

/// Reason for which a member is left out of its set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exclusion {
    /// Label that contradicts the others.
    Contradicts,
    /// Label with a lower event count than the newest one.
    Stale {
        /// Event count of this label.
        seen: u64,
        /// Event count of the newest label.
        newest: u64,
    },
    /// Member that the others know as failed.
    Failed,
    /// Length in bytes, which its data would go past to byte `end`.
    Short {
        /// Bytes of the member.
        length: u64,
        /// Byte after the last of its data.
        end: u64,
    },
    /// Role that a set of so many members does not have.
    Role {
        /// Role of the member.
        role: u32,
        /// Most members that the set has.
        members: u32,
    },
    /// Copy of the member that has this role.
    Copy(u32),
    /// Role that another member has.
    Taken(u32),
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exclusion::Contradicts => {
                f.write_str("what it says of the set is not what the others say")
            }
            Exclusion::Stale { seen, newest } => {
                write!(f, "it is stale: its event count is {seen}, the newest {newest}")
            }
            Exclusion::Failed => f.write_str("it is stale: the others know it as failed"),
            Exclusion::Short { length, end } => {
                write!(f, "it has {length} bytes, and its data would end at byte {end}")
            }
            Exclusion::Role { role, members } => {
                write!(f, "its role is {role}, of {members} members")
            }
            Exclusion::Copy(role) => {
                write!(f, "it is a copy of another member, number {role}: name each member once")
            }
            Exclusion::Taken(role) => write!(f, "another member has its role, number {role}"),
        }
    }
}
