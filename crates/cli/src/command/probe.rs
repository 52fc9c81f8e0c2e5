//! `probe`: the units of a drive, found by the time that requests take.

use crate::command::probe::args::Probe;
use crate::command::probe::document::{Probed, UnitDocument};
use crate::command::probe::ground::{DEPTH, Ground};
use crate::failure::{Failure, Reason, complain};
use crate::measured::MeasuredDrive;
use crate::progress::style;
use crate::style::Style;
use crate::words::size;
use indicatif::ProgressBar;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use trueline_geom::base::topology::{Grain, Why};
use trueline_host::device::Device;
use trueline_host::process::signal;
use trueline_lab::probe::{ProbeProgress, ProbeSetup, probe};

pub(crate) mod args;
pub(crate) mod document;
mod ground;
mod text;

/// The least ratio of times for which a drive is judged by what was measured. Less is not worth
/// moving anything.
const WORTH: f64 = 1.2;

/// Remembers the physical unit of a drive that has a serial number. The file's path; `None` if
/// there is nothing to remember, or it failed, which is said on stderr.
fn remember(device: &Device, found: &Probed) -> Option<String> {
    if found.interrupted || found.mode != "write" {
        return None;
    }
    let is_worth = |unit: &&UnitDocument| unit.why == Why::Physical.name() && unit.ratio >= WORTH;
    let unit = found.units.iter().find(is_worth)?;
    let grain = Grain::new(unit.size, unit.phase)?;
    match MeasuredDrive::of(device, grain, unit.confidence)?.remember() {
        Ok(path) => Some(path.display().to_string()),
        Err(why) => {
            complain(&format!("note: what was measured is not remembered: {}", why.0));
            None
        }
    }
}

pub(crate) fn run(args: &Probe) -> Result<ExitCode, Failure> {
    signal::remember_first();
    let mut ground = Ground::open(args)?;
    let budget_ns = u64::from(args.seconds).saturating_mul(1_000_000_000);
    let bar =
        ProgressBar::new(budget_ns / 1_000_000).with_style(style("{bar:20} {left}  {wide_msg}"));
    let mut watch = |at: ProbeProgress| {
        bar.set_position(at.spent_ns / 1_000_000);
        let largest = size::human(at.largest);
        bar.set_message(format!("units up to {largest}, {} requests", at.requests));
        !signal::happened()
    };
    let (op, origin, is_set) = (ground.op, ground.origin, ground.is_set);
    let setup = ProbeSetup { op, budget_ns, seed: args.seed, depth: DEPTH, is_set };
    let report = probe(ground.rig(), setup, &mut watch);
    bar.finish_and_clear();
    let report =
        report.map_err(|error| Reason::from(error).behind(format_args!("probe {}", args.target)));
    let document = report.map(|report| {
        Probed::new(
            args.target.to_string(),
            ground.is_virtual,
            (op, origin),
            ground.claimed,
            ground.note.clone(),
            (&report, budget_ns),
        )
    });
    let device = ground.device.take();
    ground.close()?;
    let mut document = document?;
    document.is_set = is_set;
    document.remembered = device.as_ref().and_then(|device| remember(device, &document));
    let mut stdout = BufWriter::new(anstream::stdout().lock());
    if args.json {
        serde_json::to_writer_pretty(&mut stdout, &document).map_err(io::Error::from)?;
        writeln!(stdout)?;
    } else {
        text::write(&document, Style::of_stdout(), &mut stdout)?;
    }
    stdout.flush()?;
    Ok(if document.interrupted { ExitCode::from(2) } else { ExitCode::SUCCESS })
}
