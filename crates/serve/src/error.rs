//! Errors of putting a server together and of ending it: what was attempted, what was found. They
//! name no options: a command line words its own.

use crate::export::Outside;
use std::fmt;
use std::io;
use std::path::PathBuf;
use trueline_host::error::Error as HostError;

/// A server that cannot be, or that could not end as it should.
#[derive(Debug)]
pub enum Error {
    /// A file, socket, mount or device that this machine refuses.
    Host(HostError),
    /// A recording that cannot be made.
    Recording {
        /// The file that it was to be in.
        path: PathBuf,
        /// The obstacle to the recording.
        cause: RecordingError,
    },
    /// Refusal of requests off the grain where no grain is known.
    NoGrain {
        /// The target, as it was named.
        target: String,
    },
    /// A range that is not inside the target.
    Range(Outside),
    /// An overlay that was to be kept on the disk that it is put over.
    OwnOverlay {
        /// The disk, as it was named.
        disk: String,
    },
    /// An address to listen on where a service manager has passed sockets.
    Listeners,
    /// A demand for TLS without certificates.
    NoCertificates,
}

/// The obstacle to a recording.
#[derive(Debug)]
pub enum RecordingError {
    /// The operating system's answer.
    Os(io::Error),
    /// A directory, device or socket stands there.
    NotAFile,
    /// A file with other content stands there.
    NotATrace,
    /// Another server writes it.
    Busy,
    /// Writing failed: only the first requests are in it, so many.
    Cut(u64),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Host(error) => error.fmt(f),
            Error::Recording { path, cause } => write!(f, "record {}: {cause}", path.display()),
            Error::NoGrain { target } => {
                write!(f, "serve {target}: nothing is known of its units, so none is refused")
            }
            Error::Range(outside) => write!(f, "serve bytes {}: {outside}", outside.written()),
            Error::OwnOverlay { disk } => write!(f, "put an overlay over {disk}: it is that disk \
                itself: name a new file"),
            Error::Listeners => f.write_str("serve: sockets were passed, and another address is \
                given"),
            Error::NoCertificates => f.write_str(
                "serve: TLS needs a directory with server-cert.pem and server-key.pem; pre-shared keys are not supported",
            ),
        }
    }
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordingError::Os(error) => error.fmt(f),
            RecordingError::NotAFile => f.write_str("it is not a regular file: name a new one"),
            RecordingError::NotATrace => f.write_str("it is there and no trace: name a new file"),
            RecordingError::Busy => f.write_str("another server writes it: name another file"),
            RecordingError::Cut(requests) => {
                write!(f, "only the first {requests} requests are in it")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Host(error) => error.source(),
            Error::Recording { cause: RecordingError::Os(error), .. } => Some(error),
            _ => None,
        }
    }
}

impl From<HostError> for Error {
    fn from(error: HostError) -> Error {
        Error::Host(error)
    }
}

impl From<Outside> for Error {
    fn from(outside: Outside) -> Error {
        Error::Range(outside)
    }
}
