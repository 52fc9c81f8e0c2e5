//! Allocation units that can be written piecemeal, as flashbench finds them in cards: a few are
//! open, and others must be closed first.
//!
//! # Styles
//! `mapped`: the new copy of a unit takes its pages in any order; when the unit is closed, only the
//! pages that were not written are copied. `log`: writes go to a log unit beside the old one, in
//! the order in which they come. A log that was written from the first page on takes the place of
//! its unit (switch merge), after the rest is copied (partial merge); any other is copied together
//! with its unit, page by page, to a third (full merge). `linear`: no log; a write ahead of the new
//! copy has the gap copied first, and one behind it has the copy finished and begun anew.
//!
//! # Sources
//! A. Bergmann, flashbench (README, "Finding the number of open erase blocks") and "Optimizing
//! Linux with cheap flash drives" (LWN, 18 February 2011): a card writes a new copy of an erase
//! block and, when it has to turn to another, copies what of the old one was not written; cards
//! that are made for linear access copy on every write out of order. Kim et al., "A space-efficient
//! flash translation layer for CompactFlash systems" (2002): log blocks and their merges.

use crate::model::ssd::UnitStyle;
use std::collections::VecDeque;
use trueline_geom::base::topology::round_down;

/// An allocation unit with a new copy in progress.
#[derive(Debug)]
struct Open {
    start: u64,
    /// The used bytes of its new copy, or of its log.
    used: u64,
    /// True if every write so far continued the one before, from the first byte on.
    in_order: bool,
}

/// The open allocation units, the one written longest ago first.
#[derive(Debug)]
pub(super) struct OpenUnits {
    bytes: u64,
    most: usize,
    style: UnitStyle,
    open: VecDeque<Open>,
}

impl OpenUnits {
    /// The open units of a drive; `None` if every indirection unit is mapped on its own.
    pub(super) fn new(bytes: u64, most: u32, style: UnitStyle) -> Option<OpenUnits> {
        let most = most.max(1) as usize;
        (bytes > 0).then(|| OpenUnits { bytes, most, style, open: VecDeque::new() })
    }

    /// The number of the allocation unit that contains an address.
    pub(super) fn number(&self, address: u64) -> u64 {
        address / self.bytes
    }

    /// Writes `bytes` at `address`, all in one allocation unit. Returns the allocation units of
    /// which something is copied first, in order, each with the bytes.
    pub(super) fn write(&mut self, address: u64, bytes: u64) -> Vec<(u64, u64)> {
        let start = round_down(address, self.bytes);
        let mut copies = Vec::new();
        let at = self.open.iter().position(|unit| unit.start == start);
        let mut unit = match at.and_then(|at| self.open.remove(at)) {
            Some(unit) => unit,
            None => {
                if self.open.len() >= self.most {
                    let closed = self.open.pop_front();
                    copies.extend(closed.map(|old| (old.start, self.rest(&old))));
                }
                Open { start, used: 0, in_order: true }
            }
        };
        let place = address - start;
        match self.style {
            UnitStyle::Mapped => {}
            UnitStyle::Log => {
                if unit.used + bytes > self.bytes {
                    copies.push((start, self.rest(&unit)));
                    unit = Open { start, used: 0, in_order: true };
                }
                unit.in_order &= place == unit.used;
            }
            UnitStyle::Linear => {
                if place < unit.used {
                    copies.push((start, self.rest(&unit)));
                    unit.used = 0;
                }
                copies.push((start, place - unit.used));
                unit.used = place;
            }
        }
        unit.used += bytes;
        // A full new copy replaces the allocation unit; a log out of order is merged when it is
        // closed, or needed again.
        if unit.used < self.bytes || !unit.in_order {
            self.open.push_back(unit);
        }
        copies.retain(|&(_, copied)| copied > 0);
        copies
    }

    /// The bytes that are copied when a unit is closed.
    fn rest(&self, unit: &Open) -> u64 {
        if unit.in_order { self.bytes - unit.used.min(self.bytes) } else { self.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(most: u32, style: UnitStyle) -> OpenUnits {
        OpenUnits::new(1024, most, style).unwrap()
    }

    #[test]
    fn the_one_written_longest_ago_is_closed_and_the_rest_of_it_copied() {
        let mut units = units(2, UnitStyle::Mapped);
        assert_eq!(units.write(0, 256), []);
        assert_eq!(units.write(1024, 128), []);
        assert_eq!(units.write(512, 256), [], "still open, and in any order");
        assert_eq!(units.write(4096, 128), [(1024, 896)]);
        assert_eq!(units.write(1024, 128), [(0, 512)]);
        assert!(OpenUnits::new(0, 0, UnitStyle::Mapped).is_none());
    }

    #[test]
    fn what_is_written_whole_is_never_copied() {
        for style in [UnitStyle::Mapped, UnitStyle::Log, UnitStyle::Linear] {
            let mut units = units(1, style);
            for nth in 0..64 {
                assert_eq!(units.write(nth * 256, 256), [], "{nth} {style:?}");
            }
        }
    }

    #[test]
    fn a_log_out_of_order_is_merged_whole_when_it_is_closed_or_full() {
        let mut units = units(1, UnitStyle::Log);
        assert_eq!(units.write(0, 256), []);
        assert_eq!(units.write(1024, 256), [(0, 768)], "in order: the rest alone");
        assert_eq!(units.write(1024, 256), [], "the same again, into the log");
        assert_eq!(units.write(0, 256), [(1024, 1024)]);
        for place in [768, 512, 256] {
            assert_eq!(units.write(place, 256), []);
        }
        assert_eq!(units.write(256, 256), [(0, 1024)], "no room in the log");
        assert_eq!(units.write(2048, 256), [(0, 1024)], "a log that does not begin with its unit");
    }

    #[test]
    fn a_linear_unit_has_gaps_copied_and_begins_anew_for_what_is_behind() {
        let mut units = units(1, UnitStyle::Linear);
        assert_eq!(units.write(256, 128), [(0, 256)]);
        assert_eq!(units.write(512, 128), [(0, 128)]);
        assert_eq!(units.write(512, 128), [(0, 384), (0, 512)]);
        assert_eq!(units.write(1024, 128), [(0, 384)]);
    }
}
