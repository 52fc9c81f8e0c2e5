//! `--svg`: one target as a drawing. Sets are above, disks below; on each its providers, layer over
//! layer; then every start that misses its grain, magnified.
//!
//! One self-contained file without scripts or references.

use super::canvas::{Canvas, INNER, MARGIN, STYLE, WIDTH, pixels};
use super::scale::{Range, Scale};
use super::stack::{Piece, Stack};
use super::{members, miss, zoom};
use crate::report::{Grain, Provider, Report, Target, Verdict};
use crate::style::Style;
use crate::words::{self, escape, size};
use std::io;
use trueline_geom::base::topology::{Source, Trust};

/// Pixels from one layer to the next.
const ROW: u64 = 42;
/// Most magnifications drawn; the other misses are counted.
const ZOOMS: usize = 6;
/// Most disks without providers in one row.
const ABREAST: usize = 4;

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

/// Writes the drawing as an element; `alone` adds [`STYLE`] and a heading, for a drawing outside a
/// page.
pub(crate) fn draw(target: &Target, alone: bool, out: &mut dyn io::Write) -> io::Result<()> {
    let (body, height) = body(target, alone);
    let name = format!(
        "{}: {}: {}",
        target.target,
        words::verdict(target.verdict),
        words::verdicts(target)
    );
    open(&name, height, alone, out)?;
    writeln!(out, "{body}</svg>")
}

fn open(name: &str, height: u64, styled: bool, out: &mut dyn io::Write) -> io::Result<()> {
    let name = escape::xml(name);
    write!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" class="tl" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}""#
    )?;
    writeln!(out, r#" role="img" aria-label="{name}">"#)?;
    writeln!(out, "<title>{name}</title>")?;
    if styled {
        writeln!(out, "<style>{STYLE}</style>")?;
    }
    writeln!(out, r#"<rect width="{WIDTH}" height="{height}" class="tl-bg"/>"#)
}

/// The elements of a drawing, and its height in pixels.
fn body(target: &Target, headed: bool) -> (String, u64) {
    let mut c = Canvas { body: String::new(), y: 16 };
    if headed {
        draw_heading(&mut c, target);
    }
    let stack = Stack::new(target);
    let roots = stack.top_down();
    let bare = |root: &usize| {
        stack.children(*root).is_empty()
            && target.providers[*root].members.is_empty()
            && roots.len() > 1
    };
    let (bare, laden): (Vec<usize>, Vec<usize>) = roots.iter().partition(|root| bare(root));
    for &root in &laden {
        draw_root(&mut c, target, &stack, root);
    }
    for row in bare.chunks(ABREAST) {
        draw_bare(&mut c, target, row);
    }
    draw_legend(&mut c, target);
    draw_zooms(&mut c, target);
    (c.body, c.y + 2)
}

fn draw_heading(c: &mut Canvas, target: &Target) {
    c.y = 32;
    let mark = words::mark(target.verdict, Style::default());
    let class = match target.verdict {
        Verdict::Aligned => "tl-h tl-good",
        Verdict::Unknown => "tl-h tl-warn",
        Verdict::Misaligned => "tl-h tl-bad",
    };
    let verdict = format!("{mark} {}", words::verdict(target.verdict));
    let room = pixels(&verdict, "tl-h") + 20;
    c.text(MARGIN, c.y, "tl-h", "start", INNER - room, &target.target);
    c.text(WIDTH - MARGIN, c.y, class, "end", room, &verdict);
    c.y += 20;
}

/// Draws a disk or set: the layers on it, itself at the bottom, its addresses and grains.
fn draw_root(c: &mut Canvas, target: &Target, stack: &Stack<'_>, root: usize) {
    let whole = &target.providers[root];
    let pieces = stack.pieces(root);
    // Data-bearing pieces get room for their names, as far as there is room.
    let leaves = u64::try_from(pieces.iter().filter(|p| p.leaf).count()).unwrap_or(u64::MAX).max(1);
    let room = (INNER / 2 / leaves).clamp(6, 110);
    let least = |p: &Piece| usize::try_from(if p.leaf { room } else { 3 }).unwrap_or(1);
    let ranges: Vec<Range> =
        pieces.iter().map(|p| Range { start: p.start, end: p.end, least: least(p) }).collect();
    let scale = Scale::new(whole.length.max(1), &ranges, usize::try_from(INNER).unwrap_or(0));
    // With more pieces than pixels, cells are scaled down to the drawing's width.
    let cells = u64::try_from(scale.width()).unwrap_or(1).max(1);
    let x = |byte| MARGIN + u64::try_from(scale.cell(byte)).unwrap_or(0) * INNER / cells;
    let rows = u64::try_from(pieces.iter().filter_map(|p| p.row).max().unwrap_or(0)).unwrap_or(0);
    for piece in &pieces {
        if let Some(row) = piece.row.and_then(|r| u64::try_from(r).ok()) {
            let (left, right) = (x(piece.start), x(piece.end));
            draw_piece(
                c,
                target,
                &target.providers[piece.provider],
                left,
                (right - left).max(1),
                c.y + (rows - row) * ROW,
            );
        }
    }
    c.y += (rows + 1) * ROW - 4;
    let strays = |p: &Piece| {
        [p.start, p.end].into_iter().any(|byte| x(byte).abs_diff(to_scale(whole, byte)) > 6)
    };
    if pieces.iter().any(strays) {
        draw_true_scale(c, whole, &pieces, &x, target);
    }
    draw_axis(c, whole);
    members::draw(c, target, whole);
    let hidden = pieces.iter().filter(|p| p.row.is_none()).count();
    if hidden > 0 {
        let text =
            format!("{} overlap too many others to be drawn", words::count(hidden, "provider"));
        c.text(MARGIN, c.y + 10, "tl-dim", "start", INNER, &text);
        c.y += 18;
    }
    c.y += 12;
}

fn class_of(p: &Provider) -> &'static str {
    match words::shown(p) {
        Some(Verdict::Aligned) => "tl-aligned",
        Some(Verdict::Unknown) => "tl-unknown",
        Some(Verdict::Misaligned) => "tl-misaligned",
        None if p.parent.is_none() => "tl-disk",
        None => "tl-carrier",
    }
}

fn draw_piece(c: &mut Canvas, target: &Target, p: &Provider, x: u64, w: u64, y: u64) {
    let (name, content) = (words::name(&p.provider), words::and_content(target, p));
    let sector = words::lba(p).map_or(String::new(), |lba| format!(" (LBA {lba})"));
    let verdict = words::shown(p).map_or("only carries what stands on it", words::verdict);
    let label = p.label.as_ref().map_or(String::new(), |l| format!(", \"{}\"", escape::plain(l)));
    let at = words::start_cell(p);
    let title = format!(
        "{name}:{content}{label}; byte {at}{sector}, {}; {verdict}",
        words::bytes(p.length)
    );
    c.rect(x, y, w, ROW - 4, class_of(p), &title);
    let mark =
        words::shown(p).map_or(String::new(), |v| format!("{} ", words::mark(v, Style::default())));
    let long = format!("{mark}{name}{content}{label}, {}", size::human(p.length));
    let medium = format!("{mark}{name}{content}, {}", size::human(p.length));
    let room = w.saturating_sub(12);
    if let Some(line) = [long, medium].into_iter().find(|line| pixels(line, "") <= room) {
        c.text(x + 7, y + 24, "tl-ink", "start", room, &line);
    } else {
        // A narrow piece has two lines: its name and its content.
        c.text(x + 5, y + 16, "tl-b", "start", w.saturating_sub(6), &format!("{mark}{name}"));
        c.text(x + 5, y + 32, "tl-dim", "start", w.saturating_sub(6), content.trim_start());
    }
}

/// Draws disks without providers, members of a set or empty, side by side.
fn draw_bare(c: &mut Canvas, target: &Target, disks: &[usize]) {
    let columns = u64::try_from(disks.len()).unwrap_or(1).max(1);
    let width = (INNER + 10) / columns;
    for (nth, &disk) in (0u64..).zip(disks) {
        let (p, x) = (&target.providers[disk], MARGIN + nth * width);
        draw_piece(c, target, p, x, width - 10, c.y);
        c.text(x, c.y + ROW + 12, "tl-dim", "start", width - 10, &grains(p));
    }
    c.y += ROW + 32;
}

/// Horizontal position of a byte, strictly to scale.
fn to_scale(whole: &Provider, byte: u64) -> u64 {
    MARGIN
        + u64::try_from(u128::from(byte) * u128::from(INNER) / u128::from(whole.length.max(1)))
            .unwrap_or(0)
}

/// Draws the same disk strictly to scale, with a fan from each widened piece to its true place.
fn draw_true_scale(
    c: &mut Canvas,
    whole: &Provider,
    pieces: &[Piece],
    x: &dyn Fn(u64) -> u64,
    target: &Target,
) {
    let real = |byte: u64| to_scale(whole, byte);
    let (top, strip) = (c.y, c.y + 24);
    let leaves: Vec<&Piece> = pieces
        .iter()
        .filter(|p| p.leaf && p.row.is_some() && target.providers[p.provider].parent.is_some())
        .collect();
    for p in &leaves {
        c.fan(
            (x(p.start), x(p.end)),
            top,
            (real(p.start), real(p.end).max(real(p.start) + 1)),
            strip,
        );
    }
    c.text(
        WIDTH - MARGIN,
        strip - 6,
        "tl-num",
        "end",
        INNER,
        "above, small things are drawn wider; this is to scale:",
    );
    c.rect(MARGIN, strip, INNER, 12, "tl-disk", "the same to scale");
    for p in &leaves {
        let (from, to) = (real(p.start), real(p.end).max(real(p.start) + 2));
        let on = &target.providers[p.provider];
        c.rect(
            from,
            strip,
            to - from,
            12,
            class_of(on),
            &format!("{}: {}", words::name(&on.provider), words::bytes(on.length)),
        );
    }
    c.y = strip + 14;
}

/// Draws addresses under a disk or set, and its grains.
fn draw_axis(c: &mut Canvas, whole: &Provider) {
    for (nth, anchor) in (0u64..).zip(["start", "middle", "middle", "middle", "end"]) {
        let byte = u64::try_from(u128::from(whole.length) * u128::from(nth) / 4).unwrap_or(0);
        let x = MARGIN + INNER * nth / 4;
        c.line(x, c.y, c.y + 5, "tl-tick");
        c.text(
            x,
            c.y + 18,
            "tl-num",
            anchor,
            120,
            &if byte == 0 { "0".into() } else { size::human(byte) },
        );
    }
    let over = if whole.members.is_empty() {
        String::new()
    } else {
        format!(" over {}", escape::plain(&whole.members.join(", ")))
    };
    c.text(
        MARGIN,
        c.y + 38,
        "tl-dim",
        "start",
        INNER,
        &format!("{}{over}: {}", words::name(&whole.provider), grains(whole)),
    );
    c.y += 46;
}

/// The grains of a disk or set, with their sources, in words.
fn grains(p: &Provider) -> String {
    let grain = |g: &Grain| {
        let phase = if g.phase > 0 { format!(" from byte {}", g.phase) } else { String::new() };
        // The source "assumed" implies the trust.
        let trust = if g.source == Source::Assumed && g.trust == Trust::Assumed {
            String::new()
        } else {
            format!(", {}", g.trust)
        };
        format!("{} {}{phase} ({}{trust})", g.why, size::human(g.size), g.source)
    };
    let all: Vec<String> = p.grains.iter().map(grain).collect();
    if all.is_empty() { "no grains known".into() } else { format!("grains: {}", all.join(" · ")) }
}

/// Draws a legend of the colours and marks in the drawing.
fn draw_legend(c: &mut Canvas, target: &Target) {
    let bears = |v| target.providers.iter().any(|p| words::shown(p) == Some(v));
    let marked = [
        (
            "tl-misaligned",
            Verdict::Misaligned,
            "off a boundary that counts, or writing less than a unit",
        ),
        ("tl-unknown", Verdict::Unknown, "not everything could be known"),
        ("tl-aligned", Verdict::Aligned, "on the boundaries that count"),
    ];
    let shown = marked.into_iter().filter(|(_, v, _)| bears(*v));
    let entry = |(class, v, says): (&'static str, Verdict, &str)| {
        (class, format!("{} {}: {says}", words::mark(v, Style::default()), words::verdict(v)))
    };
    let carries = target.providers.iter().any(|p| words::shown(p).is_none() && p.parent.is_some());
    let mut x = MARGIN;
    // The reader's font may be wider than the estimate.
    let wide = |text: &str| 20 + pixels(text, "tl-dim") * 6 / 5;
    for (class, text) in shown
        .map(entry)
        .chain(carries.then(|| ("tl-carrier", "only carries what stands on it".to_owned())))
    {
        if x > MARGIN && x + wide(&text) > WIDTH - MARGIN {
            (x, c.y) = (MARGIN, c.y + 20);
        }
        c.rect(x, c.y, 14, 14, class, &text);
        c.text(x + 20, c.y + 12, "tl-dim", "start", INNER, &text);
        x += wide(&text) + 14;
    }
    c.y += 34;
}

/// Draws the starts that miss; else one that hits; then those on boundaries that the user asked
/// for.
fn draw_zooms(c: &mut Canvas, target: &Target) {
    let misses = miss::misses(target);
    let set = |p: &Provider| {
        target.providers.iter().find(|set| !set.members.is_empty() && set.provider == p.root)
    };
    let hit: Vec<miss::Miss<'_>> = miss::hit(target).into_iter().collect();
    let requested = miss::requested(target, if misses.is_empty() { &hit } else { &misses });
    for miss in misses.iter().take(ZOOMS).chain(&hit).chain(requested.iter().take(ZOOMS)) {
        zoom::draw(c, miss, set(miss.provider));
    }
    let more: usize = misses.iter().skip(ZOOMS).map(|m| m.all.len()).sum();
    if more > 0 {
        c.text(MARGIN, c.y, "tl-dim", "start", INNER, &format!("{more} more begin off a boundary"));
        c.y += 16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk_options::DiskOptions;
    use crate::render::samples;
    use crate::survey::survey;
    use crate::target::open::taste_stores;
    use crate::target::{self, DiskOverrides};
    use trueline_geom::base::store::{Sparse, Store};

    #[test]
    fn hostile_labels_stay_text() {
        let text = samples::text(|out| write(&samples::openbsd(), out));
        assert!(text.contains("root &lt;script&gt;&amp;") && !text.contains("<script"), "{text}");
        assert!(!text.contains('\u{1b}'));
    }

    /// `docs/stack.svg`, at the top of the README: the drawing that `show` makes of two disks of a
    /// seed document.
    #[test]
    fn the_picture_of_the_readme() {
        let command = "trueline show --physical 512 --svg docs/stack.svg ada0,ada1";
        let overrides =
            DiskOverrides::new(&DiskOptions { physical: Some((512, 0)), ..DiskOptions::default() })
                .unwrap();
        let dumps =
            Sparse::from_hexdumps(include_str!("../../../disks/seed-003-default.hex")).unwrap();
        let disks = ["ada0", "ada1"].into_iter().zip(dumps);
        let disks = disks
            .map(|(name, (_, disk))| (name.to_owned(), Box::new(disk) as Box<dyn Store>))
            .collect();
        let target =
            survey(&target::Target::title("ada0,ada1"), &taste_stores(disks, &overrides), None)
                .unwrap();
        let text = samples::text(|out| write(&target, out));
        // A comment may not hold the hyphens of an option.
        let made =
            format!("?>\n<?made-by {command} (the disks are tests/disks/seed-003-default.hex)?>\n");
        samples::golden("../../../../docs/stack.svg", &text.replacen("?>\n", &made, 1));
    }

    #[test]
    fn a_crowd_stays_on_the_sheet() {
        let text = samples::text(|out| write(&samples::crowded(2000), out));
        assert!(text.len() < 1 << 20 && text.contains("overlap too many others"), "{}", text.len());
    }

    #[test]
    fn a_set_shows_where_its_chunks_lie() {
        let text = samples::text(|out| write(&samples::stripe(), out));
        assert!(
            text.contains("deals its bytes out in chunks of 16 KiB") && text.contains("on ada1"),
            "{text}"
        );
        let mut many = samples::stripe();
        let set = many.providers.iter_mut().find(|p| !p.members.is_empty()).unwrap();
        set.members = (0..100).map(|i| format!("ada{i}")).collect();
        assert!(samples::text(|out| write(&many, out)).contains("and 92 more"));
    }

    #[test]
    fn what_is_aligned_is_shown_on_its_boundary() {
        let text = samples::text(|out| write(&samples::gpt(), out));
        assert!(text.contains("p1 begins on a boundary of 4 KiB"), "{text}");
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
        let report = samples::report(vec![target]);
        assert!(
            !samples::text(|out| crate::render::draw::picture::write(
                &report,
                out,
                Style::default()
            ))
            .is_empty()
        );
    }
}
