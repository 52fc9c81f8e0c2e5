//! `postgresql`: a PostgreSQL server with one table and one session, without its background writer.
//!
//! # On disk
//! The write-ahead log (WAL), `log` bytes written cyclically in segments; a page of `pg_xact`;
//! `pg_control`; the table, in pages of 8192 bytes, each with equal rows of which one changes. The
//! layer shows the table.
//!
//! # Rules
//! - **A write** is `UPDATE … WHERE id BETWEEN …`, a transaction that changes one row in each page
//!   that it covers in part or whole. A page is read once, at its first touch. The new version of
//!   the row goes into the same page (a HOT update, `heap_update` in access/heap/heapam.c), which
//!   stays dirty.
//! - **A page is pruned** when it is looked at and has a dead version: with one version more than
//!   `fillfactor` lets a load put there it has less free than that (`heap_page_prune_opt` in
//!   access/heap/pruneheap.c).
//! - **The log** has a record for every page changed and every page pruned, and one of the commit.
//!   The first of a page after a checkpoint has the page's image without its hole
//!   (`XLogRecordAssemble` in access/transam/xloginsert.c) if `full-page-writes`. Their sizes are
//!   in `record`.
//! - **A commit** writes the pages of the log from the one in which the last write ended, whole, in
//!   one request, and flushes (`XLogWrite` in access/transam/xlog.c). It is cut where the ring of
//!   `wal-buffers` wraps, and where a segment ends, which is flushed too. A record that finds the
//!   ring full first writes its oldest page alone (`AdvanceXLInsertBuffer`).
//! - **A read** is a `SELECT` of a row in each page. It prunes too, and marks the last version as
//!   committed, which makes the page dirty without a record (`SetHintBits` in
//!   access/heap/heapam_visibility.c).
//! - **A flush** is a `CHECKPOINT`: a page of `pg_xact` if there was a commit, every dirty page,
//!   ascending, one request each, a flush of every file of 1 GiB written, its records in the log,
//!   `pg_control` (`CreateCheckPoint` in access/transam/xlog.c).
//!
//! A server makes one request at a time of its files: each is a phase of its own.
//!
//! # Limits
//! - One session, which waits for each commit, and no table but this one. No row moves to another
//!   page, no index changes, no page is marked as all visible (a table that was not vacuumed).
//! - The buffers hold the whole table: nothing is evicted, and what is remembered grows with the
//!   pages that are touched.
//! - The WAL writer sleeps. Where it runs, whole pages of the log are written before the commit
//!   that fills the next one: more writes of fewer bytes, of the same log.
//! - Segments of the log are there already. A checkpoint renames those it recycles (two flushes of
//!   the file system each), and writes `pg_logical/replorigin_checkpoint`; neither is in it. Nor is
//!   the record of 30 bytes for a new page of `pg_xact` after every 32768 transactions.
//!
//! # Measured
//! PostgreSQL 15.18 in one process (`--single`), seeded requests of 48 pages, segments of 1 MiB
//! (`tests/layers/postgresql.rs`). All requests, in order, and these counts of the server's own
//! (`pg_stat_wal`) are equal:
//!
//! | table | requests | records | images | their bytes | buffers full | writes | syncs |
//! |---|---|---|---|---|---|---|---|
//! | `pgbench_accounts` | 405 | 1264 | 432 | 3246344 | 0 | 283 | 280 |
//! | rows of 608 bytes, `wal_buffers` 32 KiB | 231 | 746 | 199 | 999063 | 10 | 196 | 161 |
//! | rows of 105 bytes, `wal_log_hints` | 228 | 878 | 213 | 1747221 | 0 | 168 | 163 |
//! | rows of 8 bytes, no images | 233 | 790 | 0 | 47874 | 0 | 162 | 161 |
//!
//! By hand, and in no test: the first row on a server of many processes. All 1117 requests that
//! became of its 405 were equal with the WAL writer stopped. With it running records, images and
//! bytes are the same; it and the session made 330 writes and 281 flushes of the log instead of 283
//! and 280.

use super::steps::Steps;
use super::{FLUSH, Layer, LayerKind, ask, parameters};
use crate::error::Error;
use crate::rig::Op;
use crate::streams::Ask;
use heap::{Heap, Page};
use record::Record;
use serde::Deserialize;
use std::collections::{BTreeSet, HashMap};
use trueline_geom::base::error::Errno;
use trueline_geom::base::topology::{is_whole, round_down, units};
use trueline_sim::model::keys::names;
use wal::{Wal, WalCounts};

mod heap;
mod record;
pub mod wal;

/// The layer `postgresql` as listed.
pub const KIND: LayerKind = LayerKind {
    name: "postgresql",
    title: "PostgreSQL's write-ahead log with full-page images, and pages of 8 KiB",
    keys: names::<Keys>,
    make: |keys| Ok(Box::new(PostgreSql::new(parameters(keys)?)?)),
};

/// The bytes of a page of the table and of the log (`BLCKSZ`, `XLOG_BLCKSZ`).
const PAGE: u64 = 8192;
/// The bytes of a file of a table (`RELSEG_SIZE` pages).
const FILE: u64 = 1 << 30;

/// The level of detail of the log (`wal_level`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WalLevel {
    /// All that a recovery needs.
    Minimal,
    /// All that a standby needs too: a checkpoint lists the transactions that run.
    Replica,
}

/// The keys of the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Keys {
    /// The bytes of the log, which is written cyclically: `min_wal_size`, as segments are recycled.
    pub log: u64,
    /// The bytes of a segment of the log (`initdb --wal-segsize`).
    pub segment: u64,
    /// The bytes of the ring before the log; a 32nd of `shared_buffers` of 128 MiB.
    pub wal_buffers: u64,
    /// The byte of the log at which the next record begins; 0 and the begin of a segment are the
    /// byte behind its header.
    pub position: u64,
    /// True if the first change of a page after a checkpoint has its image in the log.
    pub full_page_writes: bool,
    /// True if marks are logged (`wal_log_hints`, or checksums of data): the first of a page after
    /// a checkpoint has the page's image in the log.
    pub wal_log_hints: bool,
    /// The level of detail of the log.
    pub wal_level: WalLevel,
    /// The bytes of a row's columns, without its header; those of `pgbench_accounts`.
    pub row: u64,
    /// The bytes of these before those that a write changes: the columns before `abalance`.
    pub before: u64,
    /// The bytes of these after those that a write changes: the columns after `abalance`.
    pub after: u64,
    /// The percentage of a page that a load fills (the table's `fillfactor`).
    pub fillfactor: u64,
}

impl Default for Keys {
    fn default() -> Keys {
        Keys {
            log: 80 << 20,
            segment: 16 << 20,
            wal_buffers: 4 << 20,
            position: 0,
            full_page_writes: true,
            wal_log_hints: false,
            wal_level: WalLevel::Replica,
            row: 97,
            before: 8,
            after: 85,
            fillfactor: 90,
        }
    }
}

/// A server, and what it remembers of its table.
pub struct PostgreSql {
    keys: Keys,
    heap: Heap,
    wal: Wal,
    /// The pages that were touched, by their number.
    pages: HashMap<u64, Page>,
    dirty: BTreeSet<u64>,
    /// The number of checkpoints.
    checkpoints: u64,
    /// True if there was a commit since the last checkpoint.
    committed: bool,
}

impl PostgreSql {
    /// A server whose log is written to `position`, and whose table was loaded long ago.
    pub fn new(keys: Keys) -> Result<PostgreSql, Error> {
        Ok(PostgreSql {
            keys,
            heap: Heap::new(keys.row, keys.before, keys.after, keys.fillfactor)?,
            wal: Wal::new(keys.log, keys.segment, keys.wal_buffers, keys.position)?,
            pages: HashMap::new(),
            dirty: BTreeSet::new(),
            checkpoints: 1,
            committed: false,
        })
    }

    /// The first byte of `pg_xact`, which `pg_control` and the table follow.
    fn behind_log(&self) -> u64 {
        self.keys.log
    }

    /// The first byte of the table.
    fn table(&self) -> u64 {
        self.keys.log + 2 * PAGE
    }

    /// The server's own counts of its log.
    pub fn wal_counts(&self) -> WalCounts {
        self.wal.counts()
    }

    /// Looks at a page, which is read if it was not yet, and changes its row.
    fn touch(&mut self, number: u64, change: bool, steps: &mut Steps) {
        let table = self.table();
        let (keys, heap) = (self.keys, self.heap);
        let page = self.pages.entry(number).or_insert_with(|| {
            steps.add(ask(Op::Read, table + number * PAGE, PAGE));
            steps.then();
            heap.loaded()
        });
        let mut log = |record: Record, image: bool, page: &mut Page| {
            let image = (image && page.recorded < self.checkpoints).then(|| PAGE - heap.hole(page));
            page.recorded = self.checkpoints;
            page.end = self.wal.insert(record.length(image), image.is_some(), steps);
        };
        if !std::mem::replace(&mut page.marked, true) {
            let clean = self.dirty.insert(number);
            if keys.wal_log_hints && clean && page.recorded < self.checkpoints {
                log(record::MARK, true, page);
            }
        }
        if let Some(unused) = page.prune() {
            log(record::prune(unused), keys.full_page_writes, page);
            self.dirty.insert(number);
        }
        if change {
            page.update();
            log(record::update(&heap), keys.full_page_writes, page);
            self.dirty.insert(number);
        }
    }

    fn commit(&mut self, steps: &mut Steps) {
        let end = self.wal.insert(record::COMMIT, false, steps);
        self.wal.flush(end, steps);
        self.committed = true;
    }

    fn checkpoint(&mut self, steps: &mut Steps) {
        self.checkpoints += 1;
        let one = |op: Ask, steps: &mut Steps| {
            steps.add(op);
            steps.then();
        };
        let (behind_log, table) = (self.behind_log(), self.table());
        if self.committed {
            one(ask(Op::Write, behind_log, PAGE), steps);
        }
        let mut files = BTreeSet::new();
        for number in std::mem::take(&mut self.dirty) {
            let end = self.pages.get(&number).map_or(0, |page| page.end);
            self.wal.flush(end, steps);
            one(ask(Op::Write, table + number * PAGE, PAGE), steps);
            files.insert(round_down(number * PAGE, FILE));
        }
        let written = files.len() + usize::from(std::mem::take(&mut self.committed));
        (0..written).for_each(|_| one(FLUSH, steps));
        if self.keys.wal_level == WalLevel::Replica {
            self.wal.insert(record::RUNNING, false, steps);
        }
        let end = self.wal.insert(record::CHECKPOINT, false, steps);
        self.wal.flush(end, steps);
        one(ask(Op::Write, behind_log + PAGE, PAGE), steps);
        one(FLUSH, steps);
    }
}

impl Layer for PostgreSql {
    fn length(&self, beneath: u64) -> u64 {
        round_down(beneath.saturating_sub(self.table()), PAGE)
    }

    fn attach(&mut self, _: u64, sector: u64) -> Result<(), Error> {
        if is_whole(PAGE, sector) {
            return Ok(());
        }
        Err(Error::new(format!("pages of {PAGE} bytes on sectors of {sector}")))
    }

    fn plan(&mut self, ask: Ask, steps: &mut Steps) -> Result<(), Errno> {
        if ask.op == Op::Flush {
            self.checkpoint(steps);
            return Ok(());
        }
        let end = ask.offset.checked_add(ask.length).ok_or(Errno::Range)?;
        let (first, last) = units(ask.offset, end, PAGE);
        (first..last).for_each(|number| self.touch(number, ask.op == Op::Write, steps));
        if ask.op == Op::Write && first < last {
            self.commit(steps);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
