//! `move --resume`: finds the journal, compares the disk with it, and goes on with the move or
//! refuses.

use super::{Moving, access, bad, interrupted, show, whole};
use crate::command::moving::args::Move as Options;
use crate::disk_options::DiskOptions;
use crate::failure::{Failure, complain};
use crate::move_journal::{beside, is_journal};
use crate::target::open::open;
use crate::target::{DiskOverrides, Target};
use crate::write_target::WriteTarget;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use trueline_geom::base::topology::Topology;
use trueline_geom::graph::Provider;
use trueline_geom::graph::provider_store::Through;
use trueline_geom::mapping::slices::place;
use trueline_geom::relocate::sequence::Goal;
use trueline_geom::relocate::{Journal, Mismatch, Move, Standing, Unreadable, VERSION};
use trueline_host::disk::file;

/// The journal, and the disk that the user names.
struct Named {
    journal: PathBuf,
    /// The disk and, if it is named, its provider; `None`: as the journal says.
    typed: Option<Target>,
    /// True if only the disk was named, and the journal is at its default place.
    is_sought: bool,
}

/// The journal and the disk of `--resume [JOURNAL] [TARGET]`. A single word that is no journal is
/// the TARGET.
fn named(
    journal: Option<&Path>,
    typed: Option<&Target>,
    options: &DiskOptions,
) -> Result<Named, Failure> {
    if let (Some(journal), Some(typed)) = (journal, typed) {
        return Ok(Named { journal: journal.into(), typed: Some(typed.clone()), is_sought: false });
    }
    let word = journal.filter(|path| !is_journal(path)).and_then(Path::to_str);
    let alone = word.map(Target::parse).filter(is_disk);
    match (typed.or(alone.as_ref()), journal) {
        (Some(disk), _) => {
            let journal = beside(disk);
            if !journal.exists() {
                return Err(unjournaled(disk, &journal, options));
            }
            Ok(Named { journal, typed: Some(disk.clone()), is_sought: true })
        }
        (None, Some(journal)) => {
            Ok(Named { journal: journal.into(), typed: None, is_sought: false })
        }
        (None, None) => Err(Failure::Message(
            "resume: name the disk or the journal: trueline move --resume \
                disk.img: nothing was moved"
                .into(),
        )),
    }
}

/// The refusal where `disk` is named and no journal is at its default place, `journal`: a marked
/// partition has one elsewhere, and without a mark no move needs one.
fn unjournaled(disk: &Target, journal: &Path, options: &DiskOptions) -> Failure {
    let opened = DiskOverrides::new(options).and_then(|overrides| open(disk, &overrides));
    let found = match opened.map(|graph| graph.providers.iter().any(Provider::is_moving)) {
        Ok(true) => format!(
            "no journal is at {}: name it: trueline move --resume JOURNAL {disk}",
            journal.display()
        ),
        Ok(false)
            if Path::new(disk.typed())
                .extension()
                .is_some_and(|extension| extension == "journal") =>
        {
            "it is not a complete journal of a move: if the move was killed as it began, begin \
                it again with --journal and another name"
                .into()
        }
        Ok(false) => {
            "no move of it is under way: if one without a journal was interrupted, begin it again"
                .into()
        }
        Err(why) => why.0,
    };
    Failure::Message(format!("resume {disk}: {found}: nothing was moved"))
}

/// True if the target is a disk: an existing file, a provider or a server.
fn is_disk(target: &Target) -> bool {
    target.only_path().is_some_and(Path::exists)
        || target.provider().is_some()
        || target.is_remote()
}

pub(super) fn run(args: &Options, journal: Option<&Path>, goal: Goal) -> Result<ExitCode, Failure> {
    let Named { journal: path, typed, is_sought } =
        named(journal, args.target.as_ref(), &args.disk)?;
    let failed = |found: &str| {
        Failure::Message(format!("resume {}: {found}: nothing was moved", path.display()))
    };
    let typed = |words: &str| match &typed {
        // The table may be on a slice or a set, which the journal names.
        Some(disk) if is_sought => {
            Target::from_sources(disk.sources().to_vec(), Target::parse(words).provider())
        }
        Some(typed) => typed.clone(),
        None => Target::parse(words),
    };
    if let Some(code) = whole::resume(args, &path, &typed, goal)? {
        return Ok(code);
    }
    if goal == Goal::Back {
        return Err(failed(
            "it is the journal of one partition: go on with --resume, then move it back with --to",
        ));
    }
    let opened =
        file::open_for(&path, access(args)).map_err(|e| Failure::Message(e.to_string()))?;
    let (journal, mut plan, words) =
        Journal::open(&opened.store).map_err(|why| failed(&unreadable(why)))?;
    let typed = typed(&words);
    let disk = in_sectors(&args.disk, plan.sector, &typed);
    let target = WriteTarget::open(&typed, &disk, access(args))?;
    let on = target.id;
    require_disk(&path, &target, plan.medium, plan.sector)?;
    let moved = plan.from..plan.from.saturating_add(plan.length);
    plan.unreadable = bad::inside(&bad::list(args, plan.sector)?, &moved);
    for line in bad::lines(&plan) {
        complain(&format!("note: {line}"));
    }
    let standing = plan
        .standing(&journal, &Through::new(&target.graph, on))
        .map_err(|why| failed(&format!("{typed}: {}", interrupted(why, plan.sector))))?;
    let start = match standing {
        Standing::Half(start) => Some(start),
        Standing::Done => None,
        Standing::Untouched => {
            return Err(failed(&format!(
                "{typed} was not changed yet: remove the journal and begin again"
            )));
        }
        Standing::Other(why) => {
            return Err(failed(&mismatch(&typed, Some(&plan), plan.sector, why)));
        }
    };
    if args.dry_run {
        return show(&target, on, &plan, &typed);
    }
    // A move that was done before may have been written to since.
    let discard = args.discard && start.is_some();
    let moving = Moving { typed: &typed, on, plan: &plan, journal: Some(&path), discard };
    // The disk may have been used since the steps that are done: none of them is written again.
    let done = start.map_or(Ok(()), |start| moving.carry(&target, Some(&journal), start));
    let Some(table) = target.table() else {
        // The first error is the one to report.
        done?;
        return Err(Failure::Message(format!(
            "write {typed}: its table does not read back as it should: check the disk; the journal is kept"
        )));
    };
    moving.finish(target, table.scheme, done, args.json)
}

/// The options of a disk whose journal counts in sectors of that size: an image does not say how
/// long its own are.
pub(in crate::command) fn in_sectors(
    disk: &DiskOptions,
    sector: u64,
    typed: &Target,
) -> DiskOptions {
    let of_file = Some(sector).filter(|_| typed.paths().iter().all(|p| p.is_file()));
    DiskOptions { logical: disk.logical.or(of_file), ..disk.clone() }
}

/// Refuses a target that has not the length and the sectors of the journal at `path`.
pub(super) fn require_disk(
    path: &Path,
    target: &WriteTarget,
    medium: u64,
    wanted: u64,
) -> Result<(), Failure> {
    let Topology { length, sector, .. } = target.graph.providers[target.id].topology;
    if (length, sector) == (medium, wanted) {
        return Ok(());
    }
    Err(Failure::Message(format!(
        "resume {}: {} has {length} bytes in sectors of {sector}, the table of the move is on \
         {medium} in sectors of {wanted}: name that disk: nothing was moved",
        path.display(),
        target.typed
    )))
}

/// The reason why a file cannot be resumed from, with advice.
pub(in crate::command) fn unreadable(why: Unreadable) -> String {
    match why {
        Unreadable::Other => "it is not a complete journal of a move: name the file that was \
            named when the move began"
            .into(),
        Unreadable::Damaged => "it is not a complete journal of a move: it is damaged: bring \
            back a copy of it, and of the disk"
            .into(),
        Unreadable::Version(version) => format!(
            "it is a journal of format {version}, and this trueline resumes format {VERSION}: go on with the trueline that began the move"
        ),
        Unreadable::Failed(errno) => errno.to_string(),
    }
}

/// The reason why the move cannot go on with a disk, with advice.
pub(super) fn mismatch(typed: &Target, plan: Option<&Move>, sector: u64, why: Mismatch) -> String {
    let not = format!("{typed} is not as the move left it");
    let steps = plan.map_or(String::new(), |plan| format!(" of {}", plan.steps()));
    match why {
        Mismatch::Unmarked => format!(
            "{not}: it does not begin with the mark of the move: it is another disk, a copy from \
                before or after the move, or something was written to it: name the disk that was \
                being moved"
        ),
        Mismatch::Trace => {
            let at = plan.map_or(String::new(), |plan| {
                format!(" at {}", place(plan.from.min(plan.to), plan.sector))
            });
            format!("{not}: the mark{at} is damaged: bring back a copy of the disk as it was left")
        }
        Mismatch::Table => format!(
            "{not}: its table is not that of this step of the move: put \
            back the table, or the disk as it was left"
        ),
        Mismatch::Apart { disk, journal } => {
            let at = journal.map_or(
                "before its first \
                step"
                    .into(),
                |step| format!("at step {step}"),
            );
            let older = if journal.is_some_and(|journal| journal > disk) {
                typed.typed()
            } else {
                "the journal"
            };
            format!(
                "{not}: it is at step {disk}{steps} and the journal {at}: {older} is an older \
                    copy: bring back the disk and the journal as the interruption left them, both \
                    of one moment"
            )
        }
        Mismatch::Seal(step) => format!(
            "{not}: it is at step {step} of another history of this move: bring back the disk and \
                the journal as the interruption left them, both of one moment"
        ),
        Mismatch::Notes => "its notes are of two moments: it is put together of two copies: bring \
            back one whole copy"
            .into(),
        Mismatch::Bytes(at) => format!(
            "{not}: what is at {} is not what the journal knows of it: the disk or the journal is \
                an older copy, or is damaged: bring back both as the interruption left them",
            place(at, sector)
        ),
    }
}
