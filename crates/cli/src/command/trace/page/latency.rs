//! Latencies of each verdict: from the median to the 99th percentile as a bar, the mean as a dot,
//! the maximum as the end of a line; beneath them the numbers.

use super::{grouped, section};
use crate::command::trace::document::{KindLatencies, VerdictLatencies};
use crate::render::charts::axis::Axis;
use crate::render::charts::lanes::{Lanes, text_of};
use crate::render::charts::quantity::tick;
use crate::render::charts::track::{Anchor, Track};
use crate::traffic::Latency;
use crate::words::quantity::time;
use std::io::{self, Write};

/// Pixels from the top to the bottom of a strip.
const STRIP: u32 = 20;

/// Writes the latencies; nothing where none is known.
pub(super) fn write(latencies: &KindLatencies, out: &mut dyn Write) -> io::Result<()> {
    let known: Vec<(String, &str, &Latency)> =
        [("reads", &latencies.reads), ("writes", &latencies.writes)]
            .into_iter()
            .flat_map(|(kind, of)| named(of).map(move |(verdict, l)| (kind, verdict, l)))
            .filter_map(|(kind, verdict, latency)| {
                Some((format!("{kind}, {verdict}"), verdict, latency.as_ref()?))
            })
            .collect();
    let values = known.iter().flat_map(|(.., l)| [l.p50, l.p99, l.mean, l.max].map(float));
    let Some(axis) = Axis::log(values) else { return Ok(()) };
    let about = "From the driver to its answer, on a scale of powers of ten. A bar goes from the \
        median to the 99th percentile, the dot is the mean, the line ends at the maximum.";
    section("latency", "Latency by verdict", about, out)?;
    let mut lanes = Lanes::new("Latency by verdict");
    for (name, verdict, latency) in &known {
        let mut track = Track::new(STRIP);
        for value in axis.ticks(6) {
            track.upright(axis.at(value), "grid");
        }
        let at = |ns: u64| axis.at(float(ns));
        let says = format!("p50 {}, p99 {}", shown(latency.p50), shown(latency.p99));
        let title =
            format!("{name}: {says}, mean {}, max {}", shown(latency.mean), shown(latency.max));
        track.level((at(latency.p50), at(latency.max)), 10.0, "whisker");
        track.cap(at(latency.max), 10.0, "whisker");
        // One of no width would not be seen.
        let ends = (at(latency.p50), at(latency.p99).max(at(latency.p50) + 0.4));
        track.rect(ends, (4, 12), &format!("v-{verdict}"), &title);
        track.dot(at(latency.mean), 10.0, 4.0, "point", &title);
        lanes.lane(name, track, &says, name);
    }
    let mut track = Track::new(18);
    for value in axis.ticks(6) {
        track.text(axis.at(value), 13.0, "tick", Anchor::Middle, &tick(value));
    }
    lanes.axis(track);
    writeln!(out, "<figure class=\"chart\">{}</figure>", lanes.finish())?;
    let columns = [
        ("Latency", ""),
        ("Requests", "num"),
        ("Mean", "num"),
        ("p50", "num"),
        ("p99", "num"),
        ("Max", "num"),
    ];
    super::write_heading("Latencies", &columns, out)?;
    for (name, _, latency) in &known {
        let times = [latency.mean, latency.p50, latency.p99, latency.max].map(shown);
        writeln!(
            out,
            "<tr><td>{}<td class=\"num\">{}<td class=\"num\">{}</tr>",
            text_of(name),
            grouped(latency.count),
            times.join("<td class=\"num\">")
        )?;
    }
    writeln!(out, "</tbody></table></div>\n</section>")
}

fn named(of: &VerdictLatencies) -> [(&'static str, &Option<Latency>); 4] {
    let VerdictLatencies { aligned, misaligned, partial, unknown } = of;
    [("aligned", aligned), ("misaligned", misaligned), ("partial", partial), ("unknown", unknown)]
}

fn shown(ns: u64) -> String {
    time(float(ns))
}

#[allow(clippy::cast_precision_loss, reason = "times for people")]
fn float(ns: u64) -> f64 {
    ns as f64
}
