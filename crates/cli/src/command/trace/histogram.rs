//! The histogram of a trace as a table: a line for each layer, kind, verdict and size, a column for
//! each alignment.

use crate::render::traffic::count;
use crate::style::Style;
use crate::traffic::{Bucket, Layer};
use crate::words::columns::{self, Cell, Spare};
use crate::words::{self, size};
use anstyle::{AnsiColor, Style as Colour};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use trueline_geom::audit::io::{CLASSES, class_of, class_start};

/// Lines of what misses, at most, where not all is shown: those of most requests.
const LISTED: usize = 12;

/// Order of kinds and of verdicts in the table.
const KINDS: [&str; 2] = ["write", "read"];
pub(super) const VERDICTS: [&str; 4] = ["misaligned", "partial", "unknown", "aligned"];

/// Pieces of one layer, kind, verdict and size, by the class of their alignment.
pub(super) struct Line {
    /// Index of the layer among those of the trace, by its first disk.
    pub(super) layer: usize,
    pub(super) kind: usize,
    pub(super) verdict: usize,
    pub(super) size: u64,
    pub(super) counts: [u64; CLASSES],
}

impl Line {
    fn sum(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// True of what costs more than its bytes: reads of less than a unit do not.
    fn misses(&self) -> bool {
        VERDICTS[self.verdict] == "misaligned"
            || VERDICTS[self.verdict] == "partial" && KINDS[self.kind] == "write"
    }
}

/// Lines of all layers, in the order of the table.
pub(super) fn lines(layers: &[Layer]) -> Vec<Line> {
    let mut lines: BTreeMap<_, [u64; CLASSES]> = BTreeMap::new();
    for layer in layers {
        // A layer on several disks is one.
        let nth = layers.iter().position(|first| first.id == layer.id).unwrap_or(0);
        for bucket in &layer.histogram {
            let Bucket { op, verdict, size, alignment, count } = *bucket;
            let at = |names: &[&str], name: &str| names.iter().position(|one| *one == name);
            let Some((kind, verdict)) = at(&KINDS, op).zip(at(&VERDICTS, verdict)) else {
                continue;
            };
            let counts = lines.entry((nth, kind, verdict, size)).or_default();
            counts[class_of(alignment)] += count;
        }
    }
    let line = |((layer, kind, verdict, size), counts)| Line { layer, kind, verdict, size, counts };
    lines.into_iter().map(line).collect()
}

/// Writes what misses, or with `all` every size and alignment; nothing where there is none.
pub(super) fn write(
    layers: &[Layer],
    all: bool,
    style: Style,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let mut shown = lines(layers);
    shown.retain(|line| all || line.misses());
    let mut rest = (0, 0);
    if !all && shown.len() > LISTED {
        let mut sums: Vec<(u64, usize)> =
            shown.iter().enumerate().map(|(nth, line)| (line.sum(), nth)).collect();
        sums.sort_by_key(|&(sum, nth)| (Reverse(sum), nth));
        let hidden = sums.split_off(LISTED);
        rest = (hidden.len(), hidden.iter().map(|(sum, _)| sum).sum());
        let mut nth = 0;
        shown.retain(|_| {
            nth += 1;
            !hidden.iter().any(|&(_, hidden)| hidden + 1 == nth)
        });
    }
    if shown.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let units = shown.iter().map(|line| layers[line.layer].unit);
    let top = units.max().filter(|&unit| unit > 0).map_or(CLASSES - 1, class_of);
    let several = layers.iter().any(|layer| layer.id != layers[0].id);
    let mut rows = vec![heading(top)];
    rows.extend(shown.iter().map(|line| cells(line, several, layers, top)));
    columns::write(&rows, &Spare::NONE, style.width, out)?;
    if rest.0 > 0 {
        let (lines, requests) = (words::count(rest.0, "line"), count(rest.1, "request", "s"));
        let line = format!("and {requests} in {lines} more: --histogram");
        columns::line(&line, style.width, out)?;
    }
    Ok(())
}

/// The heading; alignments from class `top` on have one column.
fn heading(top: usize) -> Vec<Cell> {
    let names = ["LAYER", "REQUESTS", "SIZE"].into_iter().enumerate();
    let names = names.map(|(nth, name)| if nth < 2 { Cell::left(name) } else { Cell::right(name) });
    let at = |class: usize| match class_start(class) {
        0 => "AT <512".into(),
        start if class == top => format!("AT {}+", size::short(start)),
        start => format!("AT {}", size::short(start)),
    };
    names.chain((0..=top).map(|class| Cell::right(at(class)))).collect()
}

fn cells(line: &Line, several: bool, layers: &[Layer], top: usize) -> Vec<Cell> {
    let colour = match VERDICTS[line.verdict] {
        "misaligned" => AnsiColor::Red.on_default().bold(),
        "partial" => AnsiColor::Yellow.on_default(),
        _ => Colour::new(),
    };
    let layer = if several { words::name(&layers[line.layer].provider) } else { String::new() };
    let mut cells = vec![
        Cell::left(layer),
        Cell::left(format!("{}s, {}", KINDS[line.kind], VERDICTS[line.verdict])).colour(colour),
        Cell::right(size_of(line.size)),
    ];
    let some = |n: u64| Cell::right(if n == 0 { String::new() } else { n.to_string() });
    cells.extend(line.counts[..top].iter().map(|&n| some(n).colour(colour)));
    cells.push(some(line.counts[top..].iter().sum()).colour(colour));
    cells
}

/// A class of sizes in words, by its least one.
pub(super) fn size_of(least: u64) -> String {
    match least {
        0 => "<512".into(),
        least if least == class_start(CLASSES - 1) => format!("{}+", size::short(least)),
        least => size::short(least),
    }
}
