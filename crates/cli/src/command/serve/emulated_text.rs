//! The machine's share of the times of emulated drives, in words.

use crate::command::serve::summary::{EmulatedKind, Emulation};
use crate::style::Style;
use crate::words::columns;
use std::io;

/// Writes the machine's share of the drives' time, and the requests for which it is too much;
/// nothing without requests.
pub(crate) fn write(
    emulation: &Emulation,
    style: Style,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    if emulation.kinds.is_empty() {
        return Ok(());
    }
    let each: Vec<String> = emulation
        .kinds
        .iter()
        .map(|kind| format!("{} {}", name(kind), share(kind.machine_ns, kind.drive_ns)))
        .collect();
    let (all, speed) = (share(emulation.machine_ns, emulation.drive_ns), emulation.speed);
    let took = format!(
        "at --speed {speed} this machine's own work took {all} as long as the drives' ({})",
        each.join(", ")
    );
    columns::line(&took, style.width, out)?;
    let distorted: Vec<String> =
        emulation.kinds.iter().filter(|kind| !kind.is_the_drives).map(name).collect();
    if let Some(speed) = emulation.true_speed {
        let what = distorted.join(" and ");
        let whose = format!(
            "ratios of {what} are therefore this machine's, not the drive's: measure them at --speed {speed}"
        );
        columns::line(&whose, style.width, out)?;
    }
    Ok(())
}

fn name(kind: &EmulatedKind) -> String {
    format!("{} {}s", kind.pattern, kind.op)
}

/// A share in percent; of drives that took no time, any share is too much.
#[allow(clippy::cast_precision_loss, reason = "a share for people")]
fn share(machine: u64, drive: u64) -> String {
    match (machine, drive) {
        (0, _) => "0 %".into(),
        (_, 0) => "all".into(),
        (machine, drive) if machine * 100 < drive => "under 1 %".into(),
        (machine, drive) => format!("{:.0} %", machine as f64 / drive as f64 * 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn what_is_the_machines_is_said() {
        let kind = |op, pattern, drive_ns, machine_ns| EmulatedKind {
            op,
            pattern,
            requests: 9,
            drive_ns,
            machine_ns,
            is_the_drives: machine_ns <= drive_ns / 10,
        };
        let kinds = vec![
            kind("read", "random", 8_000_000, 60_000),
            kind("write", "sequential", 1_000_000, 3_100_000),
        ];
        let emulation = Emulation {
            speed: 10.0,
            drive_ns: 9_000_000,
            machine_ns: 3_160_000,
            kinds,
            true_speed: Some(0.3),
        };
        let said = samples::text(|out| write(&emulation, Style::default(), out));
        let want = "at --speed 10 this machine's own work took 35 % as long as the drives' (random \
            reads under 1 %, sequential writes 310 %)\nratios of sequential writes are therefore \
            this machine's, not the drive's: measure them at --speed 0.3\n";
        assert_eq!(said, want);
        let few = Emulation {
            kinds: vec![kind("read", "random", 8, 0)],
            true_speed: None,
            drive_ns: 8,
            machine_ns: 0,
            ..emulation.clone()
        };
        assert_eq!(
            samples::text(|out| write(&few, Style::default(), out)),
            "at --speed 10 this machine's own work took 0 % as long as the drives' (random reads 0 %)\n"
        );
        assert_eq!(
            samples::text(|out| write(
                &Emulation { kinds: vec![], ..emulation.clone() },
                Style::default(),
                out
            )),
            ""
        );
    }
}
