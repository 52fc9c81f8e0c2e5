//! `serve`: a stack as a block device.

use crate::child::Child;
use crate::command::serve::args::{LogFormat, Serve};
use crate::command::serve::summary::Served;
use crate::failure::{Failure, Reason, complain};
use crate::log::{self, LogEvent};
use crate::move_journal::between;
use crate::style::Style;
use crate::target::serving::{self, Serving};
use crate::target::{DiskOverrides, Target};
use crate::{move_journal, write_target};
use child::Socket;
use live::Live;
use notices::Notices;
use pidfile::Pidfile;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use std::sync::Arc;
use telemetry::Telemetry;
use top::Top;
use trueline_geom::graph::{Bytes, Disk, Graph, Id};
use trueline_geom::probe::Limits;
use trueline_host::clock::TICK;
use trueline_host::disk::file::Access;
use trueline_host::nbd::activation;
use trueline_host::process::background::{self, Forked, Unready};
use trueline_host::process::{signal, tree};
use trueline_serve::front::Front;
use trueline_serve::front::http::Http;
use trueline_serve::layer::overlay::Overlays;
use trueline_serve::layer::watched::Watched;
use trueline_serve::layer_stack::LayerStack;
use trueline_serve::notice::Tell;
use trueline_serve::server;
use trueline_sim::model::Model;

pub(crate) mod args;
mod child;
mod config;
mod emulate;
pub(crate) mod emulated_text;
mod ending;
mod final_flush;
mod image;
mod live;
pub(crate) mod metrics;
mod notes;
mod notices;
mod overlay;
pub(crate) mod page;
mod pidfile;
pub(crate) mod summary;
mod telemetry;
pub(crate) mod text;
mod top;

pub(crate) fn run(args: &Serve) -> Result<ExitCode, Failure> {
    if args.exit_with_parent {
        tree::end_with_parent().map_err(|e| format!("serve --exit-with-parent: {e}"))?;
    }
    // Before there are threads, which a fork would lose.
    match args.fork.then(forked).transpose()? {
        Some(Forked::Parent(child)) => {
            let ended = child.wait().map_err(|e| format!("serve --fork: {e}"))?;
            Ok(ended.map_or(ExitCode::SUCCESS, ExitCode::from))
        }
        Some(Forked::Child(unready)) => run_here(args, Some(unready)),
        None => run_here(args, None),
    }
}

/// Two processes: one that waits, and one that serves. Errors: the service manager waits for this
/// one.
fn forked() -> Result<Forked, Failure> {
    if activation::VARIABLES.iter().any(|name| std::env::var_os(name).is_some()) {
        let why = "the service manager passed sockets to this process: leave --fork out";
        return Err(Failure::Message(format!("serve --fork: {why}")));
    }
    background::fork().map_err(|e| Failure::Message(format!("serve --fork: {e}")))
}

/// Serves in this process, and tells the one that waits once clients can connect.
fn run_here(args: &Serve, unready: Option<Unready>) -> Result<ExitCode, Failure> {
    let notices = Arc::new(Notices::default());
    let tell = tell(&notices, &args.target);
    let Opened { graph, said, id, models, overlays, note } = open(args, &tell)?;
    if !args.read_only && args.overlay.is_none() {
        warn_of_move(&args.target, &graph, id);
    }
    let layers = LayerStack::new(&graph, id, &config::layers(args, &models), &tell)?;
    let exports =
        Arc::new(config::selection(args).exports(&graph, id, &layers, overlays.as_ref())?);
    let placed = args.network.nbd.is_some() || args.fuse.is_some() || args.ublk;
    let own = Socket::new(!placed && args.run.is_some())?;
    let telemetry = layers
        .counting()
        .map(|counting| Arc::new(Telemetry::new(counting.clone(), &args.target, &said)));
    // Before there is a way in: a client may end the server at once, and a mount would stay behind.
    signal::remember_first();
    let mut pidfile = args.pidfile.as_deref().map(Pidfile::prepare).transpose()?;
    let mut fronts = config::fronts(args, own.as_ref()).open(&exports, &tell)?;
    if fronts.is_empty() {
        let places = "--nbd unix:PATH, --nbd tcp:HOST:PORT, --fuse MOUNTPOINT, --ublk";
        return Err(Failure::Message(format!("serve: where? write {places} or --run CMD")));
    }
    fronts.extend(page(args, telemetry.as_ref())?);
    let top = telemetry.as_ref().filter(|_| args.top);
    let top =
        top.map(|telemetry| Top::new(telemetry.clone(), notices.clone(), &fronts)).transpose()?;
    let read_only = notes::read_only(&graph, id).filter(|_| !args.read_only && note.is_none());
    let notes = notes::containers(&graph)
        .chain(notes::members(&graph))
        .chain(note.clone())
        .chain(read_only)
        .chain(notes::unsaid(&exports));
    notes.for_each(|note| complain(&note));
    layers.begin()?;
    // Held to the end: there is a way in from now on, and until then.
    pidfile.as_mut().map_or(Ok(()), Pidfile::place)?;
    let served = serve(&fronts, args, &layers, (top, unready));
    let flushed = if args.read_only { Ok(()) } else { final_flush::disks(&graph, &args.target) };
    let refused = ending::refused(&layers);
    let emulation = layers.drives().map(emulate::emulation);
    let ended = ending::layers(&layers);
    overlays.iter().for_each(|overlays| overlay::tell(overlays, &args.target));
    telemetry
        .iter()
        .filter(|_| !args.read_only)
        .for_each(|telemetry| telemetry.counting().taste_last());
    telemetry
        .map_or(Ok(()), |telemetry| sum_up(&Served { emulation, ..telemetry.served() }, args))?;
    let status = served?;
    flushed?;
    ended?;
    // A command that did not notice the refusals does not make them aligned.
    Ok(if refused && status == ExitCode::SUCCESS { ExitCode::from(1) } else { status })
}

/// A function that says on stderr, or in the table of `--top`, what happens to a server of
/// `target`.
fn tell(notices: &Arc<Notices>, target: &Target) -> Arc<Tell> {
    let (notices, target) = (notices.clone(), target.to_string());
    Arc::new(move |notice| notices.tell(&target, notice))
}

/// The page of what is counted and its metrics, if they were asked for.
fn page(
    args: &Serve,
    telemetry: Option<&Arc<Telemetry>>,
) -> Result<Option<Box<dyn Front>>, Failure> {
    let Some(((host, port), telemetry)) = args.metrics.as_ref().zip(telemetry) else {
        return Ok(None);
    };
    let site = Arc::new(Live::new(telemetry.clone()));
    Ok(Some(Box::new(Http::bind(host, *port, site).map_err(Reason::from)?)))
}

/// Writes the counters: for people on stderr, for programs on stdout.
fn sum_up(served: &Served, args: &Serve) -> Result<(), Failure> {
    if args.json {
        let mut stdout = BufWriter::new(anstream::stdout().lock());
        serde_json::to_writer_pretty(&mut stdout, served).map_err(io::Error::from)?;
        writeln!(stdout)?;
        stdout.flush()?;
    } else if args.log_format == LogFormat::Json {
        let summary = serde_json::to_value(served).map_err(io::Error::from)?;
        log::write(LogEvent::Summary, &text::head(served), &[("summary", summary)]);
    } else if text::is_worth_saying(served) {
        // Without a reader of the summary, the work is done all the same.
        let _ =
            text::write(served, Style::of_stderr(), &mut BufWriter::new(anstream::stderr().lock()));
    }
    Ok(())
}

/// Warns of an interrupted move on what is served: a move is resumed through a server too, but a
/// mount would destroy data.
fn warn_of_move(target: &Target, graph: &Graph, id: Id) {
    let marked = move_journal::require_unmarked("serve", target, graph, id);
    if let Err(Failure::Message(found)) = marked {
        complain(&format!("warning: {found}; a client that writes before that destroys data"));
    } else if let Err(Failure::Message(found)) = between::require_none("serve", target, graph, id) {
        let rest = "a client that changes the table before that ends it";
        complain(&format!("warning: {found}; {rest}"));
    }
}

/// The opened target and its parts.
struct Opened {
    graph: Graph,
    /// The description of its disks.
    said: DiskOverrides,
    /// Id of the default export's provider.
    id: Id,
    /// The model of every store of the graph, if all of them are simulated drives.
    models: Vec<Model>,
    /// Overlays of the target's disks.
    overlays: Option<Overlays>,
    /// A note on how the disk in a container is written, or why it is not.
    note: Option<String>,
}

/// The access to the disks; beneath an overlay they are only read.
fn access(args: &Serve) -> Access {
    match (args.read_only || args.overlay.is_some(), args.allow_busy) {
        (true, false) => Access::ReadLocked,
        (true, true) => Access::Read,
        (false, false) => Access::Write,
        (false, true) => Access::WriteInUse,
    }
}

/// Opens and tastes the disks, and finds the provider that is the default export.
fn open(args: &Serve, tell: &Arc<Tell>) -> Result<Opened, Failure> {
    emulate::check(args)?;
    if args.target.has_objects() && access(args).writes() {
        return Err(Failure::Message(format!(
            "serve {}: objects are read, not written: say --read-only, or --overlay to write here",
            args.target
        )));
    }
    // A simulated drive describes itself.
    let said = if args.drive.is_some() {
        DiskOverrides::new(&args.disk)?
    } else {
        DiskOverrides::announced(&args.disk, &args.target)?
    };
    let said = said.bypass_cache(args.direct);
    let Serving { disks, models } =
        serving::open(&args.target, args.drive.as_deref(), &said, access(args))?;
    let (disks, overlays) = overlay::put(args, disks)?;
    let several = args.target.sources().len() > 1;
    let disks = if several { watched(disks, tell) } else { disks };
    let graph = Graph::taste_with(disks, Limits::default(), said.keys());
    let id = match args.target.provider() {
        Some(name) => {
            graph.find(name).ok_or_else(|| write_target::no_provider(&args.target, name, &graph))?
        }
        None if several => {
            return Err(Failure::Message(format!(
                "serve {}: several disks: name the provider after a #: #stripe/data",
                args.target
            )));
        }
        None => graph.disk(0),
    };
    let (graph, id, note) = if args.read_only || overlays.is_some() || !models.is_empty() {
        (graph, id, None)
    } else {
        image::for_writing(graph, id, said.keys(), args.allow_busy)
    };
    Ok(Opened { graph, said, id, models, overlays, note })
}

/// The disks of a set: `tell` takes reads of them that fail, because another may answer for one.
fn watched(disks: Vec<Disk>, tell: &Arc<Tell>) -> Vec<Disk> {
    let watch = |disk: Disk| match disk.bytes {
        Bytes::Store(store) => {
            let name = disk.name.clone();
            let store = Watched::new(store, name, tell.clone());
            Disk { bytes: Bytes::Store(Box::new(store)), ..disk }
        }
        bytes => Disk { bytes, ..disk },
    };
    disks.into_iter().map(watch).collect()
}

/// Serves until the command ends, or a signal comes.
fn serve(
    fronts: &[Box<dyn Front>],
    args: &Serve,
    layers: &LayerStack,
    (top, unready): (Option<Top>, Option<Unready>),
) -> Result<ExitCode, Failure> {
    // What cannot be written needs no tasting again.
    let counting = layers.counting().filter(|_| !args.read_only);
    server::run(fronts, counting.map(|counting| &**counting), |ended| {
        wait(fronts, args, layers, (top, unready), ended)
    })?
}

/// Waits until the command ends, a signal comes, or a front ends. The terminal is given back on
/// return.
fn wait(
    fronts: &[Box<dyn Front>],
    args: &Serve,
    layers: &LayerStack,
    (mut top, unready): (Option<Top>, Option<Unready>),
    ended: &mut dyn FnMut() -> bool,
) -> Result<ExitCode, Failure> {
    let mut child = match &args.run {
        Some(command) => Some(child::start(command, fronts, args.json)?),
        None => {
            for front in fronts {
                let (target, place) = (args.target.to_string(), front.place());
                let message = format!("serving {target} at {place}");
                let fields = [("target", target.into()), ("place", place.into())];
                log::write(LogEvent::Serving, &message, &fields);
            }
            if let Some(unready) = unready {
                unready.ready().map_err(|e| format!("serve --fork: {e}"))?;
            }
            None
        }
    };
    while !signal::happened() && !ended() {
        if let Some(status) = child.as_mut().map(Child::status).transpose()?.flatten() {
            return Ok(status);
        }
        top.as_mut().map_or(Ok(()), Top::tick)?;
        layers.tick();
        match &child {
            Some(child) => child.wait_at_most(TICK),
            None => std::thread::sleep(TICK),
        }
    }
    child.map_or(Ok(ExitCode::SUCCESS), Child::end)
}
