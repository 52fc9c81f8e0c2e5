//! A provider compiled for I/O: slices folded into one addition, so depth costs nothing per
//! request.

use crate::base::error::Errno;
use crate::base::store::Store;
use crate::base::topology::{ParityRows, Topology};
use crate::mapping::geom::{Extent, Geom, Op, Slot};
use std::sync::Arc;
use step::{Step, TablesOf};

mod piece;
mod runs;
mod step;

pub use piece::Piece;
pub use runs::EachRun;

#[cfg(test)]
mod tests;

/// Compiled way to a provider's bytes.
#[derive(Clone)]
pub struct Route {
    base: u64,
    length: u64,
    end: End,
}

/// Layer at which a route ends once the slices are folded.
#[derive(Clone)]
enum End {
    /// Disk with this index among the stores.
    Store(usize),
    /// Layer that does more than add. `below` is shared: sets of sets would otherwise be copied
    /// once for every path.
    Geom {
        geom: Arc<dyn Geom>,
        slot: usize,
        below: Arc<[Route]>,
        /// Ways from here to disks: what stands on the same layer twice is walked twice.
        paths: usize,
        /// Pages of its tables, for a geom that has some.
        tables: Option<Arc<TablesOf>>,
    },
}

/// Ways to disks that a route may have. A set of real disks has as many as it has members; layers
/// that stand on each other many times over have a power of that, and every read would walk them.
const MOST_PATHS: usize = 1 << 16;

/// Provider with more ways to disks than are followed: every I/O fails.
struct Maze {
    length: u64,
}

impl Geom for Maze {
    fn providers(&self) -> Vec<Slot> {
        vec![Slot { name: String::new(), length: self.length, kind: None }]
    }

    fn topology(&self, _slot: usize, _below: &[Topology]) -> Topology {
        Topology::new(1, self.length)
    }

    fn map(&self, _slot: usize, _offset: u64, length: u64, op: Op) -> Extent {
        match op {
            Op::Read => Extent::Fail { length },
            Op::Write => Extent::ReadOnly { length },
        }
    }

    fn read_only(&self, _slot: usize) -> Option<&'static str> {
        Some("it stands on its disks in more ways than are followed")
    }
}

/// A range of a provider that a set makes.
#[derive(Clone, Copy)]
pub struct RangeOfSet<'a> {
    /// The geom of the set.
    pub geom: &'a Arc<dyn Geom>,
    /// The slot of the provider.
    pub slot: usize,
    /// The routes to its members, in order.
    pub below: &'a Arc<[Route]>,
    /// The first byte of the range on the provider.
    pub base: u64,
}

/// A callback for every piece of a request; the first argument is the bytes of the request before
/// the piece.
pub type Visit<'a> = dyn FnMut(u64, Piece) -> Result<(), Errno> + 'a;

/// Reader of stores, where routes end.
pub(crate) trait Leaf {
    /// Fills `buffer` from byte `offset` of the store with index `store`.
    fn read(&self, store: usize, buffer: &mut [u8], offset: u64) -> Result<(), Errno>;
}

/// Stores as they are.
struct Stores<'a>(&'a [Box<dyn Store>]);

impl Leaf for Stores<'_> {
    fn read(&self, store: usize, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        self.0.get(store).ok_or(Errno::NoDevice)?.read_at(buffer, offset)
    }
}

impl Route {
    /// The route to the whole of disk `store`, of `length` bytes.
    pub fn store(store: usize, length: u64) -> Route {
        Route { base: 0, length, end: End::Store(store) }
    }

    /// The route to the provider in `slot` of `geom`, `length` bytes long, over `below`. A slice is
    /// folded into the route below it.
    pub fn new(geom: &Arc<dyn Geom>, slot: usize, length: u64, below: &[Route]) -> Route {
        match (geom.shift(slot), below.first()) {
            (Some(start), Some(under)) => {
                let room = under.length.saturating_sub(start);
                Route {
                    base: under.base.saturating_add(start),
                    length: length.min(room),
                    end: under.end.clone(),
                }
            }
            _ => {
                let paths = below.iter().map(Route::paths).fold(0, usize::saturating_add);
                let end = if paths > MOST_PATHS {
                    let (geom, below) = (Arc::new(Maze { length }), [].into());
                    End::Geom { geom, slot: 0, below, paths: 1, tables: None }
                } else {
                    let (geom, below) = (geom.clone(), below.into());
                    End::Geom { geom, slot, below, paths: paths.max(1), tables: None }
                };
                Route { base: 0, length, end }
            }
        }
    }

    /// Number of ways from it to disks.
    fn paths(&self) -> usize {
        match &self.end {
            End::Store(_) => 1,
            End::Geom { paths, .. } => *paths,
        }
    }

    /// The route to the provider in `slot` of a geom that keeps tables on its consumers; a walk
    /// that lacks a page of them reads it from `stores`.
    pub fn with_tables(
        geom: &Arc<dyn Geom>,
        slot: usize,
        length: u64,
        below: &[Route],
        stores: &Arc<[Box<dyn Store>]>,
    ) -> Route {
        let mut route = Route::new(geom, slot, length, below);
        if let End::Geom { tables, .. } = &mut route.end {
            let of = TablesOf::new(stores.clone());
            *tables = Some(Arc::new(of));
        }
        route
    }

    /// The layer that it ends at; `None` for a range of a disk.
    fn step(&self) -> Option<Step<'_>> {
        match &self.end {
            End::Store(_) => None,
            End::Geom { geom, slot, below, tables, .. } => {
                Some(Step { geom: &**geom, slot: *slot, below, tables: tables.as_deref() })
            }
        }
    }

    /// True if some layer of it keeps tables that a read may have to look into.
    pub fn has_tables(&self) -> bool {
        let End::Geom { below, tables, .. } = &self.end else { return false };
        tables.is_some() || below.iter().any(Route::has_tables)
    }

    /// Bytes of tables and compressed blocks that reads have taken so far, on all its layers,
    /// besides those that were asked for.
    pub(crate) fn effort(&self) -> u64 {
        let End::Geom { below, tables, .. } = &self.end else { return 0 };
        let own = tables.as_ref().map_or(0, |tables| tables.pages.effort());
        below.iter().map(Route::effort).fold(own, u64::saturating_add)
    }

    /// Length of the provider in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// First byte of the provider on the disk or set that the route ends at.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Index of the disk that this is a plain range of; `None` above a set.
    pub fn medium(&self) -> Option<usize> {
        match self.end {
            End::Store(store) => Some(store),
            End::Geom { .. } => None,
        }
    }

    /// First byte of this on `other`, if both are ranges of the same disk or set and this lies
    /// inside; otherwise `None`.
    pub fn place_in(&self, other: &Route) -> Option<u64> {
        let same = match (&self.end, &other.end) {
            (End::Store(own), End::Store(theirs)) => own == theirs,
            (End::Geom { geom: own, slot, .. }, End::Geom { geom: theirs, slot: other, .. }) => {
                Arc::ptr_eq(own, theirs) && slot == other
            }
            _ => false,
        };
        let place = self.base.checked_sub(other.base).filter(|_| same)?;
        place.checked_add(self.length).is_some_and(|end| end <= other.length).then_some(place)
    }

    /// True if some store holds its bytes, so that they can be written there.
    pub fn has_stores(&self) -> bool {
        let mut used = Vec::new();
        self.stores(&mut used);
        !used.is_empty()
    }

    /// Appends the indices of the stores that its bytes can be on, each once.
    pub(crate) fn stores(&self, used: &mut Vec<usize>) {
        match &self.end {
            End::Store(store) if used.contains(store) => {}
            End::Store(store) => used.push(*store),
            End::Geom { below, .. } => below.iter().for_each(|route| route.stores(used)),
        }
    }

    /// The set that this is a range of; `None` for a range of a disk.
    pub fn set(&self) -> Option<RangeOfSet<'_>> {
        match &self.end {
            End::Store(_) => None,
            End::Geom { geom, slot, below, .. } => {
                Some(RangeOfSet { geom, slot: *slot, below, base: self.base })
            }
        }
    }

    /// The reason for which nothing of it can be written, in a few words: its own layer's, else
    /// that of any layer beneath.
    pub fn read_only(&self) -> Option<&'static str> {
        let End::Geom { geom, slot, below, .. } = &self.end else { return None };
        geom.read_only(*slot).or_else(|| below.iter().find_map(Route::read_only))
    }

    /// The reason for which all or some of it cannot be written: what wants to write it as a whole
    /// does not begin.
    pub fn read_only_in_part(&self) -> Option<&'static str> {
        let End::Geom { geom, slot, below, .. } = &self.end else { return None };
        let own = geom.read_only(*slot).or_else(|| geom.read_only_in_part(*slot));
        own.or_else(|| below.iter().find_map(Route::read_only_in_part))
    }

    /// The shape of the parity set beneath; `None` without one, or if the members of a set lie on
    /// different ones.
    pub fn parity_rows(&self) -> Option<ParityRows> {
        let End::Geom { geom, slot, below, .. } = &self.end else { return None };
        if let Some(rows) = geom.rows(*slot) {
            let parity = rows.parity(0).into_iter().flatten().count();
            return Some(ParityRows {
                chunk: rows.chunk(),
                data: rows.data(),
                parity: u64::try_from(parity).ok()?,
            });
        }
        let (first, others) = below.split_first()?;
        first.parity_rows().filter(|rows| others.iter().all(|r| r.parity_rows() == Some(*rows)))
    }

    /// Calls `visit` with every piece of `[offset, offset + length)` and the bytes of the request
    /// before it, in order. Stops at the first error. A write to a mirror visits every copy; a read
    /// the first. [`Route::read_at`] alone follows a mapping besides, because it tries the others.
    pub fn extents(
        &self,
        offset: u64,
        length: u64,
        op: Op,
        visit: &mut Visit<'_>,
    ) -> Result<(), Errno> {
        self.walk(0, offset, length, op, visit)
    }

    /// Walks the part of a request that lies `done` bytes into it, as [`Route::extents`].
    fn walk(
        &self,
        done: u64,
        offset: u64,
        length: u64,
        op: Op,
        visit: &mut Visit<'_>,
    ) -> Result<(), Errno> {
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.length);
        if !inside {
            return Err(Errno::Range);
        }
        let Some(step) = self.step() else {
            let store = self.medium().ok_or(Errno::NoDevice)?;
            return visit(done, Piece::Store { store, offset: self.base + offset, length });
        };
        let (mut done, mut at, end) = (done, self.base + offset, self.base + offset + length);
        while at < end {
            let extent = match step.tables {
                None => step.geom.map(step.slot, at, end - at, op),
                Some(tables) => step.walk_tables(tables, (done, at, end - at), op, visit)?,
            };
            let whole = step::length(&extent, end - at)?;
            match extent {
                Extent::At { consumer, offset, length } => {
                    step.under(consumer)?.walk(done, offset, length, op, visit)?;
                }
                Extent::Copies { count, length } => {
                    for nth in 0..if op == Op::Read { count.min(1) } else { count } {
                        let (consumer, offset) = step.geom.copy(step.slot, at, nth);
                        step.under(consumer)?.walk(done, offset, length, op, visit)?;
                    }
                }
                Extent::Zero { length } => visit(done, Piece::Zero { length })?,
                Extent::Rebuilt { length } if op == Op::Read => {
                    visit(done, Piece::Rebuilt { length })?;
                }
                Extent::Packed { consumer, block, length, .. } if op == Op::Read => {
                    let (under, stored) = step.stored(consumer, block)?;
                    under.walk_table(done, block.offset, stored, visit)?;
                    visit(done, Piece::Rebuilt { length })?;
                }
                Extent::Rebuilt { .. } | Extent::Packed { .. } | Extent::ReadOnly { .. } => {
                    return Err(Errno::ReadOnly);
                }
                Extent::Fail { .. } | Extent::Fetch { .. } => return Err(Errno::Io),
            }
            (done, at) = (done + whole, at + whole);
        }
        Ok(())
    }

    /// Visits what a look into a table reads, `done` bytes into a request.
    fn walk_table(
        &self,
        done: u64,
        offset: u64,
        length: u64,
        visit: &mut Visit<'_>,
    ) -> Result<(), Errno> {
        // A container in a container has more of them on the way.
        let visit: &mut Visit<'_> = &mut |_, piece| match piece {
            Piece::Store { store, offset, length } | Piece::Table { store, offset, length } => {
                visit(done, Piece::Table { store, offset, length })
            }
            Piece::Zero { .. } | Piece::Rebuilt { .. } => Ok(()),
        };
        self.walk(done, offset, length, Op::Read, visit)
    }

    /// Fills `buffer` from `offset`. Of several copies it takes the first that can be read, and
    /// what has no copy left is rebuilt.
    ///
    /// Errors: the first of a piece; of copies, that of the last.
    pub fn read_at(
        &self,
        stores: &[Box<dyn Store>],
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<(), Errno> {
        self.read_through(&Stores(stores), buffer, offset)
    }

    /// Fills `buffer` from `offset` as [`Route::read_at`], by way of `leaf`, which reads the
    /// stores: it sees each read, those that fail and those that another copy or parity answers
    /// instead.
    pub(crate) fn read_through(
        &self,
        leaf: &impl Leaf,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<(), Errno> {
        let asked = buffer.len() as u64;
        if offset.checked_add(asked).is_none_or(|end| end > self.length) {
            return Err(Errno::Range);
        }
        let Some(step) = self.step() else {
            let store = self.medium().ok_or(Errno::NoDevice)?;
            return leaf.read(store, buffer, self.base + offset);
        };
        let (mut at, mut rest) = (self.base + offset, buffer);
        while !rest.is_empty() {
            let left = rest.len() as u64;
            // Matched where the map leaves it: an answer that is moved on costs more than the rest.
            let extent = match step.tables {
                None => step.geom.map(step.slot, at, left, Op::Read),
                Some(tables) => step.read_tables(tables, leaf, (at, left))?,
            };
            let length = usize::try_from(step::length(&extent, left)?).map_err(|_| Errno::Range)?;
            let (part, after) = rest.split_at_mut_checked(length).ok_or(Errno::Io)?;
            match extent {
                Extent::At { consumer, offset, .. } => {
                    let under = step.under(consumer);
                    let read = under.and_then(|under| under.read_through(leaf, part, offset));
                    if let Err(error) = read {
                        // Parity may know what this member no longer says.
                        step.rebuild(leaf, at, part).map_err(|_| error)?;
                    }
                }
                other => step.read_elsewhere(leaf, other, at, part)?,
            }
            (at, rest) = (at + length as u64, after);
        }
        Ok(())
    }

    /// Writes all of `bytes` at `offset`, on a mirror to every copy. A run without a store fails
    /// with [`Errno::ReadOnly`].
    pub fn write_at(
        &self,
        stores: &[Box<dyn Store>],
        bytes: &[u8],
        offset: u64,
    ) -> Result<(), Errno> {
        self.extents(offset, bytes.len() as u64, Op::Write, &mut |from, piece| {
            let part = bytes.get(piece.within(from)?).ok_or(Errno::Range)?;
            match piece {
                Piece::Store { store, offset, .. } => {
                    stores.get(store).ok_or(Errno::NoDevice)?.write_at(part, offset)
                }
                Piece::Table { .. } => Ok(()),
                Piece::Zero { .. } | Piece::Rebuilt { .. } => Err(Errno::ReadOnly),
            }
        })
    }

    /// Starts the write-back of `length` bytes from `offset` to the media, without waiting for it.
    pub fn start_writeback(
        &self,
        stores: &[Box<dyn Store>],
        offset: u64,
        length: u64,
    ) -> Result<(), Errno> {
        self.extents(offset, length, Op::Write, &mut |_, piece| {
            if let Piece::Store { store, offset, length } = piece {
                stores.get(store).ok_or(Errno::NoDevice)?.start_writeback(offset, length);
            }
            Ok(())
        })
    }

    /// Zeroes `length` bytes from `offset`, on a mirror on every copy. A run without a store is
    /// zero already.
    pub fn zero(&self, stores: &[Box<dyn Store>], offset: u64, length: u64) -> Result<(), Errno> {
        self.runs(offset, length, &mut |store, offset, length| {
            stores.get(store).ok_or(Errno::NoDevice)?.zero(offset, length)
        })
    }
}
