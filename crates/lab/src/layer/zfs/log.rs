//! The intent log of a file system or volume: the sizes of its blocks.
//!
//! Blocks are a chain in which each names the next one, so the size of a block is chosen when the
//! one before is written: from what is left of the commit, or from the commits before
//! (`zil_lwb_write_close`, `zil_lwb_plan` and `zil_lwb_predict` in module/zfs/zil.c).

use trueline_geom::base::topology::{is_whole, round_up};

/// The bytes of a block that every block needs (`zil_chain_t`).
const HEAD: u64 = 184;
/// The bytes of a write's log record without data (`lr_write_t`).
const RECORD: u64 = 192;
/// The unit of blocks, and the size of the first one (`ZIL_MIN_BLKSZ`).
const UNIT: u64 = 4096;
/// The largest block (`zil_maxblocksize`).
const LARGEST: u64 = 128 << 10;
/// The most data that a synchronous write has copied into its log record (`zil_maxcopied`).
const COPIED: u64 = 7680;
/// The most data of one entry in a block.
const MOST: u64 = LARGEST - HEAD - RECORD;
/// The room at the end of a block that is left rather than that data are parted
/// (`zil_max_waste_space`).
const WASTE: u64 = MOST / 16;
/// The number of commits that a prediction looks back at (`ZIL_BURSTS`).
const BURSTS: usize = 8;

/// A write that is in no block yet: an entry of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoggedWrite {
    /// Bytes that go into one block.
    head: u64,
    /// Bytes of data that follow it, and may be parted between blocks.
    data: u64,
    /// The record of the file that is written in place of data.
    indirect: Option<u64>,
}

impl LoggedWrite {
    /// The entry of a write of `length` bytes with its data. A synchronous one has them in its
    /// head, as long as they are few.
    pub(super) fn of_data(length: u64, synchronous: bool) -> Option<LoggedWrite> {
        let data = round_up(length, 8)?;
        Some(if synchronous && length <= COPIED {
            LoggedWrite { head: RECORD + data, data: 0, indirect: None }
        } else {
            LoggedWrite { head: RECORD, data, indirect: None }
        })
    }

    /// The entry of a write to one record of the file, which goes to its place at once.
    pub(super) fn of_record(record: u64) -> LoggedWrite {
        LoggedWrite { head: RECORD, data: 0, indirect: Some(record) }
    }
}

/// A block of the log that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The bytes that are written, the used part in whole units.
    pub(super) written: u64,
    /// The bytes that are taken for it.
    pub(super) size: u64,
    /// The records of the file that it names.
    pub(super) records: Vec<u64>,
}

/// A block that is being filled.
struct Filled {
    size: u64,
    used: u64,
    records: Vec<u64>,
}

impl Filled {
    /// An empty block of `size` bytes.
    fn of(size: u64) -> Filled {
        Filled { size, used: HEAD, records: Vec::new() }
    }

    fn closed(self) -> Block {
        Block { written: whole(self.used), size: self.size, records: self.records }
    }
}

/// The log of one file system or volume.
#[derive(Clone, Debug)]
pub(super) struct Log {
    /// The size of the next block; `None` before the log is made.
    next: Option<u64>,
    entries: Vec<LoggedWrite>,
    /// The bytes of the entries.
    pending: u64,
    /// Of the latest commits: the best size of blocks, and the least of the first one.
    best: [u64; BURSTS],
    least: [u64; BURSTS],
    rotor: usize,
}

/// A commit as it is cut into blocks (`zl_cur_*`).
struct Burst {
    size: u64,
    left: u64,
    /// The largest head of an entry.
    largest: u64,
}

impl Burst {
    /// The best size of blocks for so many bytes, and the least of the first.
    fn plan(&self, size: u64) -> (u64, u64) {
        let room = LARGEST - HEAD;
        if size <= room {
            return (size, size);
        }
        if size > 8 * room {
            return (room, 0);
        }
        let blocks = size.div_ceil(room - RECORD);
        let chunk = size.div_ceil(blocks);
        let waste = WASTE.max(self.largest);
        if chunk <= room - waste {
            (chunk, size.saturating_sub((room - waste) * (blocks - 1)).max(waste))
        } else {
            (room, 0)
        }
    }
}

impl Default for Log {
    /// No log yet, and nothing to predict by.
    fn default() -> Log {
        let best = [LARGEST - HEAD; BURSTS];
        Log { next: None, entries: Vec::new(), pending: 0, best, least: [0; BURSTS], rotor: 0 }
    }
}

impl Log {
    /// True before the first commit.
    pub(super) fn is_absent(&self) -> bool {
        self.next.is_none()
    }

    /// Adds an entry for the next commit.
    pub(super) fn add(&mut self, entry: LoggedWrite) {
        self.pending += entry.head + entry.data;
        self.entries.push(entry);
    }

    /// The bytes of the entries that are not committed.
    pub(super) fn pending(&self) -> u64 {
        self.pending
    }

    /// Forgets all entries: what they say is in place.
    pub(super) fn group_ended(&mut self) {
        self.entries.clear();
        self.pending = 0;
    }

    /// The blocks of a commit, none if there is nothing to commit. It makes the log if there is
    /// none, for which a group ends: the block is empty then.
    pub(super) fn commit(&mut self) -> Vec<Block> {
        let entries = std::mem::take(&mut self.entries);
        if entries.is_empty() {
            return Vec::new();
        }
        let size = std::mem::take(&mut self.pending);
        let largest = entries.iter().map(|entry| entry.head).max().unwrap_or(0);
        let mut burst = Burst { size, left: size, largest };
        let mut blocks = Vec::new();
        let mut block = Filled::of(self.next.unwrap_or(UNIT));
        let logged = if self.next.is_some() { entries } else { Vec::new() };
        for LoggedWrite { head, mut data, indirect } in logged {
            loop {
                let room = block.size - block.used;
                let parted = room < WASTE && (is_whole(data, MOST) || room < head + data % MOST);
                if head > room || (head + data > room && parted) {
                    let size = sized(burst.plan(burst.left).0);
                    blocks.push(std::mem::replace(&mut block, Filled::of(size)).closed());
                    continue;
                }
                let now = data.min(room - head);
                block.used += head + now;
                data -= now;
                burst.left -= now;
                if data == 0 {
                    burst.left -= head;
                    break;
                }
            }
            block.records.extend(indirect);
        }
        blocks.push(block.closed());
        self.rotor = (self.rotor + 1) % BURSTS;
        (self.best[self.rotor], self.least[self.rotor]) = burst.plan(burst.size);
        self.next = Some(sized(self.predicted()));
        blocks
    }

    /// The size of the next commit by those before.
    fn predicted(&self) -> u64 {
        let least = self.best.iter().copied().min().unwrap_or(0);
        let (mut first, mut second) = (least, least);
        for &size in &self.least {
            if size >= first {
                (second, first) = (first, size);
            } else if size > second {
                second = size;
            }
        }
        if first < 2 * second { first } else { second }
    }
}

/// The size of a block with room for `bytes`.
fn sized(bytes: u64) -> u64 {
    whole(bytes + HEAD).min(LARGEST)
}

fn whole(bytes: u64) -> u64 {
    round_up(bytes, UNIT).unwrap_or(LARGEST)
}
