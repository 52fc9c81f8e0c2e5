//! `--top`: the counters on the terminal, once a second.

use super::notices::Notices;
use super::telemetry::Telemetry;
use crate::command::serve::summary::Served;
use crate::command::serve::text::{self, Moment};
use crate::failure::Failure;
use crate::screen::Screen;
use crate::words::escape;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trueline_serve::front::Front;

const PERIOD: Duration = Duration::from_secs(1);

/// The table on the terminal, until it is dropped.
pub(super) struct Top {
    telemetry: Arc<Telemetry>,
    notices: Arc<Notices>,
    /// The ways in for clients, in words.
    places: String,
    before: Served,
    next: Instant,
    screen: Screen,
}

impl Top {
    /// A table that has not taken the terminal yet. Errors: standard output is no terminal.
    pub(super) fn new(
        telemetry: Arc<Telemetry>,
        notices: Arc<Notices>,
        fronts: &[Box<dyn Front>],
    ) -> Result<Top, Failure> {
        let screen = Screen::new("serve", "use --json or --metrics")?;
        let places: Vec<String> =
            fronts.iter().map(|front| escape::plain(&front.place())).collect();
        let places = format!("at {}", places.join(", "));
        Ok(Top {
            before: telemetry.served(),
            telemetry,
            notices,
            places,
            next: Instant::now(),
            screen,
        })
    }

    /// Draws the table again, once a second; the first time, it takes the terminal.
    pub(super) fn tick(&mut self) -> Result<(), Failure> {
        if Instant::now() < self.next {
            return Ok(());
        }
        if !self.screen.is_taken() {
            self.notices.keep();
        }
        self.next += PERIOD;
        let now = self.telemetry.served();
        let said: Vec<String> = std::iter::once(self.places.clone())
            .chain(self.notices.last().map(|line| escape::plain(&line)))
            .collect();
        let moment = Moment { served: &now, before: &self.before, said: &said };
        self.screen.draw(|style, lines, to| text::write_top(&moment, style, lines, to))?;
        self.before = now;
        Ok(())
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        if self.screen.is_taken() {
            // The terminal first: notices go to it.
            self.screen = Screen::default();
            self.notices.release();
        }
    }
}
