//! The order in which the partitions of a disk go to new places.
//!
//! A partition moves when its new place is free. The order along the disk stays, so what moves
//! towards the end never waits for what moves towards the front: there is always one that can go.
//! Between two moves the table is changed where it would be in the way: the end of an extended
//! partition, its start, an EBR.

use super::sequence::{Movement, Stage};
use crate::base::patch::Patch;
use crate::class::mbr::shift::{MbrDisk, Which};
use crate::format::grub;
use crate::table::scheme::TableSite;
use crate::table::turn::Turn;
use crate::table::{Refusal, Table};
use std::ops::Range;

/// Table whose partitions move.
pub enum Tables<'a> {
    /// Table of sectors that stay where they are, its place, and the first sector of the disk, if
    /// the table is the disk's own.
    Flat(Box<Table>, TableSite<'a>, Option<Vec<u8>>),
    /// MBR, with the chain of its extended partition.
    Mbr(Box<MbrDisk>),
}

/// Partition with its places, in bytes of the provider with the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moving {
    /// Number in a flat table, or place in an MBR.
    pub which: Which,
    /// Bytes it has now.
    pub now: Range<u64>,
    /// First byte it is to have.
    pub to: u64,
}

impl Tables<'_> {
    /// All partitions with their bytes, in the order of the disk.
    pub fn partitions(&self) -> Vec<(Which, Range<u64>)> {
        match self {
            Tables::Mbr(disk) => disk.partitions(),
            Tables::Flat(table, ..) => table
                .by_start()
                .into_iter()
                .map(|e| (Which::Primary(e.partition.index), e.partition.range()))
                .collect(),
        }
    }

    /// Bytes before a partition that belong to the table: two EBRs, so that a chain can be written
    /// beside another.
    pub fn lead(&self, which: Which) -> u64 {
        match (self, which) {
            (Tables::Mbr(disk), Which::Logical(_)) => 2 * disk.sector(),
            _ => 0,
        }
    }

    fn shift(&mut self, which: Which, to: u64) -> Result<Turn, Refusal> {
        match (self, which) {
            (Tables::Mbr(disk), which) => disk.shift(which, to),
            (Tables::Flat(table, site, boot), Which::Primary(index)) => {
                let old = table.entry(index).map(|entry| entry.partition.range());
                let mut turn = table.turn(site, index, to)?;
                if let Some((boot, old)) = boot.as_mut().zip(old) {
                    let was = Patch::new(0, boot.clone(), "boot sector");
                    if grub::follow(boot, &old, to) {
                        turn.was.push(was);
                        turn.change.push(Patch::new(0, boot.clone(), "boot sector"));
                    }
                }
                Ok(turn)
            }
            (Tables::Flat(..), Which::Logical(_)) => Err(stuck()),
        }
    }
}

/// The stages that bring all of `moving`, which are every partition of `tables`, to their new
/// places.
pub fn schedule(mut tables: Tables<'_>, mut moving: Vec<Moving>) -> Result<Vec<Stage>, Refusal> {
    moving.sort_by_key(|m| m.now.start);
    let mut stages = Vec::new();
    while moving.iter().any(|m| m.now.start != m.to) {
        // Those that go up from the last, those that go down from the first.
        let up = (0..moving.len()).rev().filter(|&n| moving[n].to > moving[n].now.start);
        let down = (0..moving.len()).filter(|&n| moving[n].to < moving[n].now.start);
        let order: Vec<usize> = up.chain(down).collect();
        let mut went = None;
        for n in order {
            if let Some(changes) = way(&tables, &moving, n) {
                went = Some((n, changes));
                break;
            }
        }
        let (n, before) = went.ok_or_else(stuck)?;
        for change in before {
            let turn = change.apply(&mut tables)?;
            stages.push(Stage { moved: None, turn });
        }
        let Moving { which, now, to } = moving[n].clone();
        let length = now.end - now.start;
        let turn = tables.shift(which, to)?;
        stages.push(Stage { moved: Some(Movement { from: now.start, to, length }), turn });
        moving[n].now = to..to.saturating_add(length);
    }
    Ok(stages)
}

fn stuck() -> Refusal {
    Refusal::new("there is no order in which its partitions could go to those places", "")
}

/// Change of the table that a move needs before it.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Another end of the extended partition.
    Bound(u64),
    /// Another place for the EBR of a logical partition.
    Relink(usize, u64),
}

impl Change {
    fn apply(self, tables: &mut Tables<'_>) -> Result<Turn, Refusal> {
        match (self, tables) {
            (_, Tables::Flat(..)) => Err(stuck()),
            (Change::Bound(end), Tables::Mbr(disk)) => disk.bound(end),
            (Change::Relink(n, at), Tables::Mbr(disk)) => disk.relink(n, at),
        }
    }
}

fn meets(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

/// The changes after which partition `n` of `moving` can go; `None` if another one has to go first.
fn way(tables: &Tables<'_>, moving: &[Moving], n: usize) -> Option<Vec<Change>> {
    let own = &moving[n];
    let new = own.to..own.to.saturating_add(own.now.end - own.now.start);
    let others = || moving.iter().enumerate().filter(|(other, _)| *other != n).map(|(_, m)| m);
    if others().any(|m| meets(&m.now, &new)) {
        return None;
    }
    let Tables::Mbr(disk) = tables else { return Some(Vec::new()) };
    let Some(extended) = disk.extended() else { return Some(Vec::new()) };
    let logical = |m: &&Moving| m.is_logical();
    let primary = |m: &&Moving| !m.is_logical();
    let mut changes = Vec::new();
    if own.is_logical() {
        if new.end > extended.end {
            let more = extended.end..new.end;
            if others().filter(primary).any(|m| meets(&m.now, &more)) {
                return None;
            }
            changes.push(Change::Bound(new.end));
        }
    } else if meets(&extended, &new) {
        let last = moving.iter().filter(logical).map(|m| m.now.end).max().unwrap_or(0);
        if new.start >= last {
            changes.push(Change::Bound(new.start));
        }
    }
    // EBRs in its way, and its own, if it is to be before that.
    for m in moving.iter().filter(logical) {
        let Which::Logical(number) = m.which else { continue };
        let Some(at) = disk.ebr(number) else { continue };
        let sector = at..at.saturating_add(disk.sector());
        let is_own = m.which == own.which;
        if !(meets(&sector, &new) || is_own && at >= new.start) {
            continue;
        }
        let start = if is_own { new.start } else { m.now.start };
        let before = others().filter(|o| o.now.start < m.now.start && o.which != m.which);
        let least = before.map(|o| o.now.end).max().unwrap_or(disk.sector());
        let least = if !is_own && new.start < m.now.start { least.max(new.end) } else { least };
        // A gap has at least room for two.
        let to = start.checked_sub(disk.sector()).filter(|&to| to >= least && to != at);
        let to = to.filter(|to| !meets(&(*to..to + disk.sector()), &new))?;
        changes.push(Change::Relink(number, to));
    }
    Some(changes)
}

impl Moving {
    fn is_logical(&self) -> bool {
        matches!(self.which, Which::Logical(_))
    }
}
