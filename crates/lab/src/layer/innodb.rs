//! `innodb`: InnoDB as MariaDB 10.11 has it, with one table and one session, without its purge.
//!
//! # On disk
//! The redo log, `log` bytes written cyclically behind its header; the doublewrite buffer of 128
//! pages; a header page and an undo page of each of 128 rollback segments; the table. Pages have
//! 16 KiB. The layer shows the table.
//!
//! # Rules
//! - **A write** is an `UPDATE` of a row in each page that it covers in part or whole, in place,
//!   and a commit. A page is read at its first touch. The undo page and the header page of the
//!   transaction's rollback segment become dirty too; segments take turns (`trx_assign_rseg_low`
//!   in trx/trx0trx.cc).
//! - **The commit** writes the blocks of the log from the one in which the last write ended, whole,
//!   in one request, and flushes (`log_t::write_buf` in log/log0log.cc).
//! - **A read** is a `SELECT … FOR UPDATE` for each page. It reads those that were not touched yet.
//!   Each is a transaction that takes its turn of a rollback segment and leaves it as it is.
//! - **A flush** is what the page cleaner does with `innodb_max_dirty_pages_pct = 0`. Dirty pages
//!   go in the order in which they became dirty, 128 at a time: in one request to the doublewrite
//!   buffer, a flush, each to its place, several in flight, a flush of both files
//!   (`buf_dblwr_t::flush_buffered_writes` in buf/buf0dblwr.cc). A checkpoint (`log_checkpoint` in
//!   buf/buf0flu.cc) is a record in the log, a flush, one of the two blocks of its header in turn,
//!   and a flush; there is one while the last pages are written, and one behind them.
//!
//! # Limits
//! - The bytes of a transaction's redo are parameters. The server's differ a little from one to the
//!   next (numbers in it are as long as they need be), so that a commit may write one block more or
//!   less than here. All other counts do not depend on it.
//! - No purge and no master thread: with them undo pages are written and freed as time goes by. The
//!   undo pages of a segment are one, which holds some 6000 transactions (not measured).
//! - The buffer pool holds the whole table: nothing is evicted, and what is remembered grows with
//!   the pages that are touched. Nothing is read ahead. (A `SELECT`
//!   without a lock has read the page behind that of its row too.)
//! - Pages of a batch are in flight together here. The server's threads write a few at a time, and
//!   the first checkpoint is made at some moment while they do.
//!
//! # Measured
//! MariaDB 10.11.19 (`innodb_force_recovery = 2`, `innodb_flush_neighbors = 0`, a log opened around
//! the page cache in blocks of 4096 bytes), 300 transactions, 73 reads and 5 checkpoints
//! (`tests/layers/innodb.rs`, whose recording `innodb/record.py` made; a second seed was equal):
//!
//! | of | equal |
//! |---|---|
//! | table | all reads (233) and writes (415), and their pages |
//! | log, given the LSN's growth by each transaction | all writes (320), and their places |
//! | doublewrite buffer | all writes (10), and their lengths (845 pages) |
//! | rollback segments' pages | the number of writes (430) |
//! | flushes | the number (350) |
//! | redo of a row | not modelled: 154 to 160 bytes, behind a checkpoint 175 to 177 |
//!
//! The recording does not reach the log's end.

use super::steps::Steps;
use super::{FLUSH, Layer, LayerKind, ask, parameters};
use crate::error::Error;
use crate::rig::Op;
use crate::streams::Ask;
use serde::Deserialize;
use std::collections::HashSet;
use trueline_geom::base::error::Errno;
use trueline_geom::base::topology::{is_whole, round_down, round_up, units};
use trueline_sim::model::keys::names;

/// The layer `innodb` as listed.
pub const KIND: LayerKind = LayerKind {
    name: "innodb",
    title: "InnoDB's redo log, doublewrite buffer and pages of 16 KiB, as of MariaDB 10.11",
    keys: names::<Keys>,
    make: |keys| Ok(Box::new(InnoDb::new(parameters(keys)?)?)),
};

/// The bytes of a page (`innodb_page_size`).
const PAGE: u64 = 16384;
/// The bytes before the log's first record (`log_t::START_OFFSET`), which is also its first LSN.
const HEADER: u64 = 12288;
/// The first of the two blocks of checkpoints (`log_t::CHECKPOINT_1`); the other follows.
const CHECKPOINT: u64 = 4096;
/// The pages of the doublewrite buffer: two extents of 1 MiB.
const BATCH: usize = 128;
/// The rollback segments (`TRX_SYS_N_RSEGS`), and their pages.
const SEGMENTS: u64 = 128;
const SYSTEM: u64 = 2 * SEGMENTS;

/// The keys of the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Keys {
    /// The bytes of the log (`innodb_log_file_size`).
    pub log: u64,
    /// The bytes of a block of the log: its file system's, or a sector of 4096 bytes at the most.
    pub block: u64,
    /// The LSN at which the next record begins.
    pub lsn: u64,
    /// The bytes of redo of a transaction with one row: as measured, of a column of 4 bytes.
    pub redo: u64,
    /// The bytes of redo of each row more.
    pub redo_row: u64,
    /// The bytes of redo of a checkpoint.
    pub redo_checkpoint: u64,
}

impl Default for Keys {
    fn default() -> Keys {
        Keys {
            log: 96 << 20,
            block: 4096,
            lsn: HEADER,
            redo: 159,
            redo_row: 65,
            redo_checkpoint: 28,
        }
    }
}

/// A server, and what it remembers of its pages.
pub struct InnoDb {
    keys: Keys,
    /// The end of the log.
    lsn: u64,
    /// The pages of the table that were read, by number.
    read: HashSet<u64>,
    /// First bytes of the dirty pages, in the order in which they became dirty, and the same.
    order: Vec<u64>,
    dirty: HashSet<u64>,
    /// The transactions and the checkpoints so far.
    transactions: u64,
    checkpoints: u64,
}

impl InnoDb {
    /// A server whose log is written to `lsn`.
    pub fn new(keys: Keys) -> Result<InnoDb, Error> {
        let refuse = |why: String| Err(Error::new(why));
        let Keys { log, block, lsn, .. } = keys;
        if !block.is_power_of_two() || !(512..=4096).contains(&block) {
            return refuse(format!("block = {block}: a power of two from 512 to 4096 bytes"));
        }
        if !(4 << 20..=1 << 40).contains(&log) || !is_whole(log, PAGE) {
            return refuse(format!("log = {log}: pages of {PAGE} bytes, from 4 MiB to 1 TiB"));
        }
        if !(HEADER..1 << 62).contains(&lsn) {
            return refuse(format!("lsn = {lsn}: {HEADER} to 2^62"));
        }
        // The most pages of one transaction are those of a request; no count can overflow then.
        if keys.redo.max(keys.redo_row).max(keys.redo_checkpoint) > 1 << 20 {
            return refuse("redo of more than 1 MiB a row".into());
        }
        Ok(InnoDb {
            keys,
            lsn,
            read: HashSet::new(),
            order: Vec::new(),
            dirty: HashSet::new(),
            transactions: 0,
            checkpoints: 0,
        })
    }

    /// The first byte of the rollback segments' pages.
    fn system(&self) -> u64 {
        self.keys.log + BATCH as u64 * PAGE
    }

    /// The first byte of the table.
    fn table(&self) -> u64 {
        self.system() + SYSTEM * PAGE
    }

    /// Fetches a page of the table; its first byte.
    fn fetch(&mut self, number: u64, steps: &mut Steps) -> u64 {
        let at = self.table() + number * PAGE;
        if self.read.insert(number) {
            steps.add(ask(Op::Read, at, PAGE));
            steps.then();
        }
        at
    }

    fn mark(&mut self, at: u64) {
        if self.dirty.insert(at) {
            self.order.push(at);
        }
    }

    /// A transaction that changes a row in each page from `first` to before `last`, with `redo`
    /// bytes in the log.
    pub fn change(&mut self, first: u64, last: u64, redo: u64, steps: &mut Steps) {
        let segment = self.system() + self.transactions % SEGMENTS * 2 * PAGE;
        self.transactions += 1;
        for number in first..last {
            let at = self.fetch(number, steps);
            self.mark(segment);
            self.mark(at);
        }
        self.mark(segment + PAGE);
        self.log(redo, steps);
        steps.add(FLUSH);
        steps.then();
    }

    /// Writes `redo` bytes more of the log.
    fn log(&mut self, redo: u64, steps: &mut Steps) {
        let mut at = round_down(self.lsn, self.keys.block);
        self.lsn += redo;
        let end = round_up(self.lsn, self.keys.block).unwrap_or(self.lsn);
        let room = self.keys.log - HEADER;
        while at < end {
            let offset = (at - HEADER) % room;
            let part = (end - at).min(room - offset);
            steps.add(ask(Op::Write, HEADER + offset, part));
            at += part;
        }
        steps.then();
    }

    /// The block of the next checkpoint.
    fn checkpoint_block(&mut self) -> Ask {
        self.checkpoints += 1;
        ask(Op::Write, CHECKPOINT * (1 + self.checkpoints % 2), self.keys.block)
    }

    /// Writes every dirty page, and two checkpoints of `redo` bytes each.
    pub fn clean(&mut self, redo: u64, steps: &mut Steps) {
        self.dirty.clear();
        let order = std::mem::take(&mut self.order);
        let mut batches = order.chunks(BATCH).peekable();
        while let Some(batch) = batches.next() {
            let last = batches.peek().is_none();
            steps.add(ask(Op::Write, self.keys.log, batch.len() as u64 * PAGE));
            if last {
                self.log(redo, steps);
                steps.add(FLUSH);
            }
            steps.then();
            steps.add(FLUSH);
            steps.then();
            batch.iter().for_each(|&at| steps.add(ask(Op::Write, at, PAGE)));
            if last {
                steps.add(self.checkpoint_block());
            }
            steps.then();
            let table = self.table();
            let files = [batch.iter().any(|&at| at < table), batch.iter().any(|&at| at >= table)];
            let files = files.into_iter().chain([last]).filter(|&written| written);
            files.for_each(|_| steps.add(FLUSH));
            steps.then();
        }
        if order.is_empty() {
            return;
        }
        self.log(redo, steps);
        for next in [FLUSH, self.checkpoint_block(), FLUSH] {
            steps.add(next);
            steps.then();
        }
    }
}

impl Layer for InnoDb {
    fn length(&self, beneath: u64) -> u64 {
        round_down(beneath.saturating_sub(self.table()), PAGE)
    }

    fn attach(&mut self, _: u64, sector: u64) -> Result<(), Error> {
        if is_whole(self.keys.block, sector) {
            return Ok(());
        }
        let block = self.keys.block;
        Err(Error::new(format!("blocks of the log of {block} bytes on sectors of {sector}")))
    }

    fn plan(&mut self, ask: Ask, steps: &mut Steps) -> Result<(), Errno> {
        let end = ask.offset.checked_add(ask.length).ok_or(Errno::Range)?;
        let (first, last) = units(ask.offset, end, PAGE);
        let Keys { redo, redo_row, redo_checkpoint, .. } = self.keys;
        match ask.op {
            Op::Flush => self.clean(redo_checkpoint, steps),
            Op::Write if first < last => {
                self.change(first, last, redo + (last - first - 1) * redo_row, steps);
            }
            _ => (first..last).for_each(|number| {
                self.fetch(number, steps);
                self.transactions += 1;
            }),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
