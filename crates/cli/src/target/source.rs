//! One disk of a target: its kind, decided once, and the parts of its spelling.

use super::{memory, object, remote, simulated};
use std::path::Path;
use trueline_geom::base::size;

/// Prefix of a disk of zeroes; its size follows.
pub(super) const ZERO: &str = "zero:";

/// A disk as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    typed: String,
    kind: SourceKind,
    /// True if something of that name could be opened when it was parsed.
    is_there: bool,
}

/// SourceKind of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SourceKind {
    /// A file or device, or the name of neither.
    Path,
    /// Zeroes, with the text of their size.
    Zero(String),
    /// Memory, zero or with an image.
    Memory(memory::Spelling),
    /// A simulated drive with its model.
    Simulated(simulated::Spelling),
    /// An export of an NBD server.
    Remote,
    /// An object of a store.
    Object(object::Spelling),
    /// A URI of a kind that is not read.
    Uri,
}

impl SourceKind {
    /// The kind of `text`, of which no file has the name.
    fn parse(text: &str) -> SourceKind {
        if let Some(size) = text.strip_prefix(ZERO) {
            SourceKind::Zero(size.into())
        } else if let Some(spelling) = memory::Spelling::parse(text) {
            SourceKind::Memory(spelling)
        } else if let Some(spelling) = simulated::Spelling::parse(text) {
            SourceKind::Simulated(spelling)
        } else if remote::is_meant(text) {
            SourceKind::Remote
        } else if let Some(spelling) = object::Spelling::parse(text) {
            SourceKind::Object(spelling)
        } else if text.contains("://") {
            SourceKind::Uri
        } else {
            SourceKind::Path
        }
    }

    /// True if a disk of this kind, which is no file, can be made or connected to.
    fn is_there(&self) -> bool {
        match self {
            SourceKind::Path | SourceKind::Uri => false,
            SourceKind::Zero(size) => size::bytes(size).is_some(),
            SourceKind::Memory(spelling) => spelling.is_whole(),
            SourceKind::Simulated(spelling) => spelling.is_whole(),
            SourceKind::Remote | SourceKind::Object(_) => true,
        }
    }
}

impl Source {
    /// Parses the text of one disk; an existing file of that name comes first.
    pub(super) fn parse(text: &str) -> Source {
        let file = Source::file(text);
        if file.is_there {
            return file;
        }
        let kind = SourceKind::parse(text);
        Source { typed: text.into(), is_there: kind.is_there(), kind }
    }

    /// The file or device of that path, whatever kind of disk it would read as.
    pub(crate) fn file(path: &str) -> Source {
        Source { typed: path.into(), kind: SourceKind::Path, is_there: Path::new(path).exists() }
    }

    /// The object of that URI, whatever marks are in its name.
    #[cfg(feature = "cloud")]
    pub(super) fn of_object(uri: &str, object: object::Spelling) -> Source {
        Source { typed: uri.into(), kind: SourceKind::Object(object), is_there: true }
    }

    /// The text as typed.
    pub(crate) fn typed(&self) -> &str {
        &self.typed
    }

    pub(super) fn kind(&self) -> &SourceKind {
        &self.kind
    }

    /// True if something of that name could be opened when it was parsed.
    pub(super) fn is_there(&self) -> bool {
        self.is_there
    }

    /// True if it is memory, zeroes or a simulated drive: each use makes a new one.
    pub(crate) fn is_made_up(&self) -> bool {
        self.is_there && (self.is_memory() || self.simulated().is_some())
    }

    /// True if it is memory (`md:`) or zeroes (`zero:`) that can be made.
    pub(super) fn is_memory(&self) -> bool {
        self.is_there && matches!(self.kind, SourceKind::Memory(_) | SourceKind::Zero(_))
    }

    /// True if it is zeroes (`zero:`), which take no writes.
    pub(crate) fn is_zeroes(&self) -> bool {
        matches!(self.kind, SourceKind::Zero(_))
    }

    /// True if it is an NBD export.
    pub(super) fn is_remote(&self) -> bool {
        self.kind == SourceKind::Remote
    }

    /// The object of a store that it is.
    pub(crate) fn object(&self) -> Option<&object::Spelling> {
        match &self.kind {
            SourceKind::Object(spelling) => Some(spelling),
            _ => None,
        }
    }

    /// Parts of a simulated drive, whether or not its model and image exist.
    pub(crate) fn simulated(&self) -> Option<&simulated::Spelling> {
        match &self.kind {
            SourceKind::Simulated(spelling) => Some(spelling),
            _ => None,
        }
    }

    /// Path of the file or device that is opened; what cannot be made is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        let is_path = !self.is_made_up() && !self.is_remote() && self.object().is_none();
        is_path.then(|| Path::new(&self.typed))
    }

    /// File that gives the disk its name: itself, its image or its model.
    pub(super) fn named_by(&self) -> &str {
        match &self.kind {
            SourceKind::Simulated(spelling) => spelling.file(),
            SourceKind::Memory(spelling) => spelling.image().unwrap_or(&self.typed),
            _ => &self.typed,
        }
    }
}
