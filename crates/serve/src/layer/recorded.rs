//! A store that records its requests, as a trace that `replay` accepts
//! ([`trueline_lab::trace::own`]).
//!
//! One line for each request, failed ones too, in the order of arrival, in ns since the recording
//! began. Several stores may be recorded in one trace, each at its place in the provider of the
//! trace. A discard, or a zeroing without a transfer, is a comment: the format has no such request.
//! So is a request refused before it reached the store, which no drive can replay.
//!
//! # Limits
//! A request is recorded when it reaches the store: one that waits for a thread of its connection
//! does so late. Its line is written within a second, if [`Recorder::pass`] is called. A failed
//! write, such as on a full disk, ends the recording, which is reported once and stays whole up to
//! there; the data of the store are not affected.

mod recording;

pub use recording::Recording;
use trueline_host::lock::lock;

use crate::export::RefusalLog;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard};
use trueline_geom::audit::io::IoKind;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::filter::{Action, Filter, Request};
use trueline_geom::base::store::{Properties, Store};
use trueline_host::clock;
use trueline_host::tracefs::{Operation, Phase, SeenRequest};
use trueline_lab::rig::Op;
use trueline_lab::trace::{TracedRequest, own};

/// A trace under recording.
pub struct Recorder {
    start: u64,
    trace: Mutex<Trace>,
    failed: Box<Failed>,
}

/// A callback for a trace that ends because it cannot be written.
pub type Failed = dyn Fn(&io::Error) + Send + Sync;

struct Trace {
    file: Option<File>,
    /// Lines that are not written yet.
    lines: Vec<u8>,
    /// The length of the file in bytes, all whole lines.
    written: u64,
    /// The time of the last write, in ns.
    at: u64,
    requests: u64,
}

/// The buffered bytes at which lines are written, and the longest time that they wait, in ns.
const LINES: usize = 64 << 10;
const PATIENCE_NS: u64 = 1_000_000_000;

impl Recorder {
    /// A recorder into `file`, which stays unchanged until the recording begins. `about`: lines
    /// that describe the trace.
    pub fn new(file: File, about: &str, failed: Box<Failed>) -> Recorder {
        let mut trace = Trace {
            file: Some(file),
            lines: Vec::with_capacity(2 * LINES),
            written: 0,
            at: 0,
            requests: 0,
        };
        trace.lines.extend(own::HEAD.bytes().chain(*b"\n"));
        for line in about.lines() {
            trace.comment(line);
        }
        Recorder { start: clock::now(), trace: Mutex::new(trace), failed }
    }

    /// Begins the recording: replaces the content of the file.
    pub fn begin(&self) -> io::Result<()> {
        self.trace().write()
    }

    /// Writes lines that have waited long enough.
    pub fn pass(&self) {
        let mut trace = self.trace();
        let at_ns = clock::now().saturating_sub(self.start);
        if !trace.lines.is_empty() && trace.is_due(at_ns) {
            trace.at = at_ns;
            self.write(&mut trace);
        }
    }

    /// The number of recorded requests.
    pub fn requests(&self) -> u64 {
        self.trace().requests
    }

    /// Writes the remaining lines. True if the trace is complete.
    pub fn finish(&self) -> bool {
        let mut trace = self.trace();
        self.write(&mut trace);
        trace.file.is_some()
    }

    fn trace(&self) -> MutexGuard<'_, Trace> {
        lock(&self.trace)
    }

    fn write(&self, trace: &mut Trace) {
        if let Err(error) = trace.write() {
            (self.failed)(&error);
        }
    }

    /// Records a request that the kernel has shown, at the time of its issue, behind the flush that
    /// goes before it. Discards and zeroes, which a trace has no lines for, become comments.
    pub fn record(&self, request: &SeenRequest) {
        let SeenRequest { at_ns, ref phase, flags, offset, length } = *request;
        let Some(offset) = offset.filter(|_| matches!(phase, Phase::Issued(_))) else { return };
        let at_ns = at_ns.saturating_sub(self.start);
        let entry = |op, fua| TracedRequest { at_ns, op, offset, length, fua };
        let flush = TracedRequest { offset: 0, length: 0, ..entry(Op::Flush, false) };
        if flags.preflush {
            self.put(|trace, _| trace.request(&flush));
        }
        let mention =
            |what| self.put(|trace, _| trace.comment(&format!("{at_ns} {what} {offset} {length}")));
        match flags.operation {
            Operation::Flush => self.put(|trace, _| trace.request(&flush)),
            // An empty request is none of a trace.
            _ if length == 0 => {}
            Operation::Read => self.put(|trace, _| trace.request(&entry(Op::Read, false))),
            Operation::Write => self.put(|trace, _| trace.request(&entry(Op::Write, flags.fua))),
            Operation::Discard => mention("discard"),
            Operation::WriteZeroes => mention("zero"),
            Operation::Other => {}
        }
    }

    /// Records the line that `line` makes of the current time. The clock is read under the lock, so
    /// lines are in its order.
    fn put(&self, line: impl FnOnce(&mut Trace, u64)) {
        let mut trace = self.trace();
        if trace.file.is_none() {
            return;
        }
        let at_ns = clock::now().saturating_sub(self.start);
        line(&mut trace, at_ns);
        if trace.lines.len() >= LINES || trace.is_due(at_ns) {
            trace.at = at_ns;
            self.write(&mut trace);
        }
    }
}

impl Trace {
    /// True if, at `at_ns`, lines may have waited long enough.
    fn is_due(&self, at_ns: u64) -> bool {
        at_ns.saturating_sub(self.at) >= PATIENCE_NS
    }

    fn request(&mut self, entry: &TracedRequest) {
        self.lines.extend(own::line(entry).bytes().chain(*b"\n"));
        self.requests += 1;
    }

    fn comment(&mut self, text: &str) {
        self.lines.extend(
            b"# "
                .iter()
                .copied()
                .chain(text.bytes().map(|b| if b.is_ascii_control() { b'?' } else { b }))
                .chain(*b"\n"),
        );
    }

    /// Writes the buffered lines. After an error nothing more is written, and no partial line
    /// remains.
    fn write(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let empty =
            if self.written == 0 { file.set_len(0).and_then(|()| file.rewind()) } else { Ok(()) };
        let done = empty.and_then(|()| file.write_all(&self.lines));
        if done.is_err() {
            // If that fails too, a reader of the trace finds the partial line.
            let _ =
                file.set_len(self.written).and_then(|()| file.seek(SeekFrom::Start(self.written)));
            let lost = self.lines.iter().filter(|&&byte| byte == b'\n').count();
            self.requests = self.requests.saturating_sub(lost as u64);
            self.file = None;
        }
        self.written += self.lines.len() as u64;
        self.lines.clear();
        done
    }
}

/// A store whose requests are recorded.
pub struct Recorded {
    below: Arc<dyn Store>,
    /// The first byte of the store in the provider of the trace.
    place: u64,
    recorder: Arc<Recorder>,
}

impl Recorded {
    /// A recording layer over `below`, which begins at byte `place` of the recorded provider.
    pub fn new(below: Arc<dyn Store>, place: u64, recorder: Arc<Recorder>) -> Recorded {
        Recorded { below, place, recorder }
    }

    /// Writes a request down.
    fn note(&self, request: &Request) {
        let op = match request.action {
            Action::Read => Op::Read,
            Action::Write => Op::Write,
            Action::Flush => Op::Flush,
            Action::Discard => return self.comment("discard", request.offset, request.length),
            Action::Zero => return self.comment("zero", request.offset, request.length),
        };
        // A flush covers everything below, wherever the store begins.
        let place = if op == Op::Flush { 0 } else { self.place };
        let Some(offset) = place.checked_add(request.offset) else { return };
        let Request { length, durable: fua, .. } = *request;
        // An empty request is none of a trace.
        if length > 0 || op == Op::Flush {
            self.recorder.put(|trace, at_ns| {
                trace.request(&TracedRequest { at_ns, op, offset, length, fua })
            });
        }
    }

    fn comment(&self, what: &str, offset: u64, length: u64) {
        let offset = self.place.saturating_add(offset);
        self.recorder
            .put(|trace, at_ns| trace.comment(&format!("{at_ns} {what} {offset} {length}")));
    }
}

/// A log of refused requests in the trace of a recorded export.
pub struct RecordedRefusals {
    /// The first byte of the export in the provider of the trace.
    place: u64,
    recorder: Arc<Recorder>,
}

impl RecordedRefusals {
    /// The log of an export that begins at byte `place` of the recorded provider.
    pub fn new(place: u64, recorder: Arc<Recorder>) -> RecordedRefusals {
        RecordedRefusals { place, recorder }
    }
}

impl RefusalLog for RecordedRefusals {
    fn refused(&self, deed: IoKind, offset: u64, length: u64) {
        let what = match deed {
            IoKind::Read => "R",
            IoKind::Write => "W",
            IoKind::Trim => "discard",
            IoKind::Zero => "zero",
        };
        let offset = self.place.saturating_add(offset);
        self.recorder.put(|trace, at_ns| {
            trace.comment(&format!("{at_ns} refused {what} {offset} {length}"))
        });
    }
}

impl Filter for Recorded {
    fn inner(&self) -> &dyn Store {
        &*self.below
    }

    fn pass(
        &self,
        request: &Request,
        run: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        self.note(request);
        run()
    }

    fn attempt<T>(
        &self,
        request: &Request,
        run: impl FnOnce() -> Result<Option<T>, Errno>,
    ) -> Result<Option<T>, Errno> {
        let tried = run();
        // What is declined comes again.
        if !matches!(tried, Ok(None)) {
            self.note(request);
        }
        tried
    }

    fn offered(&self) -> Properties {
        self.below.properties()
    }
}

#[cfg(test)]
mod tests;
