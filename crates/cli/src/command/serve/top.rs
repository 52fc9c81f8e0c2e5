//! `--top`: the counters on the terminal, once a second.
//!
//! It is drawn on the terminal's other screen (xterm's private mode 1049), so that its earlier
//! contents come back.

use super::notices::Notices;
use super::telemetry::Telemetry;
use crate::command::serve::summary::Served;
use crate::command::serve::text::{self, Moment};
use crate::failure::Failure;
use crate::style::Style;
use crate::words::escape;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trueline_serve::front::Front;

const PERIOD: Duration = Duration::from_secs(1);
/// Lines of a terminal that does not say how many it has.
const LINES: usize = 24;
const OTHER_SCREEN: &str = "\x1b[?1049h\x1b[?25l";
const FIRST_SCREEN: &str = "\x1b[?25h\x1b[?1049l";

/// The table on the terminal, until it is dropped.
pub(super) struct Top {
    telemetry: Arc<Telemetry>,
    notices: Arc<Notices>,
    /// The ways in for clients, in words.
    places: String,
    before: Served,
    next: Instant,
    /// True if the table has the terminal.
    taken: bool,
}

impl Top {
    /// A table that has not taken the terminal yet. Errors: standard output is no terminal.
    pub(super) fn new(
        telemetry: Arc<Telemetry>,
        notices: Arc<Notices>,
        fronts: &[Box<dyn Front>],
    ) -> Result<Top, Failure> {
        if !io::stdout().is_terminal() {
            return Err(Failure::Message(
                "serve --top: standard output is not a terminal: use --json or --metrics".into(),
            ));
        }
        let places: Vec<String> =
            fronts.iter().map(|front| escape::plain(&front.place())).collect();
        let places = format!("at {}", places.join(", "));
        Ok(Top {
            before: telemetry.served(),
            telemetry,
            notices,
            places,
            next: Instant::now(),
            taken: false,
        })
    }

    /// Draws the table again, once a second; the first time, it takes the terminal.
    pub(super) fn tick(&mut self) -> Result<(), Failure> {
        if Instant::now() < self.next {
            return Ok(());
        }
        if !self.taken {
            self.notices.keep();
            self.taken = true;
            show(OTHER_SCREEN)?;
        }
        self.next += PERIOD;
        let now = self.telemetry.served();
        let lines = terminal_size::terminal_size_of(io::stdout())
            .map_or(LINES, |(_, height)| usize::from(height.0));
        let said: Vec<String> = std::iter::once(self.places.clone())
            .chain(self.notices.last().map(|line| escape::plain(&line)))
            .collect();
        let moment = Moment { served: &now, before: &self.before, said: &said };
        let mut table = Vec::new();
        let write = |to: &mut dyn Write| text::write_top(&moment, Style::of_stdout(), lines, to);
        if anstream::AutoStream::choice(&io::stdout()) == anstream::ColorChoice::Never {
            write(&mut anstream::StripStream::new(&mut table))?;
        } else {
            write(&mut table)?;
        }
        self.before = now;
        show(&redraw(&String::from_utf8_lossy(&table)))
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        if self.taken {
            // A terminal that is gone needs nothing back.
            let _ = show(FIRST_SCREEN);
            self.notices.release();
        }
    }
}

/// The table from the upper left corner; old text is cleared only where nothing replaces it, so
/// that nothing flickers.
fn redraw(table: &str) -> String {
    format!("\x1b[H{}\x1b[J", table.replace('\n', "\x1b[K\r\n"))
}

/// Writes past the stream that strips colours, which would strip these sequences too.
fn show(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_replaces_what_was() {
        assert_eq!(redraw("a\nb\n"), "\x1b[Ha\x1b[K\r\nb\x1b[K\r\n\x1b[J");
    }
}
