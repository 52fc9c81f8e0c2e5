//! Files that are replaced whole: a reader finds the old one or the new one, also after a crash.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Names that are tried for the file beside: one that a killed run has left is passed over.
const NAMES: u32 = 100;

/// Writes to a file beside `path`, flushes it to its medium, and renames it: the old file stays
/// until the new one is complete. `permissions`: those of the new file, whatever the umask is;
/// without them the usual ones.
pub(crate) fn replace(
    path: &Path,
    permissions: Option<Permissions>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let (beside, file) = create_beside(path)?;
    let done = fill(&file, permissions, write).and_then(|()| fs::rename(&beside, path));
    if done.is_err() {
        // Half a file is of no use. If it cannot be removed either, the first error is the one to
        // report.
        let _ = fs::remove_file(&beside);
        return done;
    }
    // The new file is there. Some file systems cannot flush a directory: then a crash may bring the
    // old one back, which is whole too.
    let _ = File::open(directory(path)).and_then(|directory| directory.sync_all());
    Ok(())
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
