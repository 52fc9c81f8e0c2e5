//! `--emulate`: the simulated drives, and the report on them.

use crate::command::serve::args::Serve;
use crate::command::serve::emulated_text;
use crate::command::serve::summary::{EmulatedKind, Emulation};
use crate::failure::Failure;
use crate::log::{self, LogEvent};
use crate::render::spent;
use crate::style::Style;
use std::io;
use trueline_lab::result::Spent;
use trueline_serve::layer::emulated::{Drives, MUCH, RequestPace};
use trueline_sim::model::Model;
use trueline_sim::time::NS;

/// Refuses drives that are named twice, or not at all.
pub(super) fn check(args: &Serve) -> Result<(), Failure> {
    let simulated = args.target.is_simulated();
    let refused = |why: &str| Err(Failure::Message(format!("serve {}: {why}", args.target)));
    match &args.drive {
        None if args.emulate && !simulated => refused(
            "--emulate: which drive? --drive wd10ears puts the target on one; trueline drives lists them",
        ),
        Some(_) if simulated => {
            refused("--drive: the target names a drive already: leave one of them out")
        }
        _ => Ok(()),
    }
}

/// Writes lines on stderr at the end: the time of the drives by its causes, and the machine's share
/// of it.
pub(super) fn tell(drives: &Drives, models: &[Model]) -> Result<(), Failure> {
    if log::LogForm::chosen() == log::LogForm::Json {
        let times = serde_json::to_value(emulation(drives)).map_err(io::Error::from)?;
        let message = "the times of the drives, and of this machine";
        log::write(LogEvent::Emulation, message, &[("emulation", times)]);
        return Ok(());
    }
    let spends: Vec<_> =
        drives.counters().iter().map(|drive| Spent::sum(std::slice::from_ref(drive), 0)).collect();
    let rows: Vec<_> = models.iter().map(|model| model.name.as_str()).zip(&spends).collect();
    let mut stderr = anstream::stderr().lock();
    let style = Style::of_stderr();
    spent::write(&rows, style, &mut stderr)?;
    Ok(emulated_text::write(&emulation(drives), style, &mut stderr)?)
}

/// Times of the drives and of the machine until now.
pub(super) fn emulation(drives: &Drives) -> Emulation {
    let kinds = drives.kinds();
    let worst = kinds
        .iter()
        .filter(|kind| !kind.is_the_drives())
        .filter_map(RequestPace::share)
        .reduce(f64::max);
    let one = |kind: &RequestPace| EmulatedKind {
        op: if kind.write { "write" } else { "read" },
        pattern: if kind.sequential { "sequential" } else { "random" },
        requests: kind.requests,
        drive_ns: kind.drive / NS,
        machine_ns: kind.machine / NS,
        is_the_drives: kind.is_the_drives(),
    };
    let kinds: Vec<EmulatedKind> = kinds.iter().map(one).collect();
    Emulation {
        speed: drives.speed().factor(),
        drive_ns: kinds.iter().map(|kind| kind.drive_ns).sum(),
        machine_ns: kinds.iter().map(|kind| kind.machine_ns).sum(),
        kinds,
        true_speed: worst.map(|share| drives.speed().slowed(MUCH / share).factor()),
    }
}
