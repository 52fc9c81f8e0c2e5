//! Journal files of moves and conversions: their place, the disk they belong to, how they are made
//! and removed.

pub(crate) mod between;
pub(crate) mod named;
pub(crate) mod sought;

use crate::failure::{Failure, complain};
use crate::placed::half_moved;
use crate::target::Target;
use crate::words;
use crate::words::escape::shell;
use sought::Belonging;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use trueline_geom::base::store::Store;
use trueline_geom::convert::owned::Owned;
use trueline_geom::graph::{Graph, Id};
use trueline_geom::relocate::draft::{draft, is_draft};
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

/// The command that resumes the interrupted move of provider `id`; it names the journal if the
/// search for its mark ends at one.
pub(crate) fn resume_command(target: &Target, graph: &Graph, id: Id) -> String {
    match sought::of_provider(target, graph, id) {
        Some(Belonging::One(its)) => its.command(target),
        found => {
            let command = if is_of_disk(graph, id) { "convert" } else { "move" };
            let file = found.and_then(Belonging::only_path);
            let file = file.map_or("JOURNAL".into(), |path| shell(&path.to_string_lossy()));
            format!("trueline {command} --resume {file}")
        }
    }
}

/// The mark on provider `id`; `None` without one.
pub(crate) fn mark(graph: &Graph, id: Id) -> Option<Mark> {
    let mut bytes = [0; Mark::LENGTH];
    graph.read_at(id, &mut bytes, 0).ok()?;
    Mark::read(&bytes)
}

/// True if the mark on provider `id` is that of a disk which is converted to other sectors.
pub(crate) fn is_of_disk(graph: &Graph, id: Id) -> bool {
    mark(graph, id).is_some_and(|mark| mark.is_of_disk())
}

/// Refuses to write to provider `id` while a move of it, or of a partition in it, is interrupted:
/// the move could not be resumed, and part of the contents is in the journal alone. Also where the
/// moves of a whole disk stand between two steps, and its table would be written. `attempt` begins
/// the message.
pub(crate) fn require_settled(
    attempt: &str,
    target: &Target,
    graph: &Graph,
    id: Id,
) -> Result<(), Failure> {
    require_unmarked(attempt, target, graph, id)?;
    between::require_none(attempt, target, graph, id)
}

/// As [`require_settled`], for marks alone.
pub(crate) fn require_unmarked(
    attempt: &str,
    target: &Target,
    graph: &Graph,
    id: Id,
) -> Result<(), Failure> {
    let Some(half) = half_moved(graph, id) else { return Ok(()) };
    let (name, command) = (&graph.providers[half].name, resume_command(target, graph, half));
    let what = if is_of_disk(graph, half) {
        "its conversion to other sectors".into()
    } else {
        format!("the move of {name}")
    };
    Err(Failure::Message(format!(
        "{attempt} {target}: {what} was interrupted: go on with that first: {command}"
    )))
}

/// True if a regular file at `path` is a journal, of any version, damaged or not, or was to be one.
pub(crate) fn is_journal(path: &Path) -> bool {
    let opened = path.is_file().then(|| file::open_for(path, Access::Read).ok()).flatten();
    opened.is_some_and(|opened| {
        let other =
            matches!(Owned::open(&opened.store), Err(Unreadable::Other | Unreadable::Failed(_)));
        !other || is_draft(&opened.store) == Ok(true)
    })
}

/// Removes the journal at `path` if it was never complete: nothing on the disk had changed. Returns
/// the sentence that says so; `None` for any other file. `dry` only says it.
pub(crate) fn remove_draft(path: &Path, dry: bool) -> Result<Option<String>, Failure> {
    let access = if dry { Access::Read } else { Access::Write };
    let opened = path.is_file().then(|| file::open_for(path, access)).transpose();
    let Some(opened) = opened.map_err(|e| Failure::Message(e.to_string()))? else {
        return Ok(None);
    };
    if is_draft(&opened.store) != Ok(true) {
        return Ok(None);
    }
    let shown = path.display();
    let found = format!(
        "{shown} was not complete when it was interrupted, so nothing on the disk had changed"
    );
    if dry {
        return Ok(Some(format!("{found}: it would be removed")));
    }
    fs::remove_file(path).and_then(|()| sync_directory(path)).map_err(|e| {
        Failure::Message(format!("remove {shown}: {}: {found}: remove it", words::os(&e)))
    })?;
    Ok(Some(format!("{found}: it is removed")))
}

/// The reason why a file cannot be resumed from, with advice.
pub(crate) fn unreadable(why: Unreadable) -> String {
    match why {
        Unreadable::Other => "it is not a complete journal of a move: name the file that was \
            named when the move began"
            .into(),
        Unreadable::Damaged => "it is not a complete journal of a move: it is damaged: bring \
            back a copy of it, and of the disk"
            .into(),
        Unreadable::Version(version) => format!(
            "it is a journal of format {version}, which this trueline does not resume: go on with \
                the trueline that began the move"
        ),
        Unreadable::Failed(errno) => errno.to_string(),
    }
}

/// A new journal file at `path`, with room for the journal of `plan`.
pub(crate) fn create(path: &Path, plan: &Move, words: &str) -> Result<Opened, Failure> {
    let (_, size) = Journal::head(plan, words).ok_or_else(|| {
        let path = path.display();
        Failure::Message(format!(
            "make the journal {path}: the tables are too large for one: nothing was moved"
        ))
    })?;
    reserve(path, size, &plan.id)
}

/// A new file at `path` with `size` bytes that are its own: a journal must not run out of room
/// half-way. It begins with a draft of the journal of the move `id`.
pub(crate) fn reserve(path: &Path, size: u64, id: &[u8; 16]) -> Result<Opened, Failure> {
    let failed = |e: io::Error| {
        let advice = if e.kind() == io::ErrorKind::AlreadyExists {
            ": if it is the journal of a move or a conversion, go on with that, or have one that \
                was never complete removed: --resume"
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
    let mut new = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(failed)?;
    let drafted = new.write_all(&draft(id)).and_then(|()| new.sync_all());
    drafted.and_then(|()| allocate(&new, size)).and_then(|()| new.sync_all()).map_err(|e| {
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
