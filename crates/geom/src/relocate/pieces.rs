//! Pieces of a move: which bytes a step copies, which it passes over.

use super::gaps::Cells;
use super::{Move, Phase, Piece};
use crate::base::error::Errno;
use std::ops::Range;

/// A visitor of the parts of a piece: first byte in the range, bytes.
pub(super) type Visit<'a> = dyn FnMut(u64, &mut [u8]) -> Result<(), Errno> + 'a;

impl Move {
    /// The pieces of the middle that are copied.
    pub(super) fn cells(&self) -> Cells {
        let front = self.front.len() as u64;
        self.gaps.cells(front..front + self.middle(), self.piece())
    }

    /// True if pieces are copied from the end to the front.
    pub(super) fn is_backward(&self) -> bool {
        self.overlaps() && self.to > self.from
    }

    /// The piece that is the `nth` to be copied.
    pub(super) fn nth(&self, nth: u64) -> Piece {
        let all = self.passed(&self.cells(), nth);
        let mut used = self.gaps.split(all.clone()).filter(|(_, gap)| gap.is_none());
        let first = used.next().map_or(all, |(part, _)| part);
        let end = used.last().map_or(first.end, |(part, _)| part.end);
        let length = end - first.start;
        Piece {
            from: self.from + first.start,
            to: self.to + first.start,
            length,
            saved: self.saves() && length > self.distance(),
        }
    }

    /// The piece that is the `nth` to be copied, with the gaps that its step passes over.
    fn passed(&self, cells: &Cells, nth: u64) -> Range<u64> {
        let backward = self.is_backward();
        cells.range(if backward { cells.count - 1 - nth } else { nth }, backward)
    }

    /// Ranges at the new place that step `number` makes zero: the holes in its piece and on the
    /// side of the pieces before; with the ends, all others.
    pub(super) fn holes(&self, number: u64) -> Vec<Range<u64>> {
        let cells = self.cells();
        let passed = match self.phase(number) {
            Some((Phase::Copy, nth)) => self.passed(&cells, nth),
            Some((Phase::Ends, _)) => cells.rest(self.is_backward()),
            _ => return Vec::new(),
        };
        self.gaps.holes(passed).map(|hole| self.to + hole.start..self.to + hole.end).collect()
    }

    /// Number of bytes of `piece` without its gaps: those that are in memory.
    pub(super) fn weight(&self, piece: Piece) -> Result<usize, Errno> {
        let first = piece.from.checked_sub(self.from).ok_or(Errno::Range)?;
        let parts = self.gaps.split(first..first + piece.length);
        let bytes = parts.filter(|(_, gap)| gap.is_none()).map(|(part, _)| part.end - part.start);
        usize::try_from(bytes.sum::<u64>()).map_err(|_| Errno::Range)
    }

    /// Calls `visit` with each part of `bytes`, which are those of `piece` without its gaps: first
    /// byte in the range, bytes.
    pub(super) fn each(
        &self,
        piece: Piece,
        bytes: &mut [u8],
        visit: &mut Visit<'_>,
    ) -> Result<(), Errno> {
        let first = piece.from.checked_sub(self.from).ok_or(Errno::Range)?;
        let mut rest = bytes;
        for (part, gap) in self.gaps.split(first..first + piece.length) {
            if gap.is_none() {
                let length = usize::try_from(part.end - part.start).map_err(|_| Errno::Range)?;
                let (now, later) = rest.split_at_mut_checked(length).ok_or(Errno::Range)?;
                visit(part.start, now)?;
                rest = later;
            }
        }
        Ok(())
    }

    /// Bytes that are copied or passed over before step `number`.
    pub(super) fn copied(&self, number: u64) -> u64 {
        let before = self.phases().iter().take_while(|&&phase| phase != Phase::Copy).count() as u64;
        let cells = self.cells();
        let done = number.saturating_sub(before).min(cells.count);
        let front = self.front.len() as u64;
        match self.is_backward() {
            _ if done == cells.count => self.middle(),
            true => front + self.middle() - cells.start(cells.count - done, true),
            false => cells.start(done, false) - front,
        }
    }

    /// Bytes that are read and written: all that is moved but for the gaps.
    pub fn amount(&self) -> u64 {
        self.length.saturating_sub(self.gaps.bytes())
    }
}
