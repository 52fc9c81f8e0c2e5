//! Cures as values: the command line words them, with the names and options that a user typed.

use crate::base::escape;

/// One cure of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fix {
    /// A sentence about an action of the user or of another program.
    Words(String),
    /// Other starts of the provider, in bytes of its disk or set, the best first; empty where none
    /// near it is free.
    StartAt(Vec<u64>),
    /// Bytes by which a later start of the partition beneath a data area puts that area on the
    /// grain.
    StartLater(u64),
    /// Bytes that the provider lacks to the end of its last unit, and that no other provider has.
    Lengthen(u64),
    /// Rewriting a damaged table from another copy of it on the provider.
    Recover,
    /// Resuming the move that was interrupted.
    Resume,
    /// Making the named format anew, laid out for the provider's grain; its contents have to be
    /// saved before.
    Recreate(&'static str),
    /// Showing the disk with the sectors that its table counts, of so many bytes.
    ShowSectors(u64),
    /// Showing the disk with sectors of so many bytes, or making its table anew for those it has.
    ShowSectorsOrRemake(u64),
    /// Converting the disk, whose table counts sectors of so many bytes, to those that it has.
    Convert(u64),
    /// Writing both copies of a table from the right one, of two that are valid and differ.
    ChooseCopy,
    /// Naming the members of a set that are missing.
    NameMembers {
        /// Number of members that are missing.
        missing: usize,
        /// Class of the set, where a command prints the number of a member.
        numbered_by: Option<&'static str>,
    },
    /// Following the names of other files in a container, or naming those as well.
    Follow,
    /// Stating what the disk is, in place of what is presumed of it.
    State(Statement),
}

/// Property of a disk that its user may know, and the disk does not tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// Physical block of so many bytes.
    Physical(u64),
    /// Drive or set that the disk is for.
    Drive,
    /// Optimal I/O size, where the claim is no mere limit.
    Optimal,
    /// Chunk of a set beneath, in bytes; without one, starts of the provider on a boundary of it,
    /// in bytes of its disk.
    Chunk {
        /// Bytes of the chunk that the contents record.
        size: u64,
        /// Starts before and behind that lie on a multiple of it.
        starts: Vec<u64>,
    },
    /// Physical block or other boundary, where what is claimed cannot be true.
    Boundary,
}

impl Fix {
    /// The sentence of [`Fix::Words`]; `None` for every other cure.
    pub fn words(&self) -> Option<&str> {
        match self {
            Fix::Words(text) => Some(text),
            _ => None,
        }
    }
}

impl From<String> for Fix {
    fn from(text: String) -> Fix {
        Fix::Words(escape::plain(&text))
    }
}

impl From<&str> for Fix {
    fn from(text: &str) -> Fix {
        Fix::Words(text.into())
    }
}
