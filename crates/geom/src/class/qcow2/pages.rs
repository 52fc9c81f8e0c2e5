//! Pages of an image's tables as a writer keeps them: changes stay in memory until they are due.

use crate::base::error::Errno;
use crate::base::topology::round_down;
use std::collections::BTreeMap;

/// Most bytes of a page; one never reaches over the end of a cluster.
const LARGEST: u64 = 4096;
/// Pages that are kept, changed ones included: 16 MiB.
const MOST: usize = 4096;
/// Changed pages at which they are written without being asked for.
const MANY_CHANGED: usize = 1024;

/// Reason for which a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// The page at this byte of the file is not here: read it, and ask again.
    Page(u64),
    /// The page at this byte of the file is zero and may be a hole: write it as it is, so that its
    /// room is there when it is changed, and ask again.
    Hole(u64),
    /// A failure of the request itself.
    Failed(Errno),
}

/// Place of a change in the order of writes. Everything of one rank is on the medium before
/// anything of the next is written, and so is the data of the guest before [`Rank::Root`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// Refcounts, and tables that nothing on the medium leads to yet.
    Leaf,
    /// Entries that lead to refcounts.
    Root,
    /// Entries that lead to the guest's data, or to tables of them.
    Link,
}

struct Page {
    bytes: Vec<u8>,
    rank: Option<Rank>,
    /// True if the file may have no room for it.
    may_be_hole: bool,
    /// True if it was used since the last sweep.
    used: bool,
}

/// Pages of tables by their first byte in the file.
pub(crate) struct Pages {
    size: u64,
    pages: BTreeMap<u64, Page>,
    /// Number of pages that are changed.
    changed: usize,
    sweeps: u64,
}

impl Pages {
    /// No page yet, of an image with clusters of `cluster` bytes.
    pub(super) fn new(cluster: u64) -> Pages {
        Pages { size: cluster.min(LARGEST), pages: BTreeMap::new(), changed: 0, sweeps: 0 }
    }

    /// Size of a page in bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The page with byte `at`, and the index of that byte in it.
    fn page(&mut self, at: u64) -> Result<(&mut Page, usize), Halt> {
        let first = round_down(at, self.size);
        let page = self.pages.get_mut(&first).ok_or(Halt::Page(first))?;
        page.used = true;
        Ok((page, usize::try_from(at - first).unwrap_or(usize::MAX)))
    }

    /// Nothing, if the page with byte `at` is here.
    pub(super) fn want(&mut self, at: u64) -> Result<(), Halt> {
        self.page(at).map(drop)
    }

    /// The `N` bytes at `at`, which lie in one page.
    pub(super) fn get<const N: usize>(&mut self, at: u64) -> Result<[u8; N], Halt> {
        let (page, from) = self.page(at)?;
        let bytes = page.bytes.get(from..).and_then(|rest| rest.first_chunk());
        bytes.copied().ok_or(Halt::Failed(Errno::Io))
    }

    /// Puts bytes at `at`, all in one page, to be written as `rank`. Where the file may have no
    /// room for the page it halts: a flush must not fail for want of some.
    pub(super) fn put(&mut self, at: u64, bytes: &[u8], rank: Rank) -> Result<(), Halt> {
        let first = round_down(at, self.size);
        let (page, from) = self.page(at)?;
        if page.may_be_hole {
            return Err(Halt::Hole(first));
        }
        let into = from.checked_add(bytes.len()).and_then(|end| page.bytes.get_mut(from..end));
        into.ok_or(Halt::Failed(Errno::Io))?.copy_from_slice(bytes);
        let was_clean = page.rank.replace(rank).is_none();
        self.changed += usize::from(was_clean);
        Ok(())
    }

    /// Keeps a page that was read, unless one is here, or pages were dropped since `sweeps`: it may
    /// have been changed and written meanwhile.
    pub(super) fn insert(&mut self, at: u64, bytes: Vec<u8>, sweeps: u64) {
        if sweeps != self.sweeps || self.pages.contains_key(&at) {
            return;
        }
        if self.pages.len() >= MOST {
            self.sweep();
        }
        let may_be_hole = bytes.iter().all(|&byte| byte == 0);
        self.pages.insert(at, Page { bytes, rank: None, may_be_hole, used: true });
    }

    /// Notes that the file has room for the page at a byte.
    pub(super) fn fill_hole(&mut self, at: u64) {
        if let Some(page) = self.pages.get_mut(&at) {
            page.may_be_hole = false;
        }
    }

    /// Drops pages that were not used since the last sweep, or all but changed ones if that is not
    /// enough.
    fn sweep(&mut self) {
        self.sweeps += 1;
        self.pages.retain(|_, page| page.rank.is_some() || std::mem::take(&mut page.used));
        if self.pages.len() > MOST / 4 * 3 {
            self.pages.retain(|_, page| page.rank.is_some());
        }
    }

    /// Number of times that pages were dropped.
    pub(super) fn sweeps(&self) -> u64 {
        self.sweeps
    }

    /// The changed pages of a rank, by their place.
    pub(super) fn changed(&self, rank: Rank) -> Vec<(u64, Vec<u8>)> {
        let own = self.pages.iter().filter(|(_, page)| page.rank == Some(rank));
        own.map(|(&at, page)| (at, page.bytes.clone())).collect()
    }

    /// Notes that the changed pages of a rank are on the medium.
    pub(super) fn settle(&mut self, rank: Rank) {
        for page in self.pages.values_mut().filter(|page| page.rank == Some(rank)) {
            page.rank = None;
            self.changed -= 1;
        }
    }

    /// True if so many pages are changed that they should be written.
    pub(super) fn is_full(&self) -> bool {
        self.changed >= MANY_CHANGED
    }
}
