//! A strip of a chart as wide as its place. Along it positions are in percent, across it in pixels,
//! so that text keeps its size on every screen.

use crate::words::escape;
use std::fmt::Write as _;

/// A strip that is being drawn.
pub(crate) struct Track {
    body: String,
    height: u32,
}

/// The end of a text that stands at its position.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
}

impl Track {
    /// An empty strip of `height` pixels.
    pub(crate) fn new(height: u32) -> Track {
        Track { body: String::new(), height }
    }

    /// Draws a box with a tooltip, from `left` to `right`. A class `hatch` hatches it.
    pub(crate) fn rect(
        &mut self,
        (left, right): (f64, f64),
        (y, height): (u32, u32),
        class: &str,
        title: &str,
    ) {
        let (wide, title) = ((right - left).max(0.0), escape::xml(&escape::plain(title)));
        let place = format!(r#"x="{left:.2}%" y="{y}" width="{wide:.2}%" height="{height}""#);
        self.put(format_args!(r#"<rect {place} class="{class}"><title>{title}</title></rect>"#));
        if class.split(' ').any(|c| c == "hatch") {
            self.put(format_args!(r##"<rect {place} fill="url(#hatch)" pointer-events="none"/>"##));
        }
    }

    /// Draws a line across the strip.
    pub(crate) fn upright(&mut self, x: f64, class: &str) {
        let height = self.height;
        self.put(format_args!(
            r#"<line x1="{x:.2}%" x2="{x:.2}%" y1="0" y2="{height}" class="{class}"/>"#
        ));
    }

    /// Draws a line along the strip.
    pub(crate) fn level(&mut self, (left, right): (f64, f64), y: f64, class: &str) {
        self.put(format_args!(
            r#"<line x1="{left:.2}%" x2="{right:.2}%" y1="{y:.1}" y2="{y:.1}" class="{class}"/>"#
        ));
    }

    /// Draws a short upright at the end of a whisker.
    pub(crate) fn cap(&mut self, x: f64, y: f64, class: &str) {
        let (top, bottom) = (y - 4.0, y + 4.0);
        self.put(format_args!(
            r#"<line x1="{x:.2}%" x2="{x:.2}%" y1="{top:.1}" y2="{bottom:.1}" class="{class}"/>"#
        ));
    }

    /// Draws a dot with a tooltip.
    pub(crate) fn dot(&mut self, x: f64, y: f64, radius: f64, class: &str, title: &str) {
        let title = escape::xml(&escape::plain(title));
        self.put(format_args!(r#"<circle cx="{x:.2}%" cy="{y:.1}" r="{radius}" class="{class}"><title>{title}</title></circle>"#));
    }

    /// Draws a text at a position.
    pub(crate) fn text(&mut self, x: f64, y: f64, class: &str, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
        };
        let text = escape::xml(&escape::plain(text));
        self.put(format_args!(
            r#"<text x="{x:.2}%" y="{y:.1}" class="{class}" text-anchor="{anchor}">{text}</text>"#
        ));
    }

    /// Draws a text in a box from `left` to `right`, cut off where the box ends.
    pub(crate) fn inside(
        &mut self,
        (left, right): (f64, f64),
        height: u32,
        class: &str,
        text: &str,
    ) {
        let (wide, middle, text) =
            ((right - left).max(0.0), height / 2 + 4, escape::xml(&escape::plain(text)));
        self.put(format_args!(
            r#"<svg x="{left:.2}%" y="0" width="{wide:.2}%" height="{height}"><text x="50%" y="{middle}" class="{class}" text-anchor="middle">{text}</text></svg>"#
        ));
    }

    /// Draws a curve in the upper `height` pixels: points in percent of them, from the left and
    /// from the top.
    pub(crate) fn curve_in(&mut self, height: u32, points: &[(f64, f64)], class: &str) {
        let mut path = String::new();
        for (nth, (x, y)) in points.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(path, "{}{x:.2} {y:.2}", if nth == 0 { "M" } else { "L" });
        }
        self.put(format_args!(
            r#"<svg width="100%" height="{height}" viewBox="0 0 100 100" preserveAspectRatio="none"><path d="{path}" class="{class}" vector-effect="non-scaling-stroke"/></svg>"#
        ));
    }

    /// The strip as an element; the chart around it describes it in words.
    pub(crate) fn finish(self) -> String {
        format!(
            r#"<svg class="track" width="100%" height="{}" aria-hidden="true">{}</svg>"#,
            self.height, self.body
        )
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = write!(self.body, "{element}");
    }
}
