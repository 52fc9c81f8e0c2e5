//! Pieces of a move: which bytes a step copies, which it passes over, which the journal has.

use super::gaps::Cells;
use super::{Move, Phase};
use crate::base::error::Errno;
use crate::base::topology::round_down;
use std::ops::Range;

/// Number of passes in which a window is copied, where pieces are interlaced. At least three: the
/// piece behind a step's is read before that step begins, and that of the last pass, which is in
/// the journal, must not be read before the first one has saved it.
pub const PASSES: u64 = 4;

/// Bytes to be copied at once: all of a range, or the chunks of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First byte at the old place.
    pub from: u64,
    /// First byte at the new place.
    pub to: u64,
    /// Number of bytes from the first one to behind the last one.
    pub length: u64,
    /// Bytes of a chunk.
    pub chunk: u64,
    /// Bytes from the start of a chunk to that of the next.
    pub stride: u64,
}

/// Bytes that the journal has while a step is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// The bytes, as a piece.
    pub(super) piece: Piece,
    /// Number of the step before which they are saved.
    pub(super) first: u64,
    /// Number of the step that copies them.
    pub(super) last: u64,
    /// Number of the area that has them, of two.
    pub(super) area: u64,
}

impl Kept {
    /// True if they are of another step than the one that overwrites them first.
    pub(super) fn is_of_another(&self) -> bool {
        self.first < self.last
    }
}

/// A visitor of the parts of a piece: first byte in the range, bytes.
pub(super) type Visit<'a> = dyn FnMut(u64, &mut [u8]) -> Result<(), Errno> + 'a;

impl Move {
    /// True if bytes are saved in the journal before they are overwritten: a part of them if pieces
    /// are interlaced; if not, every piece that is longer than the distance.
    pub fn saves(&self) -> bool {
        self.overlaps() && (self.is_near() || !self.gaps.list().is_empty())
    }

    /// True if the distance is too short for pieces that are no longer.
    fn is_near(&self) -> bool {
        self.distance() < self.sizes.far
    }

    /// True if chunks as long as the distance are copied in [`PASSES`] passes. Gaps between them
    /// would make some passes much longer than others.
    pub fn is_interlaced(&self) -> bool {
        self.overlaps()
            && self.is_near()
            && self.gaps.list().is_empty()
            && (self.sizes.near..=self.sizes.piece).contains(&self.distance())
    }

    /// Bytes of every piece but one, which may be shorter.
    pub(super) fn piece(&self) -> u64 {
        let most = self.sizes.piece;
        if self.is_interlaced() {
            return round_down(most, self.distance());
        }
        let longest =
            if self.overlaps() && !self.is_near() { most.min(self.distance()) } else { most };
        // In whole sectors, as `sizes.piece` and the distance are.
        round_down(longest, self.sector).max(self.sector)
    }

    /// Number of steps that copy the bytes of one cell.
    fn passes(&self) -> u64 {
        if self.is_interlaced() { PASSES } else { 1 }
    }

    /// The parts of the middle that are copied one after another: pieces, or windows that are
    /// interlaced.
    fn cells(&self) -> Cells {
        let front = self.front.len() as u64;
        let bytes = self.piece().saturating_mul(self.passes());
        self.gaps.cells(front..front + self.middle(), bytes)
    }

    /// Number of steps that copy.
    pub(super) fn copies_in_all(&self) -> u64 {
        self.cells().count.saturating_mul(self.passes())
    }

    /// True if pieces are copied from the end to the front.
    pub(super) fn is_backward(&self) -> bool {
        self.overlaps() && self.to > self.from
    }

    /// The piece that is the `nth` to be copied.
    pub(super) fn nth(&self, nth: u64) -> Piece {
        let all = self.passed(&self.cells(), nth / self.passes());
        if !self.is_interlaced() {
            let mut used = self.gaps.split(all.clone()).filter(|(_, gap)| gap.is_none());
            let first = used.next().map_or(all, |(part, _)| part);
            let end = used.last().map_or(first.end, |(part, _)| part.end);
            let length = end - first.start;
            return self.at(first.start, length, (length, length));
        }
        // What is overwritten is copied before: chunks go up from the last of each group, and down
        // from the first.
        let pass = nth % PASSES;
        let chunk = self.distance();
        let first = if self.is_backward() { PASSES - 1 - pass } else { pass };
        // A window at the end may lack the chunks of a pass.
        let start = all.start.saturating_add(first.saturating_mul(chunk)).min(all.end);
        self.at(start, all.end - start, (chunk, chunk.saturating_mul(PASSES)))
    }

    fn at(&self, first: u64, length: u64, (chunk, stride): (u64, u64)) -> Piece {
        Piece { from: self.from + first, to: self.to + first, length, chunk, stride }
    }

    /// The cell with the gaps that its steps pass over.
    fn passed(&self, cells: &Cells, nth: u64) -> Range<u64> {
        let backward = self.is_backward();
        cells.range(if backward { cells.count - 1 - nth } else { nth }, backward)
    }

    /// The bytes that the journal must have before step `number` writes any; `None` if it writes
    /// over none that are still needed.
    pub(super) fn kept(&self, number: u64) -> Option<Kept> {
        let Some((Phase::Copy, nth)) = self.phase(number) else { return None };
        let passes = self.passes();
        let (cell, pass) = (nth / passes, nth % passes);
        let (first, last) = (number - pass, number - pass + passes - 1);
        let piece = self.nth(nth - pass + passes - 1);
        let needed = passes > 1 || self.saves() && piece.length > self.distance();
        needed.then_some(Kept { piece, first, last, area: cell % 2 })
    }

    /// The parts of `piece` without its gaps, in addresses of the range.
    pub(super) fn parts(&self, piece: Piece) -> impl Iterator<Item = Range<u64>> {
        let first = piece.from.saturating_sub(self.from);
        let end = first.saturating_add(piece.length);
        let stride = usize::try_from(piece.stride.max(1)).unwrap_or(usize::MAX);
        (first..end)
            .step_by(stride)
            .flat_map(move |at| self.gaps.split(at..at.saturating_add(piece.chunk).min(end)))
            .filter_map(|(part, gap)| gap.is_none().then_some(part))
    }

    /// Ranges at the new place that step `number` makes zero: the holes in its piece and on the
    /// side of the pieces before; with the ends, all others.
    pub(super) fn holes(&self, number: u64) -> Vec<Range<u64>> {
        let cells = self.cells();
        let passed = match self.phase(number) {
            Some((Phase::Copy, nth)) => self.passed(&cells, nth / self.passes()),
            Some((Phase::Ends, _)) => cells.rest(self.is_backward()),
            _ => return Vec::new(),
        };
        self.gaps.holes(passed).map(|hole| self.to + hole.start..self.to + hole.end).collect()
    }

    /// Number of bytes of `piece` without its gaps: those that are in memory.
    pub(super) fn weight(&self, piece: Piece) -> Result<usize, Errno> {
        let bytes: u64 = self.parts(piece).map(|part| part.end - part.start).sum();
        usize::try_from(bytes).map_err(|_| Errno::Range)
    }

    /// Calls `visit` with each part of `bytes`, which are those of `piece` without its gaps: first
    /// byte in the range, bytes.
    pub(super) fn each(
        &self,
        piece: Piece,
        bytes: &mut [u8],
        visit: &mut Visit<'_>,
    ) -> Result<(), Errno> {
        let mut rest = bytes;
        for part in self.parts(piece) {
            let length = usize::try_from(part.end - part.start).map_err(|_| Errno::Range)?;
            let (now, later) = rest.split_at_mut_checked(length).ok_or(Errno::Range)?;
            visit(part.start, now)?;
            rest = later;
        }
        Ok(())
    }

    /// Bytes that are copied or passed over before step `number`.
    pub(super) fn copied(&self, number: u64) -> u64 {
        let before = self.phases().iter().take_while(|&&phase| phase != Phase::Copy).count() as u64;
        let done = number.saturating_sub(before).min(self.copies_in_all());
        let (cells, passes) = (self.cells(), self.passes());
        let (whole, pass) = (done / passes, done % passes);
        if whole == cells.count {
            return self.middle();
        }
        let front = self.front.len() as u64;
        let behind = match self.is_backward() {
            true => front + self.middle() - cells.start(cells.count - whole, true),
            false => cells.start(whole, false) - front,
        };
        let own = self.passed(&cells, whole);
        behind + (own.end - own.start) / passes * pass
    }

    /// Bytes that are read and written: all that is moved but for the gaps.
    pub fn amount(&self) -> u64 {
        self.length.saturating_sub(self.gaps.bytes())
    }
}
