//! The end of a command that failed: its reason, and the line on stderr.

use crate::log::{self, LogEvent};
use crate::words;
use std::fmt;
use std::io;
use std::process::ExitCode;
use trueline_host::error::{Error as HostError, Remedy};
use trueline_lab::error::{Error as LabFailure, Remedy as LabRemedy};
use trueline_lab::study::LabError;
use trueline_serve::error::{Error, RecordingError};

/// Reason for which a command ended early.
pub(crate) enum Failure {
    /// The work could not be done: one line on stderr.
    Message(String),
    /// The output has no reader any more (`| head`): the command ends in silence.
    Pipe,
}

impl Failure {
    /// The end of the program: what could not be done, on stderr, and the exit status.
    pub(crate) fn end(self) -> ExitCode {
        match self {
            Failure::Pipe => ExitCode::SUCCESS,
            Failure::Message(message) => {
                log::write(LogEvent::Error, &message, &[]);
                ExitCode::from(2)
            }
        }
    }
}

/// Reason for which something could not be done, in one line: the attempt, its place, the finding,
/// the advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason(pub(crate) String);

impl Reason {
    /// The reason behind its place or attempt: `open a.img: …`.
    pub(crate) fn behind(self, place: impl fmt::Display) -> Reason {
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
    trueline_sim::model::ModelRefusal
);

impl From<HostError> for Reason {
    fn from(error: HostError) -> Reason {
        Reason(worded_host(&error))
    }
}

impl From<LabFailure> for Reason {
    fn from(error: LabFailure) -> Reason {
        Reason(worded_lab(&error))
    }
}

impl From<LabError> for Reason {
    fn from(error: LabError) -> Reason {
        let cause = Reason::from(error.cause);
        error.line.map_or(cause.clone(), |line| cause.behind(format_args!("line {line}")))
    }
}

/// An error of a measurement with the options of `bench` and `lab` that mend it.
pub(crate) fn worded_lab(error: &LabFailure) -> String {
    let LabFailure { message, remedy } = error;
    match remedy {
        None => message.clone(),
        Some(LabRemedy::NameTrace) => format!("{message}: name one with --trace FILE"),
        Some(LabRemedy::Wrap) => format!("{message}: --wrap folds them into it"),
        Some(LabRemedy::FewerRows) => format!("{message}: run fewer rows at a time with --row"),
        Some(LabRemedy::SmallerShare) => {
            format!("{message}: fewer --points, or a smaller --shard; --unlimited lifts the limit")
        }
        Some(LabRemedy::FewerRowsOrPoints) => {
            format!("{message}: run fewer rows at a time with --row, or fewer points with --sweep")
        }
    }
}

/// An error of this host with the options that go on all the same.
fn worded_host(error: &HostError) -> String {
    match error.remedy {
        Remedy::Release => error.with_remedy("release it first, or say --allow-busy"),
        Remedy::EndWriter => error.with_remedy("end that program first, or say --allow-busy"),
        Remedy::SetWritable => {
            error.with_remedy("blockdev --setrw may change that; to serve it say --read-only")
        }
        Remedy::ExportWritable => error.with_remedy(
            "say --read-only or --overlay mem, or let the server export it for writing",
        ),
        Remedy::LoadUblk => {
            error.with_remedy(&format!("{}, or say --fuse and use losetup", error.remedy))
        }
        Remedy::None | Remedy::Text(_) | Remedy::UsePageCache => error.to_string(),
    }
}

/// An error of opening a disk past the page cache, with the advice to do without.
pub(crate) fn without_direct(error: HostError, advice: &str) -> Reason {
    match error.remedy {
        Remedy::UsePageCache => Reason(error.with_remedy(advice)),
        _ => error.into(),
    }
}

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
            "serve: the service manager passed sockets: leave out --nbd, or write it in the \
                unit"
                .into()
        }
        Error::NoCertificates => {
            "serve: TLS needs --tls-certificates DIR with server-cert.pem and server-key.pem; \
                pre-shared keys are not supported"
                .into()
        }
        Error::Host(error) => worded_host(error),
        Error::Recording { .. } | Error::OwnOverlay { .. } => error.to_string(),
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

/// One line on stderr, whatever names the message holds; on a terminal it is broken to fit.
pub(crate) fn complain(message: &str) {
    log::write(LogEvent::Message, message, &[]);
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
