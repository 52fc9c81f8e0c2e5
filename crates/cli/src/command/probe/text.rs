//! The result of a probe for people.

use super::document::{Probed, UnitDocument};
use super::ground::Origin;
use crate::render::traffic::count;
use crate::style::Style;
use crate::words::columns::{self, Cell, Spare};
use crate::words::quantity::{three, time};
use crate::words::{escape, size};
use std::io;
use std::time::Duration;

/// Writes what was found, what the target claims, and how sure it is.
pub(super) fn write(probed: &Probed, style: Style, out: &mut dyn io::Write) -> io::Result<()> {
    let mut line = |text: &str| columns::line(text, style.width, out);
    line(&head(probed))?;
    if let Some(note) = &probed.note {
        line(&format!("note: {note}"))?;
    }
    if !probed.units.is_empty() {
        columns::write(&table(&probed.units), &Spare(&[2, 4], "--json"), style.width, out)?;
    }
    for text in told(probed) {
        columns::line(&text, style.width, out)?;
    }
    Ok(())
}

fn head(probed: &Probed) -> String {
    let noun = if probed.mode == "read" { "read" } else { "write" };
    let seconds = Duration::from_nanos(probed.duration_ns).as_secs_f64();
    let (requests, bytes) = (count(probed.requests, noun, "s"), size::human(probed.bytes));
    let clock = if probed.time == "virtual" { " of virtual time" } else { "" };
    let target = escape::plain(&probed.target);
    format!("probed {target}: {seconds:.1} s{clock}, {requests} ({bytes})")
}

fn table(units: &[UnitDocument]) -> Vec<Vec<Cell>> {
    let heads = ["UNIT", "FIRST AT", "CUT BY", "TIME", "CONFIDENCE", "WHY"];
    let mut rows = vec![
        heads
            .iter()
            .enumerate()
            .map(|(nth, head)| if nth == 5 { Cell::left(*head) } else { Cell::right(*head) })
            .collect(),
    ];
    for unit in units {
        let within = if unit.within > 0 { format!(" ± {}", unit.within) } else { String::new() };
        rows.push(vec![
            Cell::right(size::short(unit.size)),
            Cell::right(format!("{}{within}", unit.phase)),
            Cell::right(size::short(unit.length)),
            Cell::right(format!("{:.2} x", unit.ratio)),
            Cell::right(format!("{:.2} %", (unit.confidence * 100.0).min(99.99))),
            Cell::left(unit.why),
        ]);
    }
    rows
}

/// Meaning of the figures, in sentences.
fn told(probed: &Probed) -> Vec<String> {
    let mut told = Vec::new();
    for unit in &probed.units {
        let Probed { mode, .. } = probed;
        let (unit_size, length) = (size::human(unit.size), size::human(unit.length));
        let percent = three((unit.ratio - 1.0) * 100.0);
        told.push(format!(
            "{mode}s of {length} that cut one unit of {unit_size} more than they must take \
            {percent} % longer"
        ));
    }
    let from = match probed.origin {
        Origin::Target => None,
        Origin::Device => {
            Some("FIRST AT counts from the start of the device that the file system is on")
        }
        Origin::File => Some(
            "FIRST AT counts from the start of a file: where on its device it lies is not known",
        ),
    };
    told.extend(from.filter(|_| !probed.units.is_empty()).map(String::from));
    let largest = size::human(probed.searched);
    match probed.verdict {
        "nothing" => {
            let ratio = probed.most_ratio.unwrap_or(1.0);
            let percent = three(((ratio - 1.0) * 100.0).max(0.1));
            told.push(match probed.mode {
                "read" => {
                    format!("no boundary of up to {largest} costs reads more than {percent} %")
                }
                _ => format!("no unit of up to {largest} costs writes more than {percent} %"),
            });
        }
        "alike" => told.push(format!(
            "no unit can be seen: {}s take the same time at every place, and nothing shows that \
            they wait for a medium",
            probed.mode
        )),
        "unsure" if probed.interrupted => {}
        "unsure" => {
            let longer = if probed.is_spent { "; --seconds gives it longer" } else { "" };
            let noun = if probed.mode == "read" { "read" } else { "write" };
            told.push(format!(
                "cannot tell: times differ too much for certainty after {}{longer}",
                count(probed.requests, noun, "s")
            ));
        }
        _ => {}
    }
    if probed.mode == "read" && probed.verdict != "found" && !probed.is_set {
        told.push(
            "a unit that writes alone pay for is not seen by reads: name a directory of its \
            file system, for a scratch file, or say --destructive"
                .into(),
        );
    }
    if probed.step > probed.claimed.logical {
        let step = probed.step;
        told.push(format!(
            "requests are made at multiples of {step} bytes here: what is between is not seen"
        ));
    }
    told.extend(claims(probed));
    told.extend(claimed_chunk(probed));
    if let Some(path) = &probed.remembered {
        let path = escape::plain(path);
        told.push(format!("remembered by the drive's serial number: check judges by it ({path})"));
    }
    if probed.verdict != "nothing" {
        let [durable, plain] = [probed.latency_ns.durable, probed.latency_ns.plain].map(
            #[allow(clippy::cast_precision_loss, reason = "times for people")]
            |ns| time(ns as f64),
        );
        told.push(if probed.mode == "read" {
            format!("a read of 4 KiB takes {plain}")
        } else {
            format!("a write of 4 KiB takes {plain}, one that lasts {durable}")
        });
    }
    if probed.interrupted {
        told.push("interrupted: this is what was known by then".into());
    }
    told
}

/// Claims of the target, and whether they are true. Reads say nothing of that.
fn claims(probed: &Probed) -> Option<String> {
    let claimed = &probed.claimed;
    if probed.is_set {
        return None;
    }
    let (physical, phase) = (claimed.physical?, claimed.phase.unwrap_or(0));
    let at = if phase > 0 { format!(" at {phase}, of") } else { " of".into() };
    let said = format!("it claims units{at} {physical} bytes");
    let found = probed.units.iter().find(|unit| unit.why == "physical");
    match (found, probed.verdict) {
        _ if probed.origin == Origin::File => None,
        (Some(unit), _) if unit.size == physical && unit.phase == phase => {
            Some(format!("{said}, which is true"))
        }
        (Some(_), _) => Some(format!("{said}, which is not true")),
        (None, "nothing") if probed.mode == "write" && physical == probed.step => {
            Some(format!("{said}: nothing here contradicts it"))
        }
        (None, _) => Some(said),
    }
}

/// The claim of a set, and whether it is true.
fn claimed_chunk(probed: &Probed) -> Option<String> {
    if !probed.is_set {
        return None;
    }
    let (chunk, phase) = (probed.claimed.chunk?, probed.claimed.chunk_phase?);
    let at = if phase > 0 { format!(" at {phase}") } else { String::new() };
    let said = format!("it claims chunks of {}{at}", size::human(chunk));
    let found = probed.units.iter().find(|unit| unit.why == "chunk");
    Some(match found {
        _ if probed.origin == Origin::File => return None,
        Some(unit) if unit.size == chunk && unit.phase == phase => format!("{said}, which is true"),
        Some(_) => format!("{said}, which is not true"),
        None => said,
    })
}
