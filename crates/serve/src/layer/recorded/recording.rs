//! `--record`: the file, and which exports are in it.

use crate::command::serve::args::Serve;
use crate::failure::{Failure, complain};
use crate::words;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trueline_geom::graph::{Graph, Id};
use trueline_geom::mapping::route::Route;
use trueline_host::disk::locks;
use trueline_lab::trace::own;
use trueline_serve::layer::recorded::Recorder;

/// A trace of the default export: requests to what lies in it are in it, at their place.
pub(super) struct Record {
    path: PathBuf,
    route: Route,
    recorder: Arc<Recorder>,
}

impl Record {
    /// Makes it ready: what is in the file stays there until [`Record::begin`].
    pub(super) fn new(path: &Path, graph: &Graph, id: Id, args: &Serve) -> Result<Record, Failure> {
        let failed = |why: String| Failure::Message(format!("record {}: {why}", path.display()));
        let file = create(path).map_err(failed)?;
        let provider = &graph.providers[id];
        let route = provider.route().clone();
        let name = words::name(&provider.name);
        let about = format!("{name} of {}, {} bytes; offsets are its own, of requests to its partitions too", args.target, route.length());
        let told = path.display().to_string();
        let lost = move |e: &std::io::Error| {
            complain(&format!("record {told}: {}: the trace ends here, what is served does not", words::os(e)));
        };
        Ok(Record { path: path.to_owned(), route, recorder: Arc::new(Recorder::new(file, &about, Box::new(lost))) })
    }

    /// Begins it, in the place of what was in the file.
    pub(super) fn begin(&self) -> Result<(), Failure> {
        self.recorder.begin().map_err(|e| Failure::Message(format!("record {}: {}", self.path.display(), words::os(&e))))
    }

    /// Where `route` begins in what is recorded; [`None`] if it is not: what stands on a set of partitions of the default export.
    pub(super) fn place(&self, route: &Route) -> Option<u64> {
        route.place_in(&self.route)
    }

    /// Where it is written.
    pub(super) fn recorder(&self) -> Arc<Recorder> {
        self.recorder.clone()
    }

    /// Writes what is not written yet.
    pub(super) fn end(self) -> Result<(), Failure> {
        let (path, whole) = (self.path.display(), self.recorder.finish());
        let requests = self.recorder.requests();
        match whole {
            true => complain(&format!("record {path}: {requests} requests")),
            false => return Err(Failure::Message(format!("record {path}: only the first {requests} requests are in it"))),
        }
        Ok(())
    }
}

/// A new file, or a trace that will be made anew: nothing else is written over, nor what another server writes.
fn create(path: &Path) -> Result<File, String> {
    let why = |e: std::io::Error| words::os(&e);
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => return Err("it is no file: name a new one".into()),
        _ => {}
    }
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(why)?;
    let mut head = Vec::new();
    file.by_ref().take(own::HEAD.len() as u64).read_to_end(&mut head).map_err(why)?;
    if !head.is_empty() && head != own::HEAD.as_bytes() {
        return Err("it is there and no trace: name a new file".into());
    }
    if locks::keep(&file) { Ok(file) } else { Err("another server writes it: name another file".into()) }
}
