//! What every partition table comes to: named ranges of the provider below, each a slice.

use crate::class::{Extent, Geom, Op, Slot};
use crate::ondisk::Guid;
use crate::topology::Topology;
use std::ops::Range;

/// A flavour of BSD label; they differ in what offsets count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Offsets from the label's slice, shifted by entry `c`'s.
    FreeBsd,
    /// Offsets from the start of the disk, 48 bits.
    OpenBsd,
    /// Offsets from the start of the disk; `d` is the disk, `c` the slice.
    NetBsd,
    /// DragonFly's 64-bit label.
    DragonFly,
}

impl Dialect {
    /// The system's name.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::FreeBsd => "FreeBSD",
            Dialect::OpenBsd => "OpenBSD",
            Dialect::NetBsd => "NetBSD",
            Dialect::DragonFly => "DragonFly",
        }
    }
}

/// What a table says a slice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An MBR or EBR type byte.
    Mbr(u8),
    /// A GPT type.
    Gpt(Guid),
    /// A BSD label's `fstype`.
    Bsd(Dialect, u8),
}

impl Kind {
    /// Whether this is an extended partition, whose first sector is a table of the same class.
    pub fn is_extended(self) -> bool {
        matches!(self, Kind::Mbr(0x05 | 0x0f | 0x85))
    }
}

/// One entry of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// What follows the parent's name: `s1`, `p2`, `a`.
    pub suffix: String,
    /// The entry's number as users count, from 1.
    pub index: u32,
    /// First byte, on the provider below.
    pub start: u64,
    /// Bytes.
    pub length: u64,
    /// What the table says it is.
    pub kind: Kind,
    /// Its name in the table.
    pub label: Option<String>,
    /// Its UUID in the table.
    pub uuid: Option<String>,
}

/// A partition table, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slices {
    /// The range in which partitions may lie, in bytes of the provider below.
    pub usable: Range<u64>,
    /// The entries in use, in the table's order.
    pub entries: Vec<Slice>,
}

impl Slices {
    /// One nameless slice: an inner data area.
    pub fn one(start: u64, length: u64) -> Slices {
        let end = start.saturating_add(length);
        let slice = Slice { suffix: String::new(), index: 1, start, length, kind: Kind::Mbr(0), label: None, uuid: None };
        Slices { usable: start..end, entries: vec![slice] }
    }

    /// The ranges of `usable` that no entry covers, in order.
    pub fn free(&self) -> Vec<Range<u64>> {
        let mut taken: Vec<(u64, u64)> = self.entries.iter().map(|s| (s.start, s.start.saturating_add(s.length))).collect();
        taken.sort_unstable();
        let (mut at, mut free) = (self.usable.start, Vec::new());
        for (start, end) in taken {
            if start > at {
                free.push(at..start.min(self.usable.end));
            }
            at = at.max(end);
        }
        if at < self.usable.end {
            free.push(at..self.usable.end);
        }
        free.retain(|r| r.start < r.end);
        free
    }
}

impl Geom for Slices {
    fn providers(&self) -> Vec<Slot> {
        self.entries.iter().map(|s| Slot { name: s.suffix.clone(), length: s.length, kind: Some(s.kind) }).collect()
    }

    fn topology(&self, slot: usize, below: &[Topology]) -> Topology {
        match (self.entries.get(slot), below.first()) {
            (Some(slice), Some(below)) => below.shift(slice.start, slice.length),
            _ => Topology::new(1, 0),
        }
    }

    fn map(&self, slot: usize, offset: u64, length: u64, _op: Op) -> Extent {
        match self.entries.get(slot) {
            Some(slice) => Extent::At { consumer: 0, offset: slice.start + offset, length },
            None => Extent::Fail { length },
        }
    }

    fn shift(&self, slot: usize) -> Option<u64> {
        self.entries.get(slot).map(|s| s.start)
    }

    fn table(&self) -> Option<&Slices> {
        Some(self)
    }
}
