//! `zfs`: a file or a volume of ZFS, in records, in a pool of one disk with its metadata elsewhere.
//!
//! # Rules
//! - **Records** (`recordsize`, `volblocksize`) are read and written whole, each by one request.
//! - **A write** of a part of a record first reads it, unless it is a hole or in the ARC. Only the
//!   first and the last record of a request can be such parts, and both are read at one time
//!   (`dmu_tx_count_write` in module/zfs/dmu_tx.c). Nothing is written yet.
//! - **A transaction group** writes each of its dirty records once, to a new place, and flushes; it
//!   writes the uberblock of each of the four labels, and flushes (`spa_sync` in module/zfs/spa.c,
//!   `vdev_config_sync` in vdev_label.c). A group in which nothing changed writes nothing.
//! - **A flush** (fsync) commits to the intent log what was written since the last one, and
//!   flushes. The first commit makes the log, for which a group ends (`zil_create` in zil.c).
//! - **The log** has the data of small writes. Those of a file of 32 KiB and more, and those of a
//!   volume of a block and more if blocks are larger than that, go to the records' new places with
//!   the commit, whole, and the log names them (`zfs_log_write` in zfs_log.c, `zvol_log_write` in
//!   zvol.c). The group writes them again only if they become dirty again (`dmu_sync` in dmu.c).
//! - **Blocks of the log** are cut as `zil_lwb_assign` does, and written as far as they are used,
//!   in whole 4096 bytes.
//! - **A synchronous write** (FUA, `O_DSYNC`) is a write, and a commit of all that is uncommitted.
//! - **A read** fetches the records that are missing, all at one time.
//!
//! # Limits
//! Metadata are not modelled (indirect blocks, dnodes, space maps, the pool's own objects): they
//! are elsewhere, as with a `special` device. Nor is time: a group ends with `group` dirty bytes,
//! with the first commit, and with a flush if `flush = "group"` (`zpool sync`), never by
//! `zfs_txg_timeout`. Neighbours are not joined (`zfs_vdev_aggregation_limit`), nothing is read
//! ahead (`zfs_prefetch_disable`), nothing is compressed, a file is not read or written around the
//! ARC (`O_DIRECT`), there is no log device, `logbias` is `latency`, sectors have 4096 bytes.
//! A commit of several blocks has one flush, as on a disk that has not written a block when the
//! next one is sent; on a faster one a block may have its own (`zil_lwb_write_done`).
//!
//! Assumed, and no rule of ZFS: a full ARC forgets records in the order of their arrival; places
//! are given out in turn, those of the log in a room of its own before them; `group` ends a group
//! at the very write that reaches it. A write for which there may be too few places ends one too.
//!
//! # Measured
//! OpenZFS 2.3.2 (Debian 2.3.2-2~bpo12+2) on Linux 6.1.0-56-amd64 in QEMU, `ashift` 12, a disk for
//! data and a `special` one for metadata (`tests/kernel/zfs.sh`; the recording is
//! `tests/layers/zfs.txt`). Reads, writes of data, log and uberblocks, and flushes of the disk for
//! data are equal, request by request, in number, length and order:
//!
//! | recorded | requests | the disk was asked |
//! |---|---|---|
//! | hand-made, a hole and a written file, records of 128 KiB | 42 | 97 |
//! | random, written files, records of 4, 16, 128 KiB and 1 MiB | 664 | 1494 |
//! | random, a written volume, blocks of 16 KiB | 201 | 518 |
//! | commits, hand-made and random, files, records of 128 KiB | 292 | 452 |
//! | synchronous writes, random, a file, records of 128 KiB | 81 | 255 |
//! | commits, random, a volume, blocks of 64 KiB | 151 | 332 |
//!
//! Commits were recorded on a disk slowed to 200 ms a request. Two recordings differ in nothing of
//! this. What is not modelled is not small: in the random requests to records of 128 KiB, 29 groups
//! wrote 274 records (35,913,728 bytes), and the other disk saw 2406 writes (10,280,960 bytes), its
//! labels among them; 2385 in the other recording.

use super::steps::Steps;
use super::{FLUSH, Layer, LayerKind, ask, parameters};
use crate::error::Error;
use crate::rig::Op;
use crate::streams::Ask;
use log::{Block, Log, LoggedWrite};
use places::Places;
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet, VecDeque};
use trueline_geom::base::error::Errno;
use trueline_geom::base::topology::{is_whole, round_down, units};
use trueline_sim::model::keys::names;

mod log;
mod places;

/// The layer `zfs` as listed.
pub const KIND: LayerKind = LayerKind {
    name: "zfs",
    title: "a file or a volume of ZFS, in records",
    keys: names::<Keys>,
    make: |keys| Ok(Box::new(Zfs::new(parameters(keys)?)?)),
};

/// The smallest request in bytes: a program reads and writes any of a file, a volume has sectors.
const SECTOR: u64 = 512;
/// Two labels and the room for a boot loader before the data, and two labels behind it
/// (`VDEV_LABEL_START_SIZE`, `VDEV_LABEL_END_SIZE`).
const BEFORE: u64 = 4 << 20;
const BEHIND: u64 = 2 * LABEL;
/// A label, the place of its uberblocks in it, their number and size (`vdev_label_t`,
/// `VDEV_UBERBLOCK_SHIFT` for sectors of 4096 bytes).
const LABEL: u64 = 256 << 10;
const RING: u64 = 128 << 10;
const UBERBLOCKS: u64 = 32;
const UBERBLOCK: u64 = 4096;
/// The room for the intent log, which is written around.
const LOG_ROOM: u64 = 16 << 20;
/// The smallest write of a file that goes to its records at once, and is only named in the log
/// (`zfs_immediate_write_sz`); of a volume, whose blocks have to be larger.
const INDIRECT: u64 = 32 << 10;

/// The object of the pool that is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Object {
    /// A file of a file system.
    File,
    /// A volume, which is a block device (zvol).
    Volume,
}

/// The work of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlushKind {
    /// The writes since the last one are committed to the intent log (fsync).
    Log,
    /// The transaction group ends (`zpool sync`).
    Group,
}

/// The keys of the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Keys {
    /// The object that is read and written.
    pub object: Object,
    /// The bytes of a record (`recordsize`, `volblocksize`).
    pub record: u64,
    /// The bytes of the object; `None`: half of the device.
    pub size: Option<u64>,
    /// True if all of the object is written, false if it is a hole.
    pub filled: bool,
    /// True if all of it is in the ARC at first.
    pub warm: bool,
    /// The most bytes of records in the ARC.
    pub memory: u64,
    /// The work of a flush.
    pub flush: FlushKind,
    /// Bytes of dirty records that end a transaction group (`zfs_dirty_data_sync_percent` of
    /// `zfs_dirty_data_max`).
    pub group: u64,
}

impl Default for Keys {
    fn default() -> Keys {
        Keys {
            object: Object::File,
            record: 128 << 10,
            size: None,
            filled: true,
            warm: false,
            memory: 1 << 30,
            flush: FlushKind::Log,
            group: (4 << 30) / 5,
        }
    }
}

/// A file or a volume of a pool.
pub struct Zfs {
    keys: Keys,
    places: Places,
    /// Clean records in the ARC, and the same in the order of arrival.
    cached: HashSet<u64>,
    order: VecDeque<u64>,
    /// Records that were written in this group, with true if they are in their places.
    dirty: BTreeMap<u64, bool>,
    /// True if anything has changed in this group.
    changed: bool,
    log: Log,
    /// The offset of the next block of the log in its room.
    log_at: u64,
    /// The device's bytes in whole labels.
    device: u64,
    /// The number of groups that have ended.
    groups: u64,
}

impl Zfs {
    /// A new one, before its first request. It is an error if it cannot be.
    pub fn new(keys: Keys) -> Result<Zfs, Error> {
        let Keys { record, size, memory, .. } = keys;
        if !(record.is_power_of_two() && (4096..=16 << 20).contains(&record)) {
            return Err(Error::new(format!(
                "record = {record}: a power of two from 4096 bytes to 16 MiB"
            )));
        }
        if let Some(size) = size
            && !(size > 0 && is_whole(size, record))
        {
            return Err(Error::new(format!("size = {size}: whole records of {record} bytes")));
        }
        if memory < record {
            return Err(Error::new(format!("memory = {memory}: a record has {record} bytes")));
        }
        Ok(Zfs {
            keys,
            places: Places::new(0, 0),
            cached: HashSet::new(),
            order: VecDeque::new(),
            dirty: BTreeMap::new(),
            changed: false,
            log: Log::default(),
            log_at: 0,
            device: 0,
            groups: 0,
        })
    }

    /// The bytes for records on a device of `beneath` bytes.
    fn room(&self, beneath: u64) -> u64 {
        let within = round_down(beneath, LABEL).saturating_sub(BEFORE + BEHIND + LOG_ROOM);
        round_down(within, self.keys.record)
    }

    /// The first record of a range and the one behind its last.
    fn covered(&self, offset: u64, length: u64) -> Result<(u64, u64), Errno> {
        let end = offset.checked_add(length).ok_or(Errno::Range)?;
        Ok(units(offset, end, self.keys.record))
    }

    /// Reads a record if it is stored and not in memory.
    fn fetch(&mut self, record: u64, steps: &mut Steps) {
        if self.dirty.contains_key(&record) || self.keys.warm || self.cached.contains(&record) {
            return;
        }
        if let Some(place) = self.places.of(record) {
            steps.add(self.at(Op::Read, place));
            self.keep(record);
        }
    }

    fn at(&self, op: Op, place: u64) -> Ask {
        let record = self.keys.record;
        ask(op, BEFORE + LOG_ROOM + place * record, record)
    }

    /// Adds a record to the ARC, and takes the oldest out if it is full.
    fn keep(&mut self, record: u64) {
        if self.keys.warm || !self.cached.insert(record) {
            return;
        }
        self.order.push_back(record);
        let room = usize::try_from(self.keys.memory / self.keys.record).unwrap_or(usize::MAX);
        if self.order.len() > room
            && let Some(oldest) = self.order.pop_front()
        {
            self.cached.remove(&oldest);
        }
    }

    fn write(&mut self, asked: Ask, steps: &mut Steps) -> Result<(), Errno> {
        let Ask { offset, length, fua, .. } = asked;
        let (first, last) = self.covered(offset, length)?;
        let record = self.keys.record;
        // What is dirty needs a place at the end of the group, and may have had one in the log's
        // commit.
        let dirty = u64::try_from(self.dirty.len()).unwrap_or(u64::MAX);
        if self.places.available() < dirty.saturating_add(2 * (last - first)) {
            self.end_group(steps)?;
        }
        for part in [offset, offset + length] {
            if !is_whole(part, record) {
                self.fetch(part / record, steps);
            }
        }
        for own in first..last {
            self.dirty.insert(own, false);
        }
        self.changed = true;
        let mut full = u64::try_from(self.dirty.len()).unwrap_or(u64::MAX).saturating_mul(record);
        if self.keys.flush == FlushKind::Log {
            let indirect = match self.keys.object {
                Object::File => length >= INDIRECT,
                Object::Volume => length >= record && record > INDIRECT,
            };
            if indirect {
                (first..last).for_each(|own| self.log.add(LoggedWrite::of_record(own)));
            } else {
                self.log.add(LoggedWrite::of_data(length, fua).ok_or(Errno::Range)?);
            }
            // Twice the dirty data (`zfs_wrlog_data_max`).
            full = full.max(self.log.pending() / 2);
        }
        if full >= self.keys.group {
            self.end_group(steps)?;
        }
        if fua {
            self.flush(steps)?;
        }
        Ok(())
    }

    fn flush(&mut self, steps: &mut Steps) -> Result<(), Errno> {
        match self.keys.flush {
            FlushKind::Log => self.commit(steps),
            FlushKind::Group => self.end_group(steps),
        }
    }

    /// Writes a dirty record to a new place.
    fn store(&mut self, record: u64, steps: &mut Steps) -> Result<(), Errno> {
        let place = self.places.renew(record)?;
        steps.add(self.at(Op::Write, place));
        Ok(())
    }

    /// Ends the transaction group, if anything has changed in it, as its time or `zpool sync` does:
    /// what is dirty is written, then the uberblock of every label, each with a flush behind it.
    pub fn end_group(&mut self, steps: &mut Steps) -> Result<(), Errno> {
        if !std::mem::take(&mut self.changed) {
            return Ok(());
        }
        steps.then();
        for (record, placed) in std::mem::take(&mut self.dirty) {
            if !placed {
                self.store(record, steps)?;
            }
            self.keep(record);
        }
        self.places.group_ended();
        self.log.group_ended();
        steps.then();
        steps.add(FLUSH);
        steps.then();
        let slot = RING + self.groups % UBERBLOCKS * UBERBLOCK;
        for label in [0, LABEL, self.device - 2 * LABEL, self.device - LABEL] {
            steps.add(ask(Op::Write, label + slot, UBERBLOCK));
        }
        steps.then();
        steps.add(FLUSH);
        self.groups += 1;
        Ok(())
    }

    /// Commits to the intent log. The first commit makes the log, which takes the end of a group.
    fn commit(&mut self, steps: &mut Steps) -> Result<(), Errno> {
        let absent = self.log.is_absent();
        let blocks = self.log.commit();
        if blocks.is_empty() {
            return Ok(());
        }
        if absent {
            self.end_group(steps)?;
        }
        self.changed = true;
        steps.then();
        for Block { written, size, records } in blocks {
            for record in records {
                if self.dirty.insert(record, true) == Some(false) {
                    self.store(record, steps)?;
                }
            }
            if self.log_at + size > LOG_ROOM {
                self.log_at = 0;
            }
            steps.add(ask(Op::Write, BEFORE + self.log_at, written));
            self.log_at += size;
        }
        steps.then();
        steps.add(FLUSH);
        Ok(())
    }
}

impl Layer for Zfs {
    fn attach(&mut self, length: u64, sector: u64) -> Result<(), Error> {
        let Keys { record, filled, warm, memory, .. } = self.keys;
        if UBERBLOCK < sector {
            return Err(Error::new(format!(
                "the sectors beneath have {sector} bytes: at most {UBERBLOCK}"
            )));
        }
        let room = self.room(length);
        let shown = self.length(length);
        if shown > room {
            return Err(Error::new(format!(
                "size = {shown}: {length} bytes beneath have room for {room}"
            )));
        }
        if warm && shown > memory {
            return Err(Error::new(format!(
                "warm: memory = {memory}, and the object has {shown} bytes"
            )));
        }
        self.device = round_down(length, LABEL);
        self.places = Places::new(room / record, if filled { shown / record } else { 0 });
        Ok(())
    }

    fn length(&self, beneath: u64) -> u64 {
        self.keys.size.unwrap_or_else(|| round_down(self.room(beneath) / 2, self.keys.record))
    }

    fn sector(&self, _beneath: u64) -> u64 {
        SECTOR
    }

    fn plan(&mut self, asked: Ask, steps: &mut Steps) -> Result<(), Errno> {
        match asked.op {
            Op::Flush => self.flush(steps),
            Op::Write => self.write(asked, steps),
            Op::Read => {
                let (first, last) = self.covered(asked.offset, asked.length)?;
                (first..last).for_each(|record| self.fetch(record, steps));
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
