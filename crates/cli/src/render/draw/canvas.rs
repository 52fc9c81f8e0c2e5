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
pub(crate) const STYLE: &str = "\
.tl{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;font-size:14px}\
.tl text{fill:#1f2933}.tl .tl-h{font-size:20px;font-weight:600}.tl .tl-b{font-weight:600}\
.tl .tl-dim{fill:#5b6875;font-size:13px}.tl .tl-num{fill:#5b6875;font-size:12px;font-variant-numeric:tabular-nums}\
.tl .tl-bad{fill:#b3261e}.tl .tl-good{fill:#246b4b}.tl .tl-warn{fill:#7a5600}.tl-bg{fill:#fff}\
.tl-disk{fill:#e7ebf0;stroke:#8793a0}.tl-carrier{fill:#dce6f2;stroke:#7d93ad}\
.tl-aligned{fill:#d3ecdf;stroke:#3b8f6a}.tl-misaligned{fill:#fbd9d6;stroke:#c5362c;stroke-width:2.5}.tl-unknown{fill:#f5e8c7;stroke:#a87b16;stroke-width:1.5;stroke-dasharray:5 3}\
.tl-fan{fill:#f1f4f7;stroke:#d5dce3}.tl-grid{stroke:#5b6875;stroke-dasharray:2 3}.tl-cut{stroke:#8c1d16;stroke-width:2}\
.tl-chunk0{fill:#cfe0f5;stroke:#6d8fb8}.tl-chunk1{fill:#e6d8f2;stroke:#9477b3}.tl-chunk2{fill:#d5ead9;stroke:#71a07c}.tl-chunk3{fill:#f4e3cd;stroke:#b58d58}\
.tl-unit{fill:#e7ebf0;stroke:#8793a0}.tl-odd{fill:#f4f6f8}.tl-block{fill:#d3ecdf;stroke:#3b8f6a}.tl-cross{fill:#f7c1bc;stroke:#c5362c}\
.tl-miss{fill:#c5362c}.tl-start{stroke:#c5362c;stroke-width:2.5}.tl-hit{stroke:#246b4b;stroke-width:2.5}.tl-tick{stroke:#5b6875}\
@media (prefers-color-scheme:dark){\
.tl text{fill:#e3e8ed}.tl .tl-dim,.tl .tl-num{fill:#9aa8b5}.tl .tl-bad{fill:#ff8a80}.tl .tl-good{fill:#6fd3a4}.tl .tl-warn{fill:#e2b54a}.tl-bg{fill:#12171d}\
.tl-disk{fill:#252e37;stroke:#5d6b78}.tl-carrier{fill:#22364b;stroke:#56779c}\
.tl-aligned{fill:#1b4433;stroke:#4fae83}.tl-misaligned{fill:#5b2226;stroke:#ff6b62}.tl-unknown{fill:#463917;stroke:#cfa03a}\
.tl-fan{fill:#1b222a;stroke:#313c46}.tl-grid{stroke:#9aa8b5}.tl-cut{stroke:#ffb4ae}\
.tl-chunk0{fill:#26405f;stroke:#6d95c7}.tl-chunk1{fill:#432f56;stroke:#a585c7}.tl-chunk2{fill:#274530;stroke:#76ab83}.tl-chunk3{fill:#4f3c22;stroke:#c49a61}\
.tl-unit{fill:#252e37;stroke:#5d6b78}.tl-odd{fill:#1b222a}.tl-block{fill:#1b4433;stroke:#4fae83}.tl-cross{fill:#7a2a2a;stroke:#ff6b62}\
.tl-miss{fill:#ff6b62}.tl-start{stroke:#ff6b62}.tl-hit{stroke:#6fd3a4}.tl-tick{stroke:#9aa8b5}}";

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
