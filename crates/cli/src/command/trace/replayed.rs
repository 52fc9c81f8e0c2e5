//! The requests of a trace in a file, counted.

use crate::command::trace::observation::Observation;
use crate::failure::{Failure, Reason};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use trueline_host::error::Error;
use trueline_lab::trace::Trace;

/// Adds every request of the trace in `file`.
pub(super) fn observe(file: &Path, mut seen: Observation) -> Result<Observation, Failure> {
    let failed = |error| Reason(format!("read {}: {error}", file.display()));
    let opened = File::open(file).map_err(|e| Reason::from(Error::os("open", file, e)))?;
    let mut trace = Trace::new(Box::new(BufReader::with_capacity(1 << 16, opened)))
        .map_err(|error| failed(error.to_string()))?;
    let mut began = None;
    for request in &mut trace {
        let request = request.map_err(|error| failed(error.to_string()))?;
        let first = *began.get_or_insert(request.at_ns);
        seen.duration_ns = request.at_ns.saturating_sub(first);
        seen.replay(&request);
    }
    seen.other = trace.skipped();
    Ok(seen)
}
