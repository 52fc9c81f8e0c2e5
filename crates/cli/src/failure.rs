//! The end of a command that failed: its reason, and the line on stderr.

use crate::style::Style;
use crate::words::{self, columns, escape};
use std::fmt;
use std::io::{self, Write};
use trueline_serve::error::{Error, RecordingError};

/// Reason for which a command ended early.
pub(crate) enum Failure {
    /// The work could not be done: one line on stderr.
    Message(String),
    /// The output has no reader any more (`| head`): the command ends in silence.
    Pipe,
}

/// Reason for which something could not be done, in one line: the attempt, its place, the finding,
/// the advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason(pub(crate) String);

impl Reason {
    /// The reason behind its place or attempt: `open a.img: …`.
    pub(crate) fn at(self, place: impl fmt::Display) -> Reason {
        Reason(format!("{place}: {self}"))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Reason {}

impl From<String> for Reason {
    fn from(message: String) -> Reason {
        Reason(message)
    }
}

impl From<&str> for Reason {
    fn from(message: &str) -> Reason {
        Reason(message.to_owned())
    }
}

/// Errors of libraries that are whole sentences.
macro_rules! from_errors {
    ($($error:ty),*) => {
        $(impl From<$error> for Reason {
            fn from(error: $error) -> Reason {
                Reason(error.to_string())
            }
        })*
    };
}

from_errors!(
    trueline_geom::base::error::Errno,
    trueline_geom::base::store::NotHexdump,
    trueline_host::error::Error,
    trueline_lab::error::Error,
    trueline_lab::study::LabError,
    trueline_sim::model::Refusal
);

impl From<io::Error> for Reason {
    fn from(error: io::Error) -> Reason {
        Reason(words::os(&error))
    }
}

impl From<Reason> for Failure {
    fn from(reason: Reason) -> Failure {
        Failure::Message(reason.0)
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure::Message(message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Message(worded(&error))
    }
}

/// An error of a server with the options of `serve` that caused it, or that mend it.
fn worded(error: &Error) -> String {
    match error {
        Error::Recording { path, cause: RecordingError::Os(why) } => {
            format!("record {}: {}", path.display(), words::os(why))
        }
        Error::NoGrain { target } => {
            format!("serve {target}: --strict: nothing is known of its units: say --physical 4096")
        }
        Error::Range(outside) => format!("--offset {}: {outside}", outside.written()),
        Error::Listeners => {
            "serve: the service manager passed sockets: leave out --nbd, or write it in the unit".into()
        }
        Error::NoCertificates => {
            "serve: TLS needs --tls-certificates DIR with server-cert.pem and server-key.pem; pre-shared keys are not supported".into()
        }
        Error::Host(_) | Error::Recording { .. } | Error::OwnOverlay { .. } => error.to_string(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use trueline_serve::export::Range;

    /// The library speaks of facts, and the command line of its options.
    #[test]
    fn errors_of_a_server_name_options_here_alone() {
        let range = |start, length| Range { start, length }.within(10).map(|_| ()).unwrap_err();
        let errors = [
            (Error::NoGrain { target: "a.img".into() }, "--strict"),
            (Error::Range(range(10, Some(1))), "--offset 10: the target has 10 bytes"),
            (Error::Range(range(4, Some(7))), "--offset 4+7: 6 bytes are there from byte 4 on"),
            (Error::Listeners, "--nbd"),
            (Error::NoCertificates, "--tls-certificates DIR"),
        ];
        for (error, wanted) in errors {
            assert!(!error.to_string().contains("--"), "{error}");
            assert!(worded(&error).contains(wanted), "{}", worded(&error));
        }
    }
}
