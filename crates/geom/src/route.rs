//! A provider compiled for I/O: slices folded into one addition, so depth costs nothing per request.

use crate::class::{Extent, Geom, Op};
use crate::error::Errno;
use crate::store::Store;
use std::sync::Arc;

/// Where a provider's bytes are.
#[derive(Clone)]
pub struct Route {
    base: u64,
    length: u64,
    end: End,
}

/// What is left once the slices are folded.
#[derive(Clone)]
enum End {
    /// A disk.
    Store(usize),
    /// A layer that does more than add. `below` is shared: sets of sets would otherwise be copied once for every path.
    Geom { geom: Arc<dyn Geom>, slot: usize, below: Arc<[Route]> },
}

/// A run of bytes on a store, or nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// On that store, at that byte.
    Store {
        /// Which disk.
        store: usize,
        /// Its byte.
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// Zeros.
    Zero {
        /// Bytes.
        length: u64,
    },
}

impl Route {
    /// The whole of disk `store`.
    pub fn store(store: usize, length: u64) -> Route {
        Route { base: 0, length, end: End::Store(store) }
    }

    /// The provider in `slot` of `geom`, `length` bytes long, over `below`. A slice is folded into what is below it.
    pub fn new(geom: &Arc<dyn Geom>, slot: usize, length: u64, below: &[Route]) -> Route {
        match (geom.shift(slot), below.first()) {
            (Some(start), Some(under)) => {
                let room = under.length.saturating_sub(start);
                Route { base: under.base.saturating_add(start), length: length.min(room), end: under.end.clone() }
            }
            _ => Route { base: 0, length, end: End::Geom { geom: geom.clone(), slot, below: below.into() } },
        }
    }

    /// Bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The byte of the disk or set this ends on at which the provider begins.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The disk this is a plain range of, if it is one.
    pub fn medium(&self) -> Option<usize> {
        match self.end {
            End::Store(store) => Some(store),
            End::Geom { .. } => None,
        }
    }

    /// Calls `visit` with every piece of `[offset, offset + length)`, in order: the only function that follows a mapping.
    /// Stops at the first error. A write to a mirror visits every copy; a read the first.
    pub fn extents(&self, offset: u64, length: u64, op: Op, visit: &mut dyn FnMut(Piece) -> Result<(), Errno>) -> Result<(), Errno> {
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.length);
        if !inside {
            return Err(Errno::Range);
        }
        let (geom, slot, below) = match &self.end {
            End::Store(store) => return visit(Piece::Store { store: *store, offset: self.base + offset, length }),
            End::Geom { geom, slot, below } => (geom, *slot, below),
        };
        let (mut at, end) = (self.base + offset, self.base + offset + length);
        while at < end {
            let extent = geom.map(slot, at, end - at, op);
            match extent {
                Extent::At { consumer, offset, length } => {
                    below.get(consumer).ok_or(Errno::NoDevice)?.extents(offset, length, op, visit)?;
                }
                Extent::Each { offset, length } => {
                    let copies = if op == Op::Read { 1 } else { below.len() };
                    for copy in &below[..copies.min(below.len())] {
                        copy.extents(offset, length, op, visit)?;
                    }
                }
                Extent::Zero { length } => visit(Piece::Zero { length })?,
                Extent::Fail { .. } => return Err(Errno::Io),
            }
            // A map never returns an empty run; should one do so, the request fails rather than hangs.
            at += if extent.length() > 0 { extent.length() } else { return Err(Errno::Io) };
        }
        Ok(())
    }

    /// Fills `buffer` from `offset`.
    pub fn read_at(&self, stores: &[Box<dyn Store>], buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let length = buffer.len() as u64;
        let mut rest = buffer;
        self.extents(offset, length, Op::Read, &mut |piece| {
            let count = match piece {
                Piece::Store { length, .. } | Piece::Zero { length } => usize::try_from(length).map_err(|_| Errno::Range)?,
            };
            let (now, later) = std::mem::take(&mut rest).split_at_mut(count);
            rest = later;
            match piece {
                Piece::Store { store, offset, .. } => stores.get(store).ok_or(Errno::NoDevice)?.read_at(now, offset),
                Piece::Zero { .. } => {
                    now.fill(0);
                    Ok(())
                }
            }
        })
    }
}
