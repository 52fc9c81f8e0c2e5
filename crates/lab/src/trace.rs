//! Block traces, one format a file: blktrace's own, blkparse's text, fio's logs, and ours.
//!
//! A trace is read as it is needed, a request at a time, so it may be of any length; a line may not. What is wrong is named with its line
//! or its byte. What neither reads, writes nor flushes (discards, notes) is passed over and counted.

use crate::rig::Op;
use std::collections::VecDeque;
use std::fmt;
use std::io::{BufRead, Read};

pub mod blkparse;
pub mod blktrace;
pub mod fio;
pub mod own;

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When it was asked, in ns from any beginning; never before the one before it.
    pub at_ns: u64,
    /// What it does.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Bytes; 0 of a flush.
    pub length: u64,
    /// Whether a write is done only when it is on the medium.
    pub fua: bool,
}

/// Where in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line, from 1.
    Line(u64),
    /// A byte, from 0.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}"),
            Place::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

/// Why a trace is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for Refusal {}

/// Puts what one line or record says behind `found`; `Err` in words.
trait Format {
    /// Reads the next line or record; `false` at the end.
    fn read(&mut self, input: &mut Input<'_>, found: &mut VecDeque<Entry>) -> Result<bool, String>;
}

/// What a format reads from.
struct Input<'a> {
    bytes: Box<dyn BufRead + 'a>,
    place: Place,
    line: Vec<u8>,
    skipped: u64,
}

/// The longest line.
const LONGEST: u64 = 64 << 10;

impl Input<'_> {
    /// The next line without its end; `None` at the end of the trace.
    fn line(&mut self) -> Result<Option<String>, String> {
        let Place::Line(line) = &mut self.place else { return Ok(None) };
        *line += 1;
        self.line.clear();
        let read = self.bytes.by_ref().take(LONGEST).read_until(b'\n', &mut self.line).map_err(|e| e.to_string())?;
        if read as u64 == LONGEST && self.line.last() != Some(&b'\n') {
            return Err(format!("longer than {LONGEST} bytes"));
        }
        Ok((read > 0).then(|| String::from_utf8_lossy(&self.line).trim_end().to_owned()))
    }
}

/// A trace that is being read.
pub struct Trace<'a> {
    input: Input<'a>,
    format: Box<dyn Format + 'a>,
    found: VecDeque<Entry>,
    latest: u64,
    ended: bool,
}

impl<'a> Trace<'a> {
    /// Begins to read; the first bytes tell the format.
    pub fn new(mut bytes: Box<dyn BufRead + 'a>) -> Result<Trace<'a>, Refusal> {
        let refused = |message: String| Refusal { place: Place::Byte(0), message };
        let head = bytes.fill_buf().map_err(|e| refused(e.to_string()))?;
        if head.is_empty() {
            return Err(refused("there is nothing in it".into()));
        }
        let text = String::from_utf8_lossy(&head[..head.len().min(64)]).into_owned();
        let (format, place): (Box<dyn Format>, Place) = if let Some(format) = blktrace::Blktrace::of(head) {
            (Box::new(format), Place::Byte(0))
        } else if let Some(format) = fio::Fio::of(&text) {
            (Box::new(format), Place::Line(0))
        } else if let Some(format) = own::Own::of(&text) {
            (Box::new(format), Place::Line(0))
        } else if blkparse::begins(&text) {
            (Box::new(blkparse::Blkparse::default()), Place::Line(0))
        } else {
            return Err(refused("no trace: neither blktrace, blkparse, a log of fio (version 2 or 3), nor trueline's own".into()));
        };
        let input = Input { bytes, place, line: Vec::new(), skipped: 0 };
        Ok(Trace { input, format, found: VecDeque::new(), latest: 0, ended: false })
    }

    /// Where the request was that came last.
    pub fn place(&self) -> Place {
        self.input.place
    }

    /// What was passed over so far.
    pub fn skipped(&self) -> u64 {
        self.input.skipped
    }
}

impl Iterator for Trace<'_> {
    type Item = Result<Entry, Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.found.is_empty() && !self.ended {
            let before = self.input.place;
            match self.format.read(&mut self.input, &mut self.found) {
                Ok(more) => self.ended = !more,
                Err(message) => {
                    self.ended = true;
                    let place = if matches!(before, Place::Byte(_)) { before } else { self.input.place };
                    return Some(Err(Refusal { place, message }));
                }
            }
        }
        let mut entry = self.found.pop_front()?;
        // Of several processors, records come a little out of order.
        self.latest = self.latest.max(entry.at_ns);
        entry.at_ns = self.latest;
        Some(Ok(entry))
    }
}

/// A read or a write that can be.
fn transfer(at_ns: u64, op: Op, offset: u64, length: u64, fua: bool) -> Result<Entry, String> {
    if length == 0 {
        return Err("a request of 0 bytes".into());
    }
    match offset.checked_add(length) {
        Some(_) => Ok(Entry { at_ns, op, offset, length, fua }),
        None => Err(format!("{length} bytes at {offset}: past the end of any device")),
    }
}

/// A flush.
fn flush(at_ns: u64) -> Entry {
    Entry { at_ns, op: Op::Flush, offset: 0, length: 0, fua: false }
}

#[cfg(test)]
mod tests;
