//! `--svg`: one target as a drawing. Sets above, disks below; on each, what stands on it, layer over layer; then every start
//! that misses its grain, magnified.
//!
//! One self-contained file without scripts or references. Text comes from hostile disks and is escaped in [`Canvas`], the only
//! place that writes an element.

use super::scale::{Range, Scale};
use super::stack::{Piece, Stack};
use super::{Style, escape, size, words, zoom};
use crate::report::{Finding, Provider, Report, Target, Verdict};
use std::fmt::Write as _;
use std::io;

const WIDTH: u64 = 1000;
const MARGIN: u64 = 20;
const ROW: u64 = 34;
/// Magnifications drawn; what else misses is counted.
const ZOOMS: usize = 12;

/// How everything looks, in light and dark. `text` and `rect` colours are written out twice because not every viewer of SVG
/// knows custom properties.
pub(super) const STYLE: &str = "\
.tl{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;font-size:12px}\
.tl text{fill:#1f2933}.tl .tl-h{font-size:17px;font-weight:600}.tl .tl-b{font-weight:600}\
.tl .tl-dim{fill:#5b6875;font-size:11px}.tl .tl-num{fill:#5b6875;font-size:10px;font-variant-numeric:tabular-nums}.tl .tl-bad{fill:#b3261e}.tl .tl-good{fill:#246b4b}\
.tl .tl-warn{fill:#7a5600}.tl-bg{fill:#fff}\
.tl-disk{fill:#e7ebf0;stroke:#8793a0}.tl-carrier{fill:#dce6f2;stroke:#7d93ad}\
.tl-aligned{fill:#d3ecdf;stroke:#3b8f6a}.tl-misaligned{fill:#fbd9d6;stroke:#c5362c;stroke-width:2}.tl-unknown{fill:#f5e8c7;stroke:#a87b16;stroke-dasharray:5 3}\
.tl-zoomline{fill:#f1f4f7;stroke:#d5dce3}.tl-grid{stroke:#5b6875;stroke-dasharray:2 3}.tl-chunk0{fill:#cfe0f5;stroke:#6d8fb8}.tl-chunk1{fill:#e6d8f2;stroke:#9477b3}.tl-chunk2{fill:#d5ead9;stroke:#71a07c}.tl-chunk3{fill:#f4e3cd;stroke:#b58d58}\
.tl-unit{fill:#e7ebf0;stroke:#8793a0}.tl-odd{fill:#f4f6f8}.tl-block{fill:#d3ecdf;stroke:#3b8f6a}.tl-cross{fill:#f7c1bc;stroke:#c5362c}\
.tl-miss{fill:#c5362c}.tl-start{stroke:#c5362c;stroke-width:2}.tl-tick{stroke:#5b6875}\
@media (prefers-color-scheme:dark){\
.tl text{fill:#e3e8ed}.tl .tl-dim,.tl .tl-num{fill:#9aa8b5}.tl .tl-bad{fill:#ff8a80}.tl .tl-good{fill:#6fd3a4}.tl .tl-warn{fill:#e2b54a}.tl-bg{fill:#12171d}\
.tl-disk{fill:#252e37;stroke:#5d6b78}.tl-carrier{fill:#22364b;stroke:#56779c}\
.tl-aligned{fill:#1b4433;stroke:#4fae83}.tl-misaligned{fill:#5b2226;stroke:#ff6b62}.tl-unknown{fill:#463917;stroke:#cfa03a}\
.tl-zoomline{fill:#1b222a;stroke:#313c46}.tl-grid{stroke:#9aa8b5}.tl-chunk0{fill:#26405f;stroke:#6d95c7}.tl-chunk1{fill:#432f56;stroke:#a585c7}.tl-chunk2{fill:#274530;stroke:#76ab83}.tl-chunk3{fill:#4f3c22;stroke:#c49a61}\
.tl-unit{fill:#252e37;stroke:#5d6b78}.tl-odd{fill:#1b222a}.tl-block{fill:#1b4433;stroke:#4fae83}.tl-cross{fill:#7a2a2a;stroke:#ff6b62}\
.tl-miss{fill:#ff6b62}.tl-start{stroke:#ff6b62}.tl-tick{stroke:#9aa8b5}}";

/// A drawing that grows downwards.
pub(super) struct Canvas {
    body: String,
    y: u64,
}

impl Canvas {
    /// A box with a tooltip.
    pub(super) fn rect(&mut self, x: u64, y: u64, w: u64, h: u64, class: &str, title: &str) {
        let title = escape::xml(title);
        self.put(format_args!(r#"<rect x="{x}" y="{y}" width="{w}" height="{h}" class="{class}"><title>{title}</title></rect>"#));
    }

    /// Text, cut to `room` pixels.
    pub(super) fn text(&mut self, x: u64, y: u64, class: &str, anchor: &str, room: u64, text: &str) {
        let text = escape::xml(&fit(text, room, class));
        if !text.is_empty() {
            self.put(format_args!(r#"<text x="{x}" y="{y}" class="{class}" text-anchor="{anchor}">{text}</text>"#));
        }
    }

    /// A vertical line.
    pub(super) fn line(&mut self, x: u64, y1: u64, y2: u64, class: &str) {
        self.put(format_args!(r#"<line x1="{x}" x2="{x}" y1="{y1}" y2="{y2}" class="{class}"/>"#));
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "{element}");
    }
}

/// Pixels that text of a class is likely to take, on the safe side of the usual sans-serif faces.
fn pixels(text: &str, class: &str) -> u64 {
    let wide: u64 = text.chars().map(pixels_of).sum();
    // 12-pixel text is the measure; in tenths, what each class makes of it.
    let tenths = match class {
        c if c.contains("tl-h") => 14,
        c if c.contains("tl-num") => 8,
        c if c.contains("tl-dim") => 9,
        c if c.contains("tl-b") => 11,
        _ => 10,
    };
    wide * tenths / 10
}

fn pixels_of(c: char) -> u64 {
    match c {
        'i' | 'l' | 'j' | '.' | ',' | ':' | ';' | '\'' | '|' | '(' | ')' | ' ' => 4,
        'm' | 'w' | 'M' | 'W' | '@' => 11,
        c if c.is_ascii_uppercase() => 9,
        c if c.is_ascii() => 7,
        _ => 12,
    }
}

/// `text` cut to `room` pixels; nothing if not even its beginning fits.
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

/// Writes the drawing of one target as a file of its own.
pub(crate) fn write(target: &Target, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    draw(target, true, out)
}

/// Writes the drawings of all targets of a report under one another, as one file.
pub(crate) fn write_all(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    if let [target] = &report.targets[..] {
        return write(target, out);
    }
    let drawings: Vec<(String, u64)> = report.targets.iter().map(|t| body(t, true)).collect();
    let height: u64 = drawings.iter().map(|(_, h)| h).sum();
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    open(&words::count(report.targets.len(), "target"), height, true, out)?;
    let mut y = 0;
    for (body, height) in drawings {
        write!(out, "<g transform=\"translate(0 {y})\">\n{body}</g>\n")?;
        y += height;
    }
    writeln!(out, "</svg>")
}

/// Writes the drawing as an element; `alone` where nothing around it brings [`STYLE`] and a heading.
pub(super) fn draw(target: &Target, alone: bool, out: &mut dyn io::Write) -> io::Result<()> {
    let (body, height) = body(target, alone);
    let name = format!("{}: {}: {}", target.target, words::verdict(target.verdict), words::verdicts(target));
    open(&name, height, alone, out)?;
    writeln!(out, "{body}</svg>")
}

fn open(name: &str, height: u64, styled: bool, out: &mut dyn io::Write) -> io::Result<()> {
    let name = escape::xml(name);
    write!(out, r#"<svg xmlns="http://www.w3.org/2000/svg" class="tl" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}""#)?;
    writeln!(out, r#" role="img" aria-label="{name}">"#)?;
    writeln!(out, "<title>{name}</title>")?;
    if styled {
        writeln!(out, "<style>{STYLE}</style>")?;
    }
    writeln!(out, r#"<rect width="{WIDTH}" height="{height}" class="tl-bg"/>"#)
}

/// The elements of a drawing, and its height.
fn body(target: &Target, headed: bool) -> (String, u64) {
    let mut c = Canvas { body: String::new(), y: 16 };
    if headed {
        draw_heading(&mut c, target);
    }
    let stack = Stack::new(target);
    for &root in stack.roots.iter().rev() {
        draw_root(&mut c, target, &stack, root);
    }
    draw_zooms(&mut c, target);
    (c.body, c.y + 6)
}

fn draw_heading(c: &mut Canvas, target: &Target) {
    c.y = 30;
    let mark = words::mark(target.verdict, Style::default());
    let class = match target.verdict {
        Verdict::Aligned => "tl-h tl-good",
        Verdict::Unknown => "tl-h tl-warn",
        Verdict::Misaligned => "tl-h tl-bad",
    };
    let inner = WIDTH - 2 * MARGIN;
    c.text(MARGIN, c.y, class, "start", 30, mark);
    c.text(MARGIN + 22, c.y, "tl-h", "start", inner * 2 / 3, &target.target);
    c.text(WIDTH - MARGIN, c.y, "tl-dim", "end", inner / 3, &words::verdicts(target));
    c.y += 18;
}

/// A disk or set: the layers on it, itself at the bottom, its addresses and grains.
fn draw_root(c: &mut Canvas, target: &Target, stack: &Stack<'_>, root: usize) {
    let whole = &target.providers[root];
    let pieces = stack.pieces(root);
    let inner = WIDTH - 2 * MARGIN;
    // What something does I/O from gets room for its name, as far as there is room.
    let leaves = u64::try_from(pieces.iter().filter(|p| p.leaf).count()).unwrap_or(u64::MAX).max(1);
    let room = (inner / 2 / leaves).clamp(6, 86);
    let least = |p: &Piece| usize::try_from(if p.leaf { room } else { 3 }).unwrap_or(1);
    let ranges: Vec<Range> = pieces.iter().map(|p| Range { start: p.start, end: p.end, least: least(p) }).collect();
    let scale = Scale::new(whole.length.max(1), &ranges, usize::try_from(inner).unwrap_or(0));
    // Where there are more pieces than pixels, the pixels are shared out: cells are brought back to the drawing's width.
    let cells = u64::try_from(scale.width()).unwrap_or(1).max(1);
    let x = |byte| MARGIN + u64::try_from(scale.cell(byte)).unwrap_or(0) * inner / cells;
    let rows = u64::try_from(pieces.iter().filter_map(|p| p.row).max().unwrap_or(0)).unwrap_or(0);
    for piece in &pieces {
        if let Some(row) = piece.row.and_then(|r| u64::try_from(r).ok()) {
            let (left, right) = (x(piece.start), x(piece.end));
            draw_piece(c, target, &target.providers[piece.provider], left, (right - left).max(1), c.y + (rows - row) * ROW);
        }
    }
    c.y += (rows + 1) * ROW;
    let strays = |p: &Piece| [p.start, p.end].into_iter().any(|byte| x(byte).abs_diff(to_scale(whole, byte)) > 6);
    if pieces.iter().any(strays) {
        draw_true_scale(c, whole, &pieces, &x, target);
    }
    draw_axis(c, whole);
    if !whole.members.is_empty() {
        draw_chunks(c, whole);
    }
    let hidden = pieces.iter().filter(|p| p.row.is_none()).count();
    if hidden > 0 {
        c.text(
            MARGIN,
            c.y + 10,
            "tl-dim",
            "start",
            inner,
            &format!("{} overlap too many others to be drawn", words::count(hidden, "provider")),
        );
        c.y += 18;
    }
    c.y += 12;
}

fn class_of(p: &Provider) -> &'static str {
    match p.verdict {
        _ if p.parent.is_none() && !p.data_bearing => "tl-disk",
        _ if !p.data_bearing => "tl-carrier",
        Verdict::Aligned => "tl-aligned",
        Verdict::Unknown => "tl-unknown",
        Verdict::Misaligned => "tl-misaligned",
    }
}

fn draw_piece(c: &mut Canvas, target: &Target, p: &Provider, x: u64, w: u64, y: u64) {
    let (name, content) = (words::name(&p.provider), words::content(target, p));
    let sector = words::lba(p).map_or(String::new(), |lba| format!(" (LBA {lba})"));
    let verdict = if p.data_bearing { words::verdict(p.verdict) } else { "only carries what stands on it" };
    let label = p.label.as_ref().map_or(String::new(), |l| format!(", \"{}\"", escape::plain(l)));
    let at = words::start(p);
    let title = format!("{name}: {content}{label}; byte {at}{sector}, {}; {verdict}", words::bytes(p.length));
    c.rect(x, y, w, ROW - 4, class_of(p), &title);
    let mark = if p.data_bearing && p.verdict != Verdict::Aligned {
        format!("{} ", words::mark(p.verdict, Style::default()))
    } else {
        String::new()
    };
    let long = format!("{mark}{name} {content}{label}, {}", size::human(p.length));
    let room = w.saturating_sub(10);
    let short = format!("{mark}{name}");
    let medium = format!("{mark}{name} {content}, {}", size::human(p.length));
    if let Some(line) = [long, medium].into_iter().find(|line| pixels(line, "") <= room) {
        c.text(x + 6, y + 19, "tl-ink", "start", room, &line);
    } else {
        // The two lines of a narrow piece: its name, and what is on it.
        c.text(x + 5, y + 13, "tl-ink tl-b", "start", room, &short);
        c.text(x + 5, y + 25, "tl-dim", "start", room, &content);
    }
}

/// Where a byte lies, strictly to scale.
fn to_scale(whole: &Provider, byte: u64) -> u64 {
    let inner = u128::from(WIDTH - 2 * MARGIN);
    MARGIN + u64::try_from(u128::from(byte) * inner / u128::from(whole.length.max(1))).unwrap_or(0)
}

/// The same disk strictly to scale, with what was widened fanned out to its place above.
fn draw_true_scale(c: &mut Canvas, whole: &Provider, pieces: &[Piece], x: &dyn Fn(u64) -> u64, target: &Target) {
    let real = |byte: u64| to_scale(whole, byte);
    let (top, strip) = (c.y - 4, c.y + 22);
    let leaves: Vec<&Piece> =
        pieces.iter().filter(|p| p.leaf && p.row.is_some() && target.providers[p.provider].parent.is_some()).collect();
    for p in &leaves {
        let (a, b, from, to) = (x(p.start), x(p.end), real(p.start), real(p.end).max(real(p.start) + 1));
        c.put(format_args!(r#"<path d="M{a} {top}L{b} {top}L{to} {strip}L{from} {strip}Z" class="tl-zoomline"/>"#));
    }
    c.rect(MARGIN, strip, WIDTH - 2 * MARGIN, 10, "tl-disk", "the same to scale");
    for p in &leaves {
        let (from, to) = (real(p.start), real(p.end).max(real(p.start) + 2));
        let on = &target.providers[p.provider];
        c.rect(from, strip, to - from, 10, class_of(on), &format!("{}: {}", words::name(&on.provider), words::bytes(on.length)));
    }
    c.y = strip + 12;
}

/// Addresses under a disk or set, and the grains it knows.
fn draw_axis(c: &mut Canvas, whole: &Provider) {
    let inner = WIDTH - 2 * MARGIN;
    for nth in 0..=4 {
        let byte = u64::try_from(u128::from(whole.length) * u128::from(nth) / 4).unwrap_or(0);
        let x = MARGIN + inner * nth / 4;
        let anchor = ["start", "middle", "middle", "middle", "end"].get(usize::try_from(nth).unwrap_or(0)).copied().unwrap_or("end");
        c.line(x, c.y, c.y + 4, "tl-tick");
        c.text(x, c.y + 15, "tl-num", anchor, 120, &if byte == 0 { "0".into() } else { size::human(byte) });
    }
    let grains: Vec<String> = whole
        .grains
        .iter()
        .map(|g| {
            let phase = if g.phase > 0 { format!(" from byte {}", g.phase) } else { String::new() };
            // "assumed", once, where nobody said so.
            let trust = if g.trust == g.source { String::new() } else { format!(", {}", g.trust) };
            format!("{} {}{phase} ({}{trust})", g.why, size::human(g.size), g.source)
        })
        .collect();
    let over = if whole.members.is_empty() { String::new() } else { format!("over {}; ", whole.members.join(", ")) };
    let text = format!(
        "{}: {over}grains: {}",
        words::name(&whole.provider),
        if grains.is_empty() { "none known".into() } else { grains.join(" · ") }
    );
    c.text(MARGIN, c.y + 32, "tl-dim", "start", inner, &text);
    c.y += 40;
}

/// How a striped set deals its chunks out to its members.
fn draw_chunks(c: &mut Canvas, set: &Provider) {
    let Some(chunk) = set.grains.iter().find(|g| g.why == "chunk") else { return };
    let members = set.members.len();
    let shown = if members <= 4 { members * 2 } else { members.min(8) };
    let width = (WIDTH - 2 * MARGIN) / u64::try_from(shown.max(1)).unwrap_or(1);
    c.text(
        MARGIN,
        c.y + 12,
        "tl-dim",
        "start",
        WIDTH,
        &format!("its first chunks of {}, and the members they lie on:", size::human(chunk.size)),
    );
    let classes = ["tl-chunk0", "tl-chunk1", "tl-chunk2", "tl-chunk3"];
    for (nth, member) in set.members.iter().cycle().take(shown).enumerate() {
        let at = u64::try_from(nth).unwrap_or(0);
        let x = MARGIN + at * width;
        let byte = at.saturating_mul(chunk.size);
        let class = classes[(nth - nth / members * members).min(classes.len() - 1)];
        c.rect(x, c.y + 18, width, 22, class, &format!("chunk at byte {byte} of the set, on {}", escape::plain(member)));
        c.text(x + 6, c.y + 33, "tl-ink", "start", width - 10, &format!("{byte}: {}", words::name(member)));
    }
    c.y += 48;
}

/// The starts that miss, two in a row.
fn draw_zooms(c: &mut Canvas, target: &Target) {
    let misses: Vec<&Finding> = target.findings.iter().filter(|f| zoom::shows(f)).collect();
    for (nth, f) in misses.iter().take(ZOOMS).enumerate() {
        let left = nth.is_multiple_of(2);
        let x = if left { MARGIN } else { WIDTH - MARGIN - zoom::WIDTH };
        let p = target.providers.iter().find(|p| p.provider == f.provider);
        zoom::draw(c, x, c.y, f, p);
        if !left || nth + 1 == misses.len().min(ZOOMS) {
            c.y += zoom::HEIGHT + 18;
        }
    }
    if let Some(more) = misses.len().checked_sub(ZOOMS).filter(|&n| n > 0) {
        c.text(MARGIN, c.y + 4, "tl-dim", "start", WIDTH, &format!("{} more begin off a boundary", more));
        c.y += 16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::samples;

    #[test]
    fn hostile_labels_stay_text() {
        let text = samples::text(|out| write(&samples::openbsd(), out));
        assert!(text.contains("root &lt;script&gt;&amp;") && !text.contains("<script"), "{text}");
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn a_crowd_stays_on_the_sheet() {
        let text = samples::text(|out| write(&samples::crowded(2000), out));
        assert!(text.len() < 1 << 20 && text.contains("overlap too many others"), "{}", text.len());
    }

    #[test]
    fn hostile_numbers_draw() {
        let mut target = samples::stripe();
        for (i, p) in target.providers.iter_mut().enumerate() {
            (p.length, p.base) = if i == 0 { (u64::MAX, 0) } else { (u64::MAX, u64::MAX - 7) };
            p.block_size = Some(u64::MAX);
        }
        for f in &mut target.findings {
            (f.offset, f.unit, f.remainder) = (0, (1 << 48) - 1, (1 << 48) - 2);
        }
        target.findings[1].unit = u64::MAX;
        target.findings[0].offset = u64::MAX;
        assert!(samples::text(|out| write(&target, out)).ends_with("</svg>\n"));
    }
}
