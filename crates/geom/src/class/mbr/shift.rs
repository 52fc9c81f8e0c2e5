//! An MBR with its chain of logical partitions, while partitions move one by one.
//!
//! Every change ends with one sector: the MBR, or the EBR that leads to what is new. So a reader
//! finds the chain before the change or the one behind it.
//!
//! # On disk
//! The data entry of an EBR counts from the EBR; its link counts from the extended partition. A
//! logical partition therefore moves by a change of its own EBR, as long as that is not in the way
//! of another. An EBR that is in the way gets a new place before its partition. Where the extended
//! partition begins elsewhere, all links count anew: the whole chain is written beside the old one,
//! and the entry of the MBR leads to it.
//!
//! # Limits
//! Chains as fdisk, sfdisk, parted, gpart and Windows write them: an EBR with one partition before
//! it, along the disk.

use super::edit::BLANK;
use super::{PartitionRecord, Record};
use crate::base::patch::{Patch, Read};
use crate::format::grub;
use crate::mapping::partition::Partition;
use crate::mapping::slices::place;
use crate::table::turn::Turn;
use crate::table::{Entry, Refusal, Table};
use std::collections::BTreeMap;
use std::ops::Range;
use zerocopy::{FromBytes, IntoBytes};

/// MBR and chain as they are between two moves, in addresses of the disk.
#[derive(Clone, Debug)]
pub struct MbrDisk {
    /// The MBR's own entries.
    table: Table,
    /// The sector of the MBR.
    mbr: Vec<u8>,
    /// Index of the extended entry, from 1, and the bytes that it has.
    extended: Option<(u32, Range<u64>)>,
    /// The chain; empty without logical partitions.
    nodes: Vec<Node>,
}

/// One EBR with its partition.
#[derive(Clone, Debug)]
struct Node {
    /// First byte of the EBR.
    at: u64,
    /// Sector that it is in.
    sector: Vec<u8>,
    /// Index of the entry with the partition.
    data: usize,
    /// Index of the entry with the link; `None` in the last EBR.
    link: Option<usize>,
    /// Bytes of the partition.
    range: Range<u64>,
}

/// Partition on a disk with an MBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Primary partition with this index, from 1.
    Primary(u32),
    /// Logical partition, by its place in the chain from 0.
    Logical(usize),
}

impl MbrDisk {
    /// The MBR of `table` with its chain, which `read` reads from the disk.
    pub fn read(table: &Table, read: &mut Read<'_>) -> Result<MbrDisk, Refusal> {
        let mut sector = |at: u64| {
            let mut bytes = vec![0; usize::try_from(table.sector).unwrap_or_default()];
            read(at, &mut bytes).map(|()| bytes).map_err(|errno| {
                Refusal::new(format!("{errno} at {}", place(at, table.sector)), "")
            })
        };
        let extended = table.entries.iter().find(|e| e.partition.kind.is_extended());
        let mut disk = MbrDisk {
            table: table.clone(),
            mbr: sector(0)?,
            extended: extended.map(|e| (e.partition.index, e.partition.range())),
            nodes: Vec::new(),
        };
        let Some((_, range)) = disk.extended.clone() else { return Ok(disk) };
        let (mut at, mut end) = (range.start, range.start);
        loop {
            let here = place(at, table.sector);
            let other = |what: &str| {
                let found = format!("the EBR at {here}: {what}");
                Refusal::new(found, "move its partitions one by one, or copy them to another disk")
            };
            let bytes = sector(at)?;
            let record = record(&bytes).filter(Record::is_signed);
            let record = record.ok_or_else(|| other("there is none"))?;
            let used = |(slot, e): (usize, &PartitionRecord)| (*e != BLANK).then_some((slot, *e));
            let used: Vec<_> = record.entries().iter().enumerate().filter_map(used).collect();
            let data = used.iter().find(|(_, e)| e.is_used() && !e.kind().is_extended());
            let link = used.iter().find(|(_, e)| e.kind().is_extended() && e.size() > 0);
            let Some((slot, entry)) = data else {
                // An extended partition without logical ones.
                if used.is_empty() && disk.nodes.is_empty() {
                    return Ok(disk);
                }
                return Err(other("it has no partition of its own"));
            };
            if used.len() != 1 + usize::from(link.is_some()) {
                return Err(other("it has more than a partition and a link"));
            }
            let start = at.saturating_add(entry.start() * table.sector);
            let stop = start.saturating_add(entry.size() * table.sector);
            if at < end || stop > range.end {
                return Err(other(
                    "it does not stand before its partition, in the order of the disk",
                ));
            }
            disk.nodes.push(Node {
                at,
                sector: bytes,
                data: *slot,
                link: link.map(|(slot, _)| *slot),
                range: start..stop,
            });
            end = stop;
            let Some((_, link)) = link else { return Ok(disk) };
            at = range.start.saturating_add(link.start() * table.sector);
            if at < end || at >= range.end || disk.nodes.len() >= super::ebr::LINKS {
                return Err(other("its link does not lead on along the disk"));
            }
        }
    }

    /// All partitions but the extended one, with their bytes, in the order of the disk.
    pub fn partitions(&self) -> Vec<(Which, Range<u64>)> {
        let primary = self
            .table
            .entries
            .iter()
            .filter(|e| !e.partition.kind.is_extended() || self.nodes.is_empty());
        let primary = primary.map(|e| (Which::Primary(e.partition.index), e.partition.range()));
        let logical = self.nodes.iter().enumerate();
        let logical = logical.map(|(n, node)| (Which::Logical(n), node.range.clone()));
        let mut all: Vec<_> = primary.chain(logical).collect();
        all.sort_by_key(|(_, range)| (range.start, range.end));
        all
    }

    /// Bytes of the extended partition, if it has logical ones.
    pub fn extended(&self) -> Option<Range<u64>> {
        self.extended.as_ref().filter(|_| !self.nodes.is_empty()).map(|(_, range)| range.clone())
    }

    /// First byte of the EBR of logical partition `n`.
    pub fn ebr(&self, n: usize) -> Option<u64> {
        self.nodes.get(n).map(|node| node.at)
    }

    /// Bytes in a sector of the disk.
    pub fn sector(&self) -> u64 {
        self.table.sector
    }

    /// The sectors of the table as it is, by their first bytes.
    pub fn sectors(&self) -> Vec<(u64, Vec<u8>)> {
        let nodes = self.nodes.iter().map(|node| (node.at, node.sector.clone()));
        [(0, self.mbr.clone())].into_iter().chain(nodes).collect()
    }

    /// Gives a partition the first byte `to`.
    pub fn shift(&mut self, which: Which, to: u64) -> Result<Turn, Refusal> {
        self.turn(|disk| match which {
            Which::Primary(index) => {
                let entry = disk.table.entries.iter_mut().find(|e| e.partition.index == index);
                let partition = &mut entry.ok_or_else(lost)?.partition;
                grub::follow(&mut disk.mbr, &partition.range(), to);
                partition.start = to;
                disk.set_primary(index)
            }
            Which::Logical(n) => {
                let node = disk.nodes.get_mut(n).ok_or_else(lost)?;
                grub::follow(&mut disk.mbr, &node.range, to);
                node.range = to..to.saturating_add(node.range.end - node.range.start);
                disk.link_to(n)?;
                disk.set_data(n)
            }
        })
    }

    /// Gives the extended partition another end.
    pub fn bound(&mut self, end: u64) -> Result<Turn, Refusal> {
        self.turn(|disk| disk.set_extended(None, end))
    }

    /// Gives logical partition `n` an EBR at `at`, which is free. Of the first one, that is where
    /// the extended partition begins.
    pub fn relink(&mut self, n: usize, at: u64) -> Result<Turn, Refusal> {
        self.turn(|disk| {
            if n == 0 {
                return disk.rebase(at);
            }
            disk.nodes.get_mut(n).ok_or_else(lost)?.at = at;
            disk.set_data(n)?;
            disk.link_to(n)
        })
    }

    /// Sectors that `change` writes.
    fn turn(
        &mut self,
        change: impl FnOnce(&mut MbrDisk) -> Result<(), Refusal>,
    ) -> Result<Turn, Refusal> {
        let before: BTreeMap<u64, Vec<u8>> = self.sectors().into_iter().collect();
        let mut after = self.clone();
        change(&mut after)?;
        let mut turn = Turn::default();
        let sectors: BTreeMap<u64, Vec<u8>> = after.sectors().into_iter().collect();
        // In ascending order: the link to an EBR covers its partition before that grows.
        for (at, bytes) in &sectors {
            let patch = Patch::new(*at, bytes.clone(), if *at == 0 { "MBR" } else { "EBR" });
            match before.get(at) {
                None => turn.fresh.push(patch),
                Some(old) if old != bytes => {
                    let patch = if turn.change.is_empty() { patch } else { patch.after_flush() };
                    turn.was.push(Patch { bytes: old.clone(), ..patch.clone() });
                    turn.change.push(patch);
                }
                Some(_) => {}
            }
        }
        let gone = before.into_iter().filter(|(at, _)| !sectors.contains_key(at));
        turn.gone = gone.map(|(at, bytes)| Patch::new(at, bytes, "EBR")).collect();
        *self = after;
        Ok(turn)
    }

    /// Lets the extended partition begin at `start`, with a chain that counts from there.
    fn rebase(&mut self, start: u64) -> Result<(), Refusal> {
        let (sector, old): (u64, Vec<u64>) =
            (self.sector(), self.nodes.iter().map(|node| node.at).collect());
        for n in 0..self.nodes.len() {
            let (at, range) = (self.nodes[n].at, self.nodes[n].range.clone());
            let least = n.checked_sub(1).map_or(0, |before| self.nodes[before].range.end);
            let free = |to: &u64| {
                *to >= least && to.saturating_add(sector) <= range.start && !old.contains(to)
            };
            let beside = [at.checked_add(sector), at.checked_sub(sector)];
            let near = beside.into_iter().chain([range.start.checked_sub(sector)]).flatten();
            let to = if n == 0 { Some(start) } else { near.into_iter().find(free) };
            self.nodes[n].at = to.ok_or_else(|| {
                let found = format!("no room for another EBR beside that at {}", place(at, sector));
                Refusal::new(found, "")
            })?;
        }
        let end = self.extended.as_ref().map_or(start, |(_, range)| range.end);
        self.set_extended(Some(start), end)?;
        for n in 0..self.nodes.len() {
            self.link_to(n)?;
            self.set_data(n)?;
        }
        Ok(())
    }

    /// Writes the place of logical partition `n` into its EBR.
    fn set_data(&mut self, n: usize) -> Result<(), Refusal> {
        let node = self.nodes.get_mut(n).ok_or_else(lost)?;
        let mut record = record(&node.sector).ok_or_else(lost)?;
        let slot = &mut record.partition_record[node.data];
        let (start, length) = (node.range.start, node.range.end - node.range.start);
        let entry = Entry {
            partition: Partition::new(1, start, length, slot.kind()),
            attributes: u64::from(slot.boot_indicator),
            from: None,
        };
        slot.set(&self.table, &entry, node.at)?;
        put(&mut node.sector, &record)
    }

    /// Writes the place of the EBR `n` into the one before it, which the first has not.
    fn link_to(&mut self, n: usize) -> Result<(), Refusal> {
        let Some(before) = n.checked_sub(1) else { return Ok(()) };
        let (_, extended) = self.extended.clone().ok_or_else(lost)?;
        let led = self.nodes.get(n).ok_or_else(lost)?;
        let (at, end, sector) = (led.at, led.range.end, self.sector());
        let node = self.nodes.get_mut(before).ok_or_else(lost)?;
        let mut record = record(&node.sector).ok_or_else(lost)?;
        let field = |bytes: Option<u64>| {
            let sectors = bytes.and_then(|bytes| u32::try_from(bytes / sector).ok());
            sectors.ok_or_else(|| Refusal::new("a link past 2^32 sectors", "use GPT"))
        };
        let (start, size) = (field(at.checked_sub(extended.start))?, field(end.checked_sub(at))?);
        let link = &mut record.partition_record[node.link.ok_or_else(lost)?];
        if (link.starting_lba.get(), link.size_in_lba.get()) != (start, size) {
            (link.starting_lba, link.size_in_lba) = (start.into(), size.into());
            link.set_chs(&self.table, at / sector, u64::from(size));
        }
        put(&mut node.sector, &record)
    }

    /// Writes another start, if there is one, and end of the extended partition into the MBR.
    fn set_extended(&mut self, start: Option<u64>, end: u64) -> Result<(), Refusal> {
        let (index, range) = self.extended.as_mut().ok_or_else(lost)?;
        *range = start.unwrap_or(range.start)..end;
        let (index, range) = (*index, range.clone());
        let entry = self.table.entries.iter_mut().find(|e| e.partition.index == index);
        let partition = &mut entry.ok_or_else(lost)?.partition;
        (partition.start, partition.length) =
            (range.start, range.end.checked_sub(range.start).ok_or_else(lost)?);
        self.set_primary(index)
    }

    /// Writes the entry with that index, from 1, into the MBR.
    fn set_primary(&mut self, index: u32) -> Result<(), Refusal> {
        let mut record = record(&self.mbr).ok_or_else(lost)?;
        let entry = self.table.entries.iter().find(|e| e.partition.index == index);
        let slot = usize::try_from(index).ok().and_then(|index| index.checked_sub(1));
        let on_disk = slot.and_then(|slot| record.partition_record.get_mut(slot));
        on_disk.ok_or_else(lost)?.set(&self.table, entry.ok_or_else(lost)?, 0)?;
        put(&mut self.mbr, &record)
    }
}

fn put(sector: &mut [u8], record: &Record) -> Result<(), Refusal> {
    sector.get_mut(..size_of::<Record>()).ok_or_else(lost)?.copy_from_slice(record.as_bytes());
    Ok(())
}

fn record(sector: &[u8]) -> Option<Record> {
    Record::read_from_prefix(sector).ok().map(|(record, _)| record)
}

/// The refusal where a partition is not in the table that was read.
fn lost() -> Refusal {
    Refusal::new("the chain of logical partitions is not as it was read", "")
}
