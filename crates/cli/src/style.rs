//! The terminal that text is for: its width, and the characters that it shows.

use std::io;
use std::os::fd::AsFd;

/// What a terminal can show.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Style {
    /// Its width in columns; `None` when it is not a terminal: lines are then as long as they are.
    pub width: Option<usize>,
    /// Whether to keep to ASCII.
    pub ascii: bool,
}

impl Style {
    /// What standard output can show.
    pub(crate) fn of_stdout() -> Style {
        Style::of(io::stdout())
    }

    /// What standard error can show.
    pub(crate) fn of_stderr() -> Style {
        Style::of(io::stderr())
    }

    fn of(stream: impl AsFd) -> Style {
        let width = terminal_size::terminal_size_of(stream).map(|(width, _)| usize::from(width.0));
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default().to_ascii_uppercase();
        // Files and pipes get what their readers can be expected to show today.
        let ascii = width.is_some() && !(locale.contains("UTF-8") || locale.contains("UTF8"));
        Style { width, ascii }
    }

    /// One glyph or its ASCII stand-in.
    pub(crate) fn glyph(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.ascii { ascii } else { unicode }
    }
}
