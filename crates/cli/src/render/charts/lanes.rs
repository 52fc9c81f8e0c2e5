//! A chart of strips under one another, each with its name on the left and its value on the right.

use super::track::Track;
use crate::words::escape;
use std::fmt::Write as _;

/// A chart that is being built.
pub(crate) struct Lanes {
    body: String,
    label: String,
}

impl Lanes {
    /// An empty chart; `about` is its title for readers without sight.
    pub(crate) fn new(about: &str) -> Lanes {
        Lanes { body: String::new(), label: about.to_owned() }
    }

    /// Adds a heading for the strips that follow, with a key of its colour if it has a class.
    pub(crate) fn head(&mut self, text: &str, class: &str) {
        let key = if class.is_empty() { String::new() } else { key(class) };
        self.put(format_args!("<div class=\"lh\">{key}{}</div>", text_of(text)));
    }

    /// Adds a strip; `says` names its value for readers without sight.
    pub(crate) fn lane(&mut self, name: &str, track: Track, value: &str, says: &str) {
        let shown = escape::grouped(&text_of(value), "<i>", "</i>");
        self.put(format_args!(
            "<div class=\"ll\">{}</div>{}<div class=\"lv\">{shown}</div>",
            text_of(name),
            track.finish()
        ));
        let _ = write!(self.label, "; {says}: {value}");
    }

    /// Adds the strip of the axis, which has no value.
    pub(crate) fn axis(&mut self, track: Track) {
        self.put(format_args!(
            "<div class=\"ll\"></div>{}<div class=\"lv\"></div>",
            track.finish()
        ));
    }

    /// The chart as an element.
    pub(crate) fn finish(self) -> String {
        format!(
            "<div class=\"lanes\" role=\"img\" aria-label=\"{}\">\n{}</div>\n",
            text_of(&self.label),
            self.body
        )
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "{element}");
    }
}

/// A key of a colour, hatched like the colour's bars.
pub(crate) fn key(class: &str) -> String {
    let hatch = if class.split(' ').any(|c| matches!(c, "un" | "idle")) { " hatch" } else { "" };
    let mut track = Track::new(12);
    track.rect((0.0, 100.0), (0, 12), &format!("{class}{hatch}"), "");
    format!("<span class=\"key\">{}</span>", track.finish())
}

/// Text from people and files, escaped for a page.
pub(crate) fn text_of(text: &str) -> String {
    escape::xml(&escape::plain(text))
}
