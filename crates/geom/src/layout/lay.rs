//! Placement of the new partitions of a layout.
//!
//! A layout is read from its first partition to its last: each follows the one before it and begins
//! on the grain. Partitions whose size is a share of the disk, or the rest, end on the grain too. A
//! given start and an existing partition begin a new run; the partitions of a run that want the
//! rest share it equally. A partition that does not fit into its run goes to the first free range
//! that holds it.

use super::Size;
use crate::base::topology::{Grain, round_down};
use std::ops::Range;

/// Space on which the partitions are placed.
pub(super) struct Floor {
    /// Range in which partitions may lie, in bytes.
    pub(super) usable: Range<u64>,
    /// Free ranges of it, in ascending order.
    pub(super) free: Vec<Range<u64>>,
    /// Bytes that the table needs before every partition, such as an EBR.
    pub(super) lead: u64,
}

/// Partition of the layout, existing or new.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    /// Existing partition that ends at this byte.
    Occupant(u64),
    /// New partition, with its start if one is given.
    New { start: Option<u64>, size: Size },
}

/// Bytes between the first and the last boundary of the usable range, of which shares in percent
/// are taken.
pub(super) fn whole(usable: &Range<u64>, grain: Grain) -> u64 {
    match (grain.next(usable.start), grain.previous(usable.end)) {
        (Some(first), Some(last)) => last.saturating_sub(first),
        _ => 0,
    }
}

/// Bytes of `share` hundredths of a percent of `whole`, in whole grains.
pub(super) fn percent(whole: u64, share: u32, grain: Grain) -> u64 {
    let bytes = u128::from(whole) * u128::from(share) / u128::from(super::PERCENT * 100);
    round_down(u64::try_from(bytes).unwrap_or(whole), grain.size())
}

/// Ranges of the new partitions, in the order of `items`; `None` for existing ones. The error is
/// the index of the first item without room.
pub(super) fn lay(
    floor: &Floor,
    items: &[Item],
    grain: Grain,
) -> Result<Vec<Option<Range<u64>>>, usize> {
    let mut laying =
        Laying { floor, grain, free: floor.free.clone(), laid: vec![None; items.len()] };
    // A given start is kept free: no other run crosses it.
    let fixed: Vec<u64> = items
        .iter()
        .filter_map(|item| if let Item::New { start, .. } = item { *start } else { None })
        .collect();
    for start in &fixed {
        laying.cut(start.saturating_sub(floor.lead));
    }
    let mut runs = vec![Run { from: floor.usable.start, ..Run::default() }];
    for (i, item) in items.iter().enumerate() {
        match *item {
            Item::Occupant(end) => runs.push(Run { from: end, ..Run::default() }),
            Item::New { start: Some(start), size } => {
                runs.push(Run { from: start, fixed: true, wanted: vec![(i, size)] })
            }
            Item::New { start: None, size } => {
                runs.last_mut().into_iter().for_each(|run| run.wanted.push((i, size)))
            }
        }
    }
    let mut homeless = Vec::new();
    // Runs with a given start come first.
    let (first, rest): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(|run| run.fixed);
    for run in first.into_iter().chain(rest) {
        homeless.extend(laying.run(run)?);
    }
    homeless.sort_by_key(|&(i, size)| (matches!(size, Size::Rest), i));
    for (i, size) in homeless {
        laying.anywhere(i, size).ok_or(i)?;
    }
    Ok(laying.laid)
}

/// Run of partitions that follow each other.
#[derive(Default)]
struct Run {
    from: u64,
    /// True if the first begins at `from` and nowhere else.
    fixed: bool,
    /// Indices of its partitions in the layout, and their sizes.
    wanted: Vec<(usize, Size)>,
}

struct Laying<'a> {
    floor: &'a Floor,
    grain: Grain,
    free: Vec<Range<u64>>,
    laid: Vec<Option<Range<u64>>>,
}

impl Laying<'_> {
    /// Places as much of a run as fits; returns the rest.
    fn run(&mut self, mut run: Run) -> Result<Vec<(usize, Size)>, usize> {
        let mut left = Vec::new();
        if let (true, Some(&(i, Size::Bytes(size)))) = (run.fixed, run.wanted.first()) {
            // A given start and size are taken literally: the table checks if a partition may lie
            // there.
            let range = run.from..run.from.checked_add(size).ok_or(i)?;
            run = Run { from: range.end, fixed: false, wanted: run.wanted.split_off(1) };
            self.take(i, range);
        }
        let hole = self.free.iter().find(|hole| hole.end > run.from).cloned();
        let Some(hole) = hole else {
            return if run.fixed {
                run.wanted.first().map_or(Ok(left), |&(i, _)| Err(i))
            } else {
                Ok(run.wanted)
            };
        };
        while !run.wanted.is_empty() {
            let from = if run.fixed { run.from } else { run.from.max(hole.start) };
            if let Some(ranges) = self.fit(from, &hole, run.fixed, &run.wanted) {
                let numbers: Vec<usize> = run.wanted.iter().map(|&(i, _)| i).collect();
                numbers.into_iter().zip(ranges).for_each(|(i, range)| self.take(i, range));
                break;
            }
            match run.wanted.pop() {
                Some((i, _)) if run.fixed && run.wanted.is_empty() => return Err(i),
                last => left.extend(last),
            }
        }
        Ok(left)
    }

    /// Ranges of partitions that follow each other from `from` within `hole`; `None` if they do not
    /// fit.
    fn fit(
        &self,
        from: u64,
        hole: &Range<u64>,
        fixed: bool,
        wanted: &[(usize, Size)],
    ) -> Option<Vec<Range<u64>>> {
        let grain = self.grain.size();
        let rests = wanted.iter().filter(|(_, size)| matches!(size, Size::Rest)).count() as u64;
        let bare = self.follow(from, fixed, wanted, 0, 0)?;
        let slack = hole.end.checked_sub(bare.last()?.end)?;
        let slack = match wanted.last() {
            // The last partition ends on the grain, wherever it begins.
            Some((_, Size::Rest)) if rests == 1 => {
                self.grain.previous(hole.end)?.checked_sub(bare.last()?.end)?
            }
            _ => round_down(slack, grain),
        };
        let share = slack
            .checked_div(rests)
            .map_or(0, |share| if rests == 1 { share } else { round_down(share, grain) });
        let ranges = self.follow(
            from,
            fixed,
            wanted,
            share,
            slack.saturating_sub(share.saturating_mul(rests)),
        )?;
        ranges.iter().all(|r| r.start < r.end && r.end <= hole.end).then_some(ranges)
    }

    /// Ranges of partitions one after another. Each that takes the rest gets `share` bytes, the
    /// last of them `more` as well.
    fn follow(
        &self,
        from: u64,
        fixed: bool,
        wanted: &[(usize, Size)],
        share: u64,
        more: u64,
    ) -> Option<Vec<Range<u64>>> {
        let last = wanted.iter().rposition(|(_, size)| matches!(size, Size::Rest));
        let (mut at, mut ranges) = (from, Vec::with_capacity(wanted.len()));
        for (n, (_, size)) in wanted.iter().enumerate() {
            let start = if fixed && n == 0 {
                from
            } else {
                self.grain.next(at.checked_add(self.floor.lead)?)?
            };
            at = match size {
                Size::Bytes(size) => start.checked_add(*size)?,
                // The bytes that the table needs before a partition are part of its share.
                Size::Percent(p) => {
                    let from = if fixed && n == 0 { start } else { self.grain.next(at)? };
                    from.checked_add(percent(
                        whole(&self.floor.usable, self.grain),
                        *p,
                        self.grain,
                    ))?
                }
                Size::Rest => {
                    start.checked_add(share)?.checked_add(if last == Some(n) { more } else { 0 })?
                }
            };
            ranges.push(start..at);
        }
        Some(ranges)
    }

    /// Places one partition in the first hole that holds it, or in the largest if it takes the
    /// rest; `None` if none holds it.
    fn anywhere(&mut self, i: usize, size: Size) -> Option<()> {
        let ranges = self
            .free
            .iter()
            .filter_map(|hole| self.fit(hole.start, hole, false, &[(i, size)])?.pop());
        let range = match size {
            Size::Rest => ranges
                .reduce(|best, r| if r.end - r.start > best.end - best.start { r } else { best }),
            _ => ranges.min_by_key(|r| r.start),
        }?;
        self.take(i, range);
        Some(())
    }

    fn take(&mut self, i: usize, range: Range<u64>) {
        let around = range.start.saturating_sub(self.floor.lead)..range.end;
        let pieces = self.free.iter().flat_map(|hole| {
            [hole.start..hole.end.min(around.start), hole.start.max(around.end)..hole.end]
        });
        self.free = pieces.filter(|hole| hole.start < hole.end).collect();
        self.laid[i] = Some(range);
    }

    /// Splits the free ranges at `at`, so that no partition crosses it.
    fn cut(&mut self, at: u64) {
        let pieces = self
            .free
            .iter()
            .flat_map(|hole| [hole.start..hole.end.min(at), hole.start.max(at)..hole.end]);
        self.free = pieces.filter(|hole| hole.start < hole.end).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: u64 = 1 << 20;

    fn floor(usable: Range<u64>, lead: u64) -> Floor {
        Floor { free: vec![usable.clone()], usable, lead }
    }

    fn new(size: Size) -> Item {
        Item::New { start: None, size }
    }

    fn at(start: u64, size: Size) -> Item {
        Item::New { start: Some(start), size }
    }

    fn laid(floor: &Floor, items: &[Item], grain: Grain) -> Result<Vec<(u64, u64)>, usize> {
        lay(floor, items, grain)
            .map(|laid| laid.into_iter().flatten().map(|r| (r.start, r.end)).collect())
    }

    fn mib() -> Grain {
        Grain::new(M, 0).unwrap()
    }

    const HALF: Size = Size::Percent(50 * super::super::PERCENT);

    #[test]
    fn each_follows_the_one_before_it_on_the_grain() {
        let disk = floor(17408..100 * M - 16896, 0);
        let items = [new(Size::Bytes(10 * M + 512)), new(Size::Rest), new(Size::Bytes(20 * M))];
        assert_eq!(
            laid(&disk, &items, mib()),
            Ok(vec![(M, 11 * M + 512), (12 * M, 79 * M), (79 * M, 99 * M)])
        );
        // Several shares of what is left are equal, but for what the grain leaves over.
        let items = [new(Size::Rest), new(Size::Bytes(20 * M)), new(Size::Rest), new(Size::Rest)];
        assert_eq!(
            laid(&disk, &items, mib()),
            Ok(vec![(M, 27 * M), (27 * M, 47 * M), (47 * M, 73 * M), (73 * M, 99 * M)])
        );
    }

    #[test]
    fn percents_are_of_what_lies_on_the_grain_and_hundred_of_them_fit() {
        let disk = floor(17408..100 * M - 16896, 0);
        assert_eq!(
            laid(&disk, &[new(HALF), new(HALF)], mib()),
            Ok(vec![(M, 50 * M), (50 * M, 99 * M)])
        );
        for share in [1, 3, 7, 33, 99] {
            let part = |p: u32| new(Size::Percent(p * super::super::PERCENT));
            for phase in [0, 512, 3584] {
                let grain = Grain::new(4096, phase).unwrap();
                for lead in [0, 512] {
                    let extended = floor(0..77 * M, lead);
                    let found = laid(&extended, &[part(share), part(100 - share)], grain).unwrap();
                    assert!(
                        found.iter().all(|&(s, e)| grain.contains(s) && grain.contains(e)),
                        "{share} {phase} {found:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_said_begins_there_and_nothing_goes_over_it() {
        let disk = floor(17408..100 * M, 0);
        let items = [new(Size::Rest), at(50 * M + 512, Size::Bytes(10 * M)), new(Size::Rest)];
        let want = vec![(M, 50 * M), (50 * M + 512, 60 * M + 512), (61 * M, 100 * M)];
        assert_eq!(laid(&disk, &items, mib()), Ok(want));
        // A start alone: to the next, on the grain.
        assert_eq!(laid(&disk, &[at(512 * 63, Size::Rest)], mib()), Ok(vec![(512 * 63, 100 * M)]));
        // Room is where it is.
        let items = [at(2 * M, Size::Bytes(97 * M)), new(Size::Bytes(M))];
        assert_eq!(laid(&disk, &items, mib()), Ok(vec![(2 * M, 99 * M), (99 * M, 100 * M)]));
        let items = [at(2 * M, Size::Bytes(98 * M)), new(Size::Bytes(M))];
        assert_eq!(laid(&disk, &items, mib()), Ok(vec![(2 * M, 100 * M), (M, 2 * M)]));
        let items = [at(2 * M, Size::Bytes(98 * M)), new(Size::Bytes(2 * M))];
        assert_eq!(laid(&disk, &items, mib()), Err(1));
    }

    #[test]
    fn what_is_there_stays_and_the_new_follows_it() {
        let mut disk = floor(17408..100 * M, 0);
        disk.free = vec![17408..M, 11 * M..50 * M, 60 * M..100 * M];
        let items = [
            Item::Occupant(11 * M),
            new(Size::Bytes(20 * M)),
            Item::Occupant(60 * M),
            new(Size::Rest),
        ];
        assert_eq!(laid(&disk, &items, mib()), Ok(vec![(11 * M, 31 * M), (60 * M, 100 * M)]));
        let items = [Item::Occupant(60 * M), Item::Occupant(11 * M), new(Size::Bytes(40 * M))];
        assert_eq!(laid(&disk, &items, mib()), Ok(vec![(60 * M, 100 * M)]));
    }

    #[test]
    fn a_table_before_every_partition_has_its_room() {
        let extended = floor(0..50 * M, 512);
        let items = [new(Size::Bytes(5 * M)), new(Size::Rest), new(Size::Bytes(5 * M))];
        assert_eq!(
            laid(&extended, &items, mib()),
            Ok(vec![(M, 6 * M), (7 * M, 44 * M), (45 * M, 50 * M)])
        );
    }

    #[test]
    fn no_number_is_too_large() {
        let disk = floor(17408..u64::MAX, 0);
        for size in [Size::Bytes(u64::MAX), Size::Bytes(u64::MAX - M), HALF, Size::Rest] {
            for items in [
                vec![new(size), new(size)],
                vec![at(u64::MAX - 1, size), new(size)],
                vec![at(0, size)],
            ] {
                let _ = laid(&disk, &items, mib());
                let _ = laid(&disk, &items, Grain::new(u64::MAX, 1).unwrap());
            }
        }
    }
}
