//! The entry into the buffer: writes as there is room, flushes past it.

use super::{Command, Op, Open, Ssd};
use trueline_geom::base::topology::round_down;

impl Ssd {
    /// Moves waiting writes into the buffer, and flushes past it, in order and as there is room.
    pub(super) fn enter(&mut self) {
        while let Some(&tag) = self.entering.front() {
            let Some(&Open { command, order, entered, .. }) = self.open.get(&tag) else { break };
            let in_time = match command.op {
                Op::Write => self.enter_write(tag, command, order, entered),
                Op::Flush => {
                    self.enter_flush(tag);
                    true
                }
                Op::Read => true,
            };
            if !in_time {
                break;
            }
            self.entering.pop_front();
            if let Some(open) = self.open.get_mut(&tag) {
                open.whole = true;
                if open.waits == 0 {
                    self.complete(tag);
                }
            }
        }
        // Partly written units that wait for their rest must not keep new writes out.
        while self.buffer.len() > self.capacity / 2 && self.buffer.len() > 1 {
            let Some((_, oldest)) = self.buffer.oldest() else { break };
            self.destage(oldest);
        }
        self.program(false);
    }

    /// Puts the rest of a write into the buffer. True if there was room for all of it.
    fn enter_write(&mut self, tag: u64, command: Command, order: u64, entered: u64) -> bool {
        let (start, end) = self.shifted(command);
        let stays = self.through || command.fua && !self.protected;
        let mut at = start + entered;
        while at < end {
            let unit = round_down(at, self.unit);
            let next = (unit + self.unit).min(end);
            if self.buffer.get(unit).is_none()
                && self.buffer.len() + self.on_their_way >= self.capacity
            {
                if let Some((_, oldest)) = self.buffer.oldest().filter(|_| self.on_their_way == 0) {
                    self.destage(oldest);
                }
                return false;
            }
            self.replaced += self.buffer.write(unit, (at, next), order, self.now + self.merge);
            self.entered += next - at;
            at = next;
            if let Some(open) = self.open.get_mut(&tag) {
                open.entered = at - start;
                open.waits += u64::from(stays);
            }
            let whole =
                self.buffer.get(unit).is_some_and(|held| held.covered() == self.length(unit));
            if stays {
                self.buffer.await_unit(unit, tag);
            }
            if stays || whole {
                self.destage(unit);
            }
        }
        true
    }

    /// Makes a flush wait for all units that are not programmed, and destages them.
    fn enter_flush(&mut self, tag: u64) {
        if self.protected {
            return;
        }
        let dirty: Vec<u64> = self.buffer.units().map(|unit| unit.start).collect();
        for unit in dirty {
            self.destage(unit);
        }
        let mut waits = 0;
        let programs = self.programs.values_mut().flatten();
        for unit in self.merging.values_mut().chain(&mut self.ready).chain(programs) {
            unit.waiters.push(tag);
            waits += 1;
        }
        if let Some(open) = self.open.get_mut(&tag) {
            open.waits = waits;
        }
    }
}
