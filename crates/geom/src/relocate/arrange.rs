//! New places for all partitions of a table, in the order in which they are, so that each begins on
//! the grain.
//!
//! What is on the grain stays where it is if the others have room around it. Of all arrangements
//! that are possible the one that copies the fewest bytes is chosen, and of those the one with the
//! shortest ways. Candidates for a place are its own one, the grain next to it on either side, and
//! the places into which a neighbour pushes it; the best choice of candidates is found by dynamic
//! programming.
//!
//! # Limits
//! [`MOST`] partitions. The order along the disk is kept, so a disk on which only another order
//! has room is refused.

use crate::base::topology::Grain;
use std::collections::BTreeSet;
use std::ops::Range;

/// Largest number of partitions that are arranged at once.
pub const MOST: usize = 256;

/// Partition that is arranged, in bytes of the provider with the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// First byte before the move.
    pub start: u64,
    /// Number of its bytes.
    pub length: u64,
    /// Bytes before it that belong to the table: its EBR.
    pub lead: u64,
    /// Offset inside of it that has to be on the grain: that of what it carries.
    pub inside: u64,
    /// True if it must stay where it is.
    pub fixed: bool,
}

/// Grains for an arrangement.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Grain on which a partition is left where it is.
    pub good: Grain,
    /// Grain on which a partition is put that has to move; all of it lies on `good`.
    pub place: Grain,
}

/// Cost of a choice: bytes that are moved, then the sum of the distances.
type Cost = (u128, u128);

/// Candidate for a place with the cheapest way to it.
#[derive(Clone, Copy)]
struct Choice {
    at: u64,
    cost: Cost,
    /// Index of the candidate that the block before takes.
    before: usize,
}

/// The new first byte of each of `blocks`, which are in ascending order and lie in `room`. `None`
/// if there is no room for such an arrangement, or if the blocks overlap or are too many.
pub fn arrange(blocks: &[Block], room: &Range<u64>, wanted: &Wanted) -> Option<Vec<u64>> {
    let apart = blocks.windows(2).all(|pair| pair[0].end() <= pair[1].start);
    if blocks.len() > MOST || !apart {
        return None;
    }
    let candidates = candidates(blocks, room, wanted);
    let mut rows: Vec<Vec<Choice>> = Vec::with_capacity(blocks.len());
    for (n, block) in blocks.iter().enumerate() {
        let mut row = Vec::new();
        // Candidates ascend, so what may come before one may come before the next, too.
        let (mut next, mut best): (usize, Option<(Cost, usize)>) = (0, None);
        for &at in &candidates[n] {
            let least = at.checked_sub(block.lead);
            let from = match n.checked_sub(1).map(|n| (&blocks[n], &rows[n])) {
                None => least.filter(|&least| least >= room.start).map(|_| ((0, 0), 0)),
                Some((before, choices)) => {
                    while let Some(choice) = choices.get(next).filter(|choice| {
                        choice.at.checked_add(before.length).is_some_and(|end| Some(end) <= least)
                    }) {
                        best = best
                            .filter(|(cost, _)| *cost <= choice.cost)
                            .or(Some((choice.cost, next)));
                        next += 1;
                    }
                    best
                }
            };
            let fits = at.checked_add(block.length).is_some_and(|end| end <= room.end);
            if let Some((cost, before)) = from.filter(|_| fits || at == block.start) {
                let (bytes, way) = block.cost(at);
                row.push(Choice { at, cost: (cost.0 + bytes, cost.1 + way), before });
            }
        }
        rows.push(row);
    }
    let last = rows.last()?.iter().enumerate().min_by_key(|(_, choice)| choice.cost)?;
    let mut at = last.0;
    let mut places = Vec::with_capacity(blocks.len());
    for row in rows.iter().rev() {
        let choice = row.get(at)?;
        places.push(choice.at);
        at = choice.before;
    }
    places.reverse();
    Some(places)
}

/// Bytes by which `room` would have to be longer for `blocks` on that grain; `None` if no length
/// is enough.
pub fn lacking(blocks: &[Block], room: &Range<u64>, wanted: &Wanted) -> Option<u64> {
    let (mut end, mut least) = (room.start, room.start);
    for block in blocks {
        // Packed as low as it goes: what does not fit now, fits nowhere.
        let free = end.checked_add(block.lead)?;
        let at = if block.fixed {
            Some(block.start).filter(|&at| at >= free)
        } else {
            wanted.place.shift(block.inside).next(free)
        };
        end = at?.checked_add(block.length)?;
        least = least.max(end);
    }
    Some(least.saturating_sub(room.end))
}

impl Block {
    /// First byte behind it, before the move.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.length)
    }

    /// True if its start, or what it carries, is on `grain`.
    pub fn is_on(&self, grain: Grain) -> bool {
        grain.shift(self.inside).contains(self.start)
    }

    /// Bytes that are moved to have it at `at`, and the distance.
    fn cost(&self, at: u64) -> Cost {
        match self.start.abs_diff(at) {
            0 => (0, 0),
            way => (u128::from(self.length), u128::from(way)),
        }
    }
}

/// The places that are tried for each block, in ascending order.
fn candidates(blocks: &[Block], room: &Range<u64>, wanted: &Wanted) -> Vec<BTreeSet<u64>> {
    let own = |block: &Block| {
        let grain = wanted.place.shift(block.inside);
        let stays = block.fixed || block.is_on(wanted.good);
        let moved = [grain.previous(block.start), grain.next(block.start)];
        let moved = moved.into_iter().flatten().filter(|_| !block.fixed);
        moved.chain(stays.then_some(block.start)).collect::<BTreeSet<u64>>()
    };
    let mut all: Vec<BTreeSet<u64>> = blocks.iter().map(own).collect();
    // Pushed towards the end by each candidate of a block before, as far as that reaches.
    let up = |n: usize, from: u64| {
        let mut at = from;
        (n + 1..blocks.len()).map_while(move |i| {
            let end = at.checked_add(blocks[i - 1].length)?.checked_add(blocks[i].lead)?;
            at = wanted.place.shift(blocks[i].inside).next(end)?;
            (!blocks[i].fixed && at > blocks[i].start).then_some((i, at))
        })
    };
    let down = |n: usize, from: u64| {
        let mut at = from;
        (0..n).rev().map_while(move |i| {
            let end = at.checked_sub(blocks[i + 1].lead)?;
            at = wanted
                .place
                .shift(blocks[i].inside)
                .previous(end.checked_sub(blocks[i].length)?)?;
            (!blocks[i].fixed && at < blocks[i].start).then_some((i, at))
        })
    };
    let mut pushed = Vec::new();
    for (n, places) in all.iter().enumerate() {
        for &place in places {
            pushed.extend(up(n, place).chain(down(n, place)));
        }
    }
    // And by the ends of the room.
    if let Some((n, last)) = blocks.iter().enumerate().next_back() {
        let grain = wanted.place.shift(last.inside);
        let at = room.end.checked_sub(last.length).and_then(|at| grain.previous(at));
        if let Some(at) = at.filter(|&at| !last.fixed && at < last.start) {
            pushed.push((n, at));
            pushed.extend(down(n, at));
        }
    }
    if let Some(first) = blocks.first() {
        let grain = wanted.place.shift(first.inside);
        let at = room.start.checked_add(first.lead).and_then(|at| grain.next(at));
        if let Some(at) = at.filter(|&at| !first.fixed && at > first.start) {
            pushed.push((0, at));
            pushed.extend(up(0, at));
        }
    }
    for (n, at) in pushed {
        all[n].insert(at);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: u64, length: u64) -> Block {
        Block { start, length, lead: 0, inside: 0, fixed: false }
    }

    fn wanted(size: u64) -> Wanted {
        let grain = Grain::multiples(size);
        Wanted { good: grain, place: grain }
    }

    #[test]
    fn without_a_gap_each_pushes_the_next() {
        let blocks = [block(63, 1000), block(1063, 1000), block(2063, 500)];
        let places = arrange(&blocks, &(1..4000), &wanted(8)).unwrap();
        assert_eq!(places, [64, 1064, 2064]);
        assert_eq!(lacking(&blocks, &(63..2563), &wanted(8)), Some(1));
        assert_eq!(arrange(&blocks, &(63..2563), &wanted(8)), None);
    }

    #[test]
    fn what_is_on_the_grain_stays() {
        let blocks = [block(63, 100), block(800, 1000), block(1803, 500)];
        let places = arrange(&blocks, &(8..4000), &wanted(8)).unwrap();
        assert_eq!(places, [64, 800, 1800]);
    }

    #[test]
    fn the_cheapest_of_all_arrangements_is_found() {
        // Against all arrangements of small disks, tried one by one.
        let mut seed: u64 = 1;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
            (seed >> 33) % below
        };
        for round in 0..3000 {
            let size = 1 + random(5);
            let mut at = 1 + random(4);
            let blocks: Vec<Block> = (0..1 + random(4))
                .map(|_| {
                    at += random(4);
                    let length = 1 + random(7);
                    let block = Block {
                        start: at,
                        length,
                        lead: random(2).min(at - 1),
                        inside: random(3),
                        fixed: random(6) == 0,
                    };
                    at += length;
                    block
                })
                .collect();
            let room = 1..at + random(8);
            let wanted = wanted(size);
            let found = arrange(&blocks, &room, &wanted);
            let mut best: Option<Cost> = None;
            each(&blocks, &room, &wanted, (0, 0), 1, &mut best);
            let cost = found.as_ref().map(|places| {
                blocks.iter().zip(places).fold((0, 0), |sum: Cost, (block, &at)| {
                    let cost = block.cost(at);
                    (sum.0 + cost.0, sum.1 + cost.1)
                })
            });
            // The bytes are the least there are; ways are the shortest of the candidates.
            assert_eq!(
                cost.map(|cost| cost.0),
                best.map(|cost| cost.0),
                "round {round}: {blocks:?} in {room:?} on {size}: {found:?}"
            );
            let ends = blocks.iter().zip(found.iter().flatten());
            let mut end = room.start;
            for (block, &at) in ends {
                assert!(at >= end + block.lead || at == block.start, "{blocks:?}: {found:?}");
                end = at + block.length;
            }
            if found.is_none() {
                assert_ne!(lacking(&blocks, &room, &wanted), Some(0), "{blocks:?} {room:?}");
            }
        }
    }

    fn each(
        blocks: &[Block],
        room: &Range<u64>,
        wanted: &Wanted,
        cost: Cost,
        end: u64,
        best: &mut Option<Cost>,
    ) {
        let Some((block, rest)) = blocks.split_first() else {
            *best = Some(best.map_or(cost, |best| best.min(cost)));
            return;
        };
        for at in end + block.lead..=room.end.saturating_sub(block.length) {
            let own = at == block.start && (block.fixed || block.is_on(wanted.good));
            let other = !block.fixed && wanted.place.shift(block.inside).contains(at);
            if own || other {
                let more = block.cost(at);
                let cost = (cost.0 + more.0, cost.1 + more.1);
                each(rest, room, wanted, cost, at + block.length, best);
            }
        }
    }
}
