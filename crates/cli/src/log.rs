//! Lines on stderr: for people, or, for programs that keep a server's log, JSON objects.

use crate::style::Style;
use crate::words::{columns, date, escape};
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::Write;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Form of the lines of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogForm {
    /// A line for people.
    Text = 0,
    /// A JSON object on a line.
    Json = 1,
    /// No line at all.
    Silent = 2,
}

static FORM: AtomicU8 = AtomicU8::new(LogForm::Text as u8);

impl LogForm {
    /// Makes it the form of every later line.
    pub(crate) fn choose(self) {
        FORM.store(self as u8, Ordering::Relaxed);
    }

    /// The form of this process's lines.
    pub(crate) fn chosen() -> LogForm {
        match FORM.load(Ordering::Relaxed) {
            0 => LogForm::Text,
            1 => LogForm::Json,
            _ => LogForm::Silent,
        }
    }
}

/// Subject of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LogEvent {
    /// Any other subject: notes, warnings.
    Message,
    /// The server takes clients: `target`, `place`.
    Serving,
    /// A client was cut off.
    Client,
    /// A read of a disk failed: `disk`, `offset`, `length`, `failed_reads`.
    ReadFailed,
    /// An address is served without TLS: `place`.
    Exposed,
    /// Later layouts are counted late, or not at all.
    Counting,
    /// A recording has ended: `path`, `requests`.
    Recording,
    /// Requests off the grain were refused: `requests`.
    Refused,
    /// A rule of faults: `rule`, `hits`, `requests`.
    Fault,
    /// The contents of an overlay: `place`, `written_bytes`, `zeroed_bytes`.
    Overlay,
    /// The counters at the end: `summary`.
    Summary,
    /// Times of emulated drives: `emulation`.
    Emulation,
    /// The reason for which the server ends.
    Error,
}

impl LogEvent {
    fn level(self) -> &'static str {
        match self {
            LogEvent::Error => "error",
            LogEvent::Client
            | LogEvent::ReadFailed
            | LogEvent::Exposed
            | LogEvent::Counting
            | LogEvent::Refused => "warning",
            _ => "info",
        }
    }
}

/// A line as an object.
#[derive(Serialize)]
struct Line<'a> {
    time: String,
    level: &'static str,
    event: LogEvent,
    message: &'a str,
    #[serde(flatten)]
    fields: &'a Map<String, Value>,
}

/// Writes a line: `message` for people, with `fields` beside it for programs. If nothing reads it,
/// the exit status still speaks.
pub(crate) fn write(event: LogEvent, message: &str, fields: &[(&str, Value)]) {
    let line = match LogForm::chosen() {
        LogForm::Silent => return,
        LogForm::Text => {
            let text = format!("trueline: {}", escape::plain(&escape::short(message)));
            let mut line = Vec::new();
            // A vector takes all.
            let _ = columns::line(&text, Style::of_stderr().width, &mut line);
            line
        }
        LogForm::Json => object(event, message, fields),
    };
    let _ = anstream::stderr().write_all(&line);
}

/// The line as a JSON object, whole: two threads do not mix theirs.
fn object(event: LogEvent, message: &str, fields: &[(&str, Value)]) -> Vec<u8> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let fields = fields.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    let message = &escape::short(message);
    let (time, level) = (date::instant(since), event.level());
    let line = Line { time, level, event, message, fields: &fields };
    let mut text = serde_json::to_vec(&line).unwrap_or_default();
    text.push(b'\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_object_whatever_it_says() {
        let line = object(LogEvent::Fault, "a\n\"b\" \u{1b}[31m", &[("hits", 3.into())]);
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        let read: Value = serde_json::from_slice(&line).expect("an object");
        assert_eq!((&read["event"], &read["level"]), (&"fault".into(), &"info".into()));
        assert_eq!((&read["hits"], &read["message"]), (&3.into(), &"a\n\"b\" \u{1b}[31m".into()));
    }
}
