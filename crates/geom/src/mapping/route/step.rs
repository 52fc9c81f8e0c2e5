//! One layer of a route: its answers, and the tables and compressed blocks that they take.

use super::{End, Leaf, Route, Visit};
use crate::base::error::Errno;
use crate::base::store::Store;
use crate::mapping::geom::{Extent, Geom, Op, Packed};
use crate::mapping::tables::{MOST_FETCHES, PAGE, Page, PageCache, Tables};
use std::sync::Arc;

/// Pages of the tables of one geom, and the stores from which a walk fetches others.
pub(super) struct TablesOf {
    pub(super) pages: PageCache,
    stores: Arc<[Box<dyn Store>]>,
}

impl TablesOf {
    /// No page yet, of tables on `stores`.
    pub(super) fn new(stores: Arc<[Box<dyn Store>]>) -> TablesOf {
        TablesOf { pages: PageCache::new(), stores }
    }
}

impl Route {
    /// The same way with no page of a table in memory yet, and room for so many pages of the tables
    /// of each layer.
    #[must_use]
    pub fn cold(&self, pages: usize) -> Route {
        let End::Geom { geom, slot, below, paths, tables } = &self.end else { return self.clone() };
        if !self.has_tables() {
            return self.clone();
        }
        let below = below.iter().map(|route| route.cold(pages)).collect();
        let cold = |known: &Arc<TablesOf>| {
            let pages = PageCache::with_places(pages);
            Arc::new(TablesOf { pages, stores: known.stores.clone() })
        };
        let tables = tables.as_ref().map(cold);
        let end = End::Geom { geom: geom.clone(), slot: *slot, below, paths: *paths, tables };
        Route { end, ..self.clone() }
    }
}

/// A layer that does more than add, and what is beneath it, as a walk goes through it.
#[derive(Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) geom: &'a dyn Geom,
    pub(super) slot: usize,
    pub(super) below: &'a [Route],
    pub(super) tables: Option<&'a TablesOf>,
}

/// Reader of the consumers beneath a layer.
type Read<'a> = dyn FnMut(&Route, &mut [u8], u64) -> Result<(), Errno> + 'a;
/// Callback for a run of a table that was looked into: the consumer's route, first byte, length.
type Looked<'a> = dyn FnMut(&Route, u64, u64) -> Result<(), Errno> + 'a;

/// Length of an answer: at least a byte, and no longer than the `asked` bytes. A map never says
/// otherwise; should one do so, the request fails rather than hangs.
#[inline]
pub(super) fn length(extent: &Extent, asked: u64) -> Result<u64, Errno> {
    Some(extent.length()).filter(|length| (1..=asked).contains(length)).ok_or(Errno::Io)
}

impl<'a> Step<'a> {
    #[inline]
    pub(super) fn under(self, consumer: usize) -> Result<&'a Route, Errno> {
        self.below.get(consumer).ok_or(Errno::NoDevice)
    }

    /// The answer of a geom with tables for a run at `at`, of at most `length` bytes. Where it
    /// wants a page of them, `read` reads it; `fetched` is told of each that was read.
    fn answer(
        self,
        tables: &TablesOf,
        (at, length): (u64, u64),
        op: Op,
        read: &mut Read<'_>,
        fetched: &mut Looked<'_>,
    ) -> Result<Extent, Errno> {
        let mut here: Vec<Page> = Vec::new();
        for _ in 0..=MOST_FETCHES {
            let seen = Tables::new(&tables.pages, &here);
            let extent = self.geom.map_by(self.slot, at, length, op, &seen);
            let Extent::Fetch { consumer, page } = extent else { return Ok(extent) };
            let under = self.under(consumer)?;
            let size = under.length.saturating_sub(page).min(PAGE);
            let mut bytes = vec![0; usize::try_from(size).map_err(|_| Errno::Range)?];
            // A table that lies past the end has no bytes, which the geom fails for.
            if size > 0 {
                read(under, &mut bytes, page)?;
                fetched(under, page, size)?;
            }
            tables.pages.spend(size);
            let page = Page { key: (consumer, page), bytes: bytes.into() };
            tables.pages.keep(page.clone());
            here.push(page);
        }
        Err(Errno::Io)
    }

    /// [`Step::answer`] for a walk: tells `visit` of the pages that were read for it.
    pub(super) fn walk_tables(
        self,
        tables: &TablesOf,
        (done, at, length): (u64, u64, u64),
        op: Op,
        visit: &mut Visit<'_>,
    ) -> Result<Extent, Errno> {
        let mut fetched =
            |under: &Route, offset, length| under.walk_table(done, offset, length, visit);
        let mut own = |under: &Route, buffer: &mut [u8], offset| {
            under.read_at(&tables.stores, buffer, offset)
        };
        self.answer(tables, (at, length), op, &mut own, &mut fetched)
    }

    /// [`Step::answer`] for a read, by way of `leaf`.
    pub(super) fn read_tables(
        self,
        tables: &TablesOf,
        leaf: &impl Leaf,
        (at, length): (u64, u64),
    ) -> Result<Extent, Errno> {
        let mut read =
            |under: &Route, buffer: &mut [u8], offset| under.read_through(leaf, buffer, offset);
        self.answer(tables, (at, length), Op::Read, &mut read, &mut |_, _, _| Ok(()))
    }

    /// Fills `part`, at `at`, with what the geom makes of the other consumers.
    pub(super) fn rebuild(self, leaf: &impl Leaf, at: u64, part: &mut [u8]) -> Result<(), Errno> {
        let mut read = |consumer: usize, buffer: &mut [u8], offset: u64| {
            self.under(consumer)?.read_through(leaf, buffer, offset)
        };
        self.geom.rebuild(self.slot, at, part, &mut read)
    }

    /// Fills `part`, at `at`, for an answer other than a place on one consumer.
    pub(super) fn read_elsewhere(
        self,
        leaf: &impl Leaf,
        extent: Extent,
        at: u64,
        part: &mut [u8],
    ) -> Result<(), Errno> {
        match extent {
            Extent::Copies { count, .. } => {
                let copy = |nth| {
                    let (consumer, offset) = self.geom.copy(self.slot, at, nth);
                    self.under(consumer)?.read_through(leaf, part, offset)
                };
                first_that_works(count, copy)
            }
            Extent::Zero { .. } => {
                part.fill(0);
                Ok(())
            }
            Extent::Rebuilt { .. } => self.rebuild(leaf, at, part),
            Extent::Packed { consumer, block, within, .. } => {
                let mut read = |under: &Route, buffer: &mut [u8], offset| {
                    under.read_through(leaf, buffer, offset)
                };
                self.unpack((consumer, block, within), part, &mut read)
            }
            Extent::At { .. }
            | Extent::ReadOnly { .. }
            | Extent::Fail { .. }
            | Extent::Fetch { .. } => Err(Errno::Io),
        }
    }

    /// The consumer of a compressed block, and the bytes of the block that are there: the last one
    /// of a file may end before its last sector does.
    pub(super) fn stored(self, consumer: usize, block: Packed) -> Result<(&'a Route, u64), Errno> {
        let under = self.under(consumer)?;
        let stored = block.stored.min(under.length.saturating_sub(block.offset));
        if stored > 0 { Ok((under, stored)) } else { Err(Errno::Io) }
    }

    /// Fills `part` from byte `within` of a block, which is unpacked whole.
    pub(super) fn unpack(
        self,
        (consumer, block, within): (usize, Packed, u64),
        part: &mut [u8],
        read: &mut Read<'_>,
    ) -> Result<(), Errno> {
        let index = |n: u64| usize::try_from(n).map_err(|_| Errno::Range);
        let from = index(within)?;
        let range = from..from.checked_add(part.len()).ok_or(Errno::Range)?;
        if let Some(tables) = self.tables {
            let key = (consumer, block.offset);
            if let Some(bytes) = tables.pages.unpacked(key) {
                part.copy_from_slice(bytes.get(range).ok_or(Errno::Io)?);
                return Ok(());
            }
            let (under, stored) = self.stored(consumer, block)?;
            let mut bytes = vec![0; index(stored)?];
            read(under, &mut bytes, block.offset)?;
            let mut whole = vec![0; index(block.size)?];
            tables.pages.spend(stored.saturating_add(block.size));
            block.packing.unpack(&bytes, &mut whole)?;
            part.copy_from_slice(whole.get(range).ok_or(Errno::Io)?);
            tables.pages.keep_unpacked(key, whole.into());
            return Ok(());
        }
        Err(Errno::Io)
    }
}

/// Asks for one copy after another, of `count`, until one can be read; the error is the last one's.
fn first_that_works(
    count: usize,
    mut copy: impl FnMut(usize) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let mut result = Err(Errno::Io);
    for nth in 0..count {
        result = copy(nth);
        if result.is_ok() {
            break;
        }
    }
    result
}
