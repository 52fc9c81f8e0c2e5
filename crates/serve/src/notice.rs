//! Events that a user is told of while a server runs.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use trueline_geom::base::error::Errno;

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
    /// A disk of several could not be read.
    ReadFailed {
        /// The name of the disk.
        disk: String,
        /// First byte of the read.
        offset: u64,
        /// Length of the read in bytes.
        length: u64,
        /// The answer of the disk.
        error: Errno,
        /// Reads of this disk that have failed, this one included.
        count: u64,
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
            Notice::ReadFailed { disk, offset, length, error, count } => {
                write!(f, "{disk}: read of {length} bytes at byte {offset}: {error}: ")?;
                f.write_str("another copy, or parity, answers where there is one")?;
                match count {
                    1 => Ok(()),
                    count => write!(f, "; {count} reads have failed"),
                }
            }
            Notice::Client(line) => f.write_str(line),
        }
    }
}
