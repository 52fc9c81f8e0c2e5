//! The end of a command that failed: its reason, and the line on stderr.

use crate::style::Style;
use crate::words::{self, columns, escape};
use std::io::{self, Write};
use trueline_serve::error::{Error, RecordingError};

/// Reason for which a command ended early.
pub(crate) enum Failure {
    /// The work could not be done: one line on stderr.
    Message(String),
    /// The output has no reader any more (`| head`): the command ends in silence.
    Pipe,
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure::Message(message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Message(match &error {
            Error::Recording { path, cause: RecordingError::Os(why) } => {
                format!("record {}: {}", path.display(), words::os(why))
            }
            _ => error.to_string(),
        })
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Pipe,
            _ => Failure::Message(format!("write the output: {error}")),
        }
    }
}

/// One line on stderr, whatever names the message holds; on a terminal it is broken to fit. If
/// nothing reads it, the exit status still speaks.
pub(crate) fn complain(message: &str) {
    let text = format!("trueline: {}", escape::plain(&escape::short(message)));
    let mut line = Vec::new();
    let _ = columns::line(&text, Style::of_stderr().width, &mut line)
        .and_then(|()| anstream::stderr().write_all(&line));
}
