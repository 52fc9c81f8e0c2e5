//! Places of images, beside which the files or objects are that names in them mean.

use super::open::{image, stem};
use super::{DiskOverrides, Source, object};
use crate::failure::Reason;
use std::path::{Component, Path, PathBuf};
use trueline_geom::graph::Disk;
use trueline_host::disk::file::{self, Access};

/// Place of an image.
#[derive(Clone)]
pub(super) enum Home {
    /// File at this path.
    File(PathBuf),
    /// Object of a store.
    Object(object::Spelling),
    /// None, of a disk that is made up or another program's.
    None,
}

impl Home {
    /// The place of a disk of a target.
    pub(super) fn of(source: &Source) -> Home {
        let file = || source.path().map(|path| Home::File(path.to_owned()));
        let object = || source.object().map(|object| Home::Object(object.clone()));
        file().or_else(object).unwrap_or(Home::None)
    }

    pub(super) fn is_none(&self) -> bool {
        matches!(self, Home::None)
    }

    /// Path of a file.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Home::File(path) => Some(path),
            _ => None,
        }
    }

    /// Path of a file, or the URI of an object.
    pub(super) fn path(&self) -> Option<PathBuf> {
        match self {
            Home::File(path) => Some(path.clone()),
            Home::Object(object) => Some(object.uri().into()),
            Home::None => None,
        }
    }

    /// The file at its path, whatever leads there; of an object its URI.
    pub(super) fn place(&self) -> Option<PathBuf> {
        self.place_of(self.path()?)
    }

    /// The same of another path of its kind.
    pub(super) fn place_of(&self, path: PathBuf) -> Option<PathBuf> {
        match self {
            Home::File(_) => path.canonicalize().ok(),
            Home::Object(_) => Some(path),
            Home::None => None,
        }
    }

    /// Files or objects that are followed to from the disks of one target.
    pub(super) fn most(&self) -> usize {
        // Each object takes requests.
        if matches!(self, Home::Object(_)) { 64 } else { 256 }
    }

    /// The place that `name`, in the container here, may lead to. Errors: the reason for which it
    /// may not.
    pub(super) fn allowed(&self, name: &str) -> Result<Home, Reason> {
        match self {
            Home::File(from) => allowed(from, name).map(Home::File),
            Home::Object(object) => object.beside(&beside(name)?).map(Home::Object),
            Home::None => Err(Reason("it is in no directory".into())),
        }
    }

    /// Opens what is here as a disk, for reading.
    pub(super) fn open(&self, overrides: &DiskOverrides) -> Result<Disk, Reason> {
        match self {
            Home::File(path) => {
                let opened = file::open_for(path, Access::Read)?;
                Ok(image(stem(path), Box::new(opened.store), overrides))
            }
            Home::Object(object) => {
                object.open(stem(Path::new(object.uri())), overrides, Access::Read)
            }
            Home::None => Err(Reason("there is nothing".into())),
        }
    }
}

/// A name without what means nothing in it: `sub/./x` is `sub/x`, of files as of objects.
///
/// Errors: a name that may lead out of a directory.
fn beside(name: &str) -> Result<String, Reason> {
    if name.contains(':') {
        return Err(Reason("it names a protocol, or has a colon".into()));
    }
    plain(name).ok_or_else(|| Reason("it leads out of the image's directory".into()))
}

/// The file that `name`, in the container `from`, may lead to. Errors: the reason for which it may
/// not.
pub(super) fn allowed(from: &Path, name: &str) -> Result<PathBuf, Reason> {
    let name = beside(name)?;
    let refuse = |why: &str| Err(Reason(why.into()));
    let directory = from.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new(".")).canonicalize()?;
    let path = directory.join(name).canonicalize()?;
    if !path.starts_with(&directory) {
        return refuse("it is a link that leads out of the image's directory");
    }
    if !path.metadata()?.is_file() {
        return refuse("it is not a regular file");
    }
    Ok(path)
}

/// The name of a file beside another one, or below, without parts that mean nothing; `None` for any
/// other name.
fn plain(name: &str) -> Option<String> {
    let parts = Path::new(name).components().filter(|part| *part != Component::CurDir);
    let parts = parts.map(|part| match part {
        Component::Normal(part) => part.to_str(),
        _ => None,
    });
    let parts: Vec<&str> = parts.collect::<Option<_>>()?;
    (!parts.is_empty() && !name.contains('\0')).then(|| parts.join("/"))
}

/// True if a name is that of a file beside another one, or below.
pub(super) fn is_plain(name: &str) -> bool {
    plain(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_means_nothing() {
        for (name, found) in [
            ("x", Some("x")),
            ("sub/./x", Some("sub/x")),
            ("./sub//x", Some("sub/x")),
            ("sub/x/", Some("sub/x")),
            ("./..", None),
            ("sub/../x", None),
            ("/x", None),
            (".", None),
            ("", None),
            ("x\0", None),
        ] {
            assert_eq!(plain(name).as_deref(), found, "{name:?}");
        }
    }
}
