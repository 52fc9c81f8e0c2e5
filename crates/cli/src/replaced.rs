//! Files that are replaced whole: a reader finds the old one or the new one, also after a crash.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use trueline_host::disk::locks;

/// Names that are tried for the file beside: one that a killed run has left is passed over.
const NAMES: u32 = 100;
/// Longest wait for others that replace files of the same directory.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between two looks at whether they are done.
const PAUSE: Duration = Duration::from_millis(10);

/// A new file beside the one that it is to replace. It is removed if that does not come about.
pub(crate) struct Replacement {
    file: File,
    beside: PathBuf,
    is_placed: bool,
}

impl Replacement {
    /// Writes to a file beside `path`, and flushes it to its medium. `permissions`: those of the
    /// new file, whatever the umask is; without them the usual ones.
    pub(crate) fn write(
        path: &Path,
        permissions: Option<Permissions>,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<Replacement> {
        let (beside, file) = create_beside(path)?;
        let new = Replacement { file, beside, is_placed: false };
        fill(&new.file, permissions, write).map(|()| new)
    }

    /// The new file, which is open.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// True once it is in its place.
    pub(crate) fn is_placed(&self) -> bool {
        self.is_placed
    }

    /// Renames it to `path`, which is in the same directory.
    pub(crate) fn place(&mut self, path: &Path) -> io::Result<()> {
        fs::rename(&self.beside, path)?;
        self.is_placed = true;
        // The new file is there. Some file systems cannot flush a directory: then a crash may bring
        // the old one back, which is whole too.
        let _ = File::open(directory(path)).and_then(|directory| directory.sync_all());
        Ok(())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.is_placed {
            // Half a file is of no use. If it cannot be removed either, the first error is the one
            // to report.
            let _ = fs::remove_file(&self.beside);
        }
    }
}

/// Writes to a file beside `path`, flushes it to its medium, and renames it: the old file stays
/// until the new one is complete. `permissions` as [`Replacement::write`] takes them.
pub(crate) fn replace(
    path: &Path,
    permissions: Option<Permissions>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    Replacement::write(path, permissions, write)?.place(path)
}

/// A lock for processes that look at a file and replace it, one at a time in a directory, until the
/// value is dropped. Every user that may read the directory can hold it, and must not keep others
/// from their work: after a time that no look and rename take it is not waited for. Errors: the
/// directory cannot be read.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    let directory = File::open(directory(path))?;
    let begun = Instant::now();
    while !locks::keep(&directory) && begun.elapsed() < PATIENCE {
        thread::sleep(PAUSE);
    }
    Ok(directory)
}

/// The path behind all links, so that a link stays where its file is replaced. Errors: a link that
/// leads nowhere, which may be another user's: no file is made where it says.
pub(crate) fn behind_links(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(_) if path.is_symlink() => {
            Err(io::Error::other("it is a link that leads to no file: name the file itself"))
        }
        Err(_) => Ok(path.to_path_buf()),
        found => found,
    }
}

/// The directory that a path is in.
pub(crate) fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A new file in the directory of `path`. Its name begins with a dot and has no ending, so that
/// readers of `*.prom` and the like pass over it.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let mut nth = 0;
    loop {
        let beside = path.with_file_name(format!(".trueline-{}-{nth}", std::process::id()));
        match File::options().write(true).create_new(true).open(&beside) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists && nth < NAMES => nth += 1,
            opened => return opened.map(|file| (beside, file)),
        }
    }
}

fn fill(
    file: &File,
    permissions: Option<Permissions>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffered = BufWriter::new(file);
    write(&mut buffered)?;
    buffered.flush()?;
    permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions))?;
    file.sync_all()
}
