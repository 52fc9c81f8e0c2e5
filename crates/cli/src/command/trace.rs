//! `trace`: the requests that a device of this host gets, judged on the stack that is on it.

use crate::command::trace::args::Trace;
use crate::command::trace::document::Traced;
use crate::command::trace::observation::Observation;
use crate::command::trace::tasted::Tasted;
use crate::failure::{Failure, Reason};
use crate::page_file::{require_replaceable, write_file};
use crate::render::made::Made;
use crate::style::Style;
use crate::target::open::open;
use crate::target::{DiskOverrides, Target};
use crate::write_target;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use trueline_geom::base::topology::Grain;
use trueline_geom::graph::{Graph, Id};
use trueline_host::process::signal;
use trueline_host::tracefs::TracedDevice;

pub(crate) mod args;
mod causes;
pub(crate) mod document;
mod histogram;
mod live;
mod observation;
mod page;
mod patterns;
mod replayed;
mod table;
mod tasted;
mod text;
pub(crate) mod what_if;

/// Length of a disk that is only known by the requests to it: more than any of them needs.
const UNKNOWN_DISK: &str = "md:4096p";

pub(crate) fn run(args: &Trace) -> Result<ExitCode, Failure> {
    // A trace of an hour is not lost to a name.
    args.html.as_deref().map(require_replaceable).transpose()?;
    let mut options = args.disk.clone();
    let device = args.target.as_ref().filter(|_| args.replay.is_none());
    let device = device.map(live::device).transpose()?;
    let start = device.as_ref().map_or(0, TracedDevice::start);
    options.physical = args.unit.map(|unit| seen_from(unit, start)).or(options.physical);
    let made_up = Target::parse(UNKNOWN_DISK);
    let target = args.target.as_ref().unwrap_or(&made_up);
    let overrides = if args.json {
        DiskOverrides::for_target(&options, target)?
    } else {
        DiskOverrides::announced(&options, target)?
    };
    let (traced, tasted, code) = match (device, &args.replay) {
        (Some(device), _) => live::observe(args, device, target, &overrides)?,
        (None, Some(file)) => {
            let (graph, id) = provider(target, &overrides)?;
            let tasted = Tasted::new(target, &overrides, &graph);
            let seen = replayed::observe(file, Observation::new(&graph, id))?;
            (seen, tasted, ExitCode::SUCCESS)
        }
        (None, None) => return Err(Reason("trace: name a device, or --replay FILE".into()).into()),
    };
    let shown = args.replay.as_ref().map(|file| file.display().to_string());
    let shown = shown.unwrap_or_else(|| target.to_string());
    let mut document = Traced::new(&shown, overrides.judged(), &traced);
    document.causes = causes::find(&document, traced.patterns(), &tasted);
    if let Some(file) = args.replay.as_ref().filter(|_| !args.drive.is_empty()) {
        signal::remember_first();
        document.drives = what_if::runs(&args.drive, file, &traced.parts())?;
    }
    let page = |path| write_file(path, |file| page::write(&document, &Made::now(), file));
    let paged = args.html.as_deref().map(page).transpose();
    if args.json {
        let mut stdout = BufWriter::new(anstream::stdout().lock());
        serde_json::to_writer_pretty(&mut stdout, &document).map_err(io::Error::from)?;
        writeln!(stdout)?;
        stdout.flush()?;
    } else {
        let mut stdout = BufWriter::new(anstream::stdout().lock());
        text::write(&document, args.histogram, Style::of_stdout(), &mut stdout)?;
        stdout.flush()?;
    }
    paged?;
    Ok(code)
}

/// A unit of the drive and the place of the first one, in the bytes of a partition that begins at
/// `start`.
fn seen_from((size, phase): (u64, u64), start: u64) -> (u64, u64) {
    Grain::new(size, phase).map_or((size, phase), |grain| (size, grain.shift(start).phase()))
}

/// The tasted disks of a target, and the provider that requests are to.
fn provider(target: &Target, overrides: &DiskOverrides) -> Result<(Graph, Id), Failure> {
    let graph = open(target, overrides)?;
    let id = match target.provider() {
        Some(name) => {
            graph.find(name).ok_or_else(|| write_target::no_provider(target, name, &graph))?
        }
        None if target.sources().len() > 1 => {
            return Err(Reason(format!(
                "trace {target}: several disks: name the provider after a #: #stripe/data"
            ))
            .into());
        }
        None => graph.disk(0),
    };
    Ok((graph, id))
}
