//! Texts that are no use of disks.

use super::DEEPEST;
use std::fmt;

/// Fault of a text that should be a use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidUse {
    /// More layers than any stack has.
    TooDeep,
    /// Layer that does not stand on the one beneath.
    Misplaced {
        /// Layer as it was named.
        layer: String,
        /// Name of the layer beneath; `nothing` for the bottom.
        below: &'static str,
    },
    /// Set of Linux with a level, a number of disks or a chunk that it cannot have.
    Set(String),
    /// Pool of ZFS with a parity or a number of disks that it cannot have.
    Pool(String),
    /// Level of RAID by itself, and the set of Linux that it may mean.
    Level {
        /// Word as it was given.
        word: String,
        /// Name of a set.
        set: String,
    },
    /// Word that is no use, and names that it may have been meant for, the nearest first.
    Unknown {
        /// Word as it was given.
        word: String,
        /// Names of uses, at most three.
        near: Vec<&'static str>,
    },
}

impl fmt::Display for InvalidUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidUse::TooDeep => write!(f, "more than {DEEPEST} layers"),
            InvalidUse::Misplaced { layer, below } => write!(
                f,
                "{layer} does not stand on {below}: name layers from the bottom, as md5x4+luks+lvm+xfs"
            ),
            InvalidUse::Set(word) => write!(
                f,
                "no set '{word}': write md LEVEL x DISKS : CHUNK, as md5x4:64k: levels 0, 1, 10 \
                over 2 disks or more, 4 and 5 over 3, 6 over 4; \
                 a chunk, but for level 1, is a power of two from 4k"
            ),
            InvalidUse::Pool(word) => write!(
                f,
                "no pool '{word}': write raidz PARITY x DISKS, as raidz2x6: parity 1 to 3, and more disks than that"
            ),
            InvalidUse::Level { word, set } => write!(
                f,
                "no use '{word}': did you mean {set}, Linux's RAID, or raidz1x4, a ZFS pool?"
            ),
            InvalidUse::Unknown { word, near } if near.is_empty() => write!(f, "no use '{word}'"),
            InvalidUse::Unknown { word, near } => {
                write!(f, "no use '{word}': did you mean {}?", near.join(", "))
            }
        }
    }
}

impl std::error::Error for InvalidUse {}
