//! Tables that a geom keeps on its consumers, such as the L2 tables of a qcow2: read by the page,
//! kept while there is room.
//!
//! A geom does no I/O. [`Geom::map_by`](super::geom::Geom::map_by) looks into the pages that are
//! here, and answers [`Extent::Fetch`] where one is missing; a route reads that page and asks
//! again. So a table is never read whole, and each of its pages once.

use super::geom::Extent;
use crate::base::topology::round_down;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// Pages that are kept of the tables of one geom: 16 MiB.
const PLACES: usize = 4096;

/// Pages of tables that one question may need: two levels, each entry across two pages, and room.
pub(crate) const MOST_FETCHES: usize = 16;

/// Consumer of a page, and its first byte there.
type Key = (usize, u64);

/// A page that was read, shorter than [`PAGE`] only at the end of its consumer.
#[derive(Clone)]
pub(crate) struct Page {
    pub(crate) key: Key,
    pub(crate) bytes: Arc<[u8]>,
}

/// Pages of the tables of one geom. A place holds the page that was read last of those that belong
/// there.
pub(crate) struct PageCache {
    places: Box<[RwLock<Option<Page>>]>,
    /// The compressed block that was unpacked last.
    unpacked: RwLock<Option<Page>>,
    effort: AtomicU64,
}

impl PageCache {
    pub(crate) fn new() -> PageCache {
        PageCache::with_places(PLACES)
    }

    /// A cache with room for so many pages, at least one.
    pub(crate) fn with_places(count: usize) -> PageCache {
        let places = (0..count.max(1)).map(|_| RwLock::new(None)).collect();
        PageCache { places, unpacked: RwLock::new(None), effort: AtomicU64::new(0) }
    }

    /// The place of a page: neighbours do not share one.
    fn place(&self, (consumer, offset): Key) -> &RwLock<Option<Page>> {
        let number = (offset / PAGE).wrapping_add((consumer as u64).wrapping_mul(0x9e37_79b9));
        let index = number % self.places.len() as u64;
        &self.places[usize::try_from(index).unwrap_or_default()]
    }

    pub(crate) fn keep(&self, page: Page) {
        let place = self.place(page.key);
        *place.write().unwrap_or_else(PoisonError::into_inner) = Some(page);
    }

    /// The compressed block at `key`, if it is the one that was unpacked last.
    pub(super) fn unpacked(&self, key: Key) -> Option<Arc<[u8]>> {
        let last = self.unpacked.read().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|block| block.key == key).map(|block| block.bytes.clone())
    }

    pub(super) fn keep_unpacked(&self, key: Key, bytes: Arc<[u8]>) {
        let mut last = self.unpacked.write().unwrap_or_else(PoisonError::into_inner);
        *last = Some(Page { key, bytes });
    }

    /// Notes `bytes` that were read or made besides those that were asked for.
    pub(super) fn spend(&self, bytes: u64) {
        self.effort.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that were read or made so far besides those that were asked for.
    pub(super) fn effort(&self) -> u64 {
        self.effort.load(Ordering::Relaxed)
    }
}

/// Pages that a geom may look into while it answers.
pub struct Tables<'a> {
    kept: Option<&'a PageCache>,
    fetched: &'a [Page],
}

impl<'a> Tables<'a> {
    /// No page at all: a geom answers with the first that it wants.
    pub const NONE: Tables<'static> = Tables { kept: None, fetched: &[] };

    pub(crate) fn new(kept: &'a PageCache, fetched: &'a [Page]) -> Tables<'a> {
        Tables { kept: Some(kept), fetched }
    }

    /// The `N` bytes at `offset` of a consumer.
    ///
    /// Errors: the answer that a geom gives instead of its own, which is the page to fetch, or a
    /// failure of `length` bytes where the table lies past the end of the consumer.
    pub fn bytes<const N: usize>(
        &self,
        consumer: usize,
        offset: u64,
        length: u64,
    ) -> Result<[u8; N], Extent> {
        let mut found = [0; N];
        let mut done = 0;
        while done < N {
            let at = offset.checked_add(done as u64).ok_or(Extent::Fail { length })?;
            let key = (consumer, round_down(at, PAGE));
            let copied = self.with(key, |page| {
                let from = usize::try_from(at - key.1).unwrap_or(usize::MAX);
                let rest = page.get(from..).unwrap_or_default();
                let count = rest.len().min(N - done);
                found[done..done + count].copy_from_slice(&rest[..count]);
                count
            });
            match copied {
                None => return Err(Extent::Fetch { consumer, page: key.1 }),
                Some(0) => return Err(Extent::Fail { length }),
                Some(count) => done += count,
            }
        }
        Ok(found)
    }

    /// Calls `look` with the page `key`, if it is here.
    fn with<T>(&self, key: Key, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
        if let Some(page) = self.fetched.iter().find(|page| page.key == key) {
            return Some(look(&page.bytes));
        }
        let place = self.kept?.place(key);
        let page = place.read().unwrap_or_else(PoisonError::into_inner);
        page.as_ref().filter(|page| page.key == key).map(|page| look(&page.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_across_two_pages_wants_both() {
        let cache = PageCache::new();
        let tables = Tables::new(&cache, &[]);
        let wanted = |page| Err(Extent::Fetch { consumer: 0, page });
        assert_eq!(tables.bytes::<4>(0, PAGE - 2, 9), wanted(0));
        cache.keep(Page { key: (0, 0), bytes: vec![1; 4096].into() });
        assert_eq!(tables.bytes::<4>(0, PAGE - 2, 9), wanted(PAGE));
        cache.keep(Page { key: (0, PAGE), bytes: vec![2; 3].into() });
        assert_eq!(tables.bytes::<4>(0, PAGE - 2, 9), Ok([1, 1, 2, 2]));
        assert_eq!(tables.bytes::<4>(0, PAGE, 9), Err(Extent::Fail { length: 9 }));
        assert_eq!(
            tables.bytes::<4>(0, u64::MAX, 9),
            Err(Extent::Fetch { consumer: 0, page: u64::MAX - 4095 })
        );
        assert_eq!(tables.bytes::<4>(1, 0, 9), Err(Extent::Fetch { consumer: 1, page: 0 }));
    }
}
