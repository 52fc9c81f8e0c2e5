//! Pages and drawings in files that the user names: an older page is replaced, any other file is
//! left alone.
//!
//! A slip of the pen (`check --html disk.img`) names an image or a device where a page should go.
//! The file at that path is inspected first, and the page takes its place only when it is complete.

use crate::failure::Failure;
use crate::replaced::replace;
use crate::words;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// First bytes of the pages and drawings that are replaced.
const OURS: [&[u8]; 3] = [b"<!DOCTYPE html", b"<?xml", b"<svg"];

/// Writes a page to `path` through `write`. Errors: a device, a directory, a file that is no page,
/// a failed write.
pub(crate) fn write_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    require_replaceable(path)?;
    let to = resolved(path);
    if fs::metadata(&to).is_ok_and(|found| !found.is_file()) {
        // A terminal, a pipe, /dev/null.
        return File::create(&to).and_then(|file| write_all(file, write)).map_err(failed(path));
    }
    replace(&to, None, write).map_err(failed(path))
}

/// Refuses a path at which no page may stand, before there is one to write. Errors: a device, a
/// directory, a file that is no page.
pub(crate) fn require_replaceable(path: &Path) -> Result<(), Failure> {
    let refused =
        |why: &str| Failure::Message(format!("write {}: {why}: name a new file", path.display()));
    let to = resolved(path);
    let Ok(found) = fs::metadata(&to) else { return Ok(()) };
    let kind = found.file_type();
    if kind.is_block_device() {
        Err(refused("it is a block device"))
    } else if kind.is_dir() {
        Err(refused("it is a directory"))
    } else if kind.is_file() && found.len() > 0 && !is_page(&to).map_err(failed(path))? {
        Err(refused("there is a file that is no page or drawing"))
    } else {
        Ok(())
    }
}

/// The path that a link leads to, so that the link stays.
fn resolved(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// The failure of a write to `path`, in words.
fn failed(path: &Path) -> impl Fn(io::Error) -> Failure {
    |e| Failure::Message(format!("write {}: {}", path.display(), words::os(&e)))
}

fn is_page(path: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(path)?.take(16).read_to_end(&mut head)?;
    Ok(OURS.iter().any(|begin| head.starts_with(begin)))
}

fn write_all(file: File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut file = BufWriter::new(file);
    write(&mut file)?;
    file.flush()
}
