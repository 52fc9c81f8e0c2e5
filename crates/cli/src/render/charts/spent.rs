//! The seconds of simulated drives by cause, as bars of one scale, with the counters that explain
//! them.

use super::axis::Axis;
use super::lanes::{Lanes, key, text_of};
use super::quantity::{seconds, times};
use super::track::Track;
use crate::words::escape;
use std::fmt::Write as _;
use trueline_lab::result::Spent;

const BAR: u32 = 26;

/// A cause that a drive can spend a second on.
struct Part {
    name: &'static str,
    what: &'static str,
    of: fn(&Spent) -> f64,
}

/// The parts, in the order in which a request meets them.
const PARTS: [Part; 5] = [
    Part { name: "setup", what: "overhead of commands", of: |s| s.setup },
    Part { name: "seek", what: "the arm moves", of: |s| s.seek },
    Part { name: "rotate", what: "waiting for the sector to come round", of: |s| s.rotate },
    Part { name: "transfer", what: "bytes under the head", of: |s| s.transfer },
    Part { name: "idle", what: "nothing to do", of: |s| s.idle },
];

/// A counter, and its text.
struct Count {
    name: &'static str,
    what: &'static str,
    of: fn(&Spent) -> String,
}

const COUNTS: [Count; 5] = [
    Count { name: "operations of the medium", what: "", of: |s| count(s.media_ops) },
    Count {
        name: "read-modify-writes",
        what: "physical sectors or units that were written in part",
        of: |s| count(s.rmw),
    },
    Count {
        name: "lost revolutions",
        what: "times a sector had just gone by",
        of: |s| count(s.lost_revolutions),
    },
    Count {
        name: "write amplification",
        what: "bytes the medium wrote over bytes the host wrote",
        of: |s| s.write_amplification.map_or("–".into(), times),
    },
    Count {
        name: "reads of the page cache",
        what: "that only writing parts of pages needed",
        of: |s| count(s.host_reads),
    },
];

fn count(n: u64) -> String {
    escape::grouped(&n.to_string(), "<i>", "</i>")
}

/// The bars of drives, each with its name, under a title; `None` if nothing is known of them.
pub(crate) fn seconds_of(title: &str, known: &[(&str, &Spent)]) -> Option<String> {
    let length = |s: &Spent| PARTS.iter().map(|p| clean((p.of)(s))).sum::<f64>();
    let axis = Axis::from_zero(known.iter().map(|(_, s)| length(s)));
    if !known.iter().any(|(_, s)| length(s) > 0.0) {
        return None;
    }
    let drives = known.iter().map(|(_, s)| s.drives).max().unwrap_or(1);
    let mut lanes = Lanes::new(&format!("Where each second went, {title}"));
    for (name, spent) in known {
        let (mut track, mut from, mut parts) = (Track::new(BAR), 0.0, Vec::new());
        for Part { name: part, what, of } in &PARTS {
            let part_seconds = clean(of(spent));
            if part_seconds <= 0.0 {
                continue;
            }
            let ends = (axis.at(from), axis.at(from + part_seconds));
            let text = seconds(part_seconds);
            let hatch = if *part == "idle" { " hatch" } else { "" };
            track.rect(
                ends,
                (1, BAR - 2),
                &format!("part {part}{hatch}"),
                &format!("{name}: {part} {text}: {what}"),
            );
            if ends.1 - ends.0 > 17.0 {
                track.inside(ends, BAR, &format!("in-{part}"), part);
            }
            parts.push(format!("{part} {text}"));
            from += part_seconds;
        }
        lanes.lane(name, track, &seconds(length(spent)), &format!("{name} ({})", parts.join(", ")));
    }
    let mut text = lanes.finish();
    text.push_str("<ul class=\"legend\">");
    for Part { name: part, what, of } in &PARTS {
        if known.iter().any(|(_, s)| clean(of(s)) > 0.0) {
            let _ =
                write!(text, "<li title=\"{what}\">{}{part}</li>", key(&format!("part {part}")));
        }
    }
    text.push_str("</ul>\n");
    write_counts(known, drives, &mut text);
    Some(text)
}

/// Seconds that can be drawn: finite and not negative.
fn clean(value: f64) -> f64 {
    if value.is_finite() { value.max(0.0) } else { 0.0 }
}

/// Adds the counters as a table, one column for each variant.
fn write_counts(known: &[(&str, &Spent)], drives: usize, text: &mut String) {
    // A counter at zero everywhere gets no line.
    let counts: Vec<&Count> = COUNTS
        .iter()
        .filter(|c| !known.iter().all(|(_, s)| matches!((c.of)(s).as_str(), "0" | "–")))
        .collect();
    if !counts.is_empty() {
        write_table(known, &counts, text);
    }
    if drives > 1 {
        let _ = writeln!(text, "<p class=\"dim\">Seconds of {drives} drives, all together.</p>");
    }
}

fn write_table(known: &[(&str, &Spent)], counts: &[&Count], text: &mut String) {
    let _ = write!(text, "<table class=\"counts\"><thead><tr><td>");
    for (name, _) in known {
        let _ = write!(text, "<th scope=\"col\" class=\"num\">{}", text_of(name));
    }
    text.push_str("</tr></thead><tbody>");
    for Count { name, what, of } in counts {
        let _ = write!(text, "<tr><th scope=\"row\" title=\"{what}\">{name}");
        for (_, spent) in known {
            let _ = write!(text, "<td class=\"num\">{}", of(spent));
        }
        text.push_str("</tr>");
    }
    text.push_str("</tbody></table>\n");
}
