//! The terminal that text is for: its width, and the characters that it shows.

use std::io;
use std::os::fd::AsFd;
use trueline_host::window;

/// Capabilities of a terminal: width and characters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Style {
    /// Width in columns; `None` if it is no terminal: lines are then not broken.
    pub width: Option<usize>,
    /// True if only ASCII is shown.
    pub ascii: bool,
}

impl Style {
    /// Style of standard output.
    pub(crate) fn of_stdout() -> Style {
        Style::for_stream(io::stdout())
    }

    /// Style of standard error.
    pub(crate) fn of_stderr() -> Style {
        Style::for_stream(io::stderr())
    }

    fn for_stream(stream: impl AsFd) -> Style {
        let width = window::columns(stream);
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = set("LC_ALL")
            .or_else(|| set("LC_CTYPE"))
            .or_else(|| set("LANG"))
            .unwrap_or_default()
            .to_ascii_uppercase();
        // Files and pipes get what their readers can be expected to show today.
        let ascii = width.is_some() && !(locale.contains("UTF-8") || locale.contains("UTF8"));
        Style { width, ascii }
    }

    /// The glyph, or its stand-in in ASCII.
    pub(crate) fn glyph(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.ascii { ascii } else { unicode }
    }
}
