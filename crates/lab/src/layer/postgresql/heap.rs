//! A page of a table: equal rows, of which one changes, and its versions.

use super::PAGE;
use crate::error::Error;
use trueline_geom::base::topology::round_up;

/// The bytes of a page's header (`SizeOfPageHeaderData`).
const HEADER: u64 = 24;
/// The bytes of a line pointer (`ItemIdData`).
const LINE: u64 = 4;
/// The bytes of a row's header (`SizeofHeapTupleHeader`, aligned).
const ROW_HEADER: u64 = 24;
/// The alignment of rows in a page (`MAXIMUM_ALIGNOF`).
const ALIGN: u64 = 8;

/// The shape of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heap {
    /// The bytes of a row's columns, and those that stay before and after what changes.
    pub(super) row: u64,
    pub(super) before: u64,
    pub(super) after: u64,
    /// The bytes of a version in a page.
    version: u64,
    /// The rows of a page, as many as `fillfactor` lets a load put there. One version more leaves
    /// less free than that, so that a page is never without need of pruning while one is dead.
    rows: u64,
}

/// The state of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// The line pointer of the version that was left when the page was last pruned, counted behind
    /// those of a loaded page. 0 is that of the row as it was loaded, which leads to another one
    /// ever after.
    left: u64,
    /// True if that version is dead, and another one was added.
    dead: bool,
    /// True if the last version is marked as committed.
    pub(super) marked: bool,
    /// The checkpoint, by number, behind which its last record stands; 0 for none.
    pub(super) recorded: u64,
    /// The end of its last record in the log.
    pub(super) end: u64,
}

impl Page {
    /// The line pointer of the last version, which takes the first that is unused.
    fn newest(&self) -> u64 {
        match (self.dead, self.left) {
            (false, left) => left,
            (true, 1) => 2,
            (true, _) => 1,
        }
    }

    /// Removes the dead version, if there is one. The line pointers that became unused:
    /// that of the version as it was loaded leads on. Those behind the newest version's are no more
    /// (`PageRepairFragmentation`).
    pub(super) fn prune(&mut self) -> Option<u64> {
        let unused = self.dead.then_some(u64::from(self.left > 0))?;
        self.left = self.newest();
        self.dead = false;
        Some(unused)
    }

    /// Adds a version of the row to a page without a dead one.
    pub(super) fn update(&mut self) {
        self.dead = true;
        self.marked = false;
    }
}

impl Heap {
    /// The shape of a table of such rows. It is an error if two versions have no room in a page.
    pub(super) fn new(row: u64, before: u64, after: u64, fillfactor: u64) -> Result<Heap, Error> {
        let refuse = |why: String| Err(Error::new(why));
        if !(10..=100).contains(&fillfactor) {
            return refuse(format!("fillfactor = {fillfactor}: 10 to 100"));
        }
        if !(1..=PAGE / 2).contains(&row) {
            return refuse(format!("row = {row}: 1 to {} bytes", PAGE / 2));
        }
        if before.checked_add(after).is_none_or(|same| same > row) {
            return refuse(format!("before = {before}, after = {after}: a row has {row} bytes"));
        }
        let version = round_up(ROW_HEADER + row, ALIGN).unwrap_or(PAGE);
        let spared = PAGE * (100 - fillfactor) / 100;
        let rows = (PAGE - HEADER - spared) / (version + LINE);
        let heap = Heap { row, before, after, version, rows };
        // A second version, two more line pointers, and one that `PageGetHeapFreeSpace` leaves out.
        if rows == 0 || heap.hole(&heap.loaded()) < version + 3 * LINE {
            return refuse(format!(
                "a page with fillfactor = {fillfactor} has {rows} rows of {version} bytes, and no \
                 room for a second version of one: a smaller fillfactor"
            ));
        }
        Ok(heap)
    }

    /// A page as it was loaded, long before the last checkpoint.
    pub(super) fn loaded(&self) -> Page {
        Page { left: 0, dead: false, marked: true, recorded: 0, end: 0 }
    }

    /// The bytes between line pointers and versions, which images leave out.
    pub(super) fn hole(&self, page: &Page) -> u64 {
        let lines = self.rows + page.left.max(page.newest());
        let taken = HEADER + lines * LINE + (self.rows + u64::from(page.dead)) * self.version;
        PAGE.saturating_sub(taken)
    }
}
