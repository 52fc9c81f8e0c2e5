//! Errors of traces: a place, and the fault that was found there.

use super::Position;
use std::fmt;

/// A trace that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The place of the fault.
    pub place: Position,
    /// The fault that was found there.
    pub fault: Fault,
}

/// A fault of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The operating system's message.
    Read(String),
    /// There are no bytes.
    Empty,
    /// The first bytes belong to no known format.
    UnknownFormat,
    /// A line is longer than so many bytes.
    LongLine(u64),
    /// A line or record ends early: what it is, and what it must have.
    Cut {
        /// The line or record, with its size if that is known.
        what: String,
        /// The form that it must have.
        form: String,
    },
    /// A line has another form than this one.
    Form(&'static str),
    /// A word is not what stands at its place: `time`, `number`.
    Word {
        /// The word as it is in the trace.
        word: String,
        /// The kind of word that is expected.
        wanted: &'static str,
    },
    /// A record of blktrace begins with another magic number.
    Magic {
        /// The number that is there.
        found: u32,
        /// The number that is expected.
        wanted: u32,
    },
    /// An action that the format does not have.
    Action(String),
    /// A request with an action but without its range.
    NoRange(String),
    /// A request with flags that neither read nor write.
    NoTransfer(String),
    /// A time in microseconds that exceeds 2^64 nanoseconds: `timestamp` or `wait`.
    LongTime(&'static str, u64),
    /// A read or write of no bytes.
    NoBytes,
    /// The end of a request exceeds 2^64 bytes.
    PastEnd(String),
    /// Requests on two devices or files.
    TwoTargets(String, String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Read(why) => f.write_str(why),
            Fault::Empty => f.write_str("the file is empty"),
            Fault::UnknownFormat => f.write_str(
                "not a trace: neither blktrace, blkparse, a log of fio (version 2 or 3), nor trueline's own",
            ),
            Fault::LongLine(most) => write!(f, "a line longer than {most} bytes"),
            Fault::Cut { what, form } => write!(f, "{what}, cut short: {form}"),
            Fault::Form(form) => write!(f, "not {form}"),
            Fault::Word { word, wanted } => write!(f, "'{word}' is not a {wanted}"),
            Fault::Magic { found, wanted } => {
                write!(f, "not a record of blktrace: it begins with 0x{found:08x}, not \
                    0x{wanted:08x}")
            }
            Fault::Action(action) => write!(f, "unknown action {action}"),
            Fault::NoRange(request) => f.write_str(request),
            Fault::NoTransfer(flags) => write!(f, "'{flags}' is neither a read nor a write"),
            Fault::LongTime(what, us) => write!(f, "a {what} of {us} us is too long"),
            Fault::NoBytes => f.write_str("a request of 0 bytes"),
            Fault::PastEnd(range) => write!(f, "{range}: past the end of any device"),
            Fault::TwoTargets(first, second) => {
                write!(f, "requests on {first} and on {second}: a replay has one target")
            }
        }
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.fault)
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.fault)
    }
}
