//! Zones of a host-managed drive: conventional ones, then sequential write required ones, each with
//! a write pointer (ZBC, ZAC).
//!
//! A write to a sequential zone begins at its write pointer, ends with a physical block and within
//! the zone; nothing else of its bytes is accepted until the zone is reset. A conventional zone
//! takes any write. Reads may go anywhere but from the conventional zones into the others.
//!
//! # Limits
//! Zones are opened and closed by their writes alone, at no cost; so no write lacks an open zone.
//! A reset takes no time (one of all zones of a 14 TB drive takes 2.5 s). What was never written is
//! read like the rest, where a drive with unrestricted reads (URSWRZ) answers without its medium.
//!
//! # Sources
//! ZBC, write commands to sequential write required zones; that they end with a physical block:
//! Linux commit a805a4fa4fa3. Held to the answers of Linux's `scsi_debug`, command by command.

use super::Op;
use std::collections::BTreeMap;
use trueline_geom::base::error::ZoneRule;
use trueline_geom::base::topology::{is_whole, round_down};

/// The zones of one drive and their write pointers.
#[derive(Clone, Debug)]
pub struct Zones {
    /// Bytes of a zone; the last one may be shorter.
    bytes: u64,
    /// The end of the conventional zones, in bytes.
    conventional: u64,
    /// The end of the drive, in bytes.
    end: u64,
    /// The physical block, in bytes.
    block: u64,
    /// Write pointers of zones that are not empty, by the zones' first bytes.
    pointers: BTreeMap<u64, u64>,
}

impl Zones {
    /// Empty zones of `bytes` each on a drive of `end` bytes, the first `conventional` of them
    /// without a write pointer. `block`: the size of a physical block in bytes.
    pub fn new(bytes: u64, conventional: u64, end: u64, block: u64) -> Zones {
        let conventional = bytes.saturating_mul(conventional).min(end);
        Zones { bytes, conventional, end, block, pointers: BTreeMap::new() }
    }

    /// Judges a command. A write that is accepted has no effect before [`Zones::take`].
    pub fn judge(&self, op: Op, offset: u64, length: u64) -> Result<(), ZoneRule> {
        let end = offset.saturating_add(length);
        let is_conventional = offset < self.conventional;
        match op {
            _ if length == 0 => Ok(()),
            Op::Flush => Ok(()),
            Op::Read if is_conventional && end > self.conventional => Err(ZoneRule::ReadBoundary),
            Op::Read => Ok(()),
            Op::Write if is_conventional && end > self.conventional => Err(ZoneRule::WriteBoundary),
            Op::Write if is_conventional => Ok(()),
            Op::Write => {
                let zone = round_down(offset, self.bytes);
                let pointer = self.pointers.get(&zone).copied().unwrap_or(zone);
                let zone_end = self.zone_end(zone);
                if end > zone_end {
                    Err(ZoneRule::WriteBoundary)
                } else if pointer == zone_end {
                    Err(ZoneRule::Full)
                } else if offset != pointer {
                    Err(ZoneRule::WritePointer)
                } else if !is_whole(end, self.block) && end != self.end {
                    Err(ZoneRule::PhysicalBlock)
                } else {
                    Ok(())
                }
            }
        }
    }

    /// Takes a command that [`Zones::judge`] accepts: a write moves its zone's write pointer.
    pub fn take(&mut self, op: Op, offset: u64, length: u64) {
        if op == Op::Write && length > 0 && offset >= self.conventional {
            let zone = round_down(offset, self.bytes);
            self.pointers.insert(zone, offset.saturating_add(length));
        }
    }

    /// Resets the write pointers of the zones that lie wholly within a range (RESET WRITE POINTER).
    pub fn reset(&mut self, offset: u64, length: u64) {
        let end = offset.saturating_add(length);
        let is_within = |zone: &u64| self.zone_end(*zone) <= end;
        let begin = self.pointers.range(offset..end).map(|(&zone, _)| zone);
        let within: Vec<u64> = begin.take_while(is_within).collect();
        for zone in within {
            self.pointers.remove(&zone);
        }
    }

    fn zone_end(&self, zone: u64) -> u64 {
        zone.saturating_add(self.bytes).min(self.end)
    }
}

#[cfg(test)]
mod tests;
