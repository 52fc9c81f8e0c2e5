//! The scheduler of the mechanism: its next operation, and the effects of a finished one.

use super::firmware::{Reason, Target};
use super::job::{Running, Work};
use super::mechanism::Spans;
use super::write_cache::{Extent, Taken};
use super::{Command, Disk, Flush, Op, Ps};
use trueline_geom::base::topology::units;

impl Disk {
    /// Reacts to any event: admits writes to the cache, ends flushes, and gives the mechanism work.
    pub(super) fn dispatch(&mut self, now: Ps) {
        self.admit(now);
        self.end_flushes(now);
        self.press();
        if matches!(self.running, Some(Running { work: Work::Ahead { .. }, .. }))
            && (self.presses(now) || self.is_asked())
        {
            self.curtail(now);
        }
        if self.running.is_none() {
            self.pick(now);
        }
    }

    /// True if a command waits for the mechanism.
    fn is_asked(&self) -> bool {
        !self.queue.is_empty() || !self.stalled.is_empty() || !self.flushes.is_empty()
    }

    /// True if the amount of dirty data calls for destaging, and no read was just answered.
    fn presses(&self, now: Ps) -> bool {
        self.urgent && now >= self.held_until()
    }

    /// Extents and bytes on their way to the medium, which hold their slots until they are there.
    fn leaving(&self) -> (usize, u64) {
        match &self.running {
            Some(Running { work: Work::Destage { taken, target: _ }, .. }) => {
                (taken.len(), taken.iter().map(|taken| taken.end - taken.start).sum())
            }
            _ => (0, 0),
        }
    }

    /// Takes writes into the cache while there is room.
    fn admit(&mut self, now: Ps) {
        let (extents, bytes) = self.leaving();
        while let Some(&command) = self.stalled.front() {
            let (start, end) = self.place(&command);
            let merges = || {
                self.writes
                    .ends_at(start)
                    .is_some_and(|own| self.may_merge(own.seq) && self.firmware.merges(own))
            };
            let slot = self.writes.len() + extents < self.limits.slots || merges();
            let dirty = self.writes.bytes() + bytes;
            if !slot || (dirty > 0 && dirty + command.length > self.limits.bytes) {
                break;
            }
            self.stalled.pop_front();
            self.arrivals += 1;
            let barrier = self.flushes.back().map(|flush| flush.seq);
            let firmware = &self.firmware;
            let merge = |before: &Extent| {
                barrier.is_none_or(|seq| before.seq > seq) && firmware.merges(before)
            };
            let overwritten =
                self.writes.insert(start, end, self.arrivals, &merge, &self.mechanism.geometry);
            self.counters.cache_hits += u64::from(overwritten > 0);
            self.ledger.written += command.length;
            self.ledger.overwritten += overwritten;
            self.complete(now, command.tag);
        }
        self.ledger.balance(self.writes.bytes() + bytes);
    }

    /// True if dirty data of write `seq` may grow. Data that a flush waits for may not, or it might
    /// never end.
    fn may_merge(&self, seq: u64) -> bool {
        self.flushes.back().is_none_or(|flush| seq > flush.seq)
    }

    /// The first flush, if all its data are on the medium.
    fn flush_on_medium(&self) -> Option<Flush> {
        let first = self.flushes.front().copied()?;
        let running = match &self.running {
            Some(Running { work: Work::Destage { taken, .. }, .. }) => {
                taken.iter().map(|taken| taken.seq).min()
            }
            Some(Running { work: Work::Through { seq, .. }, .. }) => Some(*seq),
            _ => None,
        };
        let on_medium = self.writes.left() == 0 && first.seq < running.unwrap_or(u64::MAX);
        on_medium.then_some(first)
    }

    /// True if a flush still has to take its fixed time.
    fn takes_time(&self, flush: &Flush) -> bool {
        self.flush_cost > 0 && flush.seq > self.flushed
    }

    /// Completes the flushes whose data are all on the medium.
    fn end_flushes(&mut self, now: Ps) {
        while let Some(flush) = self.flush_on_medium().filter(|flush| !self.takes_time(flush)) {
            self.flushes.pop_front();
            self.writes.cover(self.flushes.front().map_or(0, |next| next.seq));
            debug_assert!(
                self.writes.oldest(&|_, _| true).is_none_or(|(_, e)| e.seq > flush.seq),
                "a flush ends before its destage"
            );
            self.complete(now, flush.tag);
        }
    }

    /// Starts the fixed part of a flush whose data are on the medium. False if there is none.
    fn conclude_flush(&mut self, now: Ps) -> bool {
        let Some(flush) = self.flush_on_medium() else { return false };
        let spans = Spans { setup: self.flush_cost, ..Spans::default() };
        self.begin(now, Work::Flush { seq: flush.seq }, spans);
        true
    }

    /// Becomes urgent at the high mark, and stays so down to the low one: otherwise every write
    /// would come a revolution late.
    fn press(&mut self) {
        let (slots, bytes) = (self.writes.len(), self.writes.bytes());
        if slots + 1 >= self.limits.slots || bytes > self.limits.high {
            self.urgent = true;
        } else if slots <= self.limits.slots / 2 && bytes <= self.limits.low {
            self.urgent = false;
        }
    }

    /// Gives the free mechanism work: commands first, in turn with destaging that other commands
    /// wait for; then urgent destaging; then idle work.
    fn pick(&mut self, now: Ps) {
        if self.conclude_flush(now) {
            return;
        }
        let waited_for = !self.stalled.is_empty() || !self.flushes.is_empty();
        if waited_for
            && (self.destage_turn || self.queue.is_empty())
            && self.destage(now, true, false)
        {
            self.destage_turn = false;
            return;
        }
        if self.serve(now) {
            self.destage_turn = true;
            return;
        }
        if (waited_for && self.destage(now, true, false))
            || (self.presses(now) && self.destage(now, false, false))
        {
            return;
        }
        let idle_for = |wait| self.outstanding == 0 && now >= self.touched.saturating_add(wait);
        let (idle, cleans) = (idle_for(self.limits.idle), idle_for(self.clean_idle()));
        if (idle && self.destage(now, true, true)) || (cleans && self.empty_log(now)) {
            return;
        }
        self.read_ahead(now);
    }

    /// Starts the next queued command that needs the mechanism. False if there is none.
    fn serve(&mut self, now: Ps) -> bool {
        while let Some(waiting) = self.queue.pop(now, &self.mechanism) {
            let command = waiting.command;
            let (start, end) = self.place(&command);
            if command.op == Op::Write {
                self.write_through(now, command, start, end);
                return true;
            }
            let missing = self.missing(start, end);
            if missing < end {
                self.read(now, command, missing, end);
                return true;
            }
            self.send(&command, now, now);
        }
        false
    }

    pub(super) fn begin(&mut self, now: Ps, work: Work, spans: Spans) {
        self.counters.idle += now - self.free;
        self.running = Some(Running { work, start: now, spans });
    }

    /// Adds a pass over the sectors `from..to` to `spans`, and counts it.
    pub(super) fn pass(
        &mut self,
        now: Ps,
        spans: &mut Spans,
        (from, to): (u64, u64),
        write: bool,
        again: bool,
    ) {
        let own = self.mechanism.pass(now + spans.sum(), from, to, write, again);
        spans.setup += own.setup;
        spans.seek += own.seek;
        spans.rotate += own.rotate;
        spans.transfer += own.transfer;
        self.counters.media_ops += 1;
        if !write {
            self.counters.media_read += (to - from) * self.sector;
        }
    }

    fn read(&mut self, now: Ps, command: Command, missing: u64, end: u64) {
        let (from, to) = units(missing, end, self.sector);
        let first = self.lies(missing);
        let data =
            now + self.mechanism.cost(now, first, &self.mechanism.geometry.locate(first), false);
        let (mut spans, mut at) = (Spans::default(), missing);
        while at < end {
            // Data in the log are read there, the rest at home.
            let (logged, until) = self.log.lies(at, end);
            let lies = logged.unwrap_or(at);
            self.pass(now, &mut spans, units(lies, lies + (until - at), self.sector), false, false);
            at = until;
        }
        self.begin(now, Work::Read { command, data, from, to }, spans);
    }

    fn write_through(&mut self, now: Ps, command: Command, start: u64, end: u64) {
        let (overwritten, seq) = self.writes.cut(start, end, &self.mechanism.geometry);
        self.ledger.overwritten += overwritten;
        let taken = [Taken { start, end, seq, at: start }];
        let mut spans = Spans::default();
        match self.media_cache {
            Some(_) => self.write_to_cache(now, &mut spans, (start, end), seq),
            None => self.rewrite(now, &mut spans, &taken),
        }
        self.begin(now, Work::Through { command, seq }, spans);
    }

    /// True if more than half of the slots hold data that the firmware holds back. Destaging the
    /// others would never come down to the low mark, and be left with the newest write alone.
    fn waiting_fill_the_slots(&self) -> bool {
        let most = self.limits.slots / 2;
        let waits = |&(start, extent): &(u64, &Extent)| self.firmware.waits(start, extent);
        self.writes.live() > most
            && self.writes.within(0, u64::MAX).filter(waits).nth(most).is_some()
    }

    /// Starts destaging the extent that comes first, with those the firmware adds. `forced`: none
    /// is held back. Otherwise those held back go first once they fill the slots. False if there is
    /// none.
    fn destage(&mut self, now: Ps, forced: bool, idle: bool) -> bool {
        let covered =
            self.flushes.back().filter(|_| self.stalled.is_empty()).map(|flush| flush.seq);
        let firmware = &self.firmware;
        let give_up = !forced && self.waiting_fill_the_slots();
        let accept = |start: u64, extent: &Extent| {
            covered.is_none_or(|seq| extent.seq <= seq)
                && (forced || firmware.waits(start, extent) == give_up)
        };
        let Some(start) = self.writes.choose(self.destage_order, now, &self.mechanism, &accept)
        else {
            return false;
        };
        let log_room = self.log_room();
        let (mut taken, reason) =
            (std::mem::take(&mut self.spare), Reason { forced, idle, log_room });
        let target = self.firmware.gather(
            &mut self.writes,
            start,
            reason,
            &self.mechanism.geometry,
            &mut taken,
        );
        if taken.is_empty() && self.media_cache.is_some() {
            // There is no room for them.
            return self.clean(now);
        }
        debug_assert!(!taken.is_empty(), "a firmware that destages nothing");
        let mut spans = Spans::default();
        match target {
            Target::Home => self.rewrite(now, &mut spans, &taken),
            Target::Log => self.append(now, &mut spans, &mut taken),
        }
        self.begin(now, Work::Destage { taken, target }, spans);
        true
    }

    /// Writes extents one after another to the log, which has room for them.
    pub(super) fn append(&mut self, now: Ps, spans: &mut Spans, taken: &mut [Taken]) {
        let (first, mut at) = (self.log_next, self.log_next * self.sector);
        for Taken { start, end, at: own, .. } in taken {
            *own = at;
            at += *end - *start;
        }
        self.log_next = units(at, at, self.sector).1;
        self.fill_media_cache(self.log_next - first);
        self.pass(now, spans, (first, self.log_next), true, false);
        self.counters.media_written += (self.log_next - first) * self.sector;
    }

    /// Reads the data of the log, and rewrites them at home. False if the log is empty.
    fn empty_log(&mut self, now: Ps) -> bool {
        if self.media_cache.is_some() {
            return self.clean(now);
        }
        let Some(start) = self.log.choose(self.destage_order, now, &self.mechanism, &|_, _| true)
        else {
            return false;
        };
        let mut taken = Vec::new();
        let reason = Reason { forced: true, idle: true, log_room: 0 };
        self.firmware.gather(&mut self.log, start, reason, &self.mechanism.geometry, &mut taken);
        let mut spans = Spans::default();
        for run in taken.chunk_by(|one, next| one.at + (one.end - one.start) == next.at) {
            let end = run.last().map_or(0, |last| last.at + (last.end - last.start));
            self.pass(now, &mut spans, units(run[0].at, end, self.sector), false, false);
        }
        self.rewrite(now, &mut spans, &taken);
        // The data in the log were counted as destaged when they were logged.
        self.begin(now, Work::Destage { taken: Vec::new(), target: Target::Home }, spans);
        true
    }

    /// Reads ahead from the end of the last read to the end of the track.
    fn read_ahead(&mut self, now: Ps) {
        let Some((start, until)) = self.reads.ahead(self.sector) else { return };
        // Data in the log are not at home, so reading ahead stops before them.
        let until = if self.log.lies(start, until).0.is_some() {
            start
        } else {
            self.log.lies(start, until).1
        };
        let (from, end) = units(start, until, self.sector);
        let end = end.min(self.home_end);
        if from >= end || !self.mechanism.continues(from, false) {
            return;
        }
        let place = self.mechanism.geometry.locate(from);
        let to = end.min(from + place.left_on_track());
        let data = now + self.mechanism.cost(now, from, &place, false);
        let spans = self.mechanism.pass(now, from, to, false, false);
        self.begin(now, Work::Ahead { data, place, from, to }, spans);
    }

    /// Adds what was read ahead so far to the read cache. Returns the first sector not yet read;
    /// `None` if nothing is read ahead.
    pub(super) fn note_ahead(&mut self, now: Ps) -> Option<u64> {
        let Some(Running { work: Work::Ahead { data, place, from, to }, .. }) = &self.running
        else {
            return None;
        };
        let passed =
            if now < *data { 0 } else { self.mechanism.geometry.passed(place, now - data) };
        let (from, reached) = (*from, (from + passed).min(*to));
        if reached > from {
            self.reads.fill(from * self.sector, reached * self.sector, 0);
        }
        Some(reached)
    }

    /// Ends reading ahead, as there is other work. If the next command continues right here, the
    /// sector under the head is finished first.
    fn curtail(&mut self, now: Ps) {
        let Some(reached) = self.note_ahead(now) else { return };
        let goes_on = self.queue.begins_at(reached);
        let Some(Running { work: Work::Ahead { place, from, to, .. }, spans, start, .. }) =
            &mut self.running
        else {
            return;
        };
        if goes_on && reached < *to {
            *to = reached + 1;
            spans.transfer = self.mechanism.geometry.passing(place, *to - *from);
            self.mechanism.stop_at(*to);
        } else if !goes_on {
            spans.first(now - *start).count(&mut self.counters);
            self.counters.media_read += (reached - *from) * self.sector;
            self.mechanism.interrupt();
            self.running = None;
            self.free = now;
        }
    }

    /// Handles the end of the mechanism's operation.
    pub(super) fn finish(&mut self, now: Ps) {
        let Some(Running { work, spans, .. }) = self.running.take() else { return };
        spans.count(&mut self.counters);
        self.free = now;
        match work {
            Work::Read { command, data, from, to } => {
                let end = self.place(&command).1;
                self.reads.fill(from * self.sector, to * self.sector, end);
                self.answered = now;
                self.send(&command, data, now);
            }
            Work::Through { command, .. } => {
                self.ledger.written += command.length;
                self.ledger.destaged += command.length;
                self.complete(now, command.tag);
            }
            Work::Destage { mut taken, target } => {
                for taken in taken.drain(..) {
                    self.ledger.destaged += taken.end - taken.start;
                    if target == Target::Log {
                        self.log.log(&taken, &self.mechanism.geometry);
                    }
                }
                self.spare = taken;
            }
            Work::Ahead { from, to, .. } => {
                self.reads.fill(from * self.sector, to * self.sector, 0);
                self.counters.media_read += (to - from) * self.sector;
            }
            Work::Flush { seq } => self.flushed = seq,
        }
    }
}
