//! The work of garbage collection on the dies and channels, in step with the host's writes: what a
//! write owes is done when it is programmed, so that no victim stops the drive.

use super::{Ssd, Unit};

/// Work that is owed, in fractions of an operation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Owed {
    /// Pages that a constant factor has still to copy.
    pages: f64,
    /// Pages to read, units to program, and erasures.
    reads: f64,
    units: f64,
    erasures: f64,
    /// Pages read so far, which go round the dies.
    turn: u64,
}

impl Ssd {
    /// Collects garbage for units that are programmed in so many pages.
    pub(super) fn collect(&mut self, units: &[Unit], pages: u64) {
        let Some(garbage) = &mut self.garbage else { return self.copy_by_factor(pages) };
        for unit in units {
            garbage.write(unit.start / self.unit);
            let pace = garbage.pace();
            self.owed.reads += pace.reads;
            self.owed.units += pace.copies;
        }
        self.erase(pages);
        self.read_copies();
        self.program_copies();
    }

    /// Reads pages that are copied, wherever they are.
    fn read_copies(&mut self) {
        let pace = self.garbage.as_ref().map_or_else(Default::default, |garbage| garbage.pace());
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "bytes of a page"
        )]
        let bytes = (self.unit as f64 * pace.copies / pace.reads) as u64;
        while self.owed.reads >= 1.0 {
            self.owed.reads -= 1.0;
            // A unit of several pages is read as that many.
            for _ in 0..self.pages {
                self.owed.turn += 1;
                let (die, bytes) = (self.flash.home(self.owed.turn), bytes / self.pages);
                self.flash.read(self.now, die, bytes);
                self.counters.media_ops += 1;
                self.counters.media_read += bytes;
            }
        }
    }

    /// Programs copies in full groups on the die that is free first. They were read before: what is
    /// read now is programmed later.
    fn program_copies(&mut self) {
        let planes = self.flash.planes;
        #[allow(clippy::cast_precision_loss, reason = "units of one group")]
        let group = (planes * self.packed) as f64 / self.pages as f64;
        while self.owed.units >= group {
            self.owed.units -= group;
            let (die, _) = self.flash.first_free();
            self.flash.program(self.now, die, planes);
            self.counters.media_ops += planes;
            self.counters.media_written += planes * self.page;
            self.counters.copied += planes * self.page;
            self.erase(planes);
        }
    }

    /// Erases as many blocks as so many pages fill.
    fn erase(&mut self, pages: u64) {
        if self.erase_block == 0 {
            return;
        }
        #[allow(clippy::cast_precision_loss, reason = "pages of one group")]
        let share = (pages * self.page) as f64 / (self.erase_block * self.flash.planes) as f64;
        self.owed.erasures += share;
        while self.owed.erasures >= 1.0 {
            self.owed.erasures -= 1.0;
            let (die, _) = self.flash.first_free();
            self.flash.erase(self.now, die);
            self.counters.media_ops += 1;
            self.counters.erasures += self.flash.planes;
        }
    }

    /// Copies by a constant factor, inside a die.
    fn copy_by_factor(&mut self, pages: u64) {
        #[allow(clippy::cast_precision_loss, reason = "pages of one group")]
        let owed = pages as f64 * self.gc;
        self.owed.pages += owed;
        #[allow(clippy::cast_precision_loss, reason = "planes of a die")]
        let group = self.flash.planes as f64;
        while self.owed.pages >= group {
            self.owed.pages -= group;
            let (die, _) = self.flash.first_free();
            let planes = self.flash.planes;
            self.flash.copy(self.now, die, planes);
            self.counters.media_ops += 2 * planes;
            self.counters.media_read += planes * self.page;
            self.counters.media_written += planes * self.page;
            self.counters.copied += planes * self.page;
        }
    }
}
