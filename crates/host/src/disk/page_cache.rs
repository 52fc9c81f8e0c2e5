//! The page cache of this host: written out, and forgotten.

use crate::error::Error;
use rustix::fs::{Advice, fadvise, syncfs};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

/// Writes everything dirty of the file system that a directory is on, and drops what is cached of
/// the files below it, `open` or not.
pub fn forget<'a>(directory: &Path, open: impl Iterator<Item = &'a File>) -> Result<(), Error> {
    let root = File::open(directory).map_err(|e| Error::os("open", directory, e))?;
    syncfs(&root).map_err(|e| Error::os("sync", directory, e))?;
    for file in open {
        drop_cached(file, directory)?;
    }
    let mut below = vec![directory.to_owned()];
    while let Some(directory) = below.pop() {
        for entry in std::fs::read_dir(&directory).map_err(|e| Error::os("list", &directory, e))? {
            let entry = entry.map_err(|e| Error::os("list", &directory, e))?;
            let kind = entry.file_type().map_err(|e| Error::os("list", &directory, e))?;
            if kind.is_dir() {
                below.push(entry.path());
            } else if kind.is_file() {
                let path = entry.path();
                drop_cached(&File::open(&path).map_err(|e| Error::os("open", &path, e))?, &path)?;
            }
        }
    }
    Ok(())
}

fn drop_cached(file: impl AsFd, path: &Path) -> Result<(), Error> {
    fadvise(file, 0, None, Advice::DontNeed)
        .map_err(|e| Error::os("drop the page cache of", path, e))
}
