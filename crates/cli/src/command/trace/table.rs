//! `--top`: the counts of a trace on the terminal, once a second.

use crate::command::trace::document::Traced;
use crate::command::trace::observation::Observation;
use crate::command::trace::text;
use crate::failure::Failure;
use crate::screen::Screen;
use crate::target::{DiskOverrides, Target};
use std::time::{Duration, Instant};

/// Interval in which the table is drawn.
const PERIOD: Duration = Duration::from_secs(1);

/// The table on the terminal, until it is dropped.
pub(super) struct Table<'a> {
    target: &'a Target,
    overrides: &'a DiskOverrides,
    before: Option<Traced>,
    next: Instant,
    screen: Screen,
}

impl<'a> Table<'a> {
    /// A table that is not drawn yet. Errors: standard output is no terminal.
    pub(super) fn new(
        target: &'a Target,
        overrides: &'a DiskOverrides,
    ) -> Result<Table<'a>, Failure> {
        let screen = Screen::new("trace", "use --json")?;
        Ok(Table { target, overrides, before: None, next: Instant::now(), screen })
    }

    /// Draws the table again, once a second.
    pub(super) fn tick(&mut self, seen: &Observation) -> Result<(), Failure> {
        if Instant::now() < self.next {
            return Ok(());
        }
        self.next += PERIOD;
        let now = Traced::new(self.target.typed(), self.overrides.judged(), seen);
        let before = self.before.as_ref().unwrap_or(&now);
        self.screen.draw(|style, lines, out| text::write_top(&now, before, style, lines, out))?;
        self.before = Some(now);
        Ok(())
    }
}
