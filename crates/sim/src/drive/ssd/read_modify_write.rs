//! Read-modify-write: a unit that the host wrote only in part is read before it is programmed.

use super::{Event, Ssd};
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
            let from = page.max(start).max(self.lead);
            let to = (page + self.page).min(end);
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
}
