//! The way to the dies: programs and garbage collection.

use super::{Event, Ssd, Unit};
use crate::time::span;

impl Ssd {
    /// Programs ready units: in full groups, or fewer if a die would be idle, but in whole pages.
    /// `now`: the first group at once.
    pub(super) fn program(&mut self, mut now: bool) {
        let group = if self.allocation.is_some() {
            1
        } else {
            (self.flash.planes * self.packed / self.pages).max(1)
        };
        let group = usize::try_from(group).unwrap_or(1);
        while let Some(first) = self.ready.front() {
            let (die, free) = match &self.allocation {
                Some(_) => (self.home(first.start), self.flash.free(self.home(first.start))),
                None => self.flash.first_free(),
            };
            if self.ready.len() < group && free > self.now && !now {
                if !self.look {
                    self.look = true;
                    self.set(free, Event::Free);
                }
                return;
            }
            now = false;
            let Some(count) = self.in_whole_pages(group) else { return };
            let units: Vec<Unit> = self.ready.drain(..count).collect();
            self.program_units(units, die);
        }
    }

    /// The number of ready units to program now: whole pages, `group` units at most. A page that
    /// is not full waits like a unit that is not whole, unless a command waits for it or writes
    /// have no room. `None`: it waits.
    fn in_whole_pages(&mut self, group: usize) -> Option<usize> {
        let ready = self.ready.len().min(group);
        let packed = usize::try_from(self.packed).unwrap_or(1);
        if ready >= packed {
            return Some(ready / packed * packed);
        }
        let is_awaited = self.merging.is_empty()
            && (self.ready.iter().any(|unit| !unit.waiters.is_empty())
                || self.programs.is_empty() && !self.entering.is_empty());
        if is_awaited || self.merge == 0 {
            return Some(ready);
        }
        if let Some(first) = self.ready.front().filter(|_| !self.padding) {
            let first = first.start;
            self.padding = true;
            self.set(self.now + self.merge, Event::Waited(first));
        }
        None
    }

    /// Programs the page that begins with the unit `first` as full as it is, if it waits still.
    pub(super) fn pad(&mut self, first: u64) {
        self.padding = false;
        if self.ready.len() < usize::try_from(self.packed).unwrap_or(1)
            && self.ready.front().is_some_and(|unit| unit.start == first)
        {
            let units: Vec<Unit> = self.ready.drain(..).collect();
            let (die, _) = self.flash.first_free();
            self.program_units(units, die);
        }
        self.program(false);
    }

    /// Programs units together, on `die` first.
    fn program_units(&mut self, units: Vec<Unit>, mut die: usize) {
        let mut end = self.now;
        if let Some(allocation) = &mut self.allocation {
            let written = units.first().map(|unit| allocation.write(unit.start, self.unit));
            for (old, copied) in written.into_iter().flatten() {
                let home = self.flash.home(allocation.number(old));
                let count = copied.div_ceil(self.page);
                // The old allocation unit is closed before another is opened, on whichever die it
                // lies.
                end = match self.copy_per_byte {
                    None => self.flash.copy(end, home, count),
                    #[allow(clippy::cast_precision_loss, reason = "bytes of an allocation unit")]
                    Some(per_byte) => {
                        self.flash.occupy(end, home, span(copied as f64 * per_byte, 1))
                    }
                };
                self.counters.rmw += 1;
                self.counters.rmw_reads += 1;
                self.counters.media_ops += 2 * count;
                self.counters.media_read += copied;
                self.counters.media_written += copied;
            }
        }
        let count = units.len() as u64;
        let mut left = (count * self.pages).div_ceil(self.packed);
        self.counters.media_ops += left;
        self.counters.media_written += left * self.page;
        self.counters.padded += left * self.page - count * self.unit;
        self.collect(&units, left);
        let begin = end;
        while left > 0 {
            let together = left.min(self.flash.planes);
            end = end.max(self.flash.program(begin, die, together));
            left -= together;
            if left > 0 && self.allocation.is_none() {
                die = self.flash.first_free().0;
            }
        }
        let number = self.number();
        self.programs.insert(number, units);
        self.set(end, Event::Programmed(number));
    }

    /// Handles the end of a group's program.
    pub(super) fn programmed(&mut self, number: u64) {
        let units = self.programs.remove(&number);
        debug_assert!(units.is_some(), "a group is programmed once");
        for unit in units.into_iter().flatten() {
            self.on_their_way -= 1;
            self.programmed += unit.covered();
            self.keep(unit.start);
            for tag in &unit.waiters {
                let Some(open) = self.open.get_mut(tag) else { continue };
                open.waits -= 1;
                if open.waits == 0 && open.whole {
                    self.complete(*tag);
                }
            }
        }
        self.enter();
    }

    /// Caches a programmed unit, if there is a cache.
    fn keep(&mut self, unit: u64) {
        self.cached.push_back(unit);
        while self.cached.len() > self.cache_units {
            let Some(oldest) = self.cached.pop_front() else { break };
            if let Some(count) = self.resident.get_mut(&oldest) {
                *count -= 1;
                if *count == 0 {
                    self.resident.remove(&oldest);
                }
            }
        }
    }
}
