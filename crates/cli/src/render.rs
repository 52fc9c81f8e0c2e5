//! Everything `check` and `show` print: each file turns a [`crate::report::Report`] into one form.
//!
//! | file | form |
//! |---|---|
//! | `text.rs` | `check`'s text for people |
//! | `list.rs` | a line a provider, in columns that are asked for |
//! | `terminal.rs` | a page of Markdown for a terminal |
//! | `tree.rs` | `show`'s text: what stands on what, with free space |
//! | `picture.rs`, `inset.rs` | the medium to scale, on a terminal, with what misses magnified |
//! | `svg.rs`, `members.rs`, `zoom.rs` | the same as a drawing, with sets over their members |
//! | `gpart.rs`, `part.rs` | what `part` shows and says, as gpart(8) does |
//! | `part_picture.rs`, `part_json.rs` | a partition table to scale, on a terminal, and for programs |
//! | `html.rs`, `markdown.rs` | one self-contained page |
//! | `plan.rs` | `plan`, as text and as a document |
//! | `drives.rs` | the simulated drives, as text and as a document |
//! | `after_help.rs` | examples and lists behind the options of `--help` |
//! | `bench.rs`, `bench_csv.rs` | `bench`, as text and as comma-separated values |
//! | `lab.rs`, `lab_csv.rs` | published values beside ours, for people and for tables |
//! | `lab_html.rs` | the same as one self-contained page of charts |
//! | `demo_html.rs` | the page of `demo`: a disk from its findings to its cost, then both pages in one |
//! | `served.rs`, `served_prometheus.rs`, `served_html.rs` | what `serve` counted: text, metrics, the live page |
//! | `json.rs`, `sarif.rs`, `prometheus.rs` | for programs |
//!
//! The others are what these share: `group.rs` says once what was found many times, `stack.rs` puts providers in order,
//! `scale.rs` puts bytes on a line, `metric.rs` writes a metric, `miss.rs` finds what to magnify, `canvas.rs` draws, `columns.rs`
//! aligns cells and breaks lines, `words.rs`, `size.rs` and `escape.rs` say and spell things, `spent.rs` is the table of simulated
//! drives' time.
//!
//! But for [`Style::of_stdout`] and [`Style::of_stderr`], nothing here reads anything but the report: the same report gives the same bytes. Text is
//! written with colour, which the caller's stream keeps or strips; labels come from hostile disks, so every string is escaped
//! where it is written.

pub(crate) mod after_help;
pub(crate) mod draw;
pub(crate) mod gpart;
pub(crate) mod made;
pub(crate) mod page_file;
pub(crate) mod report;
pub(crate) mod spent;
pub(crate) mod words;

use std::io::{self, Write};
use std::os::fd::AsFd;

#[cfg(test)]
pub(crate) mod samples;

/// Writes a line for people on standard output, escaped, and broken to fit its terminal.
pub(crate) fn say(text: &str) -> io::Result<()> {
    let mut line = Vec::new();
    crate::render::words::columns::line(&crate::render::words::escape::plain(text), Style::of_stdout().width, &mut line)?;
    anstream::stdout().write_all(&line)
}

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
