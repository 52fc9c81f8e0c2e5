//! Allocation units that can be written piecemeal, as flashbench finds them in cards: a few are
//! open, and others must be closed first.
//!
//! # Sources
//! A. Bergmann, flashbench (README, "Finding the number of open erase blocks") and "Optimizing
//! Linux with cheap flash drives" (LWN, 18 February 2011): a card writes a new copy of an erase
//! block and, when it has to turn to another, copies what of the old one was not written.

use std::collections::VecDeque;
use trueline_geom::base::topology::round_down;

/// An allocation unit with a new copy in progress.
#[derive(Debug)]
struct Open {
    start: u64,
    /// The used bytes of its new copy.
    used: u64,
}

/// The open allocation units, the one written longest ago first.
#[derive(Debug)]
pub(super) struct OpenUnits {
    bytes: u64,
    most: usize,
    open: VecDeque<Open>,
}

impl OpenUnits {
    /// The open units of a drive; `None` if every indirection unit is mapped on its own.
    pub(super) fn new(bytes: u64, most: u32) -> Option<OpenUnits> {
        (bytes > 0).then(|| OpenUnits { bytes, most: most.max(1) as usize, open: VecDeque::new() })
    }

    /// The number of the allocation unit that contains an address.
    pub(super) fn number(&self, address: u64) -> u64 {
        address / self.bytes
    }

    /// Writes `bytes` at `address`, all in one allocation unit. Returns the allocation unit that
    /// had to be closed first, and the bytes of it that are copied.
    pub(super) fn write(&mut self, address: u64, bytes: u64) -> Option<(u64, u64)> {
        let start = round_down(address, self.bytes);
        let mut closed = None;
        let at = self.open.iter().position(|unit| unit.start == start);
        let mut unit = match at.and_then(|at| self.open.remove(at)) {
            Some(unit) => unit,
            None => {
                if self.open.len() >= self.most {
                    closed = self
                        .open
                        .pop_front()
                        .map(|old| (old.start, self.bytes - old.used.min(self.bytes)));
                }
                Open { start, used: 0 }
            }
        };
        unit.used += bytes;
        // A full new copy replaces the allocation unit.
        if unit.used < self.bytes {
            self.open.push_back(unit);
        }
        closed.filter(|&(_, copied)| copied > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_written_longest_ago_is_closed_and_the_rest_of_it_copied() {
        let mut units = OpenUnits::new(1024, 2).unwrap();
        assert_eq!(units.write(0, 256), None);
        assert_eq!(units.write(1024, 128), None);
        assert_eq!(units.write(256, 256), None, "still open");
        assert_eq!(units.write(4096, 128), Some((1024, 896)));
        assert_eq!(units.write(1024, 128), Some((0, 512)));
        assert_eq!(OpenUnits::new(0, 0).map(|units| units.bytes), None);
    }

    #[test]
    fn what_is_written_whole_is_never_copied() {
        let mut units = OpenUnits::new(1024, 1).unwrap();
        for nth in 0..64 {
            assert_eq!(units.write(nth * 256, 256), None, "{nth}");
        }
    }
}
