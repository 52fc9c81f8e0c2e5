//! Garbage collection: which units are where, which superblock is emptied next, and what that
//! copies.
//!
//! A write puts its unit behind the last one of a superblock and leaves garbage where the unit was.
//! When one free superblock is left, a victim is chosen: its units are copied, and it is free. How
//! many units a victim still has decides the write amplification, which is an outcome.
//!
//! # Scale
//! All units of a small drive are mapped. Of a large one a sample is: one unit, by a hash, of every
//! group of `each` neighbours. The sample is a drive of its own with the same spare share, so
//! uniform, skewed, sequential and partial traffic look to it as they do to the whole, and its
//! copies for a write are those of the whole. Superblocks are scaled likewise: there are always
//! about as many. Those that are open or kept free come on top of the spare area.
//!
//! # Initial state
//! Sequential: every superblock is full, and the spare area is free. Random: the steady state of
//! uniform random writes, in closed form. A superblock of age `a` has `exp(-a)` of its units, ages
//! are uniform up to that of the victim, whose share `u` follows from the spare area: `(1 - u) /
//! -ln u = 1 / (1 + spare)`.
//!
//! # Sources
//! X. Luojie and B. Kurkoski, "An Improved Analytic Expression for Write Amplification in NAND
//! Flash" (arXiv 1110.4245), for the closed form. P. Desnoyers, "Analytic Models of SSD Write
//! Performance" (ACM Transactions on Storage, 2014), for cleaning the least recently written and
//! for hot and cold data. M. Rosenblum and J. Ousterhout, "The Design and Implementation of a
//! Log-Structured File System" (1992), for cost-benefit: the most of `(1 - u) * age / (1 + u)`.

use crate::model::ssd::{Parameters, Precondition, Victim};
use crate::random::Random;
use std::collections::VecDeque;

/// The most units that are mapped.
const MOST_MAPPED: u64 = 1 << 16;

/// The fewest superblocks of a spare area, so that one of many is emptied.
const LEAST_SPARE: u32 = 16;

/// The fewest superblocks of a drive.
const LEAST: u32 = 256;

/// No slot, or no unit.
const NONE: u32 = u32::MAX;

/// The state of a superblock: one erase block of every plane of every die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Open,
    Full,
}

/// The cost of one unit of the host's writes, on average, with the victim of the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Pace {
    /// Units that are copied.
    pub(super) copies: f64,
    /// Pages read for them where a page holds several units, else units.
    pub(super) reads: f64,
}

/// The mapping of the drive's units, or of a sample of them.
#[derive(Debug)]
pub(super) struct Garbage {
    /// The number of neighbours of which one is mapped.
    each: u64,
    victim: Victim,
    /// The frontier that copies go to: 0, the host's, or 1.
    copies_to: usize,
    /// Slots in a superblock, and in a page.
    slots: u32,
    packed: u32,
    /// The slot of each mapped unit, and the unit in each slot.
    places: Vec<u32>,
    units: Vec<u32>,
    states: Vec<State>,
    /// Units that each superblock has, and the time of the last write of the host to any of them.
    valid: Vec<u32>,
    written: Vec<u64>,
    free: VecDeque<u32>,
    /// The next slot of each frontier, and the slots left in its superblock.
    frontiers: [(u32, u32); 2],
    /// Writes of the host so far.
    clock: u64,
    pace: Pace,
}

impl Garbage {
    /// The mapping of a drive of so many units, `packed` of them in a page; `None` if its model has
    /// no spare area.
    pub(super) fn new(parameters: &Parameters, units: u64, packed: u64) -> Option<Garbage> {
        if parameters.spare_percent == 0.0 {
            return None;
        }
        let spare = parameters.spare_percent / 100.0;
        let each = units.div_ceil(MOST_MAPPED).max(1);
        let mapped = whole(units.div_ceil(each));
        let blocks = LEAST.max(count(f64::from(LEAST_SPARE) * (1.0 + spare) / spare));
        let all = f64::from(mapped) * (1.0 + spare);
        let slots = count(all).div_ceil(blocks).max(1);
        // A size of which the spare area has nearly a whole number.
        let off = |slots: &u32| (all / f64::from(*slots) - (all / f64::from(*slots)).round()).abs();
        let slots =
            (slots..=slots + slots / 16).min_by(|a, b| off(a).total_cmp(&off(b))).unwrap_or(slots);
        let blocks = count(all / f64::from(slots)).max(mapped.div_ceil(slots) + 1);
        // The one that is kept free, and that of the copies, are no part of the spare area.
        let blocks = blocks + 1 + u32::from(parameters.separate_frontiers);
        let mut garbage = Garbage {
            each,
            victim: parameters.victim,
            copies_to: usize::from(parameters.separate_frontiers),
            slots,
            packed: whole(packed),
            places: vec![NONE; mapped as usize],
            units: vec![NONE; (slots * blocks) as usize],
            states: vec![State::Free; blocks as usize],
            valid: vec![0; blocks as usize],
            written: vec![0; blocks as usize],
            free: (0..blocks).collect(),
            frontiers: [(0, 0); 2],
            clock: 1 << 40,
            pace: Pace::default(),
        };
        let filled = count(f64::from(mapped) * parameters.filled).min(mapped);
        match parameters.precondition {
            Precondition::None => {}
            Precondition::Sequential => (0..filled).for_each(|unit| garbage.put(unit)),
            Precondition::Random => garbage.age(filled),
        }
        Some(garbage)
    }

    /// Writes a unit of the drive.
    pub(super) fn write(&mut self, unit: u64) {
        let group = unit / self.each;
        if self.each == 1 || Random::new(group).below(self.each) == unit - group * self.each {
            self.put(whole(group));
        }
    }

    /// The cost of a unit of the host's writes.
    pub(super) fn pace(&self) -> Pace {
        self.pace
    }

    /// Puts a mapped unit at the host's frontier.
    fn put(&mut self, unit: u32) {
        self.clock += 1;
        while self.frontiers[0].1 == 0 {
            if self.free.len() > 1 {
                self.open(0);
            } else {
                self.collect();
            }
        }
        let old = self.places[unit as usize];
        if old != NONE {
            self.units[old as usize] = NONE;
            self.valid[(old / self.slots) as usize] -= 1;
        }
        self.place(unit, 0, self.clock);
    }

    /// Puts a unit into the next slot of a frontier.
    fn place(&mut self, unit: u32, frontier: usize, written: u64) {
        let (slot, left) = self.frontiers[frontier];
        let block = (slot / self.slots) as usize;
        self.places[unit as usize] = slot;
        self.units[slot as usize] = unit;
        self.valid[block] += 1;
        self.written[block] = self.written[block].max(written);
        self.frontiers[frontier] = (slot + 1, left - 1);
        if left == 1 {
            self.states[block] = State::Full;
        }
    }

    /// Opens a free superblock for a frontier.
    fn open(&mut self, frontier: usize) {
        let Some(block) = self.free.pop_front() else { return };
        self.states[block as usize] = State::Open;
        self.written[block as usize] = 0;
        self.frontiers[frontier] = (block * self.slots, self.slots);
    }

    /// Empties the superblock that is chosen.
    fn collect(&mut self) {
        let victim = self.choose();
        self.pace = self.cost(victim);
        let (first, written) = (victim * self.slots, self.written[victim as usize]);
        for slot in first..first + self.slots {
            let unit = std::mem::replace(&mut self.units[slot as usize], NONE);
            if unit == NONE {
                continue;
            }
            if self.frontiers[self.copies_to].1 == 0 {
                self.open(self.copies_to);
            }
            self.place(unit, self.copies_to, written);
        }
        self.valid[victim as usize] = 0;
        self.states[victim as usize] = State::Free;
        self.free.push_back(victim);
    }

    /// The cost of emptying a superblock, for each unit that then has room.
    fn cost(&self, block: u32) -> Pace {
        let valid = self.valid[block as usize];
        let first = (block * self.slots) as usize;
        let pages = self.units[first..first + self.slots as usize].chunks(self.packed as usize);
        let reads = pages.filter(|page| page.iter().any(|&unit| unit != NONE)).count();
        let room = f64::from(self.slots.saturating_sub(valid).max(1));
        #[allow(clippy::cast_precision_loss, reason = "pages of one superblock")]
        let reads = reads as f64 / room;
        Pace { copies: f64::from(valid) / room, reads }
    }

    /// The superblock to empty next.
    fn choose(&self) -> u32 {
        let full = (0..whole(self.states.len() as u64)).filter(|&block| {
            self.states[block as usize] == State::Full && self.valid[block as usize] < self.slots
        });
        let by_valid = |block: &u32| self.valid[*block as usize];
        let chosen = match self.victim {
            Victim::Greedy => full.min_by_key(by_valid),
            Victim::Oldest => full.min_by_key(|&block| self.written[block as usize]),
            Victim::CostBenefit => {
                full.max_by(|&a, &b| self.benefit(a).total_cmp(&self.benefit(b)))
            }
        };
        debug_assert!(chosen.is_some(), "the spare area is garbage somewhere");
        chosen.unwrap_or(0)
    }

    /// The benefit of emptying a superblock over its cost, as Rosenblum and Ousterhout have it.
    fn benefit(&self, block: u32) -> f64 {
        let used = f64::from(self.valid[block as usize]) / f64::from(self.slots);
        #[allow(clippy::cast_precision_loss, reason = "an age for comparison")]
        let age = (self.clock - self.written[block as usize]) as f64;
        (1.0 - used) * age / (1.0 + used)
    }

    /// Puts units `0..filled` where uniform random writes to them would have left them.
    fn age(&mut self, filled: u32) {
        let mut random = Random::new(u64::from(filled));
        let mut order: Vec<u32> = (0..filled).collect();
        for at in (1..filled).rev() {
            let other = random.below(u64::from(at) + 1);
            order.swap(at as usize, whole(other) as usize);
        }
        let kept_free = 1 + self.copies_to;
        let blocks = self.states.len() - kept_free;
        #[allow(clippy::cast_precision_loss, reason = "superblocks, for a share")]
        let used = f64::from(filled) / (self.slots as usize * blocks) as f64;
        let least = victim_share(used);
        let (mut taken, mut kept) = (0.0, 0);
        // The oldest first. Places in a superblock are at random, too.
        for block in 0..blocks {
            #[allow(clippy::cast_precision_loss, reason = "superblocks, for a share")]
            let age = 1.0 - (block as f64 + 0.5) / blocks as f64;
            taken += least.powf(age) * f64::from(self.slots);
            let valid = if block + 1 == blocks { filled } else { count(taken).min(filled) } - kept;
            self.open(0);
            let age = count(age * f64::from(filled));
            self.scatter(&order[kept as usize..][..valid as usize], age, &mut random);
            kept += valid;
        }
        self.frontiers[0] = (0, 0);
        self.pace = self.cost(self.choose());
    }

    /// Puts units at random slots of the open superblock, which is full of garbage besides.
    fn scatter(&mut self, units: &[u32], age: u32, random: &mut Random) {
        let (first, _) = self.frontiers[0];
        let block = (first / self.slots) as usize;
        let (mut left, mut rest) = (units.len() as u64, units.iter());
        for slot in first..first + self.slots {
            let slots_left = u64::from(first + self.slots - slot);
            if random.below(slots_left) < left {
                left -= 1;
                if let Some(&unit) = rest.next() {
                    self.units[slot as usize] = unit;
                    self.places[unit as usize] = slot;
                    self.valid[block] += 1;
                }
            }
        }
        self.written[block] = self.clock - u64::from(age);
        self.states[block] = State::Full;
    }
}

/// The share `u` of its units that a victim still has under uniform random writes, where the drive
/// has `used` of its slots in use: `(1 - u) / -ln u = used`, by bisection.
pub(super) fn victim_share(used: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..64 {
        let middle = f64::midpoint(low, high);
        if (1.0 - middle) / -middle.ln() < used {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// A number of units or superblocks, which are few.
fn whole(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(NONE)
}

/// A number rounded to a count.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast to an integer saturates"
)]
fn count(number: f64) -> u32 {
    number.round() as u32
}

#[cfg(test)]
mod tests;
