//! A table that is drawn again and again on the terminal's other screen (xterm's private mode
//! 1049), so that the terminal's earlier contents come back.

use crate::failure::Failure;
use crate::style::Style;
use std::io::{self, IsTerminal, Write};
use trueline_host::window;

/// Lines of a terminal that does not say how many it has.
const LINES: usize = 24;
const OTHER_SCREEN: &str = "\x1b[?1049h\x1b[?25l";
const FIRST_SCREEN: &str = "\x1b[?25h\x1b[?1049l";

/// The other screen of the terminal, until it is dropped.
#[derive(Default)]
pub(crate) struct Screen {
    /// True if the table has the terminal.
    taken: bool,
}

impl Screen {
    /// A screen that is not taken yet. Errors: standard output is no terminal; `otherwise` says
    /// what to do then.
    pub(crate) fn new(command: &str, otherwise: &str) -> Result<Screen, Failure> {
        if io::stdout().is_terminal() {
            return Ok(Screen::default());
        }
        let found = "standard output is not a terminal";
        Err(Failure::Message(format!("{command} --top: {found}: {otherwise}")))
    }

    /// True once something was drawn.
    pub(crate) fn is_taken(&self) -> bool {
        self.taken
    }

    /// Draws what `write` writes for a terminal of that many lines, in the place of what was there.
    pub(crate) fn draw(
        &mut self,
        write: impl FnOnce(Style, usize, &mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        if !self.taken {
            self.taken = true;
            show(OTHER_SCREEN)?;
        }
        let lines = window::lines(io::stdout()).unwrap_or(LINES);
        let mut table = Vec::new();
        let style = Style::of_stdout();
        if anstream::AutoStream::choice(&io::stdout()) == anstream::ColorChoice::Never {
            write(style, lines, &mut anstream::StripStream::new(&mut table))?;
        } else {
            write(style, lines, &mut table)?;
        }
        show(&redraw(&String::from_utf8_lossy(&table)))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.taken {
            // A terminal that is gone needs nothing back.
            let _ = show(FIRST_SCREEN);
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
