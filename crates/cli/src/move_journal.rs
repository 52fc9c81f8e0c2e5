//! Journal files of moves and conversions: their place, the disk they belong to, how they are made
//! and removed.

use crate::failure::{Failure, complain};
use crate::placed::half_moved;
use crate::target::Target;
use crate::words;
use crate::words::escape::shell;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use trueline_geom::base::store::Store;
use trueline_geom::convert::rewrite::Rewrite;
use trueline_geom::graph::{Graph, Id};
use trueline_geom::relocate::sequence::Sequence;
use trueline_geom::relocate::{Journal, Mark, Move, Unreadable};
use trueline_host::disk::file::{self, Access, Opened};
use trueline_host::disk::room::allocate;

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
    let command = if converted(graph, id) { "convert" } else { "move" };
    match find(target, graph, id) {
        Some(path) => format!("trueline {command} --resume {}", shell(&path.to_string_lossy())),
        None => format!("trueline {command} --resume JOURNAL"),
    }
}

/// True if the mark on provider `id` is that of a disk which is converted to other sectors.
fn converted(graph: &Graph, id: Id) -> bool {
    let mut bytes = [0; Mark::LENGTH];
    let read = graph.read_at(id, &mut bytes, 0);
    read.is_ok() && Mark::read(&bytes).is_some_and(|mark| mark.is_of_disk())
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
    let what = if converted(graph, half) {
        "its conversion to other sectors".into()
    } else {
        format!("the move of {name}")
    };
    Err(Failure::Message(format!(
        "{attempt} {target}: {what} was interrupted: go on with that first: {command}"
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
    let is_its = match Journal::open(&opened.store) {
        Ok((_, plan, _)) => plan.id == mark.id,
        Err(_) => match Sequence::open(&opened.store) {
            Ok((sequence, ..)) => sequence.has(&mark.id),
            Err(_) => Rewrite::open(&opened.store).ok()?.id == mark.id,
        },
    };
    is_its.then_some(path)
}

/// True if a regular file at `path` is a move's journal, of any version, damaged or not.
pub(crate) fn is_journal(path: &Path) -> bool {
    let opened = path.is_file().then(|| file::open_for(path, Access::Read).ok()).flatten();
    let other =
        |why: Option<Unreadable>| matches!(why, Some(Unreadable::Other | Unreadable::Failed(_)));
    opened.is_some_and(|opened| {
        !other(Rewrite::open(&opened.store).err())
            || !other(Journal::open(&opened.store).err())
            || !other(Sequence::open(&opened.store).err())
    })
}

/// A new journal file at `path`, with room for the journal of `plan`.
pub(crate) fn create(path: &Path, plan: &Move, words: &str) -> Result<Opened, Failure> {
    let (_, size) = Journal::head(plan, words).ok_or_else(|| {
        let path = path.display();
        Failure::Message(format!(
            "make the journal {path}: the tables are too large for one: nothing was moved"
        ))
    })?;
    reserve(path, size)
}

/// A new file at `path` with `size` bytes that are its own: a journal must not run out of room
/// half-way.
pub(crate) fn reserve(path: &Path, size: u64) -> Result<Opened, Failure> {
    let failed = |e: io::Error| {
        let advice = if e.kind() == io::ErrorKind::AlreadyExists {
            ": if it is the journal of a move or a conversion, go on with that: --resume"
        } else {
            ""
        };
        Failure::Message(format!(
            "make the journal {}: {}{advice}: nothing was written",
            path.display(),
            words::os(&e)
        ))
    };
    // Never over another: it may be the only copy of what it holds.
    let new = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(failed)?;
    allocate(&new, size).and_then(|()| new.sync_all()).map_err(|e| {
        let _ = fs::remove_file(path);
        failed(e)
    })?;
    sync_directory(path).map_err(failed)?;
    drop(new);
    file::open_for(path, Access::Write).map_err(|e| Failure::Message(e.to_string()))
}

/// Warns on stderr of a journal that a loss of power would take.
pub(crate) fn warn_of_memory(path: &Path, journal: &Opened) {
    if journal.store.properties().non_blocking {
        complain(&format!(
            "warning: {} is in memory, and so the journal does not survive a loss of power",
            path.display()
        ));
    }
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
