//! Events of counting that a user is told of, because counts mean something else from then on.

use std::fmt;
use std::time::Duration;

/// An event of a server that counts. Its words follow the name of what is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// So many providers were made that further ones are not followed.
    TooMuch,
    /// Tasting has taken this time, and is done seldom from now on.
    Slow(Duration),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::TooMuch => f.write_str("too much was made anew: counters keep the layers that were found until now"),
            Notice::Slow(took) => {
                let seconds = took.as_secs_f64();
                write!(f, "to find what was made on it took {seconds:.1} s: it is looked again after a hundred times that")
            }
        }
    }
}
