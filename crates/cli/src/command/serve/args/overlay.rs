//! The place of an overlay: memory or a file.

use std::fmt;
use std::path::PathBuf;

/// The place that writes go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Memory, until the server ends.
    Memory,
    /// A file, which keeps them for the next time.
    File(PathBuf),
}

impl Place {
    /// Parses `mem` or a file; a file of that name is `./mem`.
    pub(super) fn parse(text: &str) -> Result<Place, String> {
        match text {
            "" => Err("write FILE or mem".into()),
            "mem" => Ok(Place::Memory),
            path => Ok(Place::File(path.into())),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Memory => f.write_str("mem"),
            Place::File(path) => path.display().fmt(f),
        }
    }
}
