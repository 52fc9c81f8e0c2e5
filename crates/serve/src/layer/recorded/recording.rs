//! A recording of one provider: the file that it is in, and what of an export is part of it.

use super::Recorder;
use crate::error::{Error, RecordingError};
use crate::notice::{Notice, Tell};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trueline_geom::base::escape;
use trueline_geom::graph::{Graph, Id};
use trueline_geom::mapping::route::Route;
use trueline_host::disk::locks;
use trueline_lab::trace::own;

/// A trace of one provider. Requests to what lies in it are part of the trace, at their place.
pub struct Recording {
    path: PathBuf,
    route: Route,
    recorder: Arc<Recorder>,
}

impl Recording {
    /// Opens the file, and leaves its content until [`Recording::begin`]. Provider `id` of `graph`,
    /// which is `target`, is recorded; `tell` is called if the trace ends early.
    pub fn new(
        path: &Path,
        graph: &Graph,
        id: Id,
        target: &str,
        tell: Arc<Tell>,
    ) -> Result<Recording, Error> {
        let file =
            create(path).map_err(|cause| Error::Recording { path: path.to_owned(), cause })?;
        let provider = &graph.providers[id];
        let route = provider.route().clone();
        let name = escape::name(&provider.name);
        let about = format!(
            "{name} of {target}, {} bytes; offsets are its own, of requests to its partitions too",
            route.length()
        );
        let place = path.to_owned();
        let lost = move |error: &io::Error| {
            tell(&Notice::RecordingEnds { path: place.clone(), error: copy(error) })
        };
        Ok(Recording {
            path: path.to_owned(),
            route,
            recorder: Arc::new(Recorder::new(file, &about, Box::new(lost))),
        })
    }

    /// Begins the trace, in the place of what was in the file.
    pub fn begin(&self) -> Result<(), Error> {
        self.recorder.begin().map_err(|e| self.error(RecordingError::Os(e)))
    }

    /// The byte of what is recorded at which `route` begins. [`None`] if it is not in there: what
    /// stands on a set of partitions of it.
    pub fn place(&self, route: &Route) -> Option<u64> {
        route.place_in(&self.route)
    }

    /// The recorder that layers write to.
    pub fn recorder(&self) -> Arc<Recorder> {
        self.recorder.clone()
    }

    /// The file that it is in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what is not written yet. The number of requests that are in the trace.
    pub fn end(&self) -> Result<u64, Error> {
        let whole = self.recorder.finish();
        let requests = self.recorder.requests();
        if whole { Ok(requests) } else { Err(self.error(RecordingError::Cut(requests))) }
    }

    fn error(&self, cause: RecordingError) -> Error {
        Error::Recording { path: self.path.clone(), cause }
    }
}

/// The same answer of the operating system once more.
fn copy(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// A new file, or a trace that will be made anew: no other file is written over, nor one that
/// another server writes.
fn create(path: &Path) -> Result<File, RecordingError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => return Err(RecordingError::NotAFile),
        _ => {}
    }
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    let mut file = file.map_err(RecordingError::Os)?;
    let mut head = Vec::new();
    file.by_ref()
        .take(own::HEAD.len() as u64)
        .read_to_end(&mut head)
        .map_err(RecordingError::Os)?;
    if !head.is_empty() && head != own::HEAD.as_bytes() {
        return Err(RecordingError::NotATrace);
    }
    if locks::keep(&file) { Ok(file) } else { Err(RecordingError::Busy) }
}
