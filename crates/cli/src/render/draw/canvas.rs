//! Elements of drawings: boxes, text cut to its room, lines, and their styles.
//!
//! Text comes from hostile disks and is escaped here, in the only place that writes an element.

use crate::words::escape;
use std::fmt::Write as _;

/// Width of a drawing in pixels, and of its margins.
pub(super) const WIDTH: u64 = 1000;
pub(super) const MARGIN: u64 = 20;
/// Pixels between the margins.
pub(super) const INNER: u64 = WIDTH - 2 * MARGIN;

/// Styles in light and dark. Colours are written out twice because some viewers of SVG do not know
/// custom properties. A mark, a line's kind or a word always repeats what a colour says.
pub(crate) const STYLE: &str = include_str!("canvas/drawing.css");

/// A drawing that grows downwards.
pub(super) struct Canvas {
    /// The elements so far, as SVG.
    pub body: String,
    /// Vertical position of the next element, in pixels.
    pub y: u64,
}

impl Canvas {
    /// A box with a tooltip.
    pub(super) fn rect(&mut self, x: u64, y: u64, w: u64, h: u64, class: &str, title: &str) {
        let title = escape::xml(title);
        self.put(format_args!(r#"<rect x="{x}" y="{y}" width="{w}" height="{h}" class="{class}"><title>{title}</title></rect>"#));
    }

    /// Text, cut to `room` pixels, long numbers in groups of three digits.
    pub(super) fn text(
        &mut self,
        x: u64,
        y: u64,
        class: &str,
        anchor: &str,
        room: u64,
        text: &str,
    ) {
        let text = escape::xml(&fit(text, room, class));
        if !text.is_empty() {
            let text = escape::grouped(&text, r#"<tspan dx="2.5">"#, "</tspan>");
            self.put(format_args!(
                r#"<text x="{x}" y="{y}" class="{class}" text-anchor="{anchor}">{text}</text>"#
            ));
        }
    }

    /// A vertical line from `y1` to `y2`.
    pub(super) fn line(&mut self, x: u64, y1: u64, y2: u64, class: &str) {
        self.put(format_args!(r#"<line x1="{x}" x2="{x}" y1="{y1}" y2="{y2}" class="{class}"/>"#));
    }

    /// A quadrilateral from a range of one line down to a range of another.
    pub(super) fn fan(
        &mut self,
        (a, b): (u64, u64),
        top: u64,
        (from, to): (u64, u64),
        bottom: u64,
    ) {
        self.put(format_args!(
            r#"<path d="M{a} {top}L{b} {top}L{to} {bottom}L{from} {bottom}Z" class="tl-fan"/>"#
        ));
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "{element}");
    }
}

/// Width of a text of that class in pixels: a safe estimate for the usual sans-serif faces.
pub(super) fn pixels(text: &str, class: &str) -> u64 {
    let wide: u64 = text.chars().map(pixels_of).sum();
    // The measure is 14-pixel text; these are hundredths of it for each class.
    let hundredths = match class {
        c if c.contains("tl-h") => 155,
        c if c.contains("tl-num") => 88,
        c if c.contains("tl-dim") => 93,
        c if c.contains("tl-b") => 112,
        _ => 100,
    };
    wide * hundredths / 100
}

fn pixels_of(c: char) -> u64 {
    match c {
        'i' | 'l' | 'j' | '.' | ',' | ':' | ';' | '\'' | '|' | '(' | ')' | ' ' => 5,
        'm' | 'w' | 'M' | 'W' | '@' => 13,
        c if c.is_ascii_uppercase() => 10,
        '0'..='9' => 9,
        c if c.is_ascii() => 8,
        _ => 14,
    }
}

/// `text` cut to `room` pixels; empty if not even its beginning fits.
fn fit(text: &str, room: u64, class: &str) -> String {
    if pixels(text, class) <= room {
        return text.to_owned();
    }
    let mut used = pixels("…", class);
    let kept: String = text
        .chars()
        .take_while(|c| {
            used += pixels(c.encode_utf8(&mut [0; 4]), class);
            used <= room
        })
        .collect();
    if kept.chars().count() < 2 { String::new() } else { format!("{}…", kept.trim_end()) }
}
