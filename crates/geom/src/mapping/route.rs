//! A provider compiled for I/O: slices folded into one addition, so depth costs nothing per request.

use crate::base::error::Errno;
use crate::base::store::Store;
use crate::mapping::geom::{Extent, Geom, Op};
use std::ops::Range;
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

/// What is called with every piece of a request, and how many bytes of the request come before it.
pub type Visit<'a> = dyn FnMut(u64, Piece) -> Result<(), Errno> + 'a;

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

impl Piece {
    /// Its bytes in the buffer of a request of which `from` bytes come before it.
    pub(crate) fn within(self, from: u64) -> Result<Range<usize>, Errno> {
        let (Piece::Store { length, .. } | Piece::Zero { length }) = self;
        let index = |n: u64| usize::try_from(n).map_err(|_| Errno::Range);
        Ok(index(from)?..index(from.saturating_add(length))?)
    }
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

    /// The byte of `other` at which this begins, if both are ranges of the same disk or set and it lies inside.
    pub fn place_in(&self, other: &Route) -> Option<u64> {
        let same = match (&self.end, &other.end) {
            (End::Store(own), End::Store(theirs)) => own == theirs,
            (End::Geom { geom: own, slot, .. }, End::Geom { geom: theirs, slot: other, .. }) => Arc::ptr_eq(own, theirs) && slot == other,
            _ => false,
        };
        let place = self.base.checked_sub(other.base).filter(|_| same)?;
        place.checked_add(self.length).is_some_and(|end| end <= other.length).then_some(place)
    }

    /// A route to bytes that some store holds, so that they can be written there.
    pub fn has_stores(&self) -> bool {
        let mut used = Vec::new();
        self.stores(&mut used);
        !used.is_empty()
    }

    /// Appends the disks that its bytes can be on, each once.
    pub(crate) fn stores(&self, used: &mut Vec<usize>) {
        match &self.end {
            End::Store(store) if used.contains(store) => {}
            End::Store(store) => used.push(*store),
            End::Geom { below, .. } => below.iter().for_each(|route| route.stores(used)),
        }
    }

    /// Calls `visit` with every piece of `[offset, offset + length)` and how far into the request it begins, in order: the only
    /// function that follows a mapping. Stops at the first error. A write to a mirror visits every copy; a read the first.
    pub fn extents(&self, offset: u64, length: u64, op: Op, visit: &mut Visit<'_>) -> Result<(), Errno> {
        self.walk(0, offset, length, op, visit)
    }

    /// [`Route::extents`] of what lies `done` bytes into the request.
    fn walk(&self, done: u64, offset: u64, length: u64, op: Op, visit: &mut Visit<'_>) -> Result<(), Errno> {
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.length);
        if !inside {
            return Err(Errno::Range);
        }
        let (geom, slot, below) = match &self.end {
            End::Store(store) => return visit(done, Piece::Store { store: *store, offset: self.base + offset, length }),
            End::Geom { geom, slot, below } => (geom, *slot, below),
        };
        let (mut done, mut at, end) = (done, self.base + offset, self.base + offset + length);
        while at < end {
            let extent = geom.map(slot, at, end - at, op);
            match extent {
                Extent::At { consumer, offset, length } => {
                    below.get(consumer).ok_or(Errno::NoDevice)?.walk(done, offset, length, op, visit)?;
                }
                Extent::Each { offset, length } => {
                    let copies = if op == Op::Read { 1 } else { below.len() };
                    for copy in &below[..copies.min(below.len())] {
                        copy.walk(done, offset, length, op, visit)?;
                    }
                }
                Extent::Zero { length } => visit(done, Piece::Zero { length })?,
                Extent::Fail { .. } => return Err(Errno::Io),
            }
            // A map never returns an empty run; should one do so, the request fails rather than hangs.
            let step = if extent.length() > 0 { extent.length() } else { return Err(Errno::Io) };
            (done, at) = (done + step, at + step);
        }
        Ok(())
    }

    /// Fills `buffer` from `offset`.
    pub fn read_at(&self, stores: &[Box<dyn Store>], buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        self.extents(offset, buffer.len() as u64, Op::Read, &mut |from, piece| {
            let part = buffer.get_mut(piece.within(from)?).ok_or(Errno::Range)?;
            match piece {
                Piece::Store { store, offset, .. } => stores.get(store).ok_or(Errno::NoDevice)?.read_at(part, offset),
                Piece::Zero { .. } => {
                    part.fill(0);
                    Ok(())
                }
            }
        })
    }

    /// Writes all of `bytes` at `offset`, on a mirror to every copy. What is nowhere takes no bytes.
    pub fn write_at(&self, stores: &[Box<dyn Store>], bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.extents(offset, bytes.len() as u64, Op::Write, &mut |from, piece| {
            let part = bytes.get(piece.within(from)?).ok_or(Errno::Range)?;
            match piece {
                Piece::Store { store, offset, .. } => stores.get(store).ok_or(Errno::NoDevice)?.write_at(part, offset),
                Piece::Zero { .. } => Err(Errno::ReadOnly),
            }
        })
    }

    /// Begins to bring what was written in the `length` bytes from `offset` to the media.
    pub fn hasten(&self, stores: &[Box<dyn Store>], offset: u64, length: u64) -> Result<(), Errno> {
        self.extents(offset, length, Op::Write, &mut |_, piece| {
            if let Piece::Store { store, offset, length } = piece {
                stores.get(store).ok_or(Errno::NoDevice)?.hasten(offset, length);
            }
            Ok(())
        })
    }

    /// Makes `length` bytes from `offset` zero, on a mirror on every copy. What is nowhere is zero already.
    pub fn zero(&self, stores: &[Box<dyn Store>], offset: u64, length: u64) -> Result<(), Errno> {
        self.extents(offset, length, Op::Write, &mut |_, piece| match piece {
            Piece::Store { store, offset, length } => stores.get(store).ok_or(Errno::NoDevice)?.zero(offset, length),
            Piece::Zero { .. } => Ok(()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::slices::Slices;

    #[test]
    fn a_slice_has_a_place_in_what_it_is_cut_from() {
        let cut = |start, length, from: &Route| {
            let geom: Arc<dyn Geom> = Arc::new(Slices::one(start, length));
            Route::new(&geom, 0, length, std::slice::from_ref(from))
        };
        let disk = Route::store(0, 1000);
        let outer = cut(100, 500, &disk);
        let inner = cut(50, 10, &outer);
        assert_eq!(inner.place_in(&outer), Some(50));
        assert_eq!((inner.place_in(&disk), outer.place_in(&outer), disk.place_in(&disk)), (Some(150), Some(0), Some(0)));
        // Neither what is around it, nor beside it, nor elsewhere.
        assert_eq!((outer.place_in(&inner), disk.place_in(&outer)), (None, None));
        assert_eq!((cut(590, 20, &disk).place_in(&outer), inner.place_in(&Route::store(1, 1000))), (None, None));
    }
}
