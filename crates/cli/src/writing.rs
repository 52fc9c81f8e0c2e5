//! Writes to disks: every command that changes one writes through here.

use crate::failure::Failure;
use crate::move_journal::require_settled;
use crate::style::Style;
use crate::target::Target;
use crate::words::{self, columns, escape, hexdump};
use clap::Args;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use trueline_geom::base::error::Errno;
use trueline_geom::base::patch::{self, Patch};
use trueline_geom::graph::{Graph, Id};
use trueline_geom::mapping::slices::place;
use trueline_host::disk::file::Access;

/// Options of every command that writes.
#[derive(Args, Clone, Default)]
pub(crate) struct WriteOptions {
    /// Print the exact writes; change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// First save the bytes that are overwritten, for `trueline part undo FILE TARGET`
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Write even if it is mounted or in use: what uses it may then destroy data
    #[arg(long)]
    pub allow_busy: bool,
}

impl WriteOptions {
    /// The access to open the target with.
    pub(crate) fn access(&self) -> Access {
        match (self.dry_run, self.allow_busy) {
            (true, _) => Access::Read,
            (false, true) => Access::WriteInUse,
            (false, false) => Access::Write,
        }
    }
}

/// Patches to write to one provider.
pub(crate) struct Job {
    /// Id of the provider.
    pub id: Id,
    /// Patches in the order of writing.
    pub patches: Vec<Patch>,
}

/// Writes the jobs in order, each after a flush of the one before. With `--dry-run` they are only
/// printed, on stderr if stdout has a document; with `--save` the old bytes are saved first.
/// Returns the number of writes that change anything.
///
/// Errors: an interrupted move of what is written or of something on it, which only `move --resume`
/// may write; and what reading or writing fails with.
pub(crate) fn carry_out(
    target: &Target,
    graph: &Graph,
    jobs: Vec<Job>,
    options: &WriteOptions,
    has_document: bool,
) -> Result<usize, Failure> {
    jobs.iter().try_for_each(|job| require_settled("write", target, graph, job.id))?;
    if options.dry_run {
        return print(target, graph, jobs, has_document);
    }
    let needed = changes(target, graph, jobs)?;
    let count = needed.iter().map(|job| job.patches.len()).sum();
    if let Some(path) = options.save.as_deref() {
        save(path, target, graph, &needed)?;
    }
    write(target, graph, &needed, count, options)?;
    Ok(count)
}

/// Prints the writes, in order, and makes none; on stderr beside a document. Returns the number of
/// those that would change anything.
pub(crate) fn print(
    target: &Target,
    graph: &Graph,
    jobs: Vec<Job>,
    has_document: bool,
) -> Result<usize, Failure> {
    let needed = changes(target, graph, jobs)?;
    if has_document {
        let mut out = BufWriter::new(anstream::stderr().lock());
        list(target, graph, &needed, Style::of_stderr().width, &mut out)?;
        out.flush()?;
    } else {
        let mut out = BufWriter::new(anstream::stdout().lock());
        list(target, graph, &needed, Style::of_stdout().width, &mut out)?;
        out.flush()?;
    }
    Ok(needed.iter().map(|job| job.patches.len()).sum())
}

/// The jobs without the patches that change nothing.
fn changes(target: &Target, graph: &Graph, jobs: Vec<Job>) -> Result<Vec<Job>, Failure> {
    let needed = |Job { id, patches }: Job| {
        let patches = patch::changes(patches, &mut |at, out| graph.read_at(id, out, at))
            .map_err(|e| cannot(target, "read", e))?;
        Ok(Job { id, patches })
    };
    jobs.into_iter().map(needed).collect()
}

/// Makes the `count` writes and reads them back. An error says how many were made.
fn write(
    target: &Target,
    graph: &Graph,
    jobs: &[Job],
    count: usize,
    options: &WriteOptions,
) -> Result<(), Failure> {
    let mut done = 0;
    let broken = |attempt: &str, errno, done| {
        let Failure::Message(message) = cannot(target, attempt, errno) else {
            return cannot(target, attempt, errno);
        };
        let back = options.save.as_ref().filter(|_| done > 0);
        let back = back.map_or_else(String::new, |file| {
            format!("; take them back: trueline part undo {} {target}", file.display())
        });
        Failure::Message(format!("{message}: {done} of {count} writes were made{back}"))
    };
    for (nth, Job { id, patches }) in jobs.iter().enumerate() {
        for (i, patch) in patches.iter().enumerate() {
            if patch.after_flush || i == 0 && nth > 0 {
                graph.flush().map_err(|e| broken("flush", e, done))?;
            }
            graph.write_at(*id, &patch.bytes, patch.offset).map_err(|e| {
                let at = place(patch.offset, graph.providers[*id].topology.sector);
                broken(
                    &format!("write the {} of {} at {at} to", patch.what, name(graph, *id)),
                    e,
                    done,
                )
            })?;
            done += 1;
        }
    }
    if count > 0 {
        graph.flush().map_err(|e| broken("flush", e, done))?;
    }
    read_back(target, graph, jobs)
}

/// Compares the disk with what was written. Of several writes to one place the last counts.
fn read_back(target: &Target, graph: &Graph, jobs: &[Job]) -> Result<(), Failure> {
    for Job { id, patches } in jobs {
        let all: Vec<Patch> = jobs
            .iter()
            .filter(|job| job.id == *id)
            .flat_map(|job| job.patches.iter().cloned())
            .collect();
        for patch in patches {
            let (mut wanted, mut found) = (patch.bytes.clone(), vec![0; patch.bytes.len()]);
            patch::lay_over(&all, patch.offset, &mut wanted);
            graph
                .read_at(*id, &mut found, patch.offset)
                .map_err(|e| cannot(target, "read back", e))?;
            if found != wanted {
                let message = format!(
                    "write {target}: the {} does not read back as it should: check the disk",
                    patch.what
                );
                return Err(Failure::Message(message));
            }
        }
    }
    Ok(())
}

fn cannot(target: &Target, attempt: &str, errno: Errno) -> Failure {
    let advice = match errno {
        Errno::ReadOnly => ": it is read-only here",
        Errno::NoSpace => ": what it is stored on is full",
        _ => "",
    };
    Failure::Message(format!("{attempt} {target}: {errno}{advice}"))
}

fn name(graph: &Graph, id: Id) -> String {
    let name = &graph.providers[id].name;
    if name.is_empty() { "the disk".into() } else { escape::plain(name) }
}

/// Prints the writes as comments and hexdumps, with addresses on their provider. Without a width it
/// is the format that `undo` reads.
fn list(
    target: &Target,
    graph: &Graph,
    jobs: &[Job],
    width: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (nth, Job { id, patches }) in jobs.iter().enumerate() {
        for (i, patch) in patches.iter().enumerate() {
            let p = &graph.providers[*id];
            if patch.after_flush || i == 0 && nth > 0 {
                writeln!(out, "# flush")?;
            }
            let at = place(patch.offset, p.topology.sector);
            let to = format!("{} to {}#{}", patch.what, escape::plain(target.typed()), p.name);
            columns::comment(&format!("{to}: {} bytes at {at}", patch.bytes.len()), width, out)?;
            hexdump::write_fitting(patch.offset, &patch.bytes, width, out)?;
        }
    }
    Ok(())
}

/// The line of a saved file if nothing was changed.
pub(crate) const UNCHANGED: &str = "# nothing was changed, so nothing is put back";
/// Longest file that [`save`] makes and `part undo` reads, in bytes: it holds tables.
pub(crate) const MOST_SAVED: u64 = 64 << 20;
/// Characters that [`list`] needs for a byte, at most.
const SAVED_BYTE: u64 = 5;

/// Writes a new file at `path` with the patches that undo the jobs.
fn save(path: &Path, target: &Target, graph: &Graph, jobs: &[Job]) -> Result<(), Failure> {
    let failed = |e: io::Error| {
        Failure::Message(format!(
            "save the old bytes in {}: {}: nothing was written",
            path.display(),
            words::os(&e)
        ))
    };
    let bytes: u64 =
        jobs.iter().flat_map(|job| &job.patches).map(|patch| patch.bytes.len() as u64).sum();
    if bytes > MOST_SAVED / SAVED_BYTE {
        let most = MOST_SAVED / SAVED_BYTE;
        return Err(failed(io::Error::other(format!(
            "they are {bytes}, more than the {most} that part undo reads"
        ))));
    }
    let mut back = Vec::new();
    for Job { id, patches } in jobs.iter().rev() {
        let patches = patch::undo(patches, &mut |at, out| graph.read_at(*id, out, at))
            .map_err(|e| cannot(target, "read", e))?;
        back.push(Job { id: *id, patches });
    }
    // An existing file may be the only copy of older bytes.
    let file = File::options().write(true).create_new(true).open(path).map_err(failed)?;
    let mut out = BufWriter::new(file);
    let nothing = if bytes == 0 { writeln!(out, "{UNCHANGED}") } else { Ok(()) };
    let written = nothing
        .and_then(|()| list(target, graph, &back, None, &mut out))
        .and_then(|()| out.flush());
    written.and_then(|()| out.get_ref().sync_all()).map_err(|e| {
        // Half a file would stop the next attempt; if it cannot be removed, that attempt says so.
        let _ = fs::remove_file(path);
        failed(e)
    })?;
    // A new file survives a loss of power only once its directory is flushed.
    let directory =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)
}
