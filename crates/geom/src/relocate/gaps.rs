//! Gaps of a move: ranges that are not read and not copied.
//!
//! A hole of an image becomes a hole at the new place, without a byte of it being read. What a file
//! system calls free is left alone at both places, on request. Both are decided before the first
//! step and are in the journal, so a move that is resumed has the same steps.
//!
//! # Steps
//! What is copied is cut into pieces of as many bytes each, from the first byte behind the front
//! end and without the gaps between them. A step zeros the holes between the bytes of its piece,
//! and those on the side of the steps before. Zeros depend on nothing, so they are repeated with
//! that step, and every byte that they overwrite was copied and flushed by the steps before, or is
//! in the journal.
//!
//! # Limits
//! A list has at most [`MOST`] gaps of at least [`LEAST`] bytes: of more, the longest are kept, and
//! the rest is copied.

use crate::base::error::Errno;
use crate::base::patch::Patch;
use crate::base::store::{Content, Store};
use crate::base::topology::{round_down, round_up};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Largest number of gaps in one move.
pub const MOST: usize = 1 << 16;

/// Shortest gap in bytes: to pass over less takes longer than to copy it.
pub const LEAST: u64 = 64 << 10;

/// Largest number of extents that are asked for; behind them all is data.
const QUERIES: usize = 1 << 22;

/// Range that is not copied, in addresses of what moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Bytes of the gap, in whole sectors.
    pub range: Range<u64>,
    /// Contents of the gap.
    pub kind: GapKind,
}

/// Contents of a gap, which decide what becomes of the new place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapKind {
    /// Zeros: the new place is made zero.
    Hole,
    /// Bytes of no interest: the new place keeps what it has.
    Free,
}

/// All gaps of a move, in order, none of which touches another of its kind.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    list: Vec<Gap>,
    /// Cells of the move that asked last.
    cells: OnceLock<Cells>,
}

impl PartialEq for Gaps {
    fn eq(&self, other: &Gaps) -> bool {
        self.list == other.list
    }
}

impl Eq for Gaps {}

impl Gaps {
    /// The gaps of `list`, which [`Move::check`](super::Move::check) examines.
    pub fn new(list: Vec<Gap>) -> Gaps {
        Gaps { list, cells: OnceLock::new() }
    }

    /// The gaps of a move of sectors of `sector` bytes: `holes`, and what is in `free` alone; never
    /// what one of `rebased` changes. Both lists are of a [`Collector`].
    pub fn plan(holes: &[Range<u64>], free: &[Range<u64>], rebased: &[Patch], sector: u64) -> Gaps {
        let mut kept: Vec<Range<u64>> = rebased
            .iter()
            .map(|patch| {
                let end = round_up(patch.end(), sector).unwrap_or(u64::MAX);
                round_down(patch.offset, sector)..end
            })
            .collect();
        kept.sort_by_key(|range| range.start);
        let free = outside(&outside(free, holes), &kept);
        let gap = |kind| move |range| Gap { range, kind };
        let mut list: Vec<Gap> =
            outside(holes, &kept).into_iter().map(gap(GapKind::Hole)).collect();
        list.extend(free.into_iter().map(gap(GapKind::Free)));
        list.retain(|gap| length(&gap.range) >= LEAST.max(sector));
        list.sort_by_key(|gap| std::cmp::Reverse(length(&gap.range)));
        list.truncate(MOST);
        list.sort_by_key(|gap| gap.range.start);
        Gaps::new(list)
    }

    /// The gaps, in order.
    pub fn list(&self) -> &[Gap] {
        &self.list
    }

    /// Bytes in all gaps.
    pub fn bytes(&self) -> u64 {
        self.list.iter().map(|gap| length(&gap.range)).sum()
    }

    /// True if the gaps are in order, in whole sectors, inside `length` bytes, and none has a byte
    /// of `rebased`.
    pub(super) fn is_sound(&self, within: u64, sector: u64, rebased: &[Patch]) -> bool {
        let mut end = 0;
        let is_whole = |bytes: u64| round_down(bytes, sector) == bytes;
        self.list.len() <= MOST
            && self.list.iter().all(|Gap { range, .. }| {
                let follows = range.start >= end && range.end > range.start && range.end <= within;
                end = range.end;
                follows && is_whole(range.start) && is_whole(range.end)
            })
            && !rebased.iter().any(|patch| self.of(patch.offset..patch.end()).next().is_some())
    }

    /// The gaps that have a byte of `range`.
    fn of(&self, range: Range<u64>) -> impl Iterator<Item = &Gap> {
        let first = self.list.partition_point(|gap| gap.range.end <= range.start);
        self.list[first..].iter().take_while(move |gap| gap.range.start < range.end)
    }

    /// The parts of `range` in order, each with its kind if it is a gap.
    pub(super) fn split(
        &self,
        range: Range<u64>,
    ) -> impl Iterator<Item = (Range<u64>, Option<GapKind>)> {
        let mut at = range.start;
        let end = range.end;
        let mut gaps = self.of(range).peekable();
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let (to, kind) = match gaps.peek() {
                Some(gap) if gap.range.start > at => (gap.range.start.min(end), None),
                Some(gap) => {
                    let found = (gap.range.end.min(end), Some(gap.kind));
                    gaps.next();
                    found
                }
                None => (end, None),
            };
            let part = at..to;
            at = to;
            Some((part, kind))
        })
    }

    /// The holes in `range`.
    pub(super) fn holes(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let within = range.clone();
        self.of(range).filter(|gap| gap.kind == GapKind::Hole).map(
            move |Gap { range: hole, .. }| hole.start.max(within.start)..hole.end.min(within.end),
        )
    }

    /// The cells of pieces of `piece` bytes in the bytes `middle`.
    pub(super) fn cells(&self, middle: Range<u64>, piece: u64) -> Cells {
        let own = self.cells.get_or_init(|| Cells::new(&self.list, middle.clone(), piece));
        if (&own.middle, own.piece) == (&middle, piece) {
            return own.clone();
        }
        // The move was changed since it was asked first.
        Cells::new(&self.list, middle, piece)
    }
}

/// Division of what is copied into pieces of as many bytes, wherever gaps lie between them.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    middle: Range<u64>,
    piece: u64,
    /// Bytes that are copied.
    bytes: u64,
    /// Number of pieces in all.
    pub(super) count: u64,
    /// Gaps in the middle, in order.
    passed: Arc<[Passed]>,
}

/// Gap with what lies before it.
#[derive(Clone, Copy, Debug)]
struct Passed {
    /// Bytes before the gap that are copied.
    before: u64,
    /// Bytes of this gap and of those before it.
    gaps: u64,
}

impl Cells {
    fn new(gaps: &[Gap], middle: Range<u64>, piece: u64) -> Cells {
        let mut passed: Vec<Passed> = Vec::new();
        let mut all = 0;
        for Gap { range, .. } in gaps {
            let inside = range.start.max(middle.start)..range.end.min(middle.end);
            let bytes = length(&inside);
            if bytes > 0 {
                let before = inside.start - middle.start - all;
                all += bytes;
                passed.push(Passed { before, gaps: all });
            }
        }
        let bytes = length(&middle) - all;
        Cells { count: bytes.div_ceil(piece), bytes, middle, piece, passed: passed.into() }
    }

    /// The place between the pieces before the `nth` from the front and that piece: behind the gaps
    /// that lie there, or before them.
    fn between(&self, nth: u64, is_behind: bool) -> u64 {
        let copied = nth.saturating_mul(self.piece).min(self.bytes);
        let passes = |gap: &Passed| gap.before < copied || is_behind && gap.before == copied;
        let last = self.passed.partition_point(passes).checked_sub(1);
        let gaps = last.and_then(|last| self.passed.get(last)).map_or(0, |gap| gap.gaps);
        self.middle.start + copied + gaps
    }

    /// First byte of the `nth` piece from the front: with the gaps before it, or, where pieces are
    /// copied `backward`, without. A hole that a step makes zero must not overwrite what it copies:
    /// so it has the gaps on the side from which the move comes.
    pub(super) fn start(&self, nth: u64, backward: bool) -> u64 {
        self.between(nth, backward)
    }

    /// The `nth` piece from the front, with the gaps on one side of it.
    pub(super) fn range(&self, nth: u64, backward: bool) -> Range<u64> {
        self.start(nth, backward)..self.start(nth + 1, backward)
    }

    /// Gaps that no piece has: those on the other side of the last to be copied.
    pub(super) fn rest(&self, backward: bool) -> Range<u64> {
        match backward {
            true => self.middle.start..self.start(0, true),
            false => self.start(self.count, false)..self.middle.end,
        }
    }
}

/// List of ranges that keeps the longest, in bounded memory.
#[derive(Debug)]
pub struct Collector {
    sector: u64,
    within: Range<u64>,
    least: u64,
    /// Range that may be continued by the next one.
    open: Range<u64>,
    kept: Vec<Range<u64>>,
}

impl Collector {
    /// An empty list of ranges in whole sectors of `sector` bytes, inside the bytes `within`.
    pub fn new(within: Range<u64>, sector: u64) -> Collector {
        Collector { sector, within, least: LEAST, open: 0..0, kept: Vec::new() }
    }

    /// Adds the whole sectors of `range`. One that begins where the last one ends continues it.
    pub fn add(&mut self, range: Range<u64>) {
        if range.start == self.open.end {
            self.open.end = range.end.max(range.start);
            return;
        }
        self.close();
        self.open = range;
    }

    fn close(&mut self) {
        let Range { start, end } = std::mem::take(&mut self.open);
        let Some(start) = round_up(start.max(self.within.start), self.sector) else { return };
        let end = round_down(end.min(self.within.end), self.sector);
        if end <= start || end - start < self.least {
            return;
        }
        self.kept.push(start..end);
        if self.kept.len() >= 2 * MOST {
            self.kept.sort_by_key(|range| std::cmp::Reverse(length(range)));
            self.kept.truncate(MOST);
            self.least = self.kept.last().map_or(LEAST, length).max(self.least);
        }
    }

    /// The ranges, in order and apart.
    pub fn finish(mut self) -> Vec<Range<u64>> {
        self.close();
        self.kept.sort_by_key(|range| range.start);
        let mut apart: Vec<Range<u64>> = Vec::new();
        for range in self.kept {
            match apart.last_mut().filter(|last| last.end >= range.start) {
                Some(last) => last.end = last.end.max(range.end),
                None => apart.push(range),
            }
        }
        apart
    }
}

/// The holes among the `length` bytes of `disk` from `from` on, counted from there, in whole
/// sectors of `sector` bytes. Errors: those of [`Store::extent`].
pub fn holes(
    disk: &dyn Store,
    from: u64,
    length: u64,
    sector: u64,
) -> Result<Vec<Range<u64>>, Errno> {
    let (mut found, mut at) = (Collector::new(0..length, sector), 0);
    for _ in 0..QUERIES {
        if at >= length {
            break;
        }
        let run = disk.extent(from.checked_add(at).ok_or(Errno::Range)?, length - at)?;
        let end = at.saturating_add(run.length.max(1)).min(length);
        if run.content != Content::Data {
            found.add(at..end);
        }
        at = end;
    }
    Ok(found.finish())
}

fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// The parts of `ranges` outside of `others`; both are in order, `ranges` apart from each other.
pub fn outside(ranges: &[Range<u64>], others: &[Range<u64>]) -> Vec<Range<u64>> {
    let (mut left, mut first) = (Vec::new(), 0);
    for range in ranges {
        while others.get(first).is_some_and(|other| other.end <= range.start) {
            first += 1;
        }
        let mut at = range.start;
        for other in others[first..].iter().take_while(|other| other.start < range.end) {
            if other.start > at {
                left.push(at..other.start);
            }
            at = at.max(other.end);
        }
        if at < range.end {
            left.push(at..range.end);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(range: Range<u64>, kind: GapKind) -> Gap {
        Gap { range, kind }
    }

    #[test]
    fn pieces_have_as_many_bytes_wherever_gaps_are() {
        use GapKind::{Free, Hole};
        let list = vec![gap(12..30, Hole), gap(30..41, Free), gap(55..60, Hole), gap(72..97, Free)];
        let gaps = Gaps::new(list);
        for (middle, piece) in
            [(10..97, 10), (10..97, 3), (0..100, 7), (13..40, 5), (40..55, 4), (45..47, 9)]
        {
            let cells = gaps.cells(middle.clone(), piece);
            let is_copied = |at: &u64| gaps.of(*at..*at + 1).next().is_none();
            for backward in [false, true] {
                let rest = cells.rest(backward);
                let mut at = if backward { rest.end } else { middle.start };
                assert!(!rest.clone().any(|at| is_copied(&at)));
                for nth in 0..cells.count {
                    let range = cells.range(nth, backward);
                    assert_eq!(range.start, at, "{middle:?} by {piece}");
                    let copied = range.clone().filter(is_copied).count() as u64;
                    assert!(copied == piece || nth + 1 == cells.count && copied > 0);
                    let first = if backward { range.start } else { range.end - 1 };
                    assert!(is_copied(&first), "{range:?}");
                    at = range.end;
                }
                assert_eq!(at, if backward { middle.end } else { rest.start });
            }
            let all = middle.clone().filter(is_copied).count() as u64;
            assert_eq!(cells.count, all.div_ceil(piece));
        }
    }

    #[test]
    fn a_range_is_split_at_its_gaps() {
        use GapKind::{Free, Hole};
        let gaps = Gaps::new(vec![gap(10..20, Hole), gap(20..30, Free), gap(50..60, Free)]);
        let split = |range| gaps.split(range).collect::<Vec<_>>();
        assert_eq!(
            split(5..55),
            [
                (5..10, None),
                (10..20, Some(Hole)),
                (20..30, Some(Free)),
                (30..50, None),
                (50..55, Some(Free))
            ]
        );
        assert_eq!(split(15..18), [(15..18, Some(Hole))]);
        assert_eq!(split(30..50), [(30..50, None)]);
        assert_eq!(split(30..30), []);
        assert!(gaps.holes(0..15).eq(std::iter::once(10..15)));
    }

    /// A hole is one at the new place too; what is adapted is copied.
    #[test]
    fn holes_come_before_free_ranges_and_patches_before_both() {
        let kib = |n: u64| n << 10;
        let hole = kib(100)..kib(400);
        let patch = Patch::new(kib(300) + 7, vec![1; 8], "where");
        let gaps = Gaps::plan(
            std::slice::from_ref(&hole),
            &[kib(0)..kib(200), kib(600)..kib(700), kib(800)..kib(801)],
            std::slice::from_ref(&patch),
            512,
        );
        let list: Vec<_> = gaps.list().iter().map(|gap| (gap.range.clone(), gap.kind)).collect();
        let behind = kib(300) + 512;
        assert_eq!(
            list,
            [
                (0..kib(100), GapKind::Free),
                (kib(100)..kib(300), GapKind::Hole),
                (behind..kib(400), GapKind::Hole),
                (kib(600)..kib(700), GapKind::Free),
            ]
        );
        assert!(gaps.is_sound(kib(700), 512, &[patch]));
        assert!(!gaps.is_sound(kib(699), 512, &[]) && !gaps.is_sound(kib(700), 1 << 20, &[]));
        assert!(!gaps.is_sound(kib(700), 512, &[Patch::new(7, vec![1], "where")]));
    }

    #[test]
    fn a_list_keeps_the_longest_in_bounded_memory() {
        let mut list = Collector::new(1000..u64::MAX, 512);
        list.add(0..LEAST + 4000);
        let step = 4 * LEAST;
        for n in 1..=5 * MOST as u64 {
            // Two halves of one range; every seventh is longer.
            let long = LEAST + 1024 + 512 * u64::from(n % 7 == 0);
            list.add(n * step..n * step + 512);
            list.add(n * step + 512..n * step + long);
            assert!(list.kept.len() <= 2 * MOST);
        }
        let kept = list.finish();
        assert!(kept.len() >= MOST && kept[0] == (1024..LEAST + 3584), "{:?}", &kept[..2]);
        let longest = kept.iter().filter(|range| length(range) == LEAST + 1536).count();
        assert_eq!(longest, 5 * MOST / 7);
        assert!(kept.is_sorted_by_key(|range| range.start));
    }
}
