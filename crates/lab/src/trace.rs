//! Block traces, one format a file: blktrace's records, blkparse's text, fio's logs, and our own.
//!
//! A trace is read one request at a time, so it may be of any length; a line may not. An error
//! names its line or byte. Records other than reads, writes and flushes (discards, notes) are
//! skipped and counted.

use crate::rig::Op;
use std::collections::VecDeque;
use std::fmt;
use std::io::{BufRead, Read};

pub mod blkparse;
pub mod blktrace;
mod error;
pub mod fio;
pub mod own;

pub use error::{Fault, TraceError};

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedRequest {
    /// The time of submission in ns since an arbitrary start, never decreasing.
    pub at_ns: u64,
    /// The operation of the request.
    pub op: Op,
    /// The offset of the first byte.
    pub offset: u64,
    /// The length in bytes; 0 for a flush.
    pub length: u64,
    /// True if a write must be on the medium before it is done (force unit access).
    pub fua: bool,
}

/// A place in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// The number of a line, from 1.
    Line(u64),
    /// The offset of a byte, from 0.
    Byte(u64),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Line(line) => write!(f, "line {line}"),
            Position::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

/// A reader of one trace format.
trait Format {
    /// Reads the next line or record, and appends its requests to `found`. False at the end; an
    /// error has no place yet.
    fn read(
        &mut self,
        input: &mut Input<'_>,
        found: &mut VecDeque<TracedRequest>,
    ) -> Result<bool, Fault>;
}

/// The input of a format, with the current place.
struct Input<'a> {
    bytes: Box<dyn BufRead + 'a>,
    place: Position,
    line: Vec<u8>,
    skipped: u64,
}

/// The longest line in bytes.
const LONGEST: u64 = 64 << 10;

impl Input<'_> {
    /// The next line without its end; `None` at the end of the trace.
    fn line(&mut self) -> Result<Option<String>, Fault> {
        let Position::Line(line) = &mut self.place else { return Ok(None) };
        *line += 1;
        self.line.clear();
        let read = self
            .bytes
            .by_ref()
            .take(LONGEST)
            .read_until(b'\n', &mut self.line)
            .map_err(|e| Fault::Read(e.to_string()))?;
        if read as u64 == LONGEST && self.line.last() != Some(&b'\n') {
            return Err(Fault::LongLine(LONGEST));
        }
        Ok((read > 0).then(|| String::from_utf8_lossy(&self.line).trim_end().to_owned()))
    }
}

/// A trace under way, as an iterator of its requests.
pub struct Trace<'a> {
    input: Input<'a>,
    format: Box<dyn Format + 'a>,
    found: VecDeque<TracedRequest>,
    latest: u64,
    ended: bool,
}

impl<'a> Trace<'a> {
    /// Starts reading a trace. Its first bytes determine the format.
    pub fn new(mut bytes: Box<dyn BufRead + 'a>) -> Result<Trace<'a>, TraceError> {
        let refused = |fault| TraceError { place: Position::Byte(0), fault };
        let head = bytes.fill_buf().map_err(|e| refused(Fault::Read(e.to_string())))?;
        if head.is_empty() {
            return Err(refused(Fault::Empty));
        }
        let text = String::from_utf8_lossy(&head[..head.len().min(64)]).into_owned();
        let (format, place): (Box<dyn Format>, Position) =
            if let Some(format) = blktrace::Blktrace::recognise(head) {
                (Box::new(format), Position::Byte(0))
            } else if let Some(format) = fio::Fio::recognise(&text) {
                (Box::new(format), Position::Line(0))
            } else if let Some(format) = own::Own::recognise(&text) {
                (Box::new(format), Position::Line(0))
            } else if blkparse::begins(&text) {
                (Box::new(blkparse::Blkparse::default()), Position::Line(0))
            } else {
                return Err(refused(Fault::UnknownFormat));
            };
        let input = Input { bytes, place, line: Vec::new(), skipped: 0 };
        Ok(Trace { input, format, found: VecDeque::new(), latest: 0, ended: false })
    }

    /// The place of the latest record that was read.
    pub fn place(&self) -> Position {
        self.input.place
    }

    /// The number of records skipped so far.
    pub fn skipped(&self) -> u64 {
        self.input.skipped
    }
}

impl Iterator for Trace<'_> {
    type Item = Result<TracedRequest, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.found.is_empty() && !self.ended {
            let before = self.input.place;
            match self.format.read(&mut self.input, &mut self.found) {
                Ok(more) => self.ended = !more,
                Err(fault) => {
                    self.ended = true;
                    let place =
                        if matches!(before, Position::Byte(_)) { before } else { self.input.place };
                    return Some(Err(TraceError { place, fault }));
                }
            }
        }
        let mut entry = self.found.pop_front()?;
        // The processors' records are merged slightly out of order.
        self.latest = self.latest.max(entry.at_ns);
        entry.at_ns = self.latest;
        Some(Ok(entry))
    }
}

/// A read or write, checked: not empty, and its end below 2^64.
fn transfer(
    at_ns: u64,
    op: Op,
    offset: u64,
    length: u64,
    fua: bool,
) -> Result<TracedRequest, Fault> {
    if length == 0 {
        return Err(Fault::NoBytes);
    }
    match offset.checked_add(length) {
        Some(_) => Ok(TracedRequest { at_ns, op, offset, length, fua }),
        None => Err(Fault::PastEnd(format!("{length} bytes at {offset}"))),
    }
}

/// A flush at `at_ns` nanoseconds.
fn flush(at_ns: u64) -> TracedRequest {
    TracedRequest { at_ns, op: Op::Flush, offset: 0, length: 0, fua: false }
}

#[cfg(test)]
mod tests;
