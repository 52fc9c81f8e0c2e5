//! Pieces of a request: the runs of bytes that a walk visits.

use crate::base::error::Errno;
use std::ops::Range;

/// Run of bytes on a store, or on none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Run on a store.
    Store {
        /// Index of the store.
        store: usize,
        /// First byte on the store.
        offset: u64,
        /// Length of the run in bytes.
        length: u64,
    },
    /// Run of zeros without a store.
    Zero {
        /// Length of the run in bytes.
        length: u64,
    },
    /// Run that is made of what several stores hold; only of a read.
    Rebuilt {
        /// Length of the run in bytes.
        length: u64,
    },
    /// Read of what a geom keeps of the request's place, or of more of a compressed block than was
    /// asked for. It takes none of the request's bytes.
    Table {
        /// Index of the store.
        store: usize,
        /// First byte on the store.
        offset: u64,
        /// Length of the run in bytes.
        length: u64,
    },
}

impl Piece {
    /// Bytes of the request that it has.
    pub(crate) fn length(self) -> u64 {
        match self {
            Piece::Store { length, .. } | Piece::Zero { length } | Piece::Rebuilt { length } => {
                length
            }
            Piece::Table { .. } => 0,
        }
    }

    /// Its range in the buffer of a request of which `from` bytes come before it.
    pub(crate) fn within(self, from: u64) -> Result<Range<usize>, Errno> {
        let length = self.length();
        let index = |n: u64| usize::try_from(n).map_err(|_| Errno::Range);
        Ok(index(from)?..index(from.saturating_add(length))?)
    }
}
