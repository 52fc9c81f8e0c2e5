//! Journal files of moves: their place, the disk they belong to, how they are made and removed.

use crate::failure::Failure;
use crate::placed::half_moved;
use crate::target::Target;
use crate::words;
use crate::words::escape::shell;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use trueline_geom::graph::{Graph, Id};
use trueline_geom::relocate::{Journal, Mark, Move, Unreadable};
use trueline_host::disk::file::{self, Access, Opened};

/// Path of the journal that no option names: beside an image, in the current directory for a
/// device; never on the disk that is changed.
pub(crate) fn beside(target: &Target) -> PathBuf {
    let first =
        target.paths().first().map(|path| path.to_path_buf()).unwrap_or_else(|| "disk".into());
    let file = first.is_file().then(|| first.clone());
    let mut name = file
        .unwrap_or_else(|| first.file_name().map_or_else(|| "disk".into(), PathBuf::from))
        .into_os_string();
    name.push(".journal");
    name.into()
}

/// The command that resumes the interrupted move of provider `id`; it names the journal if [`find`]
/// has one.
pub(crate) fn resume_command(target: &Target, graph: &Graph, id: Id) -> String {
    match find(target, graph, id) {
        Some(path) => format!("trueline move --resume {}", shell(&path.to_string_lossy())),
        None => "trueline move --resume JOURNAL".into(),
    }
}

/// Refuses to write to provider `id` while a move of it, or of a partition in it, is interrupted:
/// the move could not be resumed, and part of the contents is in the journal alone. `attempt`
/// begins the message.
pub(crate) fn require_settled(
    attempt: &str,
    target: &Target,
    graph: &Graph,
    id: Id,
) -> Result<(), Failure> {
    let Some(half) = half_moved(graph, id) else { return Ok(()) };
    let (name, command) = (&graph.providers[half].name, resume_command(target, graph, half));
    Err(Failure::Message(format!(
        "{attempt} {target}: the move of {name} was interrupted: go on with that first: {command}"
    )))
}

/// Path of the journal of the interrupted move of provider `id`, if it is at its default place and
/// has the same id as the mark.
pub(crate) fn find(target: &Target, graph: &Graph, id: Id) -> Option<PathBuf> {
    let mut bytes = [0; Mark::LENGTH];
    graph.read_at(id, &mut bytes, 0).ok()?;
    let mark = Mark::read(&bytes)?;
    let path = beside(target);
    let opened = path.is_file().then(|| file::open_for(&path, Access::Read).ok())??;
    let (_, plan, _) = Journal::open(&opened.store).ok()?;
    (plan.id == mark.id).then_some(path)
}

/// True if a regular file at `path` is a move's journal, of any version, damaged or not.
pub(crate) fn is_journal(path: &Path) -> bool {
    let opened = path.is_file().then(|| file::open_for(path, Access::Read).ok()).flatten();
    opened.is_some_and(|opened| {
        !matches!(Journal::open(&opened.store), Err(Unreadable::Other | Unreadable::Failed(_)))
    })
}

/// A new journal file at `path`, with room for the journal of `plan`.
pub(crate) fn create(path: &Path, plan: &Move, words: &str) -> Result<Opened, Failure> {
    let failed = |e: io::Error| {
        let advice = if e.kind() == io::ErrorKind::AlreadyExists {
            ": if it is the journal of a move, go on with that: move --resume"
        } else {
            ""
        };
        Failure::Message(format!(
            "make the journal {}: {}{advice}: nothing was moved",
            path.display(),
            words::os(&e)
        ))
    };
    let (_, size) = Journal::head(plan, words)
        .ok_or_else(|| failed(io::Error::other("the tables are too large for one")))?;
    // Never over another: it may be the only copy of what it holds.
    let new = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(failed)?;
    new.set_len(size).and_then(|()| new.sync_all()).map_err(|e| {
        let _ = fs::remove_file(path);
        failed(e)
    })?;
    sync_directory(path).map_err(failed)?;
    drop(new);
    file::open_for(path, Access::Write).map_err(|e| Failure::Message(e.to_string()))
}

/// Removes the journal of a completed move. The disk has to be flushed before.
pub(crate) fn remove(path: &Path) -> Result<(), Failure> {
    fs::remove_file(path).and_then(|()| sync_directory(path)).map_err(|e| {
        Failure::Message(format!("remove {}: {}: the move is done", path.display(), words::os(&e)))
    })
}

/// Flushes the directory of `path`: only then does the file's creation or removal survive a loss of
/// power.
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}
