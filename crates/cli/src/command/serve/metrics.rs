//! The counters of `serve` in the Prometheus text format.

use crate::command::serve::summary::{Export, Served};
use crate::traffic::{Deeds, Layer, Requests, Verdicts, by_name};
use crate::words::metric::{Labels, Metric};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// Writes every metric of the server.
pub(crate) fn write(served: &Served, out: &mut dyn io::Write) -> io::Result<()> {
    let seconds = Duration::from_nanos(served.duration_ns).as_secs_f64().to_string();
    let duration = vec![(vec![("target", served.target.as_str())], seconds)];
    gauge("trueline_serve_duration_seconds", "Time since serving began.", duration).write(out)?;
    let served = &Served { layers: by_name(&served.layers), ..served.clone() };
    requests(served).write(out)?;
    client_requests(served, out)?;
    let layers: [OfLayer; 2] = [
        ("trueline_serve_bytes_total", "Bytes of requests, by what they do.", |l| l.bytes),
        (
            "trueline_serve_blamed_total",
            "Misaligned pieces that would be aligned did the blamed provider begin on the grain.",
            |l| l.blamed,
        ),
    ];
    for (name, help, of) in layers {
        let one =
            |l| ops(of(l)).map(move |(op, n)| (of_layer(served, l, &[("op", op)]), n.to_string()));
        counter(name, help, served.layers.iter().flat_map(one).collect()).write(out)?;
    }
    for (name, help, of) in OPERATIONS {
        let one = |l: &'_ Layer| of(l).map(|(op, n)| (op, n.to_string()));
        let series = served
            .layers
            .iter()
            .flat_map(|l| one(l).map(|(op, n)| (of_layer(served, l, &[("op", op)]), n)));
        counter(name, help, series.collect()).write(out)?;
    }
    let unit = |l| (of_layer(served, l, &[]), l.unit.to_string());
    let help = "The boundary by which pieces are judged; 0 if unknown.";
    gauge("trueline_serve_unit_bytes", help, served.layers.iter().map(unit).collect())
        .write(out)?;
    by_size(served, out)?;
    exports(served, out)
}

type OfLayer = (&'static str, &'static str, fn(&Layer) -> Deeds);
type OfOperations = (&'static str, &'static str, fn(&Layer) -> [(&'static str, u64); 2]);

const OPERATIONS: [OfOperations; 2] = [
    (
        "trueline_serve_device_operations_total",
        "Reads and writes of whole units that requests come to; parts of units are read first.",
        |l| [("read", l.device_operations.reads), ("write", l.device_operations.writes)],
    ),
    (
        "trueline_serve_device_operations_needed_total",
        "The same had every request been on the grain.",
        |l| {
            [
                ("read", l.device_operations.reads_needed),
                ("write", l.device_operations.writes_needed),
            ]
        },
    ),
];

fn counter<'a>(
    name: &'static str,
    help: &'static str,
    series: Vec<(Labels<'a>, String)>,
) -> Metric<'a> {
    Metric { name, help, kind: "counter", series }
}

fn gauge<'a>(
    name: &'static str,
    help: &'static str,
    series: Vec<(Labels<'a>, String)>,
) -> Metric<'a> {
    Metric { name, help, kind: "gauge", series }
}

fn of_layer<'a>(
    served: &'a Served,
    layer: &'a Layer,
    more: &[(&'static str, &'a str)],
) -> Labels<'a> {
    let mut labels: Labels<'a> = vec![
        ("target", &served.target),
        ("export", layer.export.as_deref().unwrap_or_default()),
        ("provider", &layer.provider),
        ("disk", &layer.disk),
    ];
    labels.extend(more);
    labels
}

fn of_export<'a>(served: &'a Served, export: &'a Export) -> Labels<'a> {
    vec![("target", &served.target), ("export", &export.provider)]
}

fn ops(deeds: Deeds) -> [(&'static str, u64); 4] {
    [("read", deeds.reads), ("write", deeds.writes), ("trim", deeds.trims), ("zero", deeds.zeroes)]
}

fn requests(served: &Served) -> Metric<'_> {
    let mut series = Vec::new();
    for layer in &served.layers {
        for (op, verdicts) in [
            ("read", layer.reads),
            ("write", layer.writes),
            ("trim", layer.trims),
            ("zero", layer.zeroes),
        ] {
            series.extend(by_verdict(verdicts).map(|(verdict, n)| {
                (of_layer(served, layer, &[("op", op), ("verdict", verdict)]), n.to_string())
            }));
        }
    }
    counter(
        "trueline_serve_requests_total",
        "Pieces of requests on a disk, by how they lie on its unit.",
        series,
    )
}

/// Requests as clients made them: sums over the disks of a layer.
fn client_requests(served: &Served, out: &mut dyn io::Write) -> io::Result<()> {
    let mut sums: BTreeMap<(&str, &str), Requests> = BTreeMap::new();
    for layer in &served.layers {
        let sum =
            sums.entry((layer.export.as_deref().unwrap_or_default(), &layer.provider)).or_default();
        *sum = sum.merge(layer.requests);
    }
    let mut series = Vec::new();
    for ((export, provider), requests) in sums {
        let Requests { reads, writes, trims, zeroes } = requests;
        for (op, verdicts) in
            [("read", reads), ("write", writes), ("trim", trims), ("zero", zeroes)]
        {
            let target = served.target.as_str();
            let labels = |verdict| {
                vec![
                    ("target", target),
                    ("export", export),
                    ("provider", provider),
                    ("op", op),
                    ("verdict", verdict),
                ]
            };
            series
                .extend(by_verdict(verdicts).map(|(verdict, n)| (labels(verdict), n.to_string())));
        }
    }
    counter(
        "trueline_serve_client_requests_total",
        "Requests, by the worst verdict of their pieces.",
        series,
    )
    .write(out)
}

/// Numbers by verdict; none if nothing was judged.
fn by_verdict(verdicts: Verdicts) -> impl Iterator<Item = (&'static str, u64)> {
    let Verdicts { aligned, misaligned, partial, unknown } = verdicts;
    let all = [
        ("aligned", aligned),
        ("misaligned", misaligned),
        ("partial", partial),
        ("unknown", unknown),
    ];
    all.into_iter().filter(move |_| verdicts.sum() > 0)
}

fn by_size(served: &Served, out: &mut dyn io::Write) -> io::Result<()> {
    // Label values borrow the numbers as text until the metric is written.
    let buckets: Vec<_> = served
        .layers
        .iter()
        .flat_map(|l| {
            l.histogram.iter().map(move |b| (l, b, [b.size, b.alignment].map(|n| n.to_string())))
        })
        .collect();
    let series = buckets.iter().map(|(l, b, [size, alignment])| {
        let more = [("op", b.op), ("verdict", b.verdict), ("size", size), ("alignment", alignment)];
        (of_layer(served, l, &more), b.count.to_string())
    });
    let help = "Reads and writes by size and by the largest power of two that divides their first \
        byte on the disk, both from this up to the next.";
    counter("trueline_serve_requests_by_size_total", help, series.collect()).write(out)
}

fn exports(served: &Served, out: &mut dyn io::Write) -> io::Result<()> {
    let mut failed = Vec::new();
    for e in &served.exports {
        for (op, n) in ops(e.errors).into_iter().chain([("flush", e.flush_errors)]) {
            failed.push(([of_export(served, e), vec![("op", op)]].concat(), n.to_string()));
        }
    }
    counter("trueline_serve_errors_total", "Requests that failed.", failed).write(out)?;
    let flushes = served.exports.iter().map(|e| (of_export(served, e), e.flushes.to_string()));
    counter("trueline_serve_flushes_total", "Flushes.", flushes.collect()).write(out)?;
    let most = served.exports.iter().map(|e| (of_export(served, e), e.most_waiting.to_string()));
    gauge(
        "trueline_serve_waiting_max",
        "Requests that waited for a device at one time, at most.",
        most.collect(),
    )
    .write(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;
    use std::collections::BTreeSet;

    #[test]
    fn series_are_unique_escaped_and_typed() {
        let (mut served, _) = samples::served();
        served.layers[1].provider = "a\"b\\c\nd".into();
        // A hostile disk has two providers of one name, and a new provider may have the name of an
        // old one.
        let twin = served.layers[1].clone();
        served.layers.push(twin);
        let text = samples::text(|out| write(&served, out));
        let series: Vec<&str> = text
            .lines()
            .filter(|l| !l.starts_with('#'))
            .map(|l| l.rsplit_once(' ').unwrap().0)
            .collect();
        assert_eq!(series.len(), series.iter().collect::<BTreeSet<_>>().len());
        let named = r#"{target="openbsd.img",export="",provider="a\"b\\c\nd",disk="",op="write",verdict="misaligned"} 196"#;
        assert!(text.contains(&format!("\ntrueline_serve_requests_total{named}\n")), "{text}");
        let sized = r#"{target="openbsd.img",export="",provider="a\"b\\c\nd",disk="",op="write",verdict="partial",size="512",alignment="512"} 4"#;
        assert!(
            text.contains(&format!("\ntrueline_serve_requests_by_size_total{sized}\n")),
            "{text}"
        );
        assert!(
            text.contains("\n# TYPE trueline_serve_requests_total counter\n")
                && text.contains("# TYPE trueline_serve_waiting_max gauge\n")
        );
        // An operation that no client asked for has no series.
        assert!(!text.contains("op=\"trim\",verdict"), "{text}");
        assert!(
            text.contains("\ntrueline_serve_duration_seconds{target=\"openbsd.img\"} 2\n"),
            "{text}"
        );
    }
}
