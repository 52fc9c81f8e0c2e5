//! Tests of the page of a trace: hostile texts, numbers that are drawn.

use super::*;
use crate::command::trace::causes::{Cause, CauseName};
use crate::command::trace::observation::Observation;
use crate::render::samples;
use crate::render::traffic::Miss;
use crate::target::open::open;
use crate::target::{DiskOverrides, Target};
use crate::traffic::{Bucket, Latency};
use trueline_lab::result::Spent;

/// A trace of one layer that misses, with everything that a page shows.
fn traced() -> Traced {
    let overrides = DiskOverrides::new(&Default::default()).ok().unwrap();
    let graph = open(&Target::parse("md:1m"), &overrides).ok().unwrap();
    let mut traced = Traced::new("/dev/x", None, &Observation::new(&graph, 0));
    let (served, _) = samples::served();
    traced.layers = served.layers;
    let first = &mut traced.layers[0];
    first.histogram = vec![
        bucket("write", "misaligned", 4096, 512, 3),
        bucket("write", "aligned", 4096, 512, 1),
        bucket("read", "partial", 0, 1 << 20, u64::from(u32::MAX)),
    ];
    let (id, provider) = (first.id, first.provider.clone());
    traced.causes = vec![Cause {
        provider,
        id,
        miss: Some(Miss::Stack),
        cause: CauseName::Start,
        known: true,
        blame: Some("s1".into()),
        rule: Some("TL0001"),
        requests: 3,
        of: 4,
        message: "s1 begins 3584 bytes past a boundary".into(),
        fix: vec!["trueline move --align x && y".into(), "start it elsewhere".into()],
        commands: vec!["trueline move --align x".into(), "y".into()],
    }];
    let latency = Latency { count: 4, mean: 2000, p50: 1000, p99: 9000, max: 90_000 };
    traced.latency_ns.writes.misaligned = Some(latency);
    traced.drives = ["traced", "aligned"]
        .map(|variant| DriveRun {
            drive: "wd10ears".into(),
            variant,
            duration_ns: if variant == "traced" { 3_000_000 } else { 2_000_000 },
            requests: 4,
            bytes: 16384,
            spent: Spent { setup: 0.001, rotate: 0.002, ..Spent::sum(&[], 0) },
        })
        .to_vec();
    traced
}

fn bucket(op: &'static str, verdict: &'static str, size: u64, alignment: u64, n: u64) -> Bucket {
    Bucket { op, verdict, size, alignment, count: n }
}

fn shown(traced: &Traced) -> String {
    samples::text(|out| write(traced, &Made::sample(), out))
}

#[test]
fn hostile_strings_stay_text_and_nothing_is_fetched() {
    let mut traced = traced();
    let bad = "\"><script>alert(1)</script><img src=http://x onerror=y>\u{202e}\0";
    traced.target = bad.into();
    traced.lost = 3;
    for layer in &mut traced.layers {
        (layer.provider, layer.content, layer.disk) = (bad.into(), bad.into(), bad.into());
    }
    for cause in &mut traced.causes {
        (cause.provider, cause.message) = (bad.into(), bad.into());
        (cause.fix, cause.commands) = (vec![bad.into(), bad.into()], vec![bad.into()]);
    }
    traced.drives.iter_mut().for_each(|run| run.drive = bad.into());
    traced.processes = vec![ProcessDocument {
        pid: 7,
        name: bad.into(),
        reads: Default::default(),
        writes: Default::default(),
        trims: Default::default(),
        zeroes: Default::default(),
        bytes: Default::default(),
    }];
    let page = shown(&traced);
    for refused in ["<script", "<img", "\u{202e}", "\0", "@import", "\u{1b}"] {
        assert!(!page.contains(refused), "{refused}: {page}");
    }
    assert!(!page.replace("url(#hatch)", "").contains("url("));
    assert!(page.contains("3 events lost"), "{page}");
}

#[test]
fn every_number_stands_where_it_is_drawn() {
    let page = shown(&traced());
    for says in [
        // Three of four are as wide as three quarters of a cell of 32 pixels.
        "<title>4K at multiples of 512: 3 misaligned, 1 aligned</title><rect \
            class=\"v-misaligned\" x=\"52.0\" y=\"16\" width=\"24.0\"",
        "<title>&lt;512 at multiples of 1M+: 4294967295 partial</title>",
        "s1 begins 3584 bytes past a boundary, so 3 of 4 requests are off",
        "<dt>fix<dd><code>trueline move --align x</code>\n<dt>then<dd><code>y</code>\n<dt>or<dd>",
        "writes, misaligned: p50 1.00 µs, p99 9.00 µs, mean 2.00 µs, max 90.0 µs",
        "<td>traced<td class=\"num\">4<td class=\"num\">3.00 ms<td class=\"num\">1.50 ×",
        "<td>aligned<td class=\"num\">4<td class=\"num\">2.00 ms<td class=\"num\"></tr>",
        "id=\"TL0001\"",
    ] {
        assert!(page.contains(says), "{says}: {page}");
    }
}

#[test]
fn an_empty_trace_has_a_page_and_odd_numbers_are_drawn() {
    let mut empty = traced();
    (empty.layers, empty.causes, empty.drives) = (Vec::new(), Vec::new(), Vec::new());
    empty.latency_ns.writes.misaligned = None;
    assert!(shown(&empty).contains("no reads or writes"));
    let mut odd = traced();
    for layer in &mut odd.layers {
        for bucket in &mut layer.histogram {
            (bucket.size, bucket.alignment) = (1 << 20, 0);
        }
        layer.unit = 3 << 40;
    }
    let most = Latency { count: 1, mean: u64::MAX, p50: 0, p99: u64::MAX, max: u64::MAX };
    odd.latency_ns.reads.unknown = Some(most);
    odd.drives.iter_mut().for_each(|run| run.duration_ns = 0);
    let page = shown(&odd);
    assert!(!page.contains("NaN") && !page.contains("inf%") && !page.contains("\"-"), "{page}");
}
