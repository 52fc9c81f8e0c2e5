//! Requests that layers made of those that came to them: a table with a row for the client and one
//! for every layer.

use crate::style::Style;
use crate::words::columns::{self, Cell, Spare};
use crate::words::{escape, size};
use std::io::{self, Write};
use trueline_lab::layer::counts::RequestCounts;
use trueline_lab::result::LayerResult;

/// Writes the table; each name has its layers, the outermost first.
pub(crate) fn write(
    named: &[(&str, &[LayerResult])],
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let heading =
        ["requests", "reads", "caused", "writes", "flushes", "read", "written", "write x"];
    let mut rows = vec![heading.map(Cell::right).to_vec()];
    rows[0][0] = Cell::left(heading[0]);
    for (name, layers) in named {
        let Some(first) = layers.first() else { continue };
        rows.push(row(&escape::plain(name), first.counts.asked, 0, None));
        for LayerResult { layer, counts, write_amplification } in *layers {
            let (made, caused) = (counts.made, counts.caused_reads);
            rows.push(row(&format!("  {layer}"), made, caused, *write_amplification));
        }
    }
    columns::write(&rows, &Spare(&[5, 4], "--json"), style.width, out)
}

/// The requests beneath a layer, the reads that writes and flushes caused, and its bytes written
/// for one.
fn row(name: &str, made: RequestCounts, caused: u64, amplification: Option<f64>) -> Vec<Cell> {
    let number = |n: u64| if n > 0 { n.to_string() } else { String::new() };
    let size = |n: u64| if n > 0 { size::human(n) } else { String::new() };
    let mut row = vec![Cell::left(name)];
    let cells = [
        number(made.reads),
        number(caused),
        number(made.writes),
        number(made.flushes),
        size(made.bytes_read),
        size(made.bytes_written),
        amplification.map_or_else(String::new, |x| format!("{x:.2}")),
    ];
    row.extend(cells.map(Cell::right));
    row
}
