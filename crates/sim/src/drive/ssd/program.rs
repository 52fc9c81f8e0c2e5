//! The way to the dies: programs and garbage collection.

use super::{Event, Ssd, Unit};
use crate::time::span;

impl Ssd {
    /// Programs ready units: in full groups, or fewer if a die would be idle. `now`: the first
    /// group at once.
    pub(super) fn program(&mut self, mut now: bool) {
        let pages = (self.unit / self.page).max(1);
        let group = if self.allocation.is_some() { 1 } else { (self.flash.planes / pages).max(1) };
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
            let units: Vec<Unit> = self.ready.drain(..group.min(self.ready.len())).collect();
            self.program_units(units, pages, die);
        }
    }

    /// Programs units together, on `die` first.
    fn program_units(&mut self, units: Vec<Unit>, pages: u64, mut die: usize) {
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
        let mut left = pages * units.len() as u64;
        self.counters.media_ops += left;
        self.counters.media_written += left * self.page;
        self.collect(left);
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

    /// Collects garbage for `pages` programmed: other pages are read and programmed.
    fn collect(&mut self, pages: u64) {
        #[allow(clippy::cast_precision_loss, reason = "pages of one group")]
        let owed = pages as f64 * self.gc;
        self.owed += owed;
        #[allow(clippy::cast_precision_loss, reason = "planes of a die")]
        let group = self.flash.planes as f64;
        while self.owed >= group {
            self.owed -= group;
            let (die, _) = self.flash.first_free();
            let planes = self.flash.planes;
            self.flash.copy(self.now, die, planes);
            self.counters.media_ops += 2 * planes;
            self.counters.media_read += planes * self.page;
            self.counters.media_written += planes * self.page;
        }
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
