//! A start that misses its grain, magnified: some units, and the layer's first blocks across them.

use super::canvas::{Canvas, INNER, MARGIN, pixels};
use super::miss::{Miss, View};
use crate::report::{Provider, Verdict};
use crate::style::Style;
use crate::words::{self, escape, size};
use trueline_geom::base::topology::round_down;

/// Pixels for the names of rows, and for the rows.
const NAMES: u64 = 190;
const ROWS: u64 = INNER - NAMES;
/// Height of a row in pixels.
const HIGH: u64 = 36;
/// Height of the row of operations in pixels, and most units in it.
const LOW: u64 = 24;
const UNITS: usize = 12;
/// Most blocks that are drawn one by one; more become one band, with those that cross a boundary
/// apart.
const BLOCKS: u64 = 24;

/// Draws a miss, or a hit, across the sheet; `set` is the set it stands on, if any.
pub(super) fn draw(c: &mut Canvas, miss: &Miss<'_>, set: Option<&Provider>) {
    let view = View::new(miss);
    let class = if miss.remainder > 0 { "tl-bad" } else { "tl-good" };
    let mark = words::mark(
        if miss.remainder > 0 { Verdict::Misaligned } else { Verdict::Aligned },
        Style::default(),
    );
    let costs = miss
        .finding
        .and_then(words::times)
        .map_or(String::new(), |times| format!("{times} the device operations"));
    let right = if costs.is_empty() { 0 } else { pixels(&costs, "tl-b") + 16 };
    c.text(
        MARGIN,
        c.y + 16,
        &format!("tl-b {class}"),
        "start",
        INNER - right,
        &format!("{mark} {}", miss.title()),
    );
    c.text(MARGIN + INNER, c.y + 16, &format!("tl-b {class}"), "end", right, &costs);
    let blocks = c.y + 46;
    draw_blocks(c, &view, miss, blocks);
    let operations = draw_operations(c, &view, miss, blocks + HIGH + 10);
    let units = blocks + HIGH + 12 + if operations { LOW + 10 } else { 0 };
    draw_units(c, &view, miss, units, set);
    draw_start(c, &view, miss, blocks, units + HIGH);
    c.y = units + HIGH + 40;
    if let Some(f) = miss.finding {
        let cost = words::cost(f).map(|cost| ("tl-dim", format!("costs: {cost}")));
        let fixes = f.fix.iter().enumerate().map(|(nth, fix)| {
            ("tl-good", format!("{}{}", words::fix_head(nth), escape::plain(fix)))
        });
        for (class, line) in cost.into_iter().chain(fixes) {
            c.text(MARGIN + NAMES, c.y + 14, class, "start", ROWS, &line);
            c.y += 19;
        }
    }
    c.y += 22;
}

/// Horizontal position of a byte of the view, in pixels.
fn at(view: &View, byte: u64) -> u64 {
    let pixels =
        u128::from(byte.min(view.shown)) * u128::from(ROWS) / u128::from(view.shown.max(1));
    MARGIN + NAMES + u64::try_from(pixels).unwrap_or(0)
}

/// Draws the layer's blocks; those that cross a boundary are red, with a cut at the boundary.
fn draw_blocks(c: &mut Canvas, view: &View, miss: &Miss<'_>, y: u64) {
    c.text(MARGIN, y + 23, "tl-dim", "start", NAMES - 12, &miss.blocks());
    if view.count() > BLOCKS {
        let (from, to) = (at(view, view.start), at(view, view.shown));
        c.rect(
            from,
            y,
            to - from,
            HIGH,
            "tl-block",
            &format!("blocks of {}", words::bytes(miss.block)),
        );
    }
    for block in view.blocks(BLOCKS) {
        let (from, to) = (at(view, block.0), at(view, block.1));
        let (touched, needed) = view.touches(block);
        let crosses = touched > needed;
        // An arrow marks a block that leaves the view.
        let on = if block.1 > view.shown { " →" } else { "" };
        let says = if crosses {
            format!("touches {touched} units, needs {needed}{on}")
        } else {
            format!("touches {touched}{on}")
        };
        let class = if crosses { "tl-block tl-cross" } else { "tl-block" };
        let width = (to - from).max(3);
        c.rect(
            from,
            y,
            width,
            HIGH,
            class,
            &format!("a block of {}: {says}", words::bytes(miss.block)),
        );
        for boundary in view.boundaries().filter(|b| crosses && (block.0 + 1..block.1).contains(b))
        {
            // Notches keep the words between them legible.
            c.line(at(view, boundary), y, y + 9, "tl-cut");
            c.line(at(view, boundary), y + HIGH - 9, y + HIGH, "tl-cut");
        }
        let short = format!("{touched} for {needed}{on}");
        if let Some(text) = [says, short].iter().find(|text| pixels(text, "") + 12 <= width) {
            c.text(from + width / 2, y + 23, "tl-ink", "middle", width, text);
        }
    }
}

/// Draws the device operations for a write of the first block across a boundary: every unit written
/// in part is read first. True if they are drawn: not without such a unit, nor if too many units
/// are touched to tell apart.
fn draw_operations(c: &mut Canvas, view: &View, miss: &Miss<'_>, y: u64) -> bool {
    let crosses = |block: &(u64, u64)| {
        view.touches(*block).0 > view.touches(*block).1 && block.1 <= view.shown
    };
    let Some(block) = view
        .blocks(BLOCKS)
        .into_iter()
        .find(crosses)
        .filter(|_| miss.rmw && miss.block >= miss.unit)
    else {
        return false;
    };
    let parts = view.parts(block);
    let reads = parts.iter().filter(|(_, part)| *part).count();
    if parts.len() > UNITS {
        return false;
    }
    c.text(MARGIN, y + 16, "tl-dim", "start", NAMES - 12, "writing one takes");
    let mut right = MARGIN + NAMES;
    for (from, part) in &parts {
        let left = at(view, *from);
        right = at(view, from + view.unit);
        let (class, says) =
            if *part { ("tl-block tl-cross", "read, then write") } else { ("tl-block", "write") };
        c.rect(
            left + 2,
            y,
            (right - left).saturating_sub(4),
            LOW,
            class,
            &format!("a unit: {says}"),
        );
        let short = if *part { "r + w" } else { "w" };
        let text = [says, short]
            .into_iter()
            .find(|text| pixels(text, "tl-num") + 10 <= right - left)
            .unwrap_or("");
        c.text((left + right) / 2, y + 16, "tl-num", "middle", right - left, text);
    }
    let writes = parts.len();
    let sum = format!(
        "= {}: {}, {}",
        reads + writes,
        words::count(reads, "read"),
        words::count(writes, "write")
    );
    c.text(
        right + 8,
        y + 16,
        "tl-b tl-bad",
        "start",
        (MARGIN + INNER).saturating_sub(right + 8),
        &sum,
    );
    true
}

/// Draws the units as a ruler with the addresses of their boundaries; starts that a fix names are
/// green.
fn draw_units(c: &mut Canvas, view: &View, miss: &Miss<'_>, y: u64, set: Option<&Provider>) {
    let (first, second) = if miss.assumed { (16, "(assumed)") } else { (23, "") };
    c.text(
        MARGIN,
        y + first,
        "tl-dim",
        "start",
        NAMES - 12,
        &format!("{} of {}", miss.what, size::human(view.unit)),
    );
    c.text(MARGIN, y + 31, "tl-num", "start", NAMES - 12, second);
    c.text(
        MARGIN,
        y + HIGH + 17,
        "tl-num",
        "start",
        NAMES - 50,
        &set.map_or("byte".into(), |set| format!("byte of {}", words::name(&set.provider))),
    );
    c.text(MARGIN, y + HIGH + 33, "tl-num", "start", NAMES - 12, "(LBA)");
    let chunked = set.filter(|set| set.class == "stripe" && miss.what == "chunk");
    let widest =
        pixels(&(miss.boundary().unsigned_abs() + u128::from(view.shown)).to_string(), "tl-b") + 16;
    let every = widest.div_ceil((ROWS / (view.shown / view.unit).max(1)).max(1)).max(1);
    for (nth, from) in (0u64..).zip(view.boundaries()) {
        let (left, right) = (at(view, from), at(view, from + view.unit));
        let Ok(address) = u64::try_from(miss.boundary() + i128::from(from) - i128::from(view.unit))
        else {
            continue;
        };
        let (class, inside) = match chunked {
            Some(set) => {
                let member = member(set, address / view.unit);
                (
                    chunk_class(member),
                    set.members
                        .get(member)
                        .map_or(String::new(), |name| format!("on {}", words::name(name))),
                )
            }
            None => (
                if round_down(nth, 2) == nth { "tl-unit" } else { "tl-unit tl-odd" },
                size::human(view.unit),
            ),
        };
        c.rect(
            left,
            y,
            right - left,
            HIGH,
            class,
            &format!("{} {} at byte {address}", size::human(view.unit), miss.what),
        );
        c.text(
            (left + right) / 2,
            y + 23,
            "tl-dim",
            "middle",
            (right - left).saturating_sub(6),
            &inside,
        );
        // The boundary that counts always has its address, and so has one that a fix names.
        let mends = miss.mends(address.into());
        if (mends || round_down(nth + every - 1, every) == nth + every - 1)
            && left + widest <= MARGIN + INNER + 40
        {
            let class = if mends { "tl-b tl-good" } else { "tl-num" };
            c.line(left, y, y + HIGH + 5, if mends { "tl-hit" } else { "tl-tick" });
            c.text(left, y + HIGH + 18, class, "middle", widest, &address.to_string());
            let lba = words::sector(address, miss.provider)
                .map_or(String::new(), |lba| format!("({lba})"));
            c.text(left, y + HIGH + 34, class, "middle", widest, &lba);
        }
    }
}

/// Draws the start, and the miss from the boundary to it.
fn draw_start(c: &mut Canvas, view: &View, miss: &Miss<'_>, top: u64, bottom: u64) {
    let (boundary, start) = (at(view, view.unit), at(view, view.start));
    let lba = words::sector(miss.offset, miss.provider)
        .map_or(String::new(), |lba| format!(" (LBA {lba})"));
    let class = if miss.remainder > 0 { "tl-bad tl-b" } else { "tl-good tl-b" };
    let name = words::name(&miss.provider.provider);
    c.text(start, top - 9, class, "start", ROWS, &format!("{name}: byte {}{lba}", miss.offset));
    c.line(start, top - 6, bottom, if miss.remainder > 0 { "tl-start" } else { "tl-hit" });
    if miss.remainder > 0 {
        let says = words::bytes(miss.remainder);
        c.rect(
            boundary,
            top + HIGH + 3,
            (start - boundary).max(2),
            6,
            "tl-miss",
            &format!("{says} past the boundary"),
        );
        // The text stands beside the mark, where nothing else is.
        c.text(start - 8, top + HIGH - 8, class, "end", start - MARGIN - NAMES, &says);
    }
}

/// Index of the member that holds chunk number `chunk` of a striped set.
pub(super) fn member(set: &Provider, chunk: u64) -> usize {
    let members = u64::try_from(set.members.len()).unwrap_or(u64::MAX);
    usize::try_from(chunk - round_down(chunk, members)).unwrap_or(0)
}

/// Style class of a member's chunks.
pub(super) fn chunk_class(member: usize) -> &'static str {
    ["tl-chunk0", "tl-chunk1", "tl-chunk2", "tl-chunk3"].get(member).copied().unwrap_or("tl-chunk3")
}
