//! Commands and notes of a plan: values, which a command line words with its own names and options.
//!
//! A command of others is one line for a shell, as it is typed: its names are those of variables
//! and device nodes, and lines redirect, quote and comment (`docs/decisions/0052`). A command of
//! this program says what it makes.

use crate::base::topology::Why;
use std::fmt;

/// Command of a plan, in the order to be typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Line for a shell: programs of others, and comments.
    Shell(String),
    /// Empty table that this program makes.
    CreateTable {
        /// Scheme by its name in [`crate::registry`]: `gpt`, `mbr`.
        scheme: &'static str,
        /// Disk that it is made on.
        disk: Operand,
    },
    /// Partition that this program adds to a table.
    AddPartition {
        /// Type by its name in [`crate::table::types`].
        kind: &'static str,
        /// First sector of the partition.
        start: u64,
        /// Length of the partition in sectors.
        sectors: u64,
        /// Disk that has the table.
        disk: Operand,
    },
    /// File system that this program makes.
    MakeFileSystem {
        /// Name of the file system: `ext4`, `ufs`, `swap`.
        system: &'static str,
        /// Provider that it is made on.
        provider: Operand,
        /// Options of the file system's own tool.
        options: Vec<String>,
    },
}

/// Operand of a command of this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Name in a shell: a device node, a variable, or an image with a provider.
    pub name: String,
    /// Sector of an image in bytes, where it is not the usual one of 512.
    pub sector: Option<u64>,
}

/// Note of a plan: a boundary that cannot be reached, or an assumption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Text that names no option of a command line.
    Text(String),
    /// Optimal I/O size in bytes that a device only claims, so that nothing is aligned to it.
    OnlyClaimed(u64),
    /// Unit that such disks have, for a disk that does not name it.
    Presumed {
        /// Purpose of the unit.
        why: Why,
        /// Size of the unit in bytes.
        bytes: u64,
    },
    /// UFS that this program makes, with the options by which newfs(8) makes the same.
    UfsMadeHere(String),
}

impl From<String> for Note {
    fn from(text: String) -> Note {
        Note::Text(text)
    }
}

impl From<&str> for Note {
    fn from(text: &str) -> Note {
        Note::Text(text.to_owned())
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Text(text) => f.write_str(text),
            Note::OnlyClaimed(size) => write!(
                f,
                "optimal_io_size {size} is only claimed, so it is a hint and nothing is aligned to \
                it"
            ),
            Note::Presumed { why, bytes } => {
                write!(f, "{why} units of {bytes} bytes are presumed")
            }
            Note::UfsMadeHere(options) => {
                write!(f, "ufs: made here; on FreeBSD the same comes of newfs {options}")
            }
        }
    }
}
