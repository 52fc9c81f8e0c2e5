//! One partition, as a table records it.

use crate::base::ondisk::Guid;
use crate::mapping::slices::PartitionType;
use std::ops::Range;

/// Facts that every table records of a partition. A [`Slice`](crate::mapping::slices::Slice) shows
/// them, an [`Entry`](crate::table::Entry) changes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Number as users count, from 1.
    pub index: u32,
    /// First byte on the provider below.
    pub start: u64,
    /// Length of the partition in bytes.
    pub length: u64,
    /// Type in the table.
    pub kind: PartitionType,
    /// Name in the table; `None` if it or the table has none.
    pub label: Option<String>,
    /// GUID in the table; `None` if it or the table has none.
    pub guid: Option<Guid>,
}

impl Partition {
    /// A partition without a name and a GUID.
    pub fn new(index: u32, start: u64, length: u64, kind: PartitionType) -> Partition {
        Partition { index, start, length, kind, label: None, guid: None }
    }

    /// Offset of the byte after the last; the greatest there is where numbers of a damaged table
    /// go past it.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.length)
    }

    /// Bytes of the provider below that it takes.
    pub fn range(&self) -> Range<u64> {
        self.start..self.end()
    }

    /// True if all of `range`, bytes of the provider below, lies in it.
    pub(crate) fn covers(&self, range: &Range<u64>) -> bool {
        self.start <= range.start && range.end <= self.end()
    }

    /// True if it lies within a provider of `length` bytes.
    pub(crate) fn is_within(&self, length: u64) -> bool {
        self.start.checked_add(self.length).is_some_and(|end| end <= length)
    }
}
