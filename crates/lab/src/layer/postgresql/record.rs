//! The records of PostgreSQL's log: their bytes (`xl_tot_len`).
//!
//! | part | bytes | structure |
//! |---|---|---|
//! | header | 24 | `XLogRecord` |
//! | of a block | 4 + 12 + 4 | `XLogRecordBlockHeader`, `RelFileNode`, the block's number |
//! | of an image | 5 | `XLogRecordBlockImageHeader` |
//! | of the record's own data | 2 | `XLogRecordDataHeaderShort` |
//!
//! Their data in access/heapam_xlog.h, access/xact.h, storage/standbydefs.h and
//! catalog/pg_control.h: `xl_heap_update` has 14 bytes, `xl_heap_header` 5 (and one of padding
//! before the columns), `xl_heap_prune` 8, `xl_xact_commit` 8, `xl_running_xacts` 24, `CheckPoint`
//! 88.

use super::heap::Heap;

const HEADER: u64 = 24;
const BLOCK: u64 = 4 + 12 + 4;
const IMAGE: u64 = 5;
const OWN: u64 = 2;

/// A commit of a transaction.
pub(super) const COMMIT: u64 = HEADER + OWN + 8;
/// The list of the transactions that run, of which there are none.
pub(super) const RUNNING: u64 = HEADER + OWN + 24;
/// The end of a checkpoint.
pub(super) const CHECKPOINT: u64 = HEADER + OWN + 88;

/// A record of a change of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The bytes of the record's own data, with their header.
    own: u64,
    /// The bytes of the block's data, which an image stands for.
    block: u64,
}

impl Record {
    /// The bytes of the record, with an image of as many bytes or none.
    pub(super) fn length(self, image: Option<u64>) -> u64 {
        HEADER + BLOCK + self.own + image.map_or(self.block, |bytes| IMAGE + bytes)
    }
}

/// An image of a page that is only marked (`XLOG_FPI_FOR_HINT`).
pub(super) const MARK: Record = Record { own: 0, block: 0 };

/// A new version of a row in the same page. Equal bytes at the begin and the end are left out
/// where they are 3 or more, and their number is said in 2 (`log_heap_update`).
pub(super) fn update(heap: &Heap) -> Record {
    let left_out = |equal: u64| if equal < 3 { (0, 0) } else { (equal, 2) };
    let ((before, says_before), (after, says_after)) =
        (left_out(heap.before), left_out(heap.after));
    let changed = heap.row - before - after;
    Record { own: OWN + 14, block: says_before + says_after + 5 + 1 + changed }
}

/// A page without its dead versions: the first one's line pointer leads to the last one, `unused`
/// ones are free.
pub(super) fn prune(unused: u64) -> Record {
    Record { own: OWN + 8, block: 4 + 2 * unused }
}
