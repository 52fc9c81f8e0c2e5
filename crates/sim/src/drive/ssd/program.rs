//! The way from the buffer to the dies: merging, programs and garbage collection.

use super::{Event, Ssd, Unit};
use trueline_geom::base::topology::round_down;

impl Ssd {
    /// Takes a unit from the buffer to be programmed; if it was written in part, the rest is read
    /// first.
    pub(super) fn destage(&mut self, start: u64) {
        let Some(unit) = self.buffer.take(start) else { return };
        self.on_their_way += 1;
        let held = self.resident.contains_key(&start);
        *self.resident.entry(start).or_insert(0) += 1;
        if held || unit.covered() == self.length(start) {
            self.ready.push_back(unit);
            return;
        }
        self.counters.rmw += 1;
        self.counters.rmw_reads += 1;
        let (mut done, mut page) = (self.now, round_down(start.max(self.lead), self.page));
        let end = (start + self.unit).min(self.end);
        while page < end {
            let (from, to) = (page.max(self.lead), (page + self.page).min(end));
            if !unit.covers(from, to) {
                done = done.max(self.flash.read(self.now, self.home(page), to - from));
                self.counters.media_ops += 1;
                self.counters.media_read += to - from;
            }
            page += self.page;
        }
        let number = self.number();
        self.merging.insert(number, unit);
        self.set(done, Event::Merged(number));
    }

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
            let closed = units.first().and_then(|unit| allocation.write(unit.start, self.unit));
            if let Some((old, copied)) = closed {
                let home = self.flash.home(allocation.number(old));
                let count = copied.div_ceil(self.page);
                // The old allocation unit is closed before another is opened, on whichever die it
                // lies.
                end = self.flash.copy(self.now, home, count);
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
