//! One layer of a route: its answers, and the tables and compressed blocks that they take.

use super::{End, Route, Visit};
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

impl<'a> Step<'a> {
    pub(super) fn under(self, consumer: usize) -> Result<&'a Route, Errno> {
        self.below.get(consumer).ok_or(Errno::NoDevice)
    }

    /// The answer of the geom for a run at `at`, not empty and no longer than `length`. Where it
    /// wants a page of its tables, `read` reads it; `fetched` is told of each that was read.
    pub(super) fn answer(
        self,
        at: u64,
        length: u64,
        op: Op,
        read: &mut Read<'_>,
        fetched: &mut Looked<'_>,
    ) -> Result<Extent, Errno> {
        let extent = match self.tables {
            None => self.geom.map(self.slot, at, length, op),
            Some(tables) => self.answer_by(tables, at, length, op, read, fetched)?,
        };
        // A map never returns an empty run; should one do so, the request fails rather than hangs.
        if (1..=length).contains(&extent.length()) { Ok(extent) } else { Err(Errno::Io) }
    }

    fn answer_by(
        self,
        tables: &TablesOf,
        at: u64,
        length: u64,
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

    /// [`Step::answer`] of a walk: tells `visit` of the pages that were read for it.
    pub(super) fn walk_tables(
        self,
        done: u64,
        at: u64,
        length: u64,
        op: Op,
        visit: &mut Visit<'_>,
    ) -> Result<Extent, Errno> {
        let mut fetched =
            |under: &Route, offset, length| under.walk_table(done, offset, length, visit);
        self.answer(at, length, op, &mut self.own_reader(), &mut fetched)
    }

    /// A reader of the stores that came with the tables.
    fn own_reader(self) -> impl FnMut(&Route, &mut [u8], u64) -> Result<(), Errno> + use<'a> {
        let tables = self.tables;
        move |under, buffer, offset| {
            under.read_at(&tables.ok_or(Errno::NoDevice)?.stores, buffer, offset)
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
