//! A device traced while it works, until a time is over, a command ends, or Ctrl-C.

use crate::child::Child;
use crate::command::trace::args::Trace;
use crate::command::trace::observation::Observation;
use crate::command::trace::provider;
use crate::command::trace::table::Table;
use crate::command::trace::tasted::Tasted;
use crate::disk_options::DiskOptions;
use crate::failure::{Failure, Reason, complain};
use crate::target::{DiskOverrides, Target};
use std::io;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Instant;
use trueline_geom::graph::{Graph, Id};
use trueline_host::clock::{self, TICK};
use trueline_host::process::signal;
use trueline_host::tracefs::{BlockTrace, SeenRequest, TracedDevice};
use trueline_serve::layer::recorded::Recording;

/// Traces the device of `target`; the exit code is that of the command of `--run`.
pub(super) fn observe(
    args: &Trace,
    device: TracedDevice,
    target: &Target,
    overrides: &DiskOverrides,
) -> Result<(Observation, Tasted, ExitCode), Failure> {
    let (graph, id) = provider(target, overrides)?;
    let mut tasted = Tasted::new(target, overrides, &graph);
    if device.start() > 0 && args.disk.physical.is_none() {
        let disk = Target::file(&format!("/dev/{}", device.disk.replace('!', "/")));
        let options = DiskOptions { physical: args.unit, ..args.disk.clone() };
        // Without it there is advice for the partition alone.
        if let Ok(overrides) = DiskOverrides::for_target(&options, &disk) {
            tasted = tasted.on_disk(&disk, &overrides, device.start());
        }
    }
    let mut seen = Observation::new(&graph, id);
    let mut table = args.top.then(|| Table::new(target, overrides)).transpose()?;
    let recording = recording(args, &graph, id, target)?;
    // A device that is held open cannot be taken away.
    drop(graph);
    // Before there is an instance, which Ctrl-C would leave behind.
    signal::remember_first();
    let mut trace = BlockTrace::start(device).map_err(Reason::from)?;
    let began = clock::now();
    let mut child = args.run.as_deref().map(|command| start(command, args.json)).transpose()?;
    let until = args.seconds.map(|seconds| Instant::now() + seconds);
    let see = |seen: &mut Observation, request: SeenRequest| {
        recording.iter().for_each(|recording| recording.recorder().record(&request));
        seen.see(request);
    };
    let (ended, gone) = loop {
        let polled = trace.poll(&mut |request| see(&mut seen, request));
        seen.duration_ns = clock::now().saturating_sub(began);
        if let Err(gone) = polled {
            break (None, Some(gone));
        }
        if let Some(code) = child.as_mut().map(Child::status).transpose()?.flatten() {
            break (Some(code), None);
        }
        if signal::happened() || until.is_some_and(|until| Instant::now() >= until) {
            break (None, None);
        }
        if let Some(table) = &mut table {
            seen.lost = trace.lost();
            table.tick(&seen)?;
        }
        match &child {
            Some(child) => child.wait_at_most(TICK),
            None => std::thread::sleep(TICK),
        }
    };
    // A table has the terminal until here.
    drop(table);
    let end = trace.finish(&mut |request| see(&mut seen, request)).map_err(Reason::from)?;
    seen.lost = end.lost;
    if !end.is_whole {
        complain(&format!(
            "trace {target}: another program has switched the trace off: all counts are too low"
        ));
    }
    let code = match (ended, child) {
        (Some(code), _) => code,
        (None, Some(child)) => child.end()?,
        (None, None) => ExitCode::SUCCESS,
    };
    let failed = gone.is_some() || !end.is_whole;
    let code = if failed { ExitCode::from(2) } else { code };
    if let Some(gone) = gone {
        complain(&Reason::from(gone).to_string());
    }
    recording.map_or(Ok(0), |recording| recording.end())?;
    Ok((seen, tasted, code))
}

/// The block device that the target is. Errors: it is something else.
pub(super) fn device(target: &Target) -> Result<TracedDevice, Failure> {
    let path = target.only_path().ok_or_else(|| {
        Reason(format!(
            "trace {target}: the kernel traces whole devices: name one, such as /dev/sda or \
                /dev/sda1"
        ))
    })?;
    if path.metadata().is_ok_and(|found| found.is_file()) {
        return Err(Reason(format!(
            "trace {target}: it is a file, and the kernel traces block devices: serve --top counts \
                requests to an image, and --replay FILE {target} those of a trace"
        ))
        .into());
    }
    Ok(TracedDevice::at(path).map_err(Reason::from)?)
}

/// Starts the command of `--run`. With `aside` its output goes to stderr, because stdout is for a
/// document.
fn start(command: &str, aside: bool) -> Result<Child, Failure> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    if aside {
        shell.stdout(io::stderr());
    }
    Child::start(&mut shell, command)
}

/// The file of `--record`, begun.
fn recording(
    args: &Trace,
    graph: &Graph,
    id: Id,
    target: &Target,
) -> Result<Option<Recording>, Failure> {
    let Some(path) = &args.record else { return Ok(None) };
    // A trace that ends early is an error at the end.
    let recording = Recording::new(path, graph, id, target.typed(), Arc::new(|_| {}));
    let recording = recording?;
    recording.begin()?;
    Ok(Some(recording))
}
