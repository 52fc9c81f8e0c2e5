//! `bench` for people: the medians of every variant, the ratio in words, and the time of simulated
//! drives by its causes.

use crate::render::{layers, spent};
use crate::style::Style;
use crate::words::columns::{self, Cell, Spare};
use crate::words::quantity::{three, time};
use crate::words::{self, escape};
use std::io::{self, Write};
use trueline_lab::result::bench::{
    BenchDocument, BenchRun, Correction, Variant, VariantComparison,
};
use trueline_lab::statistics::{Interval, Slope, median};

/// Writes the document as tables and sentences.
pub(crate) fn write(document: &BenchDocument, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let mut rows = vec![
        ["variant", "runs", "rate", "MB/s", "mean", "p50", "p99", "max", "host reads", "engine"]
            .map(Cell::right)
            .to_vec(),
    ];
    rows[0][0] = Cell::left("variant");
    rows.extend(document.variants.iter().map(row));
    columns::write(&rows, &Spare(&[1], "--json"), style.width, out)?;
    let lies: Vec<String> = document.variants.iter().filter_map(place).collect();
    if !lies.is_empty() {
        columns::wrap("", 0, &lies.join("; "), 2, style.width, out)?;
    }
    if !document.comparisons.is_empty() {
        writeln!(out)?;
    }
    for compared in &document.comparisons {
        columns::wrap("", 0, &in_words(compared), 2, style.width, out)?;
    }
    if let Some(correction) = document.correction.filter(|_| !document.comparisons.is_empty()) {
        columns::wrap("", 0, &corrected(correction), 2, style.width, out)?;
    }
    if let Some(Slope { slope, interval, .. }) = &document.slope {
        let Interval { low, high } = interval;
        columns::wrap(
            "",
            0,
            &format!("a layer adds {slope:.0} ns to a request ({low:.0} to {high:.0}, 95 %)"),
            2,
            style.width,
            out,
        )?;
    }
    for (variant, table) in
        document.variants.iter().filter_map(|variant| Some((variant, variant.table.as_ref()?)))
    {
        writeln!(out, "\n{}", escape::plain(&variant.name))?;
        // The machine's name in it is the variant's, so every line is escaped.
        table.lines().try_for_each(|line| writeln!(out, "{}", escape::plain(line)))?;
    }
    for warning in &document.warnings {
        columns::wrap("warning: ", 9, &escape::plain(warning), 2, style.width, out)?;
    }
    spent(document, style, out)?;
    through(document, style, out)
}

/// A row for one variant: medians of its runs.
fn row(variant: &Variant) -> Vec<Cell> {
    let of = |value: &dyn Fn(&BenchRun) -> f64| {
        middle(&variant.runs.iter().map(value).collect::<Vec<_>>())
    };
    let per_second =
        |amount: f64, run: &BenchRun| if run.seconds > 0.0 { amount / run.seconds } else { 0.0 };
    // Requests that nothing waits for have no known latency.
    let waited = |value: &dyn Fn(&BenchRun) -> f64| {
        of(value).filter(|_| variant.runs.iter().any(|run| run.latency_ns.max > 0)).map(time)
    };
    #[allow(clippy::cast_precision_loss, reason = "for people")]
    let cells = [
        of(&|run| per_second(run.ops as f64, run)).map(|rate| format!("{}/s", three(rate))),
        of(&|run| per_second(run.bytes as f64, run) / 1e6).map(three),
        waited(&|run| run.latency_ns.mean),
        waited(&|run| run.latency_ns.p50 as f64),
        waited(&|run| run.latency_ns.p99 as f64),
        waited(&|run| run.latency_ns.max as f64),
    ];
    let host_reads: Vec<u64> = variant.runs.iter().filter_map(|run| run.host_reads).collect();
    let mut row =
        vec![Cell::left(escape::plain(&variant.name)), Cell::right(variant.runs.len().to_string())];
    row.extend(cells.map(|cell| Cell::right(cell.unwrap_or_else(|| "-".into()))));
    row.push(Cell::right(if host_reads.is_empty() {
        String::new()
    } else {
        host_reads.iter().sum::<u64>().to_string()
    }));
    row.push(Cell::right(variant.engine.unwrap_or_default()));
    row
}

/// The distance of a variant's requests from the boundaries of its target; `None` if nothing is
/// known of them.
fn place(variant: &Variant) -> Option<String> {
    let lies = match (variant.aligned?, variant.missed) {
        (_, Some(missed)) => {
            let unit = words::unit(missed.why);
            let a = if unit.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
            format!("{} past {a} {unit} of {}", words::bytes(missed.remainder), missed.size)
        }
        (true, None) => "aligned".into(),
        (false, None) => return None,
    };
    Some(format!("{}: {lies}", escape::plain(&variant.name)))
}

/// The ratio, and the difference it can show.
fn in_words(compared: &VariantComparison) -> String {
    let VariantComparison { variant, against, comparison } = compared;
    format!("{} against {}: {comparison}", escape::plain(variant), escape::plain(against))
}

/// A confidence as text, to two decimals: `95 %`, `97.5 %`, `98.33 %`.
fn share(confidence: f64) -> String {
    let text = format!("{:.2}", confidence * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The correction for several comparisons.
fn corrected(correction: Correction) -> String {
    let Correction { comparisons, together, each, .. } = correction;
    format!(
        "the {} are of these {comparisons} comparisons together: each interval is of {} \
        (Bonferroni)",
        share(together),
        share(each)
    )
}

/// Writes the time of simulated drives by its causes.
fn spent(document: &BenchDocument, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<_> = document
        .variants
        .iter()
        .filter_map(|v| Some((v.name.as_str(), v.drives.as_ref()?)))
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    spent::write(&rows, style, out)
}

/// Writes what the layers of `--through` made of the requests.
fn through(document: &BenchDocument, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<_> =
        document.variants.iter().map(|v| (v.name.as_str(), v.layers.as_slice())).collect();
    if rows.iter().all(|(_, layers)| layers.is_empty()) {
        return Ok(());
    }
    writeln!(out)?;
    layers::write(&rows, style, out)
}

/// The median of the runs; `None` without runs.
fn middle(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| median(values))
}
