//! Events that a user is told of while a server runs.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// An event of a server that runs.
#[derive(Debug)]
pub enum Notice {
    /// So many providers were made that further ones are not followed.
    TooMuch,
    /// Tasting has taken this time, and is done seldom from now on.
    Slow(Duration),
    /// A recording ends before the server, because it cannot be written.
    RecordingEnds {
        /// The file that it is in.
        path: PathBuf,
        /// The operating system's answer.
        error: io::Error,
    },
    /// An address that other machines reach is served without TLS.
    Exposed {
        /// The address that clients use.
        place: String,
    },
    /// A line about a client that was cut off.
    Client(String),
}

/// A function that takes events, from any thread.
pub type Tell = dyn Fn(&Notice) + Send + Sync;

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::TooMuch => f.write_str(
                "clients changed tables and file systems too often: counters keep the layers found so far",
            ),
            Notice::Slow(took) => {
                let seconds = took.as_secs_f64();
                write!(
                    f,
                    "looking for new tables and file systems took {seconds:.1} s: the next look comes after a hundred times that"
                )
            }
            Notice::RecordingEnds { path, error } => {
                write!(
                    f,
                    "record {}: {error}: the trace ends here, what is served does not",
                    path.display()
                )
            }
            Notice::Exposed { place } => {
                write!(f, "{place}: every client that reaches this address reads and writes \
                    without TLS")
            }
            Notice::Client(line) => f.write_str(line),
        }
    }
}
